"""Instruments: numbers read off the weights at each look, kept only when a spec asks for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from petridish.models.base import Weights
from petridish.tasks import Task
from petridish.tasks.base import OnSupport


@dataclass(frozen=True)
class Reading:
    """What an instrument sees: a run's parameters at the start and now, and its relevant inputs."""

    start: Sequence[Weights]
    now: Sequence[Weights]
    relevant: NDArray[np.bool_]


def _movement(reading: Reading) -> float:
    """Give ρ = ‖w_t − w_0‖_∞ over all parameters [HP §4]."""
    return max(
        float(np.abs(now - start).max(initial=0))
        for start, now in zip(reading.start, reading.now, strict=True)
    )


def _neuron_norm(reading: Reading) -> float:
    """Give the largest ‖w_j‖₂ of the first layer's neurons."""
    return float(np.linalg.norm(reading.now[0].astype(np.float64), axis=1).max())


def _relevant_weight(reading: Reading) -> float:
    """Give the largest |w_ji| of the first layer over the relevant inputs i ∈ S."""
    return float(np.abs(reading.now[0][:, reading.relevant]).max(initial=0))


def _irrelevant_weight(reading: Reading) -> float:
    """Give the largest |w_ji| of the first layer over the other inputs i ∉ S."""
    return float(np.abs(reading.now[0][:, ~reading.relevant]).max(initial=0))


INSTRUMENTS: dict[str, Callable[[Reading], float]] = {
    "movement": _movement,
    "neuron_norm": _neuron_norm,
    "relevant_weight": _relevant_weight,
    "irrelevant_weight": _irrelevant_weight,
}


def relevant_inputs(task: Task, seed: int) -> NDArray[np.bool_]:
    """Say which inputs the labels of a run depend on; all, if the task does not say."""
    if not isinstance(task, OnSupport):
        return np.ones(task.n_inputs, np.bool_)
    relevant = np.zeros(task.n_inputs, np.bool_)
    relevant[task.supports([seed])[0]] = True
    return relevant


class Gauges:
    """The instruments that a run asks for, with what they compare against."""

    def __init__(
        self, names: Sequence[str], task: Task, seed: int, start: Sequence[Weights]
    ) -> None:
        self.names = names
        self.start = [np.array(weight) for weight in start] if names else []
        self.relevant = relevant_inputs(task, seed) if names else np.zeros(0, np.bool_)

    def read(self, now: Sequence[Weights], into: dict[str, list[float]]) -> None:
        """Append one reading of every instrument."""
        reading = Reading(self.start, now, self.relevant)
        for name in self.names:
            into.setdefault(name, []).append(INSTRUMENTS[name](reading))
