"""The attention-only transformer in which induction heads form [TH §8.2.3]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import TYPE_CHECKING, ClassVar

from petridish.errors import UserError, check_whole, require
from petridish.models.base import Parameter, Stacked, layer_parameter
from petridish.tasks.domain import Classes, Domain, Tokens, token_inputs
from petridish.values import LATER

if TYPE_CHECKING:
    from torch import Tensor, nn

PARTS = ("positions", "query.weight", "key.weight", "value.weight")  # of a layer, in order


@dataclass(frozen=True)
class AttentionOnly(Stacked):
    r"""Layers of causal attention with relative positions, and nothing else [TH (8.4)–(8.5)].

    With token embeddings as rows of z, each layer adds to z the sum over its heads of

    .. math::
        \operatorname{softmax}(A)\, z W_V, \qquad
        A_{ij} = \frac{(z_i W_Q)(z_j W_K + v_{i-j+1})^\top}{\sqrt d} \quad (j \le i),

    and the outputs at every position are z P. Every head has positions and matrices of its own, of
    full size d × d as the formula has them. There is no MLP, no bias, no normalisation and no
    dropout. The shares of attention pass through the parts `attention1.pattern`,
    `attention2.pattern`, …, shape (batch, position, token); of several heads, (batch, head,
    position, token).

    Parameters of the heads lie one below the other: W_Q, W_K, W_V are (heads · d, d), positions
    (heads · d, t).

    The paper does not print the start. Embeddings and positions count as linear in a one-hot token
    and a one-hot distance, so that with the usual start their entries are uniform up to 1/√k and
    1/√t.

    Attributes
    ----------
    d : int
        Dimension of a token, of queries, keys and values.
    layers : int
        Layers of attention.
    heads : int
        Heads of each layer.
    """

    name: ClassVar[str] = "attention_only"

    d: int = 16
    layers: int = 2
    heads: int = field(default=1, metadata=LATER)

    def __post_init__(self) -> None:
        check_whole("AttentionOnly", 1, d=self.d, layers=self.layers, heads=self.heads)
        require(
            self.heads <= self.d,
            f"AttentionOnly: heads={self.heads} are more than the d={self.d} dimensions. Lower "
            "heads or raise d.",
        )

    def parameters(self, domain: Domain, n_outputs: int) -> tuple[Parameter, ...]:
        """List the embeddings; of each layer v, W_Q, W_K and W_V; and P."""
        d, tokens = self.d, self._tokens(domain)
        shapes = [("tokens", tokens.vocabulary, d)]
        for layer in range(1, self.layers + 1):
            fans = (tokens.length, d, d, d)
            shapes += [
                (f"attention{layer}.{part}", fan_in, self.heads * d)
                for part, fan_in in zip(PARTS, fans, strict=True)
            ]
        shapes.append(("output.weight", d, n_outputs))
        return tuple(
            layer_parameter(place, "weight", fan_in, fan_out, name=name)
            for place, (name, fan_in, fan_out) in enumerate(shapes)
        )

    def _tokens(self, domain: Domain) -> Tokens:
        tokens, target = token_inputs("AttentionOnly", domain), domain.target
        if not isinstance(target, Classes) or target.positions != tokens.length:
            raise UserError(
                f"AttentionOnly answers at each of {tokens.length} positions, and the task has "
                f"{target}. Give a task with a label at every position."
            )
        return tokens

    def build(self, domain: Domain, n_outputs: int) -> nn.Module:
        """Return the layers."""
        from petridish.models.modules import AttentionOnlyModule

        tokens = self._tokens(domain)
        sizes = (self.d, self.layers, self.heads)
        return AttentionOnlyModule(tokens.vocabulary, tokens.length, *sizes, n_outputs)

    def forward(self, parameters: Sequence[Tensor], x: Tensor) -> Tensor:
        """Return the outputs of a stack of runs on tokens, shape (run, batch, position, output)."""
        import torch
        from torch.nn.functional import one_hot

        tokens, *layers, output = parameters
        runs, batch, t = x.shape
        # Small tables: a product with one-hot rows has a quicker gradient than a look-up.
        chosen = one_hot(x.view(runs, batch * t), tokens.shape[2]).to(tokens.dtype)
        z = chosen.bmm(tokens.mT)  # (run, batch · t, d)
        later = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
        for place in range(0, len(layers), len(PARTS)):
            added = torch.zeros_like(z)
            # Of each parameter, the heads' parts.
            parts = (p.chunk(self.heads, dim=1) for p in layers[place : place + len(PARTS)])
            for positions, w_q, w_k, w_v in zip(*parts, strict=True):
                q = z.bmm(w_q.mT) / sqrt(self.d)
                k, v = (z.bmm(w.mT).view(runs * batch, t, self.d) for w in (w_k, w_v))
                by_distance = q.bmm(positions).view(runs * batch, t, t)
                scores = _by_token(by_distance).baddbmm(q.view(runs * batch, t, self.d), k.mT)
                shares = scores.masked_fill(later, -torch.inf).softmax(dim=2)
                added = added + shares.bmm(v).view(runs, batch * t, self.d)
            z = z + added
        return z.bmm(output.mT).view(runs, batch, t, -1)


def _by_token(by_distance: Tensor) -> Tensor:
    """Turn scores by distance i − j into scores by token j; those above the diagonal are void.

    A column more in front shifts each row by one place more than the row before it.
    """
    from torch.nn.functional import pad

    runs, t, _ = by_distance.shape
    return pad(by_distance.flip(2), (1, 0)).view(runs, t + 1, t)[:, 1:]
