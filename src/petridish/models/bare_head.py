"""A Transformer head and nothing else, with a linear answer at a [CLS] token [TH Def. 4.4]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from petridish.errors import check_whole
from petridish.models.activations import Activation, Identity
from petridish.tasks.domain import Domain, check_one_label, token_inputs

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class BareHead:
    r"""Scores, a softmax and values: no layer normalisation, residual, bias, MLP or dropout.

    Tokens are :math:`x_t = E_{b_t} + P_t`, [CLS] is the last one, and

    .. math::
        a = \operatorname{softmax}(X W_K W_Q^\top x_{[CLS]}), \qquad
        y = W_C^\top \sigma(W_V^\top X^\top a), \qquad f = w^\top y.

    With several heads their y are added. Scores are not divided by :math:`\sqrt k`, as in the
    definition. With one output (a margin loss) f is the text's scalar-output Transformer. The
    shares of attention, (example, head, token), pass through the part `pattern`.

    All matrices, E and P start as N(0, 1/d), so that tokens have norms of about √2.

    Attributes
    ----------
    d, k : int
        Dimensions of a token, and of queries, keys and values.
    heads : int
        Heads whose outputs are added [TH A.1.6].
    activation : Activation
        The σ of the definition, with σ(0) = 0; the text's constructions have the identity.
    """

    name: ClassVar[str] = "bare_head"

    d: int = 64
    k: int = 64
    heads: int = 1
    activation: Activation = Identity()

    def __post_init__(self) -> None:
        check_whole("BareHead", 1, d=self.d, k=self.k, heads=self.heads)

    def build(self, domain: Domain, n_outputs: int) -> nn.Module:
        """Return the embedding and the heads."""
        from petridish.models.modules import BareHeadModule

        tokens = token_inputs("BareHead", domain)
        check_one_label("BareHead", domain)
        return BareHeadModule(
            tokens.vocabulary,
            tokens.length,
            self.d,
            self.k,
            self.heads,
            self.activation,
            n_outputs,
        )
