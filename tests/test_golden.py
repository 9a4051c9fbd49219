"""What stays as it was: keys, verdicts, draws and computations, against the golden files."""

from __future__ import annotations

from typing import Any

import pytest

from tests.agreement import ROUNDING, SEARCHED, SMALL, TOLERANCE
from tests.golden import FILES, RUNS, changes, gist, keys_of, of_run, records, written

RECORDS = dict(records())
AGAIN = (
    "If the change is meant, `python -m tests.golden` writes the file anew and says what changed."
)


def assert_unchanged(here: Any, there: Any) -> None:
    """Fail with every place that differs."""
    found = list(changes(here, there))
    assert found == [], "\n".join([*found, AGAIN])


@pytest.mark.parametrize("name", RECORDS)
def test_the_keys_of_a_record_are_what_they_were(name: str) -> None:
    """Every cell of its sweep, read from its spec.json, has the key under which runs are stored."""
    assert_unchanged(keys_of(RECORDS[name]), written("keys")[name])


@pytest.mark.parametrize("name", RUNS)
def test_a_run_is_what_it_was(name: str) -> None:
    """Its key, its text, what it draws, and two steps of it in every engine that takes it."""
    assert_unchanged(of_run(RUNS[name]), written("runs")[name])


@pytest.mark.parametrize("name", [n for n in FILES if n not in ("keys", "runs", "verdicts")])
def test_what_is_computed_is_what_it_was(name: str) -> None:
    """Instruments, streams, losses, defaults, splits, estimators; `test_records` has verdicts."""
    assert_unchanged(FILES[name](), written(name))


def test_numbers_that_are_rounding_alone_are_named() -> None:
    """Another processor computes other digits of them, which this one cannot show."""
    small = {
        verdict["quantity"]
        for claims in written("verdicts").values()
        for verdict in claims.values()
        if any(isinstance(x, float) and 0 < abs(x) < SMALL for x in verdict.values())
    }
    assert small == ROUNDING


def test_quantities_that_are_searched_for_are_recorded() -> None:
    """A wider tolerance that no record needs would stay unseen."""
    recorded = {
        verdict.get("quantity")
        for claims in written("verdicts").values()
        for verdict in claims.values()
    }
    assert recorded >= SEARCHED


def test_nothing_golden_is_left_behind() -> None:
    """What is written down is still there to be compared."""
    assert set(written("runs")) == set(RUNS), AGAIN
    assert set(written("keys")) == set(RECORDS), AGAIN


def test_a_change_is_named_with_its_place() -> None:
    """Each kind of value, in what a tolerance lets pass and in what it does not."""
    size = gist([1.0, -2.0])
    nudged = {**size, "mark": size["mark"] + 0.5 * TOLERANCE * size["size"]}
    moved = {**size, "mark": size["mark"] + 2 * TOLERANCE * size["size"]}
    verdict = {"claim": "a", "verdict": "supported", "estimate": 1.0, "remark": "p = 0.12"}

    assert list(changes({"a": [size, "x", 1]}, {"a": [nudged, "x", 1]})) == []
    assert list(changes({"a": [size]}, {"a": [moved]})) == [f"/a/0: {size} was {moved}"]
    assert list(changes({"a": 1, "b": 2}, {"a": 3, "c": 2})) == [
        "/b: new",
        "/c: gone",
        "/a: 1 was 3",
    ]
    assert list(changes(["x"], ["x", "y"])) == [": ['x'] was ['x', 'y']"]
    assert list(changes(verdict, verdict | {"estimate": 1 + 1e-12})) == []
    assert list(changes(verdict, verdict | {"verdict": "undecided"})) == [
        "/verdict: 'supported' was 'undecided'"
    ]


def test_a_gist_tells_arrays_apart() -> None:
    """Another value, another place or another shape."""
    base = gist([[1.0, 2.0], [3.0, 4.0]])

    for other in ([[1.0, 2.0], [4.0, 3.0]], [1.0, 2.0, 3.0, 4.0], [[1.0, 2.0], [3.0, 4.001]]):
        assert list(changes(gist(other), base)) != []
