"""One run of attention in the native engine, as a Python object."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError
from petridish.training.native.descent import Descent, Parameters, native_descent
from petridish.training.native.library import (
    AttentionSpec,
    HeldRun,
    InstructionSet,
    chosen_set,
    library,
)

Tokens = NDArray[np.uint8]
Floats = NDArray[np.float32]

NO_LABEL = 255  # of a position that does not count
TOGETHER = 64  # sequences whose outputs are computed in one call: calls are short


@dataclass(frozen=True)
class ChainSource:
    """Fresh Markov chains, drawn inside: the streams of the task and the first example's place."""

    seed: int
    key: int
    skip: int
    one_row: bool  # for all states: independent tokens


@dataclass(frozen=True)
class AttentionArguments:
    """Everything that a run depends on; `weights` in the model's order, a batch given or drawn.

    The minimal model has 0 layers.
    """

    states: int
    length: int
    d: int
    heads: int
    layers: int
    batch_size: int
    descent: Descent
    weights: Sequence[Floats]
    source: ChainSource | None


class NativeAttention(HeldRun):
    """A run in progress, for one thread at a time, in a `with` block."""

    end = "petridish_attention_end"

    def __init__(self, given: AttentionArguments, isa: InstructionSet | None = None) -> None:
        self._parameters = Parameters(given.weights)
        self._given = given
        weights = self._parameters.flat(given.weights)
        descent, self._kept = native_descent(given.descent)
        source = given.source or ChainSource(0, 0, 0, one_row=False)
        spec = AttentionSpec(
            states=given.states,
            length=given.length,
            d=given.d,
            heads=given.heads,
            layers=given.layers,
            batch_size=given.batch_size,
            descent=descent,
            draws=given.source is not None,
            one_row=source.one_row,
            seed=source.seed,
            key=source.key,
            skip=source.skip,
        )
        self._run = library().petridish_attention_begin(
            ctypes.byref(spec), (isa or chosen_set()).index, weights.ctypes.data
        )
        if not self._run:
            raise UserError(
                f"A transformer on {given.length} tokens does not fit into memory. Lower the "
                "task's length."
            )

    def advance(
        self, work: int, steps: int, batches: tuple[Tokens, Tokens] | None = None
    ) -> NDArray[np.float64]:
        """Continue for about `work` pairs of positions, for at most `steps` steps.

        `batches` are tokens and labels (step, batch, position) from the step under way on, unless
        the run draws its own. Return the losses of the steps that ended; a step that did not is
        continued by the next call.
        """
        losses = np.empty(steps, np.float64)
        places: list[int | None] = [None, None]
        if batches is not None:
            expected = (steps, self._given.batch_size, self._given.length)
            assert all(each.shape == expected and each.dtype == np.uint8 for each in batches)
            batches = (np.ascontiguousarray(batches[0]), np.ascontiguousarray(batches[1]))
            places = [each.ctypes.data for each in batches]
        done = library().petridish_attention_advance(
            self._run, work, steps, *places, losses.ctypes.data
        )
        return losses[:done]

    def weights(self) -> list[Floats]:
        """Return the parameters in the model's order."""
        flat = self._parameters.empty()
        library().petridish_attention_weights(self._run, flat.ctypes.data)
        return self._parameters.parts(flat)

    def outputs(self, tokens: Tokens, start: int = 0) -> Floats:
        """Return the outputs (example, position, state) of sequences, from position `start` on."""
        tokens = np.ascontiguousarray(tokens, np.uint8)
        n, length = tokens.shape
        found = np.empty((n, length - start, self._given.states), np.float32)
        for first in range(0, n, TOGETHER):
            some, into = tokens[first : first + TOGETHER], found[first : first + TOGETHER]
            library().petridish_attention_outputs(
                self._run, some.ctypes.data, len(some), start, into.ctypes.data
            )
        return found

    def pattern(
        self, tokens: Tokens, layer: int, others: tuple[int, Floats] | None = None
    ) -> Floats:
        """Return the shares of attention of a layer, shape (example, head, position, token).

        Layers are counted from 0. With `others` the earlier layer that it names attends by these
        shares instead.
        """
        tokens = np.ascontiguousarray(tokens, np.uint8)
        shape = (len(tokens), self._given.heads, *[self._given.length] * 2)
        found = np.empty(shape, np.float32)
        replaced, given = others or (0, found)
        given = np.ascontiguousarray(given, np.float32)
        assert given.shape == shape, "shares of the same sequences"
        for first in range(0, len(tokens), TOGETHER):
            some, into = tokens[first : first + TOGETHER], found[first : first + TOGETHER]
            instead = given[first : first + TOGETHER].ctypes.data if others else None
            library().petridish_attention_pattern(
                self._run, some.ctypes.data, len(some), layer, replaced, instead, into.ctypes.data
            )
        return found

    def gradient(self, tokens: Tokens, labels: Tokens) -> tuple[float, list[Floats]]:
        """Return the loss of a batch and its gradient, in the order of the weights."""
        tokens, labels = np.ascontiguousarray(tokens), np.ascontiguousarray(labels)
        flat = self._parameters.empty()
        loss = library().petridish_attention_gradient(
            self._run, tokens.ctypes.data, labels.ctypes.data, flat.ctypes.data
        )
        return float(loss), self._parameters.parts(flat)

    def draw(self, start: int, count: int) -> tuple[Tokens, Tokens]:
        """Return tokens and labels of the examples start … start + count − 1 of its source."""
        tokens, labels = (np.empty((count, self._given.length), np.uint8) for _ in range(2))
        library().petridish_attention_draw(
            self._run, start, count, tokens.ctypes.data, labels.ctypes.data
        )
        return tokens, labels
