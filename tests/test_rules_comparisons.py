"""Rules that compare: the best of many, and tickets with their control."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from petridish.chapters.pareto.rules.tickets import TicketsWin
from petridish.rules.claims import Finding
from petridish.rules.comparisons import BestOrTied
from tests.rule_worlds import (
    CONTRADICTED,
    SUPPORTED,
    UNDECIDED,
    decided,
    most_wrong,
    nothing_matters,
    run,
    sweep,
    table_of,
    tickets,
    with_chance,
)

pytestmark = pytest.mark.usefixtures("few_resamples")


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
