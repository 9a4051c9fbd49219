"""Both forms of HP's networks, with an output bias and without: sweeps, verdicts and figures."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from matplotlib.figure import Figure

from petridish.chapters import EXPERIMENTS
from petridish.chapters.hidden.experiments.shared import relu, setting
from petridish.chapters.hidden.rules.luck import NoEarlyConvergence
from petridish.chapters.hidden.rules.output_bias import (
    BIASED,
    PLAIN,
    InArm,
    both_forms,
    drawn_by_arm,
)
from petridish.chapters.hidden.rules.scaling import GrowsSlowerThanSearch
from petridish.errors import UserError
from petridish.figures.style import NothingToDraw
from petridish.models import MLP, PolyNet
from petridish.rules.columns import columns_read, reads
from petridish.sweeps import Arms, Sweep, joined
from petridish.tasks import SparseParity
from tests.rule_worlds import CONTRADICTED, SUPPORTED
from tests.scaling_worlds import curves

TASK = SparseParity(10, 2)


def test_both_forms_differ_in_the_output_bias_alone() -> None:
    """Every linear output becomes affine, at any depth; a PolyNet has none and is in both arms."""
    plain = joined(
        Sweep(setting(TASK, model, rate=0.1), {"seed": range(2)})
        for model in (relu(10), PolyNet(2), MLP(1, output="sum"))
    )
    arms = both_forms(plain)
    biased: list[Any] = [spec.model for spec in arms[BIASED].specs()]

    assert list(arms.arms) == [BIASED, PLAIN]
    assert biased[::2] == [MLP(10), PolyNet(2), MLP(1, output="sum")]
    assert arms[PLAIN] == plain
    few = both_forms(plain, Sweep(plain.base, {"seed": (0,)}), more={"else": plain})
    assert (len(few[PLAIN]), list(few.arms)) == (1, [BIASED, PLAIN, "else"])


@pytest.mark.parametrize("name", ["HP-2", "HP-3", "HP-4", "HP-6", "HP-8"])
def test_every_scale_has_both_forms_of_the_same_tasks(name: str) -> None:
    """And no network of the judged form lacks the bias that it could have."""
    for sweep in EXPERIMENTS[name].scales.values():
        assert isinstance(sweep, Arms)
        both = [[spec for spec, _ in sweep[arm].cells()] for arm in (BIASED, PLAIN)]
        assert [spec.task for spec in both[0]] == [spec.task for spec in both[1]]
        assert not any(getattr(spec.model, "output", "") == "linear" for spec in both[0])
        assert any(getattr(spec.model, "output", "") == "linear" for spec in both[1])


def in_arms(**arms: pl.DataFrame) -> pl.DataFrame:
    """Put tables together as the arms of a sweep."""
    return pl.concat(
        table.with_columns(arms=pl.lit([name.replace("_", " ")])) for name, table in arms.items()
    )


def test_one_form_is_judged_and_the_other_said() -> None:
    """Slow growth with a bias, fast growth without: the verdict is the former's."""
    slow, fast = curves(1.0, degrees=(3,)), curves(4.5, degrees=(3,))
    both = in_arms(output_bias=slow, no_output_bias=fast)
    rule, whole = GrowsSlowerThanSearch(), InArm(GrowsSlowerThanSearch())
    found, other = whole.judge(both, 0.05), rule.judge(fast, 0.05)

    assert found.judgement is SUPPORTED
    assert found.n == len(slow)
    assert found.remark == (
        f"{rule.judge(slow, 0.05).remark}; no output bias: contradicted, {other.numbers()}, n = 180"
    )
    swapped = in_arms(output_bias=fast, no_output_bias=slow)
    assert whole.judge(swapped, 0.05).judgement is CONTRADICTED
    assert whole.judge(slow, 0.05) == rule.judge(slow, 0.05)  # without arms, as a whole


def test_a_form_that_cannot_be_judged_says_why() -> None:
    """The one beside in the remark; one that is not there not at all; the judged one must be."""
    slow = curves(1.0, degrees=(3,))
    few = in_arms(output_bias=slow, no_output_bias=slow.filter(pl.col("task.n") < 14))
    alone = in_arms(output_bias=slow)
    rule = InArm(GrowsSlowerThanSearch())

    assert rule.judge(few, 0.05).remark.endswith(
        "; no output bias: no stratum has three known medians up to n = 40"
    )
    assert rule.judge(alone, 0.05) == GrowsSlowerThanSearch().judge(slow, 0.05)
    with pytest.raises(UserError, match="There is no arm called 'output bias' among these runs"):
        rule.judge(in_arms(no_output_bias=slow), 0.05)
    assert InArm(NoEarlyConvergence()).columns == ()


def test_figures_are_drawn_for_each_form() -> None:
    """The judged form has the bare name; both read what the drawing reads."""
    seen: list[Any] = []

    @reads("curve.step")
    def draw(table: pl.DataFrame, title: str) -> Figure:
        seen.append((len(table), title))
        return Figure()

    drawings = drawn_by_arm(draw, "times")
    slow = curves(1.0, degrees=(3,))
    table = in_arms(output_bias=slow, no_output_bias=slow.head(7))
    for drawing in drawings.values():
        drawing(table, "HP-4")

    assert list(drawings) == ["times", "times-no-output-bias"]
    assert seen == [(180, "HP-4; output bias"), (7, "HP-4; no output bias")]
    assert columns_read(drawings.values()) == ("curve.step",)
    with pytest.raises(NothingToDraw, match=r"No run of the arm 'no output bias' is there\. Run"):
        drawings["times-no-output-bias"](in_arms(output_bias=slow), "HP-4")
