"""Losses: one number a run, the mean over its minibatch.

`outputs` are a network's, shape (run, batch, output); `labels` are classes, shape (run, batch).
Margin losses see two classes as y = +1 (class 0) and y = −1 (class 1), and one output.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

from petridish.errors import UserError

if TYPE_CHECKING:
    from torch import Tensor


class Loss(Protocol):
    """A new loss is a frozen dataclass with these names."""

    name: ClassVar[str]

    def n_outputs(self, n_classes: int) -> int:
        """Say how many outputs the network needs, or refuse the task."""

    def __call__(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Give each run's loss, shape (run,)."""

    def wrong(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Say which examples are classified wrongly, shape (run, batch), as Booleans."""


@dataclass(frozen=True)
class MarginLoss(ABC):
    """A mean of functions of f and y = ±1; the class predicted is the sign of f, 0 being wrong."""

    name: ClassVar[str]

    def n_outputs(self, n_classes: int) -> int:
        """One: f."""
        if n_classes != 2:
            raise UserError(
                f"The loss {self.name} compares the sign of one output with ±1 labels, but the "
                f"task has {n_classes} classes. Use cross_entropy."
            )
        return 1

    def __call__(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Give each run's loss, shape (run,)."""
        return self.each(outputs.squeeze(-1), 1 - 2 * labels).mean(dim=1)

    def wrong(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Say where the sign of f is not y; an f that is no number has none."""
        return ~(outputs.squeeze(-1) * (1 - 2 * labels) > 0)

    @abstractmethod
    def each(self, f: Tensor, y: Tensor) -> Tensor:
        """Give the loss of each example."""


@dataclass(frozen=True)
class Hinge(MarginLoss):
    """max(0, 1 − y f)."""

    name: ClassVar[str] = "hinge"

    def each(self, f: Tensor, y: Tensor) -> Tensor:
        """Give the loss of each example."""
        return (1 - y * f).relu()


@dataclass(frozen=True)
class Square(MarginLoss):
    """(f − y)²."""

    name: ClassVar[str] = "square"

    def each(self, f: Tensor, y: Tensor) -> Tensor:
        """Give the loss of each example."""
        return (f - y).square()


@dataclass(frozen=True)
class Logistic(MarginLoss):
    """log(1 + exp(−y f)), written so that it neither overflows nor loses digits."""

    name: ClassVar[str] = "logistic"

    def each(self, f: Tensor, y: Tensor) -> Tensor:
        """Give the loss of each example."""
        margin = y * f
        return (-margin).relu() + (-margin.abs()).exp().log1p()


@dataclass(frozen=True)
class Correlation(MarginLoss):
    """−y f: unbounded below, for the theory's single steps [HP §5.4]."""

    name: ClassVar[str] = "correlation"

    def each(self, f: Tensor, y: Tensor) -> Tensor:
        """Give the loss of each example."""
        return -y * f


@dataclass(frozen=True)
class CrossEntropy:
    """−log softmax(f)_label, one output a class."""

    name: ClassVar[str] = "cross_entropy"

    def n_outputs(self, n_classes: int) -> int:
        """One a class."""
        if n_classes < 2:
            raise UserError(
                f"The loss cross_entropy needs classes, but the task has {n_classes}. Use square."
            )
        return n_classes

    def __call__(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Give each run's loss, shape (run,)."""
        log_probability = outputs.log_softmax(dim=-1)
        chosen = log_probability.gather(-1, labels.long().unsqueeze(-1))
        return -chosen.squeeze(-1).mean(dim=1)

    def wrong(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Say where the largest output is not the label's, or none is the largest."""
        return (outputs.argmax(dim=-1) != labels) | outputs.isnan().any(dim=-1)


LOSSES: dict[str, type] = {
    loss.name: loss for loss in (Hinge, Square, Logistic, Correlation, CrossEntropy)
}
