"""Rules of HP-12 and HP-13: worlds in which the truth is known; and what their figures show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from petridish.chapters.hidden.figures import flows as drawings
from petridish.chapters.hidden.rules.flows import (
    FirstGradientShowsTheParity,
    FixedFeaturesStayAtChance,
    GaussianPlateau,
    LearnsDisjoint,
    OneStepRecovers,
    PlateauOfSGD,
    PlateauShare,
    plateau_shares,
)
from petridish.figures.style import NothingToDraw
from tests.rule_worlds import (
    CONTRADICTED,
    SUPPORTED,
    UNDECIDED,
    decided,
    most_wrong,
    run,
    table_of,
)

Floats = NDArray[np.float64]
NO_RUNS = pl.DataFrame()


def disjoint(
    time: int | None, *, block: int = 10, k: int = 3, plateau: float = 0.5, **columns: Any
) -> dict[str, Any]:
    """Make a run of SGD on a disjoint PolyNet that leaves the plateau at a share of its time."""
    looks = list(range(0, 1_001, 10))
    end = time or 2_000
    values = {
        "task": f"sparse_parity({block * k}, {k})",
        "task.n": block * k,
        "task.k": k,
        "model": f"disjoint_polynet({k})",
        "model.width": None,
        "init": "constant",
        "training.loss": "correlation",
        "training.batch_size": 1,
        "training.schedule": "schedule",
        "steps": end,
        "test_error": 0.0 if time else 0.5,
        "curve.step": [look for look in looks if look <= end],
        "curve.test_error": [
            0.5 if look < plateau * end else 0.3 * (look < end) for look in looks if look <= end
        ],
    }
    return run(time, **(values | columns))


def one_step(time: int | None, **columns: Any) -> dict[str, Any]:
    """Make a run of the one-step algorithm."""
    text = "schedule((Piece(start=0, rate=(3.0, 3.0, 0.0), decay=(0.3, 0.0, 0.0)), "
    values = {
        "task": "sparse_parity(31, 2)",
        "task.n": 31,
        "task.k": 2,
        "model": "mlp(64, (), relu, linear)",
        "model.width": 64,
        "init": "symmetric_signs(2)",
        "training.schedule": text + "Piece(start=1, rate=(0.0, 0.0, 1.0), decay=0.0)))",
        "test_error": 0.05 if time else 0.4,
        "arms": ["one step"],
    }
    return run(time, **(values | columns))


def with_errors(
    trained: Sequence[float] | Floats,
    random: Sequence[float] | Floats,
    tangent: Sequence[float] | Floats = (),
) -> pl.DataFrame:
    """Make runs of one width with trained, random and tangent features, by their test errors."""
    frozen = "schedule((Piece(start=0, rate=(0.0, 1.0), decay=1.0),))"
    kinds = [
        ("trained", "mlp(64)", "schedule", trained),
        ("random", "mlp(64)", frozen, random),
        ("tangent", "tangent(64)", "schedule", tangent),
    ]
    return table_of(
        [
            run(
                100 if error <= 0.01 else None,
                seed=seed,
                model=model,
                test_error=error,
                arms=[arm],
                **{"training.schedule": schedule, "model.width": 64, "data.m": math.inf},
            )
            for arm, model, schedule, errors in kinds
            for seed, error in enumerate(errors)
        ]
    )


# Gradient flow


def test_the_plateau_s_share_is_exact() -> None:
    """The slope is 1 − k/2 but for a few percent, with no interval; the constant is named."""
    finding = PlateauShare(3, (200, 1_000, 5_000)).judge(NO_RUNS, 0.05)

    assert finding.judgement is SUPPORTED
    assert finding.estimate == pytest.approx(-0.5, abs=0.05)
    assert math.isnan(finding.low)
    assert finding.remark.startswith("claimed at most -0.5; T(.49)/T(0) = 0.804 at n' = 200, ")
    assert "(1 − T(.49)/T(0)) n'^0.5 is at most 3.27 from" in finding.remark


def test_a_slope_that_is_not_steep_enough_contradicts() -> None:
    """A rule that asks for more than the theorem says is told no."""
    finding = PlateauShare(3, (200, 1_000, 5_000), tolerance=-0.2).judge(NO_RUNS, 0.05)

    assert finding.judgement is CONTRADICTED


def test_a_share_below_its_bound_contradicts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the slope."""
    monkeypatch.setattr(
        "petridish.theory.hidden.polynet_bounds.plateau_bound", lambda k, block: 0.85
    )
    finding = PlateauShare(3, (200, 1_000, 5_000)).simulate(0.05)

    assert finding.judgement is CONTRADICTED
    assert finding.remark.startswith("below the proved bound at n' = 200, ")


def test_blocks_without_a_plateau_decide_nothing() -> None:
    """At n' = 10, 20, 30 the error is below 0.49 from the start, for some block up to 2n'."""
    assert PlateauShare(3, (10, 20, 30)).judge(NO_RUNS, 0.05).judgement is UNDECIDED


def test_gaussian_starts_in_small() -> None:
    """Few draws: the interval is honest about it; a wide tolerance supports, none contradicts."""
    blocks, draws = (20, 40, 80), 12
    wide, none = (
        GaussianPlateau(4, blocks, draws, tolerance).judge(NO_RUNS, 0.05)
        for tolerance in (1.5, -3.0)
    )

    assert (wide.judgement, none.judgement) == (SUPPORTED, CONTRADICTED)
    assert wide.low <= wide.estimate <= wide.high
    assert wide.n == 36
    assert wide.estimate == pytest.approx(-1, abs=0.8)
    assert GaussianPlateau(4, (20, 40)).judge(NO_RUNS, 0.05).judgement is UNDECIDED


# SGD on disjoint PolyNets


def test_learning_is_judged_cell_by_cell() -> None:
    """20 of 20 in both cells support; a cell with 2 of 20 contradicts, though most runs solve."""
    good = [disjoint(500, seed=s, block=b) for b in (10, 20) for s in range(20)]
    bad = [disjoint(500 if s < 2 else None, seed=s, block=40) for s in range(20)]
    even = [disjoint(500 if s < 12 else None, seed=s) for s in range(20)]
    rule = LearnsDisjoint()

    found = rule.judge(table_of(good), 0.05)
    assert (found.judgement, found.estimate, found.n) == (SUPPORTED, 1.0, 40)
    assert found.remark == (
        "sparse_parity(30, 3), constant: 20 of 20; sparse_parity(60, 3), constant: 20 of 20"
    )
    assert rule.judge(table_of(good + bad), 0.05).judgement is CONTRADICTED
    assert rule.judge(table_of(even), 0.05).judgement is UNDECIDED
    assert LearnsDisjoint(at_least=0.2).judge(table_of(even), 0.05).judgement is SUPPORTED


def test_other_runs_do_not_count() -> None:
    """Larger batches, other losses and other models are passed over."""
    others = [
        disjoint(500) | {"training.batch_size": 32},
        disjoint(500) | {"training.loss": "hinge"},
        disjoint(500) | {"model": "polynet(3)"},
    ]
    for rule in (LearnsDisjoint(), PlateauOfSGD()):
        found = rule.judge(table_of(others), 0.05)
        assert found.judgement is UNDECIDED
        assert found.n == 0


def test_two_rates_are_not_mixed_up() -> None:
    """Several runs of one task, start and seed: a rate to be chosen first."""
    rows = [disjoint(500, seed=s % 10) for s in range(20)]
    for rule in (LearnsDisjoint(), PlateauOfSGD()):
        assert rule.judge(table_of(rows), 0.05).remark.startswith("several runs share")


def test_learning_keeps_its_level() -> None:
    """40 tables of 30 runs that are solved half of the time: few decide."""
    rng = np.random.default_rng(0)
    tables = [
        table_of([disjoint(500 if rng.random() < 0.5 else None, seed=s) for s in range(30)])
        for _ in range(40)
    ]
    assert decided(LearnsDisjoint(), tables) <= most_wrong(40)


def test_plateau_shares_by_hand() -> None:
    """Looks at 0, 10, …; the error is 0.5 before 70 % of 100 steps: the share is 0.7.

    An early dip below 0.49 costs its own look and no more; a run that is not solved has no share.
    """
    dip = disjoint(100, plateau=0.7, seed=1)
    dip["curve.test_error"][3] = 0.48
    rows = [disjoint(100, plateau=0.7, seed=0), dip, disjoint(None, seed=2)]

    assert plateau_shares(table_of(rows)).tolist() == pytest.approx([0.7, 0.6])


def test_the_plateau_of_sgd() -> None:
    """Judged at the largest n': above, below, and around one half."""

    def table(shares: Sequence[float] | Floats, solved: int = 10) -> pl.DataFrame:
        small = [disjoint(500, plateau=0.5, seed=s) for s in range(10)]
        large = [
            disjoint(500 if s < solved else None, block=50, plateau=share, seed=s)
            for s, share in enumerate(shares)
        ]
        return table_of(small + large)

    rng = np.random.default_rng(0)
    noise = 0.05 * rng.standard_normal(10)
    high, low, around = (PlateauOfSGD().judge(table(noise + s), 0.05) for s in (0.9, 0.2, 0.5))

    assert (high.judgement, low.judgement) == (SUPPORTED, CONTRADICTED)
    assert around.judgement is UNDECIDED
    assert high.low < high.estimate < high.high <= 1
    assert "n' = 10, k = 3, constant: 0.500, 10 of 10 solved" in high.remark
    few = PlateauOfSGD().judge(table(noise + 0.9, solved=4), 0.05)
    assert few.judgement is UNDECIDED
    assert few.remark.startswith("too few solved runs at the largest n'; ")


def test_the_plateau_keeps_its_level() -> None:
    """40 tables whose shares are ½ on average."""
    rng = np.random.default_rng(1)
    tables = [
        table_of([disjoint(500, plateau=p, seed=s) for s, p in enumerate(rng.random(12))])
        for _ in range(40)
    ]
    # A look stands for the steps after it, so that shares are rounded up by ½ · 10/500.
    assert decided(PlateauOfSGD(share=0.51), tables) <= most_wrong(40)


# One step


def test_one_step_is_judged_at_its_largest() -> None:
    """Small samples and widths may fail; the largest of both decides."""
    rows = [
        one_step(
            100 if m == 3_000 and r == 64 else None,
            seed=s,
            **{"data.m": float(m), "model.width": r},
        )
        for m in (300, 3_000)
        for r in (8, 64)
        for s in range(15)
    ]
    failing = [row | {"outcome": "OUT_OF_STEPS", "solved_at": None} for row in rows]
    found = OneStepRecovers().judge(table_of(rows), 0.05)

    assert (found.judgement, found.estimate, found.n) == (SUPPORTED, 1.0, 15)
    assert found.remark == "sparse_parity(31, 2), m = 3000, r = 64: 15 of 15"
    assert OneStepRecovers().judge(table_of(failing), 0.05).judgement is CONTRADICTED
    few = [row for row in rows if row["seed"] < 2]
    assert OneStepRecovers().judge(table_of(few), 0.05).judgement is UNDECIDED


def test_a_missing_corner_decides_nothing() -> None:
    """The largest m with a small width alone, and no run of the kind at all."""
    rows = [
        one_step(100, seed=s, **{"data.m": m, "model.width": r})
        for m, r in ((300.0, 64), (3_000.0, 8))
        for s in range(10)
    ]

    assert OneStepRecovers().judge(table_of(rows), 0.05).remark == (
        "the largest m was not run at the largest width"
    )
    assert OneStepRecovers().judge(table_of([run(1)]), 0.05).remark == (
        "the arm «one step» has no runs"
    )


def test_one_step_keeps_its_level() -> None:
    """40 tables of 20 runs that are solved half of the time."""
    rng = np.random.default_rng(2)
    tables = [
        table_of([one_step(100 if rng.random() < 0.5 else None, seed=s) for s in range(20)])
        for _ in range(40)
    ]
    assert decided(OneStepRecovers(), tables) <= most_wrong(40)


def test_the_first_gradient_in_small() -> None:
    """(9, 2): found from 10 to 3000 examples; not from a few; and no rise if all are large."""
    rises, few, large = (
        FirstGradientShowsTheParity(9, 2, sizes, 60).judge(NO_RUNS, 0.05)
        for sizes in ((10, 3_000), (10, 100), (2_000, 3_000))
    )

    assert (rises.judgement, rises.estimate, rises.n) == (SUPPORTED, 1.0, 120)
    assert few.judgement is UNDECIDED  # less than the proposition asks for: no wonder
    assert large.judgement is UNDECIDED
    assert rises.remark.startswith("m = 10: ")
    assert rises.remark.endswith("90% proved at 3,026")


def test_a_gradient_that_hides_the_parity_contradicts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were S not shown at the proposition's own size, the claim would be false."""
    monkeypatch.setattr(
        "petridish.theory.hidden.one_step.top_k_trials",
        lambda n, k, sizes, *, trials, rng: np.zeros((trials, len(sizes))),
    )
    found = FirstGradientShowsTheParity(9, 2, (10, 3_100), 60).judge(NO_RUNS, 0.05)

    assert found.judgement is CONTRADICTED


# Fixed features


def test_fixed_features_at_chance() -> None:
    """Both kinds near ½ while the trained learn: supported; the lowest kind is the estimate."""
    rng = np.random.default_rng(0)
    noise = 0.01 * rng.standard_normal(10)
    found = FixedFeaturesStayAtChance().judge(
        with_errors([0.0] * 10, 0.49 + noise, 0.45 - noise), 0.05
    )

    assert found.judgement is SUPPORTED
    assert found.quantity == "lowest mean test error of fixed features (tangent)"
    assert found.estimate == pytest.approx(0.45, abs=0.01)
    assert found.low < found.estimate < found.high
    assert found.n == 30
    assert found.remark.startswith("trained: 10 of 10 solved, mean error 0.000; random 0.49")


def test_fixed_features_that_learn_contradict() -> None:
    """One kind that learns is enough; and trained features that fail are no success either."""
    rng = np.random.default_rng(0)
    noise = 0.01 * rng.standard_normal(20)
    rule = FixedFeaturesStayAtChance()
    learns = with_errors([0.0] * 20, 0.49 + noise, 0.2 + noise)
    fails = with_errors([0.5] * 20, 0.49 + noise)
    around = with_errors([0.0] * 20, 0.4 + 5 * (noise - noise.mean()))

    assert rule.judge(learns, 0.05).judgement is CONTRADICTED
    assert rule.judge(fails, 0.05).judgement is CONTRADICTED
    assert rule.judge(around, 0.05).judgement is UNDECIDED


def test_fixed_features_need_company() -> None:
    """Without trained runs of the same width, or with three seeds, nothing is said."""
    rule = FixedFeaturesStayAtChance()
    alone = with_errors([], [0.5] * 10)
    apart = with_errors([0.0] * 10, [0.5] * 10).with_columns(
        pl.when(pl.col("training.schedule") == "schedule")
        .then(32)
        .otherwise(64)
        .alias("model.width")
    )
    few = with_errors([0.0] * 3, [0.5] * 3)

    for table in (alone, apart):
        assert rule.judge(table, 0.05).remark == (
            "needs trained and fixed features of one task, width and m"
        )
    assert rule.judge(few, 0.05).remark == "needs 5 seeds of every kind"


def test_a_diverged_run_speaks_against_the_claim() -> None:
    """It has no test error; among the fixed ones it counts as 0."""
    errors = [0.49, 0.5, 0.49, 0.5, math.nan, math.nan]
    found = FixedFeaturesStayAtChance().judge(with_errors([0.0] * 6, errors), 0.05)

    assert found.estimate == pytest.approx(np.nanmean(errors) * 4 / 6)
    assert found.judgement is not SUPPORTED


def test_fixed_features_keep_their_level() -> None:
    """40 tables in which the fixed features' mean error is just 0.4."""
    rng = np.random.default_rng(3)
    tables = [with_errors([0.0] * 20, 0.4 + 0.03 * rng.standard_normal(10)) for _ in range(40)]
    assert decided(FixedFeaturesStayAtChance(), tables) <= most_wrong(40)


# Figures


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw little."""
    monkeypatch.setattr(drawings, "BLOCKS", (10, 30))
    monkeypatch.setattr(drawings, "GAUSSIAN", ((20,), 3))
    monkeypatch.setattr(drawings, "TRIALS", 5)


@pytest.mark.usefixtures("quick")
def test_the_flow_s_figure_shows_what_there_is() -> None:
    """A row for k = 3 and 4; curves of SGD where runs kept them, a word where none did."""
    table = table_of([disjoint(500, seed=s) for s in range(6)])
    figure = drawings.flow_curves(table, "Title")
    titles = [axes.get_title(loc="left") for axes in figure.axes]

    assert titles[:2] == ["k = 3: gradient flow", "k = 3: SGD, B = 1"]
    assert len(titles) == 6
    assert len(figure.axes[1].lines) == drawings.MOST_CURVES + 1  # and the line at 0.49
    assert [text.get_text() for text in figure.axes[4].texts] == ["no runs with curves"]
    assert "6 runs with curves" in figure.get_supxlabel()


@pytest.mark.usefixtures("quick")
def test_the_one_step_figure_shows_what_there_is() -> None:
    """A line a width, the recovery of the first gradient, and a column a kind of features."""
    rows = [
        one_step(100 if m > 1_000 else None, seed=s, **{"data.m": m, "model.width": r})
        for m in (300.0, 3_000.0)
        for r in (8, 64)
        for s in range(3)
    ]
    table = pl.concat(
        [table_of(rows), with_errors([0.0] * 4, [0.5] * 4, [math.nan] * 4)], how="diagonal_relaxed"
    )
    figure = drawings.one_step_curves(table, "Title")
    success, _, features = figure.axes

    assert [text.get_text() for text in success.get_legend().get_texts()] == ["r = 8", "r = 64"]  # type: ignore[union-attr] # it has one
    assert [label.get_text() for label in features.get_xticklabels()] == [
        "trained",
        "random",
        "tangent",
    ]
    assert "12 runs, n = 3 a cell" in figure.get_supxlabel()
    with pytest.raises(NothingToDraw):
        drawings.one_step_curves(with_errors([0.0], [0.5]), "Title")
