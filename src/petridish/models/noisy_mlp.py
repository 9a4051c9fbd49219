"""Multilayer perceptrons whose neurons have noise injected in training."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from petridish.errors import UserError
from petridish.models.activations import Activation, ReLU
from petridish.models.mlp import MLP, Output
from petridish.tasks.domain import Domain
from petridish.values import LATER

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class NoisyMLP:
    """An MLP that computes σ(Wx + b + ξ) in training, ξ ~ N(0, noise²) [FL §3.1].

    Every hidden neuron has a ξ of its own for every example and step, drawn from the run's streams;
    in evaluation there is none. Of a truncated ReLU, `SmoothedTruncatedReLU` is the mean over ξ in
    closed form. Its parameters are those of `MLP`, so that a run of one can go on from a run of
    the other (`From`): noise in the first steps alone is a chain.

    Attributes
    ----------
    width : int
        Neurons of the first hidden layer.
    noise : float
        The paper's σ_ξ.
    deeper, activation, output
        As of `MLP`.
    """

    name: ClassVar[str] = "noisy_mlp"

    width: int
    noise: float
    deeper: tuple[int, ...] = ()
    activation: Activation = ReLU()
    output: Output = field(default="affine", metadata=LATER)

    def __post_init__(self) -> None:
        object.__setattr__(self, "deeper", self.quiet.deeper)
        noise = float(self.noise)
        if not 0 < noise < math.inf:
            raise UserError(
                f"NoisyMLP: noise={self.noise}. Give a positive standard deviation, or an MLP "
                "without noise."
            )
        object.__setattr__(self, "noise", noise)

    @property
    def quiet(self) -> MLP:
        """The same network without noise."""
        return MLP(self.width, self.deeper, self.activation, self.output)

    def build(self, domain: Domain, n_outputs: int) -> nn.Module:
        """Return the MLP's module with noise before its activation."""
        from petridish.models.modules import MLPModule, NoisyModule

        module = self.quiet.build(domain, n_outputs)
        assert isinstance(module, MLPModule), "as MLP builds it"
        module.activation = NoisyModule(self.activation, self.noise)
        return module
