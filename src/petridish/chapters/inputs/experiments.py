"""FL: networks learn features that fixed ones lack, where inputs have structure (FL-1)."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

from petridish.chapters.inputs.figures import arms_over_time
from petridish.experiment import Experiment
from petridish.models import MLP, ByName, Normal, Paired, TruncatedReLU
from petridish.rules import AtEnd, Claim, Median, Rule
from petridish.rules import Paired as SeedBySeed
from petridish.sweeps import Arms, Sweep
from petridish.tasks import Dictionary
from petridish.training import (
    Data,
    DirectionCosine,
    Evaluation,
    From,
    Piece,
    RunSpec,
    Schedule,
    Training,
)

WHOLE = Schedule()
CLASSIFIER = Schedule((Piece(rate=(("layer1.*", 0.0), ("*", 1.0))),))
"""The first layer is frozen."""


def start(task: Dictionary, *, m: int, width: int, n_test: int) -> RunSpec:
    """Return the network of FL §3.1 before training: pairs of neurons that cancel.

    σ_w = 1/k, σ_b = 1/k² and σ_a = σ²/(γk²) with the γ of structured inputs, whether the task has
    structure or not: networks that are compared start alike.
    """
    k, gamma = task.k, (1 - task.background) / 2
    base = ByName(
        (
            ("layer1.weight", Normal(1 / k)),
            ("layer1.bias", Normal(1 / k**2)),
            ("layer2.weight", Normal(task.variance / (gamma * k**2))),
        )
    )
    return RunSpec(
        task=task,
        data=Data(m=m, n_test=n_test),
        model=MLP(width, activation=TruncatedReLU(), output="linear"),
        init=Paired(base),
        training=Training(
            weight_decay=0.0,
            batch_size=None,
            steps=1,
            target_error=None,
            precision="float64",  # a first step leaves weights of 1e-9 beside biases of 0.1
        ),
        evaluation=Evaluation(fitted_error=None),
    )


def forgetting(run: RunSpec, rate: float) -> RunSpec:
    """Take one step of the whole sample on the first layer's weights, forgetting where they were.

    The paper forgets by a decay of 1/(2η), which rounding turns into noise; `keep=0` is exact. It
    also moves b and a, and injects noise into the neurons; here these wait for the classifier.
    """
    step = Piece(
        rate=(("layer1.weight", 1.0), ("*", 0.0)), keep=(("layer1.weight", 0.0), ("*", 1.0))
    )
    training = replace(run.training, learning_rate=rate, schedule=Schedule((step,)))
    return replace(run, training=training)


def then(
    run: RunSpec, *, steps: int, batch_size: int, rate: float, schedule: Schedule = WHOLE
) -> RunSpec:
    """Go on with minibatches: all of the network, or what a schedule lets train."""
    training = replace(
        run.training, learning_rate=rate, batch_size=batch_size, steps=steps, schedule=schedule
    )
    watched = Evaluation(
        every=max(1, steps // 10),
        curves=True,
        fitted_error=None,
        instruments=(DirectionCosine(), DirectionCosine("either")),
    )
    return replace(run, training=training, evaluation=watched)


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
    """Declare the methods of Table 1 but for kernels, each with the same start, seed by seed.

    The first step's rate is the paper's γ²σ/(km³) with 2m neurons; the second's 7.2 σ/(σ_a γ √k)
    and the classifier's are ours: Theorem 26's leave a linear classifier (docs/inputs.md).
    """
    control = Dictionary(task.d, task.patterns, task.k, structure=False)
    sigma, gamma, k = sqrt(task.variance), task.correlation, task.k
    first_rate = gamma**2 * sigma / (k * (width / 2) ** 3)
    second_rate = 7.2 * sigma / (task.variance / (gamma * k**2) * gamma * sqrt(k))

    def steps_of(task: Dictionary) -> tuple[RunSpec, RunSpec, RunSpec]:
        none = start(task, m=m, width=width, n_test=n_test)
        one = forgetting(none, first_rate)
        two = forgetting(replace(none, init=From(one)), second_rate)
        return none, one, two

    none, one, two = steps_of(task)
    arms = {
        "network": (replace(none, init=From(two)), WHOLE),
        "two step": (replace(none, init=From(two)), CLASSIFIER),
        "one step": (replace(none, init=From(one)), CLASSIFIER),
        "random features": (none, CLASSIFIER),
        "no structure": (replace(none, task=control, init=From(steps_of(control)[2])), WHOLE),
    }
    return Arms(
        {
            name: Sweep(
                then(run, steps=steps, batch_size=batch_size, rate=rate, schedule=trained),
                {"seed": range(seeds)},
            )
            for name, (run, trained) in arms.items()
        }
    )


METHODS = Experiment(
    id="FL-1",
    title="Features of one and of two steps, of a network and at random, on patterns",
    source="FL §6, E.1.1, Fig. 5, Table 1",
    scales={
        "smoke": methods(
            Dictionary(40, 20, 3),
            m=2_000,
            width=60,
            steps=200,
            batch_size=100,
            seeds=8,
            n_test=1_000,
        ),
    },
    claims=(
        Claim(
            "F",
            "A network errs less than a classifier on its own random features.",
            "FL E.1.1, Fig. 5, Table 1",
            Rule(
                AtEnd("test_error"), SeedBySeed("network", "random features"), Median(), below=0.0
            ),
            "Network learning gets high test accuracy (100 %), the fixed features significantly "
            "lower (76.0 % for random ones).",
            kind="paper",
        ),
        Claim(
            "2",
            "A classifier on the features of two steps errs at most 2 points more than the whole "
            "network.",
            "FL E.1.1, Table 1",
            Rule(AtEnd("test_error"), SeedBySeed("two step", "network"), Median(), below=0.02),
            "Network and Two Step both have a test accuracy of 100 %.",
            kind="ours",
        ),
        Claim(
            "S",
            "Without structure in its inputs the network errs more.",
            "FL E.1.1, Fig. 5, Table 1",
            Rule(AtEnd("test_error"), SeedBySeed("network", "no structure"), Median(), below=0.0),
            "With the structure removed, the test accuracy is similar to random guessing (52.0 %).",
            kind="ours",
        ),
    ),
    figures={"arms": arms_over_time},
)
