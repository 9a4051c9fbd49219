"""Penalties on the weights, added to the loss; weight decay belongs to the optimisers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from petridish.choices import describe
from petridish.errors import UserError
from petridish.models import Model, Parameter

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class NeuronNorm:
    r"""λ ‖θ‖_{a,b}^b = λ Σ_i ‖ω_i‖_a^b over the neurons of one hidden layer [TH §7.2].

    A neuron ω_i is its weights from the inputs, its bias if it has one, and its weights to the
    outputs. With a = b = 2 it is λ times the sum of all their squares.

    Attributes
    ----------
    strength : float
        The paper's λ; 0 for no penalty.
    order, power : float
        The paper's a and b; the power is at least the order, so that the gradient exists at 0.
    """

    name: ClassVar[str] = "neuron_norm"

    strength: float = 0.0
    order: float = 2.0
    power: float = 2.0

    def __post_init__(self) -> None:
        if not 0 <= self.strength < math.inf:
            raise UserError(
                f"NeuronNorm: strength={self.strength}. Give a finite number of at least 0."
            )
        if not 1 <= self.order <= self.power < math.inf:
            raise UserError(
                f"NeuronNorm: order={self.order}, power={self.power}. Give an order of at least 1 "
                "and a power of at least the order."
            )
        for name in ("strength", "order", "power"):
            object.__setattr__(self, name, float(getattr(self, name)))

    def check(self, model: Model, parameters: Sequence[Parameter]) -> None:
        """Refuse networks without one hidden layer: there a neuron has no weights of its own."""
        layers = {p.layer: p for p in parameters if p.kind == "weight"}
        one_hidden = sorted(layers) == [0, 1] and layers[0].fan_out == layers[1].fan_in
        if self.strength and not (one_hidden and len(parameters) <= 4):
            raise UserError(
                f"The penalty {describe(self)} adds up the neurons of one hidden layer, and the "
                f"model is {describe(model)}. Give a two-layer network, or weight_decay in its "
                "place."
            )

    def __call__(self, parameters: Sequence[Parameter], weights: Sequence[Tensor]) -> Tensor:
        """Return the penalty of each run, shape (run,), from weights of shape (run, …)."""
        return self.strength * norm_sum(parameters, weights, order=self.order, power=self.power)


def norm_sum(
    parameters: Sequence[Parameter], weights: Sequence[Tensor], *, order: float, power: float
) -> Tensor:
    """Return Σ_i ‖ω_i‖_order^power of each run; an output's bias belongs to no neuron."""
    parts = []
    for parameter, weight in zip(parameters, weights, strict=True):
        size = weight.square() if order == 2 else weight.abs().pow(order)
        if parameter.kind == "weight":
            parts.append(size.sum(dim=2 if parameter.layer == 0 else 1))  # (run, neuron)
        elif parameter.layer == 0:
            parts.append(size)
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total.pow(power / order).sum(dim=1)


@dataclass(frozen=True)
class NormPower(NeuronNorm):
    """λ ‖θ‖_{a,b}^r, r of one's own choice; `NeuronNorm` has r = b [TH §7.3].

    Attributes
    ----------
    exponent : float
        The paper's r, which it leaves open.
    """

    name: ClassVar[str] = "norm_power"

    exponent: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.exponent < math.inf:
            raise UserError(f"NormPower: exponent={self.exponent}. Give a finite number above 0.")
        object.__setattr__(self, "exponent", float(self.exponent))

    def __call__(self, parameters: Sequence[Parameter], weights: Sequence[Tensor]) -> Tensor:
        """Return the penalty of each run, shape (run,), from weights of shape (run, …)."""
        total = norm_sum(parameters, weights, order=self.order, power=self.power)
        return self.strength * total.pow(self.exponent / self.power)


PENALTIES: dict[str, type] = {kind.name: kind for kind in (NeuronNorm, NormPower)}
