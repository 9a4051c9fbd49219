"""Instruments for induction heads: what the second layer attends to, and relative positions.

Models with relative positions are `AttentionOnly` (v of each layer, seen through queries) and
`MinimalAttention` (v itself) [TH (8.5), (8.8)].
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from petridish.choices import describe
from petridish.errors import UserError, check_whole, require
from petridish.models import AttentionOnly, MinimalAttention
from petridish.tasks import HasStrategies
from petridish.tasks.domain import Tokens
from petridish.training.attention import TRUTH, attention
from petridish.training.readings import Instrument, Reading

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
        if self.given:
            parts = dict(reading.module.named_modules())
            if self.given not in parts:
                raise UserError(
                    f"SuccessorAttention: given={self.given!r}, and the model "
                    f"{describe(reading.spec.model)} has no such part. Give one with attention."
                )
            hook = parts[self.given].register_forward_hook(
                lambda _module, _given, found: exact_one_back(found)
            )
            try:
                shares = attention(reading, self.part, self.on, self.n)
            finally:
                hook.remove()
        else:
            shares = attention(reading, self.part, self.on, self.n)
        followed = successors(np.asarray(reading.sample(self.on).x[0, : self.n]))
        by_head = shares.double().numpy()
        by_head = by_head.reshape(len(by_head), -1, *by_head.shape[-2:])  # (example, head, …)
        mass = (by_head * followed[:, None]).sum(axis=-1).mean(axis=1)  # (example, position)
        chance = followed.sum(axis=-1) / np.arange(1, mass.shape[-1] + 1)
        there = chance > 0
        return float(((mass - chance)[there] / (1 - chance[there])).mean())


def effective_positions(reading: Reading, layer: int = 1) -> Floats:
    """Return what relative positions say of each distance, shape (token, distance).

    Of the minimal model v itself, the same for each token. Of attention, softmax over j of
    e_x W_Q v_jᵀ/√d, the mean over heads: the attention of a token x if keys were 0. The paper
    writes W_K, where (8.5) has positions meet the queries.
    """
    now, model = reading.now, reading.spec.model
    if isinstance(model, MinimalAttention):
        inputs = reading.spec.domain.inputs
        assert isinstance(inputs, Tokens), "the model refuses other inputs"
        return np.tile(np.asarray(now["positions"], np.float64), (inputs.vocabulary, 1))
    assert isinstance(model, AttentionOnly), "the instrument was checked"
    tokens = np.asarray(now["tokens"], np.float64)  # (d, token)
    query = np.asarray(now[f"attention{layer}.query.weight"], np.float64)  # (head · d, d)
    positions = np.asarray(now[f"attention{layer}.positions"], np.float64)  # (head · d, distance)
    found = []
    for head in range(model.heads):
        part = slice(head * model.d, (head + 1) * model.d)
        scores = (query[part] @ tokens).T @ positions[part] / sqrt(model.d)
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        found.append(shares / shares.sum(axis=1, keepdims=True))
    mean: Floats = np.mean(found, axis=0)
    return mean


@dataclass(frozen=True)
class _OfPositions(Instrument):
    """A reading of relative positions."""

    layer: int = 1

    def __post_init__(self) -> None:
        check_whole(type(self).__name__, 1, layer=self.layer)

    def check(self, spec: RunSpec) -> None:
        """Refuse models without relative positions, and layers that they lack."""
        known = isinstance(spec.model, AttentionOnly | MinimalAttention)
        require(
            known,
            f"{type(self).__name__}: the model {describe(spec.model)} has no relative positions "
            "that it can read. Use attention_only or minimal_attention.",
        )
        most = spec.model.layers if isinstance(spec.model, AttentionOnly) else 1
        require(
            self.layer <= most,
            f"{type(self).__name__}: layer={self.layer}, and the model {describe(spec.model)} has "
            f"{most}. Lower layer.",
        )


@dataclass(frozen=True)
class EffectivePositions(_OfPositions):
    """v̂, the mean over tokens: an array of the first `size` distances, the token itself first."""

    name: ClassVar[str] = "effective_positions"

    size: int = 12
    at: tuple[int, ...] | None = None

    @property
    def label(self) -> str:
        """`attention1_positions`."""
        return f"attention{self.layer}_positions"

    def read(self, reading: Reading) -> NDArray[Any]:
        """Return the mean."""
        mean: Floats = effective_positions(reading, self.layer).mean(axis=0)[: self.size]
        return mean


@dataclass(frozen=True)
class EvenOdd(_OfPositions):
    """How far even entries of v̂ exceed odd ones: an odd number of tokens back, against an even one.

    (S₊ − S₋) / (|S₊| + |S₋|) with S₊ = v̂_4 + v̂_6 + v̂_8 and S₋ = (v̂_3 + v̂_9)/2 + v̂_5 + v̂_7, so
    that a straight line gives 0: v̂_1, the token itself, and v̂_2, the one before, are left out. 0
    where all are 0.
    """

    name: ClassVar[str] = "even_odd"

    @property
    def label(self) -> str:
        """`attention1_even_odd`."""
        return f"attention{self.layer}_even_odd"

    def check(self, spec: RunSpec) -> None:
        """Refuse short sequences too."""
        super().check(spec)
        _check_distances(type(self).__name__, spec, 9)

    def read(self, reading: Reading) -> float:
        """Return the contrast."""
        v = effective_positions(reading, self.layer).mean(axis=0)
        even, odd = v[3] + v[5] + v[7], (v[2] + v[8]) / 2 + v[4] + v[6]
        size = abs(even) + abs(odd)
        return float((even - odd) / size) if size > 0 else 0.0


@dataclass(frozen=True)
class PeakRatio(_OfPositions):
    """How far v̂_4 stands above its neighbours, over how far v̂_2 does; 0 where v̂_2 does not.

    v̂_j − (v̂_{j−1} + v̂_{j+1})/2 for j = 4 and j = 2.
    """

    name: ClassVar[str] = "peak_ratio"

    @property
    def label(self) -> str:
        """`attention1_peak_ratio`."""
        return f"attention{self.layer}_peak_ratio"

    def check(self, spec: RunSpec) -> None:
        """Refuse short sequences too."""
        super().check(spec)
        _check_distances(type(self).__name__, spec, 5)

    def read(self, reading: Reading) -> float:
        """Return the ratio."""
        v = effective_positions(reading, self.layer).mean(axis=0)
        second, fourth = (v[j - 1] - (v[j - 2] + v[j]) / 2 for j in (2, 4))
        return float(fourth / second) if second > 0 else 0.0


@dataclass(frozen=True)
class TokenSpread(_OfPositions):
    """How much v̂ depends on the token: the largest total variation between two tokens' v̂."""

    name: ClassVar[str] = "token_spread"

    @property
    def label(self) -> str:
        """`attention1_token_spread`."""
        return f"attention{self.layer}_token_spread"

    def read(self, reading: Reading) -> float:
        """Return the distance: 0 where all tokens agree, 1 where two share nothing."""
        v = effective_positions(reading, self.layer)
        return float(np.abs(v[:, None] - v[None]).sum(axis=-1).max() / 2)


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


def _above_even(part: float, whole: float, chance: float) -> float:
    share = part / whole if whole > 0 else chance
    return (share - chance) / (1 - chance)


def _check_distances(owner: str, spec: RunSpec, least: int) -> None:
    length = spec.domain.input_shape[0]
    require(
        length >= least,
        f"{owner}: it reads {least} distances, and the task {describe(spec.task)} has sequences of "
        f"{length} tokens. Give longer ones.",
    )


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
        q = reading.outputs(self.on, self.n).double().softmax(dim=-1).numpy()
        mean: Floats = rel_entr(truth, q).sum(axis=-1).mean(axis=0)
        return mean
