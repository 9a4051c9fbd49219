"""FL-1: networks learn features that fixed ones lack, where inputs have structure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from petridish.chapters.inputs.figures import arms_over_time
from petridish.chapters.inputs.methods import Sizes
from petridish.chapters.inputs.rules import (
    ERROR,
    AboveLinear,
    CosineGap,
    FromChance,
    against,
    each,
)
from petridish.chapters.inputs.tables import methods_table
from petridish.chapters.inputs.trainings import after, decaying, forgetting, rates_of
from petridish.experiment import Experiment
from petridish.rules import Claim, LastOf
from petridish.sweeps import Arms

KERNEL_RATES, RANDOM_RATES = (0.06, 0.18, 0.6), (20.0, 60.0, 200.0)
"""Of fixed features, over the width: the first look's, three times less and three times more."""
WITHOUT = ("no structure", "kernel without structure", "random features without structure")


def methods(sizes: Sizes, **more: Any) -> Arms:
    """Declare the methods of Table 1 and the controls of its second step; `more` is of the task.

    All start alike, seed by seed. The first step's rate is the paper's γ²σ/(km³) with 2m neurons;
    the second's 7.2 σ/(σ_a γ √k) and the classifier's are ours, found at the paper's own size
    (docs/results/inputs.md). Fixed features have three rates each, of which rules take the best.
    """
    task, width = sizes.parity(**more), sizes.width
    none, zero = sizes.start(task), sizes.start(task, zero=True)
    plain = sizes.start(replace(task, space="inputs"))
    first, second = rates_of(task, width)
    rates = {
        "tangent kernel": tuple(rate / width for rate in KERNEL_RATES),
        "random features": tuple(rate / width for rate in RANDOM_RATES),
    }
    kernel, random = (of[1] for of in rates.values())
    bare = replace(task, structure=False)
    runs = sizes.compared(task, bare, kernel=kernel, random=random, probe=True)
    literal = forgetting(after(none, forgetting(none, first)), 1.0)
    runs |= {
        "one step, rate of the second": sizes.classifier(after(none, forgetting(none, second))),
        "one step from zero": sizes.classifier(after(zero, forgetting(zero, second))),
        "one step, rounded": sizes.classifier(after(plain, decaying(plain, first))),
        "literal schedule": sizes.network(after(none, literal), sizes.literal_rate),
    }
    return sizes.arms(runs, rates)


TABLE = "FL E.1.1, Table 1"
PAPER = Sizes(seeds=10)
METHODS = Experiment(
    id="FL-1",
    title="Features of two steps, of one, of a network, of its tangent kernel and at random",
    source="FL §6, E.1.1, E.2, Figs. 5, 9, 11, 13, Tables 1, 3, 4, 5",
    scales={
        "smoke": methods(
            Sizes(
                d=40,
                patterns=20,
                k=3,
                m=2_000,
                width=60,
                steps=200,
                batch_size=100,
                n_test=1_000,
                seeds=8,
            )
        ),
        "laptop": methods(Sizes(m=20_000, width=200, batch_size=500, n_test=5_000)),
        "paper": methods(PAPER),
        "d100": methods(replace(PAPER, d=100)),
        "d2000": methods(replace(PAPER, d=2_000)),
        "ratio80": methods(PAPER, negatives=0.8),
        "ratio90": methods(PAPER, negatives=0.9),
        "n25000": methods(replace(PAPER, m=25_000)),
        "n10000": methods(replace(PAPER, m=10_000, width=100)),
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
