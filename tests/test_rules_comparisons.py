"""Rules that compare: the best of many, and tickets with their control."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from petridish.chapters.pareto.rules.tickets import TicketsImprove, TicketsWin, times_to
from petridish.errors import UserError
from petridish.rules.claims import Finding
from petridish.rules.comparisons import BestOrTied
from petridish.rules.success import Beats, FrontierShrinks, NeverDecreases
from petridish.training import RunSpec
from tests.outcome_worlds import RATES, End, world
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

RATE = ("training.learning_rate",)
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
    """The controls do better than the tickets."""
    table = tickets(lambda parent: None if parent and score == "success" else 900, lambda: 100)
    finding = TicketsWin(score).judge(table, 0.05)

    assert finding.judgement is CONTRADICTED
    solved = 5 if score == "success" else 50
    assert finding.remark == (
        f"tickets {solved} of 50 (median step 900), random neurons 50 of 50 (median step 100), "
        "new networks 50 of 50 (median step 100)"
    )
    assert finding.n == 150


def test_one_control_that_does_as_well_leaves_it_open() -> None:
    """Tickets beat random neurons and tie with new networks: the lesser advantage decides."""
    new = iter([None] * 50 + [100] * 50)
    table = tickets(lambda _: 100, lambda: next(new))
    finding = TicketsWin("success").judge(table, 0.05)

    assert finding.judgement is UNDECIDED
    assert finding.quantity == "share solved, tickets − control (new networks)"
    assert finding.estimate == 0


def test_tickets_that_do_not_improve_contradict() -> None:
    """One parent of ten improves; or all do, and so does every random network."""
    few = tickets(lambda parent: None if parent else 100, lambda: None)
    everyone = tickets(lambda _: 100, lambda: 100)
    half = iter([100, None] * 25 + [None] * 50)
    alone = tickets(lambda _: 100, lambda: None)
    open_question = tickets(lambda _: 100, lambda: next(half))

    assert TicketsImprove().judge(few, 0.05).judgement is CONTRADICTED
    assert TicketsImprove().judge(everyone, 0.05).judgement is CONTRADICTED
    assert TicketsImprove().judge(open_question, 0.05).judgement is UNDECIDED  # half of one
    assert TicketsImprove(few=0.2).judge(open_question, 0.05).judgement is CONTRADICTED
    assert TicketsImprove().judge(alone, 0.05).judgement is SUPPORTED


def test_improving_and_being_solved_are_read_off_the_curve() -> None:
    """20 % error at step 300, 10 % at step 700, never 5 %."""
    row = run(None, **{"curve.step": [0, 300, 700], "curve.test_error": [0.5, 0.2, 0.1]})
    table = table_of([row])

    assert [times_to(table, error)[0] for error in (0.25, 0.1, 0.05)] == [300, 700, math.inf]


def test_sooner_is_mann_and_whitneys_statistic() -> None:
    """The probability of being solved first is U over the pairs of runs that are solved."""
    from scipy.stats import mannwhitneyu

    rng = np.random.default_rng(0)
    draw = [int(rng.integers(1, 9)) * 100 for _ in range(100)]
    late = [None if rng.random() < 0.3 else time for time in draw[50:]]
    first, second = iter(draw[:50]), iter(late * 2)
    table = tickets(lambda _: next(first), lambda: next(second))
    solved = [time for time in late if time is not None]
    statistic = mannwhitneyu(solved, draw[:50]).statistic

    finding = TicketsWin("time").judge(table, 0.05)
    assert finding.estimate == pytest.approx(statistic / (50 * len(solved)))


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
    one = tickets(lambda _: 100, lambda: 100, parents=1)
    never = tickets(lambda _: 100, lambda: None)

    for table in (sweep(nothing_matters), one):
        assert TicketsWin().judge(table, 0.05).remark == (
            "needs tickets of three parents, and three runs of each control"
        )
    assert TicketsWin("time").judge(never, 0.05).remark == (
        "too few of them are solved: tickets 50 of 50 (median step 100), random neurons 0 of 50, "
        "new networks 0 of 50"
    )


@pytest.mark.parametrize(
    "rule",
    [
        NeverDecreases("model.width", ("data.m",), best_over=RATE),
        FrontierShrinks("model.width", "data.m", ("task",), best_over=RATE),
        Beats("model.width", 20, 10, ("data.m",), best_over=RATE),  # type: ignore[arg-type] # a number
        BestOrTied("model.width", 20, ("data.m",), best_over=RATE),  # type: ignore[arg-type] # a number
    ],
    ids=lambda rule: type(rule).__name__,
)
def test_a_rule_about_success_takes_every_cell_at_its_best_rate(rule: Any) -> None:
    """Only the largest rate solves, and only the wide network does; else it is refused."""

    def end(spec: RunSpec) -> End:
        wide = spec.model.width == 20  # type: ignore[attr-defined] # an MLP
        return {"solved_at": 100} if wide and spec.training.learning_rate == 1.0 else {}

    widths = {"model.width": (10, 20), "data.m": (100, 200)}
    runs = world({**widths, "training.learning_rate": RATES, "seed": range(20)}, end)
    finding = rule.judge(runs, 0.05)

    assert finding.judgement is SUPPORTED
    assert finding.n == 2 * 2 * 20
    assert ", at the best training.learning_rate" in finding.quantity
    with pytest.raises(UserError) as error:
        replace(rule, best_over=()).judge(runs, 0.05)
    assert str(error.value).endswith(
        " and differ in training.learning_rate: choose one value by --set lr=… (in Python "
        "settings={'lr': […]})."
    )
