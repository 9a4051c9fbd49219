"""Networks linearised at their start: the neural tangent kernel as a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from petridish.errors import UserError, check_whole
from petridish.models.activations import Activation, ReLU
from petridish.models.base import Init, Parameter, Stacked, Weights, layer_parameter
from petridish.models.inits import Uniform
from petridish.tasks.domain import Domain, one_answer

if TYPE_CHECKING:
    from torch import Tensor, nn


@dataclass(frozen=True)
class Tangent(Stacked):
    r"""f(x) = ∇_θ g(x; θ_0) · θ for the network g(x) = u·σ(Wx + b) [HP §4.1, Theorem 5.6].

    Written out, with frozen :math:`\theta_0 = (W_0, b_0, u_0)`, :math:`z = W_0 x + b_0`, and the
    trained :math:`\theta = (V, c, a)`:

    .. math:: f(x) = a \cdot \sigma(z) + (u_0 \odot \sigma'(z)) \cdot (V x + c).

    Gradient descent on θ is kernel regression with the network's tangent kernel at θ_0, as many
    features as g has parameters; they never change. `TangentStart` starts at θ = 0, f = 0.

    θ comes first in the list of parameters, layers 1 and 2 as in g; θ_0 is layers 3 and 4, which
    no step changes.
    """

    name: ClassVar[str] = "tangent"

    width: int
    activation: Activation = ReLU()

    def __post_init__(self) -> None:
        check_whole("Tangent", 1, width=self.width)

    def parameters(self, domain: Domain, n_outputs: int) -> tuple[Parameter, ...]:
        """List V, c, a, then W_0, b_0, u_0."""
        inner, outer = pairwise((one_answer("Tangent", domain), self.width, n_outputs))
        return tuple(
            parameter
            for first, trained in ((0, True), (2, False))
            for parameter in (
                layer_parameter(first, "weight", *inner, trained=trained),
                layer_parameter(first, "bias", *inner, trained=trained),
                layer_parameter(first + 1, "weight", *outer, trained=trained),
            )
        )

    def build(self, domain: Domain, n_outputs: int) -> nn.Module:
        """Return the derivative at θ_0 along θ."""
        from petridish.models.modules import TangentModule

        n_inputs = one_answer("Tangent", domain)
        return TangentModule(n_inputs, self.width, n_outputs, self.activation)

    def forward(self, parameters: Sequence[Tensor], x: Tensor) -> Tensor:
        """Return the outputs of a stack of runs, shape (run, batch, output)."""
        import torch

        v, c, a, *start = parameters
        w0, b0, u0 = (array.detach() for array in start)
        h = x.flatten(2).mT  # (run, input, batch)
        with torch.enable_grad():  # also in evaluations, which take no gradient: σ' needs one
            z = b0.unsqueeze(2).baddbmm(w0, h).requires_grad_()  # (run, width, batch)
            features = self.activation(z)
            (slopes,) = torch.autograd.grad(features.sum(), z)
        moved = slopes * c.unsqueeze(2).baddbmm(v, h)
        outputs = a.bmm(features.detach()) + u0.bmm(moved)  # (run, output, batch)
        return outputs.mT


@dataclass(frozen=True)
class TangentStart:
    """θ = 0, with θ_0 as `base` would start the network that is linearised: see `Tangent`."""

    name: ClassVar[str] = "tangent_start"

    base: Init = Uniform()

    def draw(self, parameters: Sequence[Parameter], seeds: Sequence[int]) -> list[Weights]:
        """Draw θ_0 under the names of the network's own parameters, and leave θ at 0."""
        half = len(parameters) // 2
        trained, frozen = parameters[:half], parameters[half:]
        if [p.shape for p in trained] != [p.shape for p in frozen]:
            raise UserError(
                "TangentStart: the model is not its linearisation: it has no frozen weights "
                "beside the trained ones. Give the model Tangent, or another initialisation."
            )
        start = [np.zeros((len(seeds), *p.shape), np.float32) for p in trained]
        return [*start, *self.base.draw(trained, seeds)]
