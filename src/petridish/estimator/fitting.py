"""Training the members of an estimator: stacks of two, one thread a stack.

How the members are divided, what each draws and the order of its sums depend on the recipe and the
seeds alone: a machine with more cores gives the same bits sooner.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from petridish.estimator.dropout import DropoutMembers
from petridish.estimator.importance import movement
from petridish.estimator.start import Start
from petridish.estimator.threads import THREADS
from petridish.models import MLP
from petridish.models.base import Weights
from petridish.seeds import Streams
from petridish.training.members import MemberLoss, Members
from petridish.training.optimisers import AdamW

STACK = 2  # members trained as one program: fewer cost more overhead, more leave cores idle

RateSchedule = Literal["cosine", "linear", "constant"]


@dataclass(frozen=True)
class Recipe:
    """How members are trained.

    Attributes
    ----------
    model, start : MLP, Start
        The network and how it starts.
    loss : "logistic", "cross_entropy" or "square"
        What is made small.
    learning_rate, weight_decay : float
        The peak rate η, and the decay λ of weights (biases do not decay).
    schedule : "cosine", "linear" or "constant"
        How the rate falls to 0 over the epochs.
    batch_size, epochs : int
        Rows a step, and passes over the rows.
    dropout : float
        Chance of a hidden neuron to be silent in a step.
    patience : int or None
        Epochs without a better held-out loss after which a member stops; None goes on to the end.
    """

    model: MLP
    start: Start
    loss: MemberLoss
    learning_rate: float
    weight_decay: float
    schedule: RateSchedule
    batch_size: int
    epochs: int
    dropout: float = 0.0
    patience: int | None = None

    def rate(self, progress: float) -> float:
        """Give the learning rate after the share `progress` of all steps."""
        if self.schedule == "cosine":
            return self.learning_rate * 0.5 * (1 + math.cos(math.pi * progress))
        return self.learning_rate * (1 - progress if self.schedule == "linear" else 1.0)


@dataclass(frozen=True)
class Sample:
    """Rows to learn from: inputs (row, input), targets (row, output), weights (row,) of mean 1."""

    x: NDArray[np.float32]
    target: NDArray[np.float32]
    weight: NDArray[np.float32]


@dataclass(frozen=True)
class Trained:
    """What became of the members.

    Attributes
    ----------
    weights : list of array, shape (member, *shape)
        As `MLP.parameters` lists them.
    moved : array, shape (input,)
        How far first-layer weights moved, summed over members: see `importance.movement`.
    losses, held_out_losses : array, shape (epoch, member)
        Mean loss of each epoch, NaN after a member's last; the second has no epochs without
        held-out rows.
    """

    weights: list[Weights]
    moved: NDArray[np.float64]
    losses: NDArray[np.float32]
    held_out_losses: NDArray[np.float32]


def train_members(
    recipe: Recipe,
    sample: Sample,
    held_out: Sample | None,
    seeds: Sequence[int],
    *,
    factors: NDArray[np.float32] | None = None,
    epoch_done: Callable[[], None] = lambda: None,
) -> Trained:
    """Train one member a seed.

    Parameters
    ----------
    recipe : Recipe
        How.
    sample, held_out : Sample
        Rows to learn from, and rows to stop by, if any.
    seeds : sequence of int
        One a member, from which it draws its start, its batches and its silent neurons.
    factors : array, shape (member, input), optional
        By which each member's inputs are multiplied; its first weights hold them in the end.
    epoch_done : function
        Called after every epoch of every stack.
    """
    stop = threading.Event()
    if factors is None:
        factors = np.ones((len(seeds), sample.x.shape[1]), np.float32)

    def work(first: int) -> Trained:
        torch.set_num_threads(1)
        torch.set_flush_denormal(True)  # in this thread, which ends with the fit
        mine = slice(first, first + STACK)
        stack = _Stack(recipe, sample, held_out, seeds[mine], factors[mine])
        return stack.train(stop, epoch_done)

    firsts = range(0, len(seeds), STACK)
    with THREADS.one_each() as threads, ThreadPoolExecutor(min(threads, len(firsts))) as pool:
        try:
            parts = list(pool.map(work, firsts))
        finally:
            stop.set()  # after Ctrl-C the others end at their next step
    return _joined(parts)


def auto_batch(n: float) -> int:
    """Choose the rows of a step: a fiftieth of n rows, but from 32 to 256."""
    return int(max(32, min(256, n // 50)))


def auto_steps(n: float) -> int:
    """Choose the number of steps for n rows: 20 √n."""
    return math.ceil(20 * math.sqrt(n))


def auto_rate(n: float) -> float:
    """Choose the learning rate for n rows: few rows are learned too well at a high one."""
    return min(2e-3, 5e-5 * math.sqrt(n))


def n_stacks(n_members: int) -> int:
    """Count the stacks into which members are divided."""
    return -(-n_members // STACK)


class _Stack:
    """Members that are trained as one program."""

    def __init__(
        self,
        recipe: Recipe,
        sample: Sample,
        held_out: Sample | None,
        seeds: Sequence[int],
        factors: NDArray[np.float32],
    ) -> None:
        self.recipe = recipe
        parameters = recipe.model.parameters(sample.x.shape[1], sample.target.shape[1])
        self.start = recipe.start.draw(parameters, seeds, sample.x, factors)
        self.decays = [recipe.weight_decay * (p.kind == "weight") for p in parameters]
        self.members = _members(recipe, self.start, seeds)
        self.factors = torch.from_numpy(factors).unsqueeze(1)  # (member, 1, input)
        self.data = _tensors(sample)
        self.held_out = _tensors(held_out) if held_out is not None else None
        self.batches = _Batches(len(sample.x), recipe.batch_size, seeds)

    def train(self, stop: threading.Event, epoch_done: Callable[[], None]) -> Trained:
        """Go through the epochs; with held-out rows, each member keeps its best weights."""
        losses: list[Tensor] = []
        best = _Best(self.members, self.recipe.patience)
        for epoch in range(self.recipe.epochs):
            if stop.is_set() or best.settled:
                break
            losses.append(self._epoch(epoch, stop))
            if self.held_out is not None:
                x, target, weight = self.held_out
                outputs = self.members.outputs(x * self.factors)
                best.look(mean_loss(self.recipe.loss, outputs, target, weight))
            epoch_done()
        weights = best.weights if self.held_out is not None else self.members.weights
        weights[0].mul_(self.factors)  # w · (a x) is (w a) · x
        end = [weight.numpy() for weight in weights]
        return Trained(
            weights=end,
            moved=movement(self.start[0] * self.factors.numpy(), end[0], end[2]),
            losses=torch.stack(losses).numpy(),
            held_out_losses=best.seen(),
        )

    def _epoch(self, epoch: int, stop: threading.Event) -> Tensor:
        """Take the steps of one epoch, and give each member's mean loss, shape (member,)."""
        n_batches = self.batches.count
        total = torch.zeros(self.members.n_members)
        for place, rows in enumerate(self.batches.of(epoch)):
            if stop.is_set():
                break
            progress = (epoch * n_batches + place + 0.5) / (self.recipe.epochs * n_batches)
            x, target, weight = (part if rows is None else part[rows] for part in self.data)
            total += self.members.step(
                x * self.factors,
                target,
                weight,
                rate=self.recipe.rate(progress),
                decay=self.decays,
            )
        return total / n_batches


def _members(recipe: Recipe, start: Sequence[Weights], seeds: Sequence[int]) -> Members:
    if not recipe.dropout:
        return Members(start, loss=recipe.loss, optimiser=AdamW())
    return DropoutMembers(
        start, loss=recipe.loss, optimiser=AdamW(), dropout=recipe.dropout, seeds=seeds
    )


class _Batches:
    """The rows of each step: every epoch each member goes through all of them in an own order."""

    def __init__(self, n_rows: int, batch_size: int, seeds: Sequence[int]) -> None:
        self.n_rows = n_rows
        self.count = -(-n_rows // batch_size)
        self.size = -(-n_rows // self.count)  # as equal as they can be
        self.stream = Streams(seeds, "batches")

    def of(self, epoch: int) -> Iterator[Tensor | None]:
        """Give the rows of each batch of an epoch, shape (member, batch); None means all rows."""
        if self.count == 1:
            yield None
            return
        keys = self.stream.words(epoch * self.n_rows, self.n_rows)
        yield from torch.split(torch.from_numpy(keys.argsort(axis=1)), self.size, dim=1)


class _Best:
    """Each member's best weights by its loss on held-out rows, until its patience ends."""

    def __init__(self, members: Members, patience: int | None) -> None:
        self.members, self.patience = members, patience
        self.lowest = torch.full((members.n_members,), torch.inf)
        self.stale = torch.zeros(members.n_members, dtype=torch.int64)
        self.weights = [weight.clone() for weight in members.weights]
        self.losses: list[Tensor] = []

    @property
    def settled(self) -> bool:
        """Whether no member goes on."""
        return self.patience is not None and bool((self.stale >= self.patience).all())

    def look(self, loss: Tensor) -> None:
        """Note the losses (member,) after an epoch; a member whose patience has ended is done."""
        going = self.stale < (math.inf if self.patience is None else self.patience)
        better = going & (loss < self.lowest)
        self.lowest = torch.where(better, loss, self.lowest)
        self.stale = torch.where(better, 0, self.stale + 1)
        for kept, weight in zip(self.weights, self.members.weights, strict=True):
            kept[better] = weight[better]
        self.losses.append(torch.where(going, loss, torch.nan))

    def seen(self) -> NDArray[np.float32]:
        """Give all losses noted, shape (epoch, member)."""
        shape = (len(self.losses), self.members.n_members)
        return torch.stack(self.losses).numpy() if self.losses else np.empty(shape, np.float32)


def mean_loss(loss: MemberLoss, outputs: Tensor, target: Tensor, weight: Tensor) -> Tensor:
    """Give each member's weighted mean loss over all rows, shape (member,)."""
    if loss == "square":
        each = 0.5 * (outputs - target).square()
    elif loss == "logistic":
        each = torch.nn.functional.softplus(outputs) - target * outputs
    else:
        each = -target * outputs.log_softmax(dim=2)
    return (each.sum(dim=2) * weight).mean(dim=1)


def _tensors(sample: Sample) -> tuple[Tensor, Tensor, Tensor]:
    return (
        torch.from_numpy(sample.x),
        torch.from_numpy(sample.target),
        torch.from_numpy(sample.weight),
    )


def _joined(parts: Sequence[Trained]) -> Trained:
    """Put the members of all stacks side by side."""
    return Trained(
        weights=[np.concatenate(same) for same in zip(*(p.weights for p in parts), strict=True)],
        moved=np.sum([part.moved for part in parts], axis=0),
        losses=_beside([part.losses for part in parts]),
        held_out_losses=_beside([part.held_out_losses for part in parts]),
    )


def _beside(curves: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
    """Join curves (epoch, member) of unequal lengths; what a shorter one lacks is NaN."""
    longest = max(map(len, curves))
    padded = [
        np.pad(curve, ((0, longest - len(curve)), (0, 0)), constant_values=np.nan)
        for curve in curves
    ]
    return np.concatenate(padded, axis=1)
