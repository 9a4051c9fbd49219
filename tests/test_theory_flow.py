"""Disjoint PolyNets: the flow, its error, and the appendix's bounds, each by another route."""

from __future__ import annotations

import itertools
import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from petridish.errors import UserError
from petridish.theory.closed_form import products_of_others
from petridish.theory.hidden.polynet_bounds import (
    Version,
    adaptive_path,
    adaptive_rates,
    adaptive_sgd,
    claim_b12,
    lemma_b8,
    lemma_b9,
    plateau_bound,
    plateau_constant,
    plateau_limit,
    theorem58_steps,
)
from petridish.theory.hidden.polynet_flow import (
    Flow,
    SignSum,
    all_ones_weight,
    integrate_flow,
    polynet_error,
    population_descent,
    start_weights,
)

Floats = NDArray[np.float64]


def error_of(weights: Floats) -> float:
    """Return the error of a network by the formula."""
    return polynet_error(weights[:, 0], [SignSum(row[1:]) for row in weights])


def enumerated_error(weights: Floats) -> float:
    """Count the inputs on which the output has not the parity's sign."""
    k, block = weights.shape
    x = np.array(list(product((1, -1), repeat=k * block))).reshape(-1, k, block)
    output = np.prod((weights * x).sum(axis=2), axis=1)
    return float(np.mean(~(output * np.prod(x[:, :, 0], axis=1) > 0)))


# The error


@given(st.integers(1, 3), st.integers(1, 4), st.integers(0, 2**32))
def test_the_error_is_that_of_all_inputs(k: int, block: int, seed: int) -> None:
    """Exactly, ties and negative products included: weights ±1 and ±2 make many of them."""
    rng = np.random.default_rng(seed)
    whole = rng.choice([-2.0, -1.0, 1.0, 2.0], size=(k, block))
    real = rng.standard_normal((k, block))

    for weights in (whole, real, np.ones((k, block))):
        assert error_of(weights) == pytest.approx(enumerated_error(weights), abs=1e-12)


def test_the_printed_sum_counts_ties_twice() -> None:
    """[HP, B.11] adds P[an odd number is wrong] and P[output 0], but both can be.

    With two blocks of (1, 2, 1) a factor is 0 with probability ¼ and wrong with ¼.
    """
    weights = np.array([[1.0, 2.0, 1.0], [1.0, 2.0, 1.0]])
    right, wrong, tie = SignSum(weights[0, 1:]).split(1.0)
    printed = (1 - (1 - 2 * wrong) ** 2) / 2 + 1 - (1 - tie) ** 2

    assert (right, wrong, tie) == (0.5, 0.25, 0.25)
    assert error_of(weights) == enumerated_error(weights) == 1 - (9 / 16 + 1 / 16) / 2
    assert printed > error_of(weights) + 0.1


def test_a_sum_of_signs_by_three_routes() -> None:
    """Equal weights are binomial, few are listed, many are summed as a series; they agree."""
    rng = np.random.default_rng(0)
    weights = rng.standard_normal(19)
    listed = np.zeros(1)
    for weight in weights:
        listed = np.concatenate([listed + weight, listed - weight])
    series = SignSum(weights)

    for value in np.linspace(-9, 9, 37):
        assert series.split(value)[0] == pytest.approx(np.mean(value + listed > 0), abs=1e-4)
    ones, nearly = SignSum(np.ones(12)), SignSum([*np.ones(11), 1 + 1e-9])
    for value in (-12.5, -3.0 + 0.5, 0.5, 1.5, 11.5, 12.5):
        assert ones.split(value) == pytest.approx(nearly.split(value), abs=1e-12)
    assert ones.split(2.0)[2] == pytest.approx(792 / 4096)  # seven of twelve are −1


def test_many_weights_are_nearly_gaussian() -> None:
    """500 weights in general position: within 1e-3 of the normal distribution."""
    weights = np.random.default_rng(1).standard_normal(500)
    rest = SignSum(weights)

    for deviations in (-3.0, -1.0, 0.0, 0.5, 2.0):
        normal = (1 + math.erf(deviations / math.sqrt(2))) / 2
        assert rest.split(deviations * rest.deviation)[0] == pytest.approx(normal, abs=1e-3)
    assert rest.split(11 * rest.deviation) == (1.0, 0.0, 0.0)


def test_a_lattice_is_refused() -> None:
    """Many whole weights of several sizes: the series would smooth jumps away."""
    with pytest.raises(UserError) as caught:
        SignSum([1.0, 2.0] * 10)
    assert str(caught.value) == (
        "SignSum: 20 weights that lie on a lattice. Give weights of one modulus, at most 18 "
        "weights, or weights in general position."
    )


# The flow


@pytest.mark.parametrize("k", [2, 3, 4, 5])
def test_the_clock_agrees_with_the_differential_equation(k: int) -> None:
    """Eight Gaussian starts, products of both signs: the exact flow is the solver's to 1e-9."""
    rng = np.random.default_rng(k)
    for _ in range(8):
        weights = rng.standard_normal((k, 3))
        flow = Flow(weights)
        until = 0.9 * min(flow.blow_up, 3.0)
        path = integrate_flow(weights[:, 0], until)
        exact = flow.relevant(flow.at(until))

        assert not path.ended
        assert np.allclose(path.relevant[-1], exact, rtol=1e-9, atol=1e-9)
        assert flow.time(flow.at(until)) == pytest.approx(until, rel=1e-9)


@pytest.mark.parametrize("k", [2, 3, 4, 7])
def test_the_all_ones_start_in_closed_form(k: int) -> None:
    """The weight is (1 − (k − 2) t)^{−1/(k−2)}, or e^t: solver and clock find it."""
    flow = Flow(start_weights("ones", k, 5))
    for time in (0.0, 0.05, 0.8 / max(k - 2, 1)):
        found = integrate_flow(np.ones(k), time).relevant[-1] if time else np.ones(k)
        assert np.allclose(found, all_ones_weight(k, time), rtol=1e-8)
        assert flow.at(time) == pytest.approx(all_ones_weight(k, time), rel=1e-9)
    assert flow.blow_up == (math.inf if k == 2 else pytest.approx(1 / (k - 2)))
    assert flow.time_to(0.0) == pytest.approx(math.log(4) if k == 2 else flow.time(4.0))


def test_the_solver_ends_at_the_blow_up() -> None:
    """For k = 3 it is at time 1; asked for 2, the solver stops at the largest weight."""
    path = integrate_flow(np.ones(3), 2.0, largest=1e4)

    assert path.ended
    assert path.times[-1] == pytest.approx(1 - 1e-4, abs=1e-7)


@given(st.integers(2, 5), st.integers(0, 2**32))
def test_differences_of_squares_are_conserved(k: int, seed: int) -> None:
    """v_i² − v_j² stays what it was, on the way down through 0 and up again."""
    weights = np.random.default_rng(seed).standard_normal((k, 2))
    flow = Flow(weights)
    began = weights[:, 0] ** 2
    for position in flow.position + np.array([0.0, 0.3, 1.0, 5.0]):
        now = flow.relevant(float(position))
        assert np.allclose(now**2 - now[0] ** 2, began - began[0], atol=1e-9)
        assert np.sign(np.prod(now)) in (np.sign(position), 0)


def test_a_negative_product_learns_later_or_never() -> None:
    """From Gaussian weights the smallest one turns its sign; from ±1 all shrink for ever."""
    rng = np.random.default_rng(3)
    weights = np.abs(rng.standard_normal((3, 8)))
    turned = weights.copy()
    turned[0, 0] *= -1
    never = Flow(np.array([[-1.0, 1, 1], [1, 1, 1], [1, 1, 1]]))

    assert Flow(weights).time_to(0.49) < Flow(turned).time_to(0.49) < math.inf
    assert Flow(turned).error(Flow(turned).position) > 0.5
    assert not never.learns
    assert never.time_to(0.49) == math.inf
    assert math.isnan(never.remainder())
    # r' = |r|^2 from −1: r = −1 / (1 + t).
    assert never.at(3.0) == pytest.approx(-0.25)
    assert np.allclose(never.relevant(-0.25), [-0.25, 0.25, 0.25])


def test_times_to_an_error_by_hand() -> None:
    """With k = 3, n' = 3, all ones: the other two sum to −2, 0, 0, 2.

    A factor is wrong with ¼ until v = 2, so that the error is ½(1 − 1/8) = 7/16, and then 0:
    T(0.4) = T(0) = 1 − ½, and T(0.45) = 0.
    """
    flow = Flow(start_weights("ones", 3, 3))

    assert flow.error(1.5) == pytest.approx(7 / 16)
    assert flow.error(2.0) > 7 / 16  # a moment of ties
    assert flow.error(2.1) == 0
    assert flow.time_to(0.0) == flow.time_to(0.4) == pytest.approx(0.5)
    assert flow.time_to(0.45) == 0
    assert (flow.remainder(0.45), flow.remainder(0.4)) == (1, 0)


@pytest.mark.parametrize("kind", ["ones", "signs", "gaussian"])
def test_the_error_reaches_what_was_asked_for(kind: str) -> None:
    """Just before T(ε) the error is above ε, just after at most ε; T falls with ε."""
    rng = np.random.default_rng(5)
    weights = start_weights(kind, 3, 14, rng)  # type: ignore[arg-type] # parametrized
    weights[:, 0] = np.abs(weights[:, 0])
    flow = Flow(weights)
    for error in (0.3, 0.1, 0.01, 0.0):
        at = flow.reaches(error)
        assert flow.error(at * (1 + 1e-9)) <= error < flow.error(at * (1 - 1e-9))
    times = [flow.time_to(error) for error in (0.0, 0.1, 0.3)]
    assert times == sorted(times, reverse=True)
    assert times[0] < flow.blow_up
    drawn, errors = flow.curve(points=50)
    assert np.all(np.diff(drawn) > 0)
    assert errors[-1] == 0


def test_signs_are_as_good_as_ones() -> None:
    """With a positive product, ±1 starts have the all-ones start's times."""
    weights = start_weights("signs", 4, 12, np.random.default_rng(0))
    weights[0, 0] *= np.prod(weights[:, 0])
    ones = Flow(start_weights("ones", 4, 12))

    assert Flow(weights).time_to(0.3) == pytest.approx(ones.time_to(0.3))
    assert Flow(weights).remainder(0.3) == pytest.approx(ones.remainder(0.3))


def test_descent_follows_the_flow() -> None:
    """With small steps population descent is near the flow, and overflows without a warning."""
    weights = np.random.default_rng(2).standard_normal((3, 4))
    flow = Flow(weights)
    time = 0.8 * flow.blow_up
    path = population_descent(weights, time / 4_000, 4_000)

    assert path.shape == (4_001, 3)
    assert np.allclose(path[-1], flow.relevant(flow.at(time)), rtol=0.02, atol=0.02)
    gone = population_descent(np.ones((3, 4)), 0.5, 40)[-1]
    assert np.all(np.isinf(gone))
    assert polynet_error(gone, [SignSum(np.ones(3))] * 3) == 0


def test_descent_is_the_population_gradient() -> None:
    """One step by hand: each relevant weight moves by the product of the others."""
    weights = np.array([[2.0, 1.0], [3.0, 1.0], [-5.0, 1.0]])

    assert population_descent(weights, 0.1, 1)[1] == pytest.approx([0.5, 2.0, -4.4])
    assert products_of_others(np.array([0.0, 2.0, 3.0])).tolist() == [6, 0, 0]


# Bounds


@given(st.integers(3, 6), st.floats(0, 4), st.integers(0, 2**32))
def test_lemma_b8_holds(k: int, more: float, seed: int) -> None:
    """Both bounds on when a weight passes b, for random starts with a positive product."""
    start = np.abs(np.random.default_rng(seed).standard_normal(k)) + 0.01
    flow = Flow(np.column_stack([start, np.ones(k)]))
    for i in range(k):
        b = start[i] + more
        earliest, left = lemma_b8(start, i, b)
        position = math.sqrt(b**2 - start[i] ** 2 + start.min() ** 2)
        assert flow.time(position) >= earliest * (1 - 1e-9)
        assert flow.time(math.inf, since=position) <= left * (1 + 1e-9)


def test_lemma_b9_holds_repaired_and_fails_as_printed() -> None:
    """Three blocks of ones: both printed sides fail for some weight, the proved ones for none."""
    failed = {"low": 0, "high": 0}
    for others in (4, 9, 30, 101):
        for v in np.linspace(0.05, others + 0.5, 120):
            weights = np.ones((3, others + 1))
            weights[:, 0] = v
            error = error_of(weights)
            low, high = lemma_b9(weights)
            assert low - 1e-12 <= error <= high + 1e-12
            low, high = lemma_b9(weights, version="printed")
            failed["low"] += error < low - 1e-6
            failed["high"] += error > high + 1e-6

    assert min(failed.values()) > 50


@pytest.mark.parametrize("constant", [0.56, 10.0, 100.0])
def test_no_constant_makes_the_printed_lower_bound_hold(constant: float) -> None:
    """An even number of ones against v near 0: P[Σ = 0] is above c n'^(−3/2) for large n'."""
    block = 2 * math.ceil(constant) + 3
    weights = np.ones((2, block))
    weights[:, 0] = 1e-6
    norm = math.sqrt(block - 1)
    inside = math.erf(1e-6 / (norm * math.sqrt(2))) + constant / norm**3

    assert error_of(weights) < 0.5 - 0.5 * inside**2
    assert error_of(weights) >= lemma_b9(weights)[0]


def test_hoeffding_lacks_a_half_by_hand() -> None:
    """Ten ones against v just below 10: one sum in 1024 errs, printed is 3 · 2 e^−10."""
    weights = np.ones((3, 11))
    weights[:, 0] = 9.99

    assert error_of(weights) == pytest.approx(3 / 1024, rel=0.01)
    assert lemma_b9(weights, version="printed")[1] == pytest.approx(6 * math.exp(-9.98), rel=0.01)


@pytest.mark.parametrize(("k", "last"), [(3, 132), (4, 103), (5, 67)])
def test_the_plateau_bound(k: int, last: int) -> None:
    """The proved one holds for all n' from 3 to 140; the printed one fails, last at `last`.

    Both with γ = 0.01, and the printed one with c = 0.56.
    """
    shares = {n: 1 - Flow(start_weights("ones", k, n)).remainder() for n in range(3, 141)}

    assert all(share >= plateau_bound(k, n) - 1e-12 for n, share in shares.items())
    fails = [n for n, s in shares.items() if s < plateau_bound(k, n, version="printed") - 1e-12]
    assert max(fails) == last


@pytest.mark.parametrize("k", [3, 4, 5])
def test_the_constant_stays_bounded(k: int) -> None:
    """(1 − T(.49)/T(0)) n'^{k/2−1} tends to its limit, and to the proved bound's from below."""
    for block, within in ((1_000, 0.2), (10_000, 0.07), (100_000, 0.02)):
        constant = plateau_constant(k, block)
        bound = (1 - plateau_bound(k, block)) * block ** (k / 2 - 1)
        assert constant == pytest.approx(plateau_limit(k), rel=within)
        assert constant <= bound
    # The limit of the proved bound is a little above: it takes the density at 0 for all of it.
    bound = (1 - plateau_bound(k, 10**9)) * (10**9) ** (k / 2 - 1)
    assert 1 < bound / plateau_limit(k) < 1.25
    assert bound == pytest.approx({3: 2.94, 4: 4.50, 5: 5.31}[k], abs=0.005)


def test_two_blocks_have_no_such_plateau() -> None:
    """For k = 2 the time is a logarithm: T(.49)/T(0) tends to ½."""
    share = 1 - Flow(start_weights("ones", 2, 10**6)).remainder()

    assert share == pytest.approx(0.5, abs=0.15)


def test_gaussian_starts_leave_the_plateau_late_too() -> None:
    """For k = 4 the median of 1 − T(.49)/T(0) at n' = 200 is far below that at n' = 25."""
    rng = np.random.default_rng(0)
    medians = []
    for block in (25, 200):
        left = []
        for _ in range(15):
            weights = start_weights("gaussian", 4, block, rng)
            weights[:, 0] = np.abs(weights[:, 0])
            left.append(Flow(weights).remainder())
        medians.append(np.median(left))

    assert 4 < medians[0] / medians[1] < 16  # 8 by the theorem


# SGD


def test_the_steps_of_theorem_58() -> None:
    """T solves its own equation, with 6 log(2k/ε) in print and 12 log(k/ε) proved."""
    for version, factor in (
        ("printed", 6 * math.log(6 / 0.1)),
        ("proved", 12 * math.log(3 / 0.1)),
    ):
        steps = theorem58_steps(4, 3, epsilon=0.1, delta=0.01, version=version)  # type: ignore[arg-type] # two literals
        needed = factor * math.log(24 * steps / 0.01) * 10**5
        assert steps == pytest.approx(needed, rel=1e-6)


@pytest.mark.parametrize(("block", "k"), [(2, 2), (4, 3), (10, 2), (3, 5)])
def test_the_proved_steps_are_what_the_proof_needs(block: int, k: int) -> None:
    """After them the claims' worst weights, 3/2 and ½(1 + (3n' − 2)^(1−k) √(T/2L)), err by ≤ ε."""
    epsilon, delta = 0.1, 0.05
    steps = theorem58_steps(block, k, epsilon=epsilon, delta=delta)
    logarithm = math.log(2 * k * block * steps / delta)
    weights = np.full((k, block), 1.5)
    weights[:, 0] = (1 + (3 * block - 2) ** (1 - k) * math.sqrt(steps / (2 * logarithm))) / 2

    assert lemma_b9(weights)[1] <= epsilon
    assert steps > theorem58_steps(block, k, epsilon=epsilon, delta=delta, version="printed")


@pytest.mark.parametrize(("block", "k"), [(3, 2), (2, 3)])
def test_the_noise_of_a_step_has_the_range_that_azuma_needs(block: int, k: int) -> None:
    """η(g − ĝ) has the mean 0 and at most the range 1/√(2TL): then 2 exp(−2a²/Σc²) is δ/nT.

    The form for |Δ| ≤ c, with c the same 1/√(2TL), would give 2 (2nT/δ)^(−1/4): too little, but
    nothing asks for it.
    """
    steps, delta = 10_000, 0.1
    n = k * block
    weights = np.random.default_rng(0).choice([-1.0, 1.0], size=(k, block)) * 1.3
    rates = adaptive_rates(weights, steps, delta=delta)
    x = (1 - 2.0 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)).reshape(-1, k, block)
    others = products_of_others((weights * x).sum(axis=-1))
    sampled = -(x[:, :, 0].prod(axis=1)[:, None] * others)[..., None] * x  # (input, k, n')
    noise = rates[:, None] * (sampled.mean(axis=0) - sampled)
    population = np.zeros((k, block))
    population[:, 0] = -products_of_others(weights[:, 0])
    length = 1 / math.sqrt(2 * steps * math.log(2 * n * steps / delta))

    assert np.allclose(sampled.mean(axis=0), population)
    assert np.ptp(noise, axis=0)[:, 1:] == pytest.approx(length, rel=1e-9)
    assert (np.ptp(noise, axis=0)[:, 0] < length).all()  # a relevant bit meets itself in y
    assert 2 * math.exp(-2 * 0.5**2 / (steps * length**2)) == pytest.approx(delta / (n * steps))
    by_size = 2 * math.exp(-(0.5**2) / (2 * steps * length**2))
    assert by_size == pytest.approx(2 * (2 * n * steps / delta) ** -0.25)


def test_a_step_has_the_theorem_s_rates() -> None:
    """One step is the sample's gradient times `adaptive_rates`, for k = 2, 3 and 4 blocks."""
    for k in (2, 3, 4):
        weights = np.random.default_rng(k).normal(size=(5, k, 3))
        x = 1.0 - 2.0 * np.random.default_rng(7).integers(0, 2, size=(1, 5, k, 3))[0]
        parts = (weights * x).sum(axis=-1)
        moved = np.array(weights)
        rates = adaptive_rates(weights, 1, delta=0.1)
        for run, i in itertools.product(range(5), range(k)):
            others = np.prod(np.delete(parts[run], i)) * np.prod(x[run, :, 0])
            moved[run, i] += rates[run, i] * others * x[run, i]

        ended = adaptive_sgd(weights, 1, delta=0.1, rng=np.random.default_rng(7))
        assert np.allclose(ended, moved, rtol=1e-12)


def test_claim_b12_holds_and_its_printed_form_is_ahead_of_the_proof() -> None:
    """Every thousand steps of 40 runs at n' = 3, k = 2; printed and proved cross before T."""
    rng = np.random.default_rng(3)
    weights = rng.choice([-1.0, 1.0], size=(40, 2, 3))
    weights[:, 0, 0] = weights[:, 1, 0]
    steps = 20_000
    for taken, moved in adaptive_path(weights, steps, delta=0.1, rng=rng):
        grown = np.sign(weights[:, :, 0]) * moved[:, :, 0]
        printed = claim_b12(3, 2, taken, steps, delta=0.1, version="printed")
        proved = claim_b12(3, 2, taken, steps, delta=0.1)
        assert grown.min() >= max(printed, proved)

    assert claim_b12(3, 2, 0, steps, delta=0.1) == 0.5
    log = math.log(2 * 6 * steps / 0.1)
    assert proved == pytest.approx(0.5 + math.sqrt(steps / log) / (7 * 2 * math.sqrt(2)))
    early = [claim_b12(3, 2, 100, steps, delta=0.1, version=v) for v in ("proved", "printed")]
    assert early[0] < early[1]
    assert proved > printed


def test_adaptive_sgd_learns_the_smallest_case() -> None:
    """With n' = k = 2, ε = δ = 0.3 all of 30 starts with a positive product end below ε.

    Irrelevant weights stay within ½ of their start, as the proof says of all but a share δ of runs.
    """
    rng = np.random.default_rng(0)
    weights = rng.choice([-1.0, 1.0], size=(30, 2, 2))
    weights[:, 0, 0] = weights[:, 1, 0]
    versions: tuple[Version, ...] = ("printed", "proved")
    for version in versions:
        steps = theorem58_steps(2, 2, epsilon=0.3, delta=0.3, version=version)
        ended = adaptive_sgd(weights, steps, delta=0.3, rng=rng)

        assert steps < 25_000
        assert max(error_of(run) for run in ended) <= 0.3
        assert np.abs(ended - weights)[:, :, 1].max() <= 0.5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: Flow(np.ones(3)),
            "Flow: weights of shape (3,). Give k ≥ 2 rows of n' weights, the relevant one first "
            "and not 0.",
        ),
        (
            lambda: Flow(np.ones((3, 4))).time_to(0.5),
            "Flow: error=0.5. Give an error from 0 to below 0.5.",
        ),
        (
            lambda: Flow(np.ones((3, 4))).at(1.0),
            "Flow: time=1.0. Give a time from 0 to below 1.",
        ),
        (
            lambda: start_weights("signs", 3, 4),
            "start_weights: the start 'signs' is random. Give rng.",
        ),
    ],
)
def test_what_cannot_be_is_refused(call: object, message: str) -> None:
    """A sentence says what was given and what to give."""
    with pytest.raises(UserError) as caught:
        call()  # type: ignore[operator] # a lambda
    assert str(caught.value) == message
