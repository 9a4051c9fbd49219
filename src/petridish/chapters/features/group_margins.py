"""TH Ch. 7: finite groups and their representations (FE-3), and what is left open (FE-5)."""

from __future__ import annotations

import math

from petridish.chapters.features.experiments import ON_THE_MARGIN, TABLES
from petridish.chapters.features.feature_rules import (
    EveryFeature,
    FeatureNorms,
    LeavesOut,
    OrderedByDimension,
)
from petridish.chapters.features.figures import margin_curves, representations
from petridish.chapters.features.rules import (
    NeuronsShare,
    OfGroups,
    OnEveryTask,
    OnTheMargin,
    ReachesMargin,
)
from petridish.chapters.features.summaries import conditions
from petridish.chapters.features.trainings import exponents, five, group, strengths
from petridish.experiment import Experiment
from petridish.rules import Claim, LastOf, Mean, PairedBySeed, Rule
from petridish.sweeps import joined

STRENGTH, EXPONENT = "training.penalty.strength", "training.penalty.exponent"
COVERED = ("smoke", "laptop", "paper")
"""Of D5, Q8, A4 and Z2xZ4, the scale «others», Theorem 7.9 covers D5 alone."""


def apart(
    name: str, text: str, sources: tuple[str, str], rule: OnEveryTask, paper: str
) -> tuple[Claim, Claim]:
    """Return the paper's claim of groups smaller than S5, and that of S5.

    A run of S5 takes an hour: with fewer than three of them what is said of S5 stays undecided, and
    what is said of S3 and S4, which have figures of their own, is judged.
    """
    small = OfGroups(rule, but=("S5",))
    of_five = OfGroups(rule, only=("S5",))
    return (
        Claim(
            name, f"{text}, on groups smaller than S5.", sources[0], small, paper, "paper", COVERED
        ),
        Claim(f"{name}-S5", f"{text}, on S5.", sources[1], of_five, paper, "paper", ("paper",)),
    )


GROUPS = Experiment(
    id="FE-3",
    title="Finite groups: every neuron lies in one representation",
    source="TH §7.6, Fig. 7.6, D.2, D.3",
    scales={
        "smoke": group("S3", 30, seeds=2, steps=3_000, every=100),
        "laptop": joined([group("S3", 30, seeds=5), group("S4", 200, seeds=5)]),
        "others": joined(
            group(name, width, seeds=5)
            for name, width in (("D5", 100), ("Q8", 100), ("A4", 120), ("Z2xZ4", 60))
        ),
        "paper": joined(
            [group("S3", 30, seeds=5), group("S4", 200, seeds=5), five("S5", 2_000, seeds=3)]
        ),
    },
    claims=(
        *apart(
            "M",
            "The normalised L_{2,3} margin approaches γ*",
            ("TH Theorem 7.9, Fig. D.2a, D.3a", "TH Theorem 7.9, Fig. 7.6a"),
            ReachesMargin(),
            "The margin approaches the theoretical maximum, 2/(3√(3|G|)) / Σ d^2.5.",
        ),
        *apart(
            "F",
            "Every neuron lies in one representation",
            ("TH Theorem 7.9, Fig. D.2d, D.3d", "TH Theorem 7.9, Fig. 7.6d"),
            NeuronsShare("one feature", by="number"),
            "Towards the end all neurons are concentrated in a single representation.",
        ),
        *apart(
            "A",
            "Every representation that a maximum margin needs has a neuron",
            ("TH Theorem 7.9", "TH Theorem 7.9"),
            EveryFeature(),
            "At least one neuron for each representation but the trivial one.",
        ),
        Claim(
            "N",
            "Every such representation has at least a tenth of its share of the norm.",
            "TH Theorem 7.9",
            FeatureNorms(),
            "At least one neuron for each representation but the trivial one.",
            kind="ours",
        ),
        *apart(
            "O",
            "Representations of higher dimension have more neurons",
            ("TH Fig. D.2b, D.3b", "TH Fig. 7.6b"),
            OrderedByDimension(),
            "Higher dimensional representations have more neurons.",
        ),
        Claim(
            "L",
            "Every input comes to be on the margin.",
            "TH Lemma 7.6",
            OnTheMargin(),
            ON_THE_MARGIN,
            kind="ours",
        ),
    ),
    figures={"representations": representations, "margin": margin_curves},
    tables=TABLES,
    before=conditions,
)

BEYOND = Experiment(
    id="FE-5",
    title="Beyond the paper's settings: a representation that stays empty, the penalty",
    source="TH §7.3, §7.6.2, §D.9.2",
    scales={
        "smoke": joined(
            [five("A5", 24, seeds=3, steps=50, every=25), exponents(seeds=3, steps=300)]
        ),
        "laptop": joined([five("A5", 472, seeds=3, steps=25_000, every=250), exponents(seeds=5)]),
        "strengths": strengths(seeds=5),
        "large": joined([five("A5", 472, seeds=3), exponents(seeds=5)]),  # S5's own steps
    },
    claims=(
        Claim(
            "E",
            "A representation that no maximum margin needs stays empty: A5's of dimension 5.",
            "TH §7.6.2, §D.9.2",
            LeavesOut(),
            "For general finite groups only a subset of representations are present in the "
            "network.",
            kind="ours",
        ),
        Claim(
            "X",
            "At the same λ and after the same steps, r = 1 in λ ‖θ‖^r leaves a larger margin than "
            "r = 3, as at the minimum of the loss.",
            "TH §7.3, Theorem 7.1",
            Rule(
                LastOf("normalised_margin", diverged=-math.inf),
                PairedBySeed(1.0, 3.0, along=EXPONENT),
                Mean(),
                above=0.0,
            ),
            "A fixed r > 0.",
            kind="ours",
        ),
        Claim(
            "S",
            "On S3 a λ of 10^-7 leaves a larger margin than one of 10^-6 after the same steps.",
            "TH Theorem 7.1",
            Rule(
                LastOf("normalised_margin", diverged=math.nan),
                PairedBySeed(1e-7, 1e-6, along=STRENGTH, only={EXPONENT: 3}),
                Mean(),
                above=0.0,
            ),
            "As λ → 0 the normalised margin of the minimisers of the loss converges to γ*.",
            kind="ours",
        ),
    ),
    figures={"representations": representations, "margin": margin_curves},
    tables=TABLES,
    before=conditions,
)
