"""The settings among which forests and boosting are chosen."""

from __future__ import annotations

from itertools import product

from petridish.estimator.contenders import (
    Contender,
    HistGradientBoosting,
    LightGBM,
    RandomForest,
    XGBoost,
)

FOREST_GRID: tuple[RandomForest, ...] = tuple(
    RandomForest(trees, depth, features)
    for depth, features, trees in product(
        (None, 2, 3, 4, 10), (1, 2, 3, 4, "sqrt", None), (10, 100, 1000)
    )
)
"""The paper's grid of forests [PF §C.3], 90 of them."""

FOREST_LAPTOP: tuple[RandomForest, ...] = tuple(
    RandomForest(100, depth, features)
    for depth, features in product((None, 10, 3), (1, 2, "sqrt", None))
)
"""A part of that grid, 12 of 100 trees."""

SEARCH: dict[str, tuple[Contender, ...]] = {
    "hist_gradient_boosting": (
        HistGradientBoosting(),
        HistGradientBoosting(100, 0.1, 31, 5),
        HistGradientBoosting(100, 0.1, 7, 5),
        HistGradientBoosting(100, 0.05, 4, 5),
        HistGradientBoosting(300, 0.1, 4, 5),
        HistGradientBoosting(300, 0.03, 15, 10),
    ),
    "xgboost": (
        XGBoost(),
        XGBoost(100, 0.1, 6),
        XGBoost(100, 0.1, 3),
        XGBoost(300, 0.1, 2, 0.7),
        XGBoost(300, 0.03, 4, 0.7),
        XGBoost(300, 0.03, 6, 0.5),
    ),
    "lightgbm": (
        LightGBM(),
        LightGBM(100, 0.1, 7, 5),
        LightGBM(100, 0.05, 4, 5),
        LightGBM(300, 0.1, 4, 5, 0.7),
        LightGBM(300, 0.03, 15, 5, 0.7),
        LightGBM(300, 0.03, 7, 2, 0.5),
    ),
}
"""Boosting's search: each library's default, then five more of fewer leaves, lower rates, sampled
rows and columns, and smaller leaves than the default 20 rows, which tiny samples need."""
