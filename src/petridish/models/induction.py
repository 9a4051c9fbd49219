"""The attention-only transformer in which induction heads form [TH §8.2.3]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, ClassVar

from petridish.errors import UserError, check_whole
from petridish.models.base import Parameter, Stacked, layer_parameter
from petridish.tasks.domain import Classes, Domain, Tokens

if TYPE_CHECKING:
    from torch import Tensor, nn

PARTS = ("positions", "query.weight", "key.weight", "value.weight")  # of a layer, in order


@dataclass(frozen=True)
class AttentionOnly(Stacked):
    r"""Layers of causal attention with relative positions, and nothing else [TH (8.4)–(8.5)].

    With token embeddings as rows of z, each layer adds to z

    .. math::
        \operatorname{softmax}(A)\, z W_V, \qquad
        A_{ij} = \frac{(z_i W_Q)(z_j W_K + v_{i-j+1})^\top}{\sqrt d} \quad (j \le i),

    and the outputs at every position are z P. There is one head, no MLP, no bias, no normalisation
    and no dropout. The shares of attention pass through the parts `attention1.pattern`,
    `attention2.pattern`, …, shape (batch, position, token).

    The paper does not print the start. Embeddings and positions count as linear in a one-hot token
    and a one-hot distance, so that with the usual start their entries are uniform up to 1/√k and
    1/√t.

    Attributes
    ----------
    d : int
        Dimension of a token, of queries, keys and values.
    layers : int
        Layers of attention.
    """

    name: ClassVar[str] = "attention_only"

    d: int = 16
    layers: int = 2

    def __post_init__(self) -> None:
        check_whole("AttentionOnly", 1, d=self.d, layers=self.layers)

    def parameters(self, domain: Domain, n_outputs: int) -> tuple[Parameter, ...]:
        """List the embeddings; of each layer v, W_Q, W_K and W_V; and P."""
        d, tokens = self.d, self._tokens(domain)
        shapes = [("tokens", tokens.vocabulary, d)]
        for layer in range(1, self.layers + 1):
            fans = (tokens.length, d, d, d)
            shapes += [
                (f"attention{layer}.{part}", fan_in, d)
                for part, fan_in in zip(PARTS, fans, strict=True)
            ]
        shapes.append(("output.weight", d, n_outputs))
        return tuple(
            layer_parameter(place, "weight", fan_in, fan_out, name=name)
            for place, (name, fan_in, fan_out) in enumerate(shapes)
        )

    def _tokens(self, domain: Domain) -> Tokens:
        target = domain.target
        if not isinstance(domain.inputs, Tokens):
            raise UserError(
                f"AttentionOnly embeds tokens, and the task's inputs are {domain.inputs}. Give a "
                "task of tokens."
            )
        if not isinstance(target, Classes) or target.positions != domain.inputs.length:
            raise UserError(
                f"AttentionOnly answers at each of {domain.inputs.length} positions, and the task "
                f"has {target}. Give a task with a label at every position."
            )
        return domain.inputs

    def build(self, domain: Domain, n_outputs: int) -> nn.Module:
        """Return the layers."""
        from petridish.models.modules import AttentionOnlyModule

        tokens = self._tokens(domain)
        return AttentionOnlyModule(tokens.vocabulary, tokens.length, self.d, self.layers, n_outputs)

    def forward(self, parameters: Sequence[Tensor], x: Tensor) -> Tensor:
        """Return the outputs of a stack of runs on tokens, shape (run, batch, position, output)."""
        import torch
        from torch.nn.functional import one_hot

        tokens, *layers, output = parameters
        runs, batch, t = x.shape
        # Small tables: a product with one-hot rows has a quicker gradient than a look-up.
        chosen = one_hot(x.view(runs, batch * t), tokens.shape[2]).to(tokens.dtype)
        z = chosen.bmm(tokens.mT)  # (run, batch · t, d)
        later = torch.ones(t, t, dtype=torch.bool).triu(1)
        for place in range(0, len(layers), len(PARTS)):
            positions, w_q, w_k, w_v = layers[place : place + len(PARTS)]
            q = z.bmm(w_q.mT) / sqrt(self.d)
            k, v = (z.bmm(w.mT).view(runs * batch, t, self.d) for w in (w_k, w_v))
            by_distance = q.bmm(positions).view(runs * batch, t, t)
            scores = _by_token(by_distance).baddbmm(q.view(runs * batch, t, self.d), k.mT)
            shares = scores.masked_fill(later, -torch.inf).softmax(dim=2)
            z = z + shares.bmm(v).view(runs, batch * t, self.d)
        return z.bmm(output.mT).view(runs, batch, t, -1)


def _by_token(by_distance: Tensor) -> Tensor:
    """Turn scores by distance i − j into scores by token j; above the diagonal is no meaning.

    With one column more in front, what follows row i in memory is shifted by one place more than
    what follows row i − 1.
    """
    from torch.nn.functional import pad

    runs, t, _ = by_distance.shape
    return pad(by_distance.flip(2), (1, 0)).view(runs, t + 1, t)[:, 1:]
