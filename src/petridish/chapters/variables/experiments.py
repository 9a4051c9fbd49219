"""TH Chapter 4: the sample from which a transformer finds the relevant variables (VC-1)."""

from __future__ import annotations

from petridish.chapters.variables.figures import growth, success_of_trials
from petridish.chapters.variables.rules import LinearInLog, ThresholdAt, ThresholdExponent
from petridish.chapters.variables.trial_settings import thresholds
from petridish.chapters.variables.trials import beside, slopes, success_by_sample
from petridish.experiment import Experiment
from petridish.models import ClsTransformer
from petridish.rules import Claim
from petridish.sweeps import Sweep

A_TENTH_APART = (20, 22, 24, 26, 29, 32, 35, 38, 42, 46, 51, 56, 62, 68, 75, 84, 100, 130, 200)
PRINTED = (*range(100, 801, 50), 900, 1000, 1100)
"""The T of A.3.1. Its m begin at 50 and go up in tens; ours begin at 20, where m(T) may lie."""
CLEAR = (0.6, 0.95)
"""Shares of 40 trials that are clearly below and above 80 %: [0.45, 0.74] and [0.84, 0.99]."""
EIGHT_LENGTHS = (50, 100, 150, 200, 300, 500, 800, 1100)


def of_eight_lengths(seeds: int, outward: tuple[float, float] | None = None) -> Sweep:
    """Declare eight T, with m a tenth apart."""
    return thresholds(
        EIGHT_LENGTHS,
        A_TENTH_APART,
        seeds=seeds,
        restarts=5,
        first=5,
        model=ClsTransformer(),
        steps=1_000,
        least=26,
        outward=outward,
    )


SAMPLES = Experiment(
    id="VC-1",
    title="The sample from which a transformer finds three relevant bits of T",
    source="TH §4.6, A.3.1, Fig. 4.2",
    scales={
        "smoke": thresholds(
            (8, 16),
            (15, 25, 40, 60, 90),
            seeds=6,
            restarts=3,
            first=3,
            model=ClsTransformer(16, 4),
            steps=150,
            rate=3e-3,
            n_test=500,
        ),
        "laptop": of_eight_lengths(20),
        "forty": of_eight_lengths(40, CLEAR),
        "paper": thresholds(
            PRINTED,
            (20, 25, *range(30, 201, 10)),
            seeds=40,
            restarts=5,
            first=10,
            model=ClsTransformer(),
            steps=1_000,
            least=30,
            outward=CLEAR,
        ),
    },
    claims=(
        Claim(
            "T",
            "The least sample with which 80 % of the trials succeed grows more slowly than T^0.3.",
            "TH §4.6, Fig. 4.2",
            ThresholdExponent(),
            "The threshold scales logarithmically with T; about 70 examples at T = 300. Between "
            "T = 100 and 1100 a multiple of log T has the exponent 0.17.",
            kind="ours",
        ),
        Claim(
            "L",
            "That this sample is linear in log T is not rejected, and growth like √T is.",
            "TH §4.6, Fig. 4.2",
            LinearInLog(),
            "This threshold scales logarithmically with T.",
            kind="ours",
        ),
        Claim(
            "300",
            "At T = 300 it is about 70: from 56 to 84.",
            "TH Fig. 4.3",
            ThresholdAt(),
            "The threshold (≈ 70 from Figure 4.2). How near is about is ours.",
            kind="paper",
        ),
    ),
    figures={"growth": growth, "trials": success_of_trials},
    tables={"trials": success_by_sample, "slopes": slopes, "beside": beside},
)
