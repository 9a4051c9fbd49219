"""How the time to converge grows with n: exponents, their rule and their table."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest

from petridish.chapters.hidden.figures.robust import alpha_table, robust_combinations, robust_table
from petridish.chapters.hidden.rules.architectures import with_architectures
from petridish.chapters.hidden.rules.exponents import ScalingTable, exhaustive_alpha, scalings
from petridish.figures.style import NothingToDraw
from petridish.rules.claims import Finding, Judgement
from tests.cell_tables import with_cells
from tests.rule_worlds import CONTRADICTED, SUPPORTED, UNDECIDED, most_wrong
from tests.test_rules_robust import MODELS, TWO, printed

Times = Callable[[str, int, int, float, np.random.Generator], float]


def growing(
    time: Times,
    *,
    seeds: int = 25,
    seed: int = 0,
    k_values: Sequence[int] = (2,),
    sizes: Sequence[int] = (10, 20, 30),
    rates: Sequence[float] = (0.1, 1.0),
) -> pl.DataFrame:
    """Draw runs whose time to converge is a function of (architecture, n, k, rate)."""
    rng = np.random.default_rng(seed)
    rows = []
    for name, n, k, rate, number in product(TWO, sizes, k_values, rates, range(seeds)):
        drawn = time(name, n, k, rate, rng)
        solved = drawn <= 100_000
        rows.append(
            {
                "model": f"polynet({k})" if name == "(xv)" else MODELS[name],
                "task": f"sparse_parity({n}, {k})",
                "task.n": n,
                "task.k": k,
                "training.batch_size": 32,
                "init": "xavier",
                "training.loss": "hinge",
                "training.learning_rate": rate,
                "training.steps": 100_000,
                "seed": number,
                "outcome": "SOLVED" if solved else "OUT_OF_STEPS",
                "solved_at": round(drawn) if solved else None,
            }
        )
    types = {"solved_at": pl.Int64}
    return with_cells(pl.DataFrame(rows, schema_overrides=types, infer_schema_length=None))


def power_law(exponent: float, *, noise: float = 0.0, c: float = 100.0) -> Times:
    """Take c (n − 9)^exponent steps at η = 0.1, ten times as many at another rate."""

    def time(name: str, n: int, k: int, rate: float, rng: np.random.Generator) -> float:
        typical = c * (n - 9) ** exponent * (1 if rate == 0.1 else 10)
        return float(typical * math.exp(noise * rng.standard_normal()))

    return time


@pytest.fixture(autouse=True)
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw 200 resamples instead of 2000: error rates need many tables, not fine quantiles."""
    monkeypatch.setattr("petridish.chapters.hidden.rules.exponents.RESAMPLES", 200)


def grown(table: pl.DataFrame, level: float = 0.05, **choices: Any) -> Finding:
    """Judge the two architectures of these worlds."""
    return ScalingTable(**({"architectures": TWO} | choices)).judge(table, level)


def test_an_exact_power_law_is_found() -> None:
    """100 (n − 9)^1.5 has c = 100 and α = 1.5 at the better of two rates."""
    for entry in scalings(with_architectures(growing(power_law(1.5)))):
        assert entry.c == 100
        assert entry.alpha == pytest.approx(1.5, abs=1e-3)
        assert entry.low(0.05) == entry.high(0.05) == entry.alpha
        assert (entry.runs, entry.seeds) == (150, 25)


def test_alpha_by_hand() -> None:
    """Times 100, 400 and 500 at n = 10, 20 and 30: the smallest α that bounds both is log_11 4."""
    times = {10: 100, 20: 400, 30: 500}
    table = with_architectures(growing(lambda name, n, k, rate, rng: times[n]))
    entry = scalings(table)[0]

    assert entry.alpha == pytest.approx(math.log(4) / math.log(11))
    assert entry.alpha > math.log(5) / math.log(21)


def test_the_tenth_percentile_counts_runs_that_never_converge() -> None:
    """Of 25 runs the third is the tenth percentile: it is known if three converge, and not if two.

    The time is then beyond the budget, and α at least what the budget gives.
    """
    order = iter(range(10**6))

    def time(converging: int) -> Times:
        def drawn(name: str, n: int, k: int, rate: float, rng: np.random.Generator) -> float:
            number = next(order) % 25
            return 100 * (number + 1) if n == 10 or number < converging else math.inf

        return drawn

    known, missing, never = (
        scalings(with_architectures(growing(time(number))))[0] for number in (3, 2, 0)
    )

    assert known.c == 300
    assert known.alpha == 0
    assert missing.alpha == math.inf
    assert missing.high(0.05) == math.inf
    assert missing.low(0.05) == 0  # drawn anew, three converge as well as not
    budget = [math.log(100_000 / c) / math.log(11) for c in (600, 100)]
    assert budget[0] <= never.low(0.05) <= budget[1]


def test_exhaustive_search_by_hand() -> None:
    """C(30, 2) / C(10, 2) = 435 / 45, and n − 9 grows by 21; at k = 4, 27405 / 210."""
    assert exhaustive_alpha(2, (10, 20, 30)) == pytest.approx(math.log(435 / 45) / math.log(21))
    assert [round(exhaustive_alpha(k, (10, 20, 30)), 2) for k in (2, 3, 4)] == [0.75, 1.16, 1.6]


def test_small_exponents_are_supported() -> None:
    """Every α below that of the number of candidates, bounds included."""
    finding = grown(growing(power_law(0.5, noise=0.2), k_values=(2, 3)))

    assert finding.judgement is SUPPORTED
    assert finding.low <= 0.5 / 0.747 <= finding.high < 1
    assert finding.n == 600
    assert "4 of 4 α below that of C(n, k) (0.75 at k = 2, 1.16 at k = 3)" in finding.remark
    assert "0 take too long at n = 10 to be found above it in 100,000 steps" in finding.remark


def test_an_exponent_between_the_candidates_of_two_k() -> None:
    """(n − 9)^1 is slower than the candidates grow at k = 3, and faster at k = 2."""
    time = power_law(1.0, noise=0.1)

    assert grown(growing(time, k_values=(3,))).judgement is SUPPORTED
    assert grown(growing(time, k_values=(2,))).judgement is CONTRADICTED


def test_a_budget_without_room_is_counted() -> None:
    """From 30 000 steps at n = 10, growth like C(n, k) would leave a budget of 10^5."""
    finding = grown(growing(power_law(0.1, c=30_000), rates=(0.1,)))

    assert finding.judgement is SUPPORTED
    assert "2 take too long at n = 10 to be found above it" in finding.remark


def test_one_large_exponent_contradicts() -> None:
    """An architecture whose time grows faster than C(n, 2), though others do not."""

    def time(name: str, n: int, k: int, rate: float, rng: np.random.Generator) -> float:
        return power_law(1.2 if name == "(xv)" else 0.4, noise=0.2, c=50)(name, n, k, rate, rng)

    finding = grown(growing(time))
    assert finding.judgement is CONTRADICTED
    assert finding.remark.startswith("(xv), k = 2: c = ")
    assert finding.low > 1


def test_a_missing_entry_leaves_it_open_or_contradicts() -> None:
    """Beyond the budget α is at least what the budget gives: log_21 of 10^5 / c.

    From c = 5000 that is 0.98 at n = 30, more than C(n, 2)'s 0.75 but less than C(n, 3)'s 1.16.
    """

    def time(name: str, n: int, k: int, rate: float, rng: np.random.Generator) -> float:
        return math.inf if name == "(i)" and n == 30 else 5_000.0

    open_at_3 = grown(growing(time, k_values=(3,)))
    assert open_at_3.judgement is UNDECIDED
    assert "less than a tenth converge for some n: (i) at k = 3" in open_at_3.remark
    assert open_at_3.estimate == 0  # of (xv), which is known
    assert grown(growing(time)).judgement is CONTRADICTED


def test_few_seeds_and_absent_architectures_decide_nothing() -> None:
    """With 10 seeds the tenth percentile is the least time: there is an estimate, no verdict."""
    finding = grown(growing(power_law(1.0), seeds=10))
    assert finding.judgement is UNDECIDED
    assert finding.estimate == pytest.approx(1 / exhaustive_alpha(2, (10, 20, 30)), rel=1e-3)
    assert "2 entries have less than 15 seeds" in finding.remark

    table = growing(power_law(0.5))
    assert "not run: (ii), (iii)" in ScalingTable().judge(table, 0.05).remark
    assert ScalingTable().judge(table, 0.05).judgement is UNDECIDED
    lacking = grown(growing(power_law(1.0), sizes=(20, 30)))
    assert lacking.remark == ("no architecture has n = 10 and a larger n at B = 32, hinge, xavier")
    assert "several runs share" in grown(pl.concat([table, table])).remark


@pytest.mark.parametrize(("exponent", "wrong"), [(0.74, CONTRADICTED), (0.75, SUPPORTED)])
def test_at_the_edge_the_wrong_verdict_is_rare(exponent: float, wrong: Judgement) -> None:
    """With α on either side of C(n, 2)'s by a hair, and times that vary by a factor of two."""
    tables = 40
    found = sum(
        grown(
            growing(power_law(exponent, noise=0.7, c=10), seeds=20, seed=s, rates=(0.1,))
        ).judgement
        is wrong
        for s in range(tables)
    )

    assert found <= most_wrong(tables)


def test_the_exponents_are_printed() -> None:
    """α, its interval and c in every cell; a dash where a time is beyond the budget."""
    figure = alpha_table(growing(power_law(1.5), k_values=(2, 3)), "Title")
    assert printed(figure)[0][:2] == ["1.50", "[1.50, 1.50]  c = 100"]
    assert "(25 seeds)" in figure.get_supxlabel().replace("\n", " ")

    lost = alpha_table(growing(lambda *_: math.inf, seeds=5), "Title")
    assert printed(lost) == [["–", "–"]]
    assert "intervals are too narrow" in lost.get_supxlabel().replace("\n", " ")


def test_figures_without_runs_say_so() -> None:
    """An empty table, and growth along a single n."""
    table = growing(power_law(1.0), seeds=2)
    for figure in (robust_table, robust_combinations, alpha_table):
        with pytest.raises(NothingToDraw, match="There are no runs to draw"):
            figure(table.head(0), "Title")
    with pytest.raises(NothingToDraw, match="Growth needs two values of n"):
        alpha_table(table.filter(pl.col("task.n") == 10), "Title")
