"""The contract of tasks."""

from __future__ import annotations

from typing import Any

import numpy as np

from petridish.choices import blamed, describe
from petridish.tasks import (
    Bits,
    Domain,
    Examples,
    Finite,
    HasParts,
    HasStrategies,
    OneHot,
    Task,
    Tokens,
)
from petridish.tasks.base import MANY_LABELS, check_signs, draw_examples, examples_at
from petridish.testing.base import SEEDS, available, check_value, demand, in_words

ALL_INPUTS = 4096  # a task with at most as many is looked at whole


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
    name, domain = describe(task), task.domain
    demand(
        isinstance(domain, Domain),
        f"{name}: domain is {domain!r}. Return such as Domain(Bits(10), Classes(2)).",
    )
    count = available(task, count)
    check_signs(task, available(task, MANY_LABELS))
    for purpose in ("train", "test"):
        drawn = draw_examples(task, SEEDS, purpose, 0, count)
        _check_inputs(task, drawn)
        _same(name, drawn, draw_examples(task, SEEDS, purpose, 0, count), "drawn again")
        alone = draw_examples(task, SEEDS[1:], purpose, 0, count)
        _same(name, _part(drawn, slice(1, 2), slice(None)), alone, "drawn for one run alone")
        start = count // 3
        later = draw_examples(task, SEEDS, purpose, start, count - start)
        _same(
            name, _part(drawn, slice(None), slice(start, None)), later, "drawn from a later start"
        )
    train, test = (draw_examples(task, SEEDS, purpose, 0, count).x for purpose in ("train", "test"))
    demand(
        count < 2 or not np.array_equal(train, test),
        f"{name}: the training and the test sample are the same inputs. Draw from "
        "Streams(seeds, purpose), which differ by purpose.",
    )
    if isinstance(task, Finite):
        _check_finite(task)
    if isinstance(task, HasStrategies):
        _check_strategies(task, draw_examples(task, SEEDS, "test", 0, count))
    if isinstance(task, HasParts) and task.parts:
        parts = draw_examples(task, SEEDS, "test", 0, count).facts.get("part")
        demand(
            parts is not None
            and parts.dtype.kind in "iu"
            and 0 <= parts.min() <= parts.max() < len(task.parts),
            f"{name}: facts['part'] must say of every example which of the {len(task.parts)} "
            f"parts it is of, from 0 on, and is {parts!r}.",
        )


def _check_inputs(task: Task, drawn: Examples) -> None:
    name, inputs = describe(task), task.domain.inputs
    if isinstance(inputs, Tokens):
        fits = 0 <= drawn.x.min() <= drawn.x.max() < inputs.vocabulary
        asked = f"whole numbers from 0 to {inputs.vocabulary - 1}"
    elif isinstance(inputs, Bits):
        fits, asked = np.isin(drawn.x, (-1, 1)).all(), "−1 and +1"
    elif isinstance(inputs, OneHot):
        fits = np.isin(drawn.x, (0, 1)).all() and (drawn.x.sum(axis=-1) == inputs.ones).all()
        asked = f"0 and 1, with {inputs.ones} ones in each"
    else:
        fits, asked = np.isfinite(drawn.x).all(), "finite floats"
    demand(fits, f"{name}: the domain asks for inputs of {asked}, and draw returned others.")


def _part(drawn: Examples, runs: slice, examples: slice) -> Examples:
    return Examples(
        drawn.labels[runs, examples],
        dense=drawn.x[runs, examples],
        facts={name: values[runs, examples] for name, values in drawn.facts.items()},
    )


def _same(name: str, one: Examples, other: Examples, when: str) -> None:
    same = np.array_equal(one.x, other.x) and np.array_equal(one.labels, other.labels)
    demand(
        one.facts.keys() == other.facts.keys(),
        f"{name}: the same examples, {when}, have the facts {sorted(other.facts)}, and had "
        f"{sorted(one.facts)}. Return the same facts for every sample.",
    )
    facts = ((one.facts[f], other.facts[f]) for f in one.facts)
    same = same and all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in facts)
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
    every = examples_at(task, SEEDS, places)
    _check_inputs(task, every)
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
