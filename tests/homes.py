"""Where each experiment is declared, judged and drawn: a table of docs/reference/architecture.md.

`python -m tests.homes` writes it anew.
"""

from __future__ import annotations

import re
import sys
from functools import partial
from pathlib import Path

from petridish.chapters import EXPERIMENTS
from petridish.chapters.features.rules import OfGroups
from petridish.chapters.hidden.rules.output_bias import InArm
from petridish.experiment import Experiment
from petridish.rules import Rule

PAGE = Path(__file__).parent.parent / "docs/reference/architecture.md"
HEAD = "| id | declared | judged | drawn |\n| --- | --- | --- | --- |\n"
TABLE = re.compile(re.escape(HEAD) + r"(?:\|.*\n)+")


def home(value: object) -> str:
    """Return the module of a rule or figure; of a declared rule, that of its measure."""
    if isinstance(value, InArm | OfGroups):
        value = value.rule
    if isinstance(value, Rule):
        return type(value.measure).__module__
    while isinstance(value, partial):
        value = value.func
    return value.__module__


def declared(experiment: Experiment) -> str:
    """Return the module that declares it: the first of those that have it, as it was made there."""
    return next(
        name
        for name, module in sys.modules.items()
        if name.startswith("petridish.chapters.")
        and any(value is experiment for value in vars(module).values())
    )


def files(*modules: str) -> str:
    """Return the files of modules, each once."""
    names = [name.removeprefix("petridish.").replace(".", "/") for name in modules]
    return ", ".join(f"`{name}.py`" for name in dict.fromkeys(names))


def table() -> str:
    """Return the table as it should be."""
    rows = [
        (
            experiment.id,
            files(declared(experiment)),
            files(*(home(claim.rule) for claim in experiment.claims)),
            files(*map(home, experiment.figures.values())),
        )
        for experiment in EXPERIMENTS.values()
    ]
    return HEAD + "".join(f"| {' | '.join(row)} |\n" for row in rows)


if __name__ == "__main__":
    PAGE.write_text(TABLE.sub(table(), PAGE.read_text(encoding="utf-8")), encoding="utf-8")
