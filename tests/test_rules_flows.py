"""Rules of HP-12 and HP-13: worlds in which the truth is known; and what their figures show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from petridish.chapters.hidden.figures import flows as drawings
from petridish.chapters.hidden.rules.disjoint_polynets import (
    GaussianPlateau,
    LearnsByTheorem58,
    LearnsDisjoint,
    PlateauShare,
    plateau_shares,
)
from petridish.chapters.hidden.rules.one_big_step import (
    FirstGradientShowsTheParity,
    FixedFeaturesStayAtChance,
    OneStepRecovers,
)
from petridish.figures.style import NothingToDraw
from petridish.rules.claims import Judgement
from petridish.theory.hidden.one_step import first_gradient
from petridish.theory.hidden.polynet_flow import Flow
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
    evaluated = list(range(0, 1_001, 10))
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
        "curve.step": [step for step in evaluated if step <= end],
        "curve.test_error": [
            0.5 if step < plateau * end else 0.3 * (step < end) for step in evaluated if step <= end
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
    wide, none = (
        GaussianPlateau(4, (20, 40, 80), draws=12, tolerance=tolerance).judge(NO_RUNS, 0.05)
        for tolerance in (1.5, -3.0)
    )

    assert (wide.judgement, none.judgement) == (SUPPORTED, CONTRADICTED)
    assert wide.low <= wide.estimate <= wide.high
    assert wide.low < wide.high
    assert wide.n == 36
    assert wide.estimate == pytest.approx(-1, abs=0.3)


def test_gaussian_starts_of_two_blocks_decide_nothing() -> None:
    """A line through two points is no evidence."""
    finding = GaussianPlateau(4, (20, 40)).judge(NO_RUNS, 0.05)

    assert (finding.judgement, finding.remark) == (UNDECIDED, "needs three n'")


@pytest.mark.parametrize(
    ("power", "verdict"), [(-0.6, SUPPORTED), (-0.5, SUPPORTED), (-0.4, CONTRADICTED)]
)
def test_gaussian_starts_of_a_known_slope(
    power: float, verdict: Judgement, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A remainder n'^power from every start has that slope; k = 3 asks for −0.5."""
    monkeypatch.setattr(Flow, "remainder", lambda flow, error: flow.block**power)
    finding = GaussianPlateau(3, (10, 30, 90, 270), draws=5).simulate(0.05)

    assert finding.judgement is verdict
    assert [finding.low, finding.estimate, finding.high] == pytest.approx([power] * 3)
    assert finding.n == 20
    shares = {n: f"{1 - n**power:.4g}" for n in (10, 30, 90, 270)}
    medians = ", ".join(f"{share} at n' = {n}" for n, share in shares.items())
    assert finding.remark == "; ".join(
        [
            "claimed at most -0.5",
            *(
                f"median T({error:g})/T(0) {medians}, where nine in ten starts have at least "
                f"{shares[270]}"
                for error in (0.499, 0.49, 0.4)
            ),
        ]
    )


@pytest.mark.parametrize(
    ("power", "verdict"), [(-1 / 3, SUPPORTED), (-0.2, SUPPORTED), (-0.6, CONTRADICTED)]
)
def test_every_advantage_counts(
    power: float, verdict: Judgement, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Remainders n'^(−½) γ^power, but smaller γ at larger n': k = 3 allows γ^(−1/3) and no more.

    At γ = 0.01 alone all three would pass.
    """
    gammas = {10: 0.1, 30: 0.01, 90: 0.001}

    def remainder(flow: Flow, error: float) -> float:
        gamma = 0.5 - error
        hit = bool(np.isclose(gamma, gammas[flow.block]))
        return float(flow.block**-0.5 * (gamma**power if hit else gamma ** (-1 / 3)))

    monkeypatch.setattr(Flow, "remainder", remainder)

    assert GaussianPlateau(3, (10, 30, 90), draws=5).simulate(0.05).judgement is verdict


@pytest.mark.parametrize(("above", "verdict"), [(1.15, SUPPORTED), (0.32, CONTRADICTED)])
def test_the_median_gaussian_start_decides(
    above: float, verdict: Judgement, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A quarter of starts without a plateau leaves the median; three quarters contradict.

    In both cases nine in ten starts have no more than the worst of them, and the remark says so.
    """
    monkeypatch.setattr(
        Flow, "remainder", lambda flow, error: 1.0 if flow.start[0] > above else 1 / flow.block
    )
    finding = GaussianPlateau(3, (10, 30, 90)).simulate(0.05)

    assert finding.judgement is verdict
    assert finding.remark.endswith(", where nine in ten starts have at least 0")


def test_gaussian_starts_are_paired_and_have_a_positive_product(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All n' of a draw share their relevant weights, which are above 0."""
    seen: list[tuple[int, Floats]] = []

    def remainder(flow: Flow, error: float) -> float:
        seen.append((flow.block, flow.start))
        assert error == 0.49
        return 0.5

    monkeypatch.setattr(Flow, "remainder", remainder)
    GaussianPlateau(3, (10, 30, 20), gammas=(0.01,), draws=4).simulate(0.05)

    assert [block for block, _ in seen] == [10, 30, 20] * 4
    starts = np.stack([start for _, start in seen]).reshape(4, 3, 3)  # (draw, n', weight)
    assert np.all(starts > 0)
    assert np.all(starts == starts[:, :1])
    assert len(np.unique(starts)) == 12


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
    found = LearnsDisjoint().judge(table_of(others), 0.05)
    assert found.judgement is UNDECIDED
    assert found.n == 0


def test_two_rates_are_not_mixed_up() -> None:
    """Several runs of one task, start and seed: a rate to be chosen first."""
    rows = [disjoint(500, seed=s % 10) for s in range(20)]
    assert LearnsDisjoint().judge(table_of(rows), 0.05).remark.startswith("several runs share")


def test_learning_keeps_its_level() -> None:
    """40 tables of 30 runs that are solved half of the time: few decide."""
    rng = np.random.default_rng(0)
    tables = [
        table_of([disjoint(500 if rng.random() < 0.5 else None, seed=s) for s in range(30)])
        for _ in range(40)
    ]
    assert decided(LearnsDisjoint(), tables) <= most_wrong(40)


def test_plateau_shares_by_hand() -> None:
    """Evaluations at 0, 10, …; the error is 0.5 before 70 % of 100 steps: the share is 0.7.

    An early dip below 0.49 costs its own evaluation and no more; an unsolved run has no share.
    """
    dip = disjoint(100, plateau=0.7, seed=1)
    dip["curve.test_error"][3] = 0.48
    rows = [disjoint(100, plateau=0.7, seed=0), dip, disjoint(None, seed=2)]

    assert plateau_shares(table_of(rows)).tolist() == pytest.approx([0.7, 0.6])


def test_the_theorem_s_own_algorithm() -> None:
    """Blocks of two bits: all runs end within ε and keep both claims; of three, not in T / 20."""
    rule = LearnsByTheorem58(sizes=((2, 2),))
    held, hurried = rule.simulate(0.05), LearnsByTheorem58(hurry=0.05).simulate(0.05)

    assert (held.judgement, held.estimate, held.n) == (SUPPORTED, 1.0, 100)
    assert held.remark == (
        "n' = 2, k = 2, T = 14,896: 100 of 100, largest error 0; Claims B.11 and B.12 hold in 100 "
        "and 100"
    )
    assert hurried.judgement is CONTRADICTED
    few = replace(rule, runs=10).simulate(0.05)
    assert (few.judgement, few.estimate) == (UNDECIDED, 1.0)


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
    """At n = 9, 15 and 31 half of the samples show S at about log n / γ²; few trials are open."""
    rule = FirstGradientShowsTheParity(2, (9, 15, 31), trials=400, tolerance=0.2)
    found, few = rule.simulate(0.05), replace(rule, trials=20).simulate(0.05)

    assert (found.judgement, found.n) == (SUPPORTED, 1_200)
    assert found.low < found.estimate < found.high < 1.2
    assert found.remark.startswith("n = 9: half at ")
    assert few.judgement is UNDECIDED


@pytest.mark.parametrize(
    ("power", "verdict"), [(1.0, SUPPORTED), (0.5, SUPPORTED), (1.5, CONTRADICTED)]
)
def test_a_sample_that_grows_faster_contradicts(
    power: float, verdict: Judgement, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the samples show S at 300 (log n / γ² / 300)^power, and nearly all at twice that."""

    def trials(n: int, k: int, sizes: list[int], *, trials: int, rng: Any) -> Floats:
        inside, outside = map(float, first_gradient(n, k))
        half = 300 * (math.log(n) / (inside - outside) ** 2 / 300) ** power
        chance = 1 / (1 + (half / np.array(sizes)) ** 6)
        return np.asarray(rng.random((trials, len(sizes))) < chance, np.float64)

    monkeypatch.setattr("petridish.theory.hidden.top_k.top_k_trials", trials)
    rule = FirstGradientShowsTheParity(
        2, (15, 31, 63, 127), multiples=(0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 50.0)
    )
    found = rule.simulate(0.05)

    assert found.judgement is verdict
    assert found.estimate == pytest.approx(power, abs=0.1)


def test_a_gradient_that_hides_the_parity_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were S not shown at any multiple, there would be no m to speak of."""
    monkeypatch.setattr(
        "petridish.theory.hidden.top_k.top_k_trials",
        lambda n, k, sizes, *, trials, rng: np.zeros((trials, len(sizes))),
    )
    found = FirstGradientShowsTheParity(2, (9, 15), trials=60).simulate(0.05)

    assert found.judgement is UNDECIDED
    assert found.remark == "n = 9: half of the samples lies beyond the multiples"


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
    # √(C(50, 3) / 64), and with 64 · 52 parameters
    assert found.remark.endswith(
        "; Theorem 5.6 reaches weights of norm 18 ε (random), 2.4 ε (tangent)"
    )


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
    """A row for k = 3 and 4; curves of SGD where runs kept them, a word where none did.

    Descent begins at a Gaussian start, above chance or near it, and ends without an error; runs
    from ones are dashed.
    """
    table = table_of(
        [disjoint(500, seed=s, init=init) for s in range(6) for init in ("constant", "normal")]
    )
    figure = drawings.flow_curves(table, "Title")
    titles = [axes.get_title(loc="left") for axes in figure.axes]

    assert titles[:2] == ["k = 3: population descent", "k = 3: SGD, B = 1"]
    assert len(titles) == 6
    assert len(figure.axes[1].lines) == 2 * drawings.MOST_CURVES + 1  # and the line at 0.49
    dashed = [line for line in figure.axes[1].lines if line.get_linestyle() == "--"]
    assert len(dashed) == drawings.MOST_CURVES
    assert [text.get_text() for text in figure.axes[4].texts] == ["no runs with curves"]
    assert "12 runs with curves" in figure.get_supxlabel()
    for panel in (figure.axes[0], figure.axes[3]):
        for line in panel.lines[:2]:
            steps, errors = np.array(line.get_xdata()), np.array(line.get_ydata())
            assert 0.3 < errors[0] < 0.55
            assert np.all(errors[steps > 1.04] < 1e-9)
            assert np.all(np.diff(errors) <= 1e-12)


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
    assert "12 runs, n = 3 per cell" in figure.get_supxlabel()
    with pytest.raises(NothingToDraw):
        drawings.one_step_curves(with_errors([0.0], [0.5]), "Title")
