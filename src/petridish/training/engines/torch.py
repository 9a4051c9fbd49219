"""The torch engine: many runs of one shape stacked on axis 0, each with its own rate, decay, data.

The loss of the stack is the sum of its runs' losses, so that one backward pass gives every run its
own gradient. A run that ends leaves the stack, and one of the last takes its place.

A run's record does not depend on the stack: sums run inside a run, kernels do not see where in
memory a run lies (`numerics.pin_kernels`), the held-out sample is read in pieces of one size, and a
single run is computed together with a copy of itself, because a stack of one takes another kernel.
Runs that fill the cache each by itself are never stacked.

On an accelerator (`training.devices`) a stack lies there whole: minibatches and noise are drawn
there from the same streams, and between two evaluations the host asks for two numbers in
`DRAWN_AHEAD` steps: whether a loss is no longer finite, and whether a draw was rejected. There a
run's rounding may depend on its stack.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Hashable, Iterator, Sequence

import torch
from torch import Tensor

from petridish.models.base import Stacked
from petridish.training.devices import CPU, Device, does_not_fit, is_full
from petridish.training.engines.base import Monitor, Torch
from petridish.training.engines.stack import DRAWN_AHEAD, Stack, take_course
from petridish.training.networks import made_on, stack_of
from petridish.training.numerics import settled
from petridish.training.record import RunRecord
from petridish.training.spec import RunSpec
from petridish.training.updates import make_update
from petridish.values import has_users

MOST_AHEAD = 2**22  # examples that are drawn ahead: where batches are large, of fewer steps


def train(specs: Sequence[RunSpec], monitor: Monitor, device: Device = CPU) -> Iterator[RunRecord]:
    """Carry out runs of one shape, yielding each record as its run ends."""
    with settled(device):
        if not device.host:
            yield from _halved_to_fit(specs, monitor, device)
            return
        if Torch().stack_size(specs[0]) > 1:
            yield from _train(specs, monitor)
            return
        for spec in specs:
            if monitor.stopped():
                return
            yield from _train([spec], monitor)


_FITTED: dict[tuple[Device, Hashable], int] = {}
"""The runs at a time with which the work went on where a device's memory did not suffice: later
batches of the same shape in this process begin with so many."""


class _Counting:
    """A monitor that counts the steps that it passes on."""

    def __init__(self, monitor: Monitor) -> None:
        self.stopped, self._stepped = monitor.stopped, monitor.stepped
        self.taken = 0

    def stepped(self, model_steps: int) -> None:
        """Count and pass on; steps that were lost are negative."""
        self.taken += model_steps
        self._stepped(model_steps)


def _halved_to_fit(
    specs: Sequence[RunSpec], monitor: Monitor, device: Device
) -> Iterator[RunRecord]:
    """Carry out runs in one stack, or in smaller ones where the device's memory does not suffice.

    Runs that were under way when it did not are begun anew.
    """
    kind = device, Torch().shape(specs[0])
    waiting, size = list(specs), min(len(specs), _FITTED.get(kind, len(specs)))
    while waiting:
        some, done, full = waiting[:size], set[RunSpec](), False
        counting = _Counting(monitor)
        try:
            for record in _train(some, counting, device):
                done.add(record.spec)
                counting.taken -= record.steps
                yield record
        except Exception as error:
            if not is_full(error):
                raise
            full = True
        left = [spec for spec in some if spec not in done]
        waiting = left + waiting[size:]
        if left and not full:
            return  # stopped
        if full:  # here, where no frame of the error holds the stack's tensors any more
            device.release()
            if len(left) == 1:
                raise does_not_fit(left[0].model, left[0].task, device)
            size = len(left) // 2
            _FITTED[kind] = size
            monitor.stepped(-counting.taken)
            warnings.warn(
                f"{device.name} ran out of memory with {len(left)} runs at a time. The work goes "
                f"on with {size} at a time.",
                stacklevel=1,
            )


def _train(specs: Sequence[RunSpec], monitor: Monitor, device: Device = CPU) -> Iterator[RunRecord]:
    yield from take_course(TorchStack(specs, device), monitor)


class TorchStack(Stack):
    """A stack whose steps PyTorch takes."""

    engine = Torch.name

    def __init__(self, specs: Sequence[RunSpec], device: Device = CPU) -> None:
        started = time.perf_counter()
        # Whether a run alone is computed as in a stack; on an accelerator no run is.
        self.stacks = device.host and Torch().stack_size(specs[0]) > 1
        # Only a user's loss may make tensors without saying where.
        self.theirs = device if has_users(specs[0].training) else CPU
        super().__init__(specs, stack_of(specs, device), pairs=self.stacks, device=device)
        self.parameters = specs[0].parameters
        # A module's outputs need not depend on all of its parameters.
        self.unsure = not isinstance(specs[0].model, Stacked)
        examples = len(specs) * specs[0].examples_per_step
        self.drawn_ahead = max(1, min(DRAWN_AHEAD, MOST_AHEAD // examples))
        self.trained = [place for place, p in enumerate(self.parameters) if p.trained]
        self.weights = self._asked(self.weights)
        self.update = make_update(specs, self._chosen(self.weights))
        self.seconds = [(time.perf_counter() - started) / len(specs)] * len(specs)
        self._pair_up()

    def _chosen(self, weights: Sequence[Tensor]) -> list[Tensor]:
        return [weights[place] for place in self.trained]

    def _asked(self, weights: Sequence[Tensor]) -> list[Tensor]:
        """Require gradients of the trained weights."""
        for weight in self._chosen(weights):
            weight.requires_grad_()
        return list(weights)

    def _pair_up(self) -> None:
        """Duplicate the last run: one run alone would be rounded by other kernels than a stack."""
        if len(self.specs) == 1 and self.stacks:
            self._select(lambda held: torch.cat([held.detach()] * 2))

    def advance(self, step: int, steps: int, monitor: Monitor) -> int:
        """Take steps, one after another."""
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
            outputs = self.network.train(self.weights, x, lucks, step + ahead)
            with made_on(self.theirs):
                loss = loss_of(outputs, y)  # (run,)
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

    def _keep(self, runs: list[int]) -> None:
        super()._keep(runs)
        self._pair_up()

    def _select(self, kept: Callable[[Tensor], Tensor]) -> None:
        super()._select(kept)
        self.weights = self._asked(self.weights)
        self.update.keep(kept)
