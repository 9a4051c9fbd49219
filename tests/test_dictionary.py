"""Patterns of a dictionary: the distribution by enumeration, and cosines with its directions."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from petridish.errors import UserError
from petridish.models import MLP
from petridish.tasks import Dictionary, SparseParity
from petridish.testing import check_instrument, check_task, short_run
from petridish.training import DirectionCosine, Evaluation, Hinge, RunSpec, Silent, load_engine

SMALL = Dictionary(6, 4, 3, background=0.3)


def hidden(task: Dictionary, x: NDArray[Any], seed: int) -> Any:
    """Return φ from inputs: M has orthonormal columns."""
    means = np.array([0.5] * task.k + [task.background] * (task.patterns - task.k))
    return x @ task.dictionary(seed) * np.sqrt(task.variance) + means


def probabilities(task: Dictionary) -> dict[tuple[int, ...], float]:
    """Return the probability of every φ, as the paper writes the mixture down."""
    p, k, found = task.background, task.k, {}
    for phi in product((0, 1), repeat=task.patterns):
        uniform = 0.5**task.patterns
        q = p / (2 - 2 * p)
        around = float(np.prod([q if bit else 1 - q for bit in phi[k:]]))
        structured = 0.5 * around if len(set(phi[:k])) == 1 else 0.0
        found[phi] = p * uniform + (1 - p) * structured if task.structure else uniform
    return found


@pytest.mark.parametrize(
    "task", [SMALL, Dictionary(5, 5, 1), Dictionary(7, 3, 3, structure=False)], ids=repr
)
def test_the_task_keeps_its_contract(task: Dictionary) -> None:
    """Domain, shapes, and examples that depend on their run and number alone."""
    check_task(task)


@pytest.mark.parametrize("task", [SMALL, Dictionary(6, 4, 3, structure=False)], ids=repr)
def test_patterns_are_as_likely_as_the_paper_says(task: Dictionary) -> None:
    """All 16 frequencies of 40 000 examples, within five standard errors; labels are parities.

    By chance one test in 100 000 would fail.
    """
    drawn = task.draw([3], "train", 0, 40_000)
    found = hidden(task, drawn.x[0], 3)
    phi = found.round().astype(int)
    assert np.allclose(found, phi, atol=1e-5)
    assert np.array_equal(drawn.labels[0], 1 - phi[:, : task.k].sum(axis=1) % 2)
    for pattern, probability in probabilities(task).items():
        share = np.all(phi == pattern, axis=1).mean()
        assert abs(share - probability) < 5 * np.sqrt(probability / 40_000)
    if task.structure:
        alike = np.ptp(phi[:, : task.k], axis=1) == 0
        assert alike[drawn.facts["part"][0] == 1].all()
    else:
        assert dict(drawn.facts) == {}


@pytest.mark.parametrize(
    "task",
    [SMALL, Dictionary(6, 5, 3), Dictionary(5, 5, 1), Dictionary(6, 4, 3, structure=False)],
    ids=repr,
)
def test_moments_are_those_of_the_mixture(task: Dictionary) -> None:
    """σ² and γ by enumeration of φ; a pattern outside A is present with probability p_o."""
    likely = probabilities(task)
    phi = np.array(list(likely), float)
    weight = np.array(list(likely.values()))
    y = 2 * (phi[:, : task.k].sum(axis=1) % 2) - 1
    mean = weight @ phi

    assert weight.sum() == pytest.approx(1)
    assert mean == pytest.approx([0.5] * task.k + [task.background] * (task.patterns - task.k))
    assert (weight @ (phi - mean) ** 2).sum() == pytest.approx(task.variance)
    correlation = (weight * y) @ phi - (weight @ y) * mean
    assert correlation[: task.k] == pytest.approx([task.correlation] * task.k, abs=1e-12)
    assert correlation[task.k :] == pytest.approx(0, abs=1e-12)


def test_each_run_has_a_dictionary_of_its_own() -> None:
    """With orthonormal columns, the same in training and testing."""
    first, second = SMALL.dictionary(0), SMALL.dictionary(1)
    assert np.allclose(first.T @ first, np.eye(4), atol=1e-10)
    assert not np.allclose(first, second)
    assert np.array_equal(SMALL.directions([1])[0], second[:, :3].T)
    found = hidden(SMALL, SMALL.draw([1], "test", 0, 50).x[0], 1)
    assert np.allclose(found, found.round(), atol=1e-5)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            (4, 5, 3),
            "Dictionary: k=3, patterns=5, d=4. Give k relevant ones among the patterns, and at "
            "most d patterns: they are orthonormal.",
        ),
        (
            (5, 5, 2),
            "Dictionary: k=2 is even: all relevant patterns and none would have the same label. "
            "Give an odd k, such as 3.",
        ),
        (
            (5, 5, 3, 0.6),
            "Dictionary: background=0.6. Give a probability above 0 and at most 1/2.",
        ),
        (
            (5, 5, 3, 0.3, False),
            "Dictionary: background=0.3 has no effect with structure=False, where every pattern is "
            "present with probability 1/2. Leave it out.",
        ),
    ],
)
def test_what_is_no_dictionary(given: tuple[Any, ...], message: str) -> None:
    """One sentence each."""
    with pytest.raises(UserError) as refused:
        Dictionary(*given)
    assert str(refused.value) == message


def cosines(spec: RunSpec) -> dict[str, float]:
    """Return what both instruments read at the start of a run, and by hand from its weights."""
    both = (DirectionCosine(), DirectionCosine("either"))
    evaluation = Evaluation(curves=True, weights=True, instruments=both)
    (record,) = load_engine("torch").run([replace(spec, evaluation=evaluation)], Silent())
    assert record.weights is not None
    rows = np.array(record.weights[0], np.float64).reshape(spec.parameters[0].shape)
    found = {name: record.curves.values[name][-1] for name in (each.label for each in both)}
    task = spec.task
    if isinstance(task, Dictionary):
        target = task.directions([spec.seed])[0].sum(axis=0)
    else:
        assert isinstance(task, SparseParity)
        target = np.isin(np.arange(task.n), task.supports([spec.seed])[0]).astype(float)
    each = [row @ target / np.sqrt((row @ row) * (target @ target)) for row in rows if row.any()]
    assert found["direction_cosine"] == pytest.approx(max(each))
    assert found["direction_cosine either"] == pytest.approx(max(map(abs, each)))
    return found


def test_cosines_are_those_of_the_weights() -> None:
    """On a dictionary and on bits; for a neuron of 0 there is none, and nothing is divided."""
    run = short_run(SMALL, MLP(7), Hinge())
    check_instrument(DirectionCosine("either"), run)
    cosines(run)
    cosines(short_run(SparseParity(8, 3), MLP(5), Hinge()))


def test_a_sign_that_is_none_is_refused() -> None:
    """In one sentence."""
    with pytest.raises(UserError) as refused:
        DirectionCosine("minus")  # type: ignore[arg-type] # a mistake
    assert str(refused.value) == "DirectionCosine: sign='minus'. Give 'plus' or 'either'."
