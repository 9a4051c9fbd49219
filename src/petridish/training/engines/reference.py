"""The reference engine: one run, plain PyTorch, the papers' way; slow and obviously right."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from petridish.models.base import Weights
from petridish.models.parameters import build
from petridish.tasks import Examples
from petridish.tasks.domain import numbers
from petridish.training.data import (
    batch_indices,
    initial_weights,
    sample_examples,
    training_examples,
)
from petridish.training.devices import CPU, Device, does_not_fit, is_full, on_host
from petridish.training.engines.base import Monitor, Reference
from petridish.training.metrics import Metric, Threshold
from petridish.training.networks import batch_inputs, load_buffers, made_on
from petridish.training.noise import Call, Given, draw_numbers, note_calls
from petridish.training.numerics import dtype_of, settled, with_floats
from petridish.training.optimisers import SGD, AdamW
from petridish.training.penalties import NormPower
from petridish.training.readings import Gauges
from petridish.training.record import Curves, Named, Outcome, RunRecord, kept_weights
from petridish.training.spec import Rates, RunSpec
from petridish.training.user_code_checks import each_of, facts_of

CHUNK = 1024  # examples of a forward pass in evaluation


def _network(spec: RunSpec, device: Device) -> nn.Module:
    """Build the model's module with the run's initial weights."""
    module = build(spec.model, spec.domain, spec.n_outputs, spec.luck)
    module.to(dtype_of(spec))
    named = dict(module.named_parameters())
    start = initial_weights([spec])
    with torch.no_grad():
        for parameter, drawn in zip(spec.parameters, start, strict=True):
            named[parameter.name].copy_(torch.from_numpy(drawn[0]))
    load_buffers(module, spec)
    return module.to(device.name)


def _labels(examples: Examples, spec: RunSpec, device: Device) -> Tensor:
    """Return the labels of one run."""
    return _tensor(numbers(examples.labels[0]), spec, device)


def _tensor(values: NDArray[Any], spec: RunSpec, device: Device) -> Tensor:
    """Return an array in the run's precision; integers, such as tokens, stay integers."""
    return device.take(with_floats(torch.from_numpy(values), dtype_of(spec)))


def _optimiser(spec: RunSpec, network: nn.Module) -> torch.optim.Optimizer:
    training = spec.training
    groups: list[dict[str, Any]] = [{"params": [p]} for p in network.parameters()]
    optimiser = training.optimiser
    if isinstance(optimiser, SGD):
        return torch.optim.SGD(groups, lr=training.learning_rate, momentum=optimiser.momentum)
    kind = torch.optim.AdamW if isinstance(optimiser, AdamW) else torch.optim.Adam
    betas = (optimiser.beta1, optimiser.beta2)
    return kind(groups, lr=training.learning_rate, betas=betas, eps=optimiser.epsilon)


def _schedule(parts: Sequence[Rates], optimiser: torch.optim.Optimizer, step: int) -> Rates:
    part = next(part for part in reversed(parts) if part.start <= step)
    for group, rate, decay in zip(optimiser.param_groups, part.rate, part.decay, strict=True):
        group["lr"], group["weight_decay"] = rate, decay
    return part


def _penalty(spec: RunSpec, network: nn.Module) -> Tensor | float:
    """Return λ (Σ_i ‖ω_i‖_a^b)^(r/b), neuron by neuron of the hidden layer."""
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
    exponent = rule.exponent if isinstance(rule, NormPower) else rule.power
    return rule.strength * total ** (exponent / rule.power)


def train(specs: Sequence[RunSpec], monitor: Monitor, device: Device = CPU) -> Iterator[RunRecord]:
    """Carry out the runs one after another, until the monitor stops them."""
    for spec in specs:
        full = False
        try:
            _, record = trained_network(spec, monitor, device)
        except Exception as error:
            if device.host or not is_full(error):
                raise
            full = True
        if full:  # here, where no frame of the error holds tensors any more
            raise does_not_fit(spec.model, spec.task, device)
        if record is None:
            return
        yield record


def trained_network(
    spec: RunSpec, monitor: Monitor, device: Device = CPU
) -> tuple[nn.Module, RunRecord | None]:
    """Train one network; there is no record if the monitor stopped it."""
    with settled(device):
        network = _network(spec, device)
        return network, _run(spec, network, monitor, device)


class _Measured:
    """The samples of a run, and the metrics of its network on the whole of them."""

    def __init__(self, spec: RunSpec, network: nn.Module, device: Device) -> None:
        self.spec, self.network, self.device = spec, network, device
        metrics = spec.curve_metrics
        names = dict.fromkeys([*(["train"] if not spec.data.online else []), "test"])
        names |= dict.fromkeys(metric.on for metric in metrics)
        drawn = {name: sample_examples([spec], name) for name in names}
        self.inputs = {name: _tensor(each.x[0], spec, device) for name, each in drawn.items()}
        self.labels = {name: _labels(each, spec, device) for name, each in drawn.items()}
        self.facts = {
            metric: {
                name: device.take(torch.from_numpy(values))
                for name, values in facts_of(
                    metric, spec.task_of(metric.on), drawn[metric.on]
                ).items()
            }
            for metric in metrics
        }

    def each(self, metric: Metric) -> Tensor:
        """Return the metric of each example that counts."""
        self.network.eval()
        x, labels = self.inputs[metric.on], self.labels[metric.on]
        with torch.no_grad(), made_on(self.device):
            outputs = torch.cat([self.network(x[i : i + CHUNK]) for i in range(0, len(x), CHUNK)])
            found = each_of(metric, outputs[None], labels[None], self.facts.get(metric, {}))[0]
        left_out = found.isnan() & ~outputs.flatten(1).isnan().any(dim=1)
        return torch.from_numpy(on_host(found)[~on_host(left_out)]).double()

    def value(self, metric: Metric) -> float:
        """Return the mean."""
        return float(self.each(metric).mean())

    def holds(self, threshold: Threshold) -> bool:
        """Return whether a threshold is passed."""
        each = self.each(threshold.metric)
        if len(each) and threshold.metric.counts(self.spec.domain):
            return threshold.holds_count(int(each.nansum()), len(each))
        return threshold.holds(float(each.mean()))


def _run(spec: RunSpec, network: nn.Module, monitor: Monitor, device: Device) -> RunRecord | None:
    started = time.perf_counter()
    training, data = spec.training, spec.data
    optimiser, parts = _optimiser(spec, network), spec.rates()
    measured = _Measured(spec, network, device)
    full = batch_inputs(spec.task, spec.examples_per_step, dtype_of(spec))
    with made_on(device):
        calls = note_calls(network, device.take(full))
    curves = Curves()

    def weights() -> list[Weights]:
        return [on_host(parameter) for parameter in network.parameters()]

    def buffers() -> Named:
        return {name: on_host(buffer) for name, buffer in network.named_buffers()}

    gauges = Gauges(spec, weights())
    losses: list[float] = []
    outcome, step, train_loss = Outcome.OUT_OF_STEPS, 0, math.nan
    noted = {t: None for t in (spec.fitted, *spec.evaluation.reached) if t is not None}
    reached: dict[Threshold, int | None] = dict(noted)
    while True:
        if spec.evaluates_at(step):
            train_loss = sum(losses) / len(losses) if losses else math.nan
            losses.clear()
            for threshold, at in reached.items():
                if at is None and measured.holds(threshold):
                    reached[threshold] = step
            if spec.evaluation.curves:
                curves.step.append(step)
                curves.append("train_loss", train_loss)
                if data.online:
                    curves.append(spec.usual_metric("train").column, math.nan)
                for metric in spec.curve_metrics:
                    curves.append(metric.column, measured.value(metric))
                if gauges.instruments:
                    gauges.read(step, weights(), curves, buffers())
            if spec.stop is not None and measured.holds(spec.stop):
                outcome = Outcome.SOLVED
                break
            if step == training.steps:
                break
            if monitor.stopped():
                return None
        if data.online:
            batch = spec.examples_per_step
            fresh = training_examples([spec], step * batch, batch)
            x, y = _tensor(fresh.x[0], spec, device), _labels(fresh, spec, device)
        else:
            index = device.take(torch.from_numpy(batch_indices([spec], step, 1)[0, 0]))
            x, y = measured.inputs["train"][index], measured.labels["train"][index]
        part = _schedule(parts, optimiser, step)
        network.train()
        with made_on(device):
            outputs = _outputs(spec, network, x, calls, step, device)
            loss = training.loss(outputs[None], y[None]).sum()
        penalty = _penalty(spec, network)
        optimiser.zero_grad()
        (loss + penalty).backward()  # type: ignore[no-untyped-call] # PyTorch's own has no types
        if training.clip is not None:
            nn.utils.clip_grad_norm_(network.parameters(), training.clip)
        _prepare(network, optimiser, part)
        optimiser.step()
        step += 1
        losses.append(float(on_host(loss)))
        monitor.stepped(1)
        if not math.isfinite(losses[-1]):
            outcome, train_loss = Outcome.DIVERGED, math.nan
            break
    diverged = outcome is Outcome.DIVERGED
    final = {} if diverged else {m.column: measured.value(m) for m in spec.metrics}
    return RunRecord(
        spec=spec,
        outcome=outcome,
        fitted_at=None if spec.fitted is None else reached[spec.fitted],
        steps=step,
        train_loss=train_loss,
        curves=curves,
        seconds=time.perf_counter() - started,
        engine=Reference.name,
        device=device.name,
        final=final,
        reached={t.column: reached[t] for t in spec.evaluation.reached},
        **({} if diverged else kept_weights(spec, weights(), buffers())),
    )


def _outputs(
    spec: RunSpec,
    network: nn.Module,
    x: Tensor,
    calls: Sequence[Call],
    step: int,
    device: Device,
) -> Tensor:
    """Return the outputs in training; random numbers inside the module are the run's own."""
    if not calls:
        outputs: Tensor = network(x)
        return outputs
    full = spec.examples_per_step
    drawn = draw_numbers(calls, [spec.luck], step, full=full, examples=len(x))
    with Given([device.take(each[0]) for each in drawn]):
        outputs = network(x)
    return outputs


def _prepare(network: nn.Module, optimiser: torch.optim.Optimizer, part: Rates) -> None:
    """Set missing gradients to 0, and multiply each weight by its `keep` factor.

    The decay is added to the gradient first: it is computed from the weight before it shrinks.
    """
    coupled = not isinstance(optimiser, torch.optim.AdamW)
    groups = zip(network.parameters(), optimiser.param_groups, part.keep, strict=True)
    with torch.no_grad():
        for parameter, group, keep in groups:
            if not parameter.requires_grad:
                continue
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            if keep != 1:
                if coupled:
                    parameter.grad.add_(parameter, alpha=group["weight_decay"])
                    group["weight_decay"] = 0.0
                parameter.mul_(keep)
