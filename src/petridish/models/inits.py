"""Initialisations. Each parameter has its own random stream, named after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

import numpy as np

from petridish.models.base import Init, Parameter, Weights
from petridish.naming import UserError, check_whole
from petridish.seeds import Streams


def init_stream(parameter: Parameter, seeds: Sequence[int]) -> Streams:
    """Give the stream from which the values of `parameter` are drawn."""
    return Streams(seeds, f"init/{parameter.name}")


def _uniform(parameter: Parameter, seeds: Sequence[int], bound: float) -> Weights:
    drawn = init_stream(parameter, seeds).uniforms(0, parameter.size)
    values = (2 * bound * drawn - bound).astype(np.float32)
    return values.reshape(len(seeds), *parameter.shape)


def _xavier_bound(parameter: Parameter) -> float:
    return sqrt(6 / (parameter.fan_in + parameter.fan_out))


@dataclass(frozen=True)
class Uniform:
    """PyTorch's default: weights and biases uniform on ±1/√fan_in [PF §4.1]."""

    name: ClassVar[str] = "uniform"

    def draw(self, parameters: Sequence[Parameter], seeds: Sequence[int]) -> list[Weights]:
        """Draw every parameter."""
        return [_uniform(p, seeds, 1 / sqrt(p.fan_in)) for p in parameters]


@dataclass(frozen=True)
class XavierUniform:
    """Weights and biases uniform on ±c, c = √(6 / (fan_in + fan_out)) [HP App. B.4]."""

    name: ClassVar[str] = "xavier"

    def draw(self, parameters: Sequence[Parameter], seeds: Sequence[int]) -> list[Weights]:
        """Draw every parameter."""
        return [_uniform(p, seeds, _xavier_bound(p)) for p in parameters]


@dataclass(frozen=True)
class KaimingGaussian:
    """Weights and biases normal with variance 2 / fan_in [HP App. B.4]."""

    name: ClassVar[str] = "kaiming"

    def draw(self, parameters: Sequence[Parameter], seeds: Sequence[int]) -> list[Weights]:
        """Draw every parameter."""
        return [
            (sqrt(2 / p.fan_in) * init_stream(p, seeds).normals(0, p.size))
            .astype(np.float32)
            .reshape(len(seeds), *p.shape)
            for p in parameters
        ]


@dataclass(frozen=True)
class Bernoulli:
    """Weights and biases ±c with random signs, Xavier's c [HP App. B.4]."""

    name: ClassVar[str] = "bernoulli"

    def draw(self, parameters: Sequence[Parameter], seeds: Sequence[int]) -> list[Weights]:
        """Draw every parameter."""
        return [
            (np.float32(_xavier_bound(p)) * init_stream(p, seeds).signs(0, p.size))
            .astype(np.float32)
            .reshape(len(seeds), *p.shape)
            for p in parameters
        ]


@dataclass(frozen=True)
class Sparse:
    """Each neuron of the first layer starts with s weights 1 and the rest 0 [PF §3.2.1].

    All other parameters, the first layer's biases among them, start as in `Uniform`. The weights
    that start at 0 are free to move.
    """

    name: ClassVar[str] = "sparse"

    s: int

    def __post_init__(self) -> None:
        check_whole("Sparse", 1, s=self.s)

    def draw(self, parameters: Sequence[Parameter], seeds: Sequence[int]) -> list[Weights]:
        """Draw every parameter; the first weights by choosing s inputs for each neuron."""
        first = parameters[0]
        if self.s > first.fan_in:
            raise UserError(
                f"Sparse: s={self.s} weights a neuron, but there are only {first.fan_in} inputs. "
                f"Give s from 1 to {first.fan_in}."
            )
        chosen = init_stream(first, seeds).subsets(first.fan_in, self.s, 0, first.fan_out)
        weights = np.zeros((len(seeds), first.fan_out, first.fan_in), np.float32)
        np.put_along_axis(weights, chosen, np.float32(1), axis=-1)
        return [weights, *Uniform().draw(parameters[1:], seeds)]


@dataclass(frozen=True)
class Paired:
    """Neurons in pairs that cancel: equal weights and biases, opposite outputs [PF App. B.2].

    Neuron i + r/2 of the last hidden layer is neuron i with the opposite sign in the output, and
    the output's bias is 0, so that the network starts as the zero function. `base` draws the rest.
    """

    name: ClassVar[str] = "paired"

    base: Init = Uniform()

    def draw(self, parameters: Sequence[Parameter], seeds: Sequence[int]) -> list[Weights]:
        """Draw by `base`, then copy one half of the last hidden layer onto the other."""
        return _paired("Paired", parameters, self.base.draw(parameters, seeds))


def _paired(name: str, parameters: Sequence[Parameter], drawn: list[Weights]) -> list[Weights]:
    """Make the second half of the last hidden layer the opposite of the first."""
    width = parameters[-1].fan_in
    if width % 2:
        raise UserError(
            f"{name}: the last hidden layer has {width} neurons, which cannot be paired. "
            f"Give an even width, such as {width + 1}."
        )
    half = width // 2
    for hidden in drawn[-4:-2]:  # the last hidden layer's weights and biases
        hidden[:, half:] = hidden[:, :half]
    output, bias = drawn[-2:]
    output[..., half:] = -output[..., :half]
    bias[:] = 0
    return drawn


@dataclass(frozen=True)
class OverSparse:
    """The start of Theorem 4's algorithm for parities of k bits [PF App. B.2.2].

    Pairs of neurons that cancel; each has s weights 1 and the rest 0, a bias drawn from
    β_i = (−k + 2i + 1/16) / 2k, and an output weight ±1. The text draws i from 1 … k/2 − 1, with
    which no second layer represents the parity; i = 0 … k/2 − 1 does (docs/theory.md).
    """

    name: ClassVar[str] = "over_sparse"

    s: int
    k: int

    def __post_init__(self) -> None:
        check_whole("OverSparse", 1, s=self.s)
        if self.k < 2 or self.k % 2:
            raise UserError(f"OverSparse: k={self.k}. Give an even number of at least 2.")

    def draw(self, parameters: Sequence[Parameter], seeds: Sequence[int]) -> list[Weights]:
        """Draw weights, biases and signs; then one half of the neurons cancels the other."""
        drawn = Sparse(self.s).draw(parameters, seeds)
        biases, outputs = parameters[1], parameters[-2]
        i = init_stream(biases, seeds).integers(self.k // 2, 0, biases.size)
        drawn[1] = ((-self.k + 2 * i + 1 / 16) / (2 * self.k)).astype(np.float32)
        signs = init_stream(outputs, seeds).signs(0, outputs.size).astype(np.float32)
        drawn[-2] = signs.reshape(len(seeds), *outputs.shape)
        return _paired("OverSparse", parameters, drawn)
