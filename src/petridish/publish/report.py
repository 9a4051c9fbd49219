"""One self-contained HTML page: claims, verdicts, figures, and how to run it all again."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from petridish.choices import own_frame, said_by
from petridish.errors import UserError
from petridish.experiment import Experiment
from petridish.pages import Picture, picture, render, versions
from petridish.rules.claims import Verdict
from petridish.store.requests import SweepNote
from petridish.sweeps.sweep import Sweep

if TYPE_CHECKING:
    import polars as pl


class Shown(NamedTuple):
    """What a report shows: an experiment at a scale, and the sweep with the user's settings.

    `own` is the note of a sweep that no name leads to: no command runs it again.
    """

    experiment: Experiment
    scale: str
    sweep: Sweep
    settings: Sequence[str] = ()
    own: SweepNote | None = None


@dataclass(frozen=True)
class Chapter:
    """One experiment at one scale, with its runs."""

    shown: Shown
    runs: pl.DataFrame
    verdicts: list[Verdict]
    pictures: list[Picture]
    tables: Mapping[str, pl.DataFrame]
    missing: list[str] = field(default_factory=list)

    @property
    def experiment(self) -> Experiment:
        """What was run."""
        return self.shown.experiment

    @property
    def label(self) -> str:
        """The scale and the settings."""
        return ", ".join([self.shown.scale, *self.shown.settings])

    @cached_property
    def anchor(self) -> str:
        """Where the page's contents link to."""
        return _name(self.experiment.id, self.label)

    @property
    def made(self) -> str:
        """How much of the sweep the verdicts rest on."""
        whole = len(self.shown.sweep)
        return f"{len(self.runs):,}{'' if len(self.runs) == whole else f' of {whole:,}'} runs"

    @property
    def facts(self) -> str:
        """What the runs were, in one line."""
        runs = self.runs
        solved, diverged = (int((runs["outcome"] == word).sum()) for word in ("SOLVED", "DIVERGED"))
        seeds = sorted(runs["seed"].unique())
        return (
            f"{self.experiment.source}. Scale {self.label}: {self.made}, {solved:,} solved, "
            f"{diverged:,} diverged; seeds {seeds[0]} to {seeds[-1]}; "
            f"{runs['steps'].sum():,} model-steps in {runs['seconds'].sum():,.0f} core-seconds."
        )

    @property
    def claims_unknown(self) -> bool:
        """Whether it declared claims that its note does not keep."""
        return self.shown.own is not None and self.shown.own.claims > 0

    def commands(self, store: str) -> list[str]:
        """Return the commands that run, judge and draw it again, where a name leads to it."""
        if self.shown.own:
            return []
        path = self.experiment.user_file
        name = self.experiment.id if path is None else _from_here(path)
        words = [name, *(() if path else ("--scale", self.shown.scale))]
        words += [part for setting in self.shown.settings for part in ("--set", setting)]
        return [
            shlex.join(["petridish", verb, *words, "--store", store])
            for verb in ("run", "verdicts", "figure")
        ]

    @property
    def makers(self) -> str:
        """The versions, commits and engines that made the runs."""
        rows = self.runs.select("version", "commit", "clean", "engine").unique().iter_rows()
        made = (
            f"{version} ({f'commit {commit[:10]}' if commit else 'a release'}"
            f"{' with changes' if clean is False else ''}), engine {engine}"
            for version, commit, clean, engine in rows
        )
        return "; ".join(sorted(made))


def chapter_of(shown: Shown, runs: pl.DataFrame, store: Path) -> Chapter:
    """Judge, tabulate and draw the runs of one experiment, which a store holds."""
    experiment = shown.experiment
    label = ", ".join([shown.scale, *shown.settings])
    pictures: list[Picture] = []
    missing: list[str] = []
    for name, draw in experiment.drawings(shown.sweep).items():
        with _noted(missing, f"{experiment.id}: {name} is not drawn."):
            drawn = draw(runs, experiment.headed(name, shown.scale, shown.settings))
            pictures.append(picture(drawn, _name(experiment.id, label, name)))
    tables = {}
    for name, tabulate in experiment.tables.items():
        with _noted(missing, f"{experiment.id}: {name} is not tabulated."):
            tables[name] = tabulate(runs)
    verdicts: list[Verdict] = []
    if experiment.claims and experiment.is_part(shown.scale, shown.settings, shown.sweep):
        missing.append(
            f"{experiment.why_part(shown.scale)} `petridish verdicts` does all the same."
        )
        return Chapter(shown, runs, [], pictures, tables, missing)
    with _noted(missing, f"{experiment.id}: no claim is judged."):
        verdicts = experiment.judge_shown(runs, store, shown.scale, shown.settings)
    return Chapter(shown, runs, verdicts, pictures, tables, missing)


@contextmanager
def _noted(missing: list[str], what: str) -> Iterator[None]:
    """Note why something is missing, and go on: the rest of the page does not depend on it.

    Such as curves that were not kept, or a fault in a user's rule; a fault of petridish is raised.
    """
    try:
        yield
    except UserError as reason:
        missing.append(f"{what} {reason}")
    except Exception as error:
        if own_frame(error) is None:
            raise
        missing.append(f"{what} The code failed{said_by(error)}.")


EXPLORER = "explorer.html"  # the explorer's page as one file, beside a report


def report_page(chapters: Sequence[Chapter], *, store: str, explorer: str = "") -> str:
    """Return the page; nothing in it is fetched from anywhere.

    `explorer` is where a file of the explorer lies, beside the page, if there is one.
    """
    return render(
        "report.html",
        chapters=chapters,
        store=store,
        explorer=explorer,
        made_with=versions("numpy", "polars", "torch"),
        cell=lambda value: (
            "" if value is None else f"{value:g}" if isinstance(value, float) else value
        ),
    )


def _name(*parts: str) -> str:
    """Return an id for the page."""
    return re.sub(r"[^\w.-]+", "-", "-".join(parts))


def _from_here(path: Path) -> str:
    """Return the path of a file below the working directory as a user would write it."""
    here = os.path.relpath(path)
    return str(path) if here.startswith(os.pardir) else here
