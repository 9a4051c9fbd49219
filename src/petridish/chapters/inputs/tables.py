"""Small tables of FL's runs, as the paper prints them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from petridish.rules.columns import curve_columns, reads
from petridish.sweeps.arms import by_arm

if TYPE_CHECKING:
    import polars as pl

READ = ("train_error", "test_error", "direction_cosine", "linear_probe", "pattern_ratio")


@reads(*curve_columns(*READ))
def methods_table(table: pl.DataFrame) -> pl.DataFrame:
    """Return accuracies, cosines and the background's share for every method, means over seeds.

    A row for each rate where a method has several. `best` is the accuracy of the best linear
    classifier on the features before any training on top; `sd` is that of the test accuracy.
    """
    import polars as pl

    def last(name: str) -> pl.Expr:
        readings = pl.col(f"curve.{name}").list.eval(pl.element().drop_nulls().drop_nans())
        return readings.list.last()

    there = {name for name in READ if f"curve.{name}" in table.columns}
    wanted = {
        "train": 1 - last("train_error").mean(),
        "test": 1 - pl.col("test_error").mean(),
        "sd": pl.col("test_error").std(),
        "cosine": last("direction_cosine").mean(),
        "best": 1 - last("linear_probe").mean() if "linear_probe" in there else pl.lit(None),
        "background": last("pattern_ratio").mean(),
    }
    return (
        by_arm(table)
        .group_by("arm", "training.learning_rate")
        .agg(pl.len().alias("runs"), **wanted)
        .sort("arm", "training.learning_rate")
    )
