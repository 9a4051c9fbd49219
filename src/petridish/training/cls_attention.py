"""Instruments for attention with one query, at a token [CLS] behind the inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from petridish.choices import describe
from petridish.errors import UserError, check_one_of, check_whole, require
from petridish.tasks.base import HasSupport
from petridish.training.readings import Instrument, Reading

if TYPE_CHECKING:
    from petridish.training.spec import RunSpec

Tokens = Literal["relevant", "irrelevant", "cls"]


def cls_shares(reading: Reading, part: str, on: str, n: int) -> NDArray[Any]:
    """Return how [CLS] attends to the inputs and, last, to itself, (example, head, token)."""
    shares = reading.capture(part, on, n)
    tokens = reading.sample(on).x.shape[-1] + 1
    require(
        shares.dim() == 3 and shares.shape[-1] == tokens,
        f"The part {part!r} of the model {describe(reading.spec.model)} puts out the shape "
        f"{tuple(shares.shape)}, and the attention of [CLS] is read as (example, head, "
        f"{tokens} tokens). Name another part.",
    )
    found: NDArray[Any] = shares.double().numpy()
    return found


@dataclass(frozen=True)
class ClsAttention(Instrument):
    """The share of its attention that [CLS] has on some tokens, the mean over examples and heads.

    The shares of relevant bits, of irrelevant bits and of [CLS] itself add up to 1.

    Attributes
    ----------
    of : "relevant", "irrelevant" or "cls"
        The tokens.
    part : str
        The part of the module that the shares pass through.
    on, n : str, int
        The sample, and how many of its examples are read.
    """

    name: ClassVar[str] = "cls_attention"

    of: Tokens = "irrelevant"
    part: str = "pattern"
    on: str = "test"
    n: int = 100
    at: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        check_one_of("ClsAttention", get_args(Tokens), of=self.of)
        check_whole("ClsAttention", 1, n=self.n)

    @property
    def label(self) -> str:
        """`attention_irrelevant` for the irrelevant bits."""
        return f"attention_{self.of}"

    def check(self, spec: RunSpec) -> None:
        """Refuse a task without relevant bits."""
        if not isinstance(task := spec.task_of(self.on), HasSupport):
            raise UserError(
                f"ClsAttention: the task {describe(task)} has no relevant bits. Give a task on a "
                "support, such as biased_and."
            )

    def read(self, reading: Reading) -> float:
        """Return the mean."""
        shares = cls_shares(reading, self.part, self.on, self.n).mean(axis=(0, 1))
        if self.of == "cls":
            return float(shares[-1])
        task = reading.spec.task_of(self.on)
        assert isinstance(task, HasSupport), "the spec was checked"
        chosen = np.zeros(len(shares) - 1, np.bool_)
        chosen[task.supports([reading.spec.seed])[0]] = True
        return float(shares[:-1][chosen if self.of == "relevant" else ~chosen].sum())


@dataclass(frozen=True)
class ClsAttentionMap(Instrument):
    """How [CLS] attends to every token, kept as an array (example, head, token), itself last.

    Attributes
    ----------
    part : str
        The part of the module that the shares pass through.
    on, n : str, int
        The sample, and how many of its examples are kept.
    at : tuple of int, optional
        Steps at which it is read, if not at every evaluation.
    """

    name: ClassVar[str] = "cls_attention_map"

    part: str = "pattern"
    on: str = "test"
    n: int = 100
    at: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        check_whole("ClsAttentionMap", 1, n=self.n)

    def read(self, reading: Reading) -> NDArray[Any]:
        """Return the shares."""
        return cls_shares(reading, self.part, self.on, self.n)
