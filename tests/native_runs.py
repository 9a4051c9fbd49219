"""What the tests of the native engine share: runs, and the same runs on paper."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from petridish.models import MLP
from petridish.tasks import SparseParity
from petridish.training import (
    Correlation,
    Data,
    Evaluation,
    Hinge,
    Logistic,
    Loss,
    RunSpec,
    Square,
    Training,
)
from petridish.training.data import batch_indices, initial_weights, training_examples
from petridish.training.engines.native import prepare, rates
from petridish.training.native.library import InstructionSet, instruction_sets
from petridish.training.native.run import NativeRun, Status

HERE = [isa for isa in instruction_sets() if isa.runs_here]
WIDTHS = (1, 7, 8, 9, 1001)
INPUTS = (3, 31, 32, 33, 64, 319, 320, 1000)
LOSSES: tuple[Loss, ...] = (Hinge(), Square(), Logistic(), Correlation())
STEPS = 50

Arrays = list[NDArray[Any]]


def spec_of(**changes: Any) -> RunSpec:
    """Return a short run without target that keeps its loss at every step."""
    training = changes.pop("training", {})
    base: dict[str, Any] = {
        "task": SparseParity(20, 3),
        "data": Data(m=100, n_test=64),
        "model": MLP(10),
        "training": Training(**{"steps": STEPS, "target_error": None} | training),
        "evaluation": Evaluation(every=1, curves=True),
    }
    return RunSpec(**(base | changes))


def carry_out(spec: RunSpec, isa: InstructionSet) -> tuple[NDArray[np.float64], Arrays]:
    """Carry out a run on an instruction set; give its loss at every step and its last weights."""
    with NativeRun(prepare([spec])[0], isa) as run:
        while run.advance(10_000) is Status.RUNNING:
            pass
        return run.curves().train_loss[1:], list(run.weights())


def by_hand(spec: RunSpec) -> tuple[NDArray[np.float64], Arrays]:
    """Carry out a run in plain float64 NumPy: the formulas as one writes them on paper."""
    training, batch = spec.training, spec.examples_per_step
    w, b, v, beta = (weight[0].astype(np.float64) for weight in initial_weights([spec]))
    losses = []
    for step in range(training.steps):
        if spec.data.online:
            examples = training_examples([spec], step * batch, batch)
            x, y = examples.x[0], 1.0 - 2.0 * examples.labels[0]
        else:
            examples = training_examples([spec], 0, int(spec.data.m))
            index = batch_indices([spec], step, 1)[0, 0]
            x, y = examples.x[0][index], 1.0 - 2.0 * examples.labels[0][index]
        z = x @ w.T + b
        f = np.maximum(z, 0) @ v[0] + beta
        values, slopes = {
            "hinge": lambda f, y: (np.maximum(1 - y * f, 0), -y * (1 - y * f > 0)),
            "square": lambda f, y: ((f - y) ** 2, 2 * (f - y)),
            "logistic": lambda f, y: (np.logaddexp(0, -y * f), -y / (1 + np.exp(y * f))),
            "correlation": lambda f, y: (-y * f, -y),
        }[training.loss.name](f, y)
        losses.append(values.mean())
        pull = slopes / batch  # ∂loss/∂f
        back = pull[:, None] * v * (z > 0)  # ∂loss/∂z
        gradients = back.T @ x, back.sum(0), (pull @ np.maximum(z, 0))[None], pull.sum()
        now = [piece for piece in rates(spec) if piece.start <= step][-1]
        w, b, v, beta = (
            value - rate * (gradient + decay * value)
            for value, gradient, rate, decay in zip(
                (w, b, v, beta), gradients, now.rate, now.decay, strict=True
            )
        )
    return np.array(losses), [w, b, v, beta]
