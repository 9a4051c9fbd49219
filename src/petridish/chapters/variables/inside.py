"""TH Chapter 4: curves around the threshold, and where attention goes (VC-2)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from petridish.chapters.variables.inside_figures import ORDER, attention_of_cls, best_curves
from petridish.chapters.variables.measures import LeastBelow
from petridish.chapters.variables.start_rules import MixedStarts, ScattersMore
from petridish.chapters.variables.trial_settings import setting
from petridish.experiment import Experiment
from petridish.models import ClsTransformer
from petridish.rules import BestOf, Claim, Each, LastOf, Rule
from petridish.statistics.estimators import Median, Share
from petridish.sweeps import Arms, Sweep
from petridish.tasks import BiasedAnd
from petridish.training import (
    ClsAttention,
    ClsAttentionMap,
    CrossEntropy,
    Error,
    MeanLoss,
    RunSpec,
)

CURVES = ORDER
LARGE = ("above", "m = 200")
MEASURED = 62
"""The least m at T = 300 in VC-1's record at laptop; a test reads it from there."""
WITHIN = (Error("train"), MeanLoss(CrossEntropy(), "train"))


def to_the_end(run: RunSpec) -> RunSpec:
    """Return a run that goes on after it has succeeded, and keeps curves."""
    return replace(
        run,
        training=replace(run.training, stop=None, target_error=None),
        evaluation=replace(run.evaluation, curves=True),
    )


def around(
    n: int,
    threshold: int,
    *,
    seeds: int,
    restarts: int,
    large: int,
    steps: int,
    every: int,
    samples: tuple[int, int] = (50, 200),
    one_head: tuple[int, int, tuple[int, ...], ClsTransformer, int],
    **how: Any,
) -> Arms:
    """Declare curves at 0.6, 1 and 2.5 times a measured threshold, at the paper's m, and one head.

    Of the two samples well above the threshold, which cost most, `large` starts are made on each
    data set, of the others `restarts`. `one_head` has T, m, the support, the model and the steps of
    the network whose attention is read.
    """
    sizes = dict(
        zip(
            CURVES,
            (round(0.6 * threshold), threshold, round(2.5 * threshold), *samples),
            strict=True,
        )
    )
    how = {"model": ClsTransformer(), **how}
    arms = {
        name: Sweep(
            to_the_end(setting(BiasedAnd(n), m, steps=steps, every=every, metrics=WITHIN, **how)),
            {"seed": range(seeds), "restart": range(large if name in LARGE else restarts)},
        )
        for name, m in sizes.items()
    }
    length, m, support, model, head_steps = one_head
    reading = (
        *(ClsAttention(of) for of in ("relevant", "irrelevant", "cls")),
        ClsAttentionMap(at=(head_steps,)),
    )
    alone = setting(
        BiasedAnd(length, len(support), support=support),
        m,
        steps=head_steps,
        every=max(1, head_steps // 10),
        instruments=reading,
        curves=True,
        **{**how, "model": model},
    )
    return Arms({**arms, "one head": Sweep(to_the_end(alone), {"seed": range(seeds)})})


def every_start(curve: str, value: float, above: float) -> Rule:
    """Claim that a curve falls below a value in every run: in the worst start of each data set."""
    worst = BestOf(LeastBelow(curve, value), best="least")
    return Rule(worst, Each(("arm",), only={"arm": CURVES}), Share(), above=above)


def best_start(arm: str, **decision: float) -> Rule:
    """Judge the share of data sets on which some start has an accuracy above 0.99."""
    best = BestOf(LeastBelow("test_error", 0.01), best="most")
    return Rule(best, Each(("arm",), only={"arm": (arm,)}), Share(), **decision)  # type: ignore[arg-type]


ATTENTION = Experiment(
    id="VC-2",
    title="Curves around the threshold, and attention that goes to the relevant bits",
    source="TH §4.6, A.3, Fig. 4.3",
    scales={
        "smoke": around(
            16,
            25,
            seeds=6,
            restarts=2,
            large=2,
            steps=150,
            every=10,
            samples=(15, 90),
            model=ClsTransformer(16, 4),
            rate=3e-3,
            n_test=500,
            one_head=(12, 100, (2, 5, 8), ClsTransformer(16, 1), 300),
        ),
        "laptop": around(
            300,
            MEASURED,
            seeds=12,
            restarts=5,
            large=2,
            steps=1_000,
            every=20,
            n_test=1_000,
            one_head=(50, 300, (5, 20, 30), ClsTransformer(64, 1), 500),
        ),
        "paper": around(
            300,
            MEASURED,
            seeds=40,
            restarts=5,
            large=5,
            steps=1_000,
            every=10,
            one_head=(50, 300, (5, 20, 30), ClsTransformer(64, 1), 500),
        ),
    },
    claims=(
        Claim(
            "F",
            "Training accuracy reaches 100 % in every run.",
            "TH A.3.1, Fig. 4.3",
            every_start("train_error", 1e-9, 0.5),
            "In 100 % of runs, with 100 % training accuracy, within 1000 iterations. Judged as: on "
            "more than half of the data sets no start fails.",
            kind="paper",
        ),
        Claim(
            "L",
            "The training loss falls below 10⁻⁴ in every run.",
            "TH A.3.1",
            every_start("train_cross_entropy", 1e-4, 0.5),
            "In 100 % of runs the training loss was driven to < 10⁻⁴. Measured without dropout.",
            kind="paper",
        ),
        Claim(
            "above",
            "With 2.5 times the measured threshold more than half of the data sets are learned.",
            "TH Fig. 4.3",
            best_start("above", above=0.5),
            kind="ours",
        ),
        Claim(
            "below",
            "With 0.6 times the measured threshold fewer than half are.",
            "TH Fig. 4.3",
            best_start("below", below=0.5),
            "The Transformer overfits when m is too small.",
            kind="ours",
        ),
        Claim(
            "200",
            "With m = 200, T = 300 more than half of the data sets are learned.",
            "TH Fig. 4.3",
            best_start("m = 200", above=0.5),
            "Above the threshold. Half is what a dozen data sets can show.",
            kind="paper",
        ),
        Claim(
            "50",
            "With m = 50, T = 300 fewer than 80 % of data sets are learned.",
            "TH Fig. 4.3",
            best_start("m = 50", below=0.8),
            "Below the threshold, the Transformer overfits.",
            kind="paper",
        ),
        Claim(
            "S",
            "Validation accuracies scatter more below the threshold than above it.",
            "TH A.3.2, Fig. 4.3",
            ScattersMore("below", "above"),
            "When they overfit, they differ significantly in validation accuracy.",
            kind="paper",
        ),
        Claim(
            "U",
            "At the threshold, on more than half of the data sets some starts succeed, some fail.",
            "TH §4.6",
            MixedStarts("at the threshold"),
            "Training near the statistical threshold is extremely unstable.",
            kind="ours",
        ),
        Claim(
            "I",
            "One head leaves at most 0.1 of its attention on irrelevant bits.",
            "TH Fig. 4.3",
            Rule(
                BestOf(LastOf("attention_irrelevant"), best="least"),  # of one start
                Each(("arm",), only={"arm": ("one head",)}),
                Median(),
                below=0.1,
            ),
            "The attention weights approximately zero out the irrelevant bits. How nearly is ours; "
            "what [CLS] has of its own is told apart.",
            kind="ours",
        ),
    ),
    figures={"curves": best_curves, "attention": attention_of_cls},
)
