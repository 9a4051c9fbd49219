"""What counts as the same number on two processors, and what does not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.agreement import (
    ROUNDING,
    SEARCHED,
    TOLERANCE,
    allowed,
    differences,
    same_number,
    same_words,
)

VERDICT: dict[str, Any] = {
    **{"claim": "C", "verdict": "supported", "estimate": 4.714045207910316, "low": None, "n": 18},
    **{"level": 0.05, "text": "It holds.", "remark": "6 of 72 cells higher; p = 2.3e-26; −0.28"},
}


def test_the_last_digits_are_the_processors() -> None:
    """Pairs that two processors computed from the same runs."""
    assert same_number(0.9999990290785795, 0.9999990290785788)
    assert same_number(4.714045207910316, 4.714045207910317)
    assert same_number(2.653e-14, 2.687e-14, min(ROUNDING))  # exactly 0, but for rounding
    assert not same_number(2.653e-14, 2.687e-14)
    assert same_number(0.9561234140016464, 0.9561225640517312, min(SEARCHED))  # ends of a search
    assert not same_number(0.956, 0.958, min(SEARCHED))


def test_a_share_above_chance_is_rounded_as_a_mass() -> None:
    """Other small numbers of the golden files are compared relative to their own size."""
    assert allowed(3e-4, "/successor_attention, chains/0") == 1e-7
    assert allowed(3e-4, "/movement/0") == 3e-4 * TOLERANCE
    assert allowed(0.0) == 1e-11


@pytest.mark.parametrize(("one", "other"), [(1.0, 1 + 2e-9), (1e-10, 2e-10), (0.0, 2e-12)])
def test_the_ninth_digit_is_ours(one: float, other: float) -> None:
    """No rounding goes this far."""
    assert not same_number(one, other, min(ROUNDING))


def test_a_tie_may_be_printed_either_way() -> None:
    """One in the last printed place, in either direction and with any sign for minus."""
    assert same_words("mean α 0.12", "mean α 0.13")
    assert same_words("−0.28 [-0.35, 1.1e-06]", "−0.29 [-0.36, 1.2e-06]")
    assert same_words("S3: 0.98; S4: 0.945", "S3: 0.98; S4: 0.945")
    for one, other in (("0.0999", "0.1"), ("0.999", "1"), ("9.99", "10"), ("1.9", "2")):
        assert same_words(f"from {one} on", f"from {other} on")
        assert same_words(f"from {other} on", f"from {one} on")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("mean α 0.12", "mean β 0.12"),
        ("mean α 0.12", "mean α 0.14"),
        ("6 of 72 cells higher", "7 of 72 cells higher"),
        ("at m = 1,000", "at m = 1,001"),
        ("S3: 1; S4: 1", "S4: 1; S4: 1"),
        ("p = 2.3e-26", "p = 2.3e-25"),
        ("p = 1e-06", "p = 2e-06"),
        ("at 0.1", "at 0.1999"),
        ("at −0.1", "at 0.0"),
        ("0.9 against 0.8", "0.8 against 0.9"),
        ("p = 0.01 < 0.05", "p = 0.02 < 0.04"),
        ("from 1 to 2", "from 2 to 1"),
    ],
)
def test_words_and_counts_are_exact(one: str, other: str) -> None:
    """A count has no last place to lose."""
    assert not same_words(one, other)


def test_a_verdict_that_is_rounded_elsewhere_agrees() -> None:
    """Every number in its last digits, the remark in its last printed one."""
    other = VERDICT | {"estimate": 4.714045207910317}
    other["remark"] = "6 of 72 cells higher; p = 2.4e-26; −0.28"

    assert differences(VERDICT, VERDICT) == differences(other, VERDICT) == []


@pytest.mark.parametrize(
    "change",
    [
        *({"verdict": "undecided"}, {"estimate": 4.7140453}, {"low": 0.0}, {"n": 19}, {"n": 18.0}),
        *({"level": 0.01}, {"text": "It may hold."}, {"remark": "7 of 72 cells higher"}),
        *({"remark": None}, {"estimate": None}),
        {"claim": "D", "new": 1},
    ],
    ids=str,
)
def test_any_other_difference_is_named(change: dict[str, Any]) -> None:
    """Field by field."""
    assert differences(VERDICT | change, VERDICT) == sorted(change)
