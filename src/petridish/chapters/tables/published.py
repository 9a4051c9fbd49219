"""What PF prints of the benchmark: its Table 2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from petridish.tasks.benchmark_tables import BENCHMARK


@dataclass(frozen=True)
class Published:
    """A row of the paper's Table 2: test errors in percent.

    `mlp` and `forest` are the paper's best medians over 100 trials, trained on all training rows,
    on 10 % and on 1 % of them. The other fields are what it quotes of Grinsztajn et al. 2022, for
    the whole table: a tuned MLP, a tuned forest, and the best of their models with its name.
    """

    mlp: tuple[float, float, float]
    forest: tuple[float, float, float]
    tuned_mlp: float
    tuned_forest: float
    best: float
    best_model: str


def _published(*row: Any) -> Published:
    return Published(row[0:3], row[3:6], *row[6:])


TABLE_2: dict[str, Published] = {
    table.name: _published(*row)
    for table, row in zip(
        BENCHMARK,
        (
            (24.5, 27.8, 34.2, 22.0, 22.9, 24.8, 22.9, 23.6, 22.5, "GBT"),
            (18.9, 23.2, 25.1, 15.4, 18.0, 23.0, 23.6, 13.7, 12.8, "XGB"),
            (6.3, 13.7, 23.2, 19.1, 18.9, 21.4, 21.6, 17.1, 17.1, "RF"),
            (1.4, 4.2, 12.3, 2.1, 4.0, 10.0, 6.3, 1.9, 1.7, "XGB"),
            (12.7, 14.9, 20.0, 12.4, 13.9, 17.4, 12.1, 12.0, 11.1, "XGB"),
            (14.6, 16.5, 23.1, 14.8, 16.8, 21.9, 14.6, 14.5, 13.9, "FTT"),
            (20.2, 21.8, 25.9, 19.7, 21.1, 25.2, 20.9, 20.1, 19.5, "GBT"),
            (7.2, 10.0, 14.4, 7.7, 8.6, 10.5, 6.7, 7.3, 6.2, "XGB"),
            (26.1, 28.7, 33.7, 28.5, 28.7, 29.9, 31.4, 29.1, 28.6, "XGB"),
            (39.9, 43.9, 46.3, 35.8, 43.0, 47.8, 41.8, 34.8, 33.4, "XGB"),
            (39.1, 39.3, 40.7, 39.1, 39.4, 40.6, 39.5, 39.5, 39.4, "XGB"),
            (23.0, 26.1, 28.7, 22.0, 23.8, 27.2, 25.5, 22.7, 22.0, "XGB"),
            (28.7, 30.1, 33.5, 28.2, 29.2, 31.9, 28.9, 28.0, 28.0, "RF"),
            (19.5, 28.9, 37.6, 22.2, 29.2, 39.8, 23.4, 20.5, 20.5, "RF"),
            (12.2, 14.8, 20.8, 11.2, 13.8, 18.4, 12.9, 10.6, 9.7, "XGB"),
            (27.1, 28.0, 31.3, 27.8, 28.6, 31.0, 27.8, 28.1, 27.4, "ResNet"),
        ),
        strict=True,
    )
}
"""The paper's Table 2 by task."""
