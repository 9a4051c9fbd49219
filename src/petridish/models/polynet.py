"""PolyNets: products of linear functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from petridish.errors import UserError, check_whole
from petridish.models.base import ChecksTask, Parameter, Stacked, layer_parameter
from petridish.tasks.base import OnSupport, Task
from petridish.tasks.domain import Domain, one_answer

if TYPE_CHECKING:
    from torch import Tensor, nn


@dataclass(frozen=True)
class PolyNet(Stacked):
    """f(x) = Π_i (w_i · x + b_i) over i = 1 … k [HP, architecture (xv)].

    With w_i the unit vectors of S and b_i = 0 it is the parity over S.
    """

    name: ClassVar[str] = "polynet"

    k: int

    def __post_init__(self) -> None:
        check_whole("PolyNet", 1, k=self.k)

    def parameters(self, domain: Domain, n_outputs: int) -> tuple[Parameter, ...]:
        """List the weights and biases of the k factors."""
        n_inputs = _n_inputs("PolyNet", domain, n_outputs)
        return (
            layer_parameter(0, "weight", n_inputs, self.k),
            layer_parameter(0, "bias", n_inputs, self.k),
        )

    def build(self, domain: Domain, n_outputs: int) -> nn.Module:
        """Return one linear layer whose outputs are multiplied."""
        from petridish.models.modules import PolyNetModule

        return PolyNetModule(_n_inputs("PolyNet", domain, n_outputs), self.k)

    def forward(self, parameters: Sequence[Tensor], x: Tensor) -> Tensor:
        """Return the outputs of a stack of runs, shape (run, batch, 1)."""
        weight, bias = parameters
        factors = bias.unsqueeze(2).baddbmm(weight, x.flatten(2).mT)  # (run, k, batch)
        return _product(factors).unsqueeze(2)


@dataclass(frozen=True)
class DisjointPolyNet(Stacked, ChecksTask):
    """f(x) = Π_i ⟨w_i, x_{P_i}⟩ over k equal blocks P_i of the inputs [HP §4.2].

    A tree parity machine with a real output; it realises parities with one bit in every block.
    """

    name: ClassVar[str] = "disjoint_polynet"

    k: int

    def __post_init__(self) -> None:
        check_whole("DisjointPolyNet", 1, k=self.k)

    def parameters(self, domain: Domain, n_outputs: int) -> tuple[Parameter, ...]:
        """List the weights, one row of n/k per block."""
        return (layer_parameter(0, "weight", self._n_inputs(domain, n_outputs) // self.k, self.k),)

    def _n_inputs(self, domain: Domain, n_outputs: int) -> int:
        n_inputs = _n_inputs("DisjointPolyNet", domain, n_outputs)
        if n_inputs % self.k:
            raise UserError(
                f"DisjointPolyNet: {n_inputs} inputs cannot be cut into k={self.k} equal blocks. "
                f"Give n as a multiple of {self.k}."
            )
        return n_inputs

    def build(self, domain: Domain, n_outputs: int) -> nn.Module:
        """Return one row of weights per block, whose products with the inputs are multiplied."""
        from petridish.models.modules import DisjointPolyNetModule

        return DisjointPolyNetModule(self._n_inputs(domain, n_outputs), self.k)

    def check_task(self, task: Task) -> None:
        """Refuse a task whose relevant bits are not one in every block: it cannot be learned."""
        support, n = task.support if isinstance(task, OnSupport) else None, task.domain.n_inputs
        if support is None or sorted(i * self.k // n for i in support) != list(range(self.k)):
            raise UserError(
                f"DisjointPolyNet: the support {support} does not have one bit in each of the "
                f"k={self.k} blocks of {n // self.k}. Give the task a support such as "
                f"{tuple(i * (n // self.k) for i in range(self.k))}."
            )

    def forward(self, parameters: Sequence[Tensor], x: Tensor) -> Tensor:
        """Return the outputs of a stack of runs, shape (run, batch, 1)."""
        (weight,) = parameters
        blocks = x.reshape(*x.shape[:2], self.k, -1)  # (run, batch, k, n/k)
        factors = (blocks * weight.unsqueeze(1)).sum(dim=3)  # (run, batch, k)
        return _product(factors.mT).unsqueeze(2)


def _product(factors: Tensor) -> Tensor:
    """Multiply over axis 1, one factor after another: `prod` is slow to differentiate at 0."""
    value = factors[:, 0]
    for i in range(1, factors.shape[1]):
        value = value * factors[:, i]
    return value


def _n_inputs(owner: str, domain: Domain, n_outputs: int) -> int:
    if n_outputs != 1:
        raise UserError(
            f"{owner} has one output, but task and loss ask for {n_outputs}. "
            "Give a task of two classes and a loss such as hinge."
        )
    return one_answer(owner, domain)
