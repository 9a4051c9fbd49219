"""Paired comparisons over tasks and trials: formulas, coverage, and the choice of the best."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from petridish.chapters.tables.error_arrays import (
    Errors,
    best_errors,
    errors_of,
    ranking,
    with_families,
)
from petridish.errors import UserError
from petridish.statistics.paired import (
    Ranking,
    best_in_hindsight,
    crossed_best,
    friedman,
    mean_over_tasks,
    medians,
    paired_test,
    rank_methods,
    signed_rank,
    significant,
    task_means,
)
from petridish.statistics.ranks import ranks_of
from petridish.statistics.shared_trials import size_classes, whole_classes
from tests.cell_tables import with_cells

Floats = NDArray[np.float64]
NAN = math.nan


def runs(**columns: list[object]) -> pl.DataFrame:
    """Make a table of MLPs on one task with the columns given."""
    count = len(next(iter(columns.values())))
    standard: dict[str, list[object]] = {
        "task.dataset": ["a"] * count,
        "task.classes": [2] * count,
        "data.m": [100.0] * count,
        "seed": [0] * count,
        "model": ["mlp(10)"] * count,
        "init": ["uniform"] * count,
        "test_error": [0.1] * count,
    }
    given = {name.replace("__", "."): values for name, values in columns.items()}
    return with_cells(pl.DataFrame(standard | given))


# Laying out


def test_families_depths_and_chance() -> None:
    """The name before the bracket; hidden layers; 1 − 1/classes for runs without an error."""
    table = runs(
        model=["mlp(10)", "mlp(10, (10, 10))", "mlp(10, (5,))", "forest(100, 10, 2)", "logistic"],
        model__width=[10, 10, 10, None, None],
        model__deeper=[[], [10, 10], [5], None, None],
        test_error=[0.1, NAN, None, 0.2, NAN],
        task__classes=[2, 2, 4, 2, 5],
    )
    found = with_families(table)

    assert found["family"].to_list() == ["mlp", "mlp", "mlp", "forest", "logistic"]
    assert found["depth"].to_list() == [1, 3, 2, None, None]
    assert found["even"].to_list() == [True, True, False, None, None]
    assert found["error"].to_list() == [0.1, 0.5, 0.75, 0.2, 0.8]


def test_tables_without_widths_or_deeper_layers() -> None:
    """Forests alone have no width; MLPs of two layers alone may have lists without a type."""
    assert with_families(runs(model=["forest(1)"]))["depth"].to_list() == [None]
    shallow = runs(model=["mlp(10)"], model__width=[10], model__deeper=[[]])
    assert with_families(shallow).select("depth", "even").row(0) == (1, True)
    bare = runs(model=["mlp(10)"], model__width=[10])
    assert with_families(bare).select("depth", "even").row(0) == (1, True)


def test_runs_find_their_place() -> None:
    """Cells by task and m, configurations by everything but steps, seeds in order; else NaN."""
    table = runs(
        task__dataset=["b", "a", "a", "a", "a"],
        data__m=[50.0, 200.0, 50.0, 50.0, 50.0],
        seed=[7, 3, 3, 7, 7],
        model=["forest(1)", "mlp(10)", "mlp(10)", "mlp(10)", "mlp(10)"],
        training__weight_decay=[0.0, 0.0, 0.0, 0.0, 0.1],
        training__steps=[1, 400, 100, 100, 100],
        test_error=[0.1, 0.2, 0.3, 0.4, 0.5],
    )
    errors = errors_of(table)

    assert errors.cells == [("a", 50.0), ("a", 200.0), ("b", 50.0)]
    assert errors.tasks == ["a", "b"]
    assert errors.owner.tolist() == [0, 0, 1]
    assert errors.error.shape[2] == 2
    assert errors.families == ["forest", "mlp"]
    names = errors.configurations.select("model", "training.weight_decay").rows()
    assert names == [("forest(1)", 0.0), ("mlp(10)", 0.0), ("mlp(10)", 0.1)]
    assert errors.of("mlp").tolist() == [1, 2]
    expected = np.full((3, 3, 2), NAN)
    expected[2, 0, 1], expected[1, 1, 0], expected[0, 1] = 0.1, 0.2, (0.3, 0.4)
    expected[0, 2, 1] = 0.5
    assert np.array_equal(errors.error, expected, equal_nan=True)


def test_two_runs_of_one_configuration_are_refused() -> None:
    """They differ in something that the layout does not know."""
    with pytest.raises(UserError) as error:
        errors_of(runs(task__version=[1, 2]))

    assert str(error.value) == (
        "Several runs share task.dataset, data.m, model, init, model.width, seed and differ in "
        "task.version: choose one value by --set task.version=… (in Python "
        "settings={'task.version': […]})."
    )


# Differences


def test_a_difference_is_the_mean_of_task_means() -> None:
    """By hand: rows weigh the same within a task, tasks among each other, however many trials."""
    values = np.array([[1.0, 3.0], [5.0, NAN], [NAN, NAN], [7.0, 9.0]])
    tasks, means = task_means(np.array([0, 0, 1, 2]), values)

    assert tasks.tolist() == [0, 2]
    assert means.tolist() == [(2 + 5) / 2, 8]


def test_the_interval_is_students() -> None:
    """Against SciPy's, as is Wilcoxon's p-value beside it; another unit scales all but p."""
    from scipy.stats import t, wilcoxon

    means = np.random.default_rng(0).normal(0.3, 1, 9)
    found = mean_over_tasks(means, coverage=0.9)
    low, high = t.interval(0.9, 8, means.mean(), means.std(ddof=1) / 3)

    assert (found.estimate, found.low, found.high) == pytest.approx((means.mean(), low, high))
    assert found.p == pytest.approx(wilcoxon(means).pvalue)
    assert found.scaled(100).high == pytest.approx(100 * high)
    assert found.scaled(100).means[3] == pytest.approx(100 * means[3])
    assert found.scaled(100).p == found.p


def test_a_single_task_says_nothing_about_others() -> None:
    """Its interval has no end."""
    found = mean_over_tasks(np.array([0.3]))

    assert (found.estimate, found.low, found.high) == (0.3, -math.inf, math.inf)


@pytest.mark.parametrize("tasks", [6, 12, 16])
@pytest.mark.parametrize(("effects", "least"), [("normal", 0.94), ("t3", 0.94), ("skewed", 0.90)])
def test_the_interval_covers(effects: str, least: float, tasks: int) -> None:
    """4000 times 6 to 16 tasks of 10 trials, noise differing by task: near 95 %.

    With skewed (exponential) effects it is about 92 %. The bootstrap over tasks and trials, for
    comparison, covers 87 to 94 %. Standard error of the measurement: 0.4 %.
    """
    rng = np.random.default_rng(0)
    shape = (4_000, tasks)
    drawn = {
        "normal": rng.standard_normal(shape),
        "t3": rng.standard_t(3, shape),
        "skewed": rng.exponential(1, shape) - 1,
    }[effects]
    noise = np.exp(0.5 * rng.standard_normal(shape)) * rng.standard_normal((10, *shape))
    means = drawn + noise.mean(axis=0)
    from petridish.statistics.intervals import student_half_width

    halves = np.array([student_half_width(row, 0.95) for row in means])

    assert least < (np.abs(means.mean(axis=1)) <= halves).mean() < 0.975


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=8))
def test_wilcoxons_test_is_exact_with_ties(numbers: list[int]) -> None:
    """Against all 2^n signs of the ranks, by brute force; zeros are left out."""
    from scipy.stats import rankdata

    left = np.array([float(number) for number in numbers if number])
    ranks = rankdata(np.abs(left))
    sums = np.array([sum(ranks[list(signs)]) for signs in _subsets(len(left))])
    observed = ranks[left > 0].sum()
    tail = min((sums >= observed).mean(), (sums <= observed).mean())

    assert signed_rank(np.array(numbers, dtype=np.float64)) == pytest.approx(min(1, 2 * tail))


def _subsets(count: int) -> list[tuple[int, ...]]:
    return [part for size in range(count + 1) for part in combinations(range(count), size)]


def test_the_paired_test_is_scipys() -> None:
    """One-sided, with missing trials; the other side is the complement."""
    from scipy.stats import ttest_1samp

    differences = np.random.default_rng(0).normal(0.5, 1, (5, 8))
    differences[2, 3:6] = NAN
    expected = [
        ttest_1samp(row[~np.isnan(row)], 0, alternative="greater").pvalue for row in differences
    ]

    assert paired_test(differences) == pytest.approx(expected)
    assert paired_test(-differences) == pytest.approx(1 - np.array(expected))


def test_equal_differences_are_no_certainty() -> None:
    """Three times the same: the sign test's 1/8. Nothing, one trial, or zeros: 1."""
    rows = np.array([[0.1, 0.1, 0.1], [-0.1, -0.1, -0.1], [0, 0, 0], [1, NAN, NAN], [NAN] * 3])

    assert paired_test(rows).tolist() == [0.125, 1, 1, 1, 1]


def test_a_correlation_widens_the_standard_error() -> None:
    """Halves whose means correlate by ρ: the mean's variance is (1 + ρ) times as large."""
    from scipy.special import stdtr

    row = np.array([0.1, 0.3, 0.2, 0.5])
    score = row.mean() / (row.std(ddof=1) / 2 * math.sqrt(1.5))

    assert paired_test(row[None], correlation=0.5)[0] == pytest.approx(stdtr(3, -score))


def test_many_p_values_are_corrected() -> None:
    """By Holm: 0.01 survives among three, 0.03 then does not survive among two."""
    assert significant(np.array([0.03, 0.01, 0.9]), 0.05).tolist() == [False, True, False]
    assert not significant(np.array([]), 0.05).size


# The best of a grid


def slow_crossed(error: Floats) -> list[float]:
    """Choose as the definition says, trial by trial."""
    most = max(sum(not math.isnan(e) for e in row) for row in error)
    kept = [row for row in error if most and sum(not math.isnan(e) for e in row) == most]
    result = []
    for trial in range(error.shape[1]):
        scores = []
        for row in kept:
            others = [e for t, e in enumerate(row) if t % 2 != trial % 2 and not math.isnan(e)]
            scores.append(float(np.median(others)) if others else math.inf)
        if len(kept) == 1:
            result.append(float(kept[0][trial]))
        elif scores and min(scores) < math.inf:
            result.append(float(kept[scores.index(min(scores))][trial]))
        else:
            result.append(NAN)
    return result


@given(
    st.integers(1, 4),
    st.integers(1, 6),
    st.lists(st.one_of(st.none(), st.integers(0, 9)), min_size=48, max_size=48),
)
def test_the_crossed_choice_is_that_of_its_definition(
    configurations: int, trials: int, numbers: list[int | None]
) -> None:
    """Any grid with gaps and ties, two cells at once."""
    filled = [NAN if number is None else float(number) for number in numbers]
    size = configurations * trials
    error = np.array(filled[: 2 * size]).reshape(2, configurations, trials)

    expected = np.array([slow_crossed(cell) for cell in error])
    assert np.array_equal(crossed_best(error), expected, equal_nan=True)


def test_the_choice_in_hindsight_is_the_least_mean() -> None:
    """By hand; a configuration with fewer trials is left out, though its mean is lower."""
    error = np.array([[[0.3, 0.5], [0.45, 0.3], [0.1, NAN]], np.full((3, 2), NAN)])

    assert best_in_hindsight(error)[0].tolist() == [0.45, 0.3]
    assert np.isnan(best_in_hindsight(error)[1]).all()
    assert np.isnan(best_in_hindsight(np.empty((2, 0, 5)))).all()
    assert crossed_best(np.empty((2, 0, 5))).shape == (2, 5)


def test_medians_leave_gaps_out() -> None:
    """Odd and even numbers of trials, and none."""
    error = np.array([[3.0, 1.0, 2.0], [4.0, NAN, 1.0], [NAN, NAN, NAN]])

    assert medians(error).tolist() == [2.0, 2.5, math.inf]
    assert medians(np.empty((2, 0))).tolist() == [math.inf, math.inf]


def test_choosing_does_not_flatter() -> None:
    """50 equal configurations: crossed, the mean error is theirs; in hindsight far below."""
    error = np.random.default_rng(0).standard_normal((500, 50, 10))

    assert abs(crossed_best(error).mean()) < 4 / math.sqrt(5_000)
    assert best_in_hindsight(error).mean() < -0.6


@pytest.mark.parametrize(("count", "bound"), [(2, 0.318), (3, 0.358), (4, 0.353), (20, 0.184)])
def test_how_much_two_halves_depend_on_each_other(count: int, bound: float) -> None:
    """The correlation of the halves' means is below μ² / (K − 1), as choosing is by the median."""
    error = np.random.default_rng(0).standard_normal((20_000, count, 10))
    best = crossed_best(error)
    found = float(np.corrcoef(best[:, ::2].mean(axis=1), best[:, 1::2].mean(axis=1))[0, 1])

    assert 0.5 * bound < found < bound


def of_families(
    families: list[str], cells: list[tuple[str, float]], error: NDArray[np.float64]
) -> Errors:
    """Lay out errors of shape (family, cell, trial)."""
    return Errors(cells, pl.DataFrame({"family": families}), np.moveaxis(error, 0, 1))


def test_families_are_compared_where_all_were_run() -> None:
    """By hand: shared trials count; a family that lacks a cell is left out there."""
    error = np.array(
        [
            [[0.1, 0.2], [0.3, NAN]],
            [[0.4, NAN], [0.5, 0.7]],
            [[NAN, NAN], [0.1, 0.1]],
        ]
    )
    best = of_families(["x", "y", "z"], [("a", 50.0), ("b", 50.0)], error)

    there, tasks, means = best.on_tasks([0, 1])
    assert there.tolist() == [0, 1]
    assert tasks == ["a", "b"]
    assert means.tolist() == [[0.1, 0.4], [0.3, 0.5]]
    there, _, means = best.on_tasks([1])
    assert there.tolist() == [0, 1, 2]
    assert means.tolist() == [[0.3, 0.5, 0.1]]


def test_families_that_share_no_trial_keep_their_own() -> None:
    """Each mean is then over what there is; and where none was run in all cells, there is none."""
    error = np.array([[[0.1, NAN]], [[NAN, 0.4]]])
    best = of_families(["x", "y"], [("a", 50.0)], error)

    assert best.on_tasks([0])[2].tolist() == [[0.1, 0.4]]
    nowhere = of_families(["x"], [("a", 50.0)], np.full((1, 1, 2), NAN))
    assert nowhere.on_tasks([0])[0].tolist() == []


def test_sizes_have_classes() -> None:
    """Each m its own where tasks share them; half decades where they do not."""
    shared = [("a", 50.0), ("a", 200.0), ("b", 50.0), ("b", 200.0), ("c", 50.0)]
    assert size_classes(*zip(*shared, strict=True)) == {"m = 50": [0, 2, 4], "m = 200": [1, 3]}
    assert whole_classes(*zip(*shared, strict=True)) == {"m = 50": [0, 2, 4]}
    apart = [("a", 100.0), ("b", 101.0), ("c", 5e5)]
    assert size_classes(*zip(*apart, strict=True)) == {
        "m ≤ 100": [0],
        "100 < m ≤ 300": [1],
        "m > 100000": [2],
    }


# Several methods


def test_the_critical_difference_is_demsars() -> None:
    """His example: 4 methods on 14 tasks at 5 % have CD = 1.25; at 10 %, 1.12 [Demšar 2006, §3]."""
    errors = np.random.default_rng(0).standard_normal((14, 4))

    assert rank_methods(errors, "abcd").critical == pytest.approx(1.25, abs=0.005)
    assert rank_methods(errors, "abcd", level=0.1).critical == pytest.approx(1.12, abs=0.005)


def test_friedmans_test_is_demsars() -> None:
    """His example: 14 tasks, average ranks of 3.143, 2.000, 2.893, 1.964, χ² = 9.28 [his §3.2.3].

    He leaves ties uncorrected. There are three pairs and one four: χ² is divided by
    1 − (3 · 6 + 60) / (14 · 60).
    """
    auc = np.array(
        [
            [0.763, 0.768, 0.771, 0.798],
            [0.599, 0.591, 0.590, 0.569],
            [0.954, 0.971, 0.968, 0.967],
            [0.628, 0.661, 0.654, 0.657],
            [0.882, 0.888, 0.886, 0.898],
            [0.936, 0.931, 0.916, 0.931],
            [0.661, 0.668, 0.609, 0.685],
            [0.583, 0.583, 0.563, 0.625],
            [0.775, 0.838, 0.866, 0.875],
            [1.000, 1.000, 1.000, 1.000],
            [0.940, 0.962, 0.965, 0.962],
            [0.619, 0.666, 0.614, 0.669],
            [0.972, 0.981, 0.9751, 0.975],
            [0.957, 0.978, 0.946, 0.970],
        ]
    )
    found = rank_methods(1 - auc, ["C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf"])

    assert dict(zip(found.methods, found.ranks, strict=True)) == pytest.approx(
        {"C4.5": 3.143, "C4.5+m": 2.000, "C4.5+cf": 2.893, "C4.5+m+cf": 1.964}, abs=5e-4
    )
    from scipy.stats import f

    statistic = 9.28 / (1 - 78 / 840)
    scaled = 13 * statistic / (14 * 3 - statistic)
    assert found.p == pytest.approx(f.sf(scaled, 3, 39), rel=0.01)
    assert found.tasks == 14


def test_pairs_are_wilcoxons_corrected_by_holm() -> None:
    """Three methods, best first; the least of three p-values is multiplied by three."""
    rng = np.random.default_rng(0)
    errors = rng.normal([0.3, 0.0, 0.05], 0.1, (12, 3))
    found = rank_methods(errors, ["bad", "good", "fair"])
    raw = signed_rank(errors[:, 1] - errors[:, 0])

    assert found.methods == ("good", "fair", "bad")
    assert found.pairs["good", "bad"] == pytest.approx(3 * raw)
    assert set(found.pairs) == {("good", "fair"), ("good", "bad"), ("fair", "bad")}


def test_two_methods_need_no_friedman() -> None:
    """The p-value is Wilcoxon's."""
    errors = np.random.default_rng(0).normal([0.0, 0.1], 0.1, (9, 2))
    found = rank_methods(errors, ["a", "b"])

    assert found.p == signed_rank(errors[:, 0] - errors[:, 1])


def test_ties_and_unanimity_have_their_p_values() -> None:
    """All equal: 1. All tasks agree on the order of three: 6 orders, so 6^(1 − N)."""
    assert friedman(np.ones((5, 3))) == 1
    assert friedman(np.tile([1.0, 2.0, 3.0], (5, 1))) == pytest.approx(6.0**-4)


def test_friedmans_test_keeps_its_level() -> None:
    """1000 times 5 equal methods on 12 tasks: 5 % are found unlike, within four standard errors."""
    rng = np.random.default_rng(0)
    found = [friedman(rng.standard_normal((12, 5))) < 0.05 for _ in range(1_000)]

    assert np.mean(found) == pytest.approx(0.05, abs=4 * math.sqrt(0.05 * 0.95 / 1_000))


def test_bars_join_what_does_not_differ() -> None:
    """Stretches of which no two differ, and only the longest of them."""

    def bars(*different: tuple[str, str]) -> list[tuple[int, int]]:
        names = "abcd"
        pairs = {
            (x, y): 0.01 if (x, y) in different else 0.5 for x in names for y in names if x < y
        }
        return Ranking(tuple(names), (1, 2, 3, 4), 0.5, pairs, 1.0, 9).alike(0.05)

    assert bars() == [(0, 3)]
    assert bars(("a", "d")) == [(0, 2), (1, 3)]
    assert bars(("a", "b"), ("a", "c"), ("a", "d")) == [(1, 3)]
    assert bars(("a", "b"), ("a", "c"), ("a", "d"), ("b", "c"), ("b", "d"), ("c", "d")) == []


@given(st.lists(st.integers(0, 5), max_size=12))
def test_ranks_are_scipys(numbers: list[int]) -> None:
    """Ties share their mean rank."""
    from scipy.stats import rankdata

    assert ranks_of(np.array(numbers, dtype=np.float64)).tolist() == rankdata(numbers).tolist()


def test_a_ranking_of_runs() -> None:
    """Families over tasks; one that lacks a cell takes no part; one task or family gives none."""
    rows = [
        (task, model, seed, error)
        for task in "abc"
        for model, error in (("mlp(1)", 0.2), ("forest(1)", 0.1), ("logistic", 0.3))
        for seed in range(4)
        if (task, model) != ("c", "logistic")
    ]
    task, model, seed, error = (list(column) for column in zip(*rows, strict=True))
    table = runs(task__dataset=task, model=model, seed=seed, test_error=error)
    found = ranking(table)

    assert found is not None
    assert found.methods == ("forest", "mlp")
    assert found.ranks == (1, 2)
    assert ranking(table.filter(pl.col("task.dataset") == "a")) is None
    assert ranking(table.filter(pl.col("model") == "mlp(1)")) is None
    assert best_errors(table).configurations["number"].to_list() == [1, 1, 1]
