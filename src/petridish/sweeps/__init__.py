"""Grids of runs, and how they are carried out."""

from petridish.sweeps.arms import Arms, arm
from petridish.sweeps.progress import Progress, make_progress
from petridish.sweeps.runner import Summary, cores, run_sweep
from petridish.sweeps.sweep import Sweep
from petridish.sweeps.userfile import load_user_file

__all__ = [
    "Arms",
    "Progress",
    "Summary",
    "Sweep",
    "arm",
    "cores",
    "load_user_file",
    "make_progress",
    "run_sweep",
]
