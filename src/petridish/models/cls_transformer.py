"""One layer of minGPT's transformer, which answers at a [CLS] token [TH §4.6, A.3.1]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from petridish.errors import UserError, check_whole
from petridish.tasks.domain import Domain, check_one_label, token_inputs

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class ClsTransformer:
    r"""A block of minGPT with [CLS] as the last token: it alone has a query, and gives the output.

    Token i of the T + 1 is :math:`z_i = E_{x_i} + P_i`, and with :math:`N_1, N_2, N_3` for layer
    normalisations

    .. math::
        u = z_\text{CLS} + W_O \operatorname{attention}(N_1(z)) + b_O, \qquad
        f = W_\text{out} N_3\big(u + W_2 \operatorname{GELU}(W_1 N_2(u) + b_1) + b_2\big).

    GELU is the exact one, the MLP has 4d neurons, every linear layer but the last has a bias.
    Dropout acts on the embedded tokens, on the shares of attention, and on what attention and MLP
    add. Linear and embedding weights start as N(0, 0.02²), positions too, biases at 0.

    The shares of attention, (example, head, token), pass through the part `pattern`.

    Settings of minGPT that the run itself must have: ``Training(clip=1.0)``, and AdamW with
    ``Piece(decay=(("embed.*", 0.0), ("@weight", 1.0), ("*", 0.0)))``: the weights of linear layers
    alone decay.

    Attributes
    ----------
    d, heads : int
        Dimension of a token, and heads that share it.
    dropout : float
        Share that is dropped.
    """

    name: ClassVar[str] = "cls_transformer"

    d: int = 64
    heads: int = 16
    dropout: float = 0.1

    def __post_init__(self) -> None:
        check_whole("ClsTransformer", 1, d=self.d, heads=self.heads)
        if self.d % self.heads:
            raise UserError(
                f"ClsTransformer: heads={self.heads} do not divide d={self.d}. Give a multiple of "
                "heads as d."
            )
        if not 0 <= self.dropout < 1:
            raise UserError(
                f"ClsTransformer: dropout={self.dropout}. Give a share from 0 to below 1."
            )

    def build(self, domain: Domain, n_outputs: int) -> nn.Module:
        """Return the embedding, one layer of attention and an MLP."""
        from petridish.models.modules import ClsTransformerModule

        tokens = token_inputs("ClsTransformer", domain)
        check_one_label("ClsTransformer", domain)
        return ClsTransformerModule(
            tokens.vocabulary, tokens.length, self.d, self.heads, self.dropout, n_outputs
        )
