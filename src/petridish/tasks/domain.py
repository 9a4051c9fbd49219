"""What a task's inputs and targets are: all that models, losses and metrics need to know of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError, check_whole
from petridish.values import settle


@dataclass(frozen=True)
class Bits:
    """Inputs in {−1, +1}^n."""

    n: int

    def __post_init__(self) -> None:
        check_whole("Bits", 1, n=self.n)


@dataclass(frozen=True)
class OneHot:
    """Inputs in {0, 1}^n, as many ones in each: two one-hot vectors of 5 entries are (10, 2)."""

    n: int
    ones: int = 1

    def __post_init__(self) -> None:
        check_whole("OneHot", 1, n=self.n, ones=self.ones)


@dataclass(frozen=True)
class Reals:
    """Inputs of real numbers: (50,) for vectors, (3, 32, 32) for images."""

    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        settle(self)
        if not isinstance(self.shape, tuple):
            object.__setattr__(self, "shape", (self.shape,))
        for size in self.shape:
            check_whole("Reals", 1, shape=size)

    @property
    def n(self) -> int:
        """How many numbers an input has."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class Tokens:
    """Inputs that are sequences of whole numbers 0 … vocabulary − 1."""

    vocabulary: int
    length: int

    def __post_init__(self) -> None:
        check_whole("Tokens", 1, vocabulary=self.vocabulary, length=self.length)

    @property
    def n(self) -> int:
        """The length of a sequence."""
        return self.length


@dataclass(frozen=True)
class Classes:
    """Labels 0 … k − 1, one per example or one at each of its positions; −1 stands for none.

    A label −1 counts in no loss and in no metric. With two classes, class 0 is y = +1 and class 1
    is y = −1: a label is a bit like an input's.
    """

    k: int
    positions: int | None = None

    def __post_init__(self) -> None:
        check_whole("Classes", 2, k=self.k)
        if self.positions is not None:
            check_whole("Classes", 1, positions=self.positions)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of an example's labels."""
        return () if self.positions is None else (self.positions,)

    def __str__(self) -> str:
        return f"{self.k} classes" + ("" if self.positions is None else " at every position")


@dataclass(frozen=True)
class Values:
    """Real targets, d numbers per example."""

    d: int = 1

    def __post_init__(self) -> None:
        check_whole("Values", 1, d=self.d)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of an example's targets."""
        return (self.d,)

    def __str__(self) -> str:
        return "real targets"


Inputs = Bits | OneHot | Reals | Tokens
Target = Classes | Values


@dataclass(frozen=True)
class Domain:
    """The inputs and the target of a task: `Domain(Bits(50), Classes(2))` is a parity's."""

    inputs: Inputs
    target: Target

    def __post_init__(self) -> None:
        if not isinstance(self.inputs, Inputs):
            raise UserError(
                f"Domain: inputs={self.inputs!r}. Give Bits(n), OneHot(n, ones), Reals(shape) or "
                "Tokens(vocabulary, length)."
            )
        if not isinstance(self.target, Target):
            raise UserError(
                f"Domain: target={self.target!r}. Give Classes(k), Classes(k, positions) or "
                "Values(d)."
            )

    @property
    def n_inputs(self) -> int:
        """Length of an input: bits, numbers or tokens."""
        return self.inputs.n

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of an input."""
        return self.inputs.shape if isinstance(self.inputs, Reals) else (self.inputs.n,)

    @property
    def n_classes(self) -> int:
        """Number of classes; 0 for real targets."""
        return self.target.k if isinstance(self.target, Classes) else 0

    def check_labels(self, labels: NDArray[Any], owner: str) -> None:
        """Refuse labels (run, example, …) that are not what the target says; `owner` drew them."""
        expected = self.target.shape
        if labels.ndim < 2 or labels.shape[2:] != expected:
            places = "".join(f", {size}" for size in expected)
            raise UserError(
                f"The task {owner} drew labels of shape {labels.shape}, and {self.target} ask for "
                f"(run, example{places}). Return such labels from draw, or state another domain."
            )
        if isinstance(self.target, Values):
            if labels.dtype.kind != "f":
                raise UserError(
                    f"The task {owner} drew targets of the type {labels.dtype}, and its domain "
                    "has real targets. Return floats from draw."
                )
            if not np.isfinite(labels).all():
                raise UserError(
                    f"The task {owner} drew a target that is no finite number. A target cannot be "
                    "missing, as a class can: leave such examples out of draw."
                )
            return
        if labels.dtype.kind not in "iub":
            raise UserError(
                f"The task {owner} drew labels of the type {labels.dtype}, and {self.target} are "
                "whole numbers. Return integers from draw."
            )
        if labels.size:
            least, most = int(labels.min()), int(labels.max())
            if least < -1 or most >= self.target.k:
                wrong = least if least < -1 else most
                raise UserError(
                    f"The task {owner} drew the label {wrong}, and its domain has the classes 0 to "
                    f"{self.target.k - 1}, and -1 for no label. Return these from draw, or state "
                    "another domain."
                )


def one_answer(owner: str, domain: Domain) -> int:
    """Return the number of inputs of a model with one output vector per example, or refuse.

    Such a model multiplies its inputs by weights; tokens are names, not numbers.
    """
    if isinstance(domain.inputs, Tokens):
        raise UserError(
            f"{owner} multiplies its inputs by weights, and the task's inputs are tokens. Give a "
            "model that embeds them."
        )
    check_one_label(owner, domain)
    return domain.n_inputs


def check_one_label(owner: str, domain: Domain) -> None:
    """Refuse labels at every position for a model with one output vector per example."""
    if isinstance(domain.target, Classes) and domain.target.positions is not None:
        raise UserError(
            f"{owner} has one answer per example, and the task has labels at "
            f"{domain.target.positions} positions. Give a model that answers at every position."
        )


def token_inputs(owner: str, domain: Domain) -> Tokens:
    """Return the inputs of a model that embeds tokens, or refuse other inputs."""
    if not isinstance(domain.inputs, Tokens):
        raise UserError(
            f"{owner} embeds tokens, and the task's inputs are {domain.inputs}. Give a task of "
            "tokens."
        )
    return domain.inputs


def numbers(labels: NDArray[Any]) -> NDArray[Any]:
    """Return labels as engines take them: classes as int64, of which −1 can be one."""
    return labels if labels.dtype.kind == "f" else labels.astype(np.int64)
