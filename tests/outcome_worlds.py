"""Made-up runs of real specs, whose success and errors are chosen."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import polars as pl

from petridish.models import MLP
from petridish.store.schema import to_table
from petridish.sweeps import Sweep
from petridish.tasks import SparseParity
from petridish.training import Curves, Data, Outcome, RunRecord, RunSpec, Training

BASE = RunSpec(
    task=SparseParity(12, 2),
    data=Data(m=500, n_test=500),
    model=MLP(10),
    training=Training(steps=400),
)
RATES = (0.01, 0.1, 1.0)
End = dict[str, Any]


def ended(spec: RunSpec, *, solved_at: int | None = None, error: float = 0.3) -> RunRecord:
    """Return a record; with an error that is NaN it diverged."""
    outcome = Outcome.SOLVED if solved_at is not None else Outcome.OUT_OF_STEPS
    return RunRecord(
        spec=spec,
        outcome=Outcome.DIVERGED if math.isnan(error) else outcome,
        fitted_at=None,
        steps=spec.training.steps if solved_at is None else solved_at,
        train_loss=0.1,
        curves=Curves(step=[0, 400], values={"norm": [1.0, 10.0 * spec.model.width]})
        if isinstance(spec.model, MLP)
        else Curves(),
        seconds=1.0,
        engine="torch",
        final={"test_error": error},
    )


def world(
    axes: dict[str, Any], end: Callable[[RunSpec], End], *, base: RunSpec = BASE
) -> pl.DataFrame:
    """Return the table of a sweep whose runs ended as `end` says."""
    return to_table([ended(spec, **end(spec)) for spec in Sweep(base, axes).specs()])


def half_solved(spec: RunSpec) -> End:
    """Solve every second seed."""
    return {"solved_at": 100} if spec.seed % 2 else {}


def by_rate(spec: RunSpec) -> End:
    """Be slow at a low rate, quick at a middle one, and diverge at a high one."""
    rate = spec.training.learning_rate
    if rate == 1.0:
        return {"error": math.nan}
    return {"solved_at": 100 if rate == 0.1 else 300, "error": rate / 10}
