"""Activations: functions of one number, applied to every entry of a tensor."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Protocol

from petridish.errors import UserError, check_whole

if TYPE_CHECKING:
    from torch import Tensor


class Activation(Protocol):
    """A frozen dataclass with a `name` that maps a tensor, entry by entry."""

    name: ClassVar[str]

    def __call__(self, z: Tensor) -> Tensor:
        """Apply the activation."""


@dataclass(frozen=True)
class _OfDegree:
    """An activation with one setting: the k of the parity that it is made for."""

    k: int

    def __post_init__(self) -> None:
        check_whole(type(self).__name__, 1, k=self.k)


@dataclass(frozen=True)
class ReLU:
    """max(z, 0)."""

    name: ClassVar[str] = "relu"

    def __call__(self, z: Tensor) -> Tensor:
        """Apply the activation."""
        return z.relu()


@dataclass(frozen=True)
class TruncatedReLU:
    """min(max(z, 0), 1) [FL §3.1]."""

    name: ClassVar[str] = "truncated_relu"

    def __call__(self, z: Tensor) -> Tensor:
        """Apply the activation."""
        from torch.nn.functional import hardtanh

        return hardtanh(z, 0.0, 1.0)  # with the slope 0 at both corners


@dataclass(frozen=True)
class SmoothedTruncatedReLU:
    """E min(max(z + ξ, 0), 1) for ξ ~ N(0, noise²): the paper's smoothing in closed form [FL §3.1].

    With g(z) = z Φ(z/s) + s φ(z/s), the mean of max(z + ξ, 0), it is g(z) − g(z − 1). Its slope is
    the probability that a neuron is open, Φ((1 − z)/s) − Φ(−z/s).
    """

    name: ClassVar[str] = "smoothed_truncated_relu"

    noise: float

    def __post_init__(self) -> None:
        noise = float(self.noise)
        if not 0 < noise < math.inf:
            raise UserError(
                f"SmoothedTruncatedReLU: noise={self.noise}. Give a positive standard deviation, "
                "or TruncatedReLU() without noise."
            )
        object.__setattr__(self, "noise", noise)

    def __call__(self, z: Tensor) -> Tensor:
        """Apply the activation."""
        return self._rectified(z) - self._rectified(z - 1)

    def _rectified(self, z: Tensor) -> Tensor:
        import torch

        density = (-0.5 * (z / self.noise).square()).exp() / math.sqrt(2 * math.pi)
        open_share: Tensor = torch.special.ndtr(z / self.noise)
        return z * open_share + self.noise * density


class Power(_OfDegree):
    """z^k [HP, architectures (iv)–(vi)]."""

    name: ClassVar[str] = "power"

    def __call__(self, z: Tensor) -> Tensor:
        """Apply the activation."""
        if self.k < 4:
            return z.pow(self.k)
        # PyTorch takes a logarithm for higher powers: four times slower than squares.
        half = Power(self.k // 2)(z).square()
        return half if self.k % 2 == 0 else z * half


@dataclass(frozen=True)
class Identity:
    """z itself: the network is linear in its inputs."""

    name: ClassVar[str] = "identity"

    def __call__(self, z: Tensor) -> Tensor:
        """Apply the activation."""
        return z


class Zigzag(_OfDegree):
    """Piecewise linear through (k, +1), (k − 2, −1), …, (−k, ±1) [HP, architectures (vii), (xi)].

    At z = w_S · x, the sum of the k bits of S, it is their product: one neuron is the parity. The
    first and the last of the k pieces go on beyond ±k.
    """

    name: ClassVar[str] = "zigzag"

    def __call__(self, z: Tensor) -> Tensor:
        """Apply the activation."""
        # Piece i from the right, 0 … k − 1, runs from (−1)^i at k − 2i to its opposite.
        distance = (self.k - z) / 2
        piece = distance.floor().clamp(0, self.k - 1)
        within = distance - piece
        return (1 - 2 * (piece % 2)) * (1 - 2 * within)


class Oscillating(_OfDegree):
    """The polynomial of degree k through the points of `Zigzag` [HP, (viii), (xii)]."""

    name: ClassVar[str] = "oscillating"

    def __call__(self, z: Tensor) -> Tensor:
        """Apply the activation."""
        # By Horner's rule in z², as the polynomial has the parity of k.
        coefficients = oscillating_coefficients(self.k)
        square = z * z
        value = coefficients[-1] + 0 * z
        for coefficient in coefficients[-2::-1]:
            value = value * square + coefficient
        return value * z if self.k % 2 else value


@lru_cache(maxsize=64)
def oscillating_coefficients(k: int) -> tuple[float, ...]:
    """Return the coefficients of z^0, z^2, … (k even) or z^1, z^3, … (k odd), exactly rounded.

    Newton's interpolation over the points (−k + 2i, (−1)^(k − i)) in whole numbers: the i-th
    divided difference is (−1)^k (−2)^i / (i! 2^i).
    """
    from fractions import Fraction

    polynomial = [Fraction(0)] * (k + 1)
    product = [Fraction(1)]  # Π_{j < i} (z − z_j)
    for i in range(k + 1):
        difference = Fraction((-1) ** (k + i), math.factorial(i))
        for power, value in enumerate(product):
            polynomial[power] += difference * value
        point = -k + 2 * i
        shifted = [Fraction(0), *product]
        product = [a - point * b for a, b in zip(shifted, [*product, Fraction(0)], strict=True)]
    assert not any(polynomial[1 - k % 2 :: 2]), "the polynomial has the parity of k"
    return tuple(float(value) for value in polynomial[k % 2 :: 2])


class InfiniteZigzag(_OfDegree):
    """The triangle wave through (k + 4i, +1) and (k + 2 + 4i, −1) [HP, (ix), (xiii)].

    It agrees with `Zigzag` on [−k, k], and is periodic.
    """

    name: ClassVar[str] = "infinite_zigzag"

    def __call__(self, z: Tensor) -> Tensor:
        """Apply the activation."""
        phase = (self.k - z) / 4  # whole at the peaks
        return 1 - 4 * (phase - (phase + 0.5).floor()).abs()


@dataclass(frozen=True)
class Sine(_OfDegree):
    """sin(π/2 · scale · z + β), +1 at scale · z = k [HP, (x), (xiv)].

    With scale = 1 it passes through the points of `InfiniteZigzag`. The paper doubles the scale in
    its training curves on (50, 3).
    """

    name: ClassVar[str] = "sine"

    scale: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "scale", float(self.scale))

    def __call__(self, z: Tensor) -> Tensor:
        """Apply the activation."""
        # β = π/2 (1 − k) is a multiple of π/2: sin(π/2 (y + 1 − k)), written so that k only turns
        # the wave by quarters.
        turned = (math.pi / 2) * (self.scale * z)
        return (turned.cos, turned.sin, lambda: -turned.cos(), lambda: -turned.sin())[self.k % 4]()
