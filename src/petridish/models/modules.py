"""The models as plain PyTorch modules, one run at a time: what `build` returns.

They are written as their formulas read, independently of each model's stacked `forward`: the engine
`reference` trains them, and tests compare the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import sqrt
from typing import Any

import torch
from torch import Tensor, nn

from petridish.models.activations import Activation


class MLPModule(nn.Module):
    """Linear layers `layer1`, `layer2`, … with an activation between them.

    `biased` says whether the last one has a bias; `summed`, whether the outputs are the sum of the
    last hidden layer instead.
    """

    def __init__(
        self, sizes: Sequence[int], activation: Activation, *, biased: bool, summed: bool
    ) -> None:
        super().__init__()
        self.activation: Activation | NoisyModule = activation
        self.summed = summed
        fans = list(pairwise(sizes))[: -1 if summed else None]
        self.depth = len(sizes) - 2  # hidden layers
        for number, (fan_in, fan_out) in enumerate(fans, start=1):
            hidden = number <= self.depth
            self.add_module(f"layer{number}", nn.Linear(fan_in, fan_out, bias=hidden or biased))

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs, shape (batch, output)."""
        h = x.flatten(1)
        for number in range(1, self.depth + 1):
            h = self.activation(self.get_submodule(f"layer{number}")(h))
        if self.summed:
            return h.sum(dim=1, keepdim=True)
        outputs: Tensor = self.get_submodule(f"layer{self.depth + 1}")(h)
        return outputs


class NoisyModule(nn.Module):
    """σ(z + ξ) in training, ξ ~ N(0, noise²) for every entry; σ(z) in evaluation."""

    def __init__(self, activation: Activation, noise: float) -> None:
        super().__init__()
        self.activation, self.noise = activation, noise

    def forward(self, z: Tensor) -> Tensor:
        """Apply the activation, behind the noise."""
        return self.activation(z + self.noise * torch.randn_like(z) if self.training else z)


class PolyNetModule(nn.Module):
    """The product of k linear functions."""

    def __init__(self, n_inputs: int, k: int) -> None:
        super().__init__()
        self.layer1 = nn.Linear(n_inputs, k)

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs, shape (batch, 1)."""
        factors: Tensor = self.layer1(x.flatten(1))
        return factors.prod(dim=1, keepdim=True)


class DisjointPolyNetModule(nn.Module):
    """The product of k linear functions, each of its own block of the inputs."""

    def __init__(self, n_inputs: int, k: int) -> None:
        super().__init__()
        self.layer1 = nn.Linear(n_inputs // k, k, bias=False)  # row i belongs to block i

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs, shape (batch, 1)."""
        k, size = self.layer1.weight.shape
        factors = torch.einsum("bki,ki->bk", x.reshape(len(x), k, size), self.layer1.weight)
        return factors.prod(dim=1, keepdim=True)


class TangentModule(nn.Module):
    """The derivative of u·σ(Wx + b) at θ_0 (`layer3`, `layer4`) along θ (`layer1`, `layer2`)."""

    def __init__(self, n_inputs: int, width: int, n_outputs: int, activation: Activation) -> None:
        super().__init__()
        self.activation = activation
        self.layer1 = nn.Linear(n_inputs, width)
        self.layer2 = nn.Linear(width, n_outputs, bias=False)
        self.layer3 = nn.Linear(n_inputs, width).requires_grad_(requires_grad=False)
        self.layer4 = nn.Linear(width, n_outputs, bias=False).requires_grad_(requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs, shape (batch, output)."""

        def network(weight: Tensor, bias: Tensor, output: Tensor) -> Tensor:
            return self.activation(x.flatten(1) @ weight.mT + bias) @ output.mT

        at = (self.layer3.weight, self.layer3.bias, self.layer4.weight)
        along = (self.layer1.weight, self.layer1.bias, self.layer2.weight)
        # By two reverse passes: the forward mode of torch.func warns of what it uses itself.
        jvp: Any = torch.autograd.functional.jvp  # PyTorch's own has no types
        outputs: Tensor = jvp(network, at, along, create_graph=True)[1]
        return outputs if torch.is_grad_enabled() else outputs.detach()


class HomogeneousModule(nn.Module):
    """Two layers without biases."""

    def __init__(self, n_inputs: int, width: int, n_outputs: int, activation: Activation) -> None:
        super().__init__()
        self.activation = activation
        self.layer1 = nn.Linear(n_inputs, width, bias=False)
        self.layer2 = nn.Linear(width, n_outputs, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs, shape (batch, output)."""
        outputs: Tensor = self.layer2(self.activation(self.layer1(x.flatten(1))))
        return outputs


class EmbeddedTokens(nn.Module):
    """Tokens with [CLS] behind them, each the sum of what it is and where it is."""

    def __init__(self, vocabulary: int, length: int, d: int) -> None:
        super().__init__()
        self.cls = vocabulary
        self.tokens = nn.Embedding(vocabulary + 1, d)
        self.positions = nn.Parameter(torch.empty(length + 1, d))

    def forward(self, x: Tensor) -> Tensor:
        """Return the vectors, shape (batch, token, d)."""
        embedded: Tensor = self.tokens(nn.functional.pad(x, (0, 1), value=self.cls))
        return embedded + self.positions


class _ClsAttention(nn.Module):
    """Heads of attention with one query, the last token's; shares pass through `pattern`."""

    heads: int
    query: nn.Linear
    key: nn.Linear
    value: nn.Linear
    pattern: nn.Module

    def attended(self, tokens: Tensor, dropout: nn.Module | None = None) -> Tensor:
        """Return what the heads bring to the last token, side by side, shape (batch, d)."""
        query = self.query(tokens[:, -1]).unflatten(1, (self.heads, -1))  # (batch, head, size)
        key = self.key(tokens).unflatten(2, (self.heads, -1))  # (batch, token, head, size)
        value = self.value(tokens).unflatten(2, (self.heads, -1))
        scores = torch.einsum("bhd,bthd->bht", query, key) / sqrt(query.shape[-1])
        shares = self.pattern(scores.softmax(dim=2))
        if dropout is not None:
            shares = dropout(shares)
        return torch.einsum("bht,bthd->bhd", shares, value).flatten(1)


class ClsTransformerModule(_ClsAttention):
    """A block of minGPT."""

    def __init__(
        self, vocabulary: int, length: int, d: int, heads: int, dropout: float, n_outputs: int
    ) -> None:
        super().__init__()
        self.heads = heads
        self.embed = EmbeddedTokens(vocabulary, length, d)
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(d) for _ in range(3))
        self.query, self.key, self.value, self.out = (nn.Linear(d, d) for _ in range(4))
        self.pattern = nn.Identity()  # (batch, head, token)
        self.mlp1, self.mlp2 = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
        self.output = nn.Linear(d, n_outputs, bias=False)
        self.dropout = nn.Dropout(dropout)
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs, shape (batch, output)."""
        tokens = self.dropout(self.embed(x))  # (batch, token, d)
        z = tokens[:, -1]
        z = z + self.dropout(self.out(self.attended(self.norm1(tokens), self.dropout)))
        z = z + self.dropout(self.mlp2(nn.functional.gelu(self.mlp1(self.norm2(z)))))
        outputs: Tensor = self.output(self.norm3(z))
        return outputs


class BareHeadModule(nn.Module):
    """Heads of attention with one query, the last token's, whose outputs are added."""

    def __init__(
        self,
        vocabulary: int,
        length: int,
        d: int,
        k: int,
        heads: int,
        activation: Activation,
        n_outputs: int,
    ) -> None:
        super().__init__()
        self.heads, self.activation = heads, activation
        self.embed = EmbeddedTokens(vocabulary, length, d)
        self.query, self.key, self.value = (nn.Linear(d, heads * k, bias=False) for _ in range(3))
        self.pattern = nn.Identity()  # (batch, head, token)
        self.combine = nn.Linear(heads * k, d, bias=False)
        self.output = nn.Linear(d, n_outputs, bias=False)
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=1 / sqrt(d))

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs, shape (batch, output)."""
        tokens = self.embed(x)
        query = self.query(tokens[:, -1]).unflatten(1, (self.heads, -1))  # (batch, head, k)
        key, value = (
            part(tokens).unflatten(2, (self.heads, -1)) for part in (self.key, self.value)
        )
        scores = torch.einsum("bhk,bthk->bht", query, key)
        shares = self.pattern(scores.softmax(dim=2))
        mixed = torch.einsum("bht,bthk->bhk", shares, value).flatten(1)
        outputs: Tensor = self.output(self.combine(self.activation(mixed)))
        return outputs


class ParityTransformerModule(_ClsAttention):
    """One layer of attention and an MLP."""

    def __init__(
        self, n_inputs: int, d_emb: int, d_attn: int, heads: int, d_mlp: int, n_outputs: int
    ) -> None:
        super().__init__()
        self.heads = heads
        self.positions = nn.Parameter(torch.empty(d_emb, n_inputs))
        self.tokens = nn.Parameter(torch.empty(d_emb, 3))  # the columns −1, +1, CLS
        for embedding in (self.positions, self.tokens):
            nn.init.xavier_uniform_(embedding)
        self.query, self.key, self.value = (
            nn.Linear(d_emb, heads * d_attn, bias=False) for _ in range(3)
        )
        self.pattern = nn.Identity()  # (batch, head, token): read by hooks
        self.out = nn.Linear(heads * d_attn, d_emb, bias=False)
        self.mlp1 = nn.Linear(d_emb, d_mlp)
        self.mlp2 = nn.Linear(d_mlp, d_emb)
        self.output = nn.Linear(d_emb, n_outputs, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs, shape (batch, output)."""
        embedded = self.tokens.mT[(x > 0).long()] + self.positions.mT  # (batch, n, d_emb)
        cls = self.tokens[:, 2].expand(len(x), 1, -1)
        tokens = torch.cat([embedded, cls], dim=1)  # (batch, n + 1, d_emb)
        z = cls[:, 0] + self.out(self.attended(tokens))
        hidden = nn.functional.gelu(self.mlp1(z))
        outputs: Tensor = self.output(z + self.mlp2(hidden))
        return outputs


class CausalAttention(nn.Module):
    """Heads of attention to earlier tokens; their shares pass through the part `pattern`."""

    def __init__(self, length: int, d: int, heads: int = 1) -> None:
        super().__init__()
        self.d, self.heads = d, heads
        self.positions = nn.Parameter(torch.empty(heads * d, length))  # column m: m tokens back
        nn.init.xavier_uniform_(self.positions)
        self.query, self.key, self.value = (nn.Linear(d, heads * d, bias=False) for _ in range(3))
        self.pattern = nn.Identity()  # (batch[, head], position, token): read by hooks

    def forward(self, z: Tensor) -> Tensor:
        """Return what each position takes from the tokens up to it, shape (batch, position, d)."""
        place = torch.arange(z.shape[1], device=z.device)
        back = place[:, None] - place  # (position, token)
        split = (*z.shape[:2], self.heads, self.d)
        query, key, value = (
            part(z).view(split).transpose(1, 2) for part in (self.query, self.key, self.value)
        )  # (batch, head, position, d)
        distances = (query @ self.positions.view(self.heads, self.d, -1)).gather(
            3, back.clamp(min=0).expand(len(z), self.heads, -1, -1)
        )  # (batch, head, position, token)
        scores = (query @ key.mT + distances) / sqrt(self.d)
        shares = scores.masked_fill(back < 0, -torch.inf).softmax(dim=3)
        # One head's pattern has no axis of heads.
        shares = self.pattern(shares if self.heads > 1 else shares[:, 0])
        taken: Tensor = (shares.view(len(z), self.heads, *back.shape) @ value).sum(dim=1)
        return taken


class AttentionOnlyModule(nn.Module):
    """Layers `attention1`, `attention2`, …, each of which adds to what it is given."""

    def __init__(
        self, vocabulary: int, length: int, d: int, layers: int, heads: int, n_outputs: int
    ) -> None:
        super().__init__()
        self.tokens = nn.Parameter(torch.empty(d, vocabulary))
        nn.init.xavier_uniform_(self.tokens)
        self.layers = layers
        for number in range(1, layers + 1):
            self.add_module(f"attention{number}", CausalAttention(length, d, heads))
        self.output = nn.Linear(d, n_outputs, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs, shape (batch, position, output)."""
        z = self.tokens.mT[x]
        for number in range(1, self.layers + 1):
            z = z + self.get_submodule(f"attention{number}")(z)
        outputs: Tensor = self.output(z)
        return outputs
