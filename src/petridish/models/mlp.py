"""Multilayer perceptrons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

from petridish.models.activations import Activation, ReLU
from petridish.models.base import Parameter
from petridish.naming import check_whole

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class MLP:
    """f(x) = v·σ(Wx + b) + β, and its deeper relatives [PF §2].

    MLP(width=100) has two layers: 100 hidden neurons and the output. MLP(width=10, deeper=(10, 1))
    has four: hidden layers of 10, 10 and 1 neurons, and the output.

    Attributes
    ----------
    width : int
        Neurons of the first hidden layer (the paper's r).
    deeper : tuple of int
        Widths of the hidden layers that follow.
    activation : Activation
        The paper's σ.
    """

    name: ClassVar[str] = "mlp"

    width: int
    deeper: tuple[int, ...] = ()
    activation: Activation = ReLU()

    def __post_init__(self) -> None:
        object.__setattr__(self, "deeper", tuple(self.deeper))
        for width in (self.width, *self.deeper):
            check_whole("MLP", 1, width=width)

    def parameters(self, n_inputs: int, n_outputs: int) -> tuple[Parameter, ...]:
        """List weights and biases, layer by layer."""
        sizes = (n_inputs, self.width, *self.deeper, n_outputs)
        return tuple(
            Parameter(layer, kind, fan_in, fan_out)
            for layer, (fan_in, fan_out) in enumerate(pairwise(sizes))
            for kind in ("weight", "bias")
        )

    def forward(self, parameters: Sequence[Tensor], x: Tensor) -> Tensor:
        """Give the outputs of a stack of runs, shape (run, batch, output)."""
        # Neurons before examples: with the batch as the inner axis a narrow net's products run
        # four times faster, and a wide net's no slower.
        h = x.mT  # (run, input, batch)
        layers = list(zip(parameters[::2], parameters[1::2], strict=True))
        for depth, (weight, bias) in enumerate(layers):
            h = bias.unsqueeze(2).baddbmm(weight, h)  # (run, fan_out, batch)
            if depth < len(layers) - 1:
                h = self.activation(h)
        return h.mT
