"""IH: what its runs show at smoke scale, and what its claims measure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

from petridish.chapters import EXPERIMENTS
from petridish.chapters.induction.drop_rules import (
    DROP,
    Early,
    Exponent,
    Foretells,
    StartExplains,
)
from petridish.chapters.induction.figures import attention_maps, phases, positions
from petridish.chapters.induction.measures import (
    AtGap,
    ChangeOverDrop,
    GapAtEnd,
    GapTime,
    ShareOfTime,
    Stages,
)
from petridish.chapters.induction.plateaus import (
    CurveAt,
    HalfOfOwn,
    HalfwayDown,
    TimeNearUnigram,
    halfway_down,
)
from petridish.chapters.induction.rungs import AtRung, RungTime, rungs_of
from petridish.chapters.induction.strategies import EndBetween
from petridish.figures.style import NothingToDraw
from petridish.rules import InOrder, Over, TimeTo
from petridish.rules.curve_measures import LeastOf
from petridish.store import Store
from petridish.tasks import MarkovChains
from petridish.testing import check_engine
from petridish.training import load_engine
from tests.conftest import SmokeStore

PHASES = EXPERIMENTS["IH-1"]
CURVES = ("uniform", "unigram", "bigram")


@pytest.fixture(scope="module")
def runs(smoke_store: SmokeStore) -> pl.DataFrame:
    """Return the runs of the smoke scale with all they kept."""
    return PHASES.sweep("smoke").among(Store(smoke_store("IH-1")).read(columns="all").table)


def gap_table(losses: list[list[float] | None], outcome: str = "OUT_OF_STEPS") -> pl.DataFrame:
    """Return runs with these losses, where unigrams lose 3 and bigrams 1."""

    def kept(curve: list[float]) -> list[list[float] | None]:
        return [None if each is None else curve[: len(each)] for each in losses]

    nans = [math.nan] * 9
    return pl.DataFrame(
        {
            "seed": list(range(len(losses))),
            "outcome": [outcome] * len(losses),
            "curve.step": kept([0, 10, 20, 30]),
            "curve.test_kl_truth": losses,
            "curve.test_kl_of_unigram": kept([3.0, *nans]),
            "curve.test_kl_of_bigram": kept([1.0, *nans]),
        },
        schema_overrides={"curve.test_kl_truth": pl.List(pl.Float64)},
    )


def test_the_loss_is_placed_between_two_strategies() -> None:
    """In gaps of 2 above 1: a loss of 2 is half a gap; times beyond the end are censored."""
    table = gap_table([[5.0, 3.0, 2.0, 1.5], [5.0, 4.0, 3.5], None])

    assert GapAtEnd().of(table).tolist()[:2] == [0.25, 1.25]
    assert math.isnan(GapAtEnd().of(table)[2])
    half = GapTime(0.5).known(table)
    assert half.low.tolist()[:2] == [20, 20]
    assert half.high.tolist()[:2] == [20, math.inf]
    assert math.isnan(half.high[2])
    assert GapTime(2.0).of(table).tolist()[:2] == [1, 1]  # at step 0, counted as the first
    plateau = Over(GapTime(1.25), GapTime(0.75)).known(table)
    assert plateau.low.tolist()[:2] == [0.5, 0]
    assert plateau.high.tolist()[:2] == [0.5, 1]
    assert GapAtEnd().of(gap_table([[5.0, math.nan]], "DIVERGED")).tolist() == [math.inf]


def test_the_ladder_reaches_from_bigrams_to_the_start() -> None:
    """Above unigrams in shares of the way from the start, below in gaps; without a way it is empty.

    Starts at 2 and 3.4, unigrams at 3: the second run starts within a quarter of the gap, and is
    near unigrams on the ladder when it has come three quarters of its own way.
    """
    table = gap_table([[5.0, 4.0, 3.0, 2.0], [3.4, 3.2, 3.1, 1.5], [2.0, 2.0], None])
    places = [found.tolist() for _, found in rungs_of(table)]

    assert places[0] == [2.0, 1.5, 1.0, 0.5]
    assert places[1] == pytest.approx([2.0, 1.5, 1.25, 0.25])
    assert places[2:] == [[], []]
    assert GapTime(1.25).of(table).tolist()[1] == 1  # at its start
    assert RungTime(1.2501).of(table).tolist()[:2] == [20, 20]
    assert np.isnan(RungTime(1.25).of(table)[2:]).all()
    curve = pl.Series("curve.iid", [[8.0, 4.0, 2.0, 1.0]] * 2 + [None] * 2)
    at = AtRung("iid", 1.2501, relative=True).of(table.with_columns(curve))
    assert at.tolist()[:2] == [0.25, 0.25]
    assert np.isnan(at[2:]).all()


def test_a_network_that_went_straight_to_bigrams_would_fail_the_order() -> None:
    """Unigrams are never nearest on the way from uniform to bigram predictions.

    Neither if logarithms are mixed nor if probabilities are: the claim about the order can fail.
    On the way to unigrams and then to bigrams it holds.
    """
    task = MarkovChains(3, 40)
    sample = task.draw([0], "test", 0, 2_000)
    uniform, unigram, bigram = (task.predict(name, sample)[0, :, -1] for name in CURVES)
    shares = np.linspace(0, 1, 41)

    def judged(path: list[Any]) -> float:
        def distance(p: Any, q: Any) -> float:
            return float((p * np.log(p / q)).sum(axis=-1).mean())

        columns = {
            f"curve.{name}": [[distance(p, q / q.sum(axis=-1, keepdims=True)) for q in path]]
            for name, p in zip(CURVES, (uniform, unigram, bigram), strict=True)
        }
        steps = {"curve.step": [list(range(len(path)))]}
        return float(InOrder(CURVES).of(pl.DataFrame(steps | columns))[0])

    assert judged([bigram**share for share in shares]) == 0
    assert judged([share * bigram + (1 - share) * uniform for share in shares]) == 0
    by_unigrams = [unigram**share for share in shares]
    by_unigrams += [unigram ** (1 - share) * bigram**share for share in shares]
    assert judged(by_unigrams) == 1


def test_the_phases_show_at_smoke_scale(runs: pl.DataFrame) -> None:
    """In all three seeds: the order, a plateau near unigrams, an end nearer to bigrams.

    And what the paper says of the second drop: predictions leave the unigrams' for the bigrams'.
    """
    assert runs["seed"].sort().to_list() == [0, 1, 2]
    assert InOrder(tuple(f"test_kl_{name}" for name in CURVES)).of(runs).tolist() == [1, 1, 1]
    assert (Over(GapTime(1.25), GapTime(0.75)).of(runs) < 0.75).all()
    assert (GapAtEnd().of(runs) < 0.5).all()
    for run in runs.iter_rows(named=True):
        unigram, bigram = (np.array(run[f"curve.test_kl_{name}"]) for name in CURVES[1:])
        second = int(np.argmin(unigram))
        assert unigram[-1] > 1.5 * unigram[second]
        assert bigram[-1] < 0.5 * bigram[second]


def test_attention_moves_to_the_previous_token(runs: pl.DataFrame) -> None:
    """It begins even, within 2 % above chance, and ends mostly there; so does the map."""
    for run in runs.iter_rows(named=True):
        assert abs(run["curve.attention1_back1"][0]) < 0.02
        assert run["curve.attention1_back1"][-1] > 0.7
        kept = run["array.attention1_map"]
        maps = np.reshape(kept["values"], kept["shape"])
        assert maps.shape == (11, 12, 12)
        assert np.diagonal(maps[-1], -1).mean() > 0.7
        assert np.allclose(np.triu(maps, 1), 0)
    assert np.isfinite(TimeTo("attention1_back1", above=0.5).of(runs)).all()


def test_other_distributions_are_measured(runs: pl.DataFrame) -> None:
    """Independent tokens are predicted early, doubly stochastic chains only with bigrams."""
    for run in runs.iter_rows(named=True):
        early = run["curve.step"].index(100)
        iid, doubly = (np.array(run[f"curve.{name}_kl_truth"]) for name in ("iid", "doubly"))
        assert iid[early] < 0.5 * iid[0]
        assert doubly[early] > 0.8 * doubly[0]
        assert doubly[-1] < 0.6 * doubly[0]


def test_every_claim_is_judged(runs: pl.DataFrame) -> None:
    """Three seeds decide nothing, and every claim says what it lacks."""
    verdicts = {verdict.claim.name: verdict for verdict in PHASES.judge(runs)}

    assert [name for name, verdict in verdicts.items() if verdict.claim.kind == "paper"] == [
        "order",
        "leaves",
        "comes",
    ]
    assert {verdict.word for verdict in verdicts.values()} == {"undecided"}
    assert verdicts["order"].finding.estimate == 1
    assert verdicts["near"].finding.remark == (
        "needs 9 seeds for an interval of 0.9944 coverage, and has 3"
    )


@pytest.mark.parametrize("name", [f"IH-{number}" for number in range(2, 10)])
def test_every_experiment_runs_and_is_judged(name: str, smoke_store: SmokeStore) -> None:
    """At smoke scale every rule finds its columns and runs, and every figure is drawn."""
    experiment = EXPERIMENTS[name]
    sweep = experiment.sweep("smoke")
    runs = sweep.among(Store(smoke_store(name)).read(columns="all").table)
    for verdict in experiment.judge(runs):
        assert verdict.finding.quantity != "nothing could be judged", verdict.finding.remark
    for draw in experiment.figures.values():
        assert draw(runs, "title").axes


def test_the_engines_agree() -> None:
    """The stack of `torch` against `reference`, with every metric, sample and instrument."""
    (spec, _), *_ = PHASES.sweep("smoke").cells()
    short = replace(
        spec,
        training=replace(spec.training, steps=4),
        evaluation=replace(spec.evaluation, every=2),
    )
    check_engine(load_engine("torch"), short)


def staged(*lowest: int, steps: list[float] | None = None) -> pl.DataFrame:
    """Return a run that is nearest to strategy `lowest[i]` at its evaluation i."""
    at = steps if steps is not None else [10.0 * place for place in range(len(lowest))]
    columns = {
        f"curve.{name}": [[0.1 if place == low else 1.0 for low in lowest]]
        for place, name in enumerate(CURVES)
    }
    return pl.DataFrame({"curve.step": [at], **columns})


def test_stages_have_to_last() -> None:
    """In order, each for its share of the time until the last, and without going back."""
    measure = Stages(CURVES, (0.1, 0.5))
    assert measure.of(staged(0, 1, 1, 1, 2, 2)).tolist() == [1]
    assert measure.of(staged(0, 0, 0, 1, 2, 2)).tolist() == [0]  # unigrams for a quarter
    assert measure.of(staged(0, 1, 0, 1, 1, 2)).tolist() == [0]  # back to uniform
    assert measure.of(staged(0, 1, 1, 2, 1, 2)).tolist() == [0]  # and from bigrams to unigrams
    assert measure.of(staged(1, 1, 1, 1, 2)).tolist() == [0]  # never uniform
    assert measure.of(staged(0, 1, 1, 1)).tolist() == [0]  # never bigrams
    assert measure.of(staged(2, 2)).tolist() == [0]


def test_curves_are_read_where_the_loss_says() -> None:
    """At the first evaluation at most so many gaps above bigrams; over the drop, relative or not.

    Unigrams lose 3 and bigrams 1: losses of 5, 3, 2.4, 1.5 are 2, 1, 0.7 and 0.25 gaps.
    """
    table = gap_table([[5.0, 3.0, 2.4, 1.5], [5.0, 4.0, 3.5]]).with_columns(
        pl.Series("curve.x", [[2.0, 4.0, 6.0, 9.0], [1.0, 1.0, 1.0]])
    )
    assert AtGap("x", 1.25).of(table).tolist() == [4, 1]
    assert AtGap("x", 1.25, relative=True).of(table).tolist() == [2, 1]
    assert AtGap("x", 0.75).of(table)[0] == 6
    assert math.isnan(AtGap("x", 0.75).of(table)[1])
    assert ChangeOverDrop("x").of(table)[0] == 3
    assert TimeNearUnigram().of(table)[0] == 0.5  # 1 of the 2 evaluations before 2.4
    assert ShareOfTime("x", 4.5).of(table).tolist() == [0.5, 1]
    assert CurveAt("x", 20).of(table).tolist() == [6, 1]
    assert LeastOf("x").of(table).tolist() == [2, 1]
    assert HalfOfOwn("x").of(table).tolist() == [20, 1]


def test_halfway_between_own_plateaus() -> None:
    """From 8 by a plateau at 4 to 1: 2.5 is half-way, and the start does not count."""
    steps = np.arange(0, 200, 10.0)
    curve = np.concatenate([[8.0], np.full(9, 4.0), [3.0, 2.0], np.ones(8)])
    assert halfway_down(steps, curve) == (11, 2.5)
    table = pl.DataFrame(
        {
            "curve.step": [steps.tolist(), steps.tolist()],
            "curve.y": [curve.tolist(), np.full(20, 4.0).tolist()],
            "training.batch_size": [64, 64],
            "task.share": [0.5, None],
        }
    )
    assert HalfwayDown("y").of(table).tolist() == [110, math.inf]
    known = HalfwayDown("y", per_step=True).known(table)
    assert known.low.tolist() == [110 * 32, 190 * 64]


def test_the_end_between_two_strategies() -> None:
    """The median of the last tenth: 2 between 3 and 1 is a half; diverged is beyond all."""
    table = pl.DataFrame(
        {
            "outcome": ["OUT_OF_STEPS", "DIVERGED"],
            "curve.test_kl_truth": [[9.0] * 18 + [2.0, 2.0], [9.0, 9.0]],
            "curve.test_kl_of_bigram": [[3.0], [3.0]],
            "curve.test_kl_of_trigram": [[1.0], [1.0]],
        }
    )
    assert EndBetween("bigram", "trigram").of(table).tolist() == [0.5, math.inf]


def test_figures_need_the_curves_of_ih(runs: pl.DataFrame) -> None:
    """One sentence says so."""
    for draw in (phases, attention_maps, positions):
        with pytest.raises(NothingToDraw) as refused:
            draw(runs.select("seed", "task"), "title")
        assert str(refused.value) == (
            "These runs kept no curves of strategies and attention: draw those of IH-1."
        )


def drops(times: Sequence[float | None], **columns: Any) -> pl.DataFrame:
    """Return runs of 100 steps whose second drop comes at these times, if at all."""
    steps = list(range(101))
    losses: list[list[float] | None] = [
        [3.0 if time is None or step < time else 1.0 for step in steps] for time in times
    ]
    table = gap_table(losses).with_columns(pl.Series("curve.step", [steps] * len(times)))
    kept = pl.Series("curve.test_kl_of_unigram", [[3.0] * 101] * len(times))
    other = pl.Series("curve.test_kl_of_bigram", [[1.0] * 101] * len(times))
    return table.with_columns(kept, other, *(pl.Series(n, v) for n, v in columns.items()))


def test_exponents_seed_by_seed() -> None:
    """Times 4 k and k² of k = 2, 4, 8 have the exponents 1 and 2; a late seed could have any."""
    times = [8, 4, 90, 16, 16, 95, 32, 64, None]
    table = drops(times, seed=[0, 1, 2] * 3, **{"task.k": [2] * 3 + [4] * 3 + [8] * 3})
    (group,) = Exponent("task.k").groups(table, DROP)

    np.testing.assert_allclose(group.values.low[0], [1, 2, -math.inf])
    np.testing.assert_allclose(group.values.high[0], [1, 2, math.inf])


def test_early_drops_are_those_before_half_of_their_own_median() -> None:
    """The median of 10, 40 and 50 is 40: one of three is early; a run without a drop is not."""
    table = drops([10, 40, 50, 5, 6, None], **{"task.k": [2, 2, 2, 3, 3, 3]})

    assert Early().of(table).tolist() == [1, 0, 0, 0, 0, 0]


def test_how_much_the_start_explains() -> None:
    """All of it where runs from one start drop at one time; fewer than five starts say nothing."""
    times = [t + s for t in (5, 10, 20, 40, 80, 90) for s in (0, 0, 1)]
    inits = [f"start {place // 3}" for place in range(18)]
    arms = [["starts"]] * 18
    table = drops(times, init=inits, arms=arms, **{"evaluation.every": [1] * 18})
    found = StartExplains("starts").judge(table, 0.05)

    assert found.judgement.value == "supported"
    assert found.estimate > 0.95
    assert StartExplains("starts").judge(table.head(9), 0.05).remark == (
        "needs 5 starts with two seeds of each"
    )
    assert StartExplains("others").judge(table, 0.05).remark == (
        "There is no arm called 'others' among these runs."
    )


def test_a_curve_that_foretells_the_drop() -> None:
    """Higher where the drop is sooner, at half of the median time: a correlation of 1; else −1."""
    times = list(range(40, 60))
    arms = [["k = 2"]] * 20
    rising = [[step / time for step in range(101)] for time in times]
    falling = [[-step / time for step in range(101)] for time in times]
    rule = Foretells("hint", ("k = 2",))
    found = rule.judge(drops(times, arms=arms, **{"curve.hint": rising}), 0.05)
    other = rule.judge(drops(times, arms=arms, **{"curve.hint": falling}), 0.05)

    assert found.judgement.value == "supported"
    assert found.estimate == pytest.approx(1)
    assert other.judgement.value == "contradicted"
    assert other.estimate == pytest.approx(-1)
    assert "20 runs at step 24" in found.remark
