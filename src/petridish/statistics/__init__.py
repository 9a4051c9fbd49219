"""Estimates, intervals, tests and fits: arrays in, numbers out."""

from petridish.statistics.intervals import (
    anytime_interval,
    bootstrap_median,
    censored_median,
    lower_median,
    mean_difference,
    wilson_interval,
)
from petridish.statistics.trend import decrease_test, holm, trend_test

__all__ = [
    "anytime_interval",
    "bootstrap_median",
    "censored_median",
    "decrease_test",
    "holm",
    "lower_median",
    "mean_difference",
    "trend_test",
    "wilson_interval",
]
