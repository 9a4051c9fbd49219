"""Grids of runs, and how they are carried out."""

from petridish.sweeps.adaptive import AtHalf
from petridish.sweeps.allocation import Allocates
from petridish.sweeps.arms import Arms, arm, by_arm, joined
from petridish.sweeps.progress import Progress, make_progress
from petridish.sweeps.runner import Summary, cores, run_sweep
from petridish.sweeps.sweep import Sweep
from petridish.sweeps.thresholds import FindThreshold
from petridish.sweeps.userfile import load_user_file

__all__ = [
    "Allocates",
    "Arms",
    "AtHalf",
    "FindThreshold",
    "Progress",
    "Summary",
    "Sweep",
    "arm",
    "by_arm",
    "cores",
    "joined",
    "load_user_file",
    "make_progress",
    "run_sweep",
]
