"""The rules behind the claims: what is true of all of them."""

from __future__ import annotations

import polars as pl
import pytest

from petridish.rules.claims import Claim, Verdict
from tests.rule_worlds import (
    RULES,
    SUPPORTED,
    UNDECIDED,
)

pytestmark = pytest.mark.usefixtures("few_resamples")


@pytest.mark.parametrize("name", RULES)
def test_a_true_claim_is_supported(name: str) -> None:
    """Where the effect is large, every rule sees it, and its interval holds the estimate."""
    rule, table = RULES[name]
    finding = rule.judge(table(), 0.01)

    assert finding.judgement is SUPPORTED
    assert finding.low <= finding.estimate <= finding.high
    assert finding.n > 0


@pytest.mark.parametrize("name", RULES)
def test_the_order_of_rows_and_the_names_of_seeds_do_not_matter(name: str) -> None:
    """Runs come back from a store in any order; a seed is a name."""
    rule, table = RULES[name]
    plain = table()
    other = plain.sample(fraction=1.0, shuffle=True, seed=1).with_columns(
        seed=pl.col("seed") + 7_000
    )
    one, two = rule.judge(plain, 0.05), rule.judge(other, 0.05)

    assert (one.judgement, one.n, one.remark) == (two.judgement, two.n, two.remark)
    numbers = [(f.estimate, f.low, f.high) for f in (one, two)]
    assert numbers[0] == pytest.approx(numbers[1], nan_ok=True)


@pytest.mark.parametrize("name", RULES)
def test_without_runs_nothing_is_decided(name: str) -> None:
    """An empty table, one cell, one seed, no success: undecided, a remark, JSON without NaN."""
    rule, table = RULES[name]
    plain = table()
    first = plain.row(0, named=True)
    one_cell = plain.filter(
        (pl.col("data.m") == first["data.m"]) & (pl.col("model.width") == first["model.width"])
    )
    unsolved = plain.with_columns(
        outcome=pl.lit("OUT_OF_STEPS"), solved_at=pl.lit(None, dtype=pl.Int64)
    )
    poor = {"empty": plain.clear(), "unsolved": unsolved, "one seed": plain.filter(seed=0)}
    if name in ("quicker", "edge", "fall", "valley", "later", "gone", "best", "least data"):
        poor["one cell"] = one_cell.filter(init=first["init"])
    if name == "bound" or name.endswith("tickets"):  # one seed is many parents, or cells
        del poor["one seed"]
    if name.endswith("tickets"):  # what is solved is read off their curves
        del poor["unsolved"]
    for runs in poor.values():
        finding = rule.judge(runs, 0.05)
        document = Verdict(Claim("x", "text", "source", rule), finding, 0.05).as_json()
        assert finding.judgement is UNDECIDED
        assert finding.remark
        assert all(value == value for value in document.values())


@pytest.mark.parametrize("name", ["quicker", "best", "least data"])
def test_adaptive_allocation_leaves_enough(name: str) -> None:
    """Where some cells have fewer seeds, a clear effect is still seen, from fewer runs."""
    rule, table = RULES[name]
    plain = table()
    some = plain.filter((pl.col("data.m") < 200) | (pl.col("seed") < 7))
    finding = rule.judge(some, 0.05)

    assert finding.judgement is SUPPORTED
    assert finding.n < rule.judge(plain, 0.05).n


@pytest.mark.parametrize("name", ["quicker", "edge", "later", "bound", "best"])
def test_a_diverged_run_is_an_unsolved_one(name: str) -> None:
    """However a run failed, the finding is the same."""
    rule, table = RULES[name]
    failed = table().with_columns(
        solved_at=pl.when(pl.col("seed") == 3).then(None).otherwise(pl.col("solved_at"))
    )
    findings = [
        rule.judge(
            failed.with_columns(
                outcome=pl.when(pl.col("solved_at").is_null())
                .then(pl.lit(how))
                .otherwise(pl.lit("SOLVED"))
            ),
            0.05,
        )
        for how in ("DIVERGED", "OUT_OF_STEPS")
    ]

    assert repr(findings[0]) == repr(findings[1])  # NaN equals NaN
