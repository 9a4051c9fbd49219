"""Networks linearised at their start: the neural tangent kernel as a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

from petridish.errors import check_whole
from petridish.models.activations import Activation, ReLU
from petridish.models.base import Parameter

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Tangent:
    r"""f(x) = ∇_θ g(x; θ_0) · θ for the network g(x) = u·σ(Wx + b) [HP §4.1, Theorem 5.6].

    Written out, with frozen :math:`\theta_0 = (W_0, b_0, u_0)`, :math:`z = W_0 x + b_0`, and the
    trained :math:`\theta = (V, c, a)`:

    .. math:: f(x) = a \cdot \sigma(z) + (u_0 \odot \sigma'(z)) \cdot (V x + c).

    Gradient descent on θ is kernel regression with the network's tangent kernel at θ_0, as many
    features as g has parameters; they never change. `TangentStart` starts at θ = 0, f = 0.

    θ comes first in the list of parameters, layers 1 and 2 as in g; θ_0 is layers 3 and 4, and its
    gradient is 0. Weight decay would shrink it all the same, so that a run which decays it is
    refused (`frozen`, of which `training.data` takes heed).
    """

    name: ClassVar[str] = "tangent"

    width: int
    activation: Activation = ReLU()

    def __post_init__(self) -> None:
        check_whole("Tangent", 1, width=self.width)

    def parameters(self, n_inputs: int, n_outputs: int) -> tuple[Parameter, ...]:
        """List V, c, a, then W_0, b_0, u_0."""
        inner, outer = pairwise((n_inputs, self.width, n_outputs))
        return tuple(
            parameter
            for first in (0, 2)
            for parameter in (
                Parameter(first, "weight", *inner),
                Parameter(first, "bias", *inner),
                Parameter(first + 1, "weight", *outer),
            )
        )

    @property
    def frozen(self) -> slice:
        """Which of the parameters are θ_0, that nothing may move."""
        return slice(3, 6)

    def forward(self, parameters: Sequence[Tensor], x: Tensor) -> Tensor:
        """Give the outputs of a stack of runs, shape (run, batch, output)."""
        import torch

        v, c, a, *start = parameters
        w0, b0, u0 = (array.detach() for array in start)
        h = x.mT  # (run, input, batch)
        with torch.enable_grad():  # also where a look forbids it: σ' is taken by autograd
            z = b0.unsqueeze(2).baddbmm(w0, h).requires_grad_()  # (run, width, batch)
            features = self.activation(z)
            (slopes,) = torch.autograd.grad(features.sum(), z)
        moved = slopes * c.unsqueeze(2).baddbmm(v, h)
        outputs = a.bmm(features.detach()) + u0.bmm(moved)  # (run, output, batch)
        # The gradient of θ_0 is 0, and not missing: autograd is asked for it too.
        nothing = [0 * array.flatten(1).sum(dim=1).view(-1, 1, 1) for array in start]
        return outputs.mT + nothing[0] + nothing[1] + nothing[2]
