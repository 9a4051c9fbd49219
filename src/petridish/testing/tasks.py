"""The contract of tasks."""

from __future__ import annotations

from typing import Any

import numpy as np

from petridish.choices import blamed, describe
from petridish.tasks import Examples, Finite, HasParts, HasStrategies, Task
from petridish.tasks.base import examples_at
from petridish.tasks.labels import check_classes
from petridish.testing.base import SEEDS, available, check_value, demand, in_words
from petridish.training.user_code_checks import check_domain, check_draws, check_inputs

ALL_INPUTS = 4096  # a task with at most as many inputs is checked on all of them


@in_words
def check_task(task: Task, *, count: int = 64) -> None:
    """Check a task: its domain, its draws, and what else it says that it can do.

    Parameters
    ----------
    task : Task
        An instance; a small one is checked sooner.
    count : int
        Examples that are drawn; fewer of a task that has fewer.
    """
    check_value(task)
    check_domain(task)
    count = available(task, count)
    check_classes(task, count)
    train, test = (check_draws(task, SEEDS, purpose, count) for purpose in ("train", "test"))
    demand(
        count < 2 or not np.array_equal(train.x, test.x),
        f"{describe(task)}: the training and the test sample are the same inputs. Draw "
        "from Streams(seeds, purpose), which differ by purpose.",
    )
    if isinstance(task, Finite):
        _check_finite(task)
    if isinstance(task, HasStrategies):
        _check_strategies(task, test)
    if isinstance(task, HasParts) and task.parts:
        parts = test.facts.get("part")
        demand(
            parts is not None
            and parts.dtype.kind in "iu"
            and 0 <= parts.min() <= parts.max() < len(task.parts),
            f"{describe(task)}: facts['part'] must say of every example which of the "
            f"{len(task.parts)} parts it is of, from 0 on, and is {parts!r}.",
        )


def _check_finite(task: Any) -> None:
    if task.n_possible > ALL_INPUTS:
        return
    places = np.tile(np.arange(task.n_possible), (len(SEEDS), 1))
    every = examples_at(task, SEEDS, places)
    check_inputs(task, every)
    different = len(np.unique(every.x[0].reshape(task.n_possible, -1), axis=0))
    demand(
        different == task.n_possible,
        f"{describe(task)}: n_possible={task.n_possible} inputs were asked for by `at`, and "
        f"{different} of them are different.",
    )


def _check_strategies(task: Any, drawn: Examples) -> None:
    demand(
        task.domain.n_classes > 0,
        f"{describe(task)}: strategies predict classes, and the domain has {task.domain.target}.",
    )
    expected = (*drawn.labels.shape, task.domain.n_classes)
    for strategy in task.strategies:
        with blamed("task", task, "predict", strategy=strategy, facts=drawn.facts):
            found = np.asarray(task.predict(strategy, drawn))
        sums = found.shape == expected and np.allclose(found.sum(axis=-1), 1, atol=1e-5)
        demand(
            sums and found.min() >= 0,
            f"{describe(task)}: the strategy {strategy!r} must predict probabilities of shape "
            f"{expected} that add up to 1, and returned the shape {found.shape}.",
        )
