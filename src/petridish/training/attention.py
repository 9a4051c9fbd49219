"""Instruments for attention, and for the loss of strategies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from petridish.choices import describe
from petridish.errors import UserError, check_whole, nearest, require
from petridish.tasks import HasStrategies
from petridish.training.readings import Instead, Instrument, Reading

if TYPE_CHECKING:
    from torch import Tensor

    from petridish.training.spec import RunSpec

TRUTH = "truth"


def attention(
    reading: Reading, part: str, on: str, n: int, instead: Instead | None = None
) -> Tensor:
    """Return the shares of attention that pass through a part, (example, …, position, token)."""
    shares = reading.of_network(part, on, n, instead)
    require(
        shares.dim() >= 3 and shares.shape[-1] == shares.shape[-2],
        f"The part {part!r} of the model {describe(reading.spec.model)} puts out the shape "
        f"{tuple(shares.shape)}, and attention is read as (example, position, token). Name "
        "another part.",
    )
    return shares


@dataclass(frozen=True)
class BackAttention(Instrument):
    """The attention of each position on the token `back` places before it, above chance.

    The mean over examples, heads and positions of (share − chance) / (1 − chance), where chance is
    attention spread evenly over the tokens up to the position: 0 for even attention whatever the
    length, 1 where all attention is on that token. Positions without such a token are left out,
    and the first, which has no choice.

    Attributes
    ----------
    part : str
        The part of the module that shares of causal attention pass through.
    back : int
        Places before the position; 0 is the token itself.
    on, n : str, int
        The sample, and how many of its examples are read.
    """

    name: ClassVar[str] = "back_attention"

    part: str = "attention1.pattern"
    back: int = 1
    on: str = "test"
    n: int = 64

    def __post_init__(self) -> None:
        check_whole("BackAttention", 0, back=self.back)
        check_whole("BackAttention", 1, n=self.n)

    @property
    def label(self) -> str:
        """`attention1_back1` for the previous token in the first layer."""
        return f"{self.part.removesuffix('.pattern')}_back{self.back}"

    def read(self, reading: Reading) -> float:
        """Return the mean."""
        shares = attention(reading, self.part, self.on, self.n).numpy()
        first, t = max(self.back, 1), shares.shape[-1]
        require(
            first < t,
            f"BackAttention: back={self.back}, and no token of {t} has another so far before it. "
            "Lower back.",
        )
        places = np.arange(first, t)
        chance = 1 / (places + 1)
        there = shares[..., places, places - self.back].astype(np.float64)
        return float(((there - chance) / (1 - chance)).mean())


@dataclass(frozen=True)
class AttentionMap(Instrument):
    """The shares of attention of one example, kept as an array: the last `size` positions.

    Row i is what position i attends to, one column per token; heads come first where there are
    several. Tokens before the last `size` are left out, so that a row may sum to less than 1.

    Attributes
    ----------
    part : str
        The part of the module that shares of attention pass through.
    size : int
        Positions, at most all.
    on : str
        The sample whose first example is read: the same input at every step.
    at : tuple of int, optional
        Steps at which it is read, if not at every evaluation.
    """

    name: ClassVar[str] = "attention_map"

    part: str = "attention1.pattern"
    size: int = 8
    on: str = "test"
    at: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        check_whole("AttentionMap", 1, size=self.size)

    @property
    def label(self) -> str:
        """`attention1_map` for the first layer."""
        return f"{self.part.removesuffix('.pattern')}_map"

    def read(self, reading: Reading) -> NDArray[Any]:
        """Return the corner of the map."""
        shares = attention(reading, self.part, self.on, 1)[0]
        return np.array(shares[..., -self.size :, -self.size :].numpy())


@dataclass(frozen=True)
class StrategyLoss(Instrument):
    """KL(truth ‖ strategy), the mean over a sample at its last position.

    It does not depend on the weights and is read once: the `KL("truth")` of a network that answers
    like the strategy, on the same examples.
    """

    name: ClassVar[str] = "strategy_loss"

    strategy: str = "unigram"
    on: str = "test"
    at: tuple[int, ...] | None = (0,)

    @property
    def label(self) -> str:
        """`test_kl_of_unigram`, beside the network's `test_kl_truth`."""
        return f"{self.on}_kl_of_{self.strategy}"

    def check(self, spec: RunSpec) -> None:
        """Refuse a task that does not know the strategy, or not the truth."""
        task = spec.task_of(self.on)
        known = task.strategies if isinstance(task, HasStrategies) else ()
        for strategy in (self.strategy, TRUTH):
            if strategy not in known:
                names = nearest(strategy, known) if known else "It knows none."
                raise UserError(
                    f"StrategyLoss: the task {describe(task)} knows no strategy called "
                    f"{strategy!r}. {names}"
                )

    def read(self, reading: Reading) -> float:
        """Return Σ p log(p / q), the mean over the examples; 0 log 0 is 0."""
        from scipy.special import rel_entr

        task, sample = reading.spec.task_of(self.on), reading.sample(self.on)
        assert isinstance(task, HasStrategies), "the spec was checked"
        answer = task.predict_last if sample.labels.ndim == 3 else task.predict
        p, q = (answer(each, sample) for each in (TRUTH, self.strategy))
        return float(rel_entr(p, q).sum(axis=-1).mean())
