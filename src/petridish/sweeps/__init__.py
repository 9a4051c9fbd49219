"""Grids of runs, and how they are carried out."""

from petridish.sweeps.adaptive import AtHalf
from petridish.sweeps.allocation import Allocates
from petridish.sweeps.arms import Arms, arm, by_arm, joined
from petridish.sweeps.batches import cores
from petridish.sweeps.executors.clusters import Cluster
from petridish.sweeps.find_threshold import FindThreshold
from petridish.sweeps.progress import Progress, make_progress
from petridish.sweeps.ranges import log_range
from petridish.sweeps.runner import Summary, run_sweep
from petridish.sweeps.sweep import Sweep
from petridish.sweeps.userfile import load_user_file

__all__ = [
    "Allocates",
    "Arms",
    "AtHalf",
    "Cluster",
    "FindThreshold",
    "Progress",
    "Summary",
    "Sweep",
    "arm",
    "by_arm",
    "cores",
    "joined",
    "load_user_file",
    "log_range",
    "make_progress",
    "run_sweep",
]
