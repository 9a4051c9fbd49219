"""Measuring evaluations: whole held-out samples run forward."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from petridish.bench.rivals import spec_of
from petridish.bench.turns import Prepare, rate_of_steps, take_turns
from petridish.training import Data
from petridish.training.native.library import is_built

N_INPUTS = 50
WIDTHS = (100, 1000)
EXAMPLES = 10_000


def measure_evaluations(*, rounds: int, turn: float) -> list[dict[str, Any]]:
    """Count the errors of a network on 10,000 examples, in turns; one row per width and way."""
    makers: dict[str, Callable[[int], Callable[[int], int]]] = {"torch": _torch}
    if is_built():
        makers["native"] = _native
    rows = []
    for width in WIDTHS:
        prepared: dict[str, Prepare] = {
            name: partial(_prepared, maker, width, turn) for name, maker in makers.items()
        }
        rates = take_turns(prepared, rounds=rounds)
        for name, values in rates.items():
            ratios = [ours / theirs for ours, theirs in zip(values, rates["torch"], strict=True)]
            rows.append(
                {
                    "width": width,
                    "engine": name,
                    "examples_per_second": statistics.median(values) * EXAMPLES,
                    "ratio_to_torch": statistics.median(ratios),
                }
            )
    return rows


def _prepared(
    maker: Callable[[int], Callable[[int], int]], width: int, turn: float
) -> Callable[[], float]:
    return rate_of_steps(maker(width), turn)


def _native(width: int) -> Callable[[int], int]:
    from petridish.training.engines.native import prepare
    from petridish.training.native.run import NativeRun

    spec = replace(spec_of(N_INPUTS, width, 1), data=Data(m=1000, n_test=EXAMPLES))
    (arguments,) = prepare([spec])
    run = NativeRun(arguments)

    def evaluate(count: int) -> int:
        for _ in range(count):
            run.count_wrong(arguments.test)
        return count

    return evaluate


def _torch(width: int) -> Callable[[int], int]:
    import torch
    from torch import nn

    network = nn.Sequential(nn.Linear(N_INPUTS, width), nn.ReLU(), nn.Linear(width, 1))
    x = 1 - 2 * torch.randint(2, (EXAMPLES, N_INPUTS)).float()
    y = 1 - 2 * torch.randint(2, (EXAMPLES,)).float()

    def evaluate(count: int) -> int:
        with torch.inference_mode():
            for _ in range(count):
                int((network(x).squeeze(1) * y <= 0).sum())
        return count

    return evaluate
