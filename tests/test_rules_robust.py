"""HP's robust space, and how times to converge grow with n."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest
from matplotlib.figure import Figure
from scipy.stats import binom, norm

from petridish.chapters.hidden.figures.robust import alpha_table, robust_combinations, robust_table
from petridish.chapters.hidden.rules.architectures import with_architectures
from petridish.chapters.hidden.rules.robust import (
    RATES,
    RobustSpace,
    ScalingTable,
    best_runs,
    binomial_at_least,
    binomial_at_most,
    crossed_success,
    exhaustive_alpha,
    mean_share,
    outcomes_of,
    scalings,
)
from petridish.figures.style import NothingToDraw
from petridish.rules.claims import Finding, Judgement
from tests.cell_tables import with_cells
from tests.rule_worlds import CONTRADICTED, SUPPORTED, UNDECIDED, most_wrong

MODELS = {"(i)": "mlp(10, (), relu, linear)", "(xv)": "polynet(2)"}
TWO = tuple(MODELS)
Chance = Callable[[dict[str, Any]], float]


def world(
    chance: Chance,
    *,
    seeds: int = 25,
    seed: int = 0,
    dependence: float = 0.0,
    rates: Sequence[float] = RATES,
    batches: Sequence[int] = (1, 32),
    losses: Sequence[str] = ("hinge", "square"),
    architectures: Sequence[str] = TWO,
) -> pl.DataFrame:
    """Draw runs that converge with a chance of their combination and rate.

    `dependence` is the correlation, between the runs of one seed and architecture, of the normal
    variables that decide.
    """
    rng = np.random.default_rng(seed)
    luck = {name: rng.standard_normal(seeds) for name in architectures}
    cells, solved = [], []
    for name, n, size, init, loss, rate in product(
        architectures, (10, 20), batches, ("kaiming", "xavier"), losses, rates
    ):
        cell = {"architecture": name, "n": n, "B": size, "init": init, "loss": loss, "rate": rate}
        own = rng.standard_normal(seeds)
        hidden = math.sqrt(dependence) * luck[name] + math.sqrt(1 - dependence) * own
        solved.append(hidden < norm.ppf(chance(cell)))
        cells.append((MODELS[name], f"sparse_parity({n}, 2)", n, size, init, loss, rate))
    columns = ["model", "task", "task.n", "training.batch_size", "init"]
    columns += ["training.loss", "training.learning_rate"]
    runs = pl.DataFrame(cells, schema=columns, orient="row").select(
        pl.all().repeat_by(seeds).explode()
    )
    runs = runs.with_columns(
        pl.lit(2).alias("task.k"),
        pl.lit(100_000).alias("training.steps"),
        pl.Series("seed", np.tile(np.arange(seeds), len(cells))),
        pl.when(pl.Series(np.concatenate(solved))).then(pl.lit(100)).alias("solved_at"),
    ).with_columns(
        outcome=pl.when(pl.col("solved_at").is_null())
        .then(pl.lit("OUT_OF_STEPS"))
        .otherwise(pl.lit("SOLVED"))
    )
    return with_cells(runs)


def judged(table: pl.DataFrame, level: float = 0.05, **choices: Any) -> Finding:
    """Judge the two architectures of these worlds."""
    return RobustSpace(**({"architectures": TWO} | choices)).judge(table, level)


def one_rate_works(share: float) -> Chance:
    """Make every combination converge in `share` of its runs at η = 0.1, and never at another."""
    return lambda cell: share if cell["rate"] == 0.1 else 0.0


def test_binomial_tails_are_scipys() -> None:
    """P(X ≤ s) and P(X ≥ s), the ends included; of half a run's weight, (1 − p)^½ is left."""
    for runs in (1, 5, 25):
        solved = np.arange(runs + 1)
        assert binomial_at_most(solved, np.full(runs + 1, runs), 0.2) == pytest.approx(
            binom.cdf(solved, runs, 0.2)
        )
        assert binomial_at_least(solved, np.full(runs + 1, runs), 0.2) == pytest.approx(
            binom.sf(solved - 1, runs, 0.2)
        )
    assert float(binomial_at_most(np.array(0.0), np.array(0.5), 0.2)) == pytest.approx(0.8**0.5)


def test_a_robust_space_is_supported() -> None:
    """Every combination converges in most of 25 runs at its best rate, whatever the others do."""
    finding = judged(world(one_rate_works(0.9)))

    assert finding.judgement is SUPPORTED
    assert (finding.estimate, finding.low, finding.high) == (1, 1, 1)
    assert finding.n == 2 * 2 * 2 * 2 * 2 * 4 * 25
    assert finding.remark.startswith(
        "32 of 32 combinations by their point estimate, 32 for certain"
    )


def test_all_of_the_sources_architectures_are_asked_for() -> None:
    """Two of fifteen do not support a claim about all."""
    finding = RobustSpace().judge(world(one_rate_works(0.9)), 0.05)

    assert finding.judgement is UNDECIDED
    assert "not run: (ii), (iii)" in finding.remark


def test_one_lucky_run_of_five_is_no_evidence() -> None:
    """Point estimates that reach 20 % everywhere leave the claim open, for they cost nothing.

    With a chance of 19 % at each of four rates, 98.5 % of combinations show 20 % of 5 runs.
    """
    finding = judged(world(lambda _: 0.19, seeds=5))

    assert finding.judgement is UNDECIDED
    assert finding.estimate >= 0.9
    assert finding.low < 0.1
    assert finding.high == 1


def test_a_dead_corner_contradicts_and_is_named() -> None:
    """One architecture that never converges with a batch of 1; its estimate counts what fails."""

    def chance(cell: dict[str, Any]) -> float:
        dead = cell["architecture"] == "(xv)" and cell["B"] == 1
        return 0.0 if dead else one_rate_works(0.9)(cell)

    finding = judged(world(chance))

    assert finding.judgement is CONTRADICTED
    assert finding.estimate == 24 / 32
    assert finding.low < 0.75 < finding.high < 1
    assert "too rarely even with the best η: (xv), B = 1, 0 of 200 runs" in finding.remark
    assert "fewest: (xv), 8 of 16, least at sparse_parity(10, 2), B = 1" in finding.remark


def test_what_was_not_tried_does_not_contradict() -> None:
    """Without η = 0.1 a dead corner says nothing about «some η»."""
    table = world(lambda _: 0.0, rates=(0.001, 0.01, 1.0))
    finding = judged(table)

    assert finding.judgement is UNDECIDED
    assert finding.high == 1
    assert "32 without all of the 4 rates" in finding.remark
    assert judged(table, rates=(0.001, 0.01, 1.0)).judgement is CONTRADICTED


def test_less_robust_settings_have_their_own_claim() -> None:
    """Where small batches fail, the claim holds for batches of at least 16."""
    table = world(lambda cell: 0.9 if cell["B"] > 1 else 0.0)

    assert judged(table).judgement is CONTRADICTED
    finding = judged(table, at_least={"training.batch_size": 16})
    assert finding.judgement is SUPPORTED
    assert finding.n == 1600


def test_runs_that_stand_for_each_other_are_refused() -> None:
    """Runs that differ in something else are not taken for seeds."""
    table = world(one_rate_works(0.9), seeds=2)
    finding = judged(pl.concat([table, table]))

    assert finding.judgement is UNDECIDED
    assert "several runs share" in finding.remark
    assert judged(table.head(0)).remark == "no run of (i), (xv)"


def test_the_order_of_the_rows_does_not_matter() -> None:
    """A shuffled table gives the same finding, word for word."""
    table = world(lambda cell: 0.0 if cell["B"] == 1 else 0.6)

    assert judged(table.sample(fraction=1.0, shuffle=True, seed=1)) == judged(table)


@pytest.mark.parametrize("dependence", [0.0, 0.5, 0.99])
@pytest.mark.parametrize("seeds", [5, 25])
def test_a_claim_that_just_holds_is_seldom_contradicted(seeds: int, dependence: float) -> None:
    """Exactly 20 % at one rate: also where the runs of a seed converge together or not at all."""
    tables = 10
    wrong = sum(
        judged(
            world(
                one_rate_works(0.2),
                seeds=seeds,
                seed=s,
                dependence=dependence,
                losses=("hinge",),
            )
        ).judgement
        is CONTRADICTED
        for s in range(tables)
    )

    assert wrong <= most_wrong(tables)


def test_a_single_failing_combination_seldom_slips_through() -> None:
    """One combination that just fails at all four rates, among others that always converge."""

    def chance(cell: dict[str, Any]) -> float:
        fails = cell["n"] == 20 and cell["B"] == 1 and cell["architecture"] == "(i)"
        return 0.2 if fails and cell["init"] == "xavier" else 1.0

    tables = 30
    wrong = sum(
        judged(world(chance, seeds=5, seed=s, losses=("hinge",))).judgement is SUPPORTED
        for s in range(tables)
    )

    assert wrong <= most_wrong(tables)


def test_the_interval_holds_the_true_share() -> None:
    """With half of the combinations failing, both ends are right, though seeds move together."""

    def chance(cell: dict[str, Any]) -> float:
        return 0.19 if cell["init"] == "xavier" else one_rate_works(0.5)(cell)

    tables = 12
    missed = 0
    for s in range(tables):
        finding = judged(world(chance, seed=s, dependence=0.5))
        missed += not finding.low <= 0.5 <= finding.high
    assert missed <= most_wrong(tables, 0.1)


def test_the_best_of_four_is_measured_by_other_seeds() -> None:
    """Where all rates have 30 %, the best of four shows more; the crossed estimate does not."""
    table = with_architectures(world(lambda _: 0.3, seeds=10))
    best = best_runs(table).group_by("architecture").agg(pl.col("solved").mean())
    crossed = crossed_success(table, coverage=0.999)

    assert crossed["architecture"].to_list() == ["(i)", "(xv)"]
    assert crossed["runs"].to_list() == [160, 160]
    assert (best["solved"] > 0.4).all()
    for row in crossed.iter_rows(named=True):
        assert row["low"] < 0.3 < row["high"]
        assert abs(row["success"] - 0.3) < 0.1


def test_a_mean_share_by_hand() -> None:
    """Two cells of 10 seeds; where all seeds agree, Wilson's distance shrinks by √2."""
    outcome = np.ones((2, 10))
    estimate, low, high = mean_share(outcome, coverage=0.95)
    wilson = 1 - 10 / (10 + norm.isf(0.025) ** 2)

    assert (estimate, high) == (1, 1)
    assert low == pytest.approx(1 - wilson / math.sqrt(2))
    outcome[:, :5] = 0  # the seeds' means are 0 and 1: ten independent values
    assert mean_share(outcome, coverage=0.95)[1] == pytest.approx(
        0.5 - 2.262 * 0.527 / 10**0.5, abs=1e-3
    )


def test_outcomes_are_laid_out_by_cell_and_seed() -> None:
    """Cells and seeds in their order, NaN where no run was made."""
    runs = pl.DataFrame(
        {"a": [2, 1, 2], "b": ["x", "x", "x"], "seed": [7, 9, 9], "solved": [1.0, 0.0, 0.5]}
    )
    laid = outcomes_of(runs, ("a", "b"))

    assert np.array_equal(laid, [[np.nan, 0.0], [1.0, 0.5]], equal_nan=True)


# How times grow with n


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
    monkeypatch.setattr("petridish.chapters.hidden.rules.robust.RESAMPLES", 200)


def grown(table: pl.DataFrame, level: float = 0.05, **choices: Any) -> Finding:
    """Judge the two architectures of these worlds."""
    return ScalingTable(**({"architectures": TWO} | choices)).judge(table, level)


def test_an_exact_power_law_is_found() -> None:
    """100 (n − 9)^1.5 has c = 100 and α = 1.5 at the better of two rates."""
    for entry in scalings(growing(power_law(1.5))):
        assert entry.c == 100
        assert entry.alpha == pytest.approx(1.5, abs=1e-3)
        assert entry.low(0.05) == entry.high(0.05) == entry.alpha
        assert (entry.runs, entry.seeds) == (150, 25)


def test_alpha_by_hand() -> None:
    """Times 100, 400 and 500 at n = 10, 20 and 30: the smallest α that bounds both is log_11 4."""
    times = {10: 100, 20: 400, 30: 500}
    entry = scalings(growing(lambda name, n, k, rate, rng: times[n]))[0]

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

    known, missing, never = (scalings(growing(time(number)))[0] for number in (3, 2, 0))

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
    """Every α below k, bounds included; the remark sets it beside exhaustive search."""
    finding = grown(growing(power_law(1.0, noise=0.3), k_values=(2, 3)))

    assert finding.judgement is SUPPORTED
    assert finding.low <= 0.5 <= finding.high < 1
    assert finding.n == 600
    assert "2 of 4 α below exhaustive search's own (0.75 at k = 2, 1.16 at k = 3)" in finding.remark


def test_one_large_exponent_contradicts() -> None:
    """An architecture whose time grows faster than (n − 9)^2 at k = 2, though others do not."""

    def time(name: str, n: int, k: int, rate: float, rng: np.random.Generator) -> float:
        return power_law(2.4 if name == "(xv)" else 0.5, noise=0.2, c=50)(name, n, k, rate, rng)

    finding = grown(growing(time))
    assert finding.judgement is CONTRADICTED
    assert finding.remark.startswith("(xv), k = 2: c = ")
    assert finding.low > 1


def test_a_missing_entry_leaves_it_open_or_contradicts() -> None:
    """Beyond the budget α is at least what the budget gives: log_21 of 10^5 / c.

    From c = 100 that is 2.27 at n = 30, more than k = 2 but less than k = 3.
    """

    def time(name: str, n: int, k: int, rate: float, rng: np.random.Generator) -> float:
        return math.inf if name == "(i)" and n == 30 else 100.0

    open_at_3 = grown(growing(time, k_values=(3,)))
    assert open_at_3.judgement is UNDECIDED
    assert "less than a tenth converge for some n: (i) at k = 3" in open_at_3.remark
    assert open_at_3.estimate == 0  # of (xv), which is known
    assert grown(growing(time)).judgement is CONTRADICTED


def test_few_seeds_and_absent_architectures_decide_nothing() -> None:
    """With 10 seeds the tenth percentile is the least time: there is an estimate, no verdict."""
    finding = grown(growing(power_law(1.0), seeds=10))
    assert finding.judgement is UNDECIDED
    assert finding.estimate == pytest.approx(0.5)
    assert "2 entries have less than 15 seeds" in finding.remark

    table = growing(power_law(1.0))
    assert "not run: (ii), (iii)" in ScalingTable().judge(table, 0.05).remark
    assert ScalingTable().judge(table, 0.05).judgement is UNDECIDED
    lacking = grown(growing(power_law(1.0), sizes=(20, 30)))
    assert lacking.remark == ("no architecture has n = 10 and a larger n at B = 32, hinge, xavier")
    assert "several runs share" in grown(pl.concat([table, table])).remark


@pytest.mark.parametrize(("exponent", "wrong"), [(1.99, CONTRADICTED), (2.01, SUPPORTED)])
def test_at_the_edge_the_wrong_verdict_is_rare(exponent: float, wrong: Judgement) -> None:
    """With α on either side of k = 2 by a hair, and times that vary by a factor of two."""
    tables = 40
    found = sum(
        grown(
            growing(power_law(exponent, noise=0.7, c=10), seeds=20, seed=s, rates=(0.1,))
        ).judgement
        is wrong
        for s in range(tables)
    )

    assert found <= most_wrong(tables)


# Figures


def printed(figure: Figure) -> list[list[str]]:
    """Give the texts of every panel that has any."""
    found = [[text.get_text() for text in axes.texts] for axes in figure.axes]
    return [texts for texts in found if texts]


def test_the_table_prints_success_and_time() -> None:
    """At the largest n, hinge and uniform: one rate gives 100 %, the other combinations none."""
    table = world(one_rate_works(1.0), seeds=4, batches=(1, 8, 32))
    figure = robust_table(table, "Title")

    assert printed(figure) == [["✓"] * 6, ["100"] * 6]  # two architectures, three batch sizes
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == ["ReLU MLP, r = 10  (i)", "PolyNet  (xv)"]
    note = figure.get_supxlabel()
    assert note.startswith("n = 20, hinge loss, xavier initialisation; 96 runs, 4 for each rate")
    never = robust_table(table.with_columns(pl.lit("OUT_OF_STEPS").alias("outcome")), "Title")
    assert printed(never)[0] == ["0"] * 6


def test_runs_that_never_converge_have_no_time() -> None:
    """Less than a tenth of the runs: a dash, also where it is all there is."""
    figure = robust_table(world(lambda _: 0.0, seeds=4), "Title")

    assert printed(figure)[1] == ["–"] * 4


def test_small_multiples_count_what_reaches_a_fifth() -> None:
    """A panel for each initialisation and loss, the source's first; a cross where it is missed."""
    table = world(lambda cell: float(cell["B"] > 1 or cell["architecture"] == "(i)"), seeds=3)
    figure = robust_combinations(table, "Title")
    panels = [axes for axes in figure.axes if axes.get_title(loc="left")]

    assert [panel.get_title(loc="left") for panel in panels] == [
        *("xavier, hinge", "xavier, square", "kaiming, hinge", "kaiming, square")
    ]
    assert {panel.get_title(loc="right") for panel in panels} == {"3 of 4"}
    assert {len(panel.lines) for panel in panels} == {1}


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
