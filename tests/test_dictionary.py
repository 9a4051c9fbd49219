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


MAJORITY = Dictionary(7, 5, 3, background=0.2, share=0.6, positive=(2, 3), relevant=0.7)
OTHERS = [
    Dictionary(6, 5, 3, background=0.2, share=0.4),
    Dictionary(6, 5, 3, background=0.7, share=0.0),
    Dictionary(6, 4, 2, share=0.0, positive=(2,), relevant=2 / 3),
    Dictionary(6, 4, 3, background=0.3, negatives=0.8),
    Dictionary(6, 4, 3, structure=False, negatives=0.9),
    Dictionary(6, 3, 1, share=1.0),
    MAJORITY,
]


def hidden(task: Dictionary, x: NDArray[Any], seed: int) -> Any:
    """Return φ from inputs: M has orthonormal columns."""
    means = np.full(task.patterns, task.background)
    means[: task.k] = task.present_in_a
    along = x[..., :-1] if task.space == "patterns" else x @ task.dictionary(seed)
    return along * np.sqrt(task.variance) + means


def probabilities(task: Dictionary) -> dict[tuple[int, ...], float]:
    """Return the probability of every φ, as the paper writes the mixture down."""
    p, k, found = task.background, task.k, {}
    for phi in product((0, 1), repeat=task.patterns):
        if task.share is None:
            q, in_uniform, share = p / (2 - 2 * p), 0.5, (1 - p) * task.structure
        else:
            q, in_uniform, share = p, p, task.share
        inside = likely(phi[:k], task.relevant)
        alike = 0.5 if len(set(phi[:k])) == 1 else 0.0
        uniform, structured = inside * likely(phi[k:], in_uniform), alike * likely(phi[k:], q)
        if task.negatives is not None:  # each part with its class as likely as the share says
            minus = sum(phi[:k]) % 2 == 0
            wanted = 2 * (task.negatives if minus else 1 - task.negatives)
            uniform, structured = wanted * uniform, wanted * structured
        found[phi] = (1 - share) * uniform + share * structured
    return found


def likely(bits: tuple[int, ...], chance: float) -> float:
    """Return the probability of independent bits."""
    return float(np.prod([chance if bit else 1 - chance for bit in bits]))


@pytest.mark.parametrize(
    "task",
    [
        *(SMALL, Dictionary(5, 5, 1), Dictionary(7, 3, 3, structure=False), *OTHERS),
        *(replace(SMALL, space="patterns"), replace(SMALL, basis="random", noise=0.3)),
        Dictionary(3, 5, 3, basis="random"),
    ],
    ids=repr,
)
def test_the_task_keeps_its_contract(task: Dictionary) -> None:
    """Domain, shapes, and examples that depend on their run and number alone."""
    check_task(task)


@pytest.mark.parametrize(
    "task",
    [
        *(SMALL, Dictionary(6, 4, 3, structure=False), replace(SMALL, space="patterns")),
        *(*OTHERS, Dictionary(6, 5, 3, 2 / 3)),
    ],
    ids=repr,
)
def test_patterns_are_as_likely_as_the_paper_says(task: Dictionary) -> None:
    """All frequencies of 40 000 examples, within five standard errors; labels are as P says.

    By chance one test in 10 000 would fail.
    """
    drawn = task.draw([3], "train", 0, 40_000)
    found = hidden(task, drawn.x[0], 3)
    phi = found.round().astype(int)
    assert np.allclose(found, phi, atol=1e-5)
    counts = phi[:, : task.k].sum(axis=1)
    plus = counts % 2 == 1 if task.positive is None else np.isin(counts, task.positive)
    assert np.array_equal(drawn.labels[0] == 0, plus)
    for pattern, probability in probabilities(task).items():
        share = np.all(phi == pattern, axis=1).mean()
        assert abs(share - probability) <= 5 * np.sqrt(probability / 40_000)
    if task.parts:
        alike = np.ptp(phi[:, : task.k], axis=1) == 0
        assert alike[drawn.facts["part"][0] == 1].all()
    else:
        assert dict(drawn.facts) == {}


@pytest.mark.parametrize(
    "task",
    [
        *(SMALL, Dictionary(6, 5, 3), Dictionary(5, 5, 1), Dictionary(6, 4, 3, structure=False)),
        *(*OTHERS, Dictionary(6, 5, 3, 2 / 3)),
    ],
    ids=repr,
)
def test_moments_are_those_of_the_mixture(task: Dictionary) -> None:
    """σ² and γ by enumeration of φ; a pattern outside A is present with probability p_o."""
    likely = probabilities(task)
    phi = np.array(list(likely), float)
    weight = np.array(list(likely.values()))
    plus = range(1, task.k + 1, 2) if task.positive is None else task.positive
    y = 2 * np.isin(phi[:, : task.k].sum(axis=1), plus) - 1
    mean = weight @ phi
    inside = [task.present_in_a] * task.k

    assert weight.sum() == pytest.approx(1)
    assert weight @ y == pytest.approx(task.mean_label)
    assert mean == pytest.approx(inside + [task.background] * (task.patterns - task.k))
    assert (weight @ (phi - mean) ** 2).sum() == pytest.approx(task.variance)
    correlation = (weight * y) @ phi - (weight @ y) * mean
    assert correlation[: task.k] == pytest.approx([task.correlation] * task.k, abs=1e-12)
    assert correlation[task.k :] == pytest.approx(0, abs=1e-12)


def test_closed_forms_of_the_paper() -> None:
    """γ = (1 − p_o)/2 and σ² of its mixture; FL-2's interval; ρ/2 where ρ is an axis of its own."""
    mixed = Dictionary(10, 8, 5, background=0.2)
    assert mixed.correlation == pytest.approx(0.4)
    assert mixed.variance == pytest.approx(5 / 4 + 3 * 0.16)
    interval = Dictionary(500, 100, 30, share=0.0, positive=tuple(range(20, 31)), relevant=2 / 3)
    assert interval.correlation == pytest.approx(0.0680, abs=5e-5)
    assert interval.variance == pytest.approx(24.17, abs=5e-3)
    assert (1 + interval.mean_label) / 2 == pytest.approx(0.585, abs=5e-4)
    assert Dictionary(10, 8, 5, share=0.3).correlation == pytest.approx(0.15)


def test_assumptions_of_the_paper() -> None:
    """Its own mixture satisfies them at p_o = ½ alone; an interval is not balanced."""
    assert all(Dictionary(6, 5, 3).assumptions().values())
    assert SMALL.assumptions() == {"A0": True, "A1": True, "A2": False}
    assert all(Dictionary(6, 5, 3, background=0.3, share=0.7).assumptions().values())
    assert MAJORITY.assumptions()["A0"] is False
    assert Dictionary(6, 4, 3, structure=False).assumptions()["A1"] is False


def test_one_pattern_with_noise_is_two_gaussians() -> None:
    """App. F's example: X = v/2 + N(yv/2, σ_ζ²), here centred and over σ; within five errors."""
    task = Dictionary(4, 1, 1, structure=False, noise=0.5)
    drawn = task.draw([2], "train", 0, 20_000)
    y = 1.0 - 2.0 * drawn.labels[0]
    v, sigma = task.dictionary(2)[:, 0], np.sqrt(0.25 + 4 * 0.25)
    rest = drawn.x[0] * sigma - 0.5 * y[:, None] * v

    assert task.variance == pytest.approx(sigma**2)
    assert np.abs(rest.mean(axis=0)).max() < 5 * 0.5 / np.sqrt(20_000)
    assert np.allclose(np.cov(rest.T), 0.25 * np.eye(4), atol=5 * 0.25 * np.sqrt(2 / 20_000))


def test_every_sample_has_its_share_of_classes() -> None:
    """Exactly, up to one example, wherever it begins."""
    task = Dictionary(6, 4, 3, negatives=0.8)
    for start, count in ((0, 50), (7, 1000), (123, 45)):
        share = task.draw([0], "train", start, count).labels.mean()
        assert abs(share - 0.8) <= 1 / count


def test_random_dictionaries_may_be_overcomplete() -> None:
    """Unit columns; μ is √d times the largest inner product, and 0 where they are orthonormal."""
    task = Dictionary(50, 80, 3, basis="random")
    columns = task.dictionary(1)
    products = columns.T @ columns

    assert np.allclose(np.diag(products), 1)
    largest = np.abs(products - np.eye(80)).max()
    assert task.coherence(1) == pytest.approx(largest * np.sqrt(50), rel=1e-6)
    assert 0.2 < largest < 0.8
    assert SMALL.coherence(1) < 1e-9


def test_patterns_as_coordinates_are_inputs_in_another_basis() -> None:
    """The same examples, directions and labels; the last coordinate is 0."""
    there = replace(SMALL, space="patterns")
    ours, theirs = (task.draw([4], "train", 3, 20) for task in (there, SMALL))

    assert np.allclose(ours.x[0, :, :-1], theirs.x[0] @ SMALL.dictionary(4), atol=1e-6)
    assert not ours.x[..., -1].any()
    assert np.array_equal(ours.labels, theirs.labels)
    assert np.array_equal(there.directions([4])[0], np.eye(3, 5))


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
            (5, 5, 3, 0.7),
            "Dictionary: background=0.7. Give a probability above 0 and at most 2/3; with a share "
            "of structured examples, any.",
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


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"share": 1.5},
            "Dictionary: share=1.5. Give the share of structured examples, from 0 to 1.",
        ),
        (
            {"share": 0.5, "structure": False},
            "Dictionary: share=0.5 has no effect with structure=False. Leave one of the two out; "
            "share=0 is no structure.",
        ),
        (
            {"share": 0.5, "background": 1.0},
            "Dictionary: background=1.0. Give a probability between 0 and 1.",
        ),
        (
            {"relevant": 0.0},
            "Dictionary: relevant=0.0. Give a probability between 0 and 1.",
        ),
        (
            {"relevant": 0.3, "share": 1.0},
            "Dictionary: relevant=0.3 has no effect with share=1, where all relevant patterns are "
            "present, or none. Leave it out.",
        ),
        (
            {"positive": (2, 4)},
            "Dictionary: positive=(2, 4). Give some of the numbers 0 to 3 of relevant patterns, "
            "and not all.",
        ),
        (
            {"positive": (0, 3)},
            "Dictionary: positive=(0, 3) gives all 3 relevant patterns and none the same label: "
            "the structured part has one class. Give one of 0 and 3, or share=0.",
        ),
        (
            {"negatives": 1.0},
            "Dictionary: negatives=1.0. Give a share of y = -1 between 0 and 1.",
        ),
        (
            {"noise": -1.0},
            "Dictionary: noise=-1.0. Give a standard deviation of at least 0.",
        ),
        (
            {"space": "patterns", "noise": 0.5},
            "Dictionary: space='patterns' with basis='orthonormal' and noise=0.5: only an "
            "orthonormal dictionary without noise is known by its coordinates. Give "
            "space='inputs'.",
        ),
        (
            {"basis": "random", "k": 6},
            "Dictionary: k=6, patterns=5, d=5. Give k relevant ones among the patterns.",
        ),
    ],
)
def test_settings_that_do_not_go_together(given: dict[str, Any], message: str) -> None:
    """One sentence each."""
    with pytest.raises(UserError) as refused:
        Dictionary(**{"d": 5, "patterns": 5, "k": 3, **given})
    assert str(refused.value) == message


def test_one_labelling_has_one_spelling() -> None:
    """The odd numbers are the default, in any order."""
    assert Dictionary(6, 4, 3, positive=(3, 1)) == Dictionary(6, 4, 3)
    assert Dictionary(6, 4, 3, positive=(3, 2)) == Dictionary(6, 4, 3, positive=(2, 3))


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
