"""FL-8: how much structure is enough? Success of SGD against ρ, the sample size and k."""

from __future__ import annotations

from petridish.experiment import Experiment
from petridish.models import MLP
from petridish.rules import Claim, Median, PairedBySeed, Rule, SolvedAt
from petridish.rules.success import FrontierShrinks
from petridish.sweeps import Sweep
from petridish.sweeps.arms import joined
from petridish.tasks import Dictionary
from petridish.training import Below, Data, Error, Evaluation, Held, RunSpec, Training

SOLVES = Error(on="uniform")
"""The error on inputs without structure, whatever the network was trained on."""


def structures(
    *,
    patterns: int,
    ks: tuple[int, ...],
    shares: tuple[float, ...],
    samples: tuple[float, ...],
    width: int,
    steps: int,
    seeds: int,
    n_test: int,
) -> Sweep:
    """Sweep the share ρ of structured examples and the sample size, for some odd k.

    Plain SGD on everything from the usual start, as in PF-1. A run is solved once it errs on at
    most 10 % of inputs without structure: with it a linear rule is right on most inputs, and
    says nothing about the parity.
    """
    grids = []
    for k in ks:
        bare = Dictionary(patterns, patterns, k, share=0.0, space="patterns")
        run = RunSpec(
            task=bare,
            data=Data(n_test=n_test),
            model=MLP(width),
            training=Training(
                learning_rate=2.0,
                weight_decay=1e-4,
                steps=steps,
                target_error=None,
                stop=Below(SOLVES, 0.1),
            ),
            evaluation=Evaluation(
                every=max(1, steps // 20),
                fitted_error=None,
                samples=(Held("uniform", bare, n_test),),
                metrics=(SOLVES,),
            ),
        )
        axes = {"task.share": shares, "data.m": samples, "seed": range(seeds)}
        grids.append(Sweep(run, axes))
    return joined(grids)


MOST = 4_000.0
BEYOND = "beyond FL §4, Theorem 4"
STRUCTURE = Experiment(
    id="FL-8",
    title="How much structure is enough: success against its share and the sample size",
    source="beyond FL §4",
    scales={
        "smoke": structures(
            patterns=10,
            ks=(3,),
            shares=(0.0, 0.5, 0.9),
            samples=(100.0, MOST),
            width=30,
            steps=400,
            seeds=3,
            n_test=500,
        ),
        "laptop": structures(
            patterns=20,
            ks=(3, 5),
            shares=(0.0, 0.5, 0.9),
            samples=(500.0, 1_000.0, 2_000.0, MOST),
            width=60,
            steps=6_000,
            seeds=10,
            n_test=2_000,
        ),
        "paper": structures(
            patterns=100,
            ks=(3, 5, 7),
            shares=(0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95),
            samples=(1_000.0, 2_000.0, MOST, 8_000.0, 16_000.0, 32_000.0, 64_000.0),
            width=300,
            steps=100_000,
            seeds=50,
            n_test=10_000,
        ),
    },
    claims=(
        Claim(
            "half",
            "With half of the examples structured, a smaller sample suffices for half of the runs "
            "to learn the parity than without structure.",
            BEYOND,
            FrontierShrinks("task.share", within=("task.k",), ends=(0.0, 0.5)),
            kind="ours",
        ),
        Claim(
            "much",
            "With nine tenths of them structured it takes a larger sample than with half.",
            BEYOND,
            FrontierShrinks("task.share", within=("task.k",), ends=(0.9, 0.5)),
            "A structured example shows nothing of the parity beyond two numbers of patterns.",
            kind="ours",
        ),
        Claim(
            "time",
            "At 4000 examples, runs with half of them structured are sooner, for every k.",
            BEYOND,
            Rule(
                SolvedAt(),
                PairedBySeed(
                    0.5,
                    0.0,
                    along="task.share",
                    within=("task.k",),
                    by="ratio",
                    only={"data.m": MOST},
                ),
                Median(),
                below=1.0,
            ),
            kind="ours",
        ),
    ),
)
