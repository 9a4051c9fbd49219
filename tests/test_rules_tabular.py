"""The tabular rules: worlds in which width, sparse starts and forests matter, or do not.

A world has tasks with their own luck, splits that are hard for every method, and noise of each fit.
Rules at level α may decide wrongly with probability α; `most_wrong` allows for bad luck of 1e-4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from petridish.chapters.tables.error_arrays import errors_of
from petridish.chapters.tables.gains import sparse_gains, width_gains
from petridish.chapters.tables.rules import (
    Competitive,
    LowerError,
    MostAtSmallSamples,
    SparseHelps,
    WidthHelps,
)
from petridish.rules.claims import Finding
from tests.rule_worlds import CONTRADICTED, SUPPORTED, UNDECIDED, decided, most_wrong
from tests.tabular_worlds import (
    CONTENDERS,
    LEVELS,
    Method,
    Numbers,
    by_family,
    by_start,
    by_width,
    equal,
    forests,
    mlp,
    world,
)


def worlds(count: int, *arguments: Any, **options: Any) -> list[pl.DataFrame]:
    """Draw a world again and again."""
    return [world(*arguments, seed=seed, **options) for seed in range(count)]


RULES: dict[str, tuple[Any, Callable[[float], pl.DataFrame]]] = {
    "width": (WidthHelps(), lambda effect: world(by_width(effect))),
    "sparse": (SparseHelps(), lambda effect: world(by_start(equal(effect)))),
    "small samples": (
        MostAtSmallSamples(),
        lambda effect: world(by_start({50.0: effect, 300.0: 0.0, 2_000.0: 0.0})),
    ),
    "competitive": (
        Competitive(),
        lambda effect: world(by_family({"mlp": 0.01 - effect}), CONTENDERS),
    ),
    "lower": (
        LowerError("mlp(100, (100,))", "random_forest"),
        lambda effect: world(by_family({"mlp": -effect}), [mlp(100), *forests(4)]),
    ),
}


def judged(name: str, effect: float) -> Finding:
    """Judge a world with an effect in favour of the claim, or against it."""
    rule, draw = RULES[name]
    finding: Finding = rule.judge(draw(effect), 0.05)
    return finding


@pytest.mark.parametrize("name", RULES)
def test_an_effect_supports_its_opposite_contradicts(name: str) -> None:
    """Two percentage points in favour, two against: intervals and verdicts agree."""
    neutral = 1.0 if name == "competitive" else 0.0
    side = -1 if name in ("competitive", "lower") else 1
    favour, against = judged(name, 0.02), judged(name, -0.02)

    assert favour.judgement is SUPPORTED
    assert against.judgement is CONTRADICTED
    assert min(side * (favour.low - neutral), side * (favour.high - neutral)) > 0
    assert max(side * (against.low - neutral), side * (against.high - neutral)) < 0
    assert favour.n > 0


@pytest.mark.parametrize("name", RULES)
def test_without_an_effect_nothing_is_decided(name: str) -> None:
    """One world without an effect, or at the margin, stays open."""
    assert judged(name, 0.0).judgement is UNDECIDED


@pytest.mark.parametrize("name", LEVELS)
def test_rules_keep_their_level(name: str) -> None:
    """150 worlds without an effect, whose tasks vary: at most 5 % are decided."""
    rule, effect, methods = LEVELS[name]
    tables = worlds(150, effect, methods, tasks=8, trials=6)

    assert decided(rule, tables) <= most_wrong(150)


# Width


def test_the_gain_of_width_by_hand() -> None:
    """Three tasks, one trial: the error falls by 2, 4 and 3 points per tenfold; the mean is 3.

    Task b was run at width 10 000 too, where the fall is 8 points over two decades.
    """
    rows = [
        ("a", 100, 0.30),
        ("a", 1_000, 0.28),
        ("b", 100, 0.30),
        ("b", 1_000, 0.29),
        ("b", 10_000, 0.22),
        ("c", 100, 0.30),
        ("c", 1_000, 0.27),
    ]
    table = pl.concat(
        [
            world(methods=[mlp(width)], tasks=1, samples=(50.0,), trials=1).with_columns(
                pl.lit(task).alias("task.dataset"), pl.lit(error).alias("test_error")
            )
            for task, width, error in rows
        ]
    )
    finding = WidthHelps().judge(table, 0.05)

    assert finding.estimate == pytest.approx(3.0)
    assert finding.n == 6
    assert finding.quantity == "fall of the error per tenfold width, percentage points"
    assert finding.remark == (
        "width helps on 3 of 3 tasks, harms on 0 (signed-rank p = 0.25); 0 of 4 single steps are "
        "significantly worse, 0 in the mere mean; mean steps 100 to 1000 +2.00, "
        "1000 to 10000 +7.00"
    )


def test_a_dip_along_the_way_contradicts_monotony() -> None:
    """The error falls from end to end, but rises at one step on average over tasks."""

    def dip(method: Method, m: float, luck: Numbers) -> Numbers:
        return {100: 0.0, 300: -0.05, 1_000: -0.03}[method.width or 0] + 0.002 * luck

    finding = WidthHelps().judge(world(dip), 0.05)

    assert finding.low > 0
    assert finding.judgement is CONTRADICTED
    assert finding.remark.endswith("; significantly worse on average: 300 to 1000")


@pytest.mark.parametrize(("share", "judgement"), [(0.1, SUPPORTED), (0.02, CONTRADICTED)])
def test_exceptions_are_counted(share: float, judgement: Any) -> None:
    """On one task of twelve every step but the first is worse: 6 of 144 single steps, 4 %.

    «Nearly» allows a tenth of them; a stricter share does not.
    """

    def effect(method: Method, m: float, luck: Numbers) -> Numbers:
        gain = {100: 0.0, 300: -0.05, 1_000: -0.06}[method.width or 0] + 0.0 * luck
        gain[0] = {100: 0.0, 300: -0.15, 1_000: -0.12}[method.width or 0]
        return gain

    finding = WidthHelps(share=share).judge(world(effect, noise=0.003), 0.05)

    assert "6 of 144 single steps are significantly worse" in finding.remark
    assert finding.judgement is judgement


def test_only_nets_of_one_width_are_compared() -> None:
    """A net with layers of 1000 and 10 neurons is no wider relative of one with 100 and 100."""
    uneven = Method("mlp(1000, (10,))", 1_000, (10,))
    table = world(methods=[mlp(100), mlp(300), uneven], trials=2)
    ends, _ = width_gains(errors_of(table.filter(pl.col("model") != uneven.model)))

    assert WidthHelps().judge(table, 0.05).n == ends.runs == 2 * 12 * 3 * 2


def test_widths_are_compared_at_equal_conditions_alone() -> None:
    """Nets that differ in weight decay, init or depth too are no pair."""
    apart = [mlp(100), mlp(300, decay=0.01), mlp(300, init="sparse(2)"), mlp(300, depth=3)]
    finding = WidthHelps().judge(world(methods=apart), 0.05)

    assert finding.judgement is UNDECIDED
    assert finding.remark == "needs two widths at equal conditions, on 3 tasks"


# Sparse starts


def test_the_gain_of_sparse_starts_is_that_of_the_widest_net() -> None:
    """Narrow nets gain 10 points, the widest 2: the estimate is 2, from the widest alone."""

    def effect(method: Method, m: float, luck: Numbers) -> Numbers:
        gain = 0.02 if method.width == 1_000 else 0.1
        return -gain * (method.init == "sparse(2)") + 0.0 * luck

    finding = SparseHelps().judge(world(effect, noise=1e-6), 0.05)

    assert finding.estimate == pytest.approx(2.0, abs=1e-3)
    assert finding.n == 2 * 12 * 3 * 10
    assert finding.quantity == "error of uniform − sparse(2) at the widest, percentage points"
    assert finding.remark.startswith("sparse is better on 12 of 12 tasks, worse on 0 (signed-rank")


def test_where_the_widest_lacks_a_start_the_next_is_taken() -> None:
    """Cells in which the widest was run dense only are compared one width below."""
    table = world()
    lacking = (pl.col("model.width") == 1_000) & (pl.col("init") == "sparse(2)")
    gains = sparse_gains(errors_of(table.filter(~(lacking & (pl.col("data.m") == 50)))))

    assert gains is not None
    assert [pair[0] for pair in gains.pair] == [300.0, 1_000.0, 1_000.0] * 12


def test_the_gain_at_small_samples_by_hand() -> None:
    """Gains of 3, 9 and 1 points at three m: 3 − 1 = 2; the middle does not count."""
    effect = by_start({50.0: 0.03, 300.0: 0.09, 2_000.0: 0.01}, varying=0.0)
    finding = MostAtSmallSamples().judge(world(effect, noise=1e-6), 0.05)

    assert finding.estimate == pytest.approx(2.0, abs=1e-3)
    assert finding.n == 2 * 2 * 12 * 10
    assert finding.remark.endswith("the gain is +3.00 at the smallest and +1.00 at the largest m")


def test_samples_are_compared_at_one_width() -> None:
    """Where the widest was not run at the largest m, both ends take the next width."""

    def effect(method: Method, m: float, luck: Numbers) -> Numbers:
        gain = {100: 0.01, 300: 0.02, 1_000: 0.2}[method.width or 0] * (2 if m == 50 else 1)
        return -gain * (method.init == "sparse(2)") + 0.0 * luck

    whole = world(effect, noise=1e-6)
    part = whole.filter((pl.col("model.width") < 1_000) | (pl.col("data.m") < 2_000))

    assert MostAtSmallSamples().judge(part, 0.05).estimate == pytest.approx(2.0, abs=1e-3)
