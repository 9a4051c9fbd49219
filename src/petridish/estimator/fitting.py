"""Training the members of an estimator: stacks of four, one thread a stack.

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

from petridish.estimator.clock import Clock, looks, scaled_loss
from petridish.estimator.dropout import DropoutMembers
from petridish.estimator.importance import movement
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
        Rows a step, and steps at most.
    dropout : float
        Chance of a hidden neuron to be silent in a step.
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
class HoldOut:
    """Which rows each member does not learn from, and the clock that all stop by.

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
        """Give the rows that a member holds out."""
        return np.flatnonzero(self.fold == member % self.n_folds)


@dataclass(frozen=True)
class Trained:
    """What became of the members.

    Attributes
    ----------
    weights : list of array, shape (member, *shape)
        As `MLP.parameters` lists them.
    steps : int
        Steps that these weights have taken.
    moved : array, shape (input,)
        How far first-layer weights moved, summed over members: see `importance.movement`.
    looks : list of int
        Steps after which losses were noted.
    losses : array, shape (look, member)
        Each member's mean training loss since the look before.
    """

    weights: list[Weights]
    steps: int
    moved: NDArray[np.float64]
    looks: list[int]
    losses: NDArray[np.float32]


def train_members(
    recipe: Recipe,
    sample: Sample,
    seeds: Sequence[int],
    *,
    hold_out: HoldOut | None = None,
    factors: NDArray[np.float32] | None = None,
    steps_done: Callable[[int], None] = lambda steps: None,
) -> Trained:
    """Train one member a seed.

    Parameters
    ----------
    recipe : Recipe
        How.
    sample : Sample
        Rows to learn from.
    seeds : sequence of int
        One a member, from which it draws its start, its batches and its silent neurons.
    hold_out : HoldOut, optional
        Rows to stop by: all members keep the weights of the step that its clock calls best.
    factors : array, shape (member, input), optional
        By which each member's inputs are multiplied; its first weights hold them in the end.
    steps_done : function of int
        Called with the number of steps taken, at every look.
    """
    stop = threading.Event()
    if factors is None:
        factors = np.ones((len(seeds), sample.x.shape[1]), np.float32)

    def stack_of(first: int) -> _Stack:
        mine = range(first, min(first + STACK, len(seeds)))
        held = [hold_out.rows(member) for member in mine] if hold_out else []
        return _Stack(recipe, sample, held, seeds[mine.start : mine.stop], factors[mine])

    firsts = range(0, len(seeds), STACK)
    with THREADS.one_each() as threads, _pool(min(threads, len(firsts))) as pool:
        try:
            stacks = list(pool.map(stack_of, firsts))
            kept: dict[int, list[list[Tensor]]] = {}  # weights of all stacks, by step
            steps, losses = [], []
            for step in looks(recipe.steps):
                losses.append(
                    np.concatenate(list(pool.map(lambda s, to=step: s.advance(to, stop), stacks)))
                )
                steps.append(step)
                steps_done(step)
                if hold_out is None:
                    continue
                outputs, target, weight = map(
                    np.concatenate, zip(*pool.map(_Stack.held_out, stacks), strict=True)
                )
                hold_out.clock.look(step, scaled_loss(recipe.loss, outputs, target, weight))
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
    return Trained(
        weights=[np.concatenate(same) for same in zip(*(end for end, _ in ends), strict=True)],
        steps=chosen,
        moved=np.sum([moved for _, moved in ends], axis=0),
        looks=steps,
        losses=np.stack(losses),
    )


def auto_batch(n: float) -> int:
    """Choose the rows of a step: a fiftieth of n rows, but from 32 to 256."""
    return int(max(32, min(256, n // 50)))


def auto_rate(n: float) -> float:
    """Choose the learning rate for n rows: few rows are learned too well at a high one."""
    return min(2e-3, 5e-5 * math.sqrt(n))


def _pool(threads: int) -> ThreadPoolExecutor:
    """Make threads whose products run on one core each; they end with the fit."""

    def begin() -> None:
        torch.set_num_threads(1)
        torch.set_flush_denormal(True)

    return ThreadPoolExecutor(threads, initializer=begin)


class _Stack:
    """Members that are trained as one program."""

    def __init__(
        self,
        recipe: Recipe,
        sample: Sample,
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
        self.members = _members(recipe, self.start, seeds)
        self.factors = torch.from_numpy(factors).unsqueeze(1)  # (member, 1, input)
        self.data = tuple(map(torch.from_numpy, (sample.x, sample.target, sample.weight)))
        self.batches = Batches(len(sample.x), recipe.batch_size, seeds, held)
        self.rows = self.batches.endless()
        self.step = 0

    def advance(self, to: int, stop: threading.Event) -> NDArray[np.float32]:
        """Go on to step `to`, and give each member's mean loss on the way, shape (member,)."""
        total, first = torch.zeros(self.members.n_members), self.step
        while self.step < to and not stop.is_set():
            rows = next(self.rows)
            x, target, weight = (part if rows is None else part[rows] for part in self.data)
            total += self.members.step(
                x * self.factors,
                target,
                weight,
                rate=self.recipe.rate((self.step + 0.5) / self.recipe.steps),
                decay=self.decays,
            )
            self.step += 1
        return (total / max(1, self.step - first)).numpy()

    def held_out(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Give outputs, targets and weights of the rows that each member holds out, one by one."""
        most = max(map(len, self.held))
        places = np.stack([np.resize(rows, most) for rows in self.held])  # a shorter one repeats
        x, target, weight = (part[torch.from_numpy(places)] for part in self.data)
        outputs = self.members.outputs(x * self.factors)
        real = torch.tensor([[place < len(rows) for place in range(most)] for rows in self.held])
        parts = [part[real].double().numpy() for part in (outputs, target, weight)]
        return parts[0], parts[1], parts[2]

    def copied(self) -> list[Tensor]:
        """Copy the weights as they are now."""
        return [weight.clone() for weight in self.members.weights]

    def ended(self, weights: Sequence[Tensor]) -> tuple[list[Weights], NDArray[np.float64]]:
        """Give weights for inputs without factors, and how far they moved each input."""
        weights[0].mul_(self.factors)  # w · (a x) is (w a) · x
        end = [weight.numpy() for weight in weights]
        return end, movement(self.start[0] * self.factors.numpy(), end[0], end[2])


def _members(recipe: Recipe, start: Sequence[Weights], seeds: Sequence[int]) -> Members:
    if not recipe.dropout:
        return Members(start, loss=recipe.loss, optimiser=AdamW())
    return DropoutMembers(
        start, loss=recipe.loss, optimiser=AdamW(), dropout=recipe.dropout, seeds=seeds
    )


class Batches:
    """The rows of each step: every epoch each member goes through its rows in an own order.

    Parameters
    ----------
    n_rows, batch_size : int
        Rows there are, and rows a step at most.
    seeds : sequence of int
        One a member.
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

    def of(self, epoch: int) -> Iterator[Tensor | None]:
        """Give the rows of each batch of an epoch, shape (member, batch); None means all rows."""
        if self.count == 1 and self.learned == self.n_rows:
            yield None
            return
        keys = self.stream.words(epoch * self.n_rows, self.n_rows)
        for mine, rows in zip(keys, self.held, strict=False):
            mine[rows] = np.iinfo(keys.dtype).max  # to the end, which is cut off
        order = keys.argsort(axis=1, kind="stable")[:, : self.learned]
        yield from torch.split(torch.from_numpy(order), self.size, dim=1)

    def endless(self) -> Iterator[Tensor | None]:
        """Give batches, one epoch after the other."""
        for epoch in count():
            yield from self.of(epoch)
