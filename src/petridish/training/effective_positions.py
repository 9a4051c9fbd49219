"""Instruments for relative positions: the effective positional encoding v̂ [TH §8.3.2]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from petridish.choices import describe
from petridish.errors import check_whole, require
from petridish.models import AttentionOnly, MinimalAttention
from petridish.models.causal_transformer import CausalTransformer, PublishedInduction
from petridish.tasks.domain import Tokens
from petridish.training.readings import Instrument, Reading

if TYPE_CHECKING:
    from petridish.training.spec import RunSpec

Floats = NDArray[np.float64]
LAYER_NORM = 1e-5  # added to variances, PyTorch's


def effective_positions(reading: Reading, layer: int = 1) -> Floats:
    """Return what relative positions say of each distance, shape (token, distance).

    Of the minimal model v itself, the same for each token. Of attention, softmax over j of
    e_x W_Q v_jᵀ/√d, the mean over heads: the attention of a token x if keys were 0. The paper
    writes W_K, where (8.5) has positions meet the queries; a model whose positions meet the keys is
    read so. With a layer norm, e_x is what it makes of a token's embedding.
    """
    now, model = reading.now, reading.spec.model
    if isinstance(model, MinimalAttention):
        inputs = reading.spec.domain.inputs
        assert isinstance(inputs, Tokens), "the model refuses other inputs"
        return np.tile(np.asarray(now["positions"], np.float64), (inputs.vocabulary, 1))
    parts = _parts(model, now, layer)
    width = parts.table.shape[1] // parts.heads
    found = []
    for head in range(parts.heads):
        part = slice(head * width, (head + 1) * width)
        scores = (parts.tokens @ parts.matrix[part].T) @ parts.table[:, part].T / sqrt(width)
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        found.append(shares / shares.sum(axis=1, keepdims=True))
    mean: Floats = np.mean(found, axis=0)
    return mean


@dataclass(frozen=True)
class _Parts:
    """Weights of a layer: what relative positions and tokens meet in.

    `tokens` (token, d), `matrix` (width, d), `table` (distance, width), where the heads' parts of
    the width lie side by side.
    """

    tokens: Floats
    matrix: Floats
    table: Floats
    heads: int


def _parts(model: object, now: Mapping[str, NDArray[Any]], layer: int) -> _Parts:
    def named(name: str) -> Floats:
        return np.asarray(now[name], np.float64)

    own = f"attention{layer}"
    if isinstance(model, AttentionOnly):
        tokens, table = named("tokens").T, named(f"{own}.positions").T
        return _Parts(tokens, named(f"{own}.query.weight"), table, model.heads)
    assert isinstance(model, CausalTransformer | PublishedInduction), "the instrument was checked"
    tokens, table = named("tokens.weight"), named(f"{own}.positions")
    if f"norm{layer}.weight" in now:
        spread = np.sqrt(tokens.var(axis=1, keepdims=True) + LAYER_NORM)
        tokens = (tokens - tokens.mean(axis=1, keepdims=True)) / spread
        tokens = tokens * named(f"norm{layer}.weight") + named(f"norm{layer}.bias")
    one = isinstance(model, PublishedInduction) and layer > 1  # its second layer has one head
    heads = 1 if one else model.heads
    return _Parts(tokens, named(f"{own}.{model.coupling}.weight"), table, heads)


def _layers(model: object) -> int:
    """Return how many layers of relative positions a model has."""
    if isinstance(model, MinimalAttention):
        return 1
    if isinstance(model, PublishedInduction):
        return 2
    if isinstance(model, CausalTransformer):
        return model.layers if model.positions == "relative" else 0
    return model.layers if isinstance(model, AttentionOnly) else 0


@dataclass(frozen=True)
class _OfPositions(Instrument):
    """A reading of relative positions."""

    layer: int = 1

    def __post_init__(self) -> None:
        check_whole(type(self).__name__, 1, layer=self.layer)

    def check(self, spec: RunSpec) -> None:
        """Refuse models without relative positions, and layers that they lack."""
        most = _layers(spec.model)
        require(
            most > 0,
            f"{type(self).__name__}: the model {describe(spec.model)} has no relative positions "
            "that it can read. Use attention_only or minimal_attention.",
        )
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
    """Contrast of even and odd entries of v̂: distances of an odd and of an even number of tokens.

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


def _check_distances(owner: str, spec: RunSpec, least: int) -> None:
    length = spec.domain.input_shape[0]
    require(
        length >= least,
        f"{owner}: it reads {least} distances, and the task {describe(spec.task)} has sequences of "
        f"{length} tokens. Give longer ones.",
    )
