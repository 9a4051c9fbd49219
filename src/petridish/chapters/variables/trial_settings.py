"""The setting of TH A.3.1, and searches for the sample that suffices in it."""

from __future__ import annotations

from typing import Any

from petridish.models import ClsTransformer, Model
from petridish.sweeps import FindThreshold, Sweep, joined
from petridish.tasks import BiasedAnd, Task
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


def setting(
    task: Task,
    m: float,
    *,
    model: Model,
    steps: int = 1_000,
    rate: float = 1e-3,
    n_test: int = 10_000,
    **evaluation: Any,
) -> RunSpec:
    """Return a run as TH A.3.1 has it: Adam's β, clipping and decay are minGPT's but for the text.

    It ends once an evaluation, every 10 steps, finds an accuracy above 0.99.
    """
    return RunSpec(
        task=task,
        data=Data(m=m, n_test=n_test, accept=OneHypothesis()),
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
        evaluation=Evaluation(**{"every": 10, "fitted_error": None, **evaluation}),
    )


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
    least: int = 0,
    outward: tuple[float, float] | None = None,
) -> Sweep:
    """Search, for every T, the least m with which 80 % of the trials succeed [TH A.3.1].

    A trial is a seed: its restarts share the support, the training and the held-out sample, and
    differ in their start and their dropout. Beyond T = 300 no m below `least` is tried: hardly any
    sample so small is explained by one AND alone. `outward` is `FindThreshold`'s.
    """
    search = FindThreshold("data.m", 0.8, ("task.n",), first, "restart", outward)
    how: dict[str, Any] = {"model": model, "steps": steps, "rate": rate, "n_test": n_test}
    runs = {"seed": range(seeds), "restart": range(restarts)}
    few = tuple(n for n in lengths if n <= 300)
    parts = [
        Sweep(
            setting(BiasedAnd(some[0]), sizes[0], **how),
            {"task.n": some, "data.m": sizes, **runs},
        )
        for some, sizes in (
            (few, samples),
            (tuple(n for n in lengths if n > 300), tuple(m for m in samples if m >= least)),
        )
        if some
    ]
    whole = joined(parts)
    return Sweep(whole.base, whole.axes, whole.also, search)
