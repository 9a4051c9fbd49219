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
            wins=(pl.col("outcome") == "SOLVED").sum(),
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


def slopes(table: pl.DataFrame) -> pl.DataFrame:
    """Return how many further examples ten times as many bits ask for, of each learner.

    The slope of a least-squares line through m against log₁₀ T, and the exponent of m ∝ T^γ, over
    the T whose threshold lies inside of what was tried.
    """
    import numpy as np
    import polars as pl

    from petridish.chapters.variables.classical import sizes_beside
    from petridish.chapters.variables.sample_thresholds import thresholds_of

    known = thresholds_of(table)
    inside = known.found[:, 0] == known.found[:, 1]
    lengths = known.lengths[inside]
    rows = []
    if len(lengths) > 1:
        beside = sizes_beside(tuple(int(length) for length in lengths))
        for name, sizes in {"transformer": known.found[inside, 1], **beside}.items():
            ranks = np.log10(lengths)
            rows.append(
                {
                    "learner": name,
                    "examples per tenfold T": float(np.polyfit(ranks, sizes, 1)[0]),
                    "exponent": float(np.polyfit(ranks, np.log10(sizes), 1)[0]),
                    **{f"m at T = {n:g}": float(m) for n, m in zip(lengths, sizes, strict=True)},
                }
            )
    return pl.DataFrame(rows)


def beside(table: pl.DataFrame) -> pl.DataFrame:
    """Return, for every T, the sample that was needed, and what a bound and a search ask for.

    `decades` is by how many powers of ten the sample of Cor. 4.9, with explicit constants, lies
    beyond the measured one: not the bound's fault, but what is left to explain. None where no
    sample that was tried is enough.
    """
    import numpy as np
    import polars as pl

    from petridish.chapters.variables.classical import sample_needed
    from petridish.chapters.variables.sample_thresholds import thresholds_of
    from petridish.theory.variables.bounds import implied_sample
    from petridish.theory.variables.generalisation import least_sample

    known = thresholds_of(table)
    rows = []
    for place, length in enumerate(known.lengths):
        low, high = known.interval(place, 0.05)
        implied = implied_sample(int(length))
        measured = float(known.found[place, 1])
        decades = round(float(np.log10(implied / measured)), 1) if np.isfinite(measured) else None
        rows.append(
            {
                "T": int(length),
                "m": measured,
                "low": low,
                "high": high,
                "log2 C(T, 3)": round(least_sample(int(length), 3), 1),
                "one AND alone": sample_needed("exhaustive search", int(length)),
                "Cor. 4.9": f"{implied:.2g}",
                "decades": decades,
            }
        )
    return pl.DataFrame(rows)
