"""The first layer's gradient over all inputs, and which of them are relevant [HP App. B.3.1]."""

from __future__ import annotations

import math
from functools import lru_cache
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
    ReLU,
    Sine,
)
from petridish.models.base import Weights
from petridish.seeds import Streams, unpack_bits
from petridish.tasks.base import OnSupport
from petridish.training.readings import Reading

if TYPE_CHECKING:
    from petridish.theory.fourier import Derivative
    from petridish.training.spec import RunSpec

Floats = NDArray[np.float64]

EXACT_BITS = 20  # up to here the inputs are enumerated
SAMPLED_INPUTS = 2**16  # beyond, a sample of this many


def relevant(reading: Reading) -> NDArray[np.bool_]:
    """Return which inputs the labels of the run depend on."""
    return reading.shared.once(relevant_inputs)


def first_weights(reading: Reading) -> Weights:
    """Return the first parameter: of this package's models, the weights of the first layer."""
    return next(iter(reading.now.values()))


def first_layer(reading: Reading) -> Weights:
    """Return the first layer's weights on all inputs; those of a block are 0 on the others."""
    weights = first_weights(reading)
    if not isinstance(reading.spec.model, DisjointPolyNet):
        return weights
    k, size = weights.shape
    rows = np.zeros((k, k, size), weights.dtype)
    rows[range(k), range(k)] = weights
    return rows.reshape(k, k * size)


def first_gradient(reading: Reading) -> Floats | None:
    r"""Return g_ji = E[y x_i σ'(w_j · x + b_j)] of the first layer's neurons j [HP App. B.3.1].

    The expectation is over all inputs and their true labels. It is exact

    - in closed form for sines, for powers and oscillating polynomials of degree at most |S|, and
      for PolyNets with as many factors as relevant inputs, whose g is E[y ∂f/∂w_ji];
    - by enumeration for every other activation up to 20 inputs.

    Beyond 20 inputs it is a mean over 2^16 inputs of the run's own stream "instruments", the same
    at every evaluation: an entry's standard error is then at most max |σ'| / 256.

    None where there is none: labels other than a parity's, a PolyNet with another number
    of factors, other models, weights that are no longer finite.
    """
    from petridish.theory.closed_form import product_gradient
    from petridish.theory.fourier import population_gradient_by_enumeration, sampled_gradient

    model, support = reading.spec.model, np.flatnonzero(relevant(reading)).tolist()
    arrays = list(reading.now.values())
    if not reading.shared.once(is_product) or not all(
        np.isfinite(weight).all() for weight in arrays[:2]
    ):
        return None
    weights = first_layer(reading).astype(np.float64)
    if isinstance(model, PolyNet | DisjointPolyNet):
        if model.k != len(support):
            return None
        return product_gradient(weights, support)
    if not isinstance(model, MLP):
        return None
    biases = arrays[1].astype(np.float64)
    if (known := _closed_form(model.activation, weights, biases, support)) is not None:
        return known
    slope = derivative(model.activation)
    if weights.shape[1] <= EXACT_BITS:
        return population_gradient_by_enumeration(slope, weights, biases, support)
    x = _sampled_inputs(reading.spec.seed, weights.shape[1])
    return sampled_gradient(slope, weights, biases, support, x)[0]


def _closed_form(
    activation: Activation, weights: Floats, biases: Floats, support: list[int]
) -> Floats | None:
    """Return the gradient of sines and of polynomials of low degree; None for others."""
    from petridish.theory.closed_form import polynomial_gradient, sine_gradient

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


def derivative(activation: Activation) -> Derivative:
    """Return σ' as a function of NumPy arrays, by PyTorch's autograd; a ReLU's is quicker."""
    from petridish.theory.fourier import relu_derivative

    if type(activation) is ReLU:
        return relu_derivative

    def slope(z: Floats) -> Floats:
        import torch

        with torch.enable_grad():  # evaluations may switch it off
            at = torch.from_numpy(z).requires_grad_()
            (found,) = torch.autograd.grad(activation(at).sum(), at)
        return found.numpy()

    return slope


@lru_cache(maxsize=2)
def _sampled_inputs(seed: int, n: int) -> NDArray[np.int8]:
    """Draw the sample of inputs, the same at every evaluation of a run."""
    packed = Streams([seed], "instruments").packed(n, 0, SAMPLED_INPUTS)[0]
    return np.int8(1) - np.int8(2) * unpack_bits(packed)[:, :n].astype(np.int8)


def relevant_inputs(spec: RunSpec) -> NDArray[np.bool_]:
    """Return which inputs the labels of a run depend on; all, if the task does not say."""
    task, n_inputs = spec.task, spec.domain.n_inputs
    if not isinstance(task, OnSupport):
        return np.ones(n_inputs, np.bool_)
    relevant = np.zeros(n_inputs, np.bool_)
    relevant[task.supports([spec.seed])[0]] = True
    return relevant


def is_product(spec: RunSpec) -> bool:
    """Return whether a label is the product of its relevant signs, from all of their values."""
    task = spec.task
    if not isinstance(task, OnSupport) or task.n_relevant > EXACT_BITS:
        return False
    settings = np.arange(2**task.n_relevant)[:, None] >> np.arange(task.n_relevant) & 1
    labels = task.evaluate(settings.astype(np.uint8))
    return bool(np.array_equal(labels % 2, settings.sum(axis=1) % 2))
