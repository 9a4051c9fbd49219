"""How much the initialisation explains: intraclass correlation of times that may be unknown."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy.special import stdtrit
from scipy.stats import f, norm

from petridish.chapters.hidden.figures.luck import variance_curves
from petridish.chapters.hidden.rules.variance import InitialisationExplains, log_times
from petridish.figures.style import NothingToDraw
from petridish.statistics.log_times import LogTimes
from petridish.statistics.random_effects import RandomEffects, explained_share
from tests.cell_tables import with_cells
from tests.rule_worlds import CONTRADICTED, SUPPORTED, UNDECIDED, most_wrong

Floats = NDArray[np.float64]
NEVER = 10**9


def values(
    share: float, *, inits: int = 20, seeds: int = 6, seed: int = 0, skewed: bool = False
) -> Floats:
    """Draw log times of variance ¼, shape (initialisation, SGD seed)."""
    rng = np.random.default_rng([seed, inits, seeds])
    if skewed:
        between, within = rng.exponential(size=(inits, 1)) - 1, rng.exponential(size=(inits, seeds))
        within = within - 1
    else:
        between, within = rng.standard_normal((inits, 1)), rng.standard_normal((inits, seeds))
    drawn: Floats = np.log(1_000) + 0.5 * (
        math.sqrt(share) * between + math.sqrt(1 - share) * within
    )
    return drawn


def anova_icc(groups: list[Floats], coverage: float = 0.95) -> tuple[float, float, float]:
    """Return the intraclass correlation by mean squares, and its interval [Searle 1971]."""
    sizes = np.array([len(group) for group in groups], np.float64)
    freedom = sizes.sum() - len(sizes)
    within = sum(float(((group - group.mean()) ** 2).sum()) for group in groups) / freedom
    size = len(sizes) / (1 / sizes).sum()
    ratio = size * float(np.var([group.mean() for group in groups], ddof=1)) / within
    tails = f.ppf([0.5 + coverage / 2, 0.5 - coverage / 2], len(sizes) - 1, freedom)
    estimate, low, high = ((r - 1) / (r - 1 + size) for r in (ratio, *(ratio / tails)))
    return estimate, max(low, 0.0), max(high, 0.0)


def runs_of(logs: Floats, *, budget: int = NEVER, every: int = 10) -> pl.DataFrame:
    """Make the runs that would be seen: times at evaluations, none beyond the budget."""
    rows = []
    for (init, seed), value in np.ndenumerate(logs):
        time = every * math.ceil(math.exp(value) / every)
        rows.append(
            {
                "task": "sparse_parity(20, 3, (0, 1, 2))",
                "init": f"seeded(xavier, {init})",
                "seed": seed,
                "solved_at": time if time <= budget else None,
                "training.steps": budget,
                "evaluation.every": every,
            }
        )
    return with_cells(pl.DataFrame(rows, infer_schema_length=None))


def test_the_analysis_of_variance_by_hand() -> None:
    """Means 1 and 5, each value ±1: F = 2·8 / 2 = 8, ρ = 7/9; the interval divides F by F's."""
    estimate, low, high = anova_icc([np.array([0.0, 2.0]), np.array([4.0, 6.0])], coverage=0.9)

    assert estimate == pytest.approx(7 / 9)
    ends = [8 / f.ppf(q, 1, 2) for q in (0.95, 0.05)]
    assert (low, high) == pytest.approx([max(0, (F - 1) / (F + 1)) for F in ends])


def test_times_are_known_between_evaluations() -> None:
    """Seen at 30, evaluated every 10: after 20. At the first one: any time before. Else later."""
    table = pl.DataFrame(
        {
            "init": ["seeded(xavier, 1)", "seeded(xavier, 0)", "seeded(xavier, 1)"],
            "solved_at": [30, 10, None],
            "training.steps": 500,
            "evaluation.every": 10,
        }
    )
    times = log_times(table)

    assert np.exp(times.low).round(9).tolist() == [[0, 0], [20, 500]]
    assert np.exp(times.high).round(9).tolist() == [[10, math.inf], [30, math.inf]]
    assert times.runs.tolist() == [1, 2]
    assert times.unsolved == 1


UNEVEN = LogTimes(
    np.array(
        [
            [6.0, 6.2, 7.0, 6.1],
            [7.0, 7.0, 7.0, 7.0],  # never solved
            [6.9, 7.0, -np.inf, -np.inf],  # two runs only
            [-np.inf, 5.2, 6.8, 7.0],  # one at the first evaluation
        ]
    ),
    np.array(
        [
            [6.01, 6.21, np.inf, 6.11],
            [np.inf] * 4,
            [6.92, np.inf, np.inf, np.inf],
            [5.1, 5.22, 6.81, np.inf],
        ]
    ),
)


@pytest.mark.parametrize(("spread", "share"), [(0.6, 0.5), (0.6, 0.9), (0.8, 0.05)])
def test_the_likelihood_is_the_integral(spread: float, share: float) -> None:
    """Against a sum over a fine grid of the initialisation's effect."""
    between, within = spread * math.sqrt(share), spread * math.sqrt(1 - share)
    grid = np.linspace(-8 * between, 8 * between, 20_001)
    expected = []
    for low, high in zip(UNEVEN.low, UNEVEN.high, strict=True):
        inside = norm.pdf(grid, 0, between)
        for one, other in zip(low, high, strict=True):
            inside = inside * (
                norm.cdf((other - 6.3 - grid) / within) - norm.cdf((one - 6.3 - grid) / within)
            )
        expected.append(math.log(inside.sum() * (grid[1] - grid[0])))
    logit = math.log(share / (1 - share))
    found = RandomEffects(UNEVEN).contributions(6.3, spread, logit)[0]

    assert found == pytest.approx(expected, abs=1e-3)


def test_the_gradient_is_the_likelihoods() -> None:
    """Slopes by Fisher's identity, and the information on μ by Louis's, against differences."""
    model, at, step = RandomEffects(UNEVEN), np.array([6.3, math.log(0.6), 0.4]), 1e-4

    def parts(place: Floats) -> tuple[Floats, ...]:
        return model.contributions(float(place[0]), math.exp(place[1]), float(place[2]))

    _, gradient, information = parts(at)
    moves = np.eye(3) * step
    slopes = [(parts(at + d)[0] - parts(at - d)[0]) / (2 * step) for d in moves]
    bend = (parts(at + moves[0])[1] - parts(at - moves[0])[1])[:, 0] / (2 * step)

    assert gradient == pytest.approx(np.array(slopes).T, abs=1e-3)
    assert information == pytest.approx(-bend, abs=1e-2)


@pytest.mark.parametrize("share", [0.2, 0.8])
def test_with_every_time_known_it_is_the_analysis_of_variance(share: float) -> None:
    """Restricted likelihood and mean squares agree for groups of one size, and so do intervals."""
    logs = values(share, inits=25, seeds=6, seed=3)
    model = RandomEffects(LogTimes(logs - 1e-4, logs + 1e-4))
    estimate, low, high = anova_icc(list(logs))

    assert model.fit.share == pytest.approx(estimate, abs=2e-3)
    assert model.likelihood_interval(0.95) == pytest.approx((low, high), abs=0.03)


def test_unsolved_runs_are_not_dropped() -> None:
    """With a third of the runs unsolved, the model finds the share that the solved ones hide."""
    logs = np.concatenate([values(0.8, inits=40, seeds=5, seed=s) for s in range(2)])
    budget = 1_250
    times = log_times(runs_of(logs, budget=budget))
    solved = [row[row <= math.log(budget)] for row in logs]
    naive, _, _ = anova_icc([row for row in solved if len(row)])
    whole, _, _ = anova_icc(list(logs))
    found = RandomEffects(times).fit

    assert times.unsolved == pytest.approx(logs.size / 3, rel=0.15)
    assert abs(found.share - whole) < 0.03 < abs(naive - whole)
    assert found.mean == pytest.approx(logs.mean(), abs=0.05)
    assert found.spread == pytest.approx(0.5, abs=0.07)


def test_leaving_out_a_group_by_its_score() -> None:
    """The jackknife's first order is close to fitting again without each group."""
    times = log_times(runs_of(values(0.7, inits=10, seeds=5, seed=4), budget=1_500))
    here, without = RandomEffects(times)._left_out()
    again = []
    for group in range(10):
        rest = LogTimes(np.delete(times.low, group, 0), np.delete(times.high, group, 0))
        share = RandomEffects(rest).fit.share
        again.append(math.log(1 / 5 + share / (1 - share)))

    assert np.corrcoef(without, again)[0, 1] > 0.99
    assert np.std(without) == pytest.approx(np.std(again), rel=0.25)
    assert here == pytest.approx(np.mean(again), abs=0.1)


@pytest.mark.parametrize(
    ("share", "skewed", "budget"), [(0.5, False, 1_400), (0.5, True, NEVER), (0.8, False, 1_400)]
)
def test_the_interval_covers(share: float, *, skewed: bool, budget: int) -> None:
    """At 10 %, the truth lies outside in no more than a tenth of 40 tables, but for bad luck.

    Also where log times are skewed, for which the likelihood alone is too narrow.
    """
    outside = 0
    for s in range(40):
        logs = values(share, inits=20, seeds=4, seed=s, skewed=skewed)
        model = RandomEffects(log_times(runs_of(logs, budget=budget)))
        low, high = model.jackknife_interval(0.9)
        most = float(stdtrit(19, 0.95)) ** 2
        outside += not low <= share <= high and model._lost_at(math.log(share / (1 - share))) > most
    assert outside <= most_wrong(40, 0.1)


@pytest.mark.parametrize(
    ("share", "judgement"), [(0.9, SUPPORTED), (0.1, CONTRADICTED), (0.5, UNDECIDED)]
)
def test_initialisation_explains(share: float, judgement: object) -> None:
    """Most of the variance, little of it, or about half, with some runs not solved."""
    logs = values(share, inits=20, seeds=5, seed=1)
    finding = InitialisationExplains().judge(runs_of(logs, budget=2_000), 0.05)

    assert finding.judgement is judgement
    assert finding.low <= finding.estimate <= finding.high
    assert finding.n == 100
    assert finding.remark.startswith("20 initialisations with 5 seeds of SGD; log t_c varies by ±")


def test_the_wider_interval_counts() -> None:
    """To each side, of the likelihood's and the jackknife's."""
    found = explained_share(log_times(runs_of(values(0.6, inits=8, seeds=4))), coverage=0.9)

    assert found.low == min(found.likelihood[0], found.jackknife[0])
    assert found.high == max(found.likelihood[1], found.jackknife[1])


def test_runs_that_agree_to_an_evaluation() -> None:
    """All seeds of an initialisation end at one evaluation: no variance within can be seen."""
    logs = np.repeat(np.log([500.0, 700.0, 900.0, 1_200.0, 1_500.0, 2_000.0]), 4).reshape(6, 4)
    finding = InitialisationExplains().judge(runs_of(logs, every=100), 0.05)

    assert finding.judgement is SUPPORTED
    assert finding.estimate > 0.95
    assert finding.high == pytest.approx(1, abs=1e-3)


def test_runs_that_all_agree() -> None:
    """Every run ends at one evaluation: there is no variance to explain, and no verdict."""
    finding = InitialisationExplains().judge(runs_of(np.full((6, 3), 6.0), every=100), 0.05)

    assert finding.judgement is UNDECIDED


def test_order_and_names_do_not_matter() -> None:
    """Rows in any order, other seeds, uneven groups: one verdict."""
    table = runs_of(values(0.7, inits=6, seeds=4)).filter(
        ~((pl.col("init") == "seeded(xavier, 2)") & (pl.col("seed") > 1))
    )
    other = table.sample(fraction=1.0, shuffle=True, seed=1).with_columns(seed=pl.col("seed") + 70)
    one, two = (InitialisationExplains().judge(each, 0.05) for each in (table, other))

    assert one == two
    assert "6 initialisations with 2 to 4 seeds of SGD" in one.remark


def poor() -> dict[str, tuple[pl.DataFrame, str]]:
    """Return tables from which nothing follows, with what is said of them."""
    table = runs_of(values(0.7, inits=6, seeds=4))
    return {
        "nothing": (table.clear(), "needs 5 initialisations with two seeds of SGD each"),
        "four": (table.head(16), "needs 5 initialisations with two seeds of SGD each"),
        "one seed": (table.filter(seed=0), "needs 5 initialisations with two seeds of SGD each"),
        "unsolved": (runs_of(values(0.7, inits=6), budget=700), "runs are not solved"),
        "twice": (pl.concat([table, table]), "several runs share init, seed"),
        "kinds": (
            pl.concat(
                [
                    table,
                    with_cells(table.with_columns(init=pl.lit("seeded(uniform, 3)")).head(1)),
                ]
            ),
            "several kinds of initialisation: seeded(uniform), seeded(xavier)",
        ),
        "tasks": (
            pl.concat(
                [table.head(12), table.tail(12).with_columns(task=pl.lit("sparse_parity(9, 2)"))]
            ),
            "several tasks",
        ),
    }


@pytest.mark.parametrize("name", poor())
def test_where_nothing_can_be_said_nothing_is(name: str) -> None:
    """Undecided, with a remark that says why."""
    table, remark = poor()[name]
    finding = InitialisationExplains().judge(table, 0.05)

    assert finding.judgement is UNDECIDED
    assert math.isnan(finding.estimate)
    assert remark in finding.remark


def test_a_support_for_every_seed_is_said() -> None:
    """It is a part of what a seed of SGD decides, and a reader should know."""
    table = runs_of(values(0.7, inits=5, seeds=3)).with_columns(
        pl.lit(None, dtype=pl.List(pl.Int64)).alias("task.support")
    )

    assert "draws its own support" in InitialisationExplains().judge(table, 0.05).remark


def curved(*, inits: int) -> pl.DataFrame:
    """Return runs that kept their losses."""
    table = runs_of(values(0.7, inits=inits, seeds=3), budget=1_500)
    steps = [list(range(0, 1_001, 10))] * len(table)
    losses = [[math.nan, *np.linspace(1, 0, 100).tolist()]] * len(table)
    return table.with_columns(pl.Series("curve.step", steps), pl.Series("curve.train_loss", losses))


def test_the_curves_stand_beside_the_times() -> None:
    """Five initialisations with all their seeds on the left, all of them on the right."""
    figure = variance_curves(curved(inits=8), "Title")
    left, right = figure.axes

    assert len(left.lines) == 5 * 3
    assert len({str(line.get_color()) for line in left.lines}) == 5
    dots = [line for line in right.lines if line.get_marker() in ("o", "^")]
    assert sum(np.size(line.get_xdata()) for line in dots) == 8 * 3
    assert right.get_title(loc="left").startswith("initialisation explains ")
    assert "8 initialisations with 3 seeds of SGD each" in figure.get_supxlabel()


def test_without_curves_there_are_the_times() -> None:
    """One panel; too few initialisations are said in its title; without success there is none."""
    table = runs_of(values(0.7, inits=4, seeds=3))
    (panel,) = variance_curves(table, "Title").axes

    assert panel.get_title(loc="left") == "needs 5 initialisations with two seeds of SGD each"
    with pytest.raises(NothingToDraw, match="No run was solved"):
        variance_curves(runs_of(values(0.7), budget=10), "Title")
