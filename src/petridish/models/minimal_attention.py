"""The minimal model: linear attention with one matrix and one vector [TH (8.8), (E.2)]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from petridish.errors import UserError
from petridish.models.base import Parameter, Stacked
from petridish.tasks.domain import Classes, Domain, Tokens, token_inputs

if TYPE_CHECKING:
    from torch import Tensor, nn


@dataclass(frozen=True)
class MinimalAttention(Stacked):
    r"""Linear attention that two layers of a transformer come down to [TH §8.2.3].

    .. math::
        f_{p,i} = \sum_{t' \le p} 1\{x_{t'} = i\} \sum_{s \le t'} v_{t'-s+1}\, W_k[x_p, x_s]

    The vector v (`positions`, one entry per distance, the token itself first) stands for the first
    layer, the matrix :math:`W_k` (`key`, k × k) for the second. With v = (0, 1, 0, …) and the
    identity the outputs count transitions, with v = (1, 0, …) and ones they count tokens [TH
    Fact 8.3].

    The paper starts at :math:`W_k = 0` and constant v with cross entropy (Fig. 8.3), and at
    :math:`W_k = c\,11^\top`, v = c 1 with the margin loss (Lemma 8.4):
    ``ByName((("key", Constant(0.0)), ("positions", Constant(c))))`` and ``Constant(c)``.
    """

    name: ClassVar[str] = "minimal_attention"

    def parameters(self, domain: Domain, n_outputs: int) -> tuple[Parameter, ...]:
        """List v and W_k."""
        tokens = self._tokens(domain, n_outputs)
        k, length = tokens.vocabulary, tokens.length
        return (
            Parameter("positions", (length,), length, 1, 0, "weight"),
            Parameter("key", (k, k), k, k, 1, "weight"),
        )

    def _tokens(self, domain: Domain, n_outputs: int) -> Tokens:
        tokens, target = token_inputs("MinimalAttention", domain), domain.target
        positions = isinstance(target, Classes) and target.positions == tokens.length
        if not positions or n_outputs != tokens.vocabulary:
            raise UserError(
                f"MinimalAttention answers at each of {tokens.length} positions with one of "
                f"{tokens.vocabulary} tokens, and the task has {target} and asks for {n_outputs} "
                "outputs. Give a task of next tokens, such as markov(3, 100)."
            )
        return tokens

    def build(self, domain: Domain, n_outputs: int) -> nn.Module:
        """Return the module."""
        from petridish.models.causal_modules import MinimalAttentionModule

        tokens = self._tokens(domain, n_outputs)
        return MinimalAttentionModule(tokens.vocabulary, tokens.length)

    def forward(self, parameters: Sequence[Tensor], x: Tensor) -> Tensor:
        """Return the outputs of a stack of runs on tokens, shape (run, batch, position, output).

        Σ_s v_{t'−s+1} 1{x_s = l} is one product with a matrix of v's entries; what is summed over
        t' by token and state is a cumulative sum of outer products.
        """
        import torch
        from torch.nn.functional import one_hot

        positions, key = parameters
        t, k = x.shape[2], key.shape[1]
        hot = one_hot(x, k).to(key.dtype)  # (run, batch, position, state)
        place = torch.arange(t, device=x.device)
        back = place[:, None] - place
        rows = positions[:, back.clamp(min=0)].masked_fill(
            back < 0, 0.0
        )  # (run, position, earlier)
        mixed = torch.einsum("rps,rbsl->rbpl", rows, hot)  # (run, batch, position, state)
        counted = (hot[..., None] * mixed[..., None, :]).cumsum(dim=2)  # (…, token, state)
        chosen = hot @ key[:, None]  # (run, batch, position, state): row x_p of W_k
        outputs: Tensor = (counted * chosen[..., None, :]).sum(dim=-1)
        return outputs
