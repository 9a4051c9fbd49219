"""Runs of one shape side by side: when they are measured, what ends them, what is kept of them.

The engine `torch` stacks many runs; compiled attention goes through the same course with one.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from petridish.models.base import Weights
from petridish.training.data import grouped, initial_weights
from petridish.training.devices import CPU, Device, has_no_numbers, holds, on_host
from petridish.training.engines.base import Monitor
from petridish.training.evaluator import Evaluator, StackState, Values
from petridish.training.metrics import Threshold
from petridish.training.networks import Network
from petridish.training.numerics import dtype_of
from petridish.training.pools import TrainingSource
from petridish.training.readings import Gauges
from petridish.training.record import Curves, Named, Outcome, RunRecord, kept_weights
from petridish.training.spec import RunSpec

DRAWN_AHEAD = 50  # steps whose minibatches are drawn in one call


def take_course(stack: Stack, monitor: Monitor) -> Iterator[RunRecord]:
    """Let the runs of a stack take steps and be measured, and yield each record as its run ends."""
    spec, step = stack.specs[0], 0
    while True:
        yield from stack.evaluate(step)
        while step < spec.training.steps and stack.specs:
            ahead = min(stack.drawn_ahead, spec.next_evaluation(step) - step)
            done = stack.advance(step, ahead, monitor)
            if done < ahead:
                return
            step += ahead
            yield from stack.drop_diverged(step - ahead)
            if spec.evaluates_at(step):
                break
        if not stack.specs:
            return


class Stack(ABC):
    """The runs still under way, and everything they own; entry i of each belongs to run i.

    How steps are taken is left to a subclass, everything else is done here.
    """

    engine: ClassVar[str]
    drawn_ahead: int
    """Steps that are taken in one call, at most."""

    def __init__(
        self, specs: Sequence[RunSpec], network: Network, *, pairs: bool, device: Device = CPU
    ) -> None:
        started = time.perf_counter()
        self.specs, self.device = list(specs), device
        self.rows = list(range(len(specs)))  # each run's number in the whole stack
        self.train = TrainingSource(specs, device)
        self.network = network
        self.evaluator = Evaluator(specs, self.network, self.train, pairs=pairs, device=device)
        start = _stacked_weights(specs)
        self.gauges = [
            Gauges(spec, _of(run, start) if spec.evaluation.gauges else ())
            for run, spec in enumerate(specs)
        ]
        self.weights = [device.take(weight) for weight in start]
        self.loss_sum = torch.zeros(len(specs), dtype=device.sums, device=device.name)
        self.n_losses = 0
        self.recent = torch.zeros(0, len(specs))  # losses of the steps just taken, (step, run)
        # The first evaluation at which each threshold held, of every run; the sample's fit first.
        self.noted = [t for t in (specs[0].fitted, *specs[0].evaluation.reached) if t is not None]
        self.reached: list[list[int | None]] = [[None] * len(self.noted) for _ in specs]
        self.curves = [Curves() for _ in specs]
        self.seconds = [(time.perf_counter() - started) / len(specs)] * len(specs)

    @abstractmethod
    def advance(self, step: int, steps: int, monitor: Monitor) -> int:
        """Take `steps` steps, fewer if the monitor stops them, and return how many.

        The losses go to `recent` and to `loss_sum`, whose steps `n_losses` counts.
        """

    def _charge(self, started: float) -> None:
        share = (time.perf_counter() - started) / len(self.specs)
        self.seconds = [seconds + share for seconds in self.seconds]

    def drop_diverged(self, start: int) -> Iterator[RunRecord]:
        """End the runs whose loss was not finite in a step since `start`."""
        if holds(self.recent.isfinite().all(), usual=True):
            return
        finite = on_host(self.recent.isfinite())[:, : len(self.specs)]  # (step, run)
        good = finite.all(axis=0)
        for run in self._in_order(np.flatnonzero(~good).tolist()):
            steps = start + int(finite[:, run].argmin()) + 1
            yield self._record(run, Outcome.DIVERGED, steps, {}, math.nan)
        self._keep(np.flatnonzero(good).tolist())

    def evaluate(self, step: int) -> Iterator[RunRecord]:
        """Measure the runs at `step`, and end those that are solved or out of steps."""
        started = time.perf_counter()
        spec, everyone = self.specs[0], list(range(len(self.specs)))
        losses = on_host(self.loss_sum / self.n_losses).tolist() if self.n_losses else None
        last = step == spec.training.steps
        asked: list[tuple[Threshold, list[int]]] = [
            (threshold, [run for run in everyone if self.reached[run][place] is None])
            for place, threshold in enumerate(self.noted)
        ]
        if spec.stop is not None:
            asked.append((spec.stop, everyone))
        now = StackState(self.specs, self.rows, self.weights)
        passed, values = self.evaluator.evaluate(now, asked)
        for place in range(len(self.noted)):
            for run in passed[place]:
                self.reached[run][place] = step
        solved = passed[-1] if spec.stop is not None else set()
        if values:
            self._extend_curves(step, losses, values)
        ending = self._in_order(everyone if last else solved)
        final = self._final(now, ending, values)
        self._charge(started)
        for run, numbers in zip(ending, final, strict=True):
            outcome = Outcome.SOLVED if run in solved else Outcome.OUT_OF_STEPS
            yield self._record(run, outcome, step, numbers, losses[run] if losses else math.nan)
        if ending:
            self._keep([run for run in everyone if run not in set(ending)])
        self.loss_sum.zero_()
        self.n_losses = 0

    def _final(self, now: StackState, ending: list[int], values: Sequence[Values]) -> list[Values]:
        metrics = self.specs[0].metrics
        if values:
            return [{m.column: values[run][m.column] for m in metrics} for run in ending]
        return self.evaluator.measure(now, ending, metrics) if ending else []

    def _extend_curves(
        self, step: int, losses: list[float] | None, values: Sequence[Values]
    ) -> None:
        unmeasured = self.specs[0].usual_metric("train").column  # online there is no sample
        for run, curve in enumerate(self.curves):
            curve.step.append(step)
            curve.append("train_loss", losses[run] if losses else math.nan)
            if self.train.online:
                curve.append(unmeasured, math.nan)
            for name, value in values[run].items():
                curve.append(name, value)
            if self.gauges[run].instruments:
                weights = self._weights_of(run)
                buffers = self._buffers_of(run)
                self.gauges[run].read(step, weights, curve, buffers, self.network.compiled)

    def _weights_of(self, run: int) -> list[Weights]:
        return _of(run, self.weights)

    def _buffers_of(self, run: int) -> Named:
        return {name: on_host(buffer[run]) for name, buffer in self.network.buffers.items()}

    def _in_order(self, runs: Iterable[int]) -> list[int]:
        """Return runs in the order in which they were given to the stack."""
        return sorted(runs, key=self.rows.__getitem__)

    def _keep(self, runs: list[int]) -> None:
        """Drop all but `runs` from the stack."""
        runs, kept = closed_up(runs, self.device)
        self._select(kept)
        self.specs = [self.specs[run] for run in runs]
        self.rows = [self.rows[run] for run in runs]
        self.curves = [self.curves[run] for run in runs]
        self.reached = [self.reached[run] for run in runs]
        self.gauges = [self.gauges[run] for run in runs]
        self.seconds = [self.seconds[run] for run in runs]

    def _select(self, kept: Callable[[Tensor], Tensor]) -> None:
        self.weights = [kept(weight) for weight in self.weights]
        self.network.keep(kept)
        self.loss_sum = kept(self.loss_sum)

    def _record(
        self, run: int, outcome: Outcome, steps: int, final: Values, train_loss: float
    ) -> RunRecord:
        spec, noted = self.specs[run], self.reached[run]
        first = 0 if spec.fitted is None else 1
        kept = (
            {}
            if outcome is Outcome.DIVERGED
            else kept_weights(spec, self._weights_of(run), self._buffers_of(run))
        )
        return RunRecord(
            spec=spec,
            outcome=outcome,
            fitted_at=noted[0] if first else None,
            steps=steps,
            train_loss=train_loss,
            curves=self.curves[run],
            seconds=self.seconds[run],
            engine=self.engine,
            device=self.device.name,
            final=final,
            reached={t.column: at for t, at in zip(self.noted[first:], noted[first:], strict=True)},
            **kept,
        )


def closed_up(runs: Sequence[int], device: Device) -> tuple[list[int], Callable[[Tensor], Tensor]]:
    """Let the last of the runs that stay take the places of those that leave.

    Parameters
    ----------
    runs : sequence of int
        The places of those that stay, ascending.

    Returns
    -------
    runs : list of int
        The run at each place afterwards.
    kept : callable
        Changes a tensor (run, …) in place, and returns the part of it that is still in use. The
        other runs stay where they are in memory: as many are moved as have left, or fewer.
    """
    n, staying = len(runs), set(runs)
    gaps = [place for place in range(n) if place not in staying]
    moving = [run for run in runs if run >= n]
    order = list(range(n))
    for gap, run in zip(gaps, moving, strict=True):
        order[gap] = run
    to, here = (
        torch.tensor(each, dtype=torch.int64, device=device.name) for each in (gaps, moving)
    )

    def kept(held: Tensor) -> Tensor:
        own = held.detach()
        if gaps:
            own.index_copy_(0, to, own.index_select(0, here))
        return own[:n]

    return order, kept


def _of(run: int, weights: Sequence[Tensor]) -> list[Weights]:
    """Return the weights of one run as arrays."""
    return [on_host(weight[run]) for weight in weights]


def _stacked_weights(specs: Sequence[RunSpec]) -> list[Tensor]:
    shapes = [parameter.shape for parameter in specs[0].parameters]
    dtype = dtype_of(specs[0])
    weights = [torch.empty(len(specs), *shape, dtype=dtype) for shape in shapes]
    if any(map(has_no_numbers, weights[:1])):
        return weights  # memory is being predicted: nothing is drawn
    for group in grouped(specs):
        drawn = initial_weights([specs[run] for run in group])
        for weight, values in zip(weights, drawn, strict=True):
            weight[torch.tensor(group)] = torch.from_numpy(values).to(dtype)
    return weights
