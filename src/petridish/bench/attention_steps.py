"""Steps of attention alone: whole runs in compiled code against eager PyTorch.

The rival is what a careful researcher writes: heads side by side in one product, scores by
distance shifted into place without a gather, one mask, batches of chains drawn ahead; of the
minimal model its formula, TH (8.8), with the mask made once. Sampling is included in both. Rates
are per second of processor time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from petridish.bench.turns import native_columns, rates_against_eager
from petridish.models import AttentionOnly, MinimalAttention
from petridish.tasks import MarkovChains
from petridish.training import SGD, AdamW, CrossEntropy, Data, RunSpec, Training

if TYPE_CHECKING:
    from torch import Tensor, nn

BATCH, D, LAYERS = 64, 16, 2  # TH §8.3.1
DRAWN = 32  # batches that the rival draws ahead


@dataclass(frozen=True)
class Workload:
    """Sizes of a run, and how many times eager PyTorch's rate it is to reach.

    The minimal model has no heads.
    """

    k: int
    length: int
    heads: int
    bar: float

    @property
    def spec(self) -> RunSpec:
        """The run."""
        return RunSpec(
            task=MarkovChains(self.k, self.length),
            data=Data(n_test=1),
            model=AttentionOnly(D, LAYERS, self.heads) if self.heads else MinimalAttention(),
            training=Training(
                loss=CrossEntropy(),
                optimiser=AdamW() if self.heads else SGD(),
                learning_rate=1e-3,
                batch_size=BATCH,
                steps=2**40,
                target_error=None,
            ),
        )


WORKLOADS = (
    Workload(3, 100, 1, 60),
    Workload(3, 200, 3, 35),
    Workload(8, 200, 1, 25),
    Workload(3, 100, 0, 60),
)


def _native(workload: Workload) -> Callable[[int], int]:
    from petridish.training.engines.native_attention import arguments
    from petridish.training.native.attention_run import NativeAttention

    run = NativeAttention(arguments(workload.spec))

    def steps(count: int) -> int:
        return len(run.advance(2**62, count))

    return steps


def _eager(workload: Workload) -> Callable[[int], int]:
    import torch
    from torch.nn.functional import cross_entropy

    torch.set_flush_denormal(True)
    if workload.heads:
        model = _transformer(workload.k, workload.length, workload.heads)
        optimiser: torch.optim.Optimizer = torch.optim.AdamW(
            model.parameters(), lr=1e-3, weight_decay=0.0
        )
    else:
        model = _minimal(workload.k, workload.length)
        optimiser = torch.optim.SGD(model.parameters(), lr=1e-3)
    batches = _batches(workload.spec.task)

    def steps(count: int) -> int:
        for _ in range(count):
            x, y = next(batches)
            loss = cross_entropy(model(x).flatten(0, 1), y.flatten())
            optimiser.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call] # PyTorch's own has no types
            optimiser.step()
        return count

    return steps


def _transformer(k: int, t: int, heads: int) -> nn.Module:
    import torch
    from torch import nn
    from torch.nn.functional import pad

    class Eager(nn.Module):
        def __init__(self) -> None:
            super().__init__()

            def matrix(*shape: int) -> nn.Parameter:
                return nn.Parameter(torch.randn(*shape) / math.sqrt(D))

            self.tokens, self.output = matrix(k, D), matrix(D, k)
            self.projections = nn.ParameterList(matrix(D, 3 * heads * D) for _ in range(LAYERS))
            self.positions = nn.ParameterList(matrix(heads, D, t) for _ in range(LAYERS))
            self.register_buffer("later", torch.ones(t, t, dtype=torch.bool).triu(1))

        def forward(self, x: Tensor) -> Tensor:
            z, later = self.tokens[x], self.get_buffer("later")
            for projection, positions in zip(self.projections, self.positions, strict=True):
                parts = (z @ projection).view(*x.shape, 3, heads, D).permute(2, 0, 3, 1, 4)
                q, key, value = parts
                far = pad((q @ positions).flip(-1), (1, 0))  # shifted a place more in each row
                scores = q @ key.mT + far.view(*far.shape[:2], t + 1, t)[:, :, 1:]
                shares = (scores / math.sqrt(D)).masked_fill(later, -math.inf).softmax(dim=-1)
                z = z + (shares @ value).sum(dim=1)
            outputs: Tensor = z @ self.output
            return outputs

    return Eager()


def _minimal(k: int, t: int) -> nn.Module:
    import torch
    from torch import nn
    from torch.nn.functional import one_hot

    class Eager(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.key = nn.Parameter(0.01 * torch.randn(k, k))
            self.positions = nn.Parameter(0.01 * torch.randn(t))
            place = torch.arange(t)
            self.register_buffer("back", (place[:, None] - place).clamp(min=0))
            self.register_buffer("earlier", torch.ones(t, t).tril())

        def forward(self, x: Tensor) -> Tensor:
            tokens, earlier = one_hot(x, k).float(), self.get_buffer("earlier")
            mixed = (self.positions[self.get_buffer("back")] * earlier) @ tokens
            outputs: Tensor = (tokens @ self.key @ mixed.mT * earlier) @ tokens
            return outputs

    return Eager()


def _batches(task: Any) -> Iterator[tuple[Tensor, Tensor]]:
    import torch

    start = 0
    while True:
        drawn = task.draw([0], "train", start, DRAWN * BATCH)
        x, y = torch.from_numpy(drawn.x[0]), torch.from_numpy(drawn.labels[0])
        for first in range(0, DRAWN * BATCH, BATCH):
            yield x[first : first + BATCH], y[first : first + BATCH]
        start += DRAWN * BATCH


def measure_attention(*, rounds: int, turn: float) -> list[dict[str, Any]]:
    """Let both take turns on all cores; one row per workload, with the spread of its ratio."""
    return [
        {
            "k": workload.k,
            "length": workload.length,
            "heads": workload.heads,
            "bar": workload.bar,
            **rates_against_eager(
                partial(_eager, workload), partial(_native, workload), rounds=rounds, turn=turn
            ),
        }
        for workload in WORKLOADS
    ]


def attention_table(rows: list[dict[str, Any]]) -> str:
    """Return the measurements as text."""
    lines = ["   k  length  heads  eager steps/s  native steps/s   against eager    aim"]
    for row in rows:
        line = f"  {row['k']:>2}  {row['length']:>6}  {row['heads']:>5}  {row['eager']:>13.1f}"
        lines.append(f"{line}{native_columns(row, '>14.0f')}  {row['bar']:>4.0f}×")
    return "\n".join(lines)
