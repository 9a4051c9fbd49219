"""FL-1: networks learn features that fixed ones lack, where inputs have structure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from petridish.chapters.inputs.figures import arms_over_time
from petridish.chapters.inputs.rules import AboveLinear, CosineGap, FromChance
from petridish.chapters.inputs.tables import methods_table
from petridish.chapters.inputs.trainings import (
    CLASSIFIER,
    after,
    decaying,
    first_rate,
    forgetting,
    second_rate,
    seeded,
    start,
    tangent,
    then,
)
from petridish.experiment import Experiment
from petridish.rules import AtEnd, Claim, Each, LastOf, Measure, Median, Rule
from petridish.rules import PairedBySeed as SeedBySeed
from petridish.sweeps import Arms
from petridish.tasks import Dictionary
from petridish.training import RunSpec

RATE = ("training.learning_rate",)
KERNEL_RATES, RANDOM_RATES = (0.06, 0.18, 0.6), (20.0, 60.0, 200.0)
"""Of fixed features, over the width: the first look's, three times less and three times more."""
WITHOUT = ("no structure", "kernel without structure", "random features without structure")


def methods(
    task: Dictionary,
    *,
    m: int,
    width: int,
    steps: int,
    batch_size: int,
    seeds: int,
    n_test: int,
    rate: float = 1.0,
) -> Arms:
    """Declare the methods of Table 1 and the controls of its second step.

    All start alike, seed by seed. The first step's rate is the paper's γ²σ/(km³) with 2m neurons;
    the second's 7.2 σ/(σ_a γ √k) and the classifier's are ours, found at the paper's own size
    (docs/results/inputs.md). Fixed features have three rates each, of which rules take the best.
    """
    control = replace(task, structure=False, background=0.5)
    sizes: dict[str, Any] = {"m": m, "width": width, "n_test": n_test}
    first, second = first_rate(task, width), second_rate(task)

    none, zero = start(task, **sizes), start(task, **sizes, zero=True)
    one = forgetting(none, first)
    two = forgetting(after(none, one), second)
    bare = start(control, **sizes)
    bare_two = forgetting(after(bare, forgetting(bare, first)), second)
    plain = start(replace(task, space="inputs"), **sizes)

    def trained(run: RunSpec, rate: float = rate, **how: Any) -> RunSpec:
        return then(run, **{"steps": steps, "batch_size": batch_size, "rate": rate, **how})

    def classifier(run: RunSpec, rate: float = rate, **how: Any) -> RunSpec:
        return trained(run, rate, schedule=CLASSIFIER, **how)

    literal = task.k**2 / (steps * (width / 2) ** (1 / 3))
    runs = {
        "network": trained(after(none, two)),
        "two step": classifier(after(none, two), probe=True),
        "one step": classifier(after(none, one), probe=True, precision="float64"),
        "no structure": trained(after(bare, bare_two)),
        "kernel without structure": trained(tangent(bare), KERNEL_RATES[1] / width),
        "random features without structure": classifier(bare, RANDOM_RATES[1] / width),
        "one step, rate of the second": classifier(after(none, forgetting(none, second))),
        "one step from zero": classifier(after(zero, forgetting(zero, second))),
        "one step, rounded": classifier(after(plain, decaying(plain, first))),
        "literal schedule": trained(after(none, forgetting(after(none, one), 1.0)), literal),
    }
    fixed = {
        "tangent kernel": (trained(tangent(none)), KERNEL_RATES),
        "random features": (classifier(none), RANDOM_RATES),
    }
    return Arms(
        {name: seeded(run, seeds) for name, run in runs.items()}
        | {
            name: seeded(run, seeds, tuple(rate / width for rate in rates))
            for name, (run, rates) in fixed.items()
        }
    )


def patterns(
    *, d: int = 500, m: int = 50_000, width: int = 600, seeds: int = 10, **more: Any
) -> Arms:
    """Declare the methods at the paper's size, in the coordinates of its patterns."""
    task = Dictionary(d, 100, 5, space="patterns", **more)
    sizes: dict[str, Any] = {"steps": 600, "batch_size": 1_000, "n_test": 10_000}
    return methods(task, m=m, width=width, seeds=seeds, **sizes)


def against(first: str, second: str, measure: Measure, **decision: Any) -> Rule:
    """Compare two arms seed by seed, fixed features at their best rate."""
    tuned = {"tangent kernel", "random features"} & {first, second}
    layout = SeedBySeed(first, second, best_over=RATE if tuned else ())
    return Rule(measure, layout, Median(), **decision)


def each(measure: Measure, *arms: str, **decision: Any) -> Rule:
    """Judge each of some arms by itself, fixed features at their best rate."""
    tuned = {"tangent kernel", "random features"} & {*arms}
    layout = Each(("arm",), only={"arm": arms}, best_over=RATE if tuned else ())
    return Rule(measure, layout, Median(), **decision)


ERROR = AtEnd("test_error")
TABLE = "FL E.1.1, Table 1"
METHODS = Experiment(
    id="FL-1",
    title="Features of two steps, of one, of a network, of its tangent kernel and at random",
    source="FL §6, E.1.1, E.2, Figs. 5, 9, 11, 13, Tables 1, 3, 4, 5",
    scales={
        "smoke": methods(
            Dictionary(40, 20, 3, space="patterns"),
            m=2_000,
            width=60,
            steps=200,
            batch_size=100,
            seeds=8,
            n_test=1_000,
        ),
        "laptop": methods(
            Dictionary(500, 100, 5, space="patterns"),
            m=20_000,
            width=200,
            steps=600,
            batch_size=500,
            seeds=12,
            n_test=5_000,
        ),
        "paper": patterns(),
        "d100": patterns(d=100),
        "d2000": patterns(d=2_000),
        "ratio80": patterns(negatives=0.8),
        "ratio90": patterns(negatives=0.9),
        "n25000": patterns(m=25_000),
        "n10000": patterns(m=10_000, width=100),
    },
    claims=(
        Claim(
            "F",
            "A network errs less than a classifier on its own random features.",
            "FL E.1.1, Fig. 5, Table 1",
            against("network", "random features", ERROR, below=0.0),
            "Network learning gets high test accuracy (100 %), the fixed features significantly "
            "lower (76.0 % for random ones).",
            kind="paper",
        ),
        Claim(
            "K",
            "A network errs less than its tangent kernel.",
            "FL E.1.1, Fig. 5, Table 1",
            against("network", "tangent kernel", ERROR, below=0.0),
            "100 % against 86.4 % for the kernel.",
            kind="paper",
        ),
        Claim(
            "P",
            "The network errs on at most 1 % of new inputs.",
            TABLE,
            each(ERROR, "network", below=0.01),
            "A test accuracy of 100 %.",
            kind="paper",
        ),
        Claim(
            "2",
            "A classifier on the features of two steps errs at most 2 points more than the whole "
            "network.",
            TABLE,
            against("two step", "network", ERROR, below=0.02),
            "Network and Two Step both have a test accuracy of 100 %.",
            kind="ours",
        ),
        Claim(
            "1",
            "The best linear classifier on features of one step errs at least 10 points more than "
            "that on features of two.",
            TABLE,
            against("one step", "two step", LastOf("linear_probe"), above=0.1),
            "One Step gets about 52 %, Two Step about 100 %, each with the best classifier on top.",
            kind="paper",
        ),
        Claim(
            "A",
            "Without structure the network, its kernel and random features are within 5 points of "
            "chance.",
            "FL E.1.1, Fig. 5",
            each(FromChance(), *WITHOUT, below=0.05),
            "When the structure is removed, all three methods get a test accuracy similar to "
            "random guessing.",
            kind="paper",
        ),
        Claim(
            "M",
            "Without structure the network memorises: it errs on at most 1 % of its sample.",
            TABLE,
            each(LastOf("train_error"), "no structure", below=0.01),
            "Train accuracy 100 %, test accuracy 52 %: it over-fits.",
            kind="paper",
        ),
        Claim(
            "S",
            "Without structure in its inputs the network errs more.",
            "FL E.1.1, Fig. 5, Table 1",
            against("network", "no structure", ERROR, below=0.0),
            "With the structure removed, the test accuracy is similar to random guessing (52.0 %).",
            kind="ours",
        ),
        Claim(
            "L",
            "Neither the tangent kernel nor random features err 2 points less than the best linear "
            "rule on the relevant patterns.",
            "FL §4",
            each(AboveLinear(), "tangent kernel", "random features", above=-0.02),
            kind="ours",
        ),
        Claim(
            "C",
            "Two steps leave a cosine within 0.005 of (1 + (D − k) p_o (1 − p_o) / (nkγ²))^(−1/2).",
            TABLE,
            each(CosineGap(), "two step", between=(-0.005, 0.005)),
            "Table 1 has 0.997 where this is 0.9992.",
            kind="ours",
        ),
        Claim(
            "R",
            "One step at the second's rate gives features as good as two: at most 2 points more.",
            "FL §5.1",
            against("one step, rate of the second", "two step", ERROR, below=0.02),
            "The paper's second step is there because the first leaves too much background.",
            kind="ours",
        ),
        Claim(
            "Z",
            "One step from weights of 0 gives features as good as two: at most 2 points more.",
            "FL §5.1",
            against("one step from zero", "two step", ERROR, below=0.02),
            kind="ours",
        ),
        Claim(
            "D",
            "A first step that forgets by a decay of 1/η in float32 loses at least 0.1 of the "
            "cosine that an exact one has.",
            "FL App. B, E.1.1",
            each(CosineGap(), "one step, rounded", below=-0.1),
            "Table 1 has a cosine of 0.848 after one step.",
            kind="ours",
        ),
        Claim(
            "T",
            "With Theorem 26's own rates the network does not err 2 points less than the best "
            "linear rule.",
            "FL Theorem 26",
            each(AboveLinear(), "literal schedule", above=-0.02),
            kind="ours",
        ),
    ),
    figures={"arms": arms_over_time},
    tables={"methods": methods_table},
)
