"""The contracts of models and of their starts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from petridish.choices import describe
from petridish.models import FitsItself, Init, Model, Stacked
from petridish.models.parameters import build, parameters_of, read_parameters
from petridish.tasks import (
    Task,
)
from petridish.testing.base import (
    SEEDS,
    agree,
    check_value,
    close,
    demand,
    in_words,
    numbers_of,
    short_run,
)
from petridish.training import (
    Loss,
    RunSpec,
    Silent,
    load_engine,
)
from petridish.training.data import initial_weights
from petridish.training.numerics import with_floats


@in_words
def check_model(model: Model, task: Task, *, loss: Loss | None = None) -> None:
    """Check a model on a task: its module, its parameters, its stacked form, and the engines.

    Parameters
    ----------
    loss : Loss, optional
        What it is trained by: cross entropy for classes and the square for real targets if not
        given.
    """
    check_value(model)
    if isinstance(model, FitsItself):
        return
    spec = short_run(task, model, loss)
    spec.check()
    name = describe(model)
    module = build(model, spec.domain, spec.n_outputs)
    said = parameters_of(model, spec.domain, spec.n_outputs)
    found = read_parameters(module)
    demand(
        [(p.name, p.shape, p.trained) for p in said]
        == [(p.name, p.shape, p.trained) for p in found],
        f"{name}: parameters lists {[(p.name, p.shape) for p in said]}, and its module has "
        f"{[(p.name, p.shape) for p in found]}. List what the module has, in its order.",
    )
    if isinstance(model, Stacked):
        _check_stacked(model, spec)
    ours = {
        engine: list(load_engine(engine).run([replace(spec, seed=s) for s in SEEDS], Silent()))
        for engine in ("torch", "reference")
        if load_engine(engine).refusal(spec) is None
    }
    if len(ours) == 2:
        agree(f"{name} in the engines torch and reference", ours["torch"], ours["reference"])


def _check_stacked(model: Any, spec: RunSpec) -> None:
    import torch

    parameters = spec.parameters
    shapes = {p.name: (2, *p.shape) for p in parameters}
    weights = [torch.from_numpy(numbers_of(f"weights {name}", s)) for name, s in shapes.items()]
    drawn = np.stack([spec.task.draw([s], "test", 0, 5).x[0] for s in (0, 1)])
    x = with_floats(torch.from_numpy(drawn), torch.float64)
    outputs = model.forward(weights, x)
    for run in (0, 1):
        module = build(model, spec.domain, spec.n_outputs).double().eval()
        named = dict(module.named_parameters())
        with torch.no_grad():
            for parameter, values in zip(parameters, weights, strict=True):
                named[parameter.name].copy_(values[run])
            alone = module(x[run])
        demand(
            close(outputs[run].detach().numpy(), alone.numpy(), 1e-9),
            f"{describe(model)}: its stacked forward computes something else than its module. Let "
            "both compute the same, or leave the stacked form out.",
        )


@in_words
def check_init(init: Init, model: Model, task: Task, *, loss: Loss | None = None) -> None:
    """Check a start of a model on a task: shapes, types, and that a draw is a run's own."""
    check_value(init)
    spec = short_run(task, model, loss, init=init)
    spec.check()
    specs = [replace(spec, seed=seed) for seed in SEEDS]
    together, again, alone = (initial_weights(each) for each in (specs, specs, specs[1:]))
    drawn = zip(spec.parameters, together, again, alone, strict=True)
    for parameter, both, twice, one in drawn:
        name = f"{describe(init)}: {parameter.name}"
        demand(
            both.dtype == np.float32,
            f"{name} was drawn with the type {both.dtype}. Draw float32.",
        )
        demand(np.isfinite(both).all(), f"{name} is not finite. Draw finite numbers.")
        demand(
            np.array_equal(both, twice),
            f"{name}, drawn again for the same runs, is another: it is drawn by random numbers "
            "that are not the run's. Draw it from Streams(seeds, name).",
        )
        demand(
            np.array_equal(both[1], one[0]),
            f"{name} of one run depends on the other runs. Draw it from Streams(seeds, name), one "
            "row per run.",
        )
