"""The contract of tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from petridish.choices import describe
from petridish.tasks import (
    Bits,
    Domain,
    Examples,
    Finite,
    HasParts,
    HasStrategies,
    OneHot,
    Reals,
    Task,
    Tokens,
)

if TYPE_CHECKING:
    pass

from petridish.testing.base import SEEDS, available, check_value, demand

ALL_INPUTS = 4096  # a task with at most as many is looked at whole


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
    name, domain = describe(task), task.domain
    demand(
        isinstance(domain, Domain),
        f"{name}: domain is {domain!r}. Return such as Domain(Bits(10), Classes(2)).",
    )
    count = available(task, count)
    for purpose in ("train", "test"):
        drawn = task.draw(SEEDS, purpose, 0, count)
        _check_examples(task, drawn, count)
        _same(name, drawn, task.draw(SEEDS, purpose, 0, count), "drawn again")
        alone = task.draw(SEEDS[1:], purpose, 0, count)
        _same(name, _part(drawn, slice(1, 2), slice(None)), alone, "drawn for one run alone")
        start = count // 3
        later = task.draw(SEEDS, purpose, start, count - start)
        _same(
            name, _part(drawn, slice(None), slice(start, None)), later, "drawn from a later start"
        )
    train, test = (task.draw(SEEDS, purpose, 0, count).x for purpose in ("train", "test"))
    demand(
        count < 2 or not np.array_equal(train, test),
        f"{name}: the training and the test sample are the same inputs. Draw from "
        "Streams(seeds, purpose), which differ by purpose.",
    )
    if isinstance(task, Finite):
        _check_finite(task)
    if isinstance(task, HasStrategies):
        _check_strategies(task, task.draw(SEEDS, "test", 0, count))
    if isinstance(task, HasParts) and task.parts:
        parts = task.draw(SEEDS, "test", 0, count).facts.get("part")
        demand(
            parts is not None and 0 <= parts.min() <= parts.max() < len(task.parts),
            f"{name}: facts['part'] must say of every example which of the {len(task.parts)} "
            f"parts it is of, from 0 on, and is {parts!r}.",
        )


def _check_examples(task: Task, drawn: Examples, count: int) -> None:
    name, inputs = describe(task), task.domain.inputs
    demand(
        isinstance(drawn, Examples),
        f"{name}: draw returned {type(drawn).__name__}. Return Examples.",
    )
    task.domain.check_labels(drawn.labels, name)
    demand(
        drawn.labels.shape[:2] == (len(SEEDS), count),
        f"{name}: {count} examples of {len(SEEDS)} runs were asked for, and the labels have the "
        f"shape {drawn.labels.shape}. Return (run, example) first.",
    )
    shape = inputs.shape if isinstance(inputs, Reals) else (inputs.n,)
    demand(
        drawn.x.shape == (len(SEEDS), count, *shape),
        f"{name}: the inputs have the shape {drawn.x.shape}, and the domain asks for "
        f"{(len(SEEDS), count, *shape)}.",
    )
    if isinstance(inputs, Tokens):
        fits = (
            drawn.x.dtype.kind in "iu" and 0 <= drawn.x.min() <= drawn.x.max() < inputs.vocabulary
        )
        asked = f"whole numbers from 0 to {inputs.vocabulary - 1}"
    elif isinstance(inputs, Bits):
        fits, asked = np.isin(drawn.x, (-1, 1)).all(), "−1 and +1"
    elif isinstance(inputs, OneHot):
        fits = np.isin(drawn.x, (0, 1)).all() and (drawn.x.sum(axis=-1) == inputs.ones).all()
        asked = f"0 and 1, with {inputs.ones} ones in each"
    else:
        fits, asked = drawn.x.dtype.kind == "f" and np.isfinite(drawn.x).all(), "finite floats"
    demand(fits, f"{name}: the domain asks for inputs of {asked}, and draw returned others.")
    for fact, values in drawn.facts.items():
        demand(
            values.shape[:2] == (len(SEEDS), count),
            f"{name}: the fact {fact!r} has the shape {values.shape}. Return one entry per run "
            "and example.",
        )


def _part(drawn: Examples, runs: slice, examples: slice) -> Examples:
    return Examples(
        drawn.labels[runs, examples],
        dense=drawn.x[runs, examples],
        facts={name: values[runs, examples] for name, values in drawn.facts.items()},
    )


def _same(name: str, one: Examples, other: Examples, when: str) -> None:
    same = np.array_equal(one.x, other.x) and np.array_equal(one.labels, other.labels)
    same = same and all(np.array_equal(one.facts[f], other.facts[f]) for f in one.facts)
    demand(
        same,
        f"{name}: the same examples, {when}, are others. An example must depend on its run's seed "
        "and its number alone: take all randomness from Streams(seeds, purpose), and begin at "
        "`start`.",
    )


def _check_finite(task: Any) -> None:
    if task.n_possible > ALL_INPUTS:
        return
    places = np.tile(np.arange(task.n_possible), (len(SEEDS), 1))
    every = task.at(SEEDS, places)
    _check_examples(task, every, task.n_possible)
    different = len(np.unique(every.x[0].reshape(task.n_possible, -1), axis=0))
    demand(
        different == task.n_possible,
        f"{describe(task)}: n_possible={task.n_possible} inputs were asked for by `at`, and "
        f"{different} of them are different.",
    )


def _check_strategies(task: Any, drawn: Examples) -> None:
    target = task.domain.target
    expected = (*drawn.labels.shape, target.k)
    for strategy in task.strategies:
        found = task.predict(strategy, drawn)
        sums = found.shape == expected and np.allclose(found.sum(axis=-1), 1, atol=1e-5)
        demand(
            sums and found.min() >= 0,
            f"{describe(task)}: the strategy {strategy!r} must predict probabilities of shape "
            f"{expected} that add up to 1, and returned the shape {found.shape}.",
        )
