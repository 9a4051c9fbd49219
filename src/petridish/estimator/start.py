"""How members start on a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from petridish.models.base import Init, Parameter, Weights
from petridish.models.inits import Uniform
from petridish.seeds import Streams

Rows = NDArray[np.float32]


class Start(Protocol):
    """Draws the first weights of members, knowing the table that they will learn."""

    def draw(
        self, parameters: Sequence[Parameter], seeds: Sequence[int], rows: Rows, factors: Rows
    ) -> list[Weights]:
        """Draw the values of `parameters` for the members `seeds`.

        Parameters
        ----------
        parameters : sequence of Parameter
            What is trained.
        seeds : sequence of int
            One per member.
        rows : array, shape (row, input)
            The inputs.
        factors : array, shape (member, input)
            By which each member's inputs are multiplied; 0 for those that it does not see.
        """


@dataclass(frozen=True)
class AsIn:
    """Draws by an initialisation of this package, whatever the table."""

    init: Init

    def draw(
        self, parameters: Sequence[Parameter], seeds: Sequence[int], rows: Rows, factors: Rows
    ) -> list[Weights]:
        """Draw every parameter."""
        return self.init.draw(parameters, seeds)


@dataclass(frozen=True)
class AtData:
    """Each first-layer neuron starts on s columns, and bends at a row of the table.

    Its weights are ±1 on s columns, drawn with chances in proportion to the factors, and its bias
    is −w·x for a row x drawn at random: wherever the data are, some neurons bend. All other
    parameters start as in `Uniform`, and so do the first weights without s.

    Attributes
    ----------
    s : int or None
        Nonzero first weights per neuron, at most all; None for a dense start.
    """

    s: int | None

    def draw(
        self, parameters: Sequence[Parameter], seeds: Sequence[int], rows: Rows, factors: Rows
    ) -> list[Weights]:
        """Draw every parameter."""
        first = parameters[0]
        drawn = Uniform().draw(parameters, seeds)
        if self.s is not None:
            drawn[0] = self._sparse(self.s, first, seeds, factors)
        chosen = Streams(seeds, "init/rows").integers(len(rows), 0, first.fan_out)
        scaled = drawn[0] * factors[:, None, :]
        for bias, weight, places in zip(drawn[1], scaled, chosen, strict=True):
            bias[:] = -np.einsum("ij,ij->i", weight, rows[places])
        return drawn

    @staticmethod
    def _sparse(s: int, first: Parameter, seeds: Sequence[int], factors: Rows) -> Weights:
        """Draw ±1 on s columns of each neuron, without replacement."""
        shape = (len(seeds), first.fan_out, first.fan_in)
        waits = -np.log1p(-Streams(seeds, "init/columns").uniforms(0, first.size)).reshape(shape)
        # Exponential waiting times with these rates: the first to arrive are drawn by the factors.
        with np.errstate(divide="ignore"):  # an input of factor 0 never arrives
            arrivals = waits / factors[:, None, :]
        chosen = arrivals.argsort(axis=2, kind="stable")[:, :, :s]
        signs = Streams(seeds, "init/signs").signs(0, first.size).reshape(shape)
        weights = np.zeros(shape, np.float32)
        np.put_along_axis(weights, chosen, np.take_along_axis(signs, chosen, 2), axis=2)
        return weights
