"""The Parity Transformer: one layer of attention that classifies a sequence of ±1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, ClassVar, Literal

from petridish.errors import UserError, check_whole
from petridish.models.base import Parameter, Stacked, layer_parameter
from petridish.tasks.domain import Bits, Domain, one_answer

if TYPE_CHECKING:
    from torch import Tensor, nn

_NAMES: tuple[tuple[int, Literal["weight", "bias"], str], ...] = (
    (0, "weight", "positions"),
    (1, "weight", "tokens"),
    (2, "weight", "query.weight"),
    (3, "weight", "key.weight"),
    (4, "weight", "value.weight"),
    (5, "weight", "out.weight"),
    (6, "weight", "mlp1.weight"),
    (6, "bias", "mlp1.bias"),
    (7, "weight", "mlp2.weight"),
    (7, "bias", "mlp2.bias"),
    (8, "weight", "output.weight"),
)
"""Layer, kind and name of each parameter; random streams keep the layers' names."""


@dataclass(frozen=True)
class ParityTransformer(Stacked):
    r"""f(x) = u · mlp(attention(embedding(x))) [HP App. B.4.1, architecture (*iii)].

    Token i of the n + 1 is :math:`X_i = E_{x_i} + P_i`, and :math:`X_\text{CLS} = E_\text{CLS}` has
    no position. Only the classifying token has a query:

    .. math::
        z = X_\text{CLS} + \sum_h \operatorname{softmax}\big(X_\text{CLS} W_Q^h (X W_K^h)^\top
            / \sqrt{d_\text{attn}}\big) X W_V^h W_\text{out}^h, \qquad
        f = u \cdot (z + W_2 \operatorname{GeLU}(W_1 z + b_1) + b_2).

    There is neither dropout nor layer normalisation. The paper prints the first formula without
    the X before W_V, the second with x for z, and W_2 in the shape of W_1; it does not state d_mlp,
    which is 4 d_emb here, as usual.

    The matrices of the heads lie side by side: W_Q, W_K and W_V are (H d_attn, d_emb), W_out is
    (d_emb, H d_attn). So Xavier's bound, which the paper takes for every matrix, is that of the
    whole: √(6 / (d_emb + H d_attn)), as in PyTorch's own attention. Head by head it would be
    √(6 / (d_emb + d_attn)), 1.41 times as much at the default sizes.
    Embeddings are linear in the one-hot token (3 inputs) and in the one-hot position (n inputs).

    Attributes
    ----------
    d_emb, d_attn : int
        Dimensions of a token, and of a head's queries, keys and values.
    heads : int
        The paper's H.
    d_mlp : int or None
        Neurons of the MLP; None for 4 d_emb.
    """

    name: ClassVar[str] = "transformer"

    d_emb: int = 1024
    d_attn: int = 8
    heads: int = 128
    d_mlp: int | None = None

    def __post_init__(self) -> None:
        sizes = {"d_emb": self.d_emb, "d_attn": self.d_attn, "heads": self.heads}
        check_whole("ParityTransformer", 1, **sizes)
        if self.d_mlp is not None:
            check_whole("ParityTransformer", 1, d_mlp=self.d_mlp)

    def parameters(self, domain: Domain, n_outputs: int) -> tuple[Parameter, ...]:
        """List P, E (the columns −1, +1, CLS), W_Q, W_K, W_V, W_out, W_1, b_1, W_2, b_2, u."""
        d_emb, all_heads = self.d_emb, self.heads * self.d_attn
        d_mlp, n_inputs = self.d_mlp or 4 * d_emb, self._n_inputs(domain)
        fans = (
            # Positions first: like the first layer of other models they have one column per input.
            *((n_inputs, d_emb), (3, d_emb)),
            *((d_emb, all_heads),) * 3,
            *((all_heads, d_emb), (d_emb, d_mlp), (d_mlp, d_emb), (d_emb, n_outputs)),
        )
        return tuple(
            layer_parameter(layer, kind, *fans[layer], name=name, stream=f"layer{layer + 1}.{kind}")
            for layer, kind, name in _NAMES
        )

    def _n_inputs(self, domain: Domain) -> int:
        n_inputs = one_answer("ParityTransformer", domain)
        if not isinstance(domain.inputs, Bits):
            raise UserError(
                f"ParityTransformer embeds inputs of ±1, and the task's are {domain.inputs}. Give "
                "a task of bits."
            )
        return n_inputs

    def build(self, domain: Domain, n_outputs: int) -> nn.Module:
        """Return one layer of attention and an MLP."""
        from petridish.models.modules import ParityTransformerModule

        sizes = (self.d_emb, self.d_attn, self.heads, self.d_mlp or 4 * self.d_emb)
        return ParityTransformerModule(self._n_inputs(domain), *sizes, n_outputs)

    def forward(self, parameters: Sequence[Tensor], x: Tensor) -> Tensor:
        """Return the outputs of a stack of runs on inputs ±1, shape (run, batch, output)."""
        from torch.nn.functional import gelu

        positions, tokens, *attention, w1, b1, w2, b2, u = parameters
        cls = tokens[..., 2:]  # (run, d_emb, 1)
        z = cls + self._attended(positions, tokens, attention, x)  # (run, d_emb, batch)
        hidden = gelu(b1.unsqueeze(2).baddbmm(w1, z))  # (run, d_mlp, batch)
        return u.bmm(z + b2.unsqueeze(2).baddbmm(w2, hidden)).mT

    def _attended(
        self, positions: Tensor, tokens: Tensor, attention: Sequence[Tensor], x: Tensor
    ) -> Tensor:
        """Return what the heads bring to the classifying token, shape (run, d_emb, batch)."""
        import torch

        # All examples share the query, and their tokens are sums of n positions and 3 embeddings:
        # scores and values of these n + 3 vectors are computed once, not for each of B · n tokens.
        w_q, w_k, w_v, w_out = attention
        runs, batch, n = x.shape
        query = w_q.bmm(tokens[..., 2:]).view(runs * self.heads, 1, self.d_attn)
        asked = query.bmm(w_k.view(runs * self.heads, self.d_attn, self.d_emb))  # q W_K^⊤
        vectors = torch.cat([positions, tokens], dim=2)  # (run, d_emb, n + 3)
        scores = asked.view(runs, self.heads, self.d_emb).bmm(vectors) / sqrt(self.d_attn)
        values = w_v.bmm(vectors).view(runs, self.heads, self.d_attn, n + 3)

        scores = scores.unsqueeze(2)  # (run, head, 1, n + 3)
        minus, plus = scores[..., n : n + 1], scores[..., n + 1 : n + 2]
        is_plus = ((1 + x) / 2).unsqueeze(1)  # 1 or 0, (run, 1, batch, n)
        logits = scores[..., :n] + minus + (plus - minus) * is_plus  # (run, head, batch, n)
        cls = scores[..., n + 2 :].expand(-1, -1, batch, -1)
        shares = torch.cat([logits, cls], dim=3).softmax(dim=3)  # (run, head, batch, n + 1)
        share, to_cls = shares[..., :n], shares[..., n:]
        to_plus = (share * is_plus).sum(dim=3, keepdim=True)
        to_minus = share.sum(dim=3, keepdim=True) - to_plus
        mixed = torch.cat([share, to_minus, to_plus, to_cls], dim=3)  # (run, head, batch, n + 3)
        taken = (values @ mixed.mT).reshape(runs, -1, batch)  # (run, head · d_attn, batch)
        return w_out.bmm(taken)
