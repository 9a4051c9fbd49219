"""One hidden layer without biases, whose outputs grow as a power of its weights [TH §7.2]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from petridish.choices import describe
from petridish.errors import UserError, check_whole
from petridish.models.activations import Identity, Power, ReLU
from petridish.models.base import Parameter, Stacked, layer_parameter
from petridish.tasks.domain import Domain, one_answer
from petridish.values import Gone

if TYPE_CHECKING:
    from torch import Tensor, nn


@dataclass(frozen=True)
class Homogeneous(Stacked):
    r"""f(x) = Σ_i w_i σ(u_i · x), with σ a power or ReLU [TH §7.2].

    Doubling the weights multiplies the outputs by 2^ν, ν being `degree`; so a margin is measured in
    units of :math:`\|\theta\|_{2,\nu}^\nu = \sum_i \|(u_i, w_i)\|_2^\nu`.

    Attributes
    ----------
    width : int
        Number of neurons (the paper's m).
    activation : Power, ReLU or Identity
        The paper's σ; x² for groups, x^k for the parity of k bits.
    """

    name: ClassVar[str] = "homogeneous"
    takes_places: ClassVar[bool] = True  # one-hot inputs may come as the places of their ones

    width: int
    activation: Power | ReLU | Identity = Power(2)

    def __post_init__(self) -> None:
        check_whole("Homogeneous", 1, width=self.width)
        if not isinstance(self.activation, Power | ReLU | Identity | Gone):
            raise UserError(
                f"Homogeneous: the activation {describe(self.activation)} does not grow as a "
                "power of its argument. Give power(k), relu or identity."
            )

    @property
    def degree(self) -> int:
        """The degree of homogeneity ν of a neuron: one more than its activation's."""
        return 1 + (self.activation.k if isinstance(self.activation, Power) else 1)

    def parameters(self, domain: Domain, n_outputs: int) -> tuple[Parameter, ...]:
        """List u and w, the weights of the two layers."""
        return (
            layer_parameter(0, "weight", one_answer("Homogeneous", domain), self.width),
            layer_parameter(1, "weight", self.width, n_outputs),
        )

    def build(self, domain: Domain, n_outputs: int) -> nn.Module:
        """Return two layers without biases."""
        from petridish.models.modules import HomogeneousModule

        n_inputs = one_answer("Homogeneous", domain)
        return HomogeneousModule(n_inputs, self.width, n_outputs, self.activation)

    def forward(self, parameters: Sequence[Tensor], x: Tensor) -> Tensor:
        """Return the outputs of a stack of runs, shape (run, batch, output).

        Integer inputs are the places of ones: adding columns of u takes a third of the time of a
        product with one-hot vectors.
        """
        first, second = parameters
        if x.is_floating_point():
            return second.bmm(self.activation(first.bmm(x.flatten(2).mT))).mT
        from torch import arange

        runs, width, n_inputs = first.shape
        columns = first.mT.reshape(runs * n_inputs, width)
        places = (x + n_inputs * arange(runs, device=x.device).view(-1, 1, 1)).flatten(
            0, 1
        )  # (run · batch, one)
        # Not `embedding_bag`: the order in which its gradient adds up depends on the stack.
        sums = columns.index_select(0, places[:, 0])
        for one in range(1, places.shape[1]):
            sums = sums + columns.index_select(0, places[:, one])
        return self.activation(sums.view(runs, -1, width)).bmm(second.mT)
