"""What solvers cost: formulas against measurements."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations
from math import inf
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from petridish.errors import UserError
from petridish.theory.pareto.solvers import (
    SOLVERS,
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
from petridish.theory.pareto.solvers.sample import evaluate_parity
from tests.solver_samples import rng_of, run

# Costs: formulas against measurements


SMALL, LARGE = [(12, 3, 0), (12, 3, 30)], [(70, 2, 64), (70, 2, 200)]  # walsh takes up to 20 bits


@pytest.mark.parametrize(
    ("name", "n", "k", "m"),
    [
        *((name, *size) for name in ("exhaustive", "decoder", "regression") for size in LARGE),
        *(
            (name, *size)
            for name in ("exhaustive", "decoder", "walsh", "regression")
            for size in SMALL
        ),
    ],
)
def test_operations_follow_their_formula_exactly(name: str, n: int, k: int, m: int) -> None:
    """On noiseless samples; no wrong set passes the first 64 examples of the larger ones."""
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
    """Return the whole sentence of the mistake that `call` makes."""
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
