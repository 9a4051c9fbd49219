"""From columns to inputs: scales, quantiles, gaps; rows as a set."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.preprocessing import StandardScaler

from petridish.errors import UserError
from petridish.estimator.features import LARGEST, Columns, Preprocessing, Quantiles, Scale
from petridish.estimator.rows import merge_rows, n_rows_meant

Floats = NDArray[np.float64]
SEEDS = st.integers(0, 2**32 - 1)


def table(seed: int, rows: int = 40, columns: int = 5) -> tuple[Floats, Floats]:
    """Draw a table of unequal scales, some of it with ties, and weights."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, columns)) * 10.0 ** rng.integers(-6, 6, columns)
    x[:, 0] = rng.integers(0, 3, rows)
    x[:2, 0] = 0, 1  # it varies
    return x, rng.integers(1, 5, rows).astype(np.float64)


def with_gaps(seed: int) -> tuple[Floats, Floats]:
    """Draw a table some of whose values are missing, with a column that never is."""
    x, weight = table(seed)
    rng = np.random.default_rng(seed + 1)
    x[:, 1:][rng.random((len(x), x.shape[1] - 1)) < 0.2] = np.nan
    x[0, 1], x[1:3, 1] = np.nan, (0.0, 1.0)
    return x, weight


@given(SEEDS)
def test_standardised_columns_are_scikit_learns(seed: int) -> None:
    """Weights and gaps included, mean and deviation are those of `StandardScaler`."""
    x, weight = with_gaps(seed)
    columns = Columns.fit(x, weight)
    expected = StandardScaler().fit(x, sample_weight=weight).transform(x)

    assert np.array_equal(columns.used, np.arange(5))
    np.testing.assert_allclose(
        columns.inputs(x)[:, :5], np.nan_to_num(expected), rtol=1e-5, atol=1e-6
    )


@given(SEEDS, st.sampled_from(["both", "quantile", "standard", "none"]))
def test_a_weight_is_a_number_of_copies(seed: int, preprocessing: Preprocessing) -> None:
    """Columns learned from weighted rows are those of rows repeated that often."""
    x, weight = with_gaps(seed)
    copies = x.repeat(weight.astype(int), axis=0)
    weighted = Columns.fit(x, weight, preprocessing).inputs(x)
    repeated = Columns.fit(copies, np.ones(len(copies)), preprocessing).inputs(x)

    np.testing.assert_allclose(weighted, repeated, rtol=1e-5, atol=1e-6)


@given(SEEDS, st.integers(-900, 900), st.sampled_from(["both", "quantile", "standard"]))
def test_units_do_not_matter(seed: int, power: int, preprocessing: Preprocessing) -> None:
    """Columns times 2^k give the same inputs bit for bit, far outside float32's range, too."""
    x, weight = with_gaps(seed)
    far = np.ldexp(x, power)
    near = Columns.fit(x, weight, preprocessing).inputs(x)

    assert np.array_equal(Columns.fit(far, weight, preprocessing).inputs(far), near)


@given(SEEDS)
def test_a_scale_goes_back_where_it_came_from(seed: int) -> None:
    """Backward undoes forward."""
    x, weight = table(seed)
    scale = Scale.fit(x, weight)

    np.testing.assert_allclose(scale.backward(scale.forward(x)), x, rtol=1e-9, atol=1e-9)


def test_a_case_by_hand() -> None:
    """0, 0, 3 with weights 1, 1, 1 has mean 1 and deviation √2."""
    x = np.array([[0.0], [0.0], [3.0]])
    inputs = Columns.fit(x, np.ones(3)).inputs(np.array([[1.0], [3.0], [np.nan]]))

    np.testing.assert_allclose(inputs[:, 0], [0.0, np.sqrt(2), 0.0], atol=1e-7)


def test_quantiles_are_mid_ranks() -> None:
    """Of 1, 1, 2, 5: half the share of 1 below, and so on; between them a straight line."""
    quantiles = Quantiles.fit(np.array([1.0, 5.0, np.nan, 1.0, 2.0]), np.ones(5))
    ranks = norm.ppf([0.25, 0.625, 0.875])

    np.testing.assert_allclose(quantiles.forward(np.array([1.0, 2.0, 5.0])), ranks)
    np.testing.assert_allclose(quantiles.forward(np.array([3.5])), [ranks[1:].mean()])
    np.testing.assert_allclose(quantiles.forward(np.array([-9.0, 9.0])), ranks[[0, 2]])


def test_many_values_share_a_few_knots() -> None:
    """The map stays close to the exact one, in the tails, too, and keeps both ends."""
    values = np.random.default_rng(0).exponential(size=20_000)
    quantiles = Quantiles.fit(values, np.ones(20_000))
    exact = norm.ppf((values.argsort().argsort() + 0.5) / 20_000)

    assert len(quantiles.values) <= 256
    assert quantiles.values[0] == values.min()
    assert quantiles.values[-1] == values.max()
    assert np.abs(quantiles.forward(values) - exact).max() < 0.03


@given(SEEDS)
def test_quantile_inputs_are_normal_quantiles_of_mid_ranks(seed: int) -> None:
    """Column by column, counted by brute force; weights included."""
    x, weight = table(seed)
    inputs = Columns.fit(x, weight, "quantile").inputs(x)

    for before, after in zip(x.T, inputs.T, strict=True):
        ranks = [weight @ ((before < v) + 0.5 * (before == v)) / weight.sum() for v in before]
        np.testing.assert_allclose(after, norm.ppf(ranks), rtol=1e-5, atol=1e-6)


def test_gaps_become_the_mean_and_a_mark() -> None:
    """One mark for each column with gaps in the fit; later gaps elsewhere are only the mean."""
    nan = np.nan
    x = np.array([[1.0, nan, 5.0, nan], [2.0, 7.0, 6.0, nan], [3.0, nan, 9.0, nan]])
    columns = Columns.fit(x, np.ones(3))
    new = np.array([[nan, nan, nan, nan], [2.0, 7.0, 9.0, 3.0]])

    assert columns.used.tolist() == [0, 2]  # column 1 has one value, column 3 none
    assert columns.marked.tolist() == [1]
    assert columns.source.tolist() == [0, 2, 1]
    assert columns.inputs(new)[0].tolist() == [0.0, 0.0, 1.0]
    assert columns.inputs(new)[1, 2] == 0.0


def test_columns_that_do_not_vary_are_left_out() -> None:
    """Whatever their value; a table of nothing else gives one input, 0."""
    x = np.tile([0.0, 0.1, 1e300, -7.0], (9, 1))
    columns = Columns.fit(x, np.ones(9))

    assert len(columns.used) == 0
    assert columns.n_inputs == 1
    assert columns.inputs(2 * x).tolist() == [[0.0]] * 9


def test_neighbours_at_a_great_distance_are_told_apart() -> None:
    """1e16 and 1e16 + 2, the next number, become −1 and +1."""
    x = np.array([[1e16], [1e16 + 2]] * 5)

    np.testing.assert_allclose(Columns.fit(x, np.ones(10)).inputs(x)[:2, 0], [-1, 1])


@pytest.mark.parametrize("preprocessing", ["both", "quantile", "standard", "none"])
def test_the_largest_numbers_stay_finite(preprocessing: Preprocessing) -> None:
    """Also where they come after the fit: what lies far outside is cut."""
    largest = np.finfo(np.float64).max
    x = np.array([[1.0, -largest], [2.0, largest], [4.0, 0.0]])
    inputs = Columns.fit(x, np.ones(3), preprocessing).inputs(
        np.array([[largest, largest], [-largest, -largest]])
    )

    assert np.isfinite(inputs).all()
    assert np.abs(inputs).max() <= LARGEST
    assert (inputs[0] > inputs[1]).all()


def test_an_unknown_preprocessing_is_refused() -> None:
    """The message names what there is."""
    with pytest.raises(UserError) as error:
        Columns.fit(np.ones((3, 1)), np.ones(3), "quantiles")  # type: ignore[arg-type] # the mistake

    assert str(error.value) == "preprocessing='quantiles' is not known. Did you mean quantile?"


@given(SEEDS)
def test_rows_are_a_set(seed: int) -> None:
    """Copies in any order are the rows with weights, bit for bit; rows of weight 0 are none."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 3, (30, 2)) * np.array([0.1, -0.7])
    x[rng.random(x.shape) < 0.2] = np.nan
    y, weight = rng.integers(0, 2, 30), rng.integers(0, 4, 30).astype(np.float64)
    order = rng.permutation(int(weight.sum()))
    copies = np.arange(30).repeat(weight.astype(int))[order]
    merged = merge_rows(x, y, weight)
    same = merge_rows(x[copies], y[copies], np.ones(len(copies)))

    for ours, theirs in zip(merged, same, strict=True):
        assert np.array_equal(ours, theirs, equal_nan=ours.dtype.kind == "f")
    distinct = {
        (*map(str, row), int(label)) for row, label in zip(x[copies] + 0.0, y[copies], strict=True)
    }
    assert len(merged[0]) == len(distinct)
    assert merged[2].sum() == weight.sum()


def test_zero_has_one_sign() -> None:
    """−0.0 equals 0.0, so their rows are one; different targets keep rows apart."""
    x = np.array([[0.0], [-0.0], [0.0]])
    merged = merge_rows(x, np.array([1.5, 1.5, 2.5]), np.ones(3))

    assert sorted(zip(merged[1].tolist(), merged[2].tolist(), strict=True)) == [
        (1.5, 2.0),
        (2.5, 1.0),
    ]


def test_rows_meant_by_weights() -> None:
    """Whole numbers are copies, up to 100 a row; others are importance."""
    assert n_rows_meant(np.array([1.0, 2.0, 3.0])) == 6
    assert n_rows_meant(np.array([0.5, 2.0, 3.0])) == 3
    assert n_rows_meant(np.array([1.0, 1e6])) == 2000
    assert n_rows_meant(np.array([1e300, 1e300])) == 2
    assert n_rows_meant(np.full(1000, 100.0)) == 4000


def test_one_huge_value_leaves_the_ranks_of_the_others() -> None:
    """A sentinel of −1e30 is the least of its column, and the other values keep their order."""
    x = np.random.default_rng(0).normal(size=(200, 1))
    plain = Columns.fit(x[1:], np.ones(199), "quantile").inputs(x[1:])
    x[0] = -1e30
    beside = Columns.fit(x, np.ones(200), "quantile").inputs(x)

    assert beside[0] == beside.min()
    assert np.array_equal(np.argsort(beside[1:, 0]), np.argsort(plain[:, 0]))
    assert len(np.unique(beside)) == 200


def test_two_views_of_every_column() -> None:
    """Quantiles, then deviations that flatten out beyond 3; gaps are seen in both."""
    x = np.random.default_rng(0).normal(size=(50, 3))
    x[:, 1] = 7.0  # does not vary: left out
    x[::5, 2] = np.nan
    weight = np.ones(50)
    both = Columns.fit(x, weight, "both")
    quantiles = Columns.fit(x, weight, "quantile").inputs(x)
    z = Columns.fit(x, weight, "standard").inputs(x)
    inputs = both.inputs(x)

    assert both.source.tolist() == [0, 2, 0, 2, 2]
    assert (both.n_seen, both.n_inputs) == (3, 5)
    assert np.array_equal(inputs[:, both.seen(0)], quantiles)
    expected = z[:, :2] / np.sqrt(1 + (z[:, :2] / 3) ** 2)
    np.testing.assert_allclose(inputs[:, both.seen(1)][:, :2], expected, rtol=1e-5, atol=1e-7)
    assert np.array_equal(inputs[:, both.seen(1)][:, 2], z[:, 2])
    assert Columns.fit(x, weight, "quantile").seen(1).tolist() == [True] * 3
