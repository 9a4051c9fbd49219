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

from petridish.chapters.hidden.figures.robust import robust_combinations, robust_table
from petridish.chapters.hidden.rules.architectures import with_architectures
from petridish.chapters.hidden.rules.robust import (
    RATES,
    RobustSpace,
    best_runs,
    crossed_success,
    outcomes_of,
)
from petridish.rules.claims import Finding
from petridish.statistics.shares import binomial_at_least, binomial_at_most, mean_share
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
    assert "of 5 runs at each η a combination is certain from 4 on" in finding.remark
    assert finding.estimate >= 0.9
    assert finding.low < 0.1
    assert finding.high == 1


def test_an_open_robust_space_says_what_its_runs_can_show() -> None:
    """One run at each of four rates, solved or not, makes no combination certain."""
    finding = judged(world(one_rate_works(1.0), seeds=1))

    assert "of 1 runs at each η a combination is certain with no number" in finding.remark


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


# Figures


def printed(figure: Figure) -> list[list[str]]:
    """Return the texts of every panel that has any."""
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
    """One panel per initialisation and loss, the paper's first; a cross where it is missed."""
    table = world(lambda cell: float(cell["B"] > 1 or cell["architecture"] == "(i)"), seeds=3)
    figure = robust_combinations(table, "Title")
    panels = [axes for axes in figure.axes if axes.get_title(loc="left")]

    assert [panel.get_title(loc="left") for panel in panels] == [
        *("xavier, hinge", "xavier, square", "kaiming, hinge", "kaiming, square")
    ]
    assert {panel.get_title(loc="right") for panel in panels} == {"3 of 4"}
    assert {len(panel.lines) for panel in panels} == {1}
