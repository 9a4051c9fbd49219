"""Hidden progress: prediction, separation from noise, and noisy labels, in worlds with a truth."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest

from petridish.chapters.hidden.figures.hidden_progress import (
    configuration_curves,
    prediction_scatter,
    progress_curves,
)
from petridish.chapters.hidden.figures.weights import weight_trajectories
from petridish.chapters.hidden.rules.prediction import ProgressPredicts, held_out_predictions
from petridish.chapters.hidden.rules.separation import ProgressSeparates
from petridish.chapters.hidden.rules.while_flat import LeadsBeforeItShows, TellsWhileFlat
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

BUDGET, EVERY = 2_000, 25
STEPS = np.arange(0, BUDGET + 1, EVERY)
Signal = Callable[[np.random.Generator, int, float], np.ndarray]


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw 100 resamples instead of 2000: error rates need many tables, not fine quantiles."""
    for module in ("prediction", "separation"):
        monkeypatch.setattr(f"petridish.chapters.hidden.rules.{module}.RESAMPLES", 100)


def one(
    seed: int,
    end: float,
    noise: float,
    movement: np.ndarray,
    loss: np.ndarray,
    **columns: Any,
) -> dict[str, Any]:
    """Make a run that leaves chance 50 steps before it is solved at `end`, infinite for never."""
    steps = STEPS[: int(min(end, BUDGET)) // EVERY + 1]
    errors = np.where(steps < end - 50, 0.5, np.where(steps < end, 0.2, 0.0))
    return run(
        None if math.isinf(end) else int(end),
        seed=seed,
        **{
            "model": "mlp(1, (), sine(3), sum)",
            "data.label_noise": noise,
            "training.steps": BUDGET,
            "training.batch_size": 32,
            "training.learning_rate": 0.1,
            "test_error": errors[-1],
            "curve.step": steps.tolist(),
            "curve.train_loss": [math.nan, *loss[1 : len(steps)].tolist()],
            "curve.test_error": errors.tolist(),
            "curve.first_layer_movement": movement[: len(steps)].tolist(),
        }
        | columns,
    )


def times(rng: np.random.Generator, count: int) -> np.ndarray:
    """Draw times to success, at evaluations, between about 800 and 1800 steps."""
    return EVERY * np.round(rng.uniform(800, 1_800, count) / EVERY)


def flat_loss(rng: np.random.Generator) -> np.ndarray:
    """Return a loss that says nothing."""
    return 1 + 0.05 * rng.standard_normal(len(STEPS))


def walk(rng: np.random.Generator, drift: float) -> np.ndarray:
    """Return the movement of a weight that is pushed steadily, and by chance."""
    steps = drift * EVERY + 0.02 * math.sqrt(EVERY) * rng.standard_normal(len(STEPS))
    steps[0] = 0.0
    return np.abs(np.cumsum(steps))


def world(
    drift: Callable[[int, float, np.random.Generator], float],
    *,
    seed: int = 0,
    seeds: int = 40,
    models: Sequence[str] = ("mlp(1, (), sine(3), sum)",),
    unsolved: float = 0.0,
) -> pl.DataFrame:
    """Draw parity runs whose movement drifts by `drift` (seed, time to success), and a control."""
    rng = np.random.default_rng(seed)
    rows = []
    for model in models:
        for s, end in enumerate(times(rng, seeds)):
            late = rng.random() < unsolved
            moved = walk(rng, drift(s, BUDGET if late else end, rng))
            end = math.inf if late else end
            rows.append(one(s, end, 0.0, moved, flat_loss(rng), model=model))
            rows.append(one(s, math.inf, 0.5, walk(rng, 0.0), flat_loss(rng), model=model))
    return table_of(rows)


def knowing(_: int, end: float, __: np.random.Generator) -> float:
    """Drift the faster the sooner the run is solved: progress."""
    return 3.0 / end


def ignorant(_: int, __: float, rng: np.random.Generator) -> float:
    """Drift, but by chance."""
    return rng.uniform(3 / 1_800, 3 / 800)


# Prediction


def test_progress_is_found_where_it_is() -> None:
    """Drift that decides the time predicts it; the loss and random labels do not."""
    finding = ProgressPredicts().judge(world(knowing), 0.05)

    assert finding.judgement is SUPPORTED
    assert 0 < finding.low < finding.estimate < finding.high < 1
    assert "; permutation p = 0.0099" in finding.remark  # the least that 100 can give
    assert finding.remark.startswith("better than the training loss (")
    assert finding.n == 40


def test_the_score_is_spearmans_by_hand() -> None:
    """With ρ = 1 / t_c for every run, each half predicts the other's order perfectly."""
    rng = np.random.default_rng(0)
    rows = [
        one(s, end, 0.0, np.full(len(STEPS), 1 / end), flat_loss(rng))
        for s, end in enumerate(rng.permutation(np.arange(800, 1_800, EVERY)))
    ]
    predictions = held_out_predictions(table_of(rows))

    assert [p.correlation for p in predictions] == [1.0, 1.0]
    for p in predictions:
        order = np.argsort(p.remaining)
        assert np.all(np.diff(p.predicted[order]) > 0)
        assert p.time in STEPS
        assert 500 <= p.time <= 750  # half of the median plateau of a half


def test_predictions_are_in_steps() -> None:
    """If ρ is the remaining time itself, at any evaluation, it is predicted to rounding."""
    rng = np.random.default_rng(0)
    rows = [
        one(s, end, 0.0, np.maximum(end - STEPS, 1.0), flat_loss(rng))
        for s, end in enumerate(times(rng, 30))
    ]

    for p in held_out_predictions(table_of(rows)):
        assert np.allclose(p.predicted, p.remaining)


def test_runs_past_their_plateau_are_left_out() -> None:
    """Of 40 runs 8 leave chance before half of the median plateau: 32 are predicted."""
    rng = np.random.default_rng(0)
    ends = [300.0 if s % 5 == 0 else 1_000.0 + EVERY * s for s in range(40)]
    rows = [one(s, end, 0.0, walk(rng, 3 / end), flat_loss(rng)) for s, end in enumerate(ends)]
    finding = ProgressPredicts().judge(table_of(rows), 0.05)

    assert finding.n == 32
    assert "8 runs had left chance by then" in finding.remark
    assert "no control on random labels" in finding.remark


def test_unsolved_runs_are_the_latest() -> None:
    """Where the runs that drift slowest are never solved, they still count as predicted.

    Without them the order of the others would be left: equal times, that is nothing.
    """
    rng = np.random.default_rng(0)
    rows = [
        one(
            s,
            math.inf if s % 4 < 2 else 1_500.0,
            0.0,
            walk(rng, 1e-4 if s % 4 < 2 else 3e-3),
            flat_loss(rng),
        )
        for s in range(40)
    ]
    finding = ProgressPredicts().judge(table_of(rows), 0.05)

    assert finding.judgement is SUPPORTED
    assert finding.n == 40


def test_halves_that_disagree_contradict() -> None:
    """If drift speeds up the even seeds and slows down the odd, each misleads the other."""
    table = world(lambda s, end, _: 3 / end if s % 2 else 3 / (2_600 - end))

    assert ProgressPredicts().judge(table, 0.05).judgement is CONTRADICTED


def test_a_loss_that_knows_is_not_beaten() -> None:
    """Where the loss falls by the drift as well, ρ is not called better; nor if it knows less."""
    rng = np.random.default_rng(0)
    rows, better = [], []
    for s, end in enumerate(times(rng, 40)):
        moved = walk(rng, 3 / end)
        rows.append(one(s, end, 0.0, moved, 1 - moved / 10))
        better.append(one(s, end, 0.0, walk(rng, ignorant(s, end, rng)), 1 - 1 / end - STEPS / 1e6))

    same = ProgressPredicts().judge(table_of(rows), 0.05)
    assert same.judgement is SUPPORTED
    assert "not clearly better than the training loss" in same.remark
    assert ProgressPredicts().judge(table_of(better), 0.05).remark.startswith("worse than the tr")


def test_prediction_keeps_its_level() -> None:
    """Where ρ moves by chance, at most 5 % of the tables say anything.

    And p-values of permutations below 10 % are as rare as that.
    """
    findings = [
        ProgressPredicts().judge(world(ignorant, seed=seed, seeds=20), 0.05) for seed in range(80)
    ]
    found = [float(f.remark.split("permutation p = ")[1].split(";")[0]) for f in findings]

    assert sum(f.judgement is not UNDECIDED for f in findings) <= most_wrong(80)
    assert np.sum(np.array(found) <= 0.1) <= most_wrong(80, 0.1)
    assert np.mean(found) == pytest.approx(0.5, abs=0.1)


def test_several_networks_keep_the_level() -> None:
    """As above with three configurations, whose seeds are the same."""
    names = ["mlp(1, (), sine(3), sum)", "mlp(10, (), relu, linear)", "polynet(3)"]
    tables = [world(ignorant, seed=seed, seeds=20, models=names) for seed in range(40)]

    assert decided(ProgressPredicts(), tables) <= most_wrong(40)


def test_configurations_are_combined() -> None:
    """Each has its own score in the remark; one with too few runs at chance is named."""
    names = ["mlp(1, (), sine(3), sum)", "polynet(3)"]
    few = world(knowing, seeds=10, models=["mlp(10, (), relu, linear)"])
    finding = ProgressPredicts().judge(pl.concat([world(knowing, models=names), few]), 0.05)

    assert finding.judgement is SUPPORTED
    assert finding.n == 80
    assert finding.remark.startswith("(xiv) 0.")
    assert ", (xv) 0." in finding.remark
    assert finding.remark.endswith("too few runs at chance in: (i)")


def test_prediction_says_what_it_lacks() -> None:
    """Curves, the measure, enough runs, and one thing varied at a time."""
    table = world(knowing)
    rule = ProgressPredicts()
    without = table.drop("curve.first_layer_movement")

    assert rule.judge(table.drop("curve.step"), 0.05).remark == "these runs kept no curves"
    assert rule.judge(without, 0.05).remark == (
        "these runs did not record first_layer_movement: name it in evaluation.instruments"
    )
    assert rule.judge(world(knowing, seeds=10), 0.05).remark == (
        "needs 8 runs in each half of the seeds that are at chance after 0.5 of their plateau; "
        "too few in: (xiv)"
    )
    assert rule.judge(pl.concat([table, table]), 0.05).remark.startswith("several runs share task")


def test_noise_alone_has_no_time_to_predict() -> None:
    """A table of the control alone is undecided, not an error."""
    table = world(knowing).filter(pl.col("data.label_noise") > 0)

    assert ProgressPredicts().judge(table, 0.05).judgement is UNDECIDED
    assert ProgressSeparates().judge(table, 0.05).judgement is UNDECIDED


# Separation


def jump(at: float, size: float, rng: np.random.Generator, noise: float = 1e-3) -> np.ndarray:
    """Return a signal that is 1, and changes by `size` at a time."""
    return 1 + size * (at <= STEPS) + noise * rng.standard_normal(len(STEPS))


def told_apart(
    ours: float, theirs: float, *, seed: int = 0, seeds: int = 20, spread: float = 0.3
) -> pl.DataFrame:
    """Make runs whose movement jumps around one time, and whose loss falls around another."""
    rng = np.random.default_rng(seed)
    rows = []
    for s in range(seeds):
        mine, other = (time * math.exp(spread * rng.standard_normal()) for time in (ours, theirs))
        rows.append(one(s, BUDGET, 0.0, jump(mine, 1, rng), jump(other, -1, rng)))
        rows.append(one(s, math.inf, 0.5, jump(1e9, 0, rng), jump(1e9, 0, rng)))
    return table_of(rows)


def test_what_is_told_apart_sooner() -> None:
    """Movement that jumps at 300 and a loss that falls at 900: supported; the reverse is not."""
    sooner = ProgressSeparates().judge(told_apart(300, 900), 0.05)
    later = ProgressSeparates().judge(told_apart(900, 300), 0.05)

    assert sooner.judgement is SUPPORTED
    assert sooner.low < 3 < sooner.high * 1.2
    assert later.judgement is CONTRADICTED
    assert later.high < 1


def test_the_times_by_hand() -> None:
    """All movements jump at 200, all losses fall at 800; the errors at 1950, before the end."""
    finding = ProgressSeparates().judge(told_apart(200, 800, spread=0.0), 0.05)

    assert finding.remark == "(xiv): ρ 200, training loss 800, test error 1,950 steps"
    assert finding.estimate == finding.low == finding.high == 4


def test_shares_are_mann_and_whitneys() -> None:
    """Against SciPy's statistic, with ties, and with runs drawn twice; medians by repeating."""
    from scipy.stats import mannwhitneyu

    from petridish.statistics.ranks import share_below, weighted_medians

    rng = np.random.default_rng(0)
    weights = np.array([[1.0, 1, 1], [0, 1, 2], [2, 0, 0]]).T  # (run, weighting)
    for _ in range(6):
        a, b = rng.integers(0, 5, 4).astype(float), rng.integers(0, 5, 3).astype(float)
        for i, drawn in enumerate(([0, 1, 2], [1, 2, 2], [0, 0])):
            area = mannwhitneyu(a, b[drawn]).statistic / (4 * len(drawn))
            assert share_below(a, b, weights).mean(axis=0)[i] == pytest.approx(area)
            low = np.sort(b[drawn])[(len(drawn) - 1) // 2]
            assert weighted_medians(np.tile(b[:, None], 3), weights)[i] == low


def test_a_solved_run_is_told_from_noise_by_anything() -> None:
    """Movement of solved runs is not compared with what noise adds up to long afterwards."""
    rng = np.random.default_rng(0)
    rows = []
    for s in range(20):
        rows.append(one(s, 500.0, 0.0, STEPS / 500, jump(450, -1, rng)))
        rows.append(one(s, math.inf, 0.5, STEPS / 1_000, jump(1e9, 0, rng)))
    finding = ProgressSeparates().judge(table_of(rows), 0.05)

    assert finding.remark == "(xiv): ρ 25, training loss 450, test error 450 steps"


def test_a_noisy_loss_is_averaged() -> None:
    """A loss that falls by no more than its noise, at 100 steps, is read as a mean."""
    rng = np.random.default_rng(0)
    rows = []
    for s in range(20):
        rows.append(one(s, BUDGET, 0.0, jump(1_500, 1, rng), jump(100, -1, rng, noise=1.0)))
        rows.append(one(s, math.inf, 0.5, jump(1e9, 0, rng), jump(1e9, 0, rng, noise=1.0)))

    assert ProgressSeparates().judge(table_of(rows), 0.05).judgement is CONTRADICTED


@pytest.mark.parametrize("unit", ["run", "population"])
def test_separation_keeps_its_level(unit: Any) -> None:
    """Where both change at times drawn alike, at most 5 % of the tables prefer one."""
    tables = [told_apart(600, 600, seed=seed) for seed in range(60)]

    assert decided(ProgressSeparates(unit=unit), tables) <= most_wrong(60)


def test_slow_runs_decide_for_the_population_alone() -> None:
    """Of 20 runs 4 move late: the others' median is theirs, the mean of all shares is not."""
    rng = np.random.default_rng(0)
    rows = []
    for s in range(20):
        late = 1_500 if s % 5 == 0 else 200
        rows.append(one(s, BUDGET, 0.0, jump(late, 1, rng), jump(800, -1, rng)))
        rows.append(one(s, math.inf, 0.5, jump(1e9, 0, rng), jump(1e9, 0, rng)))
    table = table_of(rows)

    assert ProgressSeparates().judge(table, 0.05).estimate == 4
    assert ProgressSeparates(unit="population").judge(table, 0.05).estimate == 800 / 1_500


def test_what_never_separates_counts_as_late() -> None:
    """A measure without a signal is told apart when the runs are solved, and not before."""
    never = ProgressSeparates().judge(told_apart(1e9, 600, spread=0.0), 0.05)
    neither = ProgressSeparates().judge(told_apart(1e9, 1e9), 0.05)

    assert never.judgement is CONTRADICTED
    assert never.estimate == 600 / BUDGET
    assert neither.judgement is CONTRADICTED  # the error at least falls before the end


# While the error is at chance


def flat_world(
    lead: float, movement: float, *, seeds: int = 40, budget: int = BUDGET
) -> pl.DataFrame:
    """Make runs at chance until 950: leads from `lead` on, ρ above all noise from `movement` on."""
    rng = np.random.default_rng(0)
    rows = []
    for s in range(seeds):
        for noise in (0.0, 0.5):
            end = math.inf if noise else 1_000.0
            moved = 1 + 0.1 * rng.random(len(STEPS)) + (movement <= STEPS) * (noise == 0)
            row = one(s, end, noise, moved, flat_loss(rng), **{"training.steps": budget})
            steps = np.array(row["curve.step"])
            rows.append(row | {"curve.relevant_lead": np.where(steps >= lead, 0.1, -0.1).tolist()})
    return table_of(rows)


def test_what_is_told_apart_while_the_error_is_flat() -> None:
    """ρ that leaves noise at 400 does so by 925, the last evaluation at chance; from 975 on not.

    At half of the time, 462, it has in the former case.
    """
    sooner = TellsWhileFlat().judge(flat_world(0, 400), 0.05)
    later = TellsWhileFlat().judge(flat_world(0, 975), 0.05)

    assert sooner.judgement is SUPPORTED
    assert (sooner.estimate, sooner.n) == (1.0, 80)
    assert sooner.remark.startswith("(xiv): 40 of 40 (at half of the time 40), training loss ")
    assert later.judgement is CONTRADICTED
    assert later.estimate < 0.2
    assert TellsWhileFlat().judge(flat_world(0, 400, seeds=9), 0.05).remark == (
        "needs 10 runs on a parity that begin at chance and as many on noise in (xiv)"
    )


def test_runs_that_are_flat_longer_than_noise_was_followed_are_left_out() -> None:
    """Beyond its budget the control says nothing."""
    table = flat_world(0, 400, budget=500)

    finding = TellsWhileFlat().judge(table, 0.05)
    assert finding.judgement is UNDECIDED
    assert finding.remark.endswith(" on noise, 40 left out")


def test_relevant_weights_lead_before_the_error_leaves_chance() -> None:
    """From 700 on they lead at 925, the last evaluation at chance; from 950 on they do not."""
    sooner = LeadsBeforeItShows().judge(flat_world(700, 0), 0.05)
    later = LeadsBeforeItShows().judge(flat_world(950, 0), 0.05)

    assert sooner.judgement is SUPPORTED
    assert sooner.remark == "(xiv): 40 of 40, first seen at 0.76 of the time at chance"
    assert (later.judgement, later.estimate) == (CONTRADICTED, 0.0)
    without = LeadsBeforeItShows().judge(flat_world(0, 0).drop("curve.relevant_lead"), 0.05)
    assert without.remark == (
        "these runs did not record relevant_lead: name it in evaluation.instruments"
    )


# Figures


def test_every_weight_has_its_path() -> None:
    """One run per configuration, one line per weight; without weights there is nothing to draw."""
    table = drawn_table().filter(pl.col("data.label_noise") == 0, pl.col("seed") < 3)
    kept = table.with_columns(
        pl.struct(
            values=pl.col("curve.step").list.eval(pl.element().repeat_by(5).explode() * 1.0),
            shape=pl.concat_list(pl.col("curve.step").list.len(), pl.lit(1), pl.lit(5)),
        ).alias("array.first_layer_weights")
    )
    figure = weight_trajectories(kept, "Weights")

    assert titles(figure) == [
        "(xiv) sinusoidal, no 2nd layer\nB = 32, η = 0.1",
        "(xv) PolyNet\nB = 32, η = 0.1",
    ]
    assert [len(axes.lines) for axes in figure.axes] == [2, 2, 5, 5, 1, 1]
    with pytest.raises(
        NothingToDraw, match=r"No run kept its weights\. Add the instrument first_l"
    ):
        weight_trajectories(table, "Weights")


def drawn_table() -> pl.DataFrame:
    """Return runs of two configurations with all that the figures show."""
    table = world(knowing, seeds=20, models=["mlp(1, (), sine(3), sum)", "polynet(3)"])
    return table.with_columns(
        (pl.col("curve.first_layer_movement") * 2).alias("curve.relevant_weight"),
        pl.col("curve.first_layer_movement").alias("curve.irrelevant_weight"),
        pl.col("curve.step").list.last().alias("steps"),
    )


def titles(figure: Any) -> list[str]:
    """Return the titles of the panels that are shown."""
    found = [axes.get_title(loc="left") for axes in figure.axes if axes.get_visible()]
    return [title for title in found if title]


def texts(figure: Any) -> list[str]:
    """Return every text drawn inside the panels."""
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def test_every_configuration_has_a_panel() -> None:
    """With its numeral, batch size and rate; and how long its plateau is."""
    parity = drawn_table().filter(pl.col("data.label_noise") == 0)
    figure = configuration_curves(parity, "Curves")

    assert titles(figure) == [
        "(xiv) sinusoidal, no 2nd layer\nB = 32, η = 0.1",
        "(xv) PolyNet\nB = 32, η = 0.1",
    ]
    assert all("of 20 solved" in text and "plateau 9" in text for text in texts(figure))
    assert all(len(axes.lines) == 10 + 2 for axes in figure.axes)  # ten runs and two levels


def test_progress_is_drawn_with_its_control() -> None:
    """Three rows: seen from outside, weights, ρ; four with a Fourier gap."""
    table = drawn_table()
    figure = progress_curves(table, "Progress")
    gap = table.with_columns(pl.col("curve.relevant_weight").alias("curve.fourier_gap"))

    assert len(figure.axes) == 3 * 2
    assert len(progress_curves(gap, "Progress").axes) == 4 * 2
    assert texts(figure) == ["20 on the parity, 20 on random labels"] * 2
    assert len(figure.axes[-1].lines) == 40


def test_predictions_are_drawn_with_their_score() -> None:
    """A point a run: 20 seeds, each predicted once."""
    figure = prediction_scatter(drawn_table(), "Predictions")
    points = [
        sum(len(np.asarray(line.get_xdata())) for line in axes.lines[:-1]) for axes in figure.axes
    ]

    assert titles(figure) == ["(xiv)", "(xv)"]
    assert all("rank correlation 0." in text and "n = 20" in text for text in texts(figure))
    assert points == [20, 20]


def test_what_cannot_be_drawn_is_said() -> None:
    """Curves, instruments and enough runs, each with what to do."""
    table = drawn_table()

    with pytest.raises(NothingToDraw, match=r"kept no curves\. Run them with --set"):
        configuration_curves(table.drop("curve.step"), "Curves")
    with pytest.raises(NothingToDraw, match=r"did not record relevant_weight: name it in"):
        progress_curves(table.drop("curve.relevant_weight"), "Progress")
    with pytest.raises(NothingToDraw, match="Run more seeds"):
        prediction_scatter(table.filter(pl.col("seed") < 6), "Predictions")
