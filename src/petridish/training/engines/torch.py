"""The torch engine: many runs of one shape stacked on axis 0, each with its own rate, decay, data.

The loss of the stack is the sum of its runs' losses, so that one backward pass gives every run its
own gradient. A run that ends leaves the stack.

A run's record does not depend on the stack: sums run inside a run, kernels do not see where in
memory a run lies (`numerics.pin_kernels`), the held-out sample is read in pieces of one size, and a
run left alone is computed beside a copy of itself, because a stack of one takes another kernel.
Runs that fill the cache each by itself are never stacked.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from petridish.models.base import Stacked, Weights
from petridish.training.data import grouped, initial_weights
from petridish.training.engines.base import Monitor, Torch
from petridish.training.evaluator import Evaluator, Standing, Values
from petridish.training.metrics import Threshold
from petridish.training.networks import stack_of
from petridish.training.numerics import settled
from petridish.training.pools import TrainingSource
from petridish.training.readings import Gauges
from petridish.training.record import Curves, Named, Outcome, RunRecord, kept_weights
from petridish.training.spec import RunSpec
from petridish.training.updates import make_update

DRAWN_AHEAD = 50  # steps whose minibatches are drawn in one go


def train(specs: Sequence[RunSpec], monitor: Monitor) -> Iterator[RunRecord]:
    """Carry out runs of one shape, giving each record as its run ends."""
    with settled():
        if Torch().stack_size(specs[0]) > 1:
            yield from _train(specs, monitor)
            return
        for spec in specs:
            if monitor.stopped():
                return
            yield from _train([spec], monitor)


def _train(specs: Sequence[RunSpec], monitor: Monitor) -> Iterator[RunRecord]:
    stack = _Stack(specs)
    spec, step = specs[0], 0
    while True:
        yield from stack.evaluate(step)
        while step < spec.training.steps and stack.specs:
            ahead = min(DRAWN_AHEAD, spec.next_evaluation(step) - step)
            done = stack.advance(step, ahead, monitor)
            if done < ahead:
                return
            step += ahead
            yield from stack.drop_diverged(step - ahead)
            if spec.evaluates_at(step):
                break
        if not stack.specs:
            return


class _Stack:
    """The runs still under way, and everything they own; entry i of each belongs to run i."""

    def __init__(self, specs: Sequence[RunSpec]) -> None:
        started = time.perf_counter()
        self.specs = list(specs)
        self.rows = list(range(len(specs)))  # each run's number in the whole stack
        self.stacks = Torch().stack_size(specs[0]) > 1
        self.train = TrainingSource(specs)
        self.network = stack_of(specs)
        self.evaluator = Evaluator(specs, self.network, self.train, pairs=self.stacks)
        self.parameters = specs[0].parameters
        self.unsure = not isinstance(
            specs[0].model, Stacked
        )  # of what a module's outputs depend on
        self.trained = [place for place, p in enumerate(self.parameters) if p.trained]
        self.weights = self._asked(_stacked_weights(specs))
        self.update = make_update(specs, self._chosen(self.weights))
        self.loss_sum = torch.zeros(len(specs), dtype=torch.float64)
        self.n_losses = 0
        self.recent = torch.zeros(0, len(specs))  # losses of the steps just taken, (step, run)
        # The first evaluation at which each threshold held, of every run; the sample's fit first.
        self.noted = [t for t in (specs[0].fitted, *specs[0].evaluation.reached) if t is not None]
        self.reached: list[list[int | None]] = [[None] * len(self.noted) for _ in specs]
        self.curves = [Curves() for _ in specs]
        self.gauges = [Gauges(spec, self._weights_of(run)) for run, spec in enumerate(specs)]
        self.seconds = [(time.perf_counter() - started) / len(specs)] * len(specs)
        self._pair_up()

    def _chosen(self, weights: Sequence[Tensor]) -> list[Tensor]:
        return [weights[place] for place in self.trained]

    def _asked(self, weights: Sequence[Tensor]) -> list[Tensor]:
        """Ask for the gradients of what is trained."""
        for weight in self._chosen(weights):
            weight.requires_grad_()
        return list(weights)

    def _pair_up(self) -> None:
        """Give a run left alone a copy of itself to be computed beside."""
        if len(self.specs) == 1 and self.stacks:
            self._select(torch.tensor([0, 0]))

    def advance(self, step: int, steps: int, monitor: Monitor) -> int:
        """Take `steps` steps, or fewer if the monitor stops them; say how many."""
        started = time.perf_counter()
        lonely = len(self.rows) == 1 and self.stacks
        computed = self.rows * 2 if lonely else self.rows
        lucks = [spec.luck for spec in self.specs] * (2 if lonely else 1)
        pool, places = self.train.batches(computed, step, steps)
        loss_of, penalty = self.specs[0].training.loss, self.specs[0].training.penalty
        trained = self._chosen(self.weights)
        recent = []
        for ahead in range(steps):
            if monitor.stopped():
                return ahead
            x, y = pool.take(places[ahead])  # (run, batch, input), (run, batch)
            loss = loss_of(self.network.train(self.weights, x, lucks, step + ahead), y)  # (run,)
            total = loss + penalty(self.parameters, self.weights) if penalty.strength else loss
            gradients = torch.autograd.grad(total.sum(), trained, materialize_grads=self.unsure)
            self.update(trained, gradients, step + ahead)
            recent.append(loss.detach())
            self.loss_sum += recent[-1]
            monitor.stepped(len(self.specs))
        self.recent = torch.stack(recent)
        self.n_losses += steps
        self._charge(started)
        return steps

    def _charge(self, started: float) -> None:
        share = (time.perf_counter() - started) / len(self.specs)
        self.seconds = [seconds + share for seconds in self.seconds]

    def drop_diverged(self, start: int) -> Iterator[RunRecord]:
        """End the runs whose loss was not finite in a step since `start`."""
        if self.recent.isfinite().all():
            return
        finite = self.recent.isfinite()[:, : len(self.specs)]  # (step, run)
        for run, good in enumerate(finite.T.tolist()):
            if not all(good):
                steps = start + good.index(False) + 1
                yield self._record(run, Outcome.DIVERGED, steps, {}, math.nan)
        self._keep(finite.all(dim=0).nonzero().flatten().tolist())

    def evaluate(self, step: int) -> Iterator[RunRecord]:
        """Measure the runs at `step`, and end those that are solved or out of steps."""
        started = time.perf_counter()
        spec, everyone = self.specs[0], list(range(len(self.specs)))
        losses = (self.loss_sum / self.n_losses).tolist() if self.n_losses else None
        last = step == spec.training.steps
        asked: list[tuple[Threshold, list[int]]] = [
            (threshold, [run for run in everyone if self.reached[run][place] is None])
            for place, threshold in enumerate(self.noted)
        ]
        if spec.stop is not None:
            asked.append((spec.stop, everyone))
        now = Standing(self.specs, self.rows, self.weights)
        passed, values = self.evaluator.evaluate(now, asked)
        for place in range(len(self.noted)):
            for run in passed[place]:
                self.reached[run][place] = step
        solved = passed[-1] if spec.stop is not None else set()
        if values:
            self._extend_curves(step, losses, values)
        ending = [run for run in everyone if last or run in solved]
        final = self._final(now, ending, values)
        self._charge(started)
        for run, numbers in zip(ending, final, strict=True):
            outcome = Outcome.SOLVED if run in solved else Outcome.OUT_OF_STEPS
            yield self._record(run, outcome, step, numbers, losses[run] if losses else math.nan)
        if ending:
            self._keep([run for run in everyone if run not in set(ending)])
        self.loss_sum.zero_()
        self.n_losses = 0

    def _final(self, now: Standing, ending: list[int], values: Sequence[Values]) -> list[Values]:
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
                self.gauges[run].read(step, weights, curve, self._buffers_of(run))

    def _weights_of(self, run: int) -> list[Weights]:
        return [weight[run].detach().numpy() for weight in self.weights]

    def _buffers_of(self, run: int) -> Named:
        return {name: buffer[run].numpy() for name, buffer in self.network.buffers.items()}

    def _keep(self, runs: list[int]) -> None:
        """Let all but `runs` leave the stack."""
        self._select(torch.tensor(runs, dtype=torch.int64))
        self.specs = [self.specs[run] for run in runs]
        self.rows = [self.rows[run] for run in runs]
        self.curves = [self.curves[run] for run in runs]
        self.reached = [self.reached[run] for run in runs]
        self.gauges = [self.gauges[run] for run in runs]
        self.seconds = [self.seconds[run] for run in runs]
        self._pair_up()

    def _select(self, rows: Tensor) -> None:
        self.weights = self._asked([weight.detach()[rows] for weight in self.weights])
        self.network.keep(rows)
        self.update.keep(rows)
        self.loss_sum = self.loss_sum[rows]

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
            solved_at=steps if outcome is Outcome.SOLVED else None,
            fitted_at=noted[0] if first else None,
            steps=steps,
            test_error=final.get("test_error", math.nan),
            train_loss=train_loss,
            curves=self.curves[run],
            seconds=self.seconds[run],
            engine=Torch.name,
            final=final,
            reached={t.column: at for t, at in zip(self.noted[first:], noted[first:], strict=True)},
            **kept,
        )


def _stacked_weights(specs: Sequence[RunSpec]) -> list[Tensor]:
    shapes = [parameter.shape for parameter in specs[0].parameters]
    dtype = getattr(torch, specs[0].training.precision)
    weights = [torch.empty(len(specs), *shape, dtype=dtype) for shape in shapes]
    for group in grouped(specs):
        drawn = initial_weights([specs[run] for run in group])
        for weight, values in zip(weights, drawn, strict=True):
            weight[torch.tensor(group)] = torch.from_numpy(values).to(dtype)
    return weights
