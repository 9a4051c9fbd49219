"""Runs that instruments of patterns read, for the golden files."""

from __future__ import annotations

from petridish.errors import UserError
from petridish.models import MLP
from petridish.tasks import Dictionary
from petridish.training import Data, Instrument, RunSpec, Training

PATTERNED = RunSpec(
    task=Dictionary(7, 5, 3),
    data=Data(m=16, n_test=50),
    model=MLP(6),
    training=Training(target_error=None),
)
OF_PATTERNS = {"pattern_gradient": ("dictionary",), "open_margins": ("model mlp(6)", "dictionary")}
MAY_REFUSE = ("open_margins", "filter_weights", "largest_class")


def refuses(instrument: Instrument, spec: RunSpec) -> bool:
    """Whether one of these instruments refuses a run; others read NaN where they do not fit."""
    if instrument.name not in MAY_REFUSE:
        return False
    try:
        instrument.check(spec)
    except UserError:
        return True
    return False
