"""TH Chapter 4: the sample from which a transformer finds the relevant variables (VC-1)."""

from __future__ import annotations

from petridish.chapters.variables.figures import success_of_trials
from petridish.chapters.variables.rules import ThresholdExponent
from petridish.chapters.variables.trials import success_by_sample
from petridish.experiment import Experiment
from petridish.models import ClsTransformer
from petridish.rules import Claim
from petridish.sweeps import FindThreshold, Sweep
from petridish.tasks import BiasedAnd
from petridish.training import (
    AdamW,
    Below,
    CrossEntropy,
    Data,
    Error,
    Evaluation,
    OneHypothesis,
    Piece,
    RunSpec,
    Schedule,
    Training,
)

LINEAR_WEIGHTS = Schedule((Piece(decay=(("embed.*", 0.0), ("@weight", 1.0), ("*", 0.0))),))
"""As in minGPT, the weights of linear layers alone decay."""


def thresholds(
    lengths: tuple[int, ...],
    samples: tuple[int, ...],
    *,
    seeds: int,
    restarts: int,
    first: int,
    model: ClsTransformer,
    steps: int,
    rate: float = 1e-3,
    n_test: int = 10_000,
) -> Sweep:
    """Search, for every T, the least m with which 80 % of the trials succeed [TH A.3.1].

    A trial is a seed: its restarts share the support, the training and the held-out sample, and
    differ in their start and their dropout. It succeeds once an accuracy above 0.99 is found, at an
    evaluation every 10 steps. Adam's β, clipping and decay are minGPT's but for what the text says.
    """
    base = RunSpec(
        task=BiasedAnd(lengths[0]),
        data=Data(m=samples[0], n_test=n_test, accept=OneHypothesis()),
        model=model,
        training=Training(
            loss=CrossEntropy(),
            optimiser=AdamW(),
            learning_rate=rate,
            weight_decay=1e-4,
            schedule=LINEAR_WEIGHTS,
            batch_size=None,
            steps=steps,
            stop=Below(Error(), 0.01, strict=True),
            clip=1.0,
        ),
        evaluation=Evaluation(every=10, fitted_error=None),
    )
    axes = {"task.n": lengths, "data.m": samples, "seed": range(seeds), "restart": range(restarts)}
    search = FindThreshold("data.m", 0.8, within=("task.n",), first=first, until_solved="restart")
    return Sweep(base, axes, allocate=search)


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
        )
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
    ),
    figures={"trials": success_of_trials},
    tables={"trials": success_by_sample},
)
