"""What the tests of faults share."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from petridish.errors import UserError
from petridish.testing import Broken
from petridish.training import Metric, RunSpec, Silent, load_engine


def at(function: Callable[..., Any], text: str) -> str:
    """Return the place of the line of a function that has this text."""
    lines, first = inspect.getsourcelines(function)
    line = first + next(place for place, each in enumerate(lines) if text in each)
    return f"{Path(inspect.getfile(function)).name}:{line}"


def refused(make: Callable[..., object], *arguments: object) -> str:
    """Return the sentence with which something is refused.

    Without the place of the class that returned what is refused: tests/test_faults_files.py asks
    for these. The place of what failed is kept.
    """
    with pytest.raises((UserError, Broken)) as error:
        make(*arguments)
    return re.sub(r" \(\w+\.py:\d+\)(?! failed)", "", str(error.value))


def without_digits(text: str) -> str:
    """Return a sentence without the numbers of runs and examples that it names."""
    return text.translate(str.maketrans("", "", "0123456789"))


def carried_out(engine: str, spec: RunSpec) -> Any:
    """Carry out a run that nobody has checked."""
    (record,) = load_engine(engine).run([spec], Silent())
    return record


def measured(spec: RunSpec, *metrics: Metric, **changes: Any) -> RunSpec:
    """Return a run with further metrics."""
    return replace(spec, evaluation=replace(spec.evaluation, metrics=metrics, **changes))
