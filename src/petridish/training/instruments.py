"""Instruments: numbers read off the weights at each look, kept only when a spec asks for them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from petridish.models import (
    ACTIVATIONS,
    MLP,
    Activation,
    DisjointPolyNet,
    Identity,
    Oscillating,
    PolyNet,
    Power,
    Sine,
)
from petridish.models.base import Model, Weights
from petridish.seeds import Streams, unpack_bits
from petridish.tasks import Task
from petridish.tasks.base import OnSupport

if TYPE_CHECKING:
    from petridish.theory.fourier import Derivative
    from petridish.training.spec import RunSpec

Floats = NDArray[np.float64]

EXACT_BITS = 20  # up to here the inputs are enumerated
SAMPLED_INPUTS = 2**16  # beyond, this many stand for all


@dataclass(frozen=True)
class Reading:
    """What an instrument sees: a run's parameters at the start and now, and what the run is.

    `relevant` says which inputs the labels depend on, `parity` whether they are the product of
    their signs.
    """

    start: Sequence[Weights]
    now: Sequence[Weights]
    relevant: NDArray[np.bool_]
    parity: bool
    model: Model
    seed: int

    @cached_property
    def first_layer(self) -> Weights:
        """Weights of the first layer on all inputs; those of a block are 0 on the others."""
        weights = self.now[0]
        if not isinstance(self.model, DisjointPolyNet):
            return weights
        k, size = weights.shape
        rows = np.zeros((k, k, size), weights.dtype)
        rows[range(k), range(k)] = weights
        return rows.reshape(k, k * size)

    @cached_property
    def gradient(self) -> Floats | None:
        """The first layer's population gradient, shape (neuron, input); see `first_gradient`."""
        return first_gradient(self)


def _movement(reading: Reading) -> float:
    """Give ‖θ_t − θ_0‖_∞ over all parameters."""
    return max(
        float(np.abs(now - start).max(initial=0))
        for start, now in zip(reading.start, reading.now, strict=True)
    )


def _first_layer_movement(reading: Reading) -> float:
    """Give HP's ρ = ‖W_t − W_0‖_∞ over the weights of the first layer [HP §5, App. B.3.3]."""
    return float(np.abs(reading.now[0] - reading.start[0]).max(initial=0))


def _neuron_norm(reading: Reading) -> float:
    """Give the largest ‖w_j‖₂ of the first layer's neurons."""
    return float(np.linalg.norm(reading.now[0].astype(np.float64), axis=1).max())


def _relevant_weight(reading: Reading) -> float:
    """Give the largest |w_ji| of the first layer over the relevant inputs i ∈ S."""
    return float(np.abs(reading.first_layer[:, reading.relevant]).max(initial=0))


def _irrelevant_weight(reading: Reading) -> float:
    """Give the largest |w_ji| of the first layer over the other inputs i ∉ S."""
    return float(np.abs(reading.first_layer[:, ~reading.relevant]).max(initial=0))


def _fourier_gap(reading: Reading) -> float:
    """Give Γ = max_{i ∈ S} |g_i| − max_{i ∉ S} |g_i|, the largest of the first layer's neurons."""
    from petridish.theory.fourier import fourier_gap

    if reading.gradient is None:
        return math.nan
    return float(fourier_gap(reading.gradient, np.flatnonzero(reading.relevant).tolist()).max())


def _population_gradient(reading: Reading) -> float:
    """Give max_{i ∈ S} |g_i|, the largest of the first layer's neurons."""
    if reading.gradient is None:
        return math.nan
    return float(np.abs(reading.gradient[:, reading.relevant]).max())


INSTRUMENTS: dict[str, Callable[[Reading], float]] = {
    "movement": _movement,
    "neuron_norm": _neuron_norm,
    "relevant_weight": _relevant_weight,
    "irrelevant_weight": _irrelevant_weight,
    "first_layer_movement": _first_layer_movement,
    "fourier_gap": _fourier_gap,
    "population_gradient": _population_gradient,
}


def first_gradient(reading: Reading) -> Floats | None:
    r"""Give g_ji = E[y x_i σ'(w_j · x + b_j)] of the first layer's neurons j [HP App. B.3.1].

    The expectation is over all inputs and their true labels. It is exact

    - in closed form for sines, for powers and oscillating polynomials of degree at most |S|, and
      for PolyNets with as many factors as relevant inputs, whose g is E[y ∂f/∂w_ji];
    - by enumeration for every other activation up to 20 inputs.

    Beyond 20 inputs it is a mean over 2^16 inputs, the run's own and the same at every look, from
    its stream "instruments": an entry's standard error is then at most max |σ'| / 256.

    None where there is nothing to give: labels other than a parity's, a PolyNet with another number
    of factors, other models, weights that are no longer finite.
    """
    from petridish.theory.fourier import population_gradient_by_enumeration, sampled_gradient
    from petridish.theory.gaps import product_gradient

    model, support = reading.model, np.flatnonzero(reading.relevant).tolist()
    if not reading.parity or not all(np.isfinite(weight).all() for weight in reading.now[:2]):
        return None
    weights = reading.first_layer.astype(np.float64)
    if isinstance(model, PolyNet | DisjointPolyNet):
        if model.k != len(support):
            return None
        return product_gradient(weights, support)
    if not isinstance(model, MLP):
        return None
    biases = reading.now[1].astype(np.float64)
    if (known := _closed_form(model.activation, weights, biases, support)) is not None:
        return known
    derivative = _derivative(model.activation)
    if weights.shape[1] <= EXACT_BITS:
        return population_gradient_by_enumeration(derivative, weights, biases, support)
    x = _sampled_inputs(reading.seed, weights.shape[1])
    return sampled_gradient(derivative, weights, biases, support, x)[0]


def _closed_form(
    activation: Activation, weights: Floats, biases: Floats, support: list[int]
) -> Floats | None:
    """Give the gradient of sines and of polynomials of low degree; None for others."""
    from petridish.theory.gaps import polynomial_gradient, sine_gradient

    if type(activation) is not ACTIVATIONS.get(activation.name):  # a user's own, whatever its base
        return None
    if isinstance(activation, Sine):
        rate, phase = math.pi / 2 * activation.scale, math.pi / 2 * (1 - activation.k)
        return rate * sine_gradient(weights, biases, support, rate=rate, phase=phase)
    if isinstance(activation, Power | Oscillating | Identity):
        degree = 1 if isinstance(activation, Identity) else activation.k
        # The oscillating polynomial's leading coefficient is its last divided difference.
        leading = 1 / math.factorial(degree) if isinstance(activation, Oscillating) else 1.0
        if degree <= len(support):
            return polynomial_gradient(weights, support, degree=degree, leading=leading)
    return None


def _derivative(activation: Activation) -> Derivative:
    """Give σ' in NumPy: written down for this package's activations, by PyTorch for others."""
    from petridish.theory.fourier import DERIVATIVES

    name = activation.name
    if type(activation) is ACTIVATIONS.get(name) and name in DERIVATIVES:
        return DERIVATIVES[name](**vars(activation))

    def slope(z: Floats) -> Floats:
        import torch

        at = torch.from_numpy(z).requires_grad_()
        (found,) = torch.autograd.grad(activation(at).sum(), at)
        return found.numpy()

    return slope


@lru_cache(maxsize=2)
def _sampled_inputs(seed: int, n: int) -> NDArray[np.int8]:
    """Draw the inputs that stand for all: a run reads them at every look."""
    packed = Streams([seed], "instruments").packed(n, 0, SAMPLED_INPUTS)[0]
    return np.int8(1) - np.int8(2) * unpack_bits(packed)[:, :n].astype(np.int8)


def relevant_inputs(task: Task, seed: int) -> NDArray[np.bool_]:
    """Say which inputs the labels of a run depend on; all, if the task does not say."""
    if not isinstance(task, OnSupport):
        return np.ones(task.n_inputs, np.bool_)
    relevant = np.zeros(task.n_inputs, np.bool_)
    relevant[task.supports([seed])[0]] = True
    return relevant


def is_product(task: Task) -> bool:
    """Say whether a task's label is the product of its relevant signs, from all of their values."""
    if not isinstance(task, OnSupport) or task.n_relevant > EXACT_BITS:
        return False
    settings = np.arange(2**task.n_relevant)[:, None] >> np.arange(task.n_relevant) & 1
    labels = task.evaluate(settings.astype(np.uint8))
    return bool(np.array_equal(labels % 2, settings.sum(axis=1) % 2))


class Gauges:
    """The instruments that a run asks for, with what they compare against."""

    def __init__(self, spec: RunSpec, start: Sequence[Weights]) -> None:
        self.names = spec.evaluation.instruments
        self.start = [np.array(weight) for weight in start] if self.names else []
        self.relevant = (
            relevant_inputs(spec.task, spec.seed) if self.names else np.zeros(0, np.bool_)
        )
        self.parity = bool(self.names) and is_product(spec.task)
        self.model, self.seed = spec.model, spec.seed

    def read(self, now: Sequence[Weights], into: dict[str, list[float]]) -> None:
        """Append one reading of every instrument."""
        reading = Reading(self.start, now, self.relevant, self.parity, self.model, self.seed)
        for name in self.names:
            into.setdefault(name, []).append(INSTRUMENTS[name](reading))
