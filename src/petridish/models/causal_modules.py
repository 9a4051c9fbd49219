"""Modules of TH Chapter 8 beside attention alone, one run at a time: see `models/modules.py`."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class MinimalAttentionModule(nn.Module):
    """mask(E W_k (M E)ᵀ) E, as (8.8) has it."""

    def __init__(self, vocabulary: int, length: int) -> None:
        super().__init__()
        self.positions = nn.Parameter(torch.full((length,), 0.02))
        self.key = nn.Parameter(torch.zeros(vocabulary, vocabulary))

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs, shape (batch, position, output)."""
        tokens = nn.functional.one_hot(x, len(self.key)).to(self.key.dtype)  # E
        place = torch.arange(x.shape[1], device=x.device)
        back = place[:, None] - place
        m = self.positions[back.clamp(min=0)].tril()
        scores: Tensor = (tokens @ self.key @ (m @ tokens).mT).tril()
        return scores @ tokens


class VariantAttention(nn.Module):
    """Causal attention with options; shares of all heads pass through `pattern`.

    Heads have the size d each and are summed, or d/heads and are joined; joined ones pass through
    `out`. Relative positions meet the queries, as (8.5) has it, or the keys.
    """

    def __init__(
        self,
        length: int,
        d: int,
        heads: int,
        *,
        joined: bool,
        relative: bool,
        coupling: str,
        dropout: float,
    ) -> None:
        super().__init__()
        self.heads, self.size = heads, d // heads if joined else d
        self.coupling, self.relative, self.joined = coupling, relative, joined
        whole = heads * self.size
        if relative:
            self.positions = nn.Parameter(torch.empty(length, whole))
        self.query, self.key, self.value = (nn.Linear(d, whole, bias=False) for _ in range(3))
        if joined:
            self.out = nn.Linear(whole, d, bias=False)
        self.pattern = nn.Identity()  # (batch[, head], position, token): read by hooks
        self.of_shares, self.of_table = nn.Dropout(dropout), nn.Dropout(dropout)
        self.of_output = nn.Dropout(dropout)

    def forward(self, z: Tensor) -> Tensor:
        """Return what each position takes from the tokens up to it, shape (batch, position, d)."""
        split = (*z.shape[:2], self.heads, self.size)
        query, key, value = (
            part(z).view(split).transpose(1, 2) for part in (self.query, self.key, self.value)
        )  # (batch, head, position, size)
        scores = query @ key.mT
        place = torch.arange(z.shape[1], device=z.device)
        back = place[:, None] - place
        if self.relative:
            table = self.of_table(self.positions).view(-1, self.heads, self.size).transpose(0, 1)
            with_table = (key if self.coupling == "key" else query) @ table.mT
            at = back.clamp(min=0).expand(len(z), self.heads, -1, -1)
            if self.coupling == "key":  # row j of it holds token j by distance
                scores = scores + with_table.mT.gather(2, at)
            else:
                scores = scores + with_table.gather(3, at)
        shares = (scores / self.size**0.5).masked_fill(back < 0, -torch.inf).softmax(dim=3)
        shares = self.pattern(shares if self.heads > 1 else shares[:, 0])
        taken = self.of_shares(shares.view(len(z), self.heads, *back.shape)) @ value
        if not self.joined:
            summed: Tensor = taken.sum(dim=1)
            return summed
        found: Tensor = self.of_output(self.out(taken.transpose(1, 2).flatten(2)))
        return found


class CausalTransformerModule(nn.Module):
    """Layers `attention1`, …, each with an MLP behind it if asked for."""

    def __init__(
        self,
        vocabulary: int,
        length: int,
        n_outputs: int,
        *,
        d: int,
        heads: tuple[int, ...],
        joined: bool,
        positions: str,
        coupling: str,
        norm: bool,
        mlp: int,
        dropout: float,
        readout: str,
    ) -> None:
        super().__init__()
        self.readout, self.layers, self.mlp, self.norm = readout, len(heads), mlp, norm
        self.tokens = nn.Embedding(vocabulary, d)
        if positions == "absolute":
            self.places = nn.Embedding(length, d)
        self.of_input = nn.Dropout(dropout)
        for number, count in enumerate(heads, start=1):
            if norm:
                self.add_module(f"norm{number}", nn.LayerNorm(d))
            layer = VariantAttention(
                length,
                d,
                count,
                joined=joined,
                relative=positions == "relative",
                coupling=coupling,
                dropout=dropout,
            )
            self.add_module(f"attention{number}", layer)
            if mlp:
                self.add_module(
                    f"mlp{number}", nn.Sequential(nn.Linear(d, mlp), nn.GELU(), nn.Linear(mlp, d))
                )
        if norm:
            self.last_norm = nn.LayerNorm(d)
        self.output = nn.Linear(d, n_outputs, bias=False)

    def start_uniform(self) -> None:
        """Start as (8.4)–(8.5) do here: ±1/√fan_in, tables counted as linear in one-hot vectors."""
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                table = name.endswith(("tokens.weight", "places.weight", "positions"))
                bound = parameter.shape[0 if table else 1] ** -0.5
                nn.init.uniform_(parameter, -bound, bound)

    def start_small(self) -> None:
        """Start as the published code: N(0, 0.02²), output projections N(0, 0.01²)."""
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.01 if name.endswith(".out.weight") else 0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs, shape (batch, position, output)."""
        z = self.tokens(x)
        if hasattr(self, "places"):
            z = z + self.places.weight[: x.shape[1]]
        z = self.of_input(z)
        for number in range(1, self.layers + 1):
            before = self.get_submodule(f"norm{number}")(z) if self.norm else z
            z = z + self.get_submodule(f"attention{number}")(before)
            if self.mlp:
                z = z + self.get_submodule(f"mlp{number}")(z)
        outputs: Tensor = self.output(self.last_norm(z) if self.norm else z)
        if self.readout == "log":
            # Probabilities in proportion to softplus: averages of attention may stand for them.
            return nn.functional.softplus(outputs).clamp(min=1e-6).log()
        return outputs
