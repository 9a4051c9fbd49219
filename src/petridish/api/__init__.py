"""What scripts and notebooks call: run a sweep, look at its runs, load a trained model."""

from petridish.api.running import run
from petridish.api.runs import Runs, Verdicts
from petridish.api.trained import Trained, load

__all__ = ["Runs", "Trained", "Verdicts", "load", "run"]
