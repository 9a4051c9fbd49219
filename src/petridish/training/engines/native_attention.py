"""Attention in the native engine: steps in compiled code, everything else as in `torch`.

Batches of Markov chains are drawn inside, those of other tasks by the task, and handed over. The
outputs that metrics ask for are the compiled code's too.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from petridish.models import AttentionOnly, ClsTransformer, MinimalAttention
from petridish.seeds import name_key
from petridish.tasks import MarkovChains
from petridish.tasks.domain import Tokens
from petridish.training.data import initial_weights
from petridish.training.engines.base import Monitor, Native
from petridish.training.engines.native import Pace
from petridish.training.engines.stack import DRAWN_AHEAD, Stack, take_course
from petridish.training.native.attention_run import (
    NO_LABEL,
    AttentionArguments,
    ChainSource,
    NativeAttention,
)
from petridish.training.native.attention_run import Tokens as TokenArray
from petridish.training.native.cls_run import NativeCls
from petridish.training.native.descent import Descent, Factors
from petridish.training.networks import Network
from petridish.training.numerics import settled
from petridish.training.optimisers import SGD, Adam
from petridish.training.readings import WHOLE, Instead
from petridish.training.record import RunRecord
from petridish.training.spec import RunSpec

MOST_TOKENS = 2**22  # of batches that are drawn ahead
MOST_STEPS = 4096  # of one call: its losses have their room


def train(specs: Sequence[RunSpec], monitor: Monitor) -> Iterator[RunRecord]:
    """Carry out runs one after another."""
    from petridish.training.engines import native_cls

    pace = Pace()
    with settled():
        for spec in specs:
            if monitor.stopped():
                return
            if isinstance(spec.model, ClsTransformer):
                with NativeCls(native_cls.arguments(spec)) as cls:
                    yield from take_course(native_cls.Block(spec, cls, pace), monitor)
            else:
                with NativeAttention(arguments(spec)) as run:
                    yield from take_course(_Chains(spec, run, pace), monitor)


def arguments(spec: RunSpec) -> AttentionArguments:
    """Return what a run begins with."""
    model, inputs = spec.model, spec.domain.inputs
    assert isinstance(model, AttentionOnly | MinimalAttention), "the engine refuses other models"
    assert isinstance(inputs, Tokens), "the model refuses other inputs"
    d, heads, layers = 0, 0, 0
    if isinstance(model, AttentionOnly):
        d, heads, layers = model.d, model.heads, model.layers
    return AttentionArguments(
        states=inputs.vocabulary,
        length=inputs.length,
        d=d,
        heads=heads,
        layers=layers,
        batch_size=spec.examples_per_step,
        descent=descent_of(spec),
        weights=[np.asarray(weight[0], np.float32) for weight in initial_weights([spec])],
        source=_source(spec),
    )


def descent_of(spec: RunSpec) -> Descent:
    """Return how a run's weights follow their gradients."""
    rule = spec.training.optimiser
    adam = rule if isinstance(rule, Adam) else Adam()
    return Descent(
        optimiser=rule.name,
        momentum=rule.momentum if isinstance(rule, SGD) else 0.0,
        beta1=adam.beta1,
        beta2=adam.beta2,
        epsilon=adam.epsilon,
        clip=spec.training.clip,
        factors=[Factors(part.start, part.rate, part.decay, part.keep) for part in spec.rates()],
    )


def _source(spec: RunSpec) -> ChainSource | None:
    """Return how fresh chains are drawn, or None: the task draws batches, or there is a sample."""
    task, data = spec.task, spec.data
    own = (
        type(task) is MarkovChains
        and task.rows in ("dirichlet", "unigram")
        and task.alpha == 1
        and task.start == "stationary"
    )
    if not own or not data.online or data.label_noise:
        return None
    assert isinstance(task, MarkovChains), "its type was asked for"
    return ChainSource(spec.seed, name_key("train"), data.skip, one_row=task.rows == "unigram")


class Outputs(Network):
    """The network as it is in compiled code; the weights given are its own."""

    by_example = True

    def __init__(self, run: NativeAttention | NativeCls) -> None:
        self.run = run
        self.buffers = {}

    def train(
        self, weights: Sequence[Tensor], x: Tensor, seeds: Sequence[int], step: int
    ) -> Tensor:
        """Refuse: steps are taken inside."""
        raise NotImplementedError("Compiled code takes the steps of this network itself.")

    def test(self, weights: Sequence[Tensor], x: Tensor, rows: Tensor | None) -> Tensor:
        """Return the outputs (1, example, …)."""
        return torch.from_numpy(self.run.outputs(as_bytes(x)[0]))[None]


class AttentionOutputs(Outputs):
    """Those of attention alone: at the last position on their own, and what its parts put out."""

    run: NativeAttention

    def __init__(self, run: NativeAttention, layers: int) -> None:
        super().__init__(run)
        self.layers = {f"attention{layer + 1}.pattern": layer for layer in range(layers)}

    def test_last(self, weights: Sequence[Tensor], x: Tensor, rows: Tensor | None) -> Tensor:
        """Return the outputs at the last position, (1, example, 1, token)."""
        found = self.run.outputs(as_bytes(x)[0], x.shape[2] - 1)
        return torch.from_numpy(found)[None]

    def compiled(self, part: str, x: Tensor, instead: Instead) -> Tensor | None:
        """Return the outputs, or the pattern of a layer; that of an earlier one may be given."""
        tokens = as_bytes(x)
        if part == WHOLE:
            return None if instead else torch.from_numpy(self.run.outputs(tokens))
        layer, others = self.layers.get(part), None
        if layer is None or len(instead) > 1:
            return None
        for name, put in instead.items():
            earlier = self.layers.get(name)
            if earlier is None or earlier >= layer:
                return None
            given = put(_by_head(torch.from_numpy(self.run.pattern(tokens, earlier))))
            others = earlier, given.view(len(tokens), -1, *given.shape[-2:]).numpy()
        return _by_head(torch.from_numpy(self.run.pattern(tokens, layer, others)))


def _by_head(shares: Tensor) -> Tensor:
    """Return shares as the module has them: without an axis of heads if there is one."""
    return shares[:, 0] if shares.shape[1] == 1 else shares


class Alone(Stack):
    """One run, whose steps compiled code takes."""

    engine = Native.name

    def __init__(
        self, spec: RunSpec, run: NativeAttention | NativeCls, network: Network, pace: Pace
    ) -> None:
        super().__init__([spec], network, pairs=False)
        self.weights_of_run, self.pace = run.weights, pace

    @abstractmethod
    def prepare(self, step: int, steps: int) -> Callable[[int, int], NDArray[np.float64]]:
        """Draw the batches of some steps.

        Return what goes on for some work, given the number of these steps that are done, and
        returns the losses of the steps that ended.
        """

    def advance(self, step: int, steps: int, monitor: Monitor) -> int:
        """Take the steps in calls of a few hundredths of a second."""
        started = time.perf_counter()
        go_on = self.prepare(step, steps)
        losses: list[float] = []
        while len(losses) < steps and np.isfinite(losses[-1:]).all():
            if monitor.stopped():
                return len(losses)
            called = time.perf_counter()
            some = go_on(self.pace.work, len(losses))
            self.pace.adjust(time.perf_counter() - called)
            losses += some.tolist()
            monitor.stepped(len(some))
        self.recent = torch.tensor(losses, dtype=torch.float64)[:, None]
        self.loss_sum += self.recent.sum(dim=0)
        self.n_losses += len(losses)
        self.weights = [torch.from_numpy(weight)[None] for weight in self.weights_of_run()]
        self._charge(started)
        return steps  # a run that diverged takes no more of them, and leaves the stack


class _Chains(Alone):
    """One run of attention alone, or of the minimal model."""

    def __init__(self, spec: RunSpec, run: NativeAttention, pace: Pace) -> None:
        layers = spec.model.layers if isinstance(spec.model, AttentionOnly) else 0
        super().__init__(spec, run, AttentionOutputs(run, layers), pace)
        self.run = run
        self.draws = _source(spec) is not None
        tokens = spec.examples_per_step * spec.domain.n_inputs
        self.drawn_ahead = (
            MOST_STEPS if self.draws else max(1, min(DRAWN_AHEAD, MOST_TOKENS // tokens))
        )

    def prepare(self, step: int, steps: int) -> Callable[[int, int], NDArray[np.float64]]:
        """Draw the batches, unless the run draws its own."""
        batches = None if self.draws else self._batches(step, steps)

        def go_on(work: int, done: int) -> NDArray[np.float64]:
            left = batches and (batches[0][done:], batches[1][done:])
            return self.run.advance(work, steps - done, left)

        return go_on

    def _batches(self, step: int, steps: int) -> tuple[TokenArray, TokenArray]:
        """Return tokens and labels, (step, batch, position).

        The last batch of an epoch may be shorter: it is filled up with sequences without labels.
        """
        pool, places = self.train.batches(self.rows, step, steps)
        spec = self.specs[0]
        shape = (steps, spec.examples_per_step, spec.domain.n_inputs)
        tokens, labels = np.zeros(shape, np.uint8), np.full(shape, NO_LABEL, np.uint8)
        for ahead, each in enumerate(places):
            x, y = pool.take(each)
            tokens[ahead, : x.shape[1]], labels[ahead, : y.shape[1]] = (
                as_bytes(x[0]),
                as_bytes(y[0]),
            )
        return tokens, labels


def as_bytes(tokens: Tensor) -> TokenArray:
    """Return tokens as bytes; a position without a label has −1, here 255."""
    assert NO_LABEL == 255, "the byte of −1"
    return tokens.to(torch.uint8).numpy()
