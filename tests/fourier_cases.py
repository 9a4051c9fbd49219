"""Cases for the tests of Fourier coefficients."""

from __future__ import annotations

from typing import Any

from petridish.models import (
    Activation,
    Identity,
    InfiniteZigzag,
    Oscillating,
    Power,
    ReLU,
    Sine,
    SmoothedTruncatedReLU,
    TruncatedReLU,
    Zigzag,
)
from petridish.theory.fourier import all_signs
from petridish.training.population_gradient import derivative

ALL_ACTIVATIONS: tuple[Activation, ...] = (
    ReLU(),
    TruncatedReLU(),
    SmoothedTruncatedReLU(0.5),
    Identity(),
    *(kind(k) for kind in (Power, Zigzag, Oscillating, InfiniteZigzag) for k in range(1, 7)),
    *(Sine(k, scale) for k in range(1, 6) for scale in (1.0, 2.0)),
)


def plain_gradient(activation: Activation, w: Any, b: Any, support: Any) -> Any:
    """Average y x_i σ'(w · x + b) over all inputs, as one writes it on paper."""
    x = all_signs(w.shape[1]).astype(float)
    y = x[:, list(support)].prod(axis=1)
    values = derivative(activation)(x @ w.T + b)  # (input, neuron)
    return (y[:, None] * values).T @ x / len(x)
