"""Versions: a class that computes something else has raised its own."""

from __future__ import annotations

import copy

from petridish.models import MLP
from petridish.values import known_classes
from tests.digests import digests, entry, moved, written


def test_no_class_computes_something_else_under_its_version() -> None:
    """Draws, starts, losses and first steps are those that stored runs of this version had."""
    found = list(moved(digests(), written()))

    assert found == [], "\n".join(found)


def test_what_moved_is_said_with_what_to_do() -> None:
    """A loss that is another, and a version that has no entry."""
    there = {entry(MLP): {"loss": {"shape": [1], "size": 1.0, "mark": 1.0}, "run": "a"}}
    here = copy.deepcopy(there)
    here[entry(MLP)]["run"] = "b"

    assert list(moved(here, there)) == [
        "MLP, version 1 computes something else than it did (/run: 'b' was 'a'), or a class does "
        "that its run has too. If that is meant, raise `version` of the one that changed, such as "
        "MLP (its stored runs are then trained again), and write the file by `python -m "
        "tests.digests`; if not, mend it."
    ]
    assert list(moved({"MLP, version 2": {}}, there)) == [
        "MLP, version 2 has no entry yet. Write it by `python -m tests.digests`."
    ]
    raised = {entry(MLP): here[entry(MLP)] | {"with": ["SparseParity, version 2"]}}
    assert list(moved(raised, there)) == [
        "MLP, version 1 has no entry with these versions yet. Write it by "
        "`python -m tests.digests`."
    ]
    assert list(moved(there, there)) == []


def test_every_task_model_and_start_has_an_entry() -> None:
    """All choices but those that other libraries fit, tables, what PyTorch draws, thresholds."""
    known = set(written())
    rooms = ("petridish.tasks", "petridish.models", "petridish.training")
    lacking = {
        name
        for name, kind in known_classes().items()
        if isinstance(getattr(kind, "name", None), str)
        and kind.__module__.startswith(rooms)
        and entry(kind) not in known
    }

    assert lacking <= {"Table", "Own", "Below", "Above"}
