"""What every model and every initialisation offers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

Weights = NDArray[np.float32]


@dataclass(frozen=True)
class Parameter:
    """One array that a model trains, before it has values.

    Attributes
    ----------
    layer : int
        The layer it belongs to, 0 for the first: per-layer rates and decays go by it.
    kind : "weight" or "bias"
        Weights have the shape (fan_out, fan_in), a row a neuron; biases (fan_out,).
    fan_in, fan_out : int
        Inputs and outputs of the layer.
    """

    layer: int
    kind: Literal["weight", "bias"]
    fan_in: int
    fan_out: int

    @property
    def name(self) -> str:
        """Its name in random streams, counted from 1 as the papers count layers."""
        return f"layer{self.layer + 1}.{self.kind}"

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape in one run."""
        return (self.fan_out, self.fan_in) if self.kind == "weight" else (self.fan_out,)

    @property
    def size(self) -> int:
        """Number of entries in one run."""
        return self.fan_out * (self.fan_in if self.kind == "weight" else 1)


class Model(Protocol):
    """What learns. A new model is a frozen dataclass with these names."""

    name: ClassVar[str]

    def parameters(self, n_inputs: int, n_outputs: int) -> tuple[Parameter, ...]:
        """List what is trained."""

    def forward(self, parameters: Sequence[Tensor], x: Tensor) -> Tensor:
        """Give the outputs of a stack of runs.

        Every array has the run as axis 0: parameters (run, *shape), inputs (run, batch, input),
        outputs (run, batch, output). A run's outputs depend on its own entries alone.
        """


class Init(Protocol):
    """How a model starts. A new initialisation is a frozen dataclass with these names."""

    name: ClassVar[str]

    def draw(self, parameters: Sequence[Parameter], seeds: Sequence[int]) -> list[Weights]:
        """Draw the values of `parameters` for the runs `seeds`, each of shape (run, *shape)."""
