"""Instruments for induction heads: what the second layer attends to, the minimal model's weights.

`effective_positions` has those for relative positions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from petridish.choices import describe
from petridish.errors import check_whole, require
from petridish.models import MinimalAttention
from petridish.tasks import Examples, HasStrategies
from petridish.tasks.domain import Tokens
from petridish.training.attention import TRUTH, attention
from petridish.training.readings import WHOLE, Instead, Instrument, Reading

if TYPE_CHECKING:
    from torch import Tensor

    from petridish.training.spec import RunSpec

Floats = NDArray[np.float64]


def successors(tokens: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which tokens followed an earlier occurrence of each position's token.

    Shape (example, position, token) from (example, position): token j with x_{j−1} = x_p, j ≤ p.
    """
    length = tokens.shape[-1]
    found = np.zeros((*tokens.shape, length), bool)
    found[..., 1:] = tokens[..., :, None] == tokens[..., None, :-1]
    kept: NDArray[np.bool_] = found & np.tri(length, dtype=bool)
    return kept


def exact_one_back(shares: Tensor) -> Tensor:
    """Return attention of the same shape that is all on the previous token; the first on itself."""
    import torch

    exact = torch.zeros_like(shares)
    places = torch.arange(1, shares.shape[-1])
    exact[..., places, places - 1] = 1
    exact[..., 0, 0] = 1
    return exact


@dataclass(frozen=True)
class SuccessorAttention(Instrument):
    """The attention on tokens that followed the current one before, above chance.

    The mean over examples, heads and positions of (mass − chance) / (1 − chance), where chance is
    even attention: 0 for it, 1 where all attention is on such tokens. Positions whose token was not
    seen before are left out.

    A second layer cannot attend so before the first one writes the previous token, whatever its
    own weights are. With `given` the layer is asked what it would do if the first one attended to
    the previous token exactly.

    Attributes
    ----------
    part : str
        The part of the module that shares of causal attention pass through.
    given : str
        The part whose attention is replaced by that on the previous token, if any.
    on, n : str, int
        The sample, and how many of its examples are read.
    """

    name: ClassVar[str] = "successor_attention"

    part: str = "attention2.pattern"
    given: str = ""
    on: str = "test"
    n: int = 64

    def __post_init__(self) -> None:
        check_whole("SuccessorAttention", 1, n=self.n)

    @property
    def label(self) -> str:
        """`attention2_successors`, and `_given_one_back` if the first layer is replaced."""
        given = "_given_one_back" if self.given else ""
        return f"{self.part.removesuffix('.pattern')}_successors{given}"

    def check(self, spec: RunSpec) -> None:
        """Refuse inputs that are no tokens."""
        inputs = spec.domain.inputs
        require(
            isinstance(inputs, Tokens),
            f"SuccessorAttention: the task {describe(spec.task)} has {inputs}. Give a task of "
            "tokens.",
        )

    def read(self, reading: Reading) -> float:
        """Return the mean."""
        instead: Instead = {self.given: exact_one_back} if self.given else {}
        shares = attention(reading, self.part, self.on, self.n, instead)
        followed, chance = reading.shared.of_sample(_Followed(self.n), self.on)
        by_head = shares.view(len(shares), -1, *shares.shape[-2:])  # (example, head, …)
        mass = (by_head * followed[:, None]).sum(dim=-1).double().mean(dim=1).numpy()
        there = chance > 0
        return float(((mass - chance)[there] / (1 - chance[there])).mean())


@dataclass(frozen=True)
class _Followed:
    """Of the first `n` sequences: `successors` as numbers, and their share of earlier tokens."""

    n: int

    def __call__(self, sample: Examples) -> tuple[Tensor, Floats]:
        import torch

        followed = successors(np.asarray(sample.x[0, : self.n]))
        chance: Floats = followed.sum(axis=-1) / np.arange(1, followed.shape[-1] + 1)
        return torch.from_numpy(followed.astype(np.float32)), chance


@dataclass(frozen=True)
class PositionShare(Instrument):
    """The share of one entry in Σ|v| of the minimal model, above that of even entries.

    (share − 1/t) / (1 − 1/t); entry 2, the token before, is what bigrams need [TH Fact 8.3].
    """

    name: ClassVar[str] = "position_share"

    place: int = 2

    def __post_init__(self) -> None:
        check_whole("PositionShare", 1, place=self.place)

    @property
    def label(self) -> str:
        """`position2_share`."""
        return f"position{self.place}_share"

    def check(self, spec: RunSpec) -> None:
        """Refuse other models, and entries that v does not have."""
        _check_minimal(type(self).__name__, spec)
        length = spec.domain.input_shape[0]
        require(
            self.place <= length,
            f"PositionShare: place={self.place}, and sequences have {length} tokens. Lower place.",
        )

    def read(self, reading: Reading) -> float:
        """Return the share."""
        sizes = np.abs(np.asarray(reading.now["positions"], np.float64))
        return _above_even(float(sizes[self.place - 1]), float(sizes.sum()), 1 / len(sizes))


@dataclass(frozen=True)
class DiagonalShare(Instrument):
    """The share of the diagonal in Σ|W_k| of the minimal model, above that of an even matrix.

    (share − 1/k) / (1 − 1/k): 0 for equal entries, 1 for a diagonal matrix, 0 where all are 0.
    """

    name: ClassVar[str] = "diagonal_share"

    @property
    def label(self) -> str:
        """`key_diagonal_share`."""
        return "key_diagonal_share"

    def check(self, spec: RunSpec) -> None:
        """Refuse other models."""
        _check_minimal(type(self).__name__, spec)

    def read(self, reading: Reading) -> float:
        """Return the share."""
        sizes = np.abs(np.asarray(reading.now["key"], np.float64))
        return _above_even(float(np.trace(sizes)), float(sizes.sum()), 1 / len(sizes))


@dataclass(frozen=True)
class KeyMatrix(Instrument):
    """W_k of the minimal model, kept as an array (k, k): row x is what a token x asks for.

    Attributes
    ----------
    at : tuple of int, optional
        Steps at which it is read, if not at every evaluation.
    """

    name: ClassVar[str] = "key_matrix"

    at: tuple[int, ...] | None = None

    @property
    def label(self) -> str:
        """`key_matrix`."""
        return "key_matrix"

    def check(self, spec: RunSpec) -> None:
        """Refuse other models."""
        _check_minimal(type(self).__name__, spec)

    def read(self, reading: Reading) -> NDArray[Any]:
        """Return the matrix."""
        return np.array(reading.now["key"])


def _above_even(part: float, whole: float, chance: float) -> float:
    share = part / whole if whole > 0 else chance
    return (share - chance) / (1 - chance)


def _check_minimal(owner: str, spec: RunSpec) -> None:
    require(
        isinstance(spec.model, MinimalAttention),
        f"{owner}: it reads the minimal model, and this run has {describe(spec.model)}. Use "
        "minimal_attention.",
    )


@dataclass(frozen=True)
class LossByPosition(Instrument):
    """KL(truth ‖ network) at every position, the mean over `n` examples of a sample: an array."""

    name: ClassVar[str] = "loss_by_position"

    on: str = "test"
    n: int = 128
    at: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        check_whole("LossByPosition", 1, n=self.n)

    @property
    def label(self) -> str:
        """`test_loss_by_position`."""
        return f"{self.on}_loss_by_position"

    def check(self, spec: RunSpec) -> None:
        """Refuse a task that does not know the truth at every position."""
        task = spec.task_of(self.on)
        known = isinstance(task, HasStrategies) and TRUTH in task.strategies
        target = spec.domain.target
        require(
            known and getattr(target, "positions", None) is not None,
            f"LossByPosition: the task {describe(task)} knows no true distribution at every "
            "position. Give such as markov(3, 100).",
        )

    def read(self, reading: Reading) -> NDArray[Any]:
        """Return Σ p log(p / q) of each position."""
        from scipy.special import rel_entr

        task, sample = reading.spec.task_of(self.on), reading.sample(self.on)
        assert isinstance(task, HasStrategies), "the spec was checked"
        truth = task.predict(TRUTH, sample)[0, : self.n]
        outputs = reading.of_network(WHOLE, self.on, self.n)
        q = outputs.double().softmax(dim=-1).numpy()
        mean: Floats = rel_entr(truth, q).sum(axis=-1).mean(axis=0)
        return mean
