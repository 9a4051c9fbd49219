"""Measuring networks on tables against the bare matrix products of the same sizes."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

SHAPES = ((1000, 256), (1000, 64), (3000, 256))  # width and rows of a batch, two hidden layers
N_INPUTS = 20


def measure_tables(*, rounds: int, turn: float) -> list[dict[str, Any]]:
    """Time a training step and its matrix products alone, in turns on one core; one row per shape.

    A step is forward, backward and Adam's update of a ReLU network with two hidden layers of equal
    width, as the engine `wide` takes it. Its products are the eight of the same sizes and no more.
    """
    import torch

    from petridish.training.numerics import settled

    rows = []
    with settled():
        for width, batch in SHAPES:
            torch.manual_seed(0)
            step, products = _step(width, batch), _products(width, batch)
            seconds: dict[str, list[float]] = {"step": [], "products": []}
            for _ in range(rounds):
                seconds["step"].append(_seconds(step, turn))
                seconds["products"].append(_seconds(products, turn))
            shares = [p / s for p, s in zip(seconds["products"], seconds["step"], strict=True)]
            rows.append(
                {
                    "width": width,
                    "batch": batch,
                    "milliseconds": 1e3 * statistics.median(seconds["step"]),
                    "share_of_sgemm": statistics.median(shares),
                }
            )
    return rows


def _step(width: int, batch: int) -> Callable[[], object]:
    import torch

    from petridish.models import MLP, Sparse
    from petridish.tasks import Classes, Domain, Reals
    from petridish.training import Adam
    from petridish.training.members import Members

    domain = Domain(Reals((N_INPUTS,)), Classes(2))
    parameters = MLP(width, deeper=(width,)).parameters(domain, 1)
    member = Members(Sparse(2).draw(parameters, [0]), loss="logistic", optimiser=Adam())
    x, target = torch.randn(batch, N_INPUTS), torch.rand(batch, 1)
    return lambda: member.step(x, target, rate=1e-3)


def _products(width: int, batch: int) -> Callable[[], object]:
    import torch

    sizes = [(width, N_INPUTS), (width, width), (1, width)]
    weights = [torch.randn(1, fan_out, fan_in) for fan_out, fan_in in sizes]
    inputs = [torch.randn(1, batch, fan_in) for _, fan_in in sizes]
    slopes = [torch.randn(1, batch, fan_out) for fan_out, _ in sizes]
    outputs = [torch.empty_like(slope) for slope in slopes]
    weight_slopes = [torch.empty_like(weight) for weight in weights]
    input_slopes = [torch.empty_like(h) for h in inputs]

    def run() -> None:
        for layer, weight in enumerate(weights):
            torch.bmm(inputs[layer], weight.mT, out=outputs[layer])
            torch.bmm(slopes[layer].mT, inputs[layer], out=weight_slopes[layer])
            if layer:  # the inputs themselves need no gradient
                torch.bmm(slopes[layer], weight, out=input_slopes[layer])

    return run


def _seconds(call: Callable[[], object], turn: float) -> float:
    """Time a call, repeated for a turn."""
    call()
    calls, started = 0, time.perf_counter()
    while (taken := time.perf_counter() - started) < turn:
        call()
        calls += 1
    return taken / calls
