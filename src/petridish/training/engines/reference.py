"""The reference engine: one run, plain PyTorch, the papers' way; slow and obviously right."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from petridish.models import MLP
from petridish.models.base import Weights
from petridish.tasks import Examples
from petridish.training.data import batch_indices, initial_weights, test_examples, training_examples
from petridish.training.engines.base import Monitor, Reference
from petridish.training.instruments import Gauges
from petridish.training.numerics import settled
from petridish.training.optimisers import SGD, AdamW
from petridish.training.record import Curves, Outcome, RunRecord, kept_weights
from petridish.training.screen import allowed_errors
from petridish.training.spec import Part, RunSpec


class _Functional(nn.Module):
    """Any model, through its own `forward` with a stack of one run."""

    def __init__(self, spec: RunSpec, weights: list[Tensor]) -> None:
        super().__init__()
        self.model = spec.model
        self.weights = nn.ParameterList(weights)

    def forward(self, x: Tensor) -> Tensor:
        stacked = [weight.unsqueeze(0) for weight in self.weights]
        return self.model.forward(stacked, x.unsqueeze(0)).squeeze(0)


def _network(spec: RunSpec) -> nn.Module:
    weights = [_tensor(drawn[0], spec) for drawn in initial_weights([spec])]
    if not isinstance(spec.model, MLP):
        return _Functional(spec, weights)
    layers: list[nn.Module] = []
    depth = 1 + len(spec.model.deeper)
    for weight, bias in zip_longest(weights[::2], weights[1::2]):
        linear = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
        linear.weight.data = weight
        if bias is not None:
            linear.bias.data = bias
        layers.append(linear)
        if len(layers) < 2 * depth:
            layers.append(_Activation(spec.model))
    return nn.Sequential(*layers, *([_Sum()] if spec.model.output == "sum" else []))


def _labels(examples: Examples) -> Tensor:
    """Return the labels of one run; PyTorch indexes few unsigned integers."""
    labels = examples.labels[0]
    return torch.from_numpy(labels.astype(np.int64) if labels.dtype.kind == "u" else labels)


def _tensor(values: NDArray[Any], spec: RunSpec) -> Tensor:
    """Give numbers in the run's precision; tokens stay whole."""
    tensor = torch.from_numpy(values)
    return (
        tensor.to(getattr(torch, spec.training.precision)) if tensor.is_floating_point() else tensor
    )


class _Sum(nn.Module):
    def forward(self, h: Tensor) -> Tensor:
        return h.sum(dim=-1, keepdim=True)


class _Activation(nn.Module):
    def __init__(self, model: MLP) -> None:
        super().__init__()
        self.activation = model.activation

    def forward(self, z: Tensor) -> Tensor:
        return self.activation(z)


def _optimiser(spec: RunSpec, network: nn.Module) -> torch.optim.Optimizer:
    training = spec.training
    groups: list[dict[str, Any]] = [{"params": [p]} for p in network.parameters()]
    optimiser = training.optimiser
    if isinstance(optimiser, SGD):
        return torch.optim.SGD(groups, lr=training.learning_rate, momentum=optimiser.momentum)
    kind = torch.optim.AdamW if isinstance(optimiser, AdamW) else torch.optim.Adam
    betas = (optimiser.beta1, optimiser.beta2)
    return kind(groups, lr=training.learning_rate, betas=betas, eps=optimiser.epsilon)


def _schedule(parts: Sequence[Part], optimiser: torch.optim.Optimizer, step: int) -> None:
    _, rates, decays = next(part for part in reversed(parts) if part[0] <= step)
    for group, rate, decay in zip(optimiser.param_groups, rates, decays, strict=True):
        group["lr"], group["weight_decay"] = rate, decay


def _penalty(spec: RunSpec, network: nn.Module) -> Tensor | float:
    """Give λ Σ_i ‖ω_i‖_a^b, neuron by neuron of the hidden layer."""
    rule = spec.training.penalty
    if not rule.strength:
        return 0.0
    total: Tensor | float = 0.0
    named = list(zip(spec.parameters, network.parameters(), strict=True))
    for neuron in range(spec.parameters[0].fan_out):
        own = []
        for parameter, values in named:
            if parameter.layer == 0:
                own.append(values[neuron].reshape(-1))
            elif parameter.kind == "weight":
                own.append(values[:, neuron])
        total = total + torch.linalg.vector_norm(torch.cat(own), rule.order) ** rule.power
    return rule.strength * total


def train(specs: Sequence[RunSpec], monitor: Monitor) -> Iterator[RunRecord]:
    """Carry out the runs one after another, until the monitor stops them."""
    for spec in specs:
        _, record = trained_network(spec, monitor)
        if record is None:
            return
        yield record


def trained_network(spec: RunSpec, monitor: Monitor) -> tuple[nn.Module, RunRecord | None]:
    """Train one network; there is no record if the monitor stopped it."""
    network = _network(spec)
    with settled():
        return network, _run(spec, network, monitor)


def _run(spec: RunSpec, network: nn.Module, monitor: Monitor) -> RunRecord | None:
    started = time.perf_counter()
    training, data, loss_of = spec.training, spec.data, spec.training.loss
    optimiser, parts = _optimiser(spec, network), spec.rates()
    test = test_examples([spec])
    x_test, y_test = _tensor(test.x[0], spec), _labels(test)
    if not data.online:
        train = training_examples([spec], 0, int(data.m))
        x_train, y_train = _tensor(train.x[0], spec), _labels(train)

    def count_wrong(x: Tensor, y: Tensor) -> int:
        with torch.no_grad():
            return int(loss_of.wrong(network(x)[None], y[None].float()).sum())

    curves = Curves()

    def weights() -> list[Weights]:
        return [parameter.detach().numpy() for parameter in network.parameters()]

    gauges = Gauges(spec, weights())
    losses: list[float] = []
    outcome, step, test_error, train_loss = Outcome.OUT_OF_STEPS, 0, math.nan, math.nan
    fitted_at: int | None = None
    fitted_error = None if data.online else spec.evaluation.fitted_error
    while True:
        if step % spec.evaluation.every == 0 or step == training.steps:
            n_wrong = count_wrong(x_test, y_test)
            test_error = n_wrong / data.n_test
            train_loss = sum(losses) / len(losses) if losses else math.nan
            losses.clear()
            if fitted_at is None and fitted_error is not None:
                allowed = allowed_errors(int(data.m), fitted_error)
                fitted_at = step if count_wrong(x_train, y_train) <= allowed else None
            if spec.evaluation.curves:
                curves.step.append(step)
                curves.train_loss.append(train_loss)
                curves.train_error.append(
                    math.nan if data.online else count_wrong(x_train, y_train) / data.m
                )
                curves.test_error.append(test_error)
                gauges.read(weights(), curves.instruments)
            target = training.target_error
            if target is not None and n_wrong <= allowed_errors(data.n_test, target):
                outcome = Outcome.SOLVED
                break
            if step == training.steps:
                break
            if monitor.stopped():
                return None
        if data.online:
            batch = spec.examples_a_step
            fresh = training_examples([spec], step * batch, batch)
            x, y = _tensor(fresh.x[0], spec), _labels(fresh)
        else:
            index = torch.from_numpy(batch_indices([spec], step, 1)[0, 0])
            x, y = x_train[index], y_train[index]
        _schedule(parts, optimiser, step)
        loss = loss_of(network(x)[None], y[None].float()).sum()
        penalty = _penalty(spec, network)
        optimiser.zero_grad()
        (loss + penalty).backward()  # type: ignore[no-untyped-call] # PyTorch's own has no types
        optimiser.step()
        step += 1
        losses.append(loss.item())
        monitor.stepped(1)
        if not math.isfinite(losses[-1]):
            outcome, test_error, train_loss = Outcome.DIVERGED, math.nan, math.nan
            break
    return RunRecord(
        spec=spec,
        outcome=outcome,
        solved_at=step if outcome is Outcome.SOLVED else None,
        fitted_at=fitted_at,
        steps=step,
        test_error=test_error,
        train_loss=train_loss,
        curves=curves,
        seconds=time.perf_counter() - started,
        engine=Reference.name,
        weights=None if outcome is Outcome.DIVERGED else kept_weights(spec, weights()),
    )
