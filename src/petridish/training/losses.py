"""Losses: one number per run, from the outputs and the labels of its minibatch.

`outputs` are a network's, shape (run, batch, output) or (run, batch, position, output); `labels`
are int64 classes, shape (run, batch) or (run, batch, position), of which −1 is no label, or real
targets (run, batch, d). Margin losses see two classes as y = +1 (class 0) and y = −1 (class 1),
and one output.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Protocol

from petridish.errors import UserError
from petridish.tasks.domain import Classes, Domain, Values
from petridish.training.devices import is_on_host
from petridish.values import LATER, Gone

if TYPE_CHECKING:
    import torch
    from torch import Tensor


class Loss(Hashable, Protocol):
    """A training loss: a frozen dataclass with these names.

    It may be any function of the whole batch. One that is a mean over examples inherits from
    `MeanOfExamples`, and can then be a metric too (`MeanLoss`).
    """

    name: ClassVar[str]

    def n_outputs(self, domain: Domain) -> int:
        """Return how many outputs the network needs, or refuse the domain."""

    def __call__(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of each run, shape (run,)."""


class ReadsUnlabelled(ABC):
    """A loss that also depends on the examples without a label (−1), which other losses ignore."""

    @abstractmethod
    def __call__(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of each run, shape (run,)."""


class MeanOfExamples(ABC):
    """A loss that is the mean over the labelled examples of a batch."""

    @property
    def is_mean(self) -> bool:
        """Whether every example counts the same; class weights make it no mean."""
        return True

    @abstractmethod
    def each(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of each label, shape (run, batch, …); anything where there is none."""

    def __call__(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of each run, shape (run,)."""
        return mean_of_labelled(self.each(outputs, labels), labels)


def mean_of_labelled(each: Tensor, labels: Tensor) -> Tensor:
    """Return the mean of `each` (run, batch, …) over the labels that are there, shape (run,)."""
    if labels.is_floating_point():
        return each.flatten(1).mean(dim=1)
    # On an accelerator a look at the labels would wait for it at every step.
    if not labels.is_signed() or (is_on_host(labels) and int(labels.min()) >= 0):
        return each.flatten(1).mean(dim=1) if each.dim() > 2 else each.mean(dim=1)
    there = labels >= 0
    counted = there.flatten(1).sum(dim=1).clamp(min=1)
    return each.where(there, 0.0).flatten(1).sum(dim=1) / counted


class WeighsClasses(MeanOfExamples):
    """A mean over labelled examples in which classes may have weights.

    With weights it is Σ w_y loss / Σ w_y over the labels y of the batch, as in PyTorch: classes
    that are rare can count as much as the others.
    """

    weights: tuple[float, ...]

    def check_weights(self) -> None:
        """Refuse weights that are no finite numbers of at least 0, or all 0."""
        try:
            weights = tuple(float(weight) for weight in self.weights)
        except (TypeError, ValueError):  # no numbers
            weights = (math.nan,)
        positive = all(0 <= weight < math.inf for weight in weights)
        if not positive or (weights and not any(weights)):
            raise UserError(
                f"{type(self).__name__}: weights={self.weights}. Give one finite number of at "
                "least 0 per class, not all of them 0."
            )
        object.__setattr__(self, "weights", weights)

    def check_classes(self, domain: Domain) -> None:
        """Refuse other weights than one per class."""
        classes = domain.target.k if isinstance(domain.target, Classes) else 0
        if self.weights and len(self.weights) != classes:
            instead = "Give one weight per class." if classes else "Give none."
            raise UserError(
                f"{type(self).__name__}: {len(self.weights)} weights were given, but the task has "
                f"{domain.target}. {instead}"
            )

    @property
    def is_mean(self) -> bool:
        """Whether there are no weights."""
        return not self.weights

    def __call__(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of each run, shape (run,)."""
        if not self.weights:
            return super().__call__(outputs, labels)
        weights = weights_on(self.weights, outputs.dtype, outputs.device)
        weights = weights[labels.long().clamp(min=0)] * (labels >= 0)
        total = (self.each(outputs, labels) * weights).flatten(1).sum(dim=1)
        counted = weights.flatten(1).sum(dim=1)
        # A batch without a label that counts has the loss 0, and no gradient.
        return total / counted.where(counted > 0, 1.0)


@dataclass(frozen=True)
class MarginLoss(MeanOfExamples):
    """A mean of functions of f and y = ±1."""

    name: ClassVar[str]

    def n_outputs(self, domain: Domain) -> int:
        """Return 1: the output f."""
        if domain.target != Classes(2):
            raise UserError(
                f"The loss {self.name} compares the sign of one output with ±1 labels, but the "
                f"task has {domain.target}. {_instead(domain)}"
            )
        return 1

    def each(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of each example."""
        import torch

        # In the outputs' type: the backward pass would convert integers at every use.
        y = torch.rsub(labels.to(outputs.dtype), 1, alpha=2)  # 1 − 2 · label, in one operation
        return self.of_margin(outputs.squeeze(-1), y)

    @abstractmethod
    def of_margin(self, f: Tensor, y: Tensor) -> Tensor:
        """Return the loss of each example from f and y = ±1."""


def _instead(domain: Domain) -> str:
    return "Use square." if isinstance(domain.target, Values) else "Use cross_entropy."


@dataclass(frozen=True)
class Hinge(MarginLoss):
    """max(0, 1 − y f)."""

    name: ClassVar[str] = "hinge"

    def of_margin(self, f: Tensor, y: Tensor) -> Tensor:
        """Return the loss of each example."""
        return (1 - y * f).relu()


@dataclass(frozen=True)
class Square(MarginLoss):
    """(f − y)², with y = ±1 for two classes; for real targets ‖f − y‖²."""

    name: ClassVar[str] = "square"

    def n_outputs(self, domain: Domain) -> int:
        """Return 1 for two classes, the number of real targets else."""
        if isinstance(domain.target, Values):
            return domain.target.d
        return super().n_outputs(domain)

    def each(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of each example."""
        if labels.is_floating_point():
            return (outputs - labels).square().sum(dim=-1)
        return super().each(outputs, labels)

    def of_margin(self, f: Tensor, y: Tensor) -> Tensor:
        """Return the loss of each example."""
        return (f - y).square()


@dataclass(frozen=True)
class Logistic(MarginLoss):
    """log(1 + exp(−y f)), written so that it neither overflows nor loses digits."""

    name: ClassVar[str] = "logistic"

    def of_margin(self, f: Tensor, y: Tensor) -> Tensor:
        """Return the loss of each example."""
        margin = y * f
        return (-margin).relu() + (-margin.abs()).exp().log1p()


@dataclass(frozen=True)
class Correlation(MarginLoss):
    """−y f: unbounded below, for the theory's single steps [HP §5.4]."""

    name: ClassVar[str] = "correlation"

    def of_margin(self, f: Tensor, y: Tensor) -> Tensor:
        """Return the loss of each example."""
        return -y * f


@dataclass(frozen=True)
class Weighted(WeighsClasses):
    """A margin loss in which the two classes have weights.

    Attributes
    ----------
    weights : tuple of float
        Those of y = +1 and y = −1. The loss is Σ w_y loss / Σ w_y over the labels of the batch.
    loss : MarginLoss
        The loss of each example.
    """

    name: ClassVar[str] = "weighted"

    weights: tuple[float, ...] = (1.0, 1.0)
    loss: MarginLoss = Hinge()

    def __post_init__(self) -> None:
        self.check_weights()
        if not isinstance(self.loss, MarginLoss | Gone):
            raise UserError(
                f"Weighted: loss={self.loss!r}. Give a margin loss, such as Hinge(); CrossEntropy "
                "has weights of its own."
            )

    def n_outputs(self, domain: Domain) -> int:
        """Return 1: the output f."""
        self.check_classes(domain)
        return self.loss.n_outputs(domain)

    def each(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of each example, unweighted."""
        return self.loss.each(outputs, labels)


@dataclass(frozen=True)
class CrossEntropy(WeighsClasses):
    """−log softmax(f)_label, one output per class; positions count like examples.

    Attributes
    ----------
    weights : tuple of float
        One per class, or none. The loss is then Σ w_y loss / Σ w_y over the labels y of the batch,
        as in PyTorch: classes that are rare can count as much as the others.
    """

    name: ClassVar[str] = "cross_entropy"

    weights: tuple[float, ...] = field(default=(), metadata=LATER)

    def __post_init__(self) -> None:
        self.check_weights()

    def n_outputs(self, domain: Domain) -> int:
        """Return the number of classes."""
        if not isinstance(domain.target, Classes):
            raise UserError(
                f"The loss cross_entropy needs classes, but the task has {domain.target}. "
                "Use square."
            )
        self.check_classes(domain)
        return domain.target.k

    def each(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return −log of the label's probability, unweighted."""
        log_probability = outputs.log_softmax(dim=-1)
        return -log_probability.gather(-1, labels.clamp(min=0).unsqueeze(-1)).squeeze(-1)


@dataclass(frozen=True)
class BalancedOnUnlabelled(ReadsUnlabelled):
    r"""Cross-entropy of the labelled examples of a batch, plus strength · R of the others.

    R = R₁ + λ R₂ [FL (291)–(293)]: with p the probabilities of an unlabelled example,
    R₁ = Σ_j p̄_j ln p̄_j of their mean p̄ over the batch, least where all classes are equally
    frequent, and R₂ the mean entropy −Σ_j p_j ln p_j of single examples, least where each is
    certain. The text prints R₁ as a mean over the whole of U; in a batch it is that of the batch.
    Without unlabelled examples R is 0.

    Attributes
    ----------
    strength : float
        Of R beside the cross-entropy, which the text leaves at 1.
    certainty : float
        The text's λ, which it does not give.
    """

    name: ClassVar[str] = "balanced_on_unlabelled"

    strength: float = 1.0
    certainty: float = 1.0

    def __post_init__(self) -> None:
        for name in ("strength", "certainty"):
            value = float(getattr(self, name))
            if not 0 <= value < math.inf:
                raise UserError(
                    f"BalancedOnUnlabelled: {name}={value}. Give a finite number of at least 0."
                )
            object.__setattr__(self, name, value)

    def n_outputs(self, domain: Domain) -> int:
        """Return the number of classes."""
        target = domain.target
        if not isinstance(target, Classes) or target.positions is not None:
            raise UserError(
                f"The loss balanced_on_unlabelled needs one class per example, but the task has "
                f"{target}. Use another loss."
            )
        return target.k

    def __call__(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of each run, shape (run,)."""
        labelled = CrossEntropy()(outputs, labels)
        others = (labels < 0)[..., None]
        counted = others.sum(dim=1).clamp(min=1)  # (run, 1)
        logs = outputs.log_softmax(dim=-1)
        p = logs.exp()
        mean = (p * others).sum(dim=1) / counted  # (run, class)
        # The slope of m ln m is infinite at 0: of a class that never appears, and of no examples.
        mean = mean.where(others.any(dim=1), 1.0).clamp(min=1e-30)
        balance = mean.xlogy(mean).sum(dim=-1)
        entropy = -((p * logs) * others).sum(dim=(1, 2)) / counted.squeeze(-1)
        return labelled + self.strength * (balance + self.certainty * entropy)


@dataclass(frozen=True)
class MultiMargin(MeanOfExamples):
    r"""A hinge loss of any number of classes [TH (8.7)].

    :math:`\frac1k \sum_{i \ne y} \max(0, Δ + f_i - f_y)`, one output per class; positions count
    like examples. With a large enough Δ no term is 0, and the loss is linear in the outputs.

    Attributes
    ----------
    delta : float
        The paper's Δ.
    """

    name: ClassVar[str] = "multi_margin"

    delta: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.delta < math.inf:
            raise UserError(f"MultiMargin: delta={self.delta}. Give a finite number above 0.")

    def n_outputs(self, domain: Domain) -> int:
        """Return the number of classes."""
        if not isinstance(domain.target, Classes):
            raise UserError(
                f"The loss multi_margin needs classes, but the task has {domain.target}. "
                "Use square."
            )
        return domain.target.k

    def each(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of each label."""
        own = labels.clamp(min=0).unsqueeze(-1)
        terms = (self.delta + outputs - outputs.gather(-1, own)).relu()
        # The label's own term is Δ: it is taken out, so that its gradient is exactly 0.
        return terms.scatter(-1, own, 0.0).sum(dim=-1) / outputs.shape[-1]


@lru_cache(maxsize=16)  # asked at every step: they are copied to a device once
def weights_on(weights: tuple[float, ...], kind: torch.dtype, device: torch.device) -> Tensor:
    """Return the weights of classes as a tensor."""
    import torch

    return torch.tensor(weights, dtype=kind, device=device)


TAKES_BITS = (Hinge, Square, Logistic, Correlation)
"""Losses that accept the labels of two classes as bytes, without −1."""
LOSSES: dict[str, type] = {
    loss.name: loss
    for loss in (*TAKES_BITS, Weighted, CrossEntropy, BalancedOnUnlabelled, MultiMargin)
}
