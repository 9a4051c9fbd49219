"""Estimators of censored values: against brute force, by hand, and in simulation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, kendalltau

from petridish.errors import UserError
from petridish.statistics.estimators import (
    Estimate,
    Mean,
    Median,
    RatioOfMedians,
    Share,
    fewest_for_median,
)
from petridish.statistics.known import (
    Known,
    difference,
    exactly,
    kendall_trend,
    quotient,
    within_budget,
)

INF, NAN = math.inf, math.nan
Ends = tuple[float, float]
numbers = st.integers(0, 6).map(float)
ends = st.tuples(numbers, numbers | st.just(INF)).map(lambda pair: (min(pair), max(pair)))


def known(pairs: list[Ends]) -> Known:
    """Make an array of what is known from its two ends."""
    array = np.array(pairs, np.float64)
    return Known(array[..., 0], array[..., 1])


def possible(pair: Ends) -> list[float]:
    """List numbers between two ends: the ends, and whole numbers between them."""
    low, high = pair
    between = np.arange(low, min(high, low + 8) + 1)
    return [*between[between <= high].tolist(), high]


@given(ends, ends)
def test_a_quotient_holds_every_ratio_that_is_possible(top: Ends, bottom: Ends) -> None:
    """Every number between the ends of one over every number between those of the other."""
    found = quotient(known([top]), known([bottom]))

    ratios = [a / b for a in possible(top) for b in possible(bottom) if b and not INF == a == b]
    assert all(found.low[0] <= ratio <= found.high[0] for ratio in ratios)
    if all(0 < number < INF for number in (*top, *bottom)):
        assert (found.low[0], found.high[0]) == (min(ratios), max(ratios))


@given(ends, ends)
def test_a_difference_holds_every_difference_that_is_possible(first: Ends, second: Ends) -> None:
    """As for the quotient; ∞ − ∞ is anything."""
    found = difference(known([first]), known([second]))

    pairs = [(a, b) for a in possible(first) for b in possible(second) if not INF == a == b]
    assert all(found.low[0] <= a - b <= found.high[0] for a, b in pairs)
    if all(math.isfinite(number) for number in (*first, *second)):
        every = [a - b for a, b in pairs]
        assert (found.low[0], found.high[0]) == (min(every), max(every))


def test_ratios_of_censored_times_by_hand() -> None:
    """30 over one beyond 100 is at most 0.3; of two beyond their budgets nothing is known."""
    top = within_budget([30, INF, INF, 20, NAN], [100] * 5)
    bottom = within_budget([INF, 50, INF, 10, 10], [100] * 5)
    found = quotient(top, bottom)

    assert found.low.tolist()[:4] == [0.0, 2.0, 0.0, 2.0]
    assert found.high.tolist()[:4] == [0.3, INF, INF, 2.0]
    assert not found.there[4]
    assert math.isnan(difference(top, bottom).low[4])
    apart = difference(exactly([INF]), exactly([INF]))
    assert (apart.low[0], apart.high[0]) == (-INF, INF)


@given(st.lists(st.lists(numbers, min_size=4, max_size=4), min_size=2, max_size=5))
def test_the_trend_is_kendalls(rows: list[list[float]]) -> None:
    """SciPy's τ_b without ties among the values, and pairs counted one by one with them."""
    values = np.array(rows)
    found = kendall_trend(exactly(values))

    for seed in range(4):
        column = values[:, seed]
        pairs = list(itertools.combinations(column, 2))
        tau = sum(float(np.sign(b - a)) for a, b in pairs) / len(pairs)
        assert found.low[seed] == found.high[seed] == pytest.approx(tau)
        if len(set(column)) == len(column):
            assert tau == pytest.approx(kendalltau(np.arange(len(column)), column).statistic)


@given(st.lists(ends, min_size=2, max_size=4))
def test_the_trend_holds_every_trend_that_is_possible(column: list[Ends]) -> None:
    """For all finite values that censored ones may have."""
    found = kendall_trend(known(column)[:, None])

    choices = [[n for n in possible(pair) if math.isfinite(n)] for pair in column]
    for values in itertools.product(*choices):
        tau = kendall_trend(exactly(np.array(values)[:, None])).low[0]
        assert found.low[0] - 1e-12 <= tau <= found.high[0] + 1e-12


def test_a_trend_needs_two_conditions() -> None:
    """A seed with one run has none; missing conditions are passed over."""
    found = kendall_trend(exactly([[1.0, 1.0], [NAN, NAN], [NAN, 2.0]]))

    assert math.isnan(found.low[0])
    assert found.low[1] == found.high[1] == 1.0


@given(st.lists(st.sampled_from([(0.0, 0.0), (1.0, 1.0), (0.0, 1.0)]), min_size=1, max_size=9))
def test_a_share_holds_the_shares_that_are_possible(pairs: list[Ends]) -> None:
    """The ends of exact intervals with every unknown value 0, and with every one 1."""
    found = Share().estimate(known([pairs]), 0.9)  # type: ignore[list-item] # one side

    least, most, n = (*(int(sum(end)) for end in zip(*pairs, strict=True)), len(pairs))
    # At its lower end, as many ones or more have the probability of half the risk.
    assert found.low == pytest.approx(beta.ppf(0.05, least, n - least + 1) if least else 0)
    assert found.high == pytest.approx(beta.ppf(0.95, most + 1, n - most) if most < n else 1)
    assert found.value == most / len(pairs)


@pytest.mark.parametrize("seeds", [1, 2, 3, 5, 10])
@pytest.mark.parametrize("truth", [0.2, 0.5, 0.8])
def test_the_share_of_a_few_seeds_keeps_its_coverage(seeds: int, truth: float) -> None:
    """Summed over all outcomes, an interval of 95 % misses the truth in at most 5 % of cases."""
    missed = 0.0
    for solved in range(seeds + 1):
        values = exactly([[1.0] * solved + [0.0] * (seeds - solved)])
        found = Share().estimate(values, 0.95)
        if not found.low <= truth <= found.high:
            missed += math.comb(seeds, solved) * truth**solved * (1 - truth) ** (seeds - solved)
    assert missed <= 0.05


def test_a_mean_of_equal_values_says_nothing() -> None:
    """Two seeds that succeed do not say that every seed does."""
    found = Mean().estimate(exactly([[1.0, 1.0]]), 0.95)
    assert (found.value, found.low, found.high) == (1, -INF, INF)
    assert found.missing == (
        "the 2 values are equal, and Student's interval needs some that differ: Median() takes "
        "them, of zeros and ones Share()"
    )


def test_a_share_counts_zeros_and_ones() -> None:
    """Other values are a mistake."""
    with pytest.raises(UserError) as refusal:
        Share().estimate(exactly([[0.0, 0.3]]), 0.9)
    assert str(refusal.value) == (
        "Share: one of the values is 0.3, and a share counts values of 0 and 1. Give Median() or "
        "Mean(), or another measure."
    )


@given(st.lists(numbers | st.just(INF), min_size=1, max_size=12), st.sampled_from([0.8, 0.95]))
def test_a_median_lies_between_order_statistics(values: list[float], coverage: float) -> None:
    """The rank is the largest whose tail of coin tosses is small enough, counted by brute force."""
    n = len(values)
    found = Median().estimate(exactly([values]), coverage)

    tosses = [bin(word).count("1") for word in range(2**n)]
    ranks = [
        i
        for i in range(1, n // 2 + 1)
        if sum(count < i for count in tosses) / 2**n <= (1 - coverage) / 2
    ]
    ordered = sorted(values)
    if ranks:
        assert (found.low, found.high) == (ordered[max(ranks) - 1], ordered[n - max(ranks)])
        assert found.missing == ""
    else:
        assert (found.low, found.high) == (-INF, INF)
        assert n < fewest_for_median(coverage)
    assert found.value == ordered[(n - 1) // 2]


def test_a_median_of_censored_times_by_hand() -> None:
    """Six of eight beyond their budget of 100: the median is too, and that is all that is known."""
    times = within_budget([[10, 20, *[INF] * 6]], [[100] * 8])

    assert Median().estimate(times, 0.95) == Estimate(INF, 10.0, INF)
    assert Median().estimate(times, 0.7) == Estimate(INF, 100.0, INF)
    assert Median().estimate(exactly([[1.0, 2.0]]), 0.95).missing == (
        "needs 6 seeds for an interval of 0.95 coverage, and has 2"
    )
    assert Median().estimate(exactly([[NAN]]), 0.95).missing == "there are no values"


def test_a_mean_by_hand() -> None:
    """Student's interval; none where a value is infinite, and none of one value."""
    found = Mean().estimate(exactly([[1.0, 2.0, 3.0, NAN]]), 0.95)
    assert found.value == 2.0
    assert found.high - 2.0 == pytest.approx(4.302652729911275 / math.sqrt(3))  # t(2) at 97.5 %
    assert found.low - 2.0 == pytest.approx(-4.302652729911275 / math.sqrt(3))
    assert Mean().estimate(exactly([[1.0, INF]]), 0.95).missing == (
        "1 of 2 values are not known or infinite, of which there is no mean: Median() takes them"
    )
    assert Mean().estimate(exactly([[1.0]]), 0.95).missing == "needs 2 seeds, and has 1"
    assert Mean().estimate(exactly([[NAN]]), 0.95).missing == "there are no values"


@given(
    st.lists(numbers | st.just(INF), min_size=7, max_size=7),
    st.lists(numbers | st.just(INF), min_size=7, max_size=7),
    st.integers(0, 6),
)
def test_a_ratio_of_medians_never_has_a_bound_that_is_no_number(
    top: list[float], bottom: list[float], shift: int
) -> None:
    """Whatever is censored, and however many seeds the sides share."""
    budget = np.full((2, 7 + shift), 7.0)
    values = np.full((2, 7 + shift), NAN)
    values[0, :7], values[1, shift:] = top, bottom
    found = RatioOfMedians().estimate(within_budget(values, budget), 0.9)

    assert not math.isnan(found.low)
    assert not math.isnan(found.high)
    assert 0 <= found.low <= found.value <= found.high
    middles = [sorted(side)[3] for side in (top, bottom)]
    if all(0 < middle < INF for middle in middles):
        assert found.value == pytest.approx(middles[0] / middles[1])


def test_a_ratio_of_censored_medians_by_hand() -> None:
    """A median beyond the budget of 100 over one of 20 is at least 5, and the other way at most."""
    late, soon = [INF] * 8, [20.0] * 8
    budget = np.full((2, 8), 100.0)

    assert RatioOfMedians().estimate(within_budget([late, soon], budget), 0.95) == Estimate(
        INF, 5.0, INF
    )
    assert RatioOfMedians().estimate(within_budget([soon, late], budget), 0.95) == Estimate(
        0.2, 0.0, 0.2
    )
    assert RatioOfMedians().estimate(within_budget([late, late], budget), 0.95) == Estimate(
        INF, 0.0, INF
    )
    few = RatioOfMedians().estimate(exactly([[1.0, 2.0], [1.0, NAN]]), 0.95)
    assert few == Estimate(
        1.0, 0.0, INF, "needs 6 seeds for an interval of 0.95 coverage, and has 1"
    )
    assert RatioOfMedians().estimate(exactly([[1.0], [NAN]]), 0.95).missing == "there are no values"


SEEDS, WORLDS = 21, 400


def misses(estimator: Median | RatioOfMedians, values: Known, truth: float) -> float:
    """Return the share of worlds, on the first axis, whose interval at 90 % misses the truth."""
    found = [estimator.estimate(values[world], 0.9) for world in range(WORLDS)]
    return float(np.mean([not each.low <= truth <= each.high for each in found]))


@pytest.mark.parametrize("budget", [INF, 1.5, 0.8])
def test_intervals_of_medians_keep_their_coverage_whatever_is_censored(
    seed: int, budget: float
) -> None:
    """Times with median 1, of which a third, or more than half, lie beyond the budget.

    At a coverage of 90 % a rate of misses above 15 % would be seen in 400 worlds by chance with
    probability 1e-3 or less.
    """
    rng = np.random.default_rng(seed)
    times = np.exp(rng.standard_normal((WORLDS, 2, SEEDS)))
    seen = within_budget(np.where(times > budget, INF, times), np.full(times.shape, budget))

    assert misses(Median(), seen[:, :1], 1.0) < 0.15
    assert misses(RatioOfMedians(), seen, 1.0) < 0.15


@pytest.mark.parametrize("probability", [0.2, 0.5, 0.9])
def test_shares_and_means_keep_their_coverage(seed: int, probability: float) -> None:
    """As for the medians; the mean of normal numbers, and Wilson's interval of 40 coins."""
    rng = np.random.default_rng(seed)
    coins = (rng.random((WORLDS, 1, 40)) < probability).astype(float)
    normal = rng.standard_normal((WORLDS, 1, 8)) + probability
    wrong = [
        [
            not each.low <= probability <= each.high
            for each in (estimator.estimate(exactly(world), 0.9) for world in worlds)
        ]
        for estimator, worlds in ((Share(), coins), (Mean(), normal))
    ]

    assert np.mean(wrong[0]) < 0.15
    assert np.mean(wrong[1]) < 0.15
