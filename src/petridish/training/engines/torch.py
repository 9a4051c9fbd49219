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
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from petridish.models.base import Weights
from petridish.training.data import grouped, initial_weights
from petridish.training.engines.base import Monitor, Torch
from petridish.training.instruments import Gauges
from petridish.training.numerics import settled
from petridish.training.pools import Pool, TestSource, TrainingSource
from petridish.training.record import Curves, Outcome, RunRecord, kept_weights
from petridish.training.screen import CHUNK, Stage, stages
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
    steps, every = stack.specs[0].training.steps, stack.specs[0].evaluation.every
    step = 0
    while True:
        yield from stack.look(step)
        while step < steps and stack.specs:
            ahead = min(DRAWN_AHEAD, every - step % every, steps - step)
            done = stack.advance(step, ahead, monitor)
            if done < ahead:
                return
            step += ahead
            yield from stack.drop_diverged(step - ahead)
            if step % every == 0:
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
        self.test = TestSource(specs)
        self.weights = _stacked_weights(specs)
        self.update = make_update(specs, self.weights)
        self.loss_sum = torch.zeros(len(specs), dtype=torch.float64)
        self.n_losses = 0
        self.recent = torch.zeros(0, len(specs))  # losses of the steps just taken, (step, run)
        self.fitted_at: list[int | None] = [None] * len(specs)
        self.curves = [Curves() for _ in specs]
        self.gauges = [Gauges(spec, self._weights_of(run)) for run, spec in enumerate(specs)]
        self.seconds = [(time.perf_counter() - started) / len(specs)] * len(specs)
        self._pair_up()

    def _pair_up(self) -> None:
        """Give a run left alone a copy of itself to be computed beside."""
        if len(self.specs) == 1 and self.stacks:
            self._select(torch.tensor([0, 0]))

    def advance(self, step: int, steps: int, monitor: Monitor) -> int:
        """Take `steps` steps, or fewer if the monitor stops them; say how many."""
        started = time.perf_counter()
        computed = self.rows * 2 if len(self.rows) == 1 and self.stacks else self.rows
        pool, places = self.train.batches(computed, step, steps)
        model, loss_of = self.specs[0].model, self.specs[0].training.loss
        penalty, parameters = self.specs[0].training.penalty, self.specs[0].parameters
        recent = []
        for ahead in range(steps):
            if monitor.stopped():
                return ahead
            x, y = pool.take(places[ahead])  # (run, batch, input), (run, batch)
            loss = loss_of(model.forward(self.weights, x), y)  # (run,)
            total = loss + penalty(parameters, self.weights) if penalty.strength else loss
            gradients = torch.autograd.grad(total.sum(), self.weights)
            self.update(self.weights, gradients, step + ahead)
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
                yield self._record(run, Outcome.DIVERGED, steps, math.nan, math.nan)
        self._keep(finite.all(dim=0).nonzero().flatten().tolist())

    def look(self, step: int) -> Iterator[RunRecord]:
        """Measure the runs at `step`, and end those that are solved or out of steps."""
        started = time.perf_counter()
        training, data = self.specs[0].training, self.specs[0].data
        losses = (self.loss_sum / self.n_losses).tolist() if self.n_losses else None
        last, curves = step == training.steps, self.specs[0].evaluation.curves
        everyone = list(range(len(self.specs)))
        self._find_fitted(step)
        passed = self._screen(training.target_error)
        wrong = dict(passed)
        if curves or last:
            rest = [run for run in everyone if run not in passed]
            wrong |= zip(rest, self._wrong_between(rest, 0, data.n_test), strict=True)
        if curves:
            for run, curve in enumerate(self.curves):
                curve.step.append(step)
                curve.train_loss.append(losses[run] if losses else math.nan)
                curve.train_error.append(self._train_error(run))
                curve.test_error.append(wrong[run] / data.n_test)
                if self.gauges[run].names:
                    self.gauges[run].read(self._weights_of(run), curve.instruments)
        self._charge(started)
        staying = []
        for run in everyone:
            solved = run in passed
            if not (solved or last):
                staying.append(run)
                continue
            outcome = Outcome.SOLVED if solved else Outcome.OUT_OF_STEPS
            train_loss = losses[run] if losses else math.nan
            yield self._record(run, outcome, step, wrong[run] / data.n_test, train_loss)
        if len(staying) < len(everyone):
            self._keep(staying)
        self.loss_sum.zero_()
        self.n_losses = 0

    def _weights_of(self, run: int) -> list[Weights]:
        return [weight[run].detach().numpy() for weight in self.weights]

    def _screen(self, target_error: float | None) -> dict[int, int]:
        """Count the errors of the runs that pass every stage; the others are not yet solved."""
        if target_error is None:
            return {}
        everyone = list(range(len(self.specs)))
        looks = stages(self.specs[0].data.n_test, target_error)
        return self._passing(everyone, looks, self._wrong_between)

    def _find_fitted(self, step: int) -> None:
        """Note the runs whose training sample is fitted now, and was not before."""
        error = self.specs[0].evaluation.fitted_error
        if error is None or self.train.online:
            return
        waiting: dict[int, list[int]] = {}  # runs by the size of their sample
        for run, spec in enumerate(self.specs):
            if self.fitted_at[run] is None:
                waiting.setdefault(int(spec.data.m), []).append(run)
        for m, runs in waiting.items():
            for run in self._passing(runs, stages(m, error), self._train_wrong_between):
                self.fitted_at[run] = step

    def _passing(
        self,
        runs: list[int],
        looks: Sequence[Stage],
        wrong_between: Callable[[list[int], int, int], list[int]],
    ) -> dict[int, int]:
        """Count the errors of those of `runs` that pass every stage."""
        wrong = dict.fromkeys(runs, 0)
        for stage in looks:
            counts = wrong_between(list(wrong), stage.start, stage.stop)
            wrong = {
                run: errors + more
                for (run, errors), more in zip(wrong.items(), counts, strict=True)
                if errors + more <= stage.limit
            }
            if not wrong:
                break
        return wrong

    def _wrong_between(self, runs: list[int], start: int, stop: int) -> list[int]:
        """Count the errors of `runs` on the held-out examples start … stop − 1."""
        if not runs:
            return []
        rows = [self.rows[run] for run in runs]
        return self._errors(runs, self.test.pool, self.test.places(rows, start, stop))

    def _train_wrong_between(self, runs: list[int], start: int, stop: int) -> list[int]:
        """Count the errors of `runs` on their training examples start … stop − 1."""
        rows = [self.rows[run] for run in runs]
        return self._errors(runs, self.train.pool, self.train.places(rows, start, stop))

    def _train_error(self, run: int) -> float:
        data = self.specs[run].data
        if data.online:
            return math.nan
        return self._train_wrong_between([run], 0, int(data.m))[0] / data.m

    def _errors(self, runs: list[int], pool: Pool, places: Tensor) -> list[int]:
        """Count the errors of `runs` at `places` (run, example)."""
        lonely = len(runs) == 1 and self.stacks
        rows = torch.tensor(runs * 2 if lonely else runs)
        places = places.repeat(2, 1) if lonely else places
        model, loss = self.specs[0].model, self.specs[0].training.loss
        # Pieces of one size, the last filled up: a sum's rounding may depend on its shape.
        n_examples = places.shape[1]
        whole = -(-n_examples // CHUNK) * CHUNK
        places = places[:, torch.arange(whole) % n_examples]
        counted = torch.arange(whole) < n_examples
        everyone = len(runs) == len(self.specs)
        weights = self.weights if everyone else [weight[rows] for weight in self.weights]
        wrong = torch.zeros(len(rows), dtype=torch.int64)
        with torch.no_grad():
            for start in range(0, whole, CHUNK):
                x, y = pool.take(places[:, start : start + CHUNK])
                wrong += (
                    loss.wrong(model.forward(weights, x), y) & counted[start : start + CHUNK]
                ).sum(dim=1)
        found: list[int] = wrong.tolist()
        return found[: len(runs)]

    def _keep(self, runs: list[int]) -> None:
        """Let all but `runs` leave the stack."""
        self._select(torch.tensor(runs, dtype=torch.int64))
        self.specs = [self.specs[run] for run in runs]
        self.rows = [self.rows[run] for run in runs]
        self.curves = [self.curves[run] for run in runs]
        self.fitted_at = [self.fitted_at[run] for run in runs]
        self.gauges = [self.gauges[run] for run in runs]
        self.seconds = [self.seconds[run] for run in runs]
        self._pair_up()

    def _select(self, rows: Tensor) -> None:
        self.weights = [weight.detach()[rows].requires_grad_() for weight in self.weights]
        self.update.keep(rows)
        self.loss_sum = self.loss_sum[rows]

    def _record(
        self, run: int, outcome: Outcome, steps: int, test_error: float, train_loss: float
    ) -> RunRecord:
        diverged = outcome is Outcome.DIVERGED
        return RunRecord(
            weights=None if diverged else kept_weights(self.specs[run], self._weights_of(run)),
            spec=self.specs[run],
            outcome=outcome,
            solved_at=steps if outcome is Outcome.SOLVED else None,
            fitted_at=self.fitted_at[run],
            steps=steps,
            test_error=test_error,
            train_loss=train_loss,
            curves=self.curves[run],
            seconds=self.seconds[run],
            engine=Torch.name,
        )


def _stacked_weights(specs: Sequence[RunSpec]) -> list[Tensor]:
    shapes = [parameter.shape for parameter in specs[0].parameters]
    dtype = getattr(torch, specs[0].training.precision)
    weights = [torch.empty(len(specs), *shape, dtype=dtype) for shape in shapes]
    for group in grouped(specs):
        drawn = initial_weights([specs[run] for run in group])
        for weight, values in zip(weights, drawn, strict=True):
            weight[torch.tensor(group)] = torch.from_numpy(values).to(dtype)
    return [weight.requires_grad_() for weight in weights]
