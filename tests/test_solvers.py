"""Classical solvers of sparse parities: answers against brute force, costs against formulas."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations
from math import comb, inf
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.linalg import hadamard

from petridish.naming import UserError
from petridish.seeds import Words, unpack_bits
from petridish.tasks import SparseParity
from petridish.theory.solvers import (
    SOLVERS,
    Answer,
    Solver,
    decode,
    decoder_success,
    draw_parity,
    eliminate,
    elimination_samples,
    find_solver,
    guess,
    guess_success,
    information_limit,
    regress,
    sample_cost,
    search,
    walsh_decode,
)
from petridish.theory.solvers.candidates import lower_size, subset_xors, unrank, upper_sets
from petridish.theory.solvers.costs import first_true
from petridish.theory.solvers.exact import random_sets
from petridish.theory.solvers.noisy import krawtchouk, walsh_transform
from petridish.theory.solvers.sample import Bits, evaluate_parity, pack_bits, pack_columns

ALL = list(SOLVERS.values())
EXACT: list[Callable[..., Answer]] = [search, eliminate]
DECODERS: list[Callable[..., Answer]] = [decode, walsh_decode]
RANKED: list[Callable[..., Answer]] = [*EXACT, *DECODERS, regress]  # no chance in them
SETS = [(n, k) for n in range(1, 7) for k in range(n + 1)]


def rng_of(*seed: int) -> np.random.Generator:
    """Give the test's own generator."""
    return np.random.default_rng(seed)


def run(solver: Solver, inputs: Words, labels: Bits, n: int, k: int) -> Answer:
    """Solve with the solver's defaults."""
    extra = {"rng": rng_of(0)} if solver.random else {}
    return solver.solve(inputs, labels, n=n, k=k, **extra)


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
    """Give samples of an (n, k): parities, other labels, and rows that repeat."""
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


@pytest.mark.parametrize("n", [12, 64, 65, 130])
@pytest.mark.parametrize("m", [64, 65, 150])
@pytest.mark.parametrize("solver", ALL, ids=lambda solver: solver.name)
def test_word_borders_do_not_matter(solver: Solver, n: int, m: int, seed: int) -> None:
    """With far more than enough examples every solver finds S, the last bit among it."""
    if solver.name == "walsh" and n > 20:
        pytest.skip("n beyond the transform")
    if solver.name == "elimination" and m < n - 16:
        pytest.skip("m below elimination's need")
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
    walsh_transform(values)

    assert np.array_equal(values, expected)


@pytest.mark.parametrize(("n", "k"), SETS)
def test_the_monomials_kernel(n: int, k: int) -> None:
    """Summed over all sets by brute force, against the inputs' distance from 0."""
    inputs = pack_bits(np.tri(n + 1, n, -1, dtype=np.uint8))  # distances 0 … n
    signs = [1.0 - 2.0 * evaluate_parity(inputs, s) for s in combinations(range(n), k)]

    assert np.array_equal(krawtchouk(n, k), np.sum(signs, axis=0))


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


# Costs: formulas against measurements


@pytest.mark.parametrize(("n", "k", "m"), [(12, 3, 0), (12, 3, 30), (70, 2, 64), (70, 2, 200)])
@pytest.mark.parametrize("name", ["exhaustive", "decoder", "walsh", "regression"])
def test_operations_follow_their_formula_exactly(name: str, n: int, k: int, m: int) -> None:
    """On noiseless samples; no wrong set passes the first 64 examples of the larger ones."""
    if name == "walsh" and n > 20:
        pytest.skip("n beyond the transform")
    inputs, labels, _ = draw_parity(n, k, m, rng_of(2, n, m))
    solver = SOLVERS[name]

    assert run(solver, inputs, labels, n, k).operations == solver.operations(n, k, m)


def test_operations_by_hand() -> None:
    """C(50, 3) sets, 1225 pairs and 50 columns; the transform's 10 rounds of 1024."""
    assert SOLVERS["exhaustive"].operations(50, 3, 20) == 19_600 + 1225 + 50
    assert SOLVERS["exhaustive"].operations(50, 3, 129) == 19_600 + 1225 + 50 + 2 * 3
    assert SOLVERS["decoder"].operations(50, 3, 65) == 2 * (19_600 + 1225 + 50)
    assert SOLVERS["walsh"].operations(10, 3, 7) == 10 * 1024 + 7
    assert SOLVERS["regression"].operations(50, 3, 10) == 100 + 1000 + 196_000
    assert SOLVERS["guessing"].operations(50, 3, 20, budget=100) == 300
    assert SOLVERS["elimination"].operations(100, 3, 101, max_free=0) == 100 * 49.5 * 2 + 2
    assert SOLVERS["elimination"].operations(50, 3, 40) == 40 * 19 + 2**10


@pytest.mark.parametrize(("n", "m"), [(40, 41), (40, 30), (100, 130)])
def test_elimination_s_operations(n: int, m: int, seed: int) -> None:
    """The mean of 50 samples is within 3 % of the formula, more than 5 standard errors."""
    counted = [
        eliminate(*draw_parity(n, 3, m, rng_of(seed, trial, n))[:2], n=n, k=3).operations
        for trial in range(50)
    ]
    expected = SOLVERS["elimination"].operations(n, 3, m)

    assert np.mean(counted) == pytest.approx(expected, rel=0.03)


def test_guessing_in_vain_spends_its_budget(seed: int) -> None:
    """A guess costs k words, when no guess fits: 1000 guesses out of 4·10^6 on 40 examples."""
    inputs, labels, _ = draw_parity(100, 4, 40, rng_of(seed))
    answer = guess(inputs, labels, n=100, k=4, rng=rng_of(seed, 1), budget=1000)

    assert answer.support is None
    assert answer.operations == SOLVERS["guessing"].operations(100, 4, 40, budget=1000) == 4000


def solved_share(
    name: str, n: int, k: int, m: int, *, noise: float = 0.0, trials: int = 400, **options: Any
) -> float:
    """Measure the success probability at one m, over 400 parities of a fixed seed."""
    cost = sample_cost(
        name, n, k, trials=trials, rng=rng_of(11, n, m), noise=noise, sizes=[m], **options
    )
    return cost.curve[0].solved / trials


# 4 standard deviations of a share of 400: a false alarm in 16,000 if the formula were exact. Sets
# are independent in pairs only, for which the formulas may be wrong by another 0.05.
TOLERANCE = 4 * 0.5 / math.sqrt(400) + 0.05


@pytest.mark.parametrize("m", [6, 8, 9, 12])
def test_exhaustive_search_succeeds_as_predicted(m: int) -> None:
    """N = 190: the number of wrong sets that fit is Poisson."""
    predicted = math.exp(-189 * 2.0**-m)

    assert solved_share("exhaustive", 20, 2, m) == pytest.approx(predicted, abs=TOLERANCE)


@pytest.mark.parametrize(
    ("m", "max_free", "predicted"),
    [(20, 0, 0.289), (21, 0, 0.578), (24, 0, 0.939), (16, 4, 0.939)],
)
def test_elimination_succeeds_as_predicted(m: int, max_free: int, predicted: float) -> None:
    """The rank of random equations in n = 20 unknowns: ∏ (1 − 2^−i) from i = 1, 2 and 5."""
    share = solved_share("elimination", 20, 2, m, max_free=max_free)

    assert share == pytest.approx(predicted, abs=TOLERANCE)


@pytest.mark.parametrize(("m", "noise"), [(7, 0.0), (14, 0.1), (20, 0.1), (40, 0.25), (60, 0.3)])
def test_the_decoder_succeeds_as_predicted(m: int, noise: float) -> None:
    """The success formula at several sample sizes and flip probabilities."""
    predicted = decoder_success(10, 3, m, noise=noise)

    assert solved_share("decoder", 10, 3, m, noise=noise) == pytest.approx(predicted, abs=TOLERANCE)


@pytest.mark.parametrize(("m", "budget"), [(40, 95), (40, 190), (8, 190), (6, 1000), (40, 19)])
def test_guessing_succeeds_as_predicted(m: int, budget: int) -> None:
    """N = 190; a large sample and a small budget give budget / N."""
    predicted = guess_success(20, 2, m, budget=budget)

    assert solved_share("guessing", 20, 2, m, budget=budget) == pytest.approx(
        predicted, abs=TOLERANCE
    )


def test_luck_is_the_budget_over_the_candidates() -> None:
    """The paper's trade of queries for success."""
    assert guess_success(50, 3, inf, budget=196) == pytest.approx(0.01, rel=0.01)
    assert guess_success(50, 3, inf) == pytest.approx(1 - 1 / math.e, rel=1e-3)
    assert guess_success(50, 3, 0, budget=5) == pytest.approx(1 / 19_600)
    assert guess_success(50, 3, 20, budget=0) == 0
    assert SOLVERS["guessing"].samples(50, 3, budget=10_000) == inf


@pytest.mark.parametrize(
    ("name", "n", "k", "noise"),
    [
        ("elimination", 30, 3, 0.0),
        ("exhaustive", 30, 3, 0.0),
        ("guessing", 20, 2, 0.0),
        ("decoder", 30, 3, 0.0),
        ("decoder", 20, 2, 0.2),
        ("walsh", 10, 3, 0.1),
        ("regression", 20, 3, 0.0),
        ("regression", 20, 3, 0.1),
    ],
)
def test_measured_sample_costs_meet_their_formulas(name: str, n: int, k: int, noise: float) -> None:
    """Within one and a half examples, or an eighth; 50 trials place m50 to about half of that."""
    cost = sample_cost(name, n, k, trials=50, rng=rng_of(3), noise=noise)
    expected = SOLVERS[name].samples(n, k, noise=noise)

    assert cost.m50 == pytest.approx(expected, abs=max(1.5, expected / 8))


def test_elimination_is_within_reach_of_the_search_only_with_a_kernel() -> None:
    """Plain elimination takes n + 1 examples; 16 free unknowns save 17; never below the search."""
    assert elimination_samples(50, 3, max_free=0) == 51
    assert elimination_samples(50, 3) == 34
    assert elimination_samples(20, 3) == SOLVERS["exhaustive"].samples(20, 3)
    assert SOLVERS["elimination"].samples(50, 3, noise=0.1) == inf


def test_the_information_limit() -> None:
    """By hand without noise; half an example below the search; Hoeffding's form at strong noise."""
    assert information_limit(50, 3) == pytest.approx(14.2586, abs=1e-4)
    assert SOLVERS["exhaustive"].samples(50, 3) - information_limit(50, 3) == pytest.approx(
        0.529, abs=1e-3
    )
    assert information_limit(4, 2, noise=0.11) == pytest.approx(math.log2(6) / 0.5, rel=1e-3)
    strong = 2 * math.log(19_600) / (1 - 0.98) ** 2
    assert information_limit(50, 3, noise=0.49) == pytest.approx(strong, rel=1e-3)


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.3, 0.45])
def test_the_decoder_s_need_is_of_the_order_of_the_limit(noise: float) -> None:
    """From four fifths of it to one and a bit."""
    ratio = SOLVERS["decoder"].samples(50, 3, noise=noise) / information_limit(50, 3, noise=noise)

    assert 0.8 < ratio < 1.06


def test_regression_loses_the_parity_again_where_it_interpolates() -> None:
    """At m ≈ C(n, k) = 28 and noise 0.1, fewer succeed than at m = 20 and at m = 50.

    The shares are 0.8, 0.6 and 1 with standard deviations of 0.02: a false alarm is below 10^−6.
    """
    before, at, after = (solved_share("regression", 8, 2, m, noise=0.1) for m in (20, 31, 50))
    cured = solved_share("regression", 8, 2, 31, noise=0.1, ridge=28.0)

    assert at < before - 0.08
    assert at < after - 0.2
    assert cured > at + 0.2


def test_basis_pursuit_adds_nothing(seed: int) -> None:
    """The least L1 norm that explains the labels is one atom, once no other column is ±y."""
    from scipy.optimize import linprog

    sets: list[tuple[int, ...]] = list(combinations(range(7), 3))
    for trial in range(20):
        inputs, labels, support = draw_parity(7, 3, 9, rng_of(seed, trial, 9))
        features = np.stack([1.0 - 2.0 * evaluate_parity(inputs, s) for s in sets], axis=1)
        signs = 1.0 - 2.0 * labels
        twins = int((np.abs(features.T @ signs) == len(labels)).sum())
        halves = np.hstack([features, -features])  # w = positive − negative part
        found = linprog(np.ones(2 * len(sets)), A_eq=halves, b_eq=signs)
        weights = found.x[: len(sets)] - found.x[len(sets) :]

        assert found.fun == pytest.approx(1)
        if twins == 1:
            assert weights[sets.index(support)] == pytest.approx(1)


# Measuring


def test_the_curve_holds_every_size_tried() -> None:
    """A grid and the bisection share their trials, and agree where both looked."""
    found = sample_cost("exhaustive", 20, 2, trials=30, rng=rng_of(4))
    assert found.m50 is not None
    grid = sample_cost("exhaustive", 20, 2, trials=30, rng=rng_of(4), sizes=range(found.m50 + 3))

    assert grid.m50 == found.m50
    solved = {point.m: point.solved for point in grid.curve}
    assert all(solved[point.m] == point.solved for point in found.curve if point.m in solved)
    assert list(solved.values()) == sorted(solved.values())  # nested samples: only upwards
    assert grid.at_m50 is not None
    assert grid.at_m50.operations == SOLVERS["exhaustive"].operations(20, 2, found.m50)
    assert all(point.trials == 30 and point.seconds > 0 for point in grid.curve)


def test_a_cost_that_is_never_met() -> None:
    """A budget of a tenth of the sets solves a tenth of the trials, at any m."""
    cost = sample_cost("guessing", 20, 2, trials=40, rng=rng_of(4), budget=19, largest=64)

    assert (cost.m50, cost.at_m50) == (None, None)
    assert [point.m for point in cost.curve] == [0, 1, 2, 4, 8, 16, 32, 64]


def sentence(call: Callable[[], object]) -> str:
    """Give the whole sentence of the mistake that `call` makes."""
    with pytest.raises(UserError) as caught:
        call()
    return str(caught.value)


def test_mistakes_are_explained() -> None:
    """Each says what was wrong, what was given, what to do."""
    inputs, labels, _ = draw_parity(25, 3, 10, rng_of(0))
    large, few, _ = draw_parity(200, 9, 10, rng_of(0))

    assert sentence(lambda: walsh_decode(inputs, labels, n=25, k=3)) == (
        "walsh_decode: n=25 would transform 2^25 numbers, and the limit is n=24. Lower n, or take "
        "decode, which lists only the C(n, k) sets."
    )
    assert sentence(lambda: search(inputs, labels, n=25, k=26)) == (
        "search: k=26 relevant bits were asked for, but n=25 has only 25 bits. Raise n or lower k."
    )
    assert sentence(lambda: search(inputs, labels, n=25, k=-1)) == (
        "search: k=-1. Give a whole number of at least 0."
    )
    assert sentence(lambda: search(large, few, n=200, k=9)) == (
        "search: n=200, k=9 has 1.18e+15 candidates, and max_candidates=1.00e+10 allows fewer. "
        "Raise max_candidates if the time is no matter, or lower n or k."
    )
    assert sentence(lambda: decode(inputs, labels, n=65, k=3)) == (
        "decode: inputs of shape (10, 1) and type uint64, but n=65 bits are packed into words "
        "(m, 2) of type uint64. Draw them by draw_parity or by a task."
    )
    assert sentence(lambda: decode(inputs.astype(np.int64), labels, n=25, k=3)) == (
        "decode: inputs of shape (10, 1) and type int64, but n=25 bits are packed into words "
        "(m, 1) of type uint64. Draw them by draw_parity or by a task."
    )
    assert sentence(lambda: eliminate(inputs, labels[:9], n=25, k=3)) == (
        "eliminate: labels of shape (9,) and type uint8, but the 10 inputs need labels of shape "
        "(10,) and type uint8. Give a bit for each input, 1 for y = −1."
    )
    signs: NDArray[Any] = 1.0 - 2.0 * labels
    assert sentence(lambda: regress(inputs, signs, n=25, k=3)) == (
        "regress: labels of shape (10,) and type float64, but the 10 inputs need labels of shape "
        "(10,) and type uint8. Give a bit for each input, 1 for y = −1."
    )
    assert sentence(lambda: search(inputs, labels + np.uint8(4), n=25, k=3)) == (
        f"search: labels up to {labels.max() + 4}. Give a bit for each input, 1 for y = −1."
    )
    assert sentence(lambda: search(inputs | np.uint64(1 << 30), labels, n=25, k=3)) == (
        "search: an input has bits beyond its first n=25. Clear them, or raise n."
    )
    assert sentence(lambda: eliminate(inputs, labels, n=25, k=3, max_free=30)) == (
        "eliminate: max_free=30 would list 2^30 sets. Give at most 24."
    )
    assert sentence(lambda: guess(inputs, labels, n=25, k=3, rng=rng_of(0), budget=-1)) == (
        "guess: budget=-1. Give a whole number of at least 0."
    )
    assert sentence(lambda: regress(inputs, labels, n=25, k=3, ridge=-1.0)) == (
        "regress: ridge=-1.0. Give a finite number of at least 0."
    )
    many = np.zeros((5000, 1), np.uint64), np.zeros(5000, np.uint8)
    assert sentence(lambda: regress(*many, n=25, k=3)) == (
        "regress: m=5000 examples make a kernel of m² numbers, and the limit is m=4096. "
        "Give fewer examples, or take decode."
    )
    assert sentence(lambda: draw_parity(25, 3, 10, rng_of(0), noise=0.5)) == (
        "draw_parity: noise=0.5. Give a flip probability from 0 to below 0.5."
    )


def test_mistakes_in_measuring_are_explained() -> None:
    """Unknown solvers, and noise where there may be none."""
    assert sentence(lambda: find_solver("eliminaton")) == (
        "There is no solver called 'eliminaton'. Did you mean elimination?"
    )
    assert sentence(
        lambda: sample_cost("exhaustive", 20, 2, trials=5, rng=rng_of(0), noise=0.1)
    ) == (
        "sample_cost: noise=0.1, but exhaustive needs labels without noise. Give noise=0, or take "
        "one of decoder, walsh, regression."
    )
    assert sentence(lambda: sample_cost("exhaustive", 20, 2, trials=0, rng=rng_of(0))) == (
        "sample_cost: trials=0. Give a whole number of at least 1."
    )
