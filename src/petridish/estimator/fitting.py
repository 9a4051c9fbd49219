"""Training the members of an estimator: stacks of four, one thread per stack.

How the members are divided, what each draws and the order of its sums depend on the recipe and the
seeds alone: a machine with more cores gives the same bits sooner.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from petridish.estimator.clock import Clock, evaluation_steps, scaled_loss
from petridish.estimator.dropout import DropoutMembers
from petridish.estimator.movement import movement
from petridish.estimator.start import Start
from petridish.estimator.threads import THREADS
from petridish.models import MLP
from petridish.models.base import Weights
from petridish.seeds import Streams
from petridish.tasks import Domain, Reals, Values
from petridish.training.members import MemberLoss, Members
from petridish.training.optimisers import AdamW

STACK = 4  # members trained as one program: fewer wait for each other in Python

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
        How the rate falls to 0 over the steps.
    batch_size, steps : int
        Rows per step, and steps at most.
    dropout : float
        Chance of a hidden neuron to be left out in a step.
    """

    model: MLP
    start: Start
    loss: MemberLoss
    learning_rate: float
    weight_decay: float
    schedule: RateSchedule
    batch_size: int
    steps: int
    dropout: float = 0.0

    def rate(self, progress: float) -> float:
        """Return the learning rate after the share `progress` of all steps."""
        if self.schedule == "cosine":
            return self.learning_rate * 0.5 * (1 + math.cos(math.pi * progress))
        return self.learning_rate * (1 - progress if self.schedule == "linear" else 1.0)


@dataclass(frozen=True)
class WeightedRows:
    """Rows to learn from: inputs (row, input), targets (row, output), weights (row,) of mean 1."""

    x: NDArray[np.float32]
    target: NDArray[np.float32]
    weight: NDArray[np.float32]


@dataclass(frozen=True)
class HoldOut:
    """The rows held out from each member, and the clock that decides when all stop.

    Attributes
    ----------
    fold : array, shape (row,)
        From 0 to n_folds - 1: member j holds out the rows of fold j mod n_folds.
    n_folds : int
        Folds.
    clock : Clock
        Decides by the members' losses on the rows that they hold out.
    """

    fold: NDArray[np.intp]
    n_folds: int
    clock: Clock

    def rows(self, member: int) -> NDArray[np.intp]:
        """Return the rows that a member holds out."""
        return np.flatnonzero(self.fold == member % self.n_folds)


@dataclass(frozen=True)
class TrainedMembers:
    """What became of the members.

    Attributes
    ----------
    weights : list of array, shape (member, *shape)
        As `MLP.parameters` lists them.
    steps : int
        Steps that these weights have taken.
    moved : array, shape (input,)
        How far first-layer weights moved, summed over members: see `movement.movement`.
    evaluated_at : list of int
        Steps after which losses were noted.
    losses : array, shape (evaluation, member)
        Each member's mean training loss since the evaluation before.
    """

    weights: list[Weights]
    steps: int
    moved: NDArray[np.float64]
    evaluated_at: list[int]
    losses: NDArray[np.float32]


def train_members(
    recipe: Recipe,
    sample: WeightedRows,
    seeds: Sequence[int],
    *,
    hold_out: HoldOut | None = None,
    factors: NDArray[np.float32] | None = None,
    steps_done: Callable[[int], None] = lambda steps: None,
) -> TrainedMembers:
    """Train one member per seed.

    Parameters
    ----------
    recipe : Recipe
        How.
    sample : WeightedRows
        Rows to learn from.
    seeds : sequence of int
        One per member, from which it draws its start, its batches and its dropout.
    hold_out : HoldOut, optional
        Rows to stop by: all members keep the weights of the step that its clock calls best.
    factors : array, shape (member, input), optional
        By which each member's inputs are multiplied; its first weights hold them in the end.
    steps_done : function of int
        Called with the number of steps taken, at every evaluation.
    """
    stop = threading.Event()
    if factors is None:
        factors = np.ones((len(seeds), sample.x.shape[1]), np.float32)

    def stack_of(first: int) -> _MemberStack:
        mine = range(first, min(first + STACK, len(seeds)))
        held = [hold_out.rows(member) for member in mine] if hold_out else []
        return _MemberStack(recipe, sample, held, seeds[mine.start : mine.stop], factors[mine])

    firsts = range(0, len(seeds), STACK)
    with THREADS.one_each() as threads, _pool(min(threads, len(firsts))) as pool:
        try:
            stacks = list(pool.map(stack_of, firsts))
            kept: dict[int, list[list[Tensor]]] = {}  # weights of all stacks, by step
            steps, losses = [], []
            for step in evaluation_steps(recipe.steps):
                losses.append(
                    np.concatenate(list(pool.map(lambda s, to=step: s.advance(to, stop), stacks)))
                )
                steps.append(step)
                steps_done(step)
                if hold_out is None:
                    continue
                outputs, target, weight = map(
                    np.concatenate, zip(*pool.map(_MemberStack.held_out, stacks), strict=True)
                )
                hold_out.clock.note(step, scaled_loss(recipe.loss, outputs, target, weight))
                kept[step] = [stack.copied() for stack in stacks]
                wanted = hold_out.clock.wanted()
                kept = {s: weights for s, weights in kept.items() if s in wanted}
                if hold_out.clock.over():
                    break
        finally:
            stop.set()  # after Ctrl-C the others end at their next step
    chosen = hold_out.clock.best() if hold_out else steps[-1]
    weights = kept[chosen] if hold_out else [stack.members.weights for stack in stacks]
    ends = [stack.ended(values) for stack, values in zip(stacks, weights, strict=True)]
    return TrainedMembers(
        weights=[np.concatenate(same) for same in zip(*(end for end, _ in ends), strict=True)],
        steps=chosen,
        moved=np.sum([moved for _, moved in ends], axis=0),
        evaluated_at=steps,
        losses=np.stack(losses),
    )


def auto_batch(n: float) -> int:
    """Choose the rows of a step: a fiftieth of n rows, but from 32 to 256."""
    return int(max(32, min(256, n // 50)))


def auto_rate(n: float) -> float:
    """Choose the learning rate for n rows: on few rows a high one overfits."""
    return min(2e-3, 5e-5 * math.sqrt(n))


def _pool(threads: int) -> ThreadPoolExecutor:
    """Make threads whose products run on one core each; they end with the fit."""

    def begin() -> None:
        torch.set_num_threads(1)
        torch.set_flush_denormal(True)

    return ThreadPoolExecutor(threads, initializer=begin)


class _MemberStack:
    """Members that are trained as one program."""

    def __init__(
        self,
        recipe: Recipe,
        sample: WeightedRows,
        held: Sequence[NDArray[np.intp]],
        seeds: Sequence[int],
        factors: NDArray[np.float32],
    ) -> None:
        self.recipe, self.held = recipe, held
        n_inputs, n_outputs = sample.x.shape[1], sample.target.shape[1]
        domain = Domain(Reals((n_inputs,)), Values(n_outputs))
        parameters = recipe.model.parameters(domain, n_outputs)
        self.start = recipe.start.draw(parameters, seeds, sample.x, factors)
        self.decays = [recipe.weight_decay * (p.kind == "weight") for p in parameters]
        self.factors = factors
        self.seen, view_of = _seen(factors)  # (member, input)
        self.scale = torch.from_numpy(np.take_along_axis(factors, self.seen, 1)).unsqueeze(1)
        first = np.take_along_axis(self.start[0], self.seen[:, None, :], 2)
        self.members = _members(recipe, [first, *self.start[1:]], seeds)
        # What a step needs of a row side by side, once per view: one copy per step is enough.
        self.data = torch.from_numpy(
            np.concatenate(
                [
                    np.column_stack([sample.x[:, self.seen[member]], sample.target, sample.weight])
                    for member in np.unique(view_of, return_index=True)[1]
                ]
            )
        )
        self.offset = torch.from_numpy(view_of[:, None] * len(sample.x))
        self.batches = Batches(len(sample.x), recipe.batch_size, seeds, held)
        self.rows = self.batches.endless()
        self.step = 0

    def _taken(self, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return inputs, targets and weights of rows of each member, shape (member, row)."""
        places = (rows + self.offset).flatten()
        taken = self.data.index_select(0, places).view(*rows.shape, -1)
        n_inputs = self.seen.shape[1]
        return taken[..., :n_inputs] * self.scale, taken[..., n_inputs:-1], taken[..., -1]

    def advance(self, to: int, stop: threading.Event) -> NDArray[np.float32]:
        """Go on to step `to`; return each member's mean loss on the way, shape (member,)."""
        total, first = torch.zeros(self.members.n_members), self.step
        while self.step < to and not stop.is_set():
            total += self.members.step(
                *self._taken(next(self.rows)),
                rate=self.recipe.rate((self.step + 0.5) / self.recipe.steps),
                decay=self.decays,
            )
            self.step += 1
        return (total / max(1, self.step - first)).numpy()

    def held_out(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return outputs, targets and weights of the rows that each member holds out."""
        most = max(map(len, self.held))
        places = np.stack([np.resize(rows, most) for rows in self.held])  # a shorter one repeats
        x, target, weight = self._taken(torch.from_numpy(places))
        outputs = self.members.outputs(x)
        real = torch.tensor([[place < len(rows) for place in range(most)] for rows in self.held])
        parts = [part[real].double().numpy() for part in (outputs, target, weight)]
        return parts[0], parts[1], parts[2]

    def copied(self) -> list[Tensor]:
        """Copy the weights as they are now."""
        return [weight.clone() for weight in self.members.weights]

    def ended(self, weights: Sequence[Tensor]) -> tuple[list[Weights], NDArray[np.float64]]:
        """Return weights for inputs without factors, and how far they moved each input."""
        first = np.zeros_like(self.start[0])  # what a member does not see has no weight
        seen = (weights[0] * self.scale).numpy()  # w · (a x) is (w a) · x
        np.put_along_axis(first, self.seen[:, None, :], seen, axis=2)
        end = [first, *(weight.numpy() for weight in weights[1:])]
        return end, movement(self.start[0] * self.factors[:, None, :], end[0], end[2])


def _seen(factors: NDArray[np.float32]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the inputs that each member sees, and the number of its view of the rows."""
    views, view_of = np.unique(factors != 0, axis=0, return_inverse=True)
    view_of = view_of.reshape(-1)  # NumPy 2.0 keeps an axis
    if len(set(views.sum(axis=1))) > 1:  # members of one stack have one shape
        views, view_of = np.ones_like(views[:1]), np.zeros(len(factors), np.intp)
    return np.stack([np.flatnonzero(view) for view in views])[view_of], view_of


def _members(recipe: Recipe, start: Sequence[Weights], seeds: Sequence[int]) -> Members:
    if not recipe.dropout:
        return Members(start, loss=recipe.loss, optimiser=AdamW())
    return DropoutMembers(
        start, loss=recipe.loss, optimiser=AdamW(), dropout=recipe.dropout, seeds=seeds
    )


class Batches:
    """The rows of each step: every epoch each member goes through its rows in its own order.

    Parameters
    ----------
    n_rows, batch_size : int
        Rows there are, and rows per step at most.
    seeds : sequence of int
        One per member.
    held : sequence of array
        Rows that each member does not learn from; none without. Of a member that holds out fewer
        than another, as many rows sit out each epoch, others each time.
    """

    def __init__(
        self,
        n_rows: int,
        batch_size: int,
        seeds: Sequence[int],
        held: Sequence[NDArray[np.intp]] = (),
    ) -> None:
        self.n_rows, self.held = n_rows, held
        self.learned = n_rows - max(map(len, held), default=0)  # rows of an epoch
        self.count = -(-self.learned // batch_size)
        self.size = -(-self.learned // self.count)  # as equal as they can be
        self.stream = Streams(seeds, "batches")

    def of(self, epoch: int) -> Iterator[Tensor]:
        """Yield the rows of each batch of an epoch, shape (member, batch)."""
        if self.count == 1 and self.learned == self.n_rows:
            yield torch.arange(self.n_rows).expand(len(self.stream.seeds), -1)
            return
        keys = self.stream.words(epoch * self.n_rows, self.n_rows)
        for mine, rows in zip(keys, self.held, strict=False):
            mine[rows] = np.iinfo(keys.dtype).max  # to the end, which is cut off
        order = keys.argsort(axis=1, kind="stable")[:, : self.learned]
        yield from torch.split(torch.from_numpy(order), self.size, dim=1)

    def endless(self) -> Iterator[Tensor]:
        """Yield batches, one epoch after the other."""
        for epoch in count():
            yield from self.of(epoch)
