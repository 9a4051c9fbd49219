"""Examples of many runs laid end to end, from which a stack gathers its minibatches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from petridish.choices import describe
from petridish.errors import UserError
from petridish.models import Stacked
from petridish.tasks import Examples
from petridish.tasks.domain import numbers
from petridish.training.data import (
    batch_indices,
    grouped,
    sample_examples,
    sample_size,
    training_examples,
)
from petridish.training.device_draws import Drawn
from petridish.training.devices import CPU, Device
from petridish.training.losses import TAKES_BITS
from petridish.training.numerics import dtype_of, with_floats
from petridish.training.spec import RunSpec
from petridish.training.user_code_checks import facts_of

# Row b holds the signs of the bits of the byte b, lowest first: unpacking is a lookup of 8 floats.
_SIGNS = 1.0 - 2.0 * ((torch.arange(256)[:, None] >> torch.arange(8)) & 1).float()


@dataclass(frozen=True)
class ExampleBatch:
    """Examples of several runs: inputs (run, example, …), labels, and what metrics ask of them."""

    x: Tensor
    labels: Tensor
    facts: dict[str, Tensor]


class Pool:
    """Inputs and labels of several runs, end to end; a place is a position in them.

    ±1 inputs stay packed: 25 times smaller than floats, so that a gather stays in the cache.
    `facts` has what metrics ask of each part.
    """

    def __init__(
        self,
        parts: Sequence[Examples],
        spec: RunSpec,
        facts: Sequence[Mapping[str, NDArray[Any]]] = (),
        device: Device = CPU,
    ) -> None:
        self.dtype, self.lies = dtype_of(spec), device.name
        self.places = isinstance(spec.model, Stacked) and spec.model.takes_places
        # Labels of one bit stay bytes until they are gathered; none of them is −1.
        bits = all(part.labels.dtype == np.uint8 for part in parts)
        self.gives_bits = type(spec.training.loss) in TAKES_BITS
        labels = [p.labels if bits else numbers(p.labels) for p in parts]
        real = labels[0].dtype.kind == "f"
        self.complete = bits or real or all(bool((each >= 0).all()) for each in labels)
        self.labels = device.take(with_floats(_end_to_end(labels), self.dtype))
        self.n_bits = parts[0].n_bits
        self.hot = parts[0].hot is not None
        inputs = with_floats(_end_to_end([_compact(part) for part in parts]), self.dtype)
        self.inputs = device.take(inputs)
        self.signs = device.take(_SIGNS.to(self.dtype))
        self.facts = {
            name: device.take(_end_to_end([part[name] for part in facts]))
            for name in (facts or [{}])[0]
        }

    def take(self, places: Tensor) -> tuple[Tensor, Tensor]:
        """Gather inputs and labels (run, example, …) at `places` (run, example), for the loss."""
        return self._take(places.reshape(-1), places.shape)

    def _take(self, at: Tensor | slice, shape: tuple[int, ...]) -> tuple[Tensor, Tensor]:
        rows = _rows(self.inputs, at)
        if self.hot:
            if not self.places:
                lies: Any = {"dtype": self.dtype, "device": self.lies}
                ones = torch.ones(rows.shape, **lies)
                rows = torch.zeros(len(rows), self.n_bits, **lies).scatter_(1, rows, ones)
        elif self.n_bits:
            octets = rows.view(torch.uint8)[:, : -(-self.n_bits // 8)].reshape(-1)
            rows = self.signs.index_select(0, octets.int()).view(len(rows), -1)[:, : self.n_bits]
        labels = _rows(self.labels, at).view(*shape, *self.labels.shape[1:])
        if labels.dtype == torch.uint8 and not self.gives_bits:
            labels = labels.long()
        return rows.view(*shape, *rows.shape[1:]), labels

    def batch(self, places: Tensor) -> ExampleBatch:
        """Gather all that is known of the examples at `places` (run, example)."""
        return self._batch(places.reshape(-1), places.shape)

    def between(self, start: int, stop: int) -> ExampleBatch:
        """Return all that is known of the examples start … stop − 1, of one run, without copies."""
        return self._batch(slice(start, stop), (1, stop - start))

    def _batch(self, at: Tensor | slice, shape: tuple[int, ...]) -> ExampleBatch:
        facts = {
            name: _rows(values, at).view(*shape, *values.shape[1:])
            for name, values in self.facts.items()
        }
        x, labels = self._take(at, shape)
        return ExampleBatch(x, labels.long() if labels.dtype == torch.uint8 else labels, facts)


def _rows(values: Tensor, at: Tensor | slice) -> Tensor:
    return values[at] if isinstance(at, slice) else values.index_select(0, at)


def _end_to_end(parts: Sequence[NDArray[Any]]) -> Tensor:
    """Lay the runs of several parts (run, example, …) end to end."""
    flat = [part.reshape(-1, *part.shape[2:]) for part in parts]
    return torch.from_numpy(flat[0] if len(flat) == 1 else np.concatenate(flat))


def _compact(part: Examples) -> NDArray[Any]:
    """Return the inputs as they are kept: bits in words, one-hot vectors as places of ones."""
    if part.hot is not None:
        return part.hot
    return part.x if part.packed is None else part.packed.view(np.int64)


class TrainingSource:
    """Where a stack's minibatches come from, offline or online.

    A row is the number of a run in the whole stack, before any run left it.
    """

    def __init__(self, specs: Sequence[RunSpec], device: Device = CPU) -> None:
        self.specs, self.device = specs, device
        self.drawn = None if device.host else Drawn(specs, device)
        self.online = specs[0].data.online
        self.batch_size = specs[0].examples_per_step
        self.full = specs[0].training.batch_size is None
        self.epochs = specs[0].training.batches == "epochs"
        self.group_of = np.zeros(len(specs), np.int64)
        self.first = np.zeros(len(specs), np.int64)  # place of each row's example 0
        parts: list[Examples] = []
        facts, end = [], 0
        for number, group in enumerate(grouped(specs)):
            self.group_of[group] = number
            if not self.online:
                m = int(specs[group[0]].data.m)
                parts.append(training_examples([specs[row] for row in group], 0, m))
                facts.append(metric_facts(specs[group[0]], "train", parts[-1]))
                self.first[group] = end + m * np.arange(len(group))
                end += m * len(group)
        if parts:
            self.pool = Pool(parts, specs[0], facts, device)

    def batches(self, rows: list[int], step: int, steps: int) -> tuple[Pool, Sequence[Tensor]]:
        """Return a pool and the places in it of each step's examples, each (row, batch)."""
        if self.drawn is not None and not self.full and not self.online:
            first = self.first[rows]
            return self.pool, self.drawn.places(rows, first, step, steps)
        if self.epochs:
            return self.pool, [self._epoch_batch(rows, step + ahead) for ahead in range(steps)]
        if self.full:
            return self.pool, [self.places(rows, 0, self.batch_size)] * steps
        places = np.empty((len(rows), steps, self.batch_size), np.int64)
        parts, end = [], 0
        groups = self.group_of[rows]
        for number in np.unique(groups):
            members = np.flatnonzero(groups == number)
            specs = [self.specs[rows[member]] for member in members.tolist()]
            if self.online:
                count = steps * self.batch_size
                parts.append(training_examples(specs, step * self.batch_size, count))
                fresh = np.arange(end, end + len(specs) * count)
                places[members] = fresh.reshape(len(specs), steps, self.batch_size)
                end += len(fresh)
            else:
                first = self.first[np.array(rows)[members]]
                places[members] = batch_indices(specs, step, steps) + first[:, None, None]
        pool = Pool(parts, self.specs[0], device=self.device) if self.online else self.pool
        return pool, list(self.device.take(torch.from_numpy(places.transpose(1, 0, 2).copy())))

    def _epoch_batch(self, rows: list[int], step: int) -> Tensor:
        """Return the places of one step's examples; the runs of such a stack agree in m."""
        drawn = batch_indices([self.specs[row] for row in rows], step, 1)[:, 0]
        return torch.from_numpy(drawn + self.first[rows][:, None])

    def places(self, rows: Sequence[int], start: int, stop: int) -> Tensor:
        """Return the places of the training examples start … stop − 1, shape (row, example)."""
        first = self.device.take(torch.from_numpy(self.first[rows]))
        return first[:, None] + torch.arange(start, stop, device=self.device.name)


class HeldSource:
    """A held-out sample of a stack: "test", or one of the evaluation's."""

    def __init__(self, specs: Sequence[RunSpec], name: str, device: Device = CPU) -> None:
        self.device = device
        groups = grouped(specs)
        parts = [sample_examples([specs[row] for row in group], name) for group in groups]
        facts = [
            metric_facts(specs[group[0]], name, part)
            for group, part in zip(groups, parts, strict=True)
        ]
        self.pool = Pool(parts, specs[0], facts, device)
        order = [row for group in groups for row in group]
        self.first = np.zeros(len(specs), np.int64)
        self.first[order] = np.arange(len(specs)) * sample_size(specs[0], name)

    def places(self, rows: Sequence[int], start: int, stop: int) -> Tensor:
        """Return the places of the examples start … stop − 1, shape (row, example)."""
        first = self.device.take(torch.from_numpy(self.first[list(rows)]))
        return first[:, None] + torch.arange(start, stop, device=self.device.name)


def metric_facts(spec: RunSpec, name: str, examples: Examples) -> dict[str, NDArray[Any]]:
    """Return what the run's metrics ask of the examples of a sample."""
    found: dict[str, NDArray[Any]] = {}
    for metric in spec.metrics:
        if metric.on != name:
            continue
        for fact, values in facts_of(metric, spec.task_of(name), examples).items():
            if fact in found and not np.array_equal(found[fact], values):
                raise UserError(
                    f"Two metrics of this run, {describe(metric)} the second, return different "
                    f"facts called {fact!r}. Give each its own name."
                )
            found[fact] = values
    return found
