"""From runs to trials: the restarts of a seed on one sample, of which one has to succeed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

TRIAL = ("task.n", "data.m", "seed")


def trials(table: pl.DataFrame) -> pl.DataFrame:
    """Return one row per trial: whether a restart was solved, and how many were made.

    `attempts` counts the draws of the training sample until one was accepted.
    """
    import polars as pl

    return (
        table.group_by(TRIAL)
        .agg(
            solved=(pl.col("outcome") == "SOLVED").any(),
            restarts=pl.len(),
            attempts=pl.col("drawn.attempts").max(),
        )
        .sort(TRIAL)
    )


def success_by_sample(table: pl.DataFrame) -> pl.DataFrame:
    """Return, for every T and m that was tried, the trials, their success and what they cost.

    Training samples that several hypotheses explain are drawn anew. That alone needs a sample
    that grows like log T, so that the mean number of draws is listed beside the success.
    """
    import polars as pl

    return (
        trials(table)
        .group_by("task.n", "data.m")
        .agg(
            trials=pl.len(),
            solved=pl.col("solved").sum(),
            runs=pl.col("restarts").sum(),
            draws=pl.col("attempts").mean(),
        )
        .sort("task.n", "data.m")
    )
