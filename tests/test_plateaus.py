"""Plateaus: measures of a curve by hand, and the two rules about them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest

from petridish.chapters.hidden.rules.plateaus import (
    HasPlateau,
    NoPlateau,
    configuration_names,
)
from petridish.statistics.intervals import median_interval
from petridish.statistics.transitions import (
    plateau_fraction,
    plateau_length,
    transition_time,
)
from tests.rule_worlds import (
    CONTRADICTED,
    SUPPORTED,
    UNDECIDED,
    decided,
    most_wrong,
    run,
    table_of,
)

MEASURES = (transition_time, plateau_length, plateau_fraction)
MLP = "mlp(10, (), relu, linear)"
WIDE = "mlp(1000, (), power(3), linear)"
EVERY = 10


def test_a_phase_transition_by_hand() -> None:
    """Chance at 0 … 80, a fall over 90, solved at 100: 85 of 100 steps."""
    steps = list(range(0, 101, 10))
    errors = [0.5] * 9 + [0.3, 0.02]

    assert [measure(steps, errors) for measure in MEASURES] == [100, 85, 0.85]


def test_a_straight_fall_has_no_plateau() -> None:
    """From ½ to 0 it spends a tenth of its way at 45 % and above, and is under 5 % at 90 %: ⅑."""
    steps = np.arange(0, 10_001)
    errors = 0.5 - steps / 20_000

    assert transition_time(steps, errors) == 9_000
    assert plateau_fraction(steps, errors) == pytest.approx(1 / 9, abs=1e-4)


def test_a_plateau_left_twice_counts_twice() -> None:
    """Steps at chance count wherever they lie."""
    steps = [0, 10, 20, 30, 40, 50]
    errors = [0.5, 0.4, 0.4, 0.46, 0.4, 0.05]

    assert plateau_length(steps, errors) == 5 + 5 + 5


def test_what_comes_after_the_transition_does_not_matter(seed: int) -> None:
    """Whatever a run does once it was at 5 %, its measures stay."""
    rng = np.random.default_rng(seed)
    steps = np.arange(0, 400, 10)
    errors = np.concatenate([[0.5] * 12, [0.3, 0.04], rng.uniform(0, 0.6, 26)])

    for measure in MEASURES:
        assert measure(steps, errors) == measure(steps[:14], errors[:14])


def test_parts_of_the_time_add_up(seed: int) -> None:
    """For curves at random: brute force over moments, each as the evaluation nearest to it."""
    rng = np.random.default_rng(seed)
    steps = np.cumsum(rng.integers(1, 20, 30)) - 1
    errors = np.append(rng.uniform(0.06, 0.6, 29), 0.0)
    moments = np.linspace(steps[0], steps[-1], 200_001)[:-1]
    nearest = np.searchsorted((steps[1:] + steps[:-1]) / 2, moments)
    brute = float(np.mean(errors[nearest] >= 0.45)) * (steps[-1] - steps[0])

    assert plateau_length(steps, errors) == pytest.approx(brute, abs=0.01)


def test_runs_that_never_fall_have_no_measures() -> None:
    """NaN, not 0 and not 1; a run that begins solved has no plateau to speak of."""
    assert all(math.isnan(measure([0, 10, 20], [0.5, 0.4, 0.06])) for measure in MEASURES)
    begins = [measure([0, 10], [0.0, 0.0]) for measure in MEASURES]
    assert begins[:2] == [0, 0]
    assert math.isnan(begins[2])


def test_the_interval_of_a_median_covers() -> None:
    """By the binomial law, and exactly: of 7 values at 98 % it is their range."""
    assert median_interval(np.arange(7.0), 0.98) == (0, 6)
    assert median_interval(np.arange(6.0), 0.98) == (-math.inf, math.inf)
    assert median_interval(np.arange(20.0), 0.95) == (5, 14)
    rng = np.random.default_rng(0)
    draws = [median_interval(rng.exponential(size=15), 0.9) for _ in range(1_000)]
    assert np.mean([low <= math.log(2) <= high for low, high in draws]) >= 0.88


# Rules


def falls(fraction: float, seed: int, model: str = MLP, **columns: Any) -> dict[str, Any]:
    """Make a run that spends a fraction of 1000 steps at chance and is then under 5 %."""
    steps = [0, *range(EVERY // 2, 1_000, EVERY), 1_000]  # so that the change is halfway
    errors = [0.5 if step < 1_000 * fraction else 0.2 if step < 1_000 else 0.0 for step in steps]
    return run(
        1_000,
        seed=seed,
        model=model,
        **{
            "training.batch_size": 32,
            "training.learning_rate": 0.1,
            "curve.step": steps,
            "curve.test_error": errors,
        }
        | columns,
    )


def never(seed: int, model: str = MLP, **columns: Any) -> dict[str, Any]:
    """Make a run that stays at chance."""
    stuck = falls(0.5, seed, model, **columns)
    return stuck | {
        "outcome": "OUT_OF_STEPS",
        "solved_at": None,
        "curve.test_error": [0.5] * len(stuck["curve.step"]),
    }


def many(fractions: Sequence[float], model: str = MLP, **columns: Any) -> list[dict[str, Any]]:
    """Make a run for every fraction."""
    return [falls(fraction, seed, model, **columns) for seed, fraction in enumerate(fractions)]


def test_runs_are_made_as_they_are_described() -> None:
    """A fraction of 0.9 is measured as one."""
    for fraction in (0.1, 0.5, 0.9):
        made = falls(fraction, 0)
        assert plateau_fraction(made["curve.step"], made["curve.test_error"]) == fraction


LONG, SHORT = [0.9, 0.92, 0.95, 0.8, 0.85, 0.97, 0.9, 0.91], [0.1, 0.05, 0.2, 0.1, 0.15, 0.1, 0.12]


def test_plateaus_where_they_are_claimed() -> None:
    """MLPs at 80 % and more, the wide polynomial one at 20 % and less: both claims hold."""
    table = table_of([*many(LONG), *many(SHORT, WIDE)])
    has, none = HasPlateau().judge(table, 0.05), NoPlateau().judge(table, 0.05)

    assert (has.judgement, none.judgement) == (SUPPORTED, SUPPORTED)
    assert has.estimate == pytest.approx(0.905)
    assert (has.low, has.high) == (0.8, 0.97)
    assert (none.estimate, none.n) == (0.1, 7)
    assert has.remark == "at (i); 1 of 1 configurations agree"


def test_a_configuration_without_a_plateau_is_named() -> None:
    """Of two rates one has none: the claim fails there, and says so."""
    fast: dict[str, Any] = {"training.learning_rate": 1.0}
    table = table_of([*many(LONG), *many([*SHORT, 0.1], **fast)])
    finding = HasPlateau().judge(table, 0.05)

    assert finding.judgement is CONTRADICTED
    assert finding.estimate == 0.1
    assert finding.remark == (
        "at (i) B = 32, η = 1; 1 of 2 configurations agree; significantly below 0.5: "
        "(i) B = 32, η = 1"
    )


def test_an_exception_with_a_plateau_contradicts() -> None:
    """A wide polynomial net at chance for most of its time, unless it is not asked about."""
    small = {"training.batch_size": 1}
    table = table_of([*many(SHORT, WIDE), *many(LONG, WIDE, **small)])
    finding = NoPlateau().judge(table, 0.05)

    assert finding.judgement is CONTRADICTED
    assert "significantly above 0.5: (vi) B = 1, η = 0.1" in finding.remark
    large = NoPlateau(at_least={"training.batch_size": 32})
    assert large.judge(table, 0.05).judgement is SUPPORTED


def test_runs_that_never_fall_speak_against_the_claim() -> None:
    """They have no fraction: a few change nothing, many leave it open, and survivors prove nothing.

    A configuration with too few that have one is named, and while there is one nothing is said of
    all.
    """
    slow: dict[str, Any] = {"training.learning_rate": 0.01}
    few = HasPlateau().judge(table_of([*many(LONG * 2), never(20)]), 0.05)
    assert few.judgement is SUPPORTED
    assert few.remark.endswith("1 of 17 runs never fell to 5 %")
    stuck = [*many(LONG), *(never(seed) for seed in range(8, 38))]
    assert HasPlateau().judge(table_of(stuck), 0.05).judgement is UNDECIDED

    finding = HasPlateau().judge(table_of([*many(LONG), *many([0.1] * 3, **slow)]), 0.05)
    assert finding.judgement is UNDECIDED
    assert finding.n == 8
    assert finding.remark == (
        "at (i) B = 32, η = 0.1; 1 of 1 configurations agree; not judged, too few runs fall to "
        "5 %: (i) B = 32, η = 0.01 (3 of 3)"
    )
    alone = HasPlateau().judge(table_of([never(seed) for seed in range(9)]), 0.05)
    assert alone.judgement is UNDECIDED
    assert alone.remark == "too few runs fall to 5 % in: (i) (0 of 9)"


def test_what_the_paper_calls_unstable_does_not_block() -> None:
    """Too few runs that fall are named, others left out; short plateaus still count."""
    large: dict[str, Any] = {"training.batch_size": 1024}
    rule = HasPlateau(unstable=(("(i)", 1024),))
    few = rule.judge(table_of([*many(LONG), *many([0.9] * 3, **large)]), 0.05)
    stuck = [*many(LONG), *many(LONG, **large), *(never(s, **large) for s in range(8, 38))]
    short = rule.judge(table_of([*many(LONG), *many([*SHORT, 0.1], **large)]), 0.05)

    assert few.judgement is SUPPORTED
    assert few.remark == (
        "at (i) B = 32, η = 0.1; 1 of 1 configurations agree; unstable by the paper's own word, "
        "too few runs fall: (i) B = 1024, η = 0.1 (3 of 3)"
    )
    assert rule.judge(table_of(stuck), 0.05).judgement is SUPPORTED
    assert HasPlateau().judge(table_of(stuck), 0.05).judgement is UNDECIDED
    assert short.judgement is CONTRADICTED


def test_fractions_on_both_sides_are_open() -> None:
    """Half of the runs at 30 %, half at 70 %: neither claim."""
    for rule, model in ((HasPlateau(), MLP), (NoPlateau(), WIDE)):
        finding = rule.judge(table_of(many([0.3, 0.7] * 6, model)), 0.05)
        assert finding.judgement is UNDECIDED
        assert "open: (" in finding.remark


@pytest.mark.parametrize("configurations", [1, 5])
def test_plateaus_keep_their_level(configurations: int) -> None:
    """Fractions below and above ½ at even odds, however skewed: at most 5 % say anything."""
    rng = np.random.default_rng(0)
    tables = []
    for _ in range(100):
        rows = []
        for rate in range(configurations):
            fractions = rng.choice([0.1, 0.51], size=10).tolist()
            which: dict[str, Any] = {"training.learning_rate": 0.1 * (1 + rate)}
            rows += many(fractions, **which)
        tables.append(table_of(rows))

    assert decided(HasPlateau(), tables) <= most_wrong(100)


def test_rules_say_what_they_lack() -> None:
    """Curves, runs, and one thing varied at a time."""
    table = table_of(many(LONG))
    rule = HasPlateau()

    assert NoPlateau().judge(table, 0.05).remark == "none of these architectures was run"
    assert rule.judge(table.drop("curve.step"), 0.05).remark == "these runs kept no curves"
    assert rule.judge(pl.concat([table, table]), 0.05).remark.startswith("several runs share task")


def test_names_say_what_tells_configurations_apart() -> None:
    """Batch size and rate where an architecture has several, the task where there are several."""
    small, large = "sparse_parity(30, 3)", "sparse_parity(50, 3)"

    assert configuration_names([(small, "(i)", 32, 0.1), (small, "(xv)", 32, 0.1)]) == [
        "(i)",
        "(xv)",
    ]
    assert configuration_names([(small, "(i)", 32, 0.1), (large, "(i)", 32, 0.1)]) == [
        "sparse_parity(30, 3) (i)",
        "sparse_parity(50, 3) (i)",
    ]
    assert configuration_names([(small, "(i)", 1, 0.5), (small, "(i)", 32, 0.5)]) == [
        "(i) B = 1, η = 0.5",
        "(i) B = 32, η = 0.5",
    ]
