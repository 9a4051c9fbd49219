"""A block with [CLS]: steps and outputs in compiled code against eager PyTorch.

The rival is the package's plain module, of which [CLS] alone has a query, trained as minGPT trains:
AdamW, the gradient's norm clipped at 1. Rates are per second of processor time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from petridish.bench.turns import native_columns, rates_against_eager
from petridish.models import ClsTransformer
from petridish.tasks import BiasedAnd
from petridish.training import AdamW, CrossEntropy, Data, RunSpec, Training

D, HEADS, M, RATE, DECAY = 64, 16, 100, 1e-3, 1e-4  # TH A.3.1
PART = 100  # examples that count as one step where outputs are measured
HELD = 1000  # examples whose outputs are asked for


@dataclass(frozen=True)
class BlockWorkload:
    """What is measured, and how many times eager PyTorch's rate it is to reach."""

    what: Literal["steps", "outputs"]
    length: int
    dropout: float
    bar: float

    @property
    def spec(self) -> RunSpec:
        """The run."""
        return RunSpec(
            task=BiasedAnd(self.length),
            data=Data(m=M, n_test=1),
            model=ClsTransformer(D, HEADS, self.dropout),
            training=Training(
                loss=CrossEntropy(),
                optimiser=AdamW(),
                learning_rate=RATE,
                weight_decay=DECAY,
                batch_size=None,
                steps=2**40,
                target_error=None,
                clip=1.0,
            ),
        )

    def examples(self, purpose: str, count: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """Return tokens and labels."""
        drawn = self.spec.task.draw([0], purpose, 0, count)
        return drawn.x[0].astype(np.uint8), drawn.labels[0].astype(np.uint8)


WORKLOADS = (
    *(BlockWorkload("steps", length, 0.1, 20) for length in (100, 400, 1100)),
    *(
        BlockWorkload("steps", length, 0.0, bar)
        for length, bar in ((100, 75), (400, 140), (1100, 150))
    ),
    *(
        BlockWorkload("outputs", length, 0.1, bar)
        for length, bar in ((100, 120), (400, 250), (1100, 600))
    ),
)


def _native(workload: BlockWorkload) -> Callable[[int], int]:
    from petridish.training.engines.native_cls import arguments
    from petridish.training.native.cls_run import BlockBatches, NativeCls

    run = NativeCls(arguments(workload.spec))
    batches, held = BlockBatches(*workload.examples("train", M)), workload.examples("test", HELD)[0]

    def steps(count: int) -> int:
        return len(run.advance(2**62, count, batches))

    def outputs(count: int) -> int:
        done = 0
        while done < count:
            run.outputs(held)
            done += HELD // PART
        return done

    return steps if workload.what == "steps" else outputs


def _eager(workload: BlockWorkload) -> Callable[[int], int]:
    import torch
    from torch import nn
    from torch.nn.functional import cross_entropy

    torch.set_flush_denormal(True)
    spec = workload.spec
    model = spec.model.build(spec.domain, spec.n_outputs)
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=DECAY)
    x, y = (torch.from_numpy(part).long() for part in workload.examples("train", M))
    held = torch.from_numpy(workload.examples("test", HELD)[0]).long()

    def steps(count: int) -> int:
        model.train()
        for _ in range(count):
            loss = cross_entropy(model(x), y)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call] # PyTorch's own has no types
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
        return count

    at_once = max(1, 500 // workload.length)  # parts: what fits into the cache

    def outputs(count: int) -> int:
        model.eval()
        with torch.no_grad():
            for part in range(-(-count // at_once)):
                first = part * PART * at_once % HELD
                model(held[first : first + PART * at_once])
        return -(-count // at_once) * at_once

    return steps if workload.what == "steps" else outputs


def measure_cls(*, rounds: int, turn: float) -> list[dict[str, Any]]:
    """Let both take turns on all cores; one row per workload, with the spread of its ratio."""
    rows = []
    for workload in WORKLOADS:
        rates = rates_against_eager(
            partial(_eager, workload), partial(_native, workload), rounds=rounds, turn=turn
        )
        if workload.what == "outputs":  # of 10,000 examples, not of a part
            for name in ("eager", "native"):
                rates[name] = rates[name] and rates[name] * PART / 10_000
        rows.append(
            {
                "what": workload.what,
                "length": workload.length,
                "dropout": workload.dropout,
                "bar": workload.bar,
                **rates,
            }
        )
    return rows


def cls_table(rows: list[dict[str, Any]]) -> str:
    """Return the measurements as text."""
    lines = ["  block with [CLS]  length  dropout  eager /s  native /s   against eager    aim"]
    for row in rows:
        what = "steps" if row["what"] == "steps" else "10^4 outputs"
        line = f"  {what:<16}  {row['length']:>6}  {row['dropout']:>7}  {row['eager']:>8.2f}"
        lines.append(f"{line}{native_columns(row, '>9.1f')}  {row['bar']:>4.0f}×")
    return "\n".join(lines)
