"""A block with [CLS] in the native engine: steps in compiled code, everything else as in `torch`.

A sample is handed over once, and minibatches as places in it; online the task draws the examples.
Dropout is drawn inside, from the same streams as in the other engines.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np
from numpy.typing import NDArray

from petridish.models import ClsTransformer
from petridish.seeds import name_key
from petridish.tasks.domain import Tokens
from petridish.training.data import initial_weights
from petridish.training.engines.native import Pace
from petridish.training.engines.native_attention import (
    MOST_STEPS,
    MOST_TOKENS,
    Alone,
    Outputs,
    as_bytes,
    descent_of,
)
from petridish.training.engines.stack import DRAWN_AHEAD
from petridish.training.native.cls_run import BlockBatches, ClsArguments, NativeCls
from petridish.training.noise import Call
from petridish.training.pools import Pool
from petridish.training.spec import RunSpec

CALLS = 4  # for random numbers: tokens, shares of attention, what attention and the MLP add


def arguments(spec: RunSpec) -> ClsArguments:
    """Return what a run begins with."""
    model, inputs = spec.model, spec.domain.inputs
    assert isinstance(model, ClsTransformer), "the engine refuses other models"
    assert isinstance(inputs, Tokens), "the model refuses other inputs"
    dropout = Call("mask", (), model.dropout)
    return ClsArguments(
        vocabulary=inputs.vocabulary,
        length=inputs.length,
        d=model.d,
        heads=model.heads,
        outputs=spec.n_outputs,
        drop_below=dropout.drop_below,
        factor=1 / float(np.float32(dropout.share_kept)),
        batch_size=spec.examples_per_step,
        descent=descent_of(spec),
        seed=spec.luck,
        keys=cast(
            tuple[int, int, int, int], tuple(name_key(f"module/{call}") for call in range(CALLS))
        ),
        weights=[np.asarray(weight[0], np.float32) for weight in initial_weights([spec])],
    )


class Block(Alone):
    """One run."""

    def __init__(self, spec: RunSpec, run: NativeCls, pace: Pace) -> None:
        super().__init__(spec, run, Outputs(run), pace)
        self.run = run
        self.pool: Pool | None = None
        self.examples: tuple[NDArray[np.uint8], NDArray[np.uint8]]
        tokens = spec.examples_per_step * spec.domain.n_inputs
        ahead = max(1, min(DRAWN_AHEAD, MOST_TOKENS // tokens))
        self.drawn_ahead = MOST_STEPS if self.train.full else ahead

    def prepare(self, step: int, steps: int) -> Callable[[int, int], NDArray[np.float64]]:
        """Draw the batches: places in the sample, or fresh examples."""
        size = self.specs[0].examples_per_step
        places = None
        pool, chosen = self.train.batches(self.rows, step, 1 if self.train.full else steps)
        if pool is not self.pool:
            self.pool = pool
            self.examples = as_bytes(pool.inputs), as_bytes(pool.labels)
        if not (self.train.full or self.train.online):
            places = np.full((steps, size), -1, np.int64)
            for ahead, each in enumerate(chosen):  # the last batch of an epoch may be shorter
                places[ahead, : each.shape[1]] = each[0].numpy()
        stride = size if self.train.online else 0

        def go_on(work: int, done: int) -> NDArray[np.float64]:
            first = done * stride
            tokens, labels = (part[first:] for part in self.examples)
            left = None if places is None else places[done:]
            return self.run.advance(work, steps - done, BlockBatches(tokens, labels, stride, left))

        return go_on
