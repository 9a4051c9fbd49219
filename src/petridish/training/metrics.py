"""Metrics: means over the examples of a sample; and the thresholds at which a run stops.

A metric is measured at every evaluation, on the sample that it names: the held-out one ("test"),
the training sample ("train"), or one of `Evaluation.samples`. Its curve is called
`<sample>_<label>`: `test_error`, `train_squared_error`, `iid_kl_truth`. What is no mean over
examples is an instrument.
"""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from petridish.choices import describe
from petridish.errors import UserError, check_one_of, nearest
from petridish.tasks.base import Examples, HasParts, HasStrategies, Task
from petridish.tasks.domain import Classes, Domain, Values
from petridish.training.class_outputs import classes_first, largest_class
from petridish.training.losses import Loss, MeanOfExamples
from petridish.values import Gone

if TYPE_CHECKING:
    from torch import Tensor

    from petridish.training.spec import RunSpec

Facts = Mapping[str, "Tensor"]
Positions = Literal["all", "last"]


class Metric(ABC):
    """A mean over the examples of the sample `on`.

    A new metric is a frozen dataclass that inherits from this class, with a `name` and the method
    `each`; with a field `on` if it measures other samples than "test".
    """

    name: ClassVar[str]
    on: str = "test"

    @property
    def label(self) -> str:
        """Its name in curves, after that of the sample; unique in a run."""
        return self.name

    @property
    def column(self) -> str:
        """The name of its curve."""
        return f"{self.on}_{self.label}"

    def check(self, spec: RunSpec) -> None:  # noqa: B027 - most metrics fit every run
        """Refuse a run that it does not fit."""

    def counts(self, domain: Domain) -> bool:
        """Return whether the value of every labelled example is 0 or 1: see `training.screen`."""
        return False

    def facts(self, task: Task, examples: Examples) -> dict[str, NDArray[Any]]:
        """Return what `each` needs of the examples, shape (run, example, …); asked once per run."""
        return {}

    @property
    def reads_last(self) -> bool:
        """Whether `each` reads outputs at the last position alone: it may be given no others."""
        return False

    @abstractmethod
    def each(self, outputs: Tensor, labels: Tensor, facts: Facts) -> Tensor:
        """Return the value of each example, shape (run, example); NaN for one that is left out.

        Outputs are (run, example, [position,] output), labels as losses have them.
        """


@dataclass(frozen=True)
class Error(Metric):
    """The share of wrong classes.

    With one output its sign is the class, and 0 is wrong; with one output per class the largest is
    the class. NaN is wrong.

    Attributes
    ----------
    part : str, optional
        Of a mixture: only the examples of this part count.
    positions : "all" or "last"
        Of labels at every position: the mean over an example's labels, or its last position alone.
    """

    name: ClassVar[str] = "error"

    on: str = "test"
    part: str | None = None
    positions: Positions = "all"

    def __post_init__(self) -> None:
        check_one_of(type(self).__name__, ("all", "last"), positions=self.positions)

    @property
    def label(self) -> str:
        """`error`, with the part and «last» if they are named."""
        return _joined("error", self.part, "last" if self.positions == "last" else None)

    def check(self, spec: RunSpec) -> None:
        """Refuse real targets, outputs that name no class, and parts that the task lacks."""
        target = spec.domain.target
        if not isinstance(target, Classes):
            raise UserError(
                "The metric error counts wrong classes, and the task "
                f"{describe(spec.task)} has real targets. Use squared_error."
            )
        if spec.n_outputs not in (target.k, *((1,) if target.k == 2 else ())):
            raise UserError(
                f"The metric error reads a class off one output per class, and with the loss "
                f"{describe(spec.training.loss)} there are {spec.n_outputs} outputs for "
                f"{target}. Give another metric."
            )
        _check_needed(self, spec, "last")
        if self.part is not None:
            task = spec.task_of(self.on)
            parts = task.parts if isinstance(task, HasParts) else ()
            if self.part not in parts:
                known = nearest(self.part, parts) if parts else "It has no parts."
                raise UserError(
                    f"Error: part={self.part!r}, but the task {describe(task)} has no such part. "
                    f"{known}"
                )

    def counts(self, domain: Domain) -> bool:
        """Return whether one label of every example counts."""
        assert isinstance(domain.target, Classes), "the spec was checked"
        return self.part is None and (domain.target.positions is None or self.positions == "last")

    def facts(self, task: Task, examples: Examples) -> dict[str, NDArray[Any]]:
        """Return which examples are of the part."""
        if self.part is None:
            return {}
        assert isinstance(task, HasParts), "the spec was checked"
        return {f"part {self.part}": examples.facts["part"] == task.parts.index(self.part)}

    @property
    def reads_last(self) -> bool:
        """Whether the last position alone counts."""
        return self.positions == "last"

    def each(self, outputs: Tensor, labels: Tensor, facts: Facts) -> Tensor:
        """Return 1 for a wrong class, or the share of wrong ones among an example's labels."""
        if self.positions == "last" and labels.dim() == 3:
            outputs, labels = outputs[:, :, -1], labels[:, :, -1]
        if outputs.shape[-1] == 1:
            wrong = ~(outputs.squeeze(-1) * (1 - 2 * labels) > 0)
        elif outputs.dim() == 4:
            wrong = largest_class(classes_first(outputs)) != labels
        else:
            wrong = (outputs.argmax(dim=-1) != labels) | outputs.isnan().any(dim=-1)
        value = wrong.to(outputs.dtype).where(labels >= 0, math.nan)
        if value.dim() == 3:
            value = value.nanmean(dim=2)
        if self.part is not None:
            value = value.where(facts[f"part {self.part}"], math.nan)
        return value


@dataclass(frozen=True)
class SquaredError(Metric):
    """‖f − y‖² of real targets."""

    name: ClassVar[str] = "squared_error"

    on: str = "test"

    def check(self, spec: RunSpec) -> None:
        """Refuse classes, and other numbers of outputs than targets."""
        target = spec.domain.target
        if not isinstance(target, Values):
            raise UserError(
                f"The metric squared_error needs real targets, and the task {describe(spec.task)} "
                f"has {target}. Use error."
            )
        if spec.n_outputs != target.d:
            raise UserError(
                f"The metric squared_error compares {target.d} targets with as many outputs, and "
                f"the loss {describe(spec.training.loss)} asks for {spec.n_outputs}. Give another "
                "metric."
            )

    def each(self, outputs: Tensor, labels: Tensor, facts: Facts) -> Tensor:
        """Return the squared distance of each example."""
        return (outputs - labels).square().sum(dim=-1)


@dataclass(frozen=True)
class MeanLoss(Metric):
    """A loss on a whole sample, the run's own or another; its curve has the loss's name."""

    name: ClassVar[str] = "mean_loss"

    loss: Loss
    on: str = "test"

    @property
    def label(self) -> str:
        """The name of the loss."""
        return self.loss.name

    def check(self, spec: RunSpec) -> None:
        """Refuse a loss that is no mean over examples, or needs other outputs."""
        if not (isinstance(self.loss, MeanOfExamples) and self.loss.is_mean):
            raise UserError(
                f"MeanLoss: the loss {describe(self.loss)} is no mean over examples. Inherit from "
                "MeanOfExamples, or measure it by an instrument."
            )
        needed = self.loss.n_outputs(spec.domain)
        if needed != spec.n_outputs:
            raise UserError(
                f"MeanLoss: the loss {describe(self.loss)} needs {needed} outputs, and the run's "
                f"{describe(spec.training.loss)} asks for {spec.n_outputs}. Give a loss that "
                "needs as many."
            )

    def each(self, outputs: Tensor, labels: Tensor, facts: Facts) -> Tensor:
        """Return the loss of each example, the mean over its labels."""
        assert isinstance(self.loss, MeanOfExamples), "the spec was checked"
        value = self.loss.each(outputs, labels)
        if not labels.is_floating_point():
            value = value.where(labels >= 0, math.nan)
        return value if value.dim() == 2 else value.nanmean(dim=2)


@dataclass(frozen=True)
class KL(Metric):
    """KL(strategy ‖ network), the mean over the examples, at the last position or at all.

    A strategy is one that the task knows (`HasStrategies`): the true next-token distribution, or
    that of a simpler statistic.
    """

    name: ClassVar[str] = "kl"

    strategy: str
    on: str = "test"
    positions: Positions = "last"

    def __post_init__(self) -> None:
        check_one_of(type(self).__name__, ("all", "last"), positions=self.positions)

    @property
    def label(self) -> str:
        """`kl_<strategy>`, with «all» if all positions count."""
        return _joined("kl", self.strategy, "all" if self.positions == "all" else None)

    def check(self, spec: RunSpec) -> None:
        """Refuse a task that does not know the strategy, and outputs that are no distribution."""
        _check_needed(self, spec, "all")
        task = spec.task_of(self.on)
        if not isinstance(task, HasStrategies):
            raise UserError(
                f"KL: the task {describe(task)} knows no strategies to compare with. Give a task "
                "that inherits from HasStrategies."
            )
        if self.strategy not in task.strategies:
            raise UserError(
                f"KL: the task {describe(task)} knows no strategy called {self.strategy!r}. "
                f"{nearest(self.strategy, task.strategies)}"
            )
        if spec.n_outputs != spec.domain.n_classes:
            raise UserError(
                f"KL: it compares distributions over {spec.domain.n_classes} classes, and the "
                f"loss {describe(spec.training.loss)} asks for {spec.n_outputs} outputs. Use "
                "cross_entropy."
            )

    @property
    def _fact(self) -> str:
        return f"strategy {self.label}"

    def facts(self, task: Task, examples: Examples) -> dict[str, NDArray[Any]]:
        """Return what the strategy predicts: see `known`."""
        assert isinstance(task, HasStrategies), "the spec was checked"
        last = examples.labels.ndim == 3 and self.positions == "last"
        answer = task.predict_last if last else task.predict
        return self.known(answer(self.strategy, examples))

    def known(self, predicted: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """Return the facts of predictions (run, example, [position,] class): p and log p.

        Classes lie before positions, as in `each`, and log 0 counts as 0.
        """
        p = np.asarray(predicted, np.float64)
        p = p.swapaxes(2, 3) if p.ndim == 4 else p
        logs = np.log(p, out=np.zeros(p.shape), where=p > 0)
        both = {self._fact: p, f"log {self._fact}": logs}
        return {name: np.ascontiguousarray(each, np.float32) for name, each in both.items()}

    @property
    def reads_last(self) -> bool:
        """Whether the last position alone counts."""
        return self.positions == "last"

    def each(self, outputs: Tensor, labels: Tensor, facts: Facts) -> Tensor:
        """Return Σ p log(p / q) of each example."""
        if outputs.dim() == 4 and self.positions == "last":
            outputs = outputs[:, :, -1:]
        outputs = classes_first(outputs) if outputs.dim() == 4 else outputs
        p, logs = (facts[name].to(outputs.dtype) for name in (self._fact, f"log {self._fact}"))
        value = (p * (logs - outputs.log_softmax(dim=2))).sum(dim=2)
        there = labels[:, :, -1:] if labels.dim() == 3 and self.positions == "last" else labels
        value = value.where(there >= 0, math.nan)
        return value if value.dim() == 2 else value.nanmean(dim=2)


METRICS: dict[str, type] = {m.name: m for m in (Error, SquaredError, MeanLoss, KL)}


@dataclass(frozen=True)
class Threshold:
    """A value for a metric to reach: it stops a run, or its step is kept (`Evaluation.reached`).

    `Below` and `Above` are its two kinds, each with a comparison and its strict form.
    """

    name: ClassVar[str]
    compare: ClassVar[tuple[Callable[[float, float], bool], Callable[[float, float], bool]]]
    words: ClassVar[tuple[str, str]]
    slack: ClassVar[float]  # against rounding, of a count

    metric: Metric
    value: float
    strict: bool = False

    def __post_init__(self) -> None:
        kind = type(self).__name__
        if not isinstance(self.metric, Metric | Gone):
            raise UserError(
                f"{kind}: metric={self.metric!r} is no metric. "
                f"Give for example {kind}(Error(), 0.1)."
            )
        number = isinstance(self.value, Real) and not isinstance(self.value, bool)  # NumPy's too
        if not number or math.isnan(self.value):
            raise UserError(f"{kind}: value={self.value!r}. Give a number.")
        object.__setattr__(self, "value", float(self.value))

    @property
    def column(self) -> str:
        """The name of the step at which it was reached, such as `test_error <= 0.1`."""
        return f"{self.metric.column} {self.words[self.strict]} {self.value:g}"

    def holds(self, number: float) -> bool:
        """Return whether a number is beyond the value; NaN never is."""
        return self.compare[self.strict](number, self.value)

    def holds_count(self, count: int, of: int) -> bool:
        """Return whether a share is beyond the value, whatever its rounding: 3 of 10 are 0.3."""
        slack = -self.slack if self.strict else self.slack
        return self.compare[self.strict](count, self.value * of + slack)


@dataclass(frozen=True)
class Below(Threshold):
    """The condition that a metric is at most the value, or below it if `strict`."""

    name: ClassVar[str] = "below"
    compare = (operator.le, operator.lt)
    words = ("<=", "<")
    slack = 1e-9


@dataclass(frozen=True)
class Above(Threshold):
    """The condition that a metric is at least the value, or above it if `strict`."""

    name: ClassVar[str] = "above"
    compare = (operator.ge, operator.gt)
    words = (">=", ">")
    slack = -1e-9


THRESHOLDS: dict[str, type] = {kind.name: kind for kind in (Below, Above)}


def _check_needed(metric: Error | KL, spec: RunSpec, beside: Positions) -> None:
    """Refuse positions beside the default where an example has one label."""
    target = spec.domain.target
    if metric.positions == beside and isinstance(target, Classes) and target.positions is None:
        raise UserError(
            f"{type(metric).__name__}: positions={beside!r} has no effect, because the task "
            f"{describe(spec.task)} has one label per example. Leave it out."
        )


def _joined(*parts: str | None) -> str:
    return "_".join(part for part in parts if part is not None)
