"""Multilayer perceptrons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, Literal

from petridish.errors import UserError, check_whole
from petridish.models.activations import Activation, ReLU
from petridish.models.base import Parameter, Stacked, layer_parameter
from petridish.tasks.domain import Domain, one_answer
from petridish.values import LATER

if TYPE_CHECKING:
    from torch import Tensor, nn


Output = Literal["affine", "linear", "sum"]


@dataclass(frozen=True)
class MLP(Stacked):
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
    output : "affine", "linear" or "sum"
        What the last layer does: v·h + β as in PF, u·h as in HP, or the mere sum of h, with nothing
        to train (HP's single neurons without a second layer, u = 1).
    """

    name: ClassVar[str] = "mlp"

    width: int
    deeper: tuple[int, ...] = ()
    activation: Activation = ReLU()
    output: Output = field(default="affine", metadata=LATER)

    def __post_init__(self) -> None:
        object.__setattr__(self, "deeper", tuple(self.deeper))
        for width in (self.width, *self.deeper):
            check_whole("MLP", 1, width=width)
        if self.output not in ("affine", "linear", "sum"):
            raise UserError(f"MLP: output={self.output!r}. Give 'affine', 'linear' or 'sum'.")

    def parameters(self, domain: Domain, n_outputs: int) -> tuple[Parameter, ...]:
        """List weights and biases, layer by layer."""
        every = [
            layer_parameter(layer, kind, fan_in, fan_out)
            for layer, (fan_in, fan_out) in enumerate(pairwise(self._sizes(domain, n_outputs)))
            for kind in ("weight", "bias")
        ]
        return tuple(every[: len(every) - ("affine", "linear", "sum").index(self.output)])

    def _sizes(self, domain: Domain, n_outputs: int) -> tuple[int, ...]:
        """Return the widths of all layers, inputs and outputs among them; images are flattened."""
        if self.output == "sum" and n_outputs > 1:
            raise UserError(
                f"MLP: output='sum' has one output, but task and loss ask for {n_outputs}. "
                "Give 'affine' or 'linear'."
            )
        return (one_answer("MLP", domain), self.width, *self.deeper, n_outputs)

    def build(self, domain: Domain, n_outputs: int) -> nn.Module:
        """Return linear layers with the activation between them."""
        from petridish.models.modules import MLPModule

        return MLPModule(
            self._sizes(domain, n_outputs),
            self.activation,
            biased=self.output == "affine",
            summed=self.output == "sum",
        )

    def forward(self, parameters: Sequence[Tensor], x: Tensor) -> Tensor:
        """Return the outputs of a stack of runs, shape (run, batch, output)."""
        # Neurons before examples: with the batch as the inner axis a narrow net's products run
        # four times faster, and a wide net's no slower.
        h = (x if x.dim() == 3 else x.flatten(2)).mT  # (run, input, batch)
        hidden = 2 * (1 + len(self.deeper))
        for weight, bias in zip(parameters[:hidden:2], parameters[1:hidden:2], strict=True):
            h = self.activation(bias.unsqueeze(2).baddbmm(weight, h))  # (run, fan_out, batch)
        if self.output == "sum":
            return h.sum(dim=1, keepdim=True).mT
        if self.output == "linear":
            return parameters[hidden].bmm(h).mT
        return parameters[hidden + 1].unsqueeze(2).baddbmm(parameters[hidden], h).mT
