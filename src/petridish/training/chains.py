"""Runs that need other runs: a start or a task that is made from their last weights.

A child's spec contains its parent's, so that the key of the last run names the whole chain. The
weights of a run are a pure function of its spec: whether they are stored or computed again changes
no result.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from petridish.choices import blamed, describe
from petridish.errors import UserError
from petridish.models.base import Weights

if TYPE_CHECKING:
    from petridish.training.record import RunRecord
    from petridish.training.spec import RunSpec

Ended = dict[str, NDArray[Any]]
"""The parameters of a run at its end, and what else its module keeps, by name."""

_find: ContextVar[Callable[[RunSpec], Ended] | None] = ContextVar("find", default=None)


class Needs(ABC):
    """A part of a spec that needs other runs to have ended: an init, a task.

    A task that holds such a task inherits from this class too, and names what that one needs.
    """

    @abstractmethod
    def parents(self, spec: RunSpec) -> tuple[RunSpec, ...]:
        """Return the runs that the run `spec` needs for this part of it."""


class StartsFromRuns(Needs):
    """An initialisation from the weights of other runs; it is given the whole specs."""

    @abstractmethod
    def start(self, specs: Sequence[RunSpec]) -> list[Weights]:
        """Return the first weights of runs that agree in all but their seeds and restarts."""

    def buffers(self, spec: RunSpec) -> Ended:
        """Return what the run's module keeps beside its parameters, where it is taken over."""
        return {}


def parts_with_needs(spec: RunSpec) -> list[Needs]:
    """Return the parts of a spec that may need other runs: the same ones for every seed."""
    parts = [spec.task, spec.init, *(held.task for held in spec.evaluation.samples)]
    return [part for part in parts if isinstance(part, Needs)]


def parents_of(spec: RunSpec) -> tuple[RunSpec, ...]:
    """Return the runs that must have ended before a run can begin, each once."""
    needed: dict[RunSpec, None] = {}
    for part in parts_with_needs(spec):
        with blamed("value", part, "parents", seed=spec.seed):
            parents = part.parents(spec)
        if not isinstance(parents, tuple):
            raise UserError(
                f"{describe(part)} returned {type(parents).__name__} from parents. Return a "
                "tuple of RunSpecs."
            )
        needed |= dict.fromkeys(parents)
    return tuple(needed)


def ended(spec: RunSpec) -> Ended:
    """Return the weights with which a run ends, in float32.

    A runner of chains has them stored (`finding`); without one the run is carried out here, once
    per process.
    """
    find = _find.get()
    return _carried_out(spec) if find is None else find(spec)


@contextmanager
def finding(find: Callable[[RunSpec], Ended]) -> Iterator[None]:
    """Let `ended` find weights by a function, inside the `with` block."""
    token = _find.set(find)
    try:
        yield
    finally:
        _find.reset(token)


@lru_cache(maxsize=64)
def _carried_out(spec: RunSpec) -> Ended:
    from petridish.training.engines.base import Silent, choose_engine

    asked = with_weights(spec)
    (record,) = choose_engine(asked).run([asked], Silent())
    return ended_weights(record)


def with_weights(spec: RunSpec) -> RunSpec:
    """Return the same run with its last weights kept."""
    return replace(spec, evaluation=replace(spec.evaluation, weights=True))


def ended_weights(record: RunRecord) -> Ended:
    """Return the weights that a record has kept."""
    if record.weights is None or record.weights_of is None:
        raise UserError(diverged(record.spec))
    named = zip(record.weights_of, record.weights, strict=True)
    return {name: np.array(values, np.float32).reshape(shape) for (name, shape), values in named}


def diverged(spec: RunSpec) -> str:
    """Return the message for a run without weights from which another could begin."""
    from petridish.training.keys import run_key

    return (
        f"The run {run_key(spec)[:8]} (seed {spec.seed}) diverged, and another run begins from its "
        "last weights. Lower its training.learning_rate, or leave this seed out."
    )
