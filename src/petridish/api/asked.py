"""From what a user names to an experiment, a scale and a sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import shorten
from typing import Any

from petridish.choices import describe
from petridish.errors import UserError
from petridish.experiment import Experiment, user_experiment
from petridish.rules.varying import axis_order
from petridish.sweeps import Sweep

Asked = Sweep | Experiment | str | Path
"""A sweep, an experiment, the id of one, or the path of a Python file that declares one."""
Settings = str | Sequence[str] | Mapping[str, Sequence[Any]]
"""Other values on some axes, as `["m=300,600"]`, `"m=300,600"` or `{"m": (300, 600)}`."""


def find_experiment(asked: Asked) -> Experiment:
    """Return the experiment that is meant; that of a sweep has no claims."""
    if isinstance(asked, Experiment):
        return asked
    if isinstance(asked, Sweep):
        return Experiment("sweep", _title(asked), "", {"own": asked})
    if not isinstance(asked, str | Path):
        raise UserError(
            f"petridish.run was given a {type(asked).__name__}. Give a Sweep, such as "
            'Sweep(spec, {"seed": range(5)}), an Experiment, the id of one, or the path of a file.'
        )
    if str(asked).endswith(".py"):
        return user_experiment(Path(asked))
    from petridish.chapters import find

    return find(str(asked))


def _title(sweep: Sweep) -> str:
    """Return what is swept: the task, and the axes other than seed and restart."""
    axes = [axis for axis in axis_order(sweep) if axis not in ("task", "seed", "restart")]
    task = (
        "several tasks" if "task" in axis_order(sweep) else shorten(describe(sweep.base.task), 60)
    )
    return f"{task} by {', '.join(axes)}" if axes else task


def find_sweep(
    asked: Asked, scale: str | None = None, settings: Settings | None = None
) -> tuple[Experiment, str, Sweep]:
    """Return an experiment, the scale that is meant, and its sweep with the user's settings."""
    experiment = find_experiment(asked)
    scale = scale or experiment.default_scale()
    sweep = experiment.sweep(scale).narrowed(settings or [])
    experiment.check(sweep)
    return experiment, scale, sweep
