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
    Homogeneous,
    Identity,
    Oscillating,
    PolyNet,
    Power,
    Sine,
)
from petridish.models.base import Model, Weights
from petridish.seeds import Streams, unpack_bits
from petridish.tasks import Finite, GroupProduct, Task
from petridish.tasks.base import OnSupport

if TYPE_CHECKING:
    from torch import Tensor

    from petridish.theory.fourier import Derivative
    from petridish.training.spec import RunSpec

Floats = NDArray[np.float64]

EXACT_BITS = 20  # up to here the inputs are enumerated
MOST_INPUTS = 2**18  # of a margin, which takes all
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
    task: Task

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


def _normalised_margin(reading: Reading) -> float:
    r"""Give min (f(x)[y] − max_{y' ≠ y} f(x)[y']) / ‖θ‖_{2,ν}^ν over all inputs [TH §7.3].

    ν is the degree of a `Homogeneous` network; NaN for other models and for tasks whose inputs are
    too many. A network with one output, f, has the margin 2 y f: the classes' outputs are ±f.
    """
    import torch

    from petridish.training.penalties import norm_sum

    model, task = reading.model, reading.task
    if not isinstance(model, Homogeneous) or not isinstance(task, Finite):
        return math.nan
    if task.n_possible > MOST_INPUTS:
        return math.nan
    x, labels = _every_input(task, reading.seed)
    weights = [torch.from_numpy(np.asarray(weight))[None] for weight in reading.now]
    n_outputs = weights[-1].shape[1]
    least = math.inf
    for start in range(0, len(labels), 2048):  # pieces that stay in the cache
        piece = x[start : start + 2048]
        given = piece if not piece.is_floating_point() else piece.to(weights[0].dtype)
        outputs = model.forward(weights, given[None])[0]  # (example, output)
        y = labels[start : start + 2048]
        if n_outputs == 1:
            margins = 2 * outputs[:, 0] * (1 - 2 * y)
        else:
            right = outputs.gather(1, y[:, None])
            margins = (right - outputs.scatter(1, y[:, None], -math.inf)).amin(dim=1)
        least = min(least, float(margins.min()))
    parameters = model.parameters(reading.now[0].shape[1], n_outputs)
    return least / float(norm_sum(parameters, weights, order=2, power=model.degree))


def _feature_power(reading: Reading) -> float:
    """Give the mean over neurons of the largest share of one frequency or representation in u.

    NaN where the task is no group's composition [TH Fig. 7.4].
    """
    if not isinstance(reading.task, GroupProduct):
        return math.nan
    from petridish.groups.spectra import largest_share

    order = reading.task.order
    return float(np.mean(largest_share(reading.task.structure(), reading.now[0][:, :order])))


INSTRUMENTS: dict[str, Callable[[Reading], float]] = {
    "movement": _movement,
    "neuron_norm": _neuron_norm,
    "relevant_weight": _relevant_weight,
    "irrelevant_weight": _irrelevant_weight,
    "first_layer_movement": _first_layer_movement,
    "fourier_gap": _fourier_gap,
    "population_gradient": _population_gradient,
    "normalised_margin": _normalised_margin,
    "feature_power": _feature_power,
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
    from petridish.theory.hidden.fourier_gaps import product_gradient

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
    from petridish.theory.hidden.fourier_gaps import polynomial_gradient, sine_gradient

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


@lru_cache(maxsize=2)
def _every_input(task: Finite, seed: int) -> tuple[Tensor, Tensor]:
    """Give all inputs of a run, one-hot ones by their places, and their classes."""
    import torch

    examples = task.at([seed], np.arange(task.n_possible)[None])
    inputs = examples.x if examples.hot is None else examples.hot
    return torch.from_numpy(inputs[0]), torch.from_numpy(examples.labels[0].astype(np.int64))


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
        self.model, self.seed, self.task = spec.model, spec.seed, spec.task

    def read(self, now: Sequence[Weights], into: dict[str, list[float]]) -> None:
        """Append one reading of every instrument."""
        what = (self.relevant, self.parity, self.model, self.seed, self.task)
        reading = Reading(self.start, now, *what)
        for name in self.names:
            into.setdefault(name, []).append(INSTRUMENTS[name](reading))
