"""One run of a block with [CLS] in the native engine, as a Python object."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError
from petridish.training.native.descent import Descent, Floats, Parameters, native_descent
from petridish.training.native.library import (
    ClsSpec,
    HeldRun,
    InstructionSet,
    NativeBatches,
    chosen_set,
    library,
)

Bytes = NDArray[np.uint8]

TOGETHER = 256  # examples whose outputs are computed in one call: calls are short


@dataclass(frozen=True)
class ClsArguments:
    """Everything that a run depends on; `weights` in the model's order."""

    vocabulary: int
    length: int
    d: int
    heads: int
    outputs: int
    drop_below: int  # of 65536
    factor: float
    batch_size: int
    descent: Descent
    seed: int
    keys: tuple[int, int, int, int]  # of its four calls for random numbers
    weights: Sequence[Floats]


@dataclass(frozen=True)
class BlockBatches:
    """Tokens (example, position) and labels (example) of some steps.

    The batch of step s is the examples from s · stride on, or those at `places` (step, example), of
    which −1 is none.
    """

    tokens: Bytes
    labels: Bytes
    stride: int = 0
    places: NDArray[np.int64] | None = None


class NativeCls(HeldRun):
    """A run in progress, for one thread at a time, in a `with` block."""

    end = "petridish_cls_end"

    def __init__(self, given: ClsArguments, isa: InstructionSet | None = None) -> None:
        self._parameters = Parameters(given.weights)
        self._given = given
        weights = self._parameters.flat(given.weights)
        descent, self._kept = native_descent(given.descent)
        spec = ClsSpec(
            vocabulary=given.vocabulary,
            length=given.length,
            d=given.d,
            heads=given.heads,
            outputs=given.outputs,
            drop_below=given.drop_below,
            factor=given.factor,
            batch_size=given.batch_size,
            descent=descent,
            seed=given.seed,
            keys=given.keys,
        )
        self._run = library().petridish_cls_begin(
            ctypes.byref(spec), (isa or chosen_set()).index, weights.ctypes.data
        )
        if not self._run:
            raise UserError(
                f"A transformer on {given.length} tokens does not fit into memory. Lower the "
                "task's length."
            )

    def _native(self, batches: BlockBatches, steps: int) -> NativeBatches:
        size, places = self._given.batch_size, batches.places
        assert batches.tokens.shape == (len(batches.labels), self._given.length)
        for each in (batches.tokens, batches.labels):
            assert each.dtype == np.uint8
            assert each.flags.c_contiguous
        if places is None:
            assert batches.stride * max(0, steps - 1) + size <= len(batches.labels)
        else:
            assert places.dtype == np.int64
            assert places.flags.c_contiguous
            assert places.shape == (steps, size)
            assert int(places.max()) < len(batches.labels)
        return NativeBatches(
            tokens=batches.tokens.ctypes.data,
            labels=batches.labels.ctypes.data,
            places=None if places is None else places.ctypes.data,
            stride=batches.stride,
        )

    def advance(self, work: int, steps: int, batches: BlockBatches) -> NDArray[np.float64]:
        """Continue for about `work` pairs of an example and a token, for at most `steps` steps.

        Return the losses of the steps that ended; a step that did not is continued by the next
        call, whose batches begin with its own.
        """
        losses = np.empty(steps, np.float64)
        native = self._native(batches, steps)
        done = library().petridish_cls_advance(
            self._run, work, steps, ctypes.byref(native), losses.ctypes.data
        )
        return losses[:done]

    def weights(self) -> list[Floats]:
        """Return the parameters in the model's order."""
        flat = self._parameters.empty()
        library().petridish_cls_weights(self._run, flat.ctypes.data)
        return self._parameters.parts(flat)

    def outputs(self, tokens: Bytes) -> Floats:
        """Return the outputs (example, output), without dropout."""
        tokens = np.ascontiguousarray(tokens, np.uint8)
        found = np.empty((len(tokens), self._given.outputs), np.float32)
        for first in range(0, len(tokens), TOGETHER):
            some, into = tokens[first : first + TOGETHER], found[first : first + TOGETHER]
            library().petridish_cls_outputs(
                self._run, some.ctypes.data, len(some), into.ctypes.data
            )
        return found

    def gradient(self, batches: BlockBatches, step: int = 0) -> tuple[float, list[Floats]]:
        """Return the loss of a batch with the dropout of a step, and its gradient."""
        flat = self._parameters.empty()
        native = self._native(batches, 1)
        loss = library().petridish_cls_gradient(
            self._run, step, ctypes.byref(native), flat.ctypes.data
        )
        return float(loss), self._parameters.parts(flat)
