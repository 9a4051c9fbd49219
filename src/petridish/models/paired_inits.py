"""Starts in which the neurons of the last hidden layer come in pairs that cancel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from petridish.errors import UserError, check_whole
from petridish.models.base import Init, Parameter, Weights
from petridish.models.inits import Sparse, Uniform, draw_signs, init_stream


@dataclass(frozen=True)
class Paired:
    """Neurons in pairs that cancel: equal weights and biases, opposite outputs [PF App. B.2].

    Neuron i + r/2 of the last hidden layer is neuron i with the opposite sign in the output, and
    the output's bias, if it has one, is 0, so that the network starts as the zero function. `base`
    draws the rest.
    """

    name: ClassVar[str] = "paired"

    base: Init = Uniform()

    def draw(self, parameters: Sequence[Parameter], seeds: Sequence[int]) -> list[Weights]:
        """Draw by `base`, then copy one half of the last hidden layer onto the other."""
        return _paired("Paired", parameters, self.base.draw(parameters, seeds))


def _paired(name: str, parameters: Sequence[Parameter], drawn: list[Weights]) -> list[Weights]:
    """Make the second half of the last hidden layer the opposite of the first."""
    output = _output(name, parameters)
    width = parameters[output].fan_in
    if width % 2:
        raise UserError(
            f"{name}: the last hidden layer has {width} neurons, which cannot be paired. "
            f"Give an even width, such as {width + 1}."
        )
    half = width // 2
    for hidden in drawn[output - 2 : output]:  # the last hidden layer's weights and biases
        hidden[:, half:] = hidden[:, :half]
    drawn[output][..., half:] = -drawn[output][..., :half]
    for bias in drawn[output + 1 :]:
        bias[:] = 0
    return drawn


def _output(name: str, parameters: Sequence[Parameter]) -> int:
    """Find the output weights of an MLP, with or without a bias behind them."""
    layered = all(p.kind == ("weight", "bias")[i % 2] for i, p in enumerate(parameters))
    if not layered or parameters[-1].layer == 0:
        raise UserError(
            f"{name}: pairs of neurons cancel in the output layer of an MLP, and this model has "
            "none. Give an MLP with the output 'affine' or 'linear'."
        )
    return 2 * parameters[-1].layer


@dataclass(frozen=True)
class OverSparse:
    """The start of Theorem 4's algorithm for parities of k bits [PF App. B.2.2].

    Pairs of neurons that cancel; each has s weights 1 and the rest 0, a bias drawn from
    β_i = (−k + 2i + 1/16) / 2k, and an output weight ±1. The text draws i from 1 … k/2 − 1, with
    which no second layer represents the parity; i = 0 … k/2 − 1 does (docs/reference/theory.md
    in the repository).
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
        place = _output("OverSparse", parameters)
        biases, outputs = parameters[1], parameters[place]
        i = init_stream(biases, seeds).integers(self.k // 2, 0, biases.size)
        drawn[1] = ((-self.k + 2 * i + 1 / 16) / (2 * self.k)).astype(np.float32)
        drawn[place] = draw_signs(outputs, seeds)
        return _paired("OverSparse", parameters, drawn)


@dataclass(frozen=True)
class SymmetricSigns:
    """The start of Theorem 5.5 for parities of k bits, k even [HP App. B.2.1].

    Pairs of neurons that cancel; every weight is ±1, and hidden biases are uniform on the 2k − 1
    multiples of 1/k between −1 and 1. On an odd number of inputs |w · x| ≥ 1, so that such a bias
    never decides whether a neuron fires: its gradient is that of the majority.

    The paper writes the biases as {−1 + 1/k, …, 1 − 1/k} without their spacing. Its proof needs
    neurons with b_i = −1/2 + (i + 1)/k, multiples of 1/k for even k, and counts about 2k values:
    the spacing is 1/k. That proof takes i = 1 … k, which is one neuron too few (their sum is linear
    between k − 2 and k bits of +1); i = 0 … k is right, and within the grid for k ≥ 4. For k = 2
    the other neurons of the pairs replace i = k.
    """

    name: ClassVar[str] = "symmetric_signs"

    k: int

    def __post_init__(self) -> None:
        check_whole("SymmetricSigns", 2, k=self.k)
        if self.k % 2:
            raise UserError(f"SymmetricSigns: k={self.k}. Give an even number of at least 2.")

    def draw(self, parameters: Sequence[Parameter], seeds: Sequence[int]) -> list[Weights]:
        """Draw signs and biases; then one half of the neurons cancels the other."""
        return _paired("SymmetricSigns", parameters, [self._one(p, seeds) for p in parameters])

    def _one(self, parameter: Parameter, seeds: Sequence[int]) -> Weights:
        if parameter.kind == "weight":
            return draw_signs(parameter, seeds)
        steps = init_stream(parameter, seeds).integers(2 * self.k - 1, 0, parameter.size)
        return ((steps - (self.k - 1)) / self.k).astype(np.float32)
