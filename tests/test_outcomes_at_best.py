"""What came out at the best of some settings, chosen on other seeds than those that measure it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from petridish.errors import UserError
from petridish.models import PolyNet
from petridish.rules.outcome_table import outcome_table
from petridish.store.schema import to_table
from petridish.sweeps import Arms, Sweep, log_range
from petridish.training import RunSpec
from tests.outcome_worlds import BASE, RATES, End, by_rate, ended, half_solved, world

SEEDS = {"seed": range(8)}


def test_the_best_rate_is_chosen_on_other_seeds_than_those_that_measure_it() -> None:
    """Rates that differ by luck alone gain nothing from being many.

    200 seeds, 16 rates, a success of ½ everywhere. The best rate in hindsight looks like 0.58 or
    more (16 shares of standard error 0.035, the largest of them 1.8 above); the tuned share is
    unbiased, and misses 0.5 by more than 0.1 with probability 0.5 %.
    """
    rng = np.random.default_rng(0)
    axes = {"training.learning_rate": log_range(1e-3, 1, 16), "seed": range(200)}
    runs = world(axes, lambda _: {"solved_at": 100} if rng.random() < 0.5 else {})
    hindsight = outcome_table(runs).frame["value"].max()
    tuned = outcome_table(runs, best_over="lr")

    assert isinstance(hindsight, float)
    assert hindsight > 0.55
    assert abs(tuned.frame["value"][0] - 0.5) < 0.1
    assert tuned.frame["n"].to_list() == [200]
    assert tuned.remarks == (
        "At the best learning rate (most solved), chosen on the other half of the seeds.",
    )


def test_the_best_width_is_not_of_two_models() -> None:
    """An arm without the field is laid apart; without arms the two are refused, never one cell."""
    product = replace(BASE, model=PolyNet(2))
    both = Arms(
        {
            "mlp": Sweep(BASE, {"model.width": (5, 10), **SEEDS}),
            "product": Sweep(product, SEEDS),
        }
    )
    runs = to_table([ended(spec, **half_solved(spec)) for spec in both.specs()])
    table = outcome_table(both.among(runs), best_over="model.width")

    assert table.axes.fields == ("arm",)
    assert table.frame["n"].to_list() == [8, 8]
    assert table.frame["chosen"].to_list()[1] == "none"
    with pytest.raises(UserError) as refused:
        outcome_table(runs, best_over="model.width")
    assert str(refused.value) == (
        "Some of these runs have no model.width, and the best over it would take them for one more "
        "of its values. Lay them apart by model, or by their arm where there are arms."
    )


@pytest.mark.parametrize(("value", "best"), [("time", "0.1"), ("test_error", "0.01")])
def test_what_is_best_depends_on_the_value(value: str, best: str) -> None:
    """The least time or error; the rate that was chosen is told."""
    runs = world({"training.learning_rate": RATES, **SEEDS}, by_rate)
    table = outcome_table(runs, value=value, best_over=("training.learning_rate",))

    assert table.frame["chosen"].to_list() == [best]
    assert table.frame["n"].to_list() == [8]


def test_rates_that_solve_all_are_told_apart_by_time_then_error_then_the_middle() -> None:
    """The share solved is 1 at every rate; the smallest rate is not taken for that."""
    rates = (0.001, 0.01, 0.1, 1.0, 10.0)
    times = dict(zip(rates, (300, 200, 200, 100, 200), strict=True))
    errors = dict(zip(rates, (0.1, 0.1, 0.3, 0.3, 0.01), strict=True))

    def chosen(end: Callable[[RunSpec], End]) -> list[str]:
        runs = world({"training.learning_rate": rates, **SEEDS}, end)
        return outcome_table(runs, value="solved", best_over="lr").frame["chosen"].to_list()

    def rate(spec: RunSpec) -> float:
        return spec.training.learning_rate

    assert chosen(lambda spec: {"solved_at": times[rate(spec)]}) == ["1"]
    assert chosen(lambda spec: {"solved_at": 100, "error": errors[rate(spec)]}) == ["10"]
    assert chosen(lambda _: {"solved_at": 100}) == ["0.1"]
    assert chosen(lambda _: {}) == ["0.1"]


def test_a_metric_that_is_better_when_larger_is_asked_for_by_most() -> None:
    """The remark says which end was taken for the best."""
    runs = world({"training.learning_rate": RATES, **SEEDS}, by_rate)
    most = outcome_table(runs, value="test_error", best_over="lr", best="most")
    least = outcome_table(runs, value="test_error", best_over="lr")

    assert least.frame["chosen"].to_list() != most.frame["chosen"].to_list()
    assert least.remarks[0] == (
        "At the best learning rate (least median test_error at the end), chosen on the other half "
        "of the seeds."
    )
    assert "(most median test_error at the end)" in most.remarks[0]
    with pytest.raises(UserError, match=r"^best='more' was given\. Give 'least' or 'most'\.$"):
        outcome_table(runs, best_over="lr", best="more")  # type: ignore[arg-type] # on purpose
