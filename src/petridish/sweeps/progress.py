"""Telling people how far a sweep is: a bar in a terminal, lines in a log, nothing with --json."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

LOG_SECONDS = 10.0  # between two lines in a log


@dataclass
class Tally:
    """How far a sweep is."""

    runs: int
    cost: float  # of all runs, in any unit, if none ends early
    done: int = 0
    solved: int = 0
    spent: float = 0.0  # the cost, on the same footing, of the runs that have ended
    model_steps: int = 0
    started: float = field(default_factory=time.perf_counter)

    @property
    def rate(self) -> float:
        """Model-steps a second so far."""
        return self.model_steps / max(1e-9, time.perf_counter() - self.started)

    @property
    def seconds_left(self) -> float | None:
        """Estimate the time left from the cost of what has ended."""
        if self.spent < 0.03 * self.cost:  # too little has ended to tell
            return None
        return (time.perf_counter() - self.started) * (self.cost - self.spent) / self.spent

    def __str__(self) -> str:
        left = self.seconds_left
        return (
            f"{self.done}/{self.runs} runs, {self.solved} solved, {count(self.rate)} steps/s, "
            f"{'--:--' if left is None else clock(left)} left"
        )


def count(number: float) -> str:
    """Write a large number shortly: 12345 is 12.3k."""
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.0f}"


def clock(seconds: float) -> str:
    """Write a duration as minutes and seconds, or hours, or days."""
    whole = round(seconds)
    if whole >= 48 * 3600:
        return f"{whole / 86400:.1f} days"
    hours, rest = divmod(whole, 3600)
    if hours:
        return f"{hours}:{rest // 60:02d}:{rest % 60:02d}"
    return f"{rest // 60:02d}:{rest % 60:02d}"


class Progress:
    """Somewhere to show a tally; this one shows nothing."""

    def __enter__(self) -> Progress:
        """Begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """End."""

    def show(self, tally: Tally) -> None:
        """Show where the sweep is now."""


class Log(Progress):
    """A line now and then, for a log file."""

    def __init__(self, file: TextIO) -> None:
        self.file = file
        self.last = time.perf_counter()

    def show(self, tally: Tally) -> None:
        """Print a line if the last is some time ago, or all is done."""
        now = time.perf_counter()
        if now - self.last >= LOG_SECONDS or tally.done == tally.runs:
            self.last = now
            print(f"petridish: {tally}", file=self.file, flush=True)


class Bar(Progress):
    """A Rich bar, for a terminal."""

    def __init__(self, title: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as RichProgress

        self.rich: RichProgress = RichProgress(
            TextColumn(title),
            BarColumn(),
            TextColumn("{task.fields[tally]}"),
            console=Console(stderr=True),
        )
        self.task = self.rich.add_task("", tally="starting …")

    def __enter__(self) -> Bar:
        """Begin."""
        self.rich.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End."""
        self.rich.stop()

    def show(self, tally: Tally) -> None:
        """Move the bar."""
        self.rich.update(self.task, total=tally.runs, completed=tally.done, tally=str(tally))


def make_progress(title: str, *, quiet: bool = False) -> Progress:
    """Choose what fits where standard error goes."""
    if sys.stderr is None:  # closed by whoever started us
        return Progress()
    if sys.stderr.isatty():
        return Bar(title)
    return Progress() if quiet else Log(sys.stderr)
