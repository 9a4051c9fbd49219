"""Variants of the attention-only transformer: those of Figure E.8, and the published code's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from petridish.errors import UserError, check_one_of, check_whole, require
from petridish.tasks.domain import Classes, Domain, Tokens, token_inputs

if TYPE_CHECKING:
    from torch import nn

Coupling = Literal["query", "key"]


def _tokens(owner: str, domain: Domain) -> Tokens:
    tokens, target = token_inputs(owner, domain), domain.target
    if not isinstance(target, Classes) or target.positions != tokens.length:
        raise UserError(
            f"{owner} answers at each of {tokens.length} positions, and the task has {target}. "
            "Give a task with a label at every position."
        )
    return tokens


@dataclass(frozen=True)
class CausalTransformer:
    """`AttentionOnly` with options [TH Fig. E.8].

    With none of them it is that model, as a plain module: heads of full size, summed. Its start is
    the module's own, by the same law.

    Attributes
    ----------
    d, layers, heads : int
        As in `AttentionOnly`.
    positions : "relative" or "absolute"
        v of (8.5), or an embedding of each place that is added to the tokens'.
    mlp : int
        Hidden neurons of a GELU network behind each attention, 0 for none.
    norm : bool
        A layer norm before each attention and at the end.
    readout : "linear" or "log"
        The outputs z P, or log softplus(z P): predicted probabilities are then in proportion to
        averages that attention takes, and not to their exponentials.
    coupling : "query" or "key"
        What relative positions are multiplied with.
    """

    name: ClassVar[str] = "causal_transformer"

    d: int = 16
    layers: int = 2
    heads: int = 1
    positions: Literal["relative", "absolute"] = "relative"
    mlp: int = 0
    norm: bool = False
    readout: Literal["linear", "log"] = "linear"
    coupling: Coupling = "query"

    def __post_init__(self) -> None:
        owner = type(self).__name__
        check_whole(owner, 1, d=self.d, layers=self.layers, heads=self.heads)
        check_whole(owner, 0, mlp=self.mlp)
        check_one_of(owner, ("relative", "absolute"), positions=self.positions)
        check_one_of(owner, ("linear", "log"), readout=self.readout)
        check_one_of(owner, ("query", "key"), coupling=self.coupling)
        _check_heads(owner, self.heads, self.d)
        require(
            self.positions == "relative" or self.coupling == "query",
            f"{owner}: coupling='key' has no effect with absolute positions. Leave it out.",
        )

    def build(self, domain: Domain, n_outputs: int) -> nn.Module:
        """Return the module."""
        from petridish.models.causal_modules import CausalTransformerModule

        tokens = _tokens(type(self).__name__, domain)
        module = CausalTransformerModule(
            tokens.vocabulary,
            tokens.length,
            n_outputs,
            d=self.d,
            heads=(self.heads,) * self.layers,
            joined=False,
            positions=self.positions,
            coupling=self.coupling,
            norm=self.norm,
            mlp=self.mlp,
            dropout=0.0,
            readout=self.readout,
        )
        module.start_uniform()
        return module


@dataclass(frozen=True)
class PublishedInduction:
    """The transformer of TH Chapter 8's published code, whose recipe is part of its figures.

    Layer norms before each attention and at the end; d = 16 · heads; heads of size d/heads in the
    first layer, joined by an output projection, and one head in the second; weights start at
    N(0, 0.02²), output projections at N(0, 0.01²); dropout on embeddings, attention, what a layer
    adds, and the table of relative positions. The code's training is AdamW with β = (0.9, 0.95), a
    decay of 0.1 on matrices, the rate 5 · 10^-4 for 2000 steps of 64, and no clipping.

    Attributes
    ----------
    heads : int
        Of the first layer.
    dropout : float
        Of all four places.
    coupling : "query" or "key"
        What relative positions are multiplied with: as (8.5) has it, or as older files of the code.
    """

    name: ClassVar[str] = "published_induction"

    heads: int = 1
    dropout: float = 0.1
    coupling: Coupling = "query"

    def __post_init__(self) -> None:
        check_whole("PublishedInduction", 1, heads=self.heads)
        require(
            0 <= self.dropout < 1,
            f"PublishedInduction: dropout={self.dropout}. Give a number from 0 to below 1.",
        )
        check_one_of("PublishedInduction", ("query", "key"), coupling=self.coupling)

    def build(self, domain: Domain, n_outputs: int) -> nn.Module:
        """Return the module."""
        from petridish.models.causal_modules import CausalTransformerModule

        tokens = _tokens("PublishedInduction", domain)
        module = CausalTransformerModule(
            tokens.vocabulary,
            tokens.length,
            n_outputs,
            d=16 * self.heads,
            heads=(self.heads, 1),
            joined=True,
            positions="relative",
            coupling=self.coupling,
            norm=True,
            mlp=0,
            dropout=self.dropout,
            readout="linear",
        )
        module.start_small()
        return module


def _check_heads(owner: str, heads: int, d: int) -> None:
    require(
        heads <= d,
        f"{owner}: heads={heads} are more than the d={d} dimensions. Lower heads or raise d.",
    )
