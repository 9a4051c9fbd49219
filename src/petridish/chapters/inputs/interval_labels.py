"""FL-2: interval labels, which fixed features learn too."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from petridish.chapters.inputs.experiments import ERROR, against, each
from petridish.chapters.inputs.figures import arms_over_time
from petridish.chapters.inputs.rules import BesideConstant
from petridish.chapters.inputs.tables import methods_table
from petridish.chapters.inputs.trainings import (
    CLASSIFIER,
    after,
    first_rate,
    forgetting,
    second_rate,
    seeded,
    start,
    tangent,
    then,
)
from petridish.experiment import Experiment
from petridish.rules import Claim, LastOf, Median, Rule
from petridish.rules import PairedBySeed as SeedBySeed
from petridish.sweeps import Arms
from petridish.tasks import Dictionary
from petridish.training import RunSpec

KERNEL_RATES, RANDOM_RATES = (3.0, 30.0, 300.0), (3.0, 30.0, 300.0)
"""Around the 30 to 300 of a first look."""


def interval(d: int, patterns: int, k: int, first: int, last: int) -> Dictionary:
    """Return y = +1 for first ≤ |φ_A| ≤ last, relevant patterns being there with probability ⅔."""
    counts = tuple(range(first, last + 1))
    return Dictionary(d, patterns, k, share=0.0, positive=counts, relevant=2 / 3, space="patterns")


def intervals(
    task: Dictionary,
    *,
    m: int,
    width: int,
    steps: int,
    batch_size: int,
    seeds: int,
    n_test: int,
) -> Arms:
    """Declare the methods of Table 2; without structure every pattern is there with ½."""
    sizes: dict[str, Any] = {"m": m, "width": width, "n_test": n_test}
    none, bare = start(task, **sizes), start(replace(task, relevant=0.5), **sizes)

    def two_steps(run: RunSpec) -> tuple[RunSpec, RunSpec]:
        of = run.task
        assert isinstance(of, Dictionary), "of the start"
        one = forgetting(run, first_rate(of, width))
        return one, forgetting(after(run, one), second_rate(of))

    def trained(run: RunSpec, rate: float = 1.0, **how: Any) -> RunSpec:
        return then(run, **{"steps": steps, "batch_size": batch_size, "rate": rate, **how})

    one, two = two_steps(none)
    on_one = trained(after(none, one), schedule=CLASSIFIER, precision="float64", probe=True)
    return Arms(
        {
            "network": seeded(trained(after(none, two)), seeds),
            "two step": seeded(trained(after(none, two), schedule=CLASSIFIER, probe=True), seeds),
            "one step": seeded(on_one, seeds),
            "tangent kernel": seeded(trained(tangent(none)), seeds, KERNEL_RATES),
            "random features": seeded(
                trained(none, schedule=CLASSIFIER, probe=True), seeds, RANDOM_RATES
            ),
            "no structure": seeded(trained(after(bare, two_steps(bare)[1])), seeds),
            "kernel without structure": seeded(trained(tangent(bare), KERNEL_RATES[1]), seeds),
            "random features without structure": seeded(
                trained(bare, RANDOM_RATES[1], schedule=CLASSIFIER), seeds
            ),
        }
    )


TABLE = "FL E.1.2, Table 2"
INTERVALS = Experiment(
    id="FL-2",
    title="Interval labels: fixed features learn them too",
    source="FL E.1.2, Fig. 7, Table 2",
    scales={
        "smoke": intervals(
            interval(40, 20, 9, 6, 8),
            m=1_000,
            width=40,
            steps=60,
            batch_size=100,
            seeds=4,
            n_test=500,
        ),
        "laptop": intervals(
            interval(500, 100, 30, 20, 30),
            m=10_000,
            width=200,
            steps=200,
            batch_size=500,
            seeds=10,
            n_test=4_000,
        ),
        "paper": intervals(
            interval(500, 100, 30, 20, 30),
            m=50_000,
            width=200,
            steps=200,
            batch_size=1_000,
            seeds=10,
            n_test=10_000,
        ),
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
            Rule(LastOf("linear_probe"), SeedBySeed("one step", "two step"), Median(), above=0.05),
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
