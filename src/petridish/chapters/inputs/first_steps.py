"""FL-12: noise and weights of classes in the first two steps alone [FL §3.1, App. F]."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from petridish.chapters.inputs.figures import arms_over_time
from petridish.chapters.inputs.methods import EIGHT_TENTHS, NINE_TENTHS, SHARES, Sizes
from petridish.chapters.inputs.rules import ERROR, against, each
from petridish.chapters.inputs.tables import methods_table
from petridish.chapters.inputs.trainings import after, unwatched, weighted
from petridish.experiment import Experiment
from petridish.models import MLP, Model, NoisyMLP, SmoothedTruncatedReLU, TruncatedReLU
from petridish.rules import Claim, LastOf
from petridish.sweeps import Arms
from petridish.tasks import Dictionary
from petridish.training import RunSpec

PLAIN, CLOSED, SAMPLED = "no noise", "noise in closed form", "noise, sampled"
WEIGHTED = ", weighted"


def variants(sizes: Sizes) -> Arms:
    """Declare networks, and classifiers on their features, after two steps of several kinds.

    What follows the two steps is the same for all: no noise, and classes as they are.
    """
    parity, width, noise = sizes.parity(), sizes.width, sizes.k**-1.5
    plain = MLP(width, activation=TruncatedReLU(), output="linear")
    models: dict[str, Model] = {
        PLAIN: plain,
        CLOSED: replace(plain, activation=SmoothedTruncatedReLU(noise)),
        SAMPLED: NoisyMLP(width, noise, activation=TruncatedReLU(), output="linear"),
    }
    begun = sizes.start(parity)
    firsts = {name: unwatched(replace(begun, model=model)) for name, model in models.items()}
    for name, share in SHARES.items():
        first = unwatched(sizes.start(replace(parity, negatives=share)))
        firsts |= {name: first, name + WEIGHTED: weighted(first)}
    runs: dict[str, RunSpec] = {}
    for name, first in firsts.items():
        assert isinstance(first.task, Dictionary), "as declared"
        run = after(sizes.start(first.task), first)
        runs[f"network, {name}"] = sizes.network(run)
        runs[f"two step, {name}"] = sizes.classifier(run)
    return sizes.arms(runs)


def both_of(*names: str) -> tuple[str, ...]:
    """Return the arms of these first steps: the whole network, and the classifier."""
    return tuple(f"{kind}, {name}" for kind in ("network", "two step") for name in names)


COSINE = LastOf("direction_cosine")
FIRST_TWO = Experiment(
    id="FL-12",
    title="Noise in neurons and weights of classes, in the first two steps alone",
    source="FL §3.1, App. F, E.2.2, Table 4",
    scales={
        "smoke": variants(
            Sizes(
                d=40,
                patterns=20,
                k=3,
                m=500,
                width=20,
                steps=60,
                batch_size=50,
                n_test=300,
                seeds=3,
            )
        ),
        "laptop": variants(Sizes(m=20_000, width=200, batch_size=200, n_test=3_000)),
        "paper": variants(Sizes()),
    },
    claims=(
        Claim(
            "X",
            "Noise drawn for every neuron, example and step changes the network's error by at "
            "most a point.",
            "FL §3.1",
            against(f"network, {SAMPLED}", f"network, {PLAIN}", between=(-0.01, 0.01)),
            "Noise is needed by the proof, and empirically not.",
            kind="paper",
        ),
        Claim(
            "E",
            "Drawn noise and its closed form leave networks whose errors differ by at most a "
            "point.",
            "FL §3.1, Lemma 12",
            against(f"network, {SAMPLED}", f"network, {CLOSED}", between=(-0.01, 0.01)),
            kind="ours",
        ),
        Claim(
            "EC",
            "They leave features whose cosines differ by at most 0.005.",
            "FL §3.1, Lemma 12",
            against(f"two step, {SAMPLED}", f"two step, {CLOSED}", COSINE, between=(-0.005, 0.005)),
            kind="ours",
        ),
        Claim(
            "W",
            "Where 80 and 90 % of labels are −1, a network with weights of classes in its first "
            "two steps errs on at most 1 % of new inputs.",
            "FL App. F, E.2.2, Table 4",
            each(ERROR, *(f"network, {name}{WEIGHTED}" for name in SHARES), below=0.01),
            "100 % at both shares.",
            kind="paper",
        ),
        Claim(
            "W8",
            "With 80 % such a network errs less than without weights.",
            "FL App. F",
            against(f"network, {EIGHT_TENTHS}{WEIGHTED}", f"network, {EIGHT_TENTHS}", below=0.0),
            "Weights of 1/(2 Pr[y = v]) in the first two steps, in the general setting.",
            kind="ours",
        ),
        Claim(
            "W9",
            "So does it with 90 %.",
            "FL App. F",
            against(f"network, {NINE_TENTHS}{WEIGHTED}", f"network, {NINE_TENTHS}", below=0.0),
            kind="ours",
        ),
        Claim(
            "WC",
            "With 90 % weights of classes leave features with a larger cosine.",
            "FL App. F",
            against(
                f"two step, {NINE_TENTHS}{WEIGHTED}", f"two step, {NINE_TENTHS}", COSINE, above=0.0
            ),
            kind="ours",
        ),
    ),
    figures={
        "noise": partial(arms_over_time, only=both_of(PLAIN, CLOSED, SAMPLED)),
        "weights": partial(
            arms_over_time, only=both_of(*SHARES, *(name + WEIGHTED for name in SHARES))
        ),
    },
    tables={"methods": methods_table},
)
