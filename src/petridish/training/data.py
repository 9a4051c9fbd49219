"""Samples, minibatches and initial weights of runs, drawn alike for every engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from petridish.choices import blamed, describe
from petridish.errors import UserError
from petridish.models import FromModule
from petridish.models.base import Weights
from petridish.seeds import Streams
from petridish.tasks import Examples, Finite, Task
from petridish.tasks.base import draw_examples, examples_at
from petridish.training.acceptance import MOST_ATTEMPTS
from petridish.training.chains import Ended, StartsFromRuns
from petridish.training.settings import Data
from petridish.training.spec import RunSpec
from petridish.training.user_code_checks import check_weights


def grouped(specs: Sequence[RunSpec]) -> list[list[int]]:
    """Group the runs of a stack that draw alike, so that each group is drawn in one call."""
    groups: dict[object, list[int]] = {}
    for run, spec in enumerate(specs):
        groups.setdefault((spec.task, spec.data, spec.init), []).append(run)
    return list(groups.values())


def training_examples(specs: Sequence[RunSpec], start: int, count: int) -> Examples:
    """Draw the training examples start … start + count − 1, label noise included.

    The specs agree in task and data; axis 0 is the run.
    """
    spec, seeds = specs[0], [spec.seed for spec in specs]
    task, noise = spec.task, spec.data.label_noise
    start += spec.data.skip
    if spec.data.accept is not None:
        examples = _accepted(task, spec.data, seeds, start, count)
    elif spec.data.draws == "distinct":
        assert isinstance(task, Finite), "the spec was checked"
        chosen = _order(seeds, task.n_possible)[:, : int(spec.data.m)]
        examples = examples_at(task, seeds, np.sort(chosen, axis=1)[:, start : start + count])
    else:
        examples = draw_examples(task, seeds, "train", start, count)
    if noise == 0:
        return examples
    drawn, n_classes = Streams(seeds, "noise").uniforms(start, count), task.domain.n_classes
    # A draw below the noise is uniform on [0, noise): it chooses which other class replaces it.
    steps = 1 + np.minimum(drawn / noise * (n_classes - 1), n_classes - 2).astype(np.int64)
    wrong = (examples.labels + steps) % n_classes
    changed = (drawn < noise) & (examples.labels >= 0)  # −1 stays −1
    labels = np.where(changed, wrong, examples.labels).astype(examples.labels.dtype)
    return replace(examples, labels=labels)


def sample_attempts(spec: RunSpec) -> int:
    """Return how many training samples were drawn until one was accepted."""
    return _attempts(spec.task, spec.data, spec.seed)


@lru_cache(maxsize=4096)
def _attempts(task: Task, data: Data, seed: int) -> int:
    assert data.accept is not None, "only then a sample may be refused"
    for attempt in range(MOST_ATTEMPTS):
        sample = draw_examples(task, [seed], _stream(attempt), data.skip, int(data.m))
        with blamed("rule", data.accept, "accepts", labels=sample.labels):
            accepted = data.accept.accepts(task, [seed], sample)
        if getattr(accepted, "shape", None) != (1,) or accepted.dtype != np.bool_:
            raise UserError(
                f"The rule {describe(data.accept)} returned {accepted!r} from accepts for one run. "
                "Return a NumPy array with one bool per run."
            )
        if accepted[0]:
            return attempt + 1
    raise UserError(
        f"Of the first {MOST_ATTEMPTS} training samples of {describe(task)} with m={data.m:g} at "
        f"seed {seed}, {describe(data.accept)} accepts none. Raise data.m, or accept more."
    )


def _stream(attempt: int) -> str:
    return f"train/{attempt}" if attempt else "train"


def _accepted(task: Task, data: Data, seeds: Sequence[int], start: int, count: int) -> Examples:
    """Draw a part of each run's accepted sample; runs of one attempt are drawn together."""
    attempts = [_attempts(task, data, seed) for seed in seeds]
    rows, parts = [], []
    for attempt in sorted(set(attempts)):
        some = [row for row, each in enumerate(attempts) if each == attempt]
        parts.append(
            draw_examples(task, [seeds[row] for row in some], _stream(attempt - 1), start, count)
        )
        rows += some
    order = np.argsort(rows)
    if len(parts) == 1:
        return parts[0]

    def together(arrays: Sequence[NDArray[Any] | None]) -> Any:
        known = [array for array in arrays if array is not None]
        return np.concatenate(known)[order] if known else None

    return Examples(
        together([part.labels for part in parts]),
        together([part.packed for part in parts]),
        parts[0].n_bits,
        together([part.dense for part in parts]),
        together([part.hot for part in parts]),
        {name: together([part.facts[name] for part in parts]) for name in parts[0].facts},
    )


def _order(seeds: Sequence[int], possible: int) -> NDArray[np.int64]:
    """Return each run's own order of all inputs, shape (run, input), by sorting random words."""
    return np.argsort(Streams(seeds, "order").words(0, possible), axis=1, kind="stable")


def test_examples(specs: Sequence[RunSpec]) -> Examples:
    """Draw the held-out samples, free of label noise; the specs agree in task and data."""
    spec, seeds = specs[0], [spec.seed for spec in specs]
    task, count = spec.task, spec.data.n_test
    if spec.data.draws == "distinct":
        assert isinstance(task, Finite), "the spec was checked"
        chosen = _order(seeds, task.n_possible)[:, task.n_possible - count :]
        return examples_at(task, seeds, np.sort(chosen, axis=1))
    return draw_examples(task, seeds, "test", 0, count)


def sample_examples(specs: Sequence[RunSpec], name: str) -> Examples:
    """Draw a whole sample by its name: "train", "test" or one of the evaluation's.

    The specs agree in task, data and evaluation. Further samples come from streams of their own,
    "test/<name>".
    """
    if name == "train":
        return training_examples(specs, 0, int(specs[0].data.m))
    if name == "test":
        return test_examples(specs)
    held = next(held for held in specs[0].evaluation.samples if held.name == name)
    return draw_examples(held.task, [spec.seed for spec in specs], f"test/{name}", 0, held.n)


def sample_size(spec: RunSpec, name: str) -> int:
    """Return the number of examples of a sample."""
    if name == "train":
        return int(spec.data.m)
    if name == "test":
        return spec.data.n_test
    return next(held.n for held in spec.evaluation.samples if held.name == name)


def batch_indices(specs: Sequence[RunSpec], step: int, steps: int) -> NDArray[np.int64]:
    """Draw which training examples the steps `step` … `step + steps − 1` see.

    Shape (run, steps, batch). The specs agree in m and batch size; index i of step t takes
    half-word t·B + i of the stream "batches". A full batch takes the sample in its order. Of
    epochs, whose last batch may be short, one step is drawn at a time.
    """
    data, batch = specs[0].data, specs[0].examples_per_step
    if specs[0].training.batches == "epochs":
        assert steps == 1, "the batches of an epoch may differ in size"
        steps_per_epoch = epoch_steps(int(data.m), batch)
        orders = epoch_orders(specs, step // steps_per_epoch)
        first = step % steps_per_epoch * batch
        return orders[:, None, first : first + batch]
    if specs[0].training.batch_size is None:
        return np.broadcast_to(np.arange(batch), (len(specs), steps, batch)).copy()
    streams = Streams([spec.luck for spec in specs], "batches")
    drawn = streams.integers(int(data.m), step * batch, steps * batch)
    return drawn.reshape(len(specs), steps, batch)


def epoch_steps(m: int, batch: int) -> int:
    """Count the steps of one epoch."""
    return -(-m // batch)


@lru_cache(maxsize=8)  # asked at every step of an epoch
def _epoch_order(seed: int, m: int, epoch: int) -> NDArray[np.int64]:
    return np.argsort(Streams([seed], "epochs").words(epoch * m, m)[0], kind="stable")


def epoch_orders(specs: Sequence[RunSpec], epoch: int) -> NDArray[np.int64]:
    """Return the order in which each run goes through its sample, shape (run, example).

    Example i takes word epoch·m + i of the stream "epochs", and the words are sorted.
    """
    m = int(specs[0].data.m)
    return np.stack([_epoch_order(spec.luck, m, epoch) for spec in specs])


def initial_weights(specs: Sequence[RunSpec]) -> list[Weights]:
    """Draw the first values of every parameter; the specs agree in task, data and init."""
    spec = specs[0]
    if isinstance(spec.init, StartsFromRuns):
        return spec.init.start(specs)
    seeds = [spec.luck for spec in specs]
    with blamed("start", spec.init, "draw", seeds=seeds):
        if isinstance(spec.init, FromModule):
            domain, n_outputs = spec.domain, spec.n_outputs
            made = spec.init.draw_from(
                lambda: spec.model.build(domain, n_outputs), spec.parameters, seeds
            )
        else:
            made = spec.init.draw(spec.parameters, seeds)
    check_weights(spec, made, len(specs))
    return made


def initial_buffers(spec: RunSpec) -> Ended:
    """Return the buffers that a run's module takes over from another run."""
    return spec.init.buffers(spec) if isinstance(spec.init, StartsFromRuns) else {}
