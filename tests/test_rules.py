"""The rules behind the claims: worlds where each holds, where its opposite does, and where nothing.

A rule at level α may decide wrongly with probability α. Where tables are drawn from a world without
an effect, `most_wrong` gives the number of wrong decisions that such a rule exceeds with
probability 1e-4 or less.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import polars as pl
import pytest

from petridish.analysis import (
    AboveTheBound,
    BestOrTied,
    Claim,
    Finding,
    FrontierSlope,
    Groks,
    Judgement,
    Quicker,
    RecoverySlope,
    SlowAtTheEdge,
    SubnetworkAgrees,
    TicketsWin,
    Valley,
    Verdict,
    anytime_interval,
    wilson_interval,
)
from petridish.analysis.outcomes import with_classes
from petridish.analysis.times import solved_times

SUPPORTED, CONTRADICTED, UNDECIDED = (
    Judgement.SUPPORTED,
    Judgement.CONTRADICTED,
    Judgement.UNDECIDED,
)
TYPES = {
    "solved_at": pl.Int64,
    "fitted_at": pl.Int64,
    "init.s": pl.Int64,
    "init.chosen": pl.String,
    "init.seed": pl.Int64,
}
Time = Callable[[np.random.Generator, dict[str, Any]], int | None]


def run(time: int | None, **columns: Any) -> dict[str, Any]:
    """Make one row of a table: a run solved at `time`, or never."""
    values: dict[str, Any] = {
        "task": "sparse_parity(50, 3)",
        "task.n": 50,
        "task.k": 3,
        "init": "uniform",
        "init.s": None,
        "data.m": 100.0,
        "model.width": 10,
        "seed": 0,
        "outcome": "OUT_OF_STEPS" if time is None else "SOLVED",
        "solved_at": time,
        "fitted_at": None,
    }
    return values | columns


def table_of(rows: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """Make a table with the types that a store's has."""
    types = {name: kind for name, kind in TYPES.items() if name in rows[0]}
    return pl.DataFrame(rows, schema_overrides=types, infer_schema_length=None)


def sweep(
    time: Time,
    *,
    widths: Sequence[int] = (10, 100),
    samples: Sequence[float] = (100.0, 200.0, 400.0),
    inits: Sequence[str] = ("uniform",),
    seeds: int = 10,
    seed: int = 0,
) -> pl.DataFrame:
    """Draw the runs of a grid; `time` gives when a run of a cell is solved."""
    rng = np.random.default_rng(seed)
    cells = [
        {"init": init, "model.width": width, "data.m": m}
        for init in inits
        for width in widths
        for m in samples
    ]
    return table_of([run(time(rng, c), seed=s, **c) for c in cells for s in range(seeds)])


def near(typical: float, rng: np.random.Generator) -> int:
    """Draw a time around the typical one, on looks every 100 steps."""
    return 100 * math.ceil(typical * math.exp(0.3 * rng.standard_normal()) / 100)


def with_chance(probability: float, rng: np.random.Generator) -> int | None:
    """Solve a run at 100 steps, or not at all."""
    return 100 if rng.random() < probability else None


def nothing_matters(rng: np.random.Generator, cell: dict[str, Any]) -> int:
    """Every run takes as long as every other, but for noise."""
    return near(3_000, rng)


def most_wrong(tables: int, level: float = 0.05) -> int:
    """Give the number of wrong decisions that bad luck of 1e-4 explains."""
    from scipy.stats import binom

    return int(binom.isf(1e-4, tables, level))


def decided(rule: Any, tables: Sequence[pl.DataFrame], level: float = 0.05) -> int:
    """Count the tables on which a rule decides."""
    return sum(rule.judge(table, level).judgement is not UNDECIDED for table in tables)


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw 100 resamples instead of 2000: error rates need many tables, not fine quantiles."""
    monkeypatch.setattr("petridish.analysis.times.RESAMPLES", 100)
    monkeypatch.setattr("petridish.analysis.theorems.RESAMPLES", 100)


# Tables for several rules


def curve(fit: int, left: int, *, every: int = 100, looks: int = 45) -> dict[str, Any]:
    """Make a run that fits its sample from `fit` on and leaves chance from `left` on."""
    steps = [every * look for look in range(looks)]
    return run(
        steps[-1],
        **{
            "curve.step": steps,
            "curve.train_error": [0.0 if step >= fit else 0.5 for step in steps],
            "curve.test_error": [0.05 if step >= left else 0.5 for step in steps],
        },
    )


def curves_of(ratios: Sequence[float]) -> pl.DataFrame:
    """Make runs that leave chance so many times later than they fit, at 1000 steps."""
    return table_of(
        [curve(1_000, round(1_000 * ratio)) | {"seed": s} for s, ratio in enumerate(ratios)]
    )


def tickets(
    ticket: Callable[[int], int | None],
    control: Callable[[], int | None],
    *,
    parents: int = 10,
    each: int = 5,
    controls: int = 50,
) -> pl.DataFrame:
    """Make runs from tickets of some parents, and of their control."""
    largest = [
        run(ticket(parent), seed=s, **{"init.chosen": "largest", "init.seed": parent})
        for parent in range(parents)
        for s in range(each)
    ]
    random = [
        run(control(), seed=s, **{"init.chosen": "random", "init.seed": None})
        for s in range(controls)
    ]
    return table_of(largest + random)


def over_sparse(
    probability: Callable[[int, int, float], float],
    *,
    sparsities: Sequence[int] = (4, 8, 16),
    widths: Sequence[int] = (8, 64),
    samples: Sequence[float] = (50.0, 100.0, 200.0, 400.0),
    seeds: int = 10,
    seed: int = 0,
) -> pl.DataFrame:
    """Draw runs from over-sparse starts, solved with a probability of (s, width, m)."""
    rng = np.random.default_rng(seed)
    rows = [
        run(
            with_chance(probability(s, width, m), rng),
            seed=number,
            init=f"over_sparse({s}, 2)",
            **{"init.s": s, "model.width": width, "data.m": m},
        )
        for s in sparsities
        for width in widths
        for m in samples
        for number in range(seeds)
    ]
    return table_of(rows)


LEAST_DATA = FrontierSlope("init.s", "data.m", "model.width", "rises", claimed=1)
LEAST_WIDTH = FrontierSlope("init.s", "model.width", "data.m", "falls")
RULES: dict[str, tuple[Any, Callable[[], pl.DataFrame]]] = {
    "quicker": (
        Quicker(),
        lambda: sweep(lambda rng, c: near(10_000 / c["model.width"] ** 0.5, rng)),
    ),
    "edge": (SlowAtTheEdge(), lambda: sweep(lambda rng, c: near(3e5 / c["data.m"], rng))),
    "valley of success": (
        Valley("success"),
        lambda: sweep(
            lambda rng, c: with_chance({100.0: 0.9, 200.0: 0.0, 400.0: 0.9}[c["data.m"]], rng),
            seeds=20,
        ),
    ),
    "valley of time": (
        Valley("time"),
        lambda: sweep(
            lambda rng, c: near({100.0: 9e3, 200.0: 1e3, 400.0: 9e3}[c["data.m"]], rng), seeds=20
        ),
    ),
    "best": (
        BestOrTied("init", "sparse(2)"),
        lambda: sweep(
            lambda rng, c: with_chance(1.0 if c["init"] == "sparse(2)" else 0.5, rng),
            inits=("sparse(2)", "sparse(3)", "uniform"),
        ),
    ),
    "more tickets": (
        TicketsWin("success"),
        lambda: tickets(lambda parent: 100 if parent else None, lambda: None),
    ),
    "sooner tickets": (
        TicketsWin("time"),
        lambda: tickets(lambda parent: 80 * (1 + parent), lambda: 900),
    ),
    "bound": (AboveTheBound(), lambda: sweep(nothing_matters)),
    "least data": (LEAST_DATA, lambda: over_sparse(lambda s, _, m: float(m >= 20 * s))),
    "least width": (LEAST_WIDTH, lambda: over_sparse(lambda s, r, _: float(r >= 80 / s))),
    "grokking": (Groks(), lambda: curves_of([2.4, 2.6, 2.7, 2.9, 3.1, 3.2, 3.3, 3.5])),
}


# Claims about all of them


@pytest.mark.parametrize("name", RULES)
def test_a_true_claim_is_supported(name: str) -> None:
    """Where the effect is large, every rule sees it, and its interval holds the estimate."""
    rule, table = RULES[name]
    finding = rule.judge(table(), 0.01)

    assert finding.judgement is SUPPORTED
    assert finding.low <= finding.estimate <= finding.high
    assert finding.n > 0


@pytest.mark.parametrize("name", RULES)
def test_the_order_of_rows_and_the_names_of_seeds_do_not_matter(name: str) -> None:
    """Runs come back from a store in any order; a seed is a name."""
    rule, table = RULES[name]
    plain = table()
    other = plain.sample(fraction=1.0, shuffle=True, seed=1).with_columns(
        seed=pl.col("seed") + 7_000
    )
    one, two = rule.judge(plain, 0.05), rule.judge(other, 0.05)

    assert (one.judgement, one.n, one.remark) == (two.judgement, two.n, two.remark)
    numbers = [(f.estimate, f.low, f.high) for f in (one, two)]
    assert numbers[0] == pytest.approx(numbers[1])


@pytest.mark.parametrize("name", RULES)
def test_without_runs_nothing_is_decided(name: str) -> None:
    """An empty table, one cell, one seed, no success: undecided, a remark, JSON without NaN."""
    rule, table = RULES[name]
    plain = table()
    first = plain.row(0, named=True)
    one_cell = plain.filter(
        (pl.col("data.m") == first["data.m"]) & (pl.col("model.width") == first["model.width"])
    )
    unsolved = plain.with_columns(
        outcome=pl.lit("OUT_OF_STEPS"), solved_at=pl.lit(None, dtype=pl.Int64)
    )
    poor = {"empty": plain.clear(), "unsolved": unsolved, "one seed": plain.filter(seed=0)}
    if name in ("quicker", "edge", "valley of success", "valley of time", "best", "least data"):
        poor["one cell"] = one_cell.filter(init=first["init"])
    if name in ("bound", "more tickets", "sooner tickets"):  # one seed is many parents, or cells
        del poor["one seed"]
    for runs in poor.values():
        finding = rule.judge(runs, 0.05)
        document = Verdict(Claim("x", "text", "source", rule), finding, 0.05).as_json()
        assert finding.judgement is UNDECIDED
        assert finding.remark
        assert all(value == value for value in document.values())


@pytest.mark.parametrize("name", ["quicker", "valley of time", "best", "least data"])
def test_adaptive_allocation_leaves_enough(name: str) -> None:
    """Where some cells have fewer seeds, a clear effect is still seen, from fewer runs."""
    rule, table = RULES[name]
    plain = table()
    some = plain.filter((pl.col("data.m") < 200) | (pl.col("seed") < 7))
    finding = rule.judge(some, 0.05)

    assert finding.judgement is SUPPORTED
    assert finding.n < rule.judge(plain, 0.05).n


@pytest.mark.parametrize("name", ["quicker", "edge", "valley of time", "bound", "best"])
def test_a_diverged_run_is_an_unsolved_one(name: str) -> None:
    """However a run failed, the finding is the same."""
    rule, table = RULES[name]
    failed = table().with_columns(
        solved_at=pl.when(pl.col("seed") == 3).then(None).otherwise(pl.col("solved_at"))
    )
    findings = [
        rule.judge(
            failed.with_columns(
                outcome=pl.when(pl.col("solved_at").is_null())
                .then(pl.lit(how))
                .otherwise(pl.lit("SOLVED"))
            ),
            0.05,
        )
        for how in ("DIVERGED", "OUT_OF_STEPS")
    ]

    assert findings[0] == findings[1]


# Times


def test_times_are_laid_out_by_hand() -> None:
    """Infinite where unsolved, NaN where not run, and solved before the first step is one step."""
    rows = [
        run(300, seed=4, **{"model.width": 10}),
        run(None, seed=2, **{"model.width": 10}),
        run(0, seed=2, **{"model.width": 20}),
        run(500, seed=4, init="sparse(2)", **{"model.width": 20, "init.s": 2}),
    ]
    strata, widths, times = solved_times(
        table_of(rows), along="model.width", within=("init", "init.s")
    )

    assert sorted(strata, key=str) == [("sparse(2)", 2), ("uniform", None)]
    assert widths == [10, 20]
    dense, sparse = (times[strata.index(key)] for key in (("uniform", None), ("sparse(2)", 2)))
    assert dense.tolist()[0] == [math.inf, 300]
    assert dense[1, 0] == 1
    assert np.isnan(dense[1, 1])
    assert np.isnan(sparse).tolist() == [[True, True], [True, False]]


def test_quicker_by_hand() -> None:
    """4 times as long in one stratum and 9 times in another: 6 in the geometric mean."""
    times = {(10, 100.0): 400, (10, 200.0): 900, (100, 100.0): 100, (100, 200.0): 100}
    finding = Quicker().judge(
        sweep(lambda _, c: times[c["model.width"], c["data.m"]], samples=(100.0, 200.0)), 0.05
    )

    assert finding.estimate == pytest.approx(6)
    assert finding.judgement is SUPPORTED
    assert finding.remark == "from 10 to 100, 2 of 2 strata known"
    assert finding.n == 40


def test_a_median_beyond_the_budget_is_not_guessed() -> None:
    """A stratum in which less than half of the narrow nets succeed is left out, and counted."""

    def time(rng: np.random.Generator, cell: dict[str, Any]) -> int | None:
        if cell["model.width"] == 10 and cell["data.m"] == 100:
            return None
        return 800 if cell["model.width"] == 10 else 100

    finding = Quicker().judge(sweep(time), 0.05)
    assert finding.estimate == pytest.approx(8)
    assert finding.remark == "from 10 to 100, 2 of 3 strata known"


def test_what_is_said_of_a_median_is_true() -> None:
    """Half succeed at both ends, though on different seeds: the remark does not deny it."""
    rows = [
        run(100 if (s < 5) == (width == 10) else None, seed=s, **{"model.width": width})
        for width in (10, 100)
        for s in range(10)
    ]
    finding = Quicker().judge(table_of(rows), 0.05)

    assert finding.judgement is UNDECIDED
    assert finding.remark != "in no stratum do half of the runs succeed at both ends"


def test_no_run_overwrites_another() -> None:
    """Two runs of one cell and seed, of other budgets: whichever comes first, one verdict."""
    falls = sweep(lambda _, c: 9_000 // c["model.width"])
    rises = sweep(lambda _, c: 9 * c["model.width"])
    short, long = (
        table.with_columns(pl.lit(steps).alias("training.steps"))
        for table, steps in ((falls, 1_000), (rises, 4_000))
    )
    judgements = [
        Quicker().judge(pl.concat(order), 0.05).judgement
        for order in ((short, long), (long, short))
    ]

    assert judgements[0] is judgements[1]


def test_wider_and_slower_contradicts() -> None:
    """The opposite of the claim; and more data making runs slower, for the edge."""
    slower = sweep(lambda rng, c: near(100 * c["model.width"] ** 0.5, rng))
    later = sweep(lambda rng, c: near(10 * c["data.m"], rng))

    assert Quicker().judge(slower, 0.05).judgement is CONTRADICTED
    assert SlowAtTheEdge().judge(later, 0.05).judgement is CONTRADICTED


def test_the_edge_by_hand() -> None:
    """Infeasible at 100, 900 steps at 200, 300 and 600 beyond: 3 times the best."""
    times: dict[float, int | None] = {100.0: None, 200.0: 900, 400.0: 300, 800.0: 600}
    finding = SlowAtTheEdge().judge(
        sweep(lambda _, c: times[c["data.m"]], samples=(100.0, 200.0, 400.0, 800.0)), 0.05
    )

    assert finding.estimate == pytest.approx(3)
    assert (finding.low, finding.high) == pytest.approx((3, 3))
    online = sweep(lambda _, c: 300 if c["data.m"] == math.inf else 900, samples=(9.0, math.inf))
    assert SlowAtTheEdge().judge(online, 0.05).estimate == pytest.approx(3)


def test_strata_that_lack_an_end_are_left_out() -> None:
    """Narrow nets were not run with the smallest sample: the others are compared."""
    rule, table = RULES["quicker"]
    part = table().filter((pl.col("model.width") > 10) | (pl.col("data.m") > 100))

    assert rule.judge(part, 0.05).n == 2 * 2 * 10
    assert rule.judge(part, 0.05).judgement is SUPPORTED


@pytest.mark.parametrize("seeds", [2, 3, 12])
def test_quicker_keeps_its_level(seeds: int) -> None:
    """60 tables in which width does not matter, also of few seeds: one stratum, level 5 %."""
    tables = [
        sweep(nothing_matters, samples=(100.0,), seeds=seeds, seed=seed) for seed in range(60)
    ]

    assert decided(Quicker(), tables) <= most_wrong(60)


@pytest.mark.parametrize("samples", [2, 12])
def test_the_edge_keeps_its_level(samples: int) -> None:
    """30 tables in which the sample size does not matter: the best of many is best by luck."""
    sizes = [100.0 * 2**i for i in range(samples)]
    tables = [sweep(nothing_matters, samples=sizes, seeds=12, seed=seed) for seed in range(30)]

    assert decided(SlowAtTheEdge(), tables) <= most_wrong(30)


@pytest.mark.parametrize("score", ["success", "time"])
@pytest.mark.parametrize("chance", [0.5, 0.9])
def test_valleys_are_rarely_seen_where_there_are_none(
    score: Literal["success", "time"], chance: float
) -> None:
    """Over 20 tables of 8 cells, 5 % find one by luck."""
    tables = [
        sweep(
            lambda rng, c: near(3_000, rng) if rng.random() < chance else None,
            samples=(1.0, 2.0, 3.0, 4.0),
            seed=seed,
        )
        for seed in range(20)
    ]

    assert decided(Valley(score), tables) <= most_wrong(20)


@pytest.mark.parametrize("score", ["success", "time"])
def test_a_slope_is_no_valley(score: Literal["success", "time"]) -> None:
    """What only falls, or only rises, or rises before it falls, is undecided."""
    rises = {100.0: 0.0, 200.0: 0.5, 400.0: 1.0}
    falls = {100.0: 1.0, 200.0: 0.5, 400.0: 0.0}
    for chance in (rises, falls, {100.0: 0.0, 200.0: 1.0, 400.0: 0.0}):
        height = {m: 1 - p if score == "time" else p for m, p in chance.items()}
        table = sweep(lambda rng, c, h=height: with_chance(h[c["data.m"]], rng), seeds=20)  # type: ignore[misc]
        finding = Valley(score).judge(table, 0.05)
        assert finding.judgement is UNDECIDED
        assert finding.remark.endswith("none after the other")


def test_a_valley_by_hand() -> None:
    """90 %, none, then 75 % solved: it is 75 points deep, at the width where it is."""
    solved = {100.0: 18, 200.0: 0, 400.0: 15}
    rows = [
        run(
            100 if s < (solved[m] if width == 10 else 20) else None,
            seed=s,
            **{"model.width": width, "data.m": m},
        )
        for width in (10, 100)
        for m in solved
        for s in range(20)
    ]
    finding = Valley("success").judge(table_of(rows), 0.05)

    assert finding.judgement is SUPPORTED
    assert finding.estimate == pytest.approx(0.75)
    assert finding.remark == (
        "at sparse_parity(50, 3), uniform, 10: 90% with data.m = 100, 0% with 200, 75% with 400"
    )


def test_equal_times_are_no_valley() -> None:
    """Every run solved at the first look: ranks all tie, and nothing is said."""
    finding = Valley("time").judge(sweep(lambda _, c: 100), 0.05)

    assert finding.judgement is UNDECIDED
    assert (finding.estimate, finding.n) == (1.0, 60)


@pytest.mark.parametrize("solved", [50, 24])
def test_a_valley_between_cells_that_fail_has_a_depth(solved: int) -> None:
    """Never, sometimes, never: the remark names no infinite time, and no estimate is NaN."""
    table = table_of(
        [
            run(100 if m == 200 and s < solved else None, seed=s, **{"data.m": m})
            for m in (100.0, 200.0, 400.0)
            for s in range(50)
        ]
    )
    finding = Valley("time").judge(table, 0.05)

    assert not math.isnan(finding.estimate)
    assert finding.low <= finding.estimate <= finding.high
    assert "inf steps" not in finding.remark


# The best of many, and tickets


def test_another_that_is_better_contradicts() -> None:
    """The remark ranks all; the quantity names the one that gains most."""
    chances = {"sparse(2)": 0.2, "sparse(3)": 1.0, "uniform": 0.0}
    finding = BestOrTied("init", "sparse(2)").judge(
        sweep(lambda rng, c: with_chance(chances[c["init"]], rng), inits=tuple(chances)), 0.05
    )

    assert finding.judgement is CONTRADICTED
    assert finding.quantity == (
        "largest gain in success of another init over sparse(2) (sparse(3))"
    )
    assert finding.remark.startswith("success sparse(3) 100%, sparse(2) ")
    assert finding.remark.endswith("uniform 0%")


def test_ties_need_many_runs_to_be_supported() -> None:
    """All equal: with few runs a gain of 0.1 is not excluded, with many it is."""

    def all_solved(seeds: int) -> Finding:
        return BestOrTied("init", "sparse(2)").judge(
            sweep(lambda rng, c: 100, inits=("sparse(2)", "uniform"), seeds=seeds), 0.05
        )

    assert all_solved(3).judgement is UNDECIDED
    assert all_solved(60).judgement is SUPPORTED
    assert all_solved(60).estimate == 0


def test_the_best_needs_company() -> None:
    """Alone, absent, or filtered away, the candidate is compared with nothing."""
    rule = BestOrTied("init", "sparse(2)", at_least={"model.width": 500})
    alone = sweep(nothing_matters, inits=("sparse(2)",))
    both = sweep(nothing_matters, inits=("sparse(2)", "uniform"))

    for table in (alone, both.filter(init="uniform"), both):
        finding = rule.judge(table, 0.05)
        assert finding.judgement is UNDECIDED
        assert finding.remark == "sparse(2) was not run beside another value"


def test_the_best_keeps_its_level() -> None:
    """100 tables in which four starts are equal: at most 5 % call another better, or it best."""
    tables = [
        sweep(
            lambda rng, c: with_chance(c["data.m"] / 500, rng),
            inits=("sparse(1)", "sparse(2)", "sparse(3)", "uniform"),
            seed=seed,
        )
        for seed in range(100)
    ]

    assert decided(BestOrTied("init", "sparse(2)"), tables) <= most_wrong(100)


def test_a_verdict_and_its_interval_agree() -> None:
    """One start gains much but unevenly, another surely: the interval shown excludes 0.

    By hand: `uneven` solves every cell of half of the seeds, `sure` a third of the cells of each.
    """
    rows = []
    for width in range(1, 17):
        for s in range(8):
            solved = {"own": False, "uneven": s < 4, "sure": (width + s) % 3 == 0}
            rows += [
                run(100 if yes else None, init=init, seed=s, **{"model.width": width})
                for init, yes in solved.items()
            ]
    finding = BestOrTied("init", "own").judge(table_of(rows), 0.05)

    assert finding.judgement is CONTRADICTED
    assert finding.low > 0


@pytest.mark.parametrize("score", ["success", "time"])
def test_tickets_that_lose_contradict(score: Any) -> None:
    """The control does better than the tickets."""
    finding = TicketsWin(score).judge(
        tickets(lambda parent: None if parent else 900, lambda: 100), 0.05
    )

    assert finding.judgement is CONTRADICTED
    assert finding.remark == "5 of 50 runs of 10 tickets solved, 50 of 50 of the control"
    assert finding.n == 100


def test_sooner_is_mann_and_whitneys_statistic() -> None:
    """The probability of being solved first is U over the number of pairs, late ones tying."""
    from scipy.stats import mannwhitneyu

    rng = np.random.default_rng(0)
    draw = [None if rng.random() < 0.3 else int(rng.integers(1, 9)) * 100 for _ in range(100)]
    first, second = iter(draw[:50]), iter(draw[50:])
    table = tickets(lambda _: next(first), lambda: next(second))
    sides = [[1e9 if time is None else time for time in half] for half in (draw[50:], draw[:50])]

    finding = TicketsWin("time").judge(table, 0.05)
    assert finding.estimate == pytest.approx(mannwhitneyu(*sides).statistic / 2_500)


@pytest.mark.parametrize("score", ["success", "time"])
@pytest.mark.parametrize(("parents", "each"), [(10, 5), (2, 1)])
def test_tickets_keep_their_level(score: Any, parents: int, each: int) -> None:
    """200 tables in which tickets and controls are alike, also where there are few of both."""
    tables = []
    for seed in range(200):
        rng = np.random.default_rng(seed)

        def time(parent: int = 0, rng: np.random.Generator = rng) -> int | None:
            return with_chance(0.5, rng)

        tables.append(tickets(time, time, parents=parents, each=each, controls=parents * each))

    assert decided(TicketsWin(score), tables) <= most_wrong(200)


def test_runs_of_one_parent_are_not_independent() -> None:
    """Where each parent's ticket is all luck or none, 200 worlds without an effect stay level."""
    tables = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        lucky = rng.random(12) < 0.5

        def ticket(parent: int, lucky: Any = lucky) -> int | None:
            return 100 if lucky[parent] else None

        def control(rng: np.random.Generator = rng) -> int | None:
            return with_chance(0.5, rng)

        tables.append(tickets(ticket, control, parents=12, each=4))

    assert decided(TicketsWin("success"), tables) <= most_wrong(200)


def test_where_all_agree_an_interval_remains() -> None:
    """Three of three tickets against none of three controls is not certainty."""
    table = tickets(lambda _: 100, lambda: None, parents=3, each=1, controls=3)
    finding = TicketsWin("success").judge(table, 0.05)

    assert finding.estimate == 1
    assert finding.low < 1


def test_without_tickets_nothing_is_said() -> None:
    """A table of other runs, or of one parent."""
    assert TicketsWin().judge(sweep(nothing_matters), 0.05).remark == "no run begins with a ticket"
    one = tickets(lambda _: 100, lambda: 100, parents=1)
    assert TicketsWin().judge(one, 0.05).remark == (
        "needs tickets of three parents, and three control runs"
    )


# Two thresholds


def test_classes_by_hand() -> None:
    """Every combination of fitted and solved, with a look every 100 steps.

    A run that is solved at 1000 was not at 900; one fitted from the start counts as fitted at 1.
    """
    rows = [
        (run(500, fitted_at=500), "solved at once"),
        (run(1_000, fitted_at=500), "solved at once"),
        (run(1_100, fitted_at=500), "grokked"),
        (run(100, fitted_at=0), "solved at once"),
        (run(200, fitted_at=0), "grokked"),
        (run(0, fitted_at=0), "solved at once"),
        (run(500), "solved at once"),
        (run(500, **{"data.m": math.inf}), "solved at once"),
        (run(None, fitted_at=500), "memorised only"),
        (run(None, fitted_at=500, outcome="DIVERGED"), "memorised only"),
        (run(None), "never fitted"),
        (run(None, outcome="DIVERGED"), "never fitted"),
    ]
    runs = table_of([row for row, _ in rows]).with_columns(pl.lit(100).alias("evaluation.every"))
    table = with_classes(runs)

    assert table["class"].to_list() == [name for _, name in rows]


def test_grokking_by_hand() -> None:
    """Delays of 2, 3 and 4, less one look of 0.1, have the median 2.9.

    Runs that learn at once do not count in it.
    """
    table = pl.concat([curves_of([2, 3, 4] * 4), curves_of([1.0] * 5)])
    finding = Groks().judge(table, 0.05)

    assert finding.estimate == 2.9
    assert finding.n == 17
    assert finding.remark == (
        "12 of 17 solved runs were at chance when they had fitted; the longest delay is 4"
    )


def test_runs_that_never_grok_contradict_in_numbers() -> None:
    """None of 20 is too few, none of 200 is rare: as Wilson's interval says."""
    assert Groks().judge(curves_of([1.0] * 20), 0.05).judgement is UNDECIDED
    assert Groks().judge(curves_of([1.0] * 200), 0.05).judgement is CONTRADICTED
    assert wilson_interval(0, 20)[1] > 0.05 > wilson_interval(0, 200)[1]


def test_short_delays_are_undecided() -> None:
    """Runs that are half a look late have not grokked, nor do they show that none does."""
    assert Groks().judge(curves_of([1.3] * 100), 0.05).judgement is UNDECIDED


@pytest.mark.parametrize("runs", [2, 3, 10])
def test_grokking_keeps_its_level(runs: int) -> None:
    """Delays of 1.5 and 2.5 at even odds: the median is not above 2, say 95 % of 200 tables."""
    rng = np.random.default_rng(0)
    tables = [curves_of(rng.choice([1.5, 2.5], size=runs).tolist()) for _ in range(200)]

    assert decided(Groks(), tables) <= most_wrong(200)


def test_what_one_seed_does_at_six_widths_counts_once() -> None:
    """Runs of one seed share their data: 60 runs of 10 seeds say no more than 10 runs.

    As above, a seed's delay is 1.5 or 2.5 at even odds, whatever the width.
    """
    rng = np.random.default_rng(0)
    tables = []
    for _ in range(100):
        ratios = rng.choice([1.5, 2.5], size=10).tolist()
        widths = [10, 20, 30, 40, 50, 60]
        tables.append(
            pl.concat(
                [curves_of(ratios).with_columns(pl.lit(w).alias("model.width")) for w in widths]
            )
        )

    assert decided(Groks(), tables) <= most_wrong(100)


def test_one_look_is_no_delay() -> None:
    """Fitted between looks 0 and 1 and generalising between 1 and 2: maybe in the same step.

    Fitted at 450 steps and at chance until 550, with a look every 500: a ratio of 1.2.
    """
    table = table_of([curve(450, 550, every=500) | {"seed": s} for s in range(20)])

    assert Groks().judge(table, 0.05).judgement is UNDECIDED


def test_grokking_needs_curves_and_a_sample() -> None:
    """Without curves, online, and unsolved, there is nothing to see."""
    plain = curves_of([3.0] * 9)
    online = plain.with_columns(
        pl.col("curve.train_error").list.eval(pl.element() * math.nan), data_m=math.inf
    )

    assert Groks().judge(sweep(nothing_matters), 0.05).remark == "these runs kept no curves"
    for table in (online, plain.with_columns(outcome=pl.lit("OUT_OF_STEPS"))):
        assert Groks().judge(table, 0.05).remark == "no run was solved from a sample"


def test_a_lax_target_does_not_stop_the_rule() -> None:
    """A run may be solved by its target error and still be at what the rule calls chance."""
    lax = curve(500, 10**9) | {"outcome": "SOLVED"}

    assert Groks().judge(table_of([lax] * 3), 0.05).judgement is UNDECIDED


# Theorems


def test_the_bound_by_hand() -> None:
    """One cell, 9 of 10 solved at 700 steps: (10 · 52 + 1) · 700 · 100 / 0.9 over ½ C(50, 3)."""
    table = table_of([run(700 if s else None, seed=s) for s in range(10)])
    low, high = anytime_interval(9, 10)
    product = 521 * 700 * 100 / 9_800
    finding = AboveTheBound().judge(table, 0.05)

    assert finding.estimate == pytest.approx(product / 0.9)
    assert (finding.low, finding.high) == pytest.approx((product / high, product / low))
    assert finding.judgement is SUPPORTED
    assert (finding.n, finding.remark) == (10, "over 1 cells")


def test_the_least_cell_counts() -> None:
    """Cells that fail, online cells and other tasks are passed over."""
    cheap = [run(100, seed=s) for s in range(5)]
    others = [
        *(run(500, seed=s, **{"model.width": 20}) for s in range(5)),
        *(run(1 if s < 2 else None, seed=s, **{"model.width": 1}) for s in range(5)),
        *(run(1, seed=s, **{"data.m": math.inf}) for s in range(5)),
        *(run(1, seed=s, task="sparse_majority(50, 3)") for s in range(5)),
    ]
    one, all_cells = (AboveTheBound().judge(table_of(r), 0.05) for r in (cheap, cheap + others))

    assert all_cells.estimate == pytest.approx(one.estimate)
    assert all_cells.remark == "over 2 cells"
    online = AboveTheBound().judge(table_of(others[10:15]), 0.05)
    assert online.remark == "no offline cell succeeds in half of its runs"


def test_a_success_below_the_bound_contradicts() -> None:
    """Twenty runs of a tiny net that find one of 10⁹ sets at once, from ten examples."""
    columns = {"task.n": 50, "task.k": 9, "task": "sparse_parity(50, 9)", "data.m": 10.0}
    table = table_of([run(1, seed=s, **columns) for s in range(20)])

    assert AboveTheBound().judge(table, 0.05).judgement is CONTRADICTED


def test_steps_and_success_belong_together() -> None:
    """Half solved at 100 steps, all at 1000: at neither time is the bound of ½ C(50, 5) broken.

    At 100 steps the success is ½ and the product 1.4 times the bound; at 1000 it is 7 times.
    """
    columns = {"task": "sparse_parity(50, 5)", "task.k": 5, "data.m": 140.0, "model.width": 1}
    table = table_of([run(100 if s < 10 else 1_000, seed=s, **columns) for s in range(20)])

    assert AboveTheBound().judge(table, 0.05).judgement is not CONTRADICTED


def test_slopes_by_hand() -> None:
    """The least m is 20 s, the least width 512 / s: slopes 1 and −1, read at the largest other."""
    data = LEAST_DATA.judge(
        over_sparse(lambda s, r, m: float(m >= 25 * s and r == 64), samples=(100.0, 200.0, 400.0)),
        0.05,
    )
    width = LEAST_WIDTH.judge(
        over_sparse(
            lambda s, r, m: float(r >= 512 / s and m == 400), widths=(8, 16, 32, 64, 128, 256)
        ),
        0.05,
    )

    assert data.estimate == pytest.approx(1)
    assert data.remark == "s = 4: 100, s = 8: 200, s = 16: 400; the bound's exponent is 1"
    assert width.estimate == pytest.approx(-1)
    assert width.remark == "s = 4: 128, s = 8: 64, s = 16: 32"
    assert (data.judgement, width.judgement) == (SUPPORTED, SUPPORTED)


def test_slopes_of_the_other_sign_contradict() -> None:
    """Less data and more width with more ones a neuron; flat frontiers say nothing."""
    data = over_sparse(lambda s, r, m: float(m >= 1_600 / s))
    width = over_sparse(lambda s, r, m: float(r >= 6 * s), widths=(8, 64, 512))
    flat = over_sparse(lambda s, r, m: float(m >= 200 and r >= 64))

    assert LEAST_DATA.judge(data, 0.05).judgement is CONTRADICTED
    assert LEAST_WIDTH.judge(width, 0.05).judgement is CONTRADICTED
    for rule in (LEAST_DATA, LEAST_WIDTH):
        assert rule.judge(flat, 0.05).judgement is UNDECIDED
        assert rule.judge(flat, 0.05).estimate == 0


def test_what_nothing_suffices_for_is_one_step_beyond_the_grid() -> None:
    """Grid to 400 by factors of 2: where all fails, 800."""
    finding = LEAST_DATA.judge(over_sparse(lambda s, r, m: float(s < 16)), 0.05)

    assert finding.remark.startswith("s = 4: 50, s = 8: 50, s = 16: 800;")


@pytest.mark.parametrize("most", [4, 8])
def test_an_online_column_has_a_place_on_the_axis(most: int) -> None:
    """Where only endless data suffices, or nothing does, the slope is a number."""
    table = over_sparse(
        lambda s, r, m: float(m == math.inf and s == 8) if s > most / 2 else float(m >= 100),
        samples=(50.0, 100.0, 200.0, math.inf),
    )
    finding = LEAST_DATA.judge(table, 0.05)

    assert math.isfinite(finding.estimate)


def test_slopes_of_two_tasks_are_not_mixed_up() -> None:
    """Whichever task's runs come first, the finding is the same."""
    one = over_sparse(lambda s, r, m: float(m >= 20 * s))
    two = over_sparse(lambda s, r, m: 1.0).with_columns(task=pl.lit("sparse_parity(60, 3)"))
    findings = [LEAST_DATA.judge(pl.concat(order), 0.05) for order in ((one, two), (two, one))]

    assert findings[0] == findings[1]


@pytest.mark.parametrize("seeds", [2, 10])
def test_slopes_keep_their_level(seeds: int) -> None:
    """30 tables in which s does not matter, also of two seeds."""
    tables = [
        over_sparse(
            lambda s, r, m: 1 / (1 + (150 / m) ** 2),
            sparsities=(4, 8, 16, 32),
            widths=(8,),
            seeds=seeds,
            seed=seed,
        )
        for seed in range(30)
    ]

    assert decided(LEAST_DATA, tables) <= most_wrong(30)


def test_a_missing_cell_decides_no_slope() -> None:
    """One s was not run with the largest width: there is no seed that all have."""
    table = over_sparse(lambda s, r, m: float(m >= 20 * s))
    part = table.filter((pl.col("init.s") < 16) | (pl.col("data.m") < 400))
    finding = LEAST_DATA.judge(part, 0.05)

    assert finding.judgement is UNDECIDED
    assert finding.remark == "needs two values of init.s and data.m, two seeds"
    assert LEAST_DATA.judge(sweep(nothing_matters), 0.05).remark == (
        "no run starts from over_sparse"
    )


def test_recovery_is_simulated_in_small() -> None:
    """Two sizes and few trials: the claim is k − s − 1 = 1, and no run takes part."""
    wide, strict = (
        RecoverySlope(k=4, s=2, n_values=(11, 21), trials=10, tolerance=tolerance).judge(
            pl.DataFrame(), 0.05
        )
        for tolerance in (50.0, 0.0)
    )

    assert (wide.judgement, strict.judgement is SUPPORTED) == (SUPPORTED, False)
    assert wide.estimate == strict.estimate
    assert wide.low <= wide.estimate <= wide.high
    assert wide.n == 20
    assert wide.remark.startswith("claimed 1, expected at these n ")
    assert wide.remark.endswith("; n = 11, 21")


def test_a_subnetwork_is_simulated_in_small() -> None:
    """Many examples find the parity, a handful does not."""
    many, few = (
        SubnetworkAgrees(n=9, k=4, s=2, m=m, trials=6).judge(pl.DataFrame(), 0.05)
        for m in (20_000, 2)
    )

    assert many.judgement is SUPPORTED
    assert few.judgement is not SUPPORTED
    assert many.low <= many.estimate <= many.high
    assert (many.n, many.remark) == (6, "m = 20,000")
