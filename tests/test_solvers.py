"""Classical solvers of sparse parities: answers against brute force, costs against formulas."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations, product
from math import comb
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import hadamard

from petridish.seeds import Words, pack_bits, unpack_bits
from petridish.tasks import SparseParity
from petridish.theory.fourier import walsh_hadamard
from petridish.theory.majority import krawtchouk
from petridish.theory.pareto.solvers import (
    SOLVERS,
    Answer,
    Solver,
    decode,
    draw_parity,
    eliminate,
    guess,
    regress,
    search,
    walsh_decode,
)
from petridish.theory.pareto.solvers.candidates import lower_size, subset_xors, unrank, upper_sets
from petridish.theory.pareto.solvers.exact import random_sets
from petridish.theory.pareto.solvers.sample import Bits, evaluate_parity, pack_columns
from petridish.theory.smallest import first_true
from tests.solver_samples import rng_of, run

ALL = list(SOLVERS.values())
EXACT: list[Callable[..., Answer]] = [search, eliminate]
DECODERS: list[Callable[..., Answer]] = [decode, walsh_decode]
RANKED: list[Callable[..., Answer]] = [*EXACT, *DECODERS, regress]  # no chance in them
SETS = [(n, k) for n in range(1, 7) for k in range(n + 1)]


def wrong_labels(inputs: Words, labels: Bits, n: int, k: int) -> dict[tuple[int, ...], int]:
    """Count every set's wrong labels, in plain Python."""
    bits = unpack_bits(inputs)[:, :n].tolist()
    return {
        chosen: sum(
            sum(row[i] for i in chosen) % 2 != label
            for row, label in zip(bits, labels.tolist(), strict=True)
        )
        for chosen in combinations(range(n), k)
    }


def small_samples(n: int, k: int, seed: int) -> list[tuple[Words, Bits]]:
    """Return samples of an (n, k): parities, other labels, and rows that repeat."""
    rng = rng_of(seed, n, k)
    samples = []
    for m in (0, 1, 2, 4, 7, 12):
        for noise in (0.0, 0.2):
            inputs, labels, _ = draw_parity(n, k, m, rng, noise=noise)
            samples.append((inputs, labels))
    inputs, labels, _ = draw_parity(n, k, 5, rng)
    samples.append((np.tile(inputs, (3, 1)), np.tile(labels, 3)))
    samples.append((np.tile(inputs, (2, 1)), np.concatenate([labels, 1 - labels])))
    return samples


@pytest.mark.parametrize(("n", "k"), SETS)
def test_exact_solvers_count_what_brute_force_counts(n: int, k: int, seed: int) -> None:
    """Elimination with a listed kernel and exhaustive search know all sets that fit."""
    for inputs, labels in small_samples(n, k, seed):
        fitting = [s for s, wrong in wrong_labels(inputs, labels, n, k).items() if not wrong]
        for solve in EXACT:
            answer = solve(inputs, labels, n=n, k=k)

            assert answer.fits == len(fitting)
            assert answer.support == (fitting[0] if len(fitting) == 1 else None)
            assert answer.unique == (len(fitting) == 1)


@pytest.mark.parametrize(("n", "k"), SETS)
def test_decoders_rank_as_brute_force_ranks(n: int, k: int, seed: int) -> None:
    """The best, its ties and the runner-up's gap, directly and by the transform."""
    for inputs, labels in small_samples(n, k, seed):
        wrong = wrong_labels(inputs, labels, n, k)
        ranked = sorted(wrong.values())
        best = [s for s in wrong if wrong[s] == ranked[0]]
        for solve in DECODERS:
            answer = solve(inputs, labels, n=n, k=k)

            assert answer.disagreements == ranked[0]
            assert answer.gap == (ranked[1] - ranked[0] if len(ranked) > 1 else None)
            assert answer.fits == len(best)
            assert answer.support == (best[0] if len(best) == 1 else None)


@pytest.mark.parametrize(("n", "k"), SETS)
@pytest.mark.parametrize("ridge", [0.0, 3.0])
def test_regression_takes_the_largest_coefficient(n: int, k: int, ridge: float, seed: int) -> None:
    """The kernel's way gives what the pseudo-inverse of the features gives."""
    sets = list(combinations(range(n), k))
    for inputs, labels in small_samples(n, k, seed):
        features = np.stack([1.0 - 2.0 * evaluate_parity(inputs, s) for s in sets], axis=1)
        kernel = features @ features.T + ridge * np.eye(len(labels))
        weights = features.T @ np.linalg.pinv(kernel, hermitian=True) @ (1.0 - 2.0 * labels)
        top = np.flatnonzero(weights > weights.max() - 1e-8)
        answer = regress(inputs, labels, n=n, k=k, ridge=ridge)

        assert answer.support == (sets[top[0]] if len(top) == 1 else None)
        if answer.support is not None:
            wrong = wrong_labels(inputs, labels, n, k)
            assert answer.disagreements == wrong[answer.support]
        assert not answer.unique


@pytest.mark.parametrize(("n", "k"), SETS)
def test_guessing_finds_a_set_that_fits(n: int, k: int, seed: int) -> None:
    """With 50 N guesses it misses a set with probability e^−50; it finds none where none fits."""
    for inputs, labels in small_samples(n, k, seed):
        fitting = [s for s, wrong in wrong_labels(inputs, labels, n, k).items() if not wrong]
        answer = guess(inputs, labels, n=n, k=k, rng=rng_of(seed), budget=50 * comb(n, k))

        assert (answer.support in fitting) if fitting else (answer.support is None)
        assert not answer.unique


@pytest.mark.parametrize(
    ("solver", "m", "n"),
    [
        pytest.param(solver, m, n, id=f"{solver.name}-{m}-{n}")
        for solver, m, n in product(ALL, (64, 65, 150), (12, 64, 65, 130))
        # Beyond its transform, and below what it needs.
        if not (solver.name == "walsh" and n > 20)
        and not (solver.name == "elimination" and m < n - 16)
    ],
)
def test_word_borders_do_not_matter(solver: Solver, n: int, m: int, seed: int) -> None:
    """With far more than enough examples every solver finds S, the last bit among it."""
    support = (n - 11, n - 1)
    inputs, _, _ = draw_parity(n, 2, m, rng_of(seed, n, m))
    labels = evaluate_parity(inputs, support)
    options: dict[str, Any] = {"rng": rng_of(1), "budget": 40 * comb(n, 2)} if solver.random else {}
    answer = solver.solve(inputs, labels, n=n, k=2, **options)

    assert answer.support == support
    assert answer.disagreements == 0


def test_a_task_s_examples_go_straight_in(seed: int) -> None:
    """The layout is that of the project's streams."""
    task = SparseParity(70, 3)
    drawn = task.draw([seed], "train", 0, 80)
    assert drawn.packed is not None
    support = tuple(task.supports([seed])[0].tolist())

    for solve in (search, eliminate, decode):
        assert solve(drawn.packed[0], drawn.labels[0], n=70, k=3).support == support


def test_many_upper_columns(seed: int) -> None:
    """Where the table of beginnings holds three of five columns, two go through the loop."""
    assert lower_size(64, 5) == 3
    inputs, labels, support = draw_parity(64, 5, 60, rng_of(seed))

    assert search(inputs, labels, n=64, k=5).support == support
    assert decode(inputs, labels, n=64, k=5).support == support


@pytest.mark.parametrize("k", [0, 50])
def test_a_single_candidate_needs_no_example(k: int) -> None:
    """With k = 0 or k = n one set is left; elimination alone asks for equations nevertheless."""
    inputs, labels, support = draw_parity(50, k, 0, rng_of(0))

    for solve in (search, decode, regress):
        assert solve(inputs, labels, n=50, k=k).support == support
    assert eliminate(inputs, labels, n=50, k=k).fits is None
    for solver in ALL:
        assert solver.samples(50, k) == (34 if solver.name == "elimination" else 0)


def test_no_example_leaves_all_sets() -> None:
    """Everything fits, and nobody answers but the guesser, who takes his first guess."""
    inputs, labels, _ = draw_parity(8, 3, 0, rng_of(0))
    answers = {solver.name: run(solver, inputs, labels, 8, 3) for solver in ALL}

    assert [name for name in answers if answers[name].support] == ["guessing"]
    for name in ("elimination", "exhaustive", "decoder", "walsh"):
        assert answers[name].fits == 56
    assert answers["decoder"].gap == answers["walsh"].gap == 0


def test_elimination_answers_at_full_rank_whatever_the_weight() -> None:
    """At rank n there is one solution; it is refused only if its weight is not k."""
    inputs = pack_bits(np.eye(70, dtype=np.uint8))
    labels = np.zeros(70, np.uint8)
    labels[[3, 68]] = 1
    found = eliminate(inputs, labels, n=70, k=2, max_free=0)
    refused = eliminate(inputs, labels, n=70, k=3, max_free=0)

    assert (found.support, found.fits) == ((3, 68), 1)
    assert (refused.support, refused.fits) == (None, 0)


def test_elimination_says_what_it_does_not_know() -> None:
    """Beyond max_free free unknowns it counts nothing; one fewer, and it lists them."""
    inputs = pack_bits(np.eye(20, dtype=np.uint8)[:15])
    labels = np.zeros(15, np.uint8)
    labels[[3, 4]] = 1
    unknown = eliminate(inputs, labels, n=20, k=2, max_free=4)
    known = eliminate(inputs, labels, n=20, k=2, max_free=5)

    assert (unknown.support, unknown.fits) == (None, None)
    assert (known.support, known.fits) == ((3, 4), 1)
    assert eliminate(inputs, labels, n=20, k=3, max_free=5).fits == 5


@pytest.mark.parametrize("solve", EXACT)
def test_contradictions_fit_nothing(solve: Callable[..., Answer], seed: int) -> None:
    """One example with both labels: no set explains them."""
    inputs, labels, _ = draw_parity(30, 3, 100, rng_of(seed))
    labels[0] ^= 1
    answer = solve(np.vstack([inputs, inputs[:1]]), np.append(labels, labels[0] ^ 1), n=30, k=3)

    assert (answer.support, answer.fits) == (None, 0)


@st.composite
def samples(draw: st.DrawFn, *, noise: float) -> tuple[Words, Bits, int, int]:
    """Draw samples of up to 9 bits and 24 examples."""
    n = draw(st.integers(1, 9))
    k = draw(st.integers(0, n))
    m = draw(st.integers(0, 24))
    seed = draw(st.integers(0, 2**32))
    inputs, labels, _ = draw_parity(n, k, m, rng_of(seed), noise=noise)
    return inputs, labels, n, k


@given(samples(noise=0.0))
def test_what_is_unique_explains_every_label(sample: tuple[Words, Bits, int, int]) -> None:
    """On noiseless labels, whoever says unique is right, and all say the same."""
    inputs, labels, n, k = sample
    answers = [run(solver, inputs, labels, n, k) for solver in ALL]
    unique = {answer.support for answer in answers if answer.unique}

    assert len(unique) <= 1
    for support in unique:
        assert support is not None
        assert len(support) == k
        assert np.array_equal(evaluate_parity(inputs, support), labels)
    assert len({answer.fits for answer in answers if answer.fits is not None}) == 1


@given(samples(noise=0.15))
def test_the_transform_is_the_decoder(sample: tuple[Words, Bits, int, int]) -> None:
    """Two ways to the same numbers; a very large ridge is a third to the same set."""
    inputs, labels, n, k = sample
    one = decode(inputs, labels, n=n, k=k)
    other = walsh_decode(inputs, labels, n=n, k=k)

    assert (one.support, one.fits, one.gap) == (other.support, other.fits, other.gap)
    assert one.disagreements == other.disagreements
    if one.support is not None:
        assert regress(inputs, labels, n=n, k=k, ridge=1e7).support == one.support


@given(samples(noise=0.1), st.randoms(use_true_random=False))
def test_permuted_columns_permute_the_answer(
    sample: tuple[Words, Bits, int, int], random: Any
) -> None:
    """No solver prefers one bit to another."""
    inputs, labels, n, k = sample
    order = random.sample(range(n), n)
    permuted = pack_bits(unpack_bits(inputs)[:, :n][:, order])  # column i was column order[i]
    for solve in RANKED:
        before = solve(inputs, labels, n=n, k=k)
        after = solve(permuted, labels, n=n, k=k)

        assert after.fits == before.fits
        moved = None if after.support is None else tuple(sorted(order[i] for i in after.support))
        assert moved == before.support


@given(samples(noise=0.0), st.integers(0, 24))
def test_more_examples_never_bring_a_set_back(
    sample: tuple[Words, Bits, int, int], fewer: int
) -> None:
    """The sets that fit only become fewer, and an answer once unique stays."""
    inputs, labels, n, k = sample
    for solve in EXACT:
        after = solve(inputs, labels, n=n, k=k)
        before = solve(inputs[:fewer], labels[:fewer], n=n, k=k)

        assert before.fits is not None
        assert after.fits is not None
        assert before.fits >= after.fits >= 1
        assert not before.unique or before.support == after.support


# The parts


@pytest.mark.parametrize(("n", "k"), [(6, 0), (6, 1), (7, 3), (6, 6), (9, 4)])
def test_candidates_are_all_sets_once(n: int, k: int) -> None:
    """However the columns are split into lower and upper; and unranking inverts the order."""
    columns = rng_of(0).integers(0, 2**64, size=(n, 2), dtype=np.uint64)
    for t in range(k + 1):
        table = subset_xors(columns, t)
        found = []
        for upper, count in upper_sets(n, k, t):
            lower = unrank(np.arange(count), n, t).tolist()
            for place, members in enumerate(lower):
                found.append((*members, *upper))
                plain = np.bitwise_xor.reduce(columns[members], axis=0)
                assert np.array_equal(table[:, place], plain)
        assert sorted(found) == list(combinations(range(n), k))


def test_columns_are_the_sample_on_its_side(seed: int) -> None:
    """Bit i of a column is example i, and the rest is 0."""
    inputs, labels, _ = draw_parity(70, 3, 100, rng_of(seed))
    columns, target = pack_columns(inputs, labels, 70)

    assert columns.shape == (70, 2)
    assert np.array_equal(unpack_bits(columns)[:, :100].T, unpack_bits(inputs)[:, :70])
    assert np.array_equal(unpack_bits(target), np.pad(labels, (0, 28)))


@pytest.mark.parametrize("n", range(7))
def test_the_walsh_transform_is_hadamard_s_matrix(n: int) -> None:
    """In place, in the natural order."""
    values = rng_of(n).integers(-9, 10, size=2**n).astype(np.int32)
    expected = hadamard(2**n) @ values
    walsh_hadamard(values)

    assert np.array_equal(values, expected)


@pytest.mark.parametrize(("n", "k"), SETS)
def test_the_monomials_kernel(n: int, k: int) -> None:
    """Summed over all sets by brute force, against the inputs' distance from 0."""
    inputs = pack_bits(np.tri(n + 1, n, -1, dtype=np.uint8))  # distances 0 … n
    signs = [1.0 - 2.0 * evaluate_parity(inputs, s) for s in combinations(range(n), k)]

    assert [krawtchouk(n, k, d) for d in range(n + 1)] == np.sum(signs, axis=0).tolist()


def test_random_sets_are_uniform() -> None:
    """χ² over the 20 sets of 3 out of 6: an error rate of 10^−4 at this seed."""
    drawn = random_sets(6, 3, 20_000, rng_of(5))
    _, counts = np.unique(drawn, axis=0, return_counts=True)

    assert len(counts) == 20
    assert ((counts - 1000.0) ** 2 / 1000).sum() < 50.8  # 10^−4 quantile with 19 degrees


def test_draws_are_parities_with_noise(seed: int) -> None:
    """Bits are fair, labels are right but for η of them, within 5 standard deviations."""
    inputs, labels, support = draw_parity(70, 4, 20_000, rng_of(seed), noise=0.2)
    wrong = (evaluate_parity(inputs, support) ^ labels).mean()
    means = unpack_bits(inputs)[:, :70].mean(axis=0)

    assert len(set(support)) == 4
    assert labels.dtype == np.uint8
    assert abs(wrong - 0.2) < 5 * math.sqrt(0.2 * 0.8 / 20_000)
    assert np.abs(means - 0.5).max() < 5 * 0.5 / math.sqrt(20_000)


def test_a_smaller_draw_is_the_beginning_of_a_larger() -> None:
    """With noise as well."""
    small = draw_parity(70, 3, 10, rng_of(1), noise=0.3)
    large = draw_parity(70, 3, 90, rng_of(1), noise=0.3)

    assert np.array_equal(small[0], large[0][:10])
    assert np.array_equal(small[1], large[1][:10])
    assert small[2] == large[2]


@pytest.mark.parametrize("threshold", [0, 1, 2, 3, 7, 8, 9, 63])
def test_first_true_finds_thresholds(threshold: int) -> None:
    """By doubling and bisection, and None beyond the largest."""
    assert first_true(lambda m: m >= threshold, largest=63) == threshold
    assert first_true(lambda m: m >= threshold + 1, largest=threshold) is None
