"""FL-2: interval labels, which fixed features learn too."""

from __future__ import annotations

from dataclasses import replace

from petridish.chapters.inputs.figures import arms_over_time
from petridish.chapters.inputs.methods import Sizes
from petridish.chapters.inputs.rules import ERROR, BesideConstant, against, each
from petridish.chapters.inputs.tables import methods_table
from petridish.experiment import Experiment
from petridish.rules import Claim, LastOf
from petridish.sweeps import Arms
from petridish.tasks import Dictionary

KERNEL_RATES, RANDOM_RATES = (3.0, 30.0, 300.0), (3.0, 30.0, 300.0)
"""Around the 30 to 300 of a first look."""


def interval(d: int, patterns: int, k: int, first: int, last: int) -> Dictionary:
    """Return y = +1 for first ≤ |φ_A| ≤ last, relevant patterns being there with probability ⅔."""
    counts = tuple(range(first, last + 1))
    return Dictionary(d, patterns, k, share=0.0, positive=counts, relevant=2 / 3, space="patterns")


def intervals(sizes: Sizes, first: int, last: int) -> Arms:
    """Declare the methods of Table 2; without structure every pattern is there with ½."""
    task = interval(sizes.d, sizes.patterns, sizes.k, first, last)
    bare = replace(task, relevant=0.5)
    kernel, random = KERNEL_RATES[1], RANDOM_RATES[1]
    runs = sizes.compared(task, bare, kernel=kernel, random=random, rates_of=bare, probe=True)
    runs["random features"] = sizes.classifier(sizes.start(task), probe=True)
    return sizes.arms(runs, {"tangent kernel": KERNEL_RATES, "random features": RANDOM_RATES})


TABLE = "FL E.1.2, Table 2"
PAPER = Sizes(k=30, width=200, steps=200, seeds=10)
INTERVALS = Experiment(
    id="FL-2",
    title="Interval labels: fixed features learn them too",
    source="FL E.1.2, Fig. 7, Table 2",
    scales={
        "smoke": intervals(
            Sizes(
                d=40,
                patterns=20,
                k=9,
                m=1_000,
                width=40,
                steps=60,
                batch_size=100,
                n_test=500,
                seeds=4,
            ),
            6,
            8,
        ),
        "laptop": intervals(replace(PAPER, m=10_000, batch_size=500, n_test=4_000), 20, 30),
        "paper": intervals(PAPER, 20, 30),
    },
    claims=(
        Claim(
            "P",
            "The network errs on at most 1 % of new inputs.",
            TABLE,
            each(ERROR, "network", below=0.01),
            "A test accuracy of 100 %.",
            kind="paper",
        ),
        Claim(
            "K",
            "The tangent kernel errs at most 2 points more than the network.",
            TABLE,
            against("tangent kernel", "network", ERROR, below=0.02),
            "NTK learns slower but reaches a similar test accuracy (100 %).",
            kind="paper",
        ),
        Claim(
            "F",
            "Random features err at least 5 points more than the network.",
            TABLE,
            against("random features", "network", ERROR, above=0.05),
            "Random feature can only reach a decent but lower accuracy (73.2 %).",
            kind="paper",
        ),
        Claim(
            "1",
            "The best linear classifier on features of one step errs at least 5 points more than "
            "that on features of two.",
            TABLE,
            against("one step", "two step", LastOf("linear_probe"), above=0.05),
            "Random feature and One Step failed (41.0 %), while Network, NTK and Two Step succeed.",
            kind="paper",
        ),
        Claim(
            "S",
            "Without structure the network errs less than half as often as a constant answer.",
            TABLE,
            each(BesideConstant(), "no structure", below=0.5),
            "The methods still get similar performance; a constant is right in 95.06 % there.",
            kind="ours",
        ),
    ),
    figures={"arms": arms_over_time},
    tables={"methods": methods_table},
)
