"""How far a sweep is: a bar in a terminal or a notebook, lines in a log, nothing with --json."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from html import escape
from typing import Any, TextIO

from petridish.bars import terminal_bar

LOG_SECONDS = 10.0  # between two lines in a log
SHOWN_SECONDS = 0.2  # between two changes of a bar in a notebook
FIRST_SECONDS = 1.0  # of work, before the time left is estimated


@dataclass
class Tally:
    """How far a sweep is."""

    runs: int
    cost: float  # of all runs, in any unit, if none ends early
    done: int = 0
    solved: int = 0
    spent: float = 0.0  # the cost, on the same footing, of ended runs and of the others' steps
    model_steps: int = 0
    solvable: bool = True  # whether some of the runs have a stop rule
    started: float = field(default_factory=time.perf_counter)
    first: tuple[float, float] | None = None  # when work was first reported, and how much

    def add(self, *, done: int, solved: int, cost: float, model_steps: int) -> None:
        """Count what has been done since the last call."""
        self.done += done
        self.solved += solved
        self.spent += cost
        self.model_steps += model_steps
        if self.first is None and self.spent:  # workers need time to start, and do nothing then
            self.first = time.perf_counter(), self.spent

    @property
    def rate(self) -> float:
        """Model-steps per second so far."""
        return self.model_steps / max(1e-9, time.perf_counter() - self.started)

    @property
    def seconds_left(self) -> float | None:
        """Estimate the time left from the work done since work was first reported."""
        if self.spent >= self.cost:
            return 0.0
        began, before = self.first or (time.perf_counter(), self.spent)
        seconds, done = time.perf_counter() - began, self.spent - before
        if seconds < FIRST_SECONDS or done <= 0:
            return None
        return seconds * (self.cost - self.spent) / done

    @property
    def share(self) -> float:
        """The share of the work that is done."""
        return min(1.0, self.spent / self.cost) if self.cost else 1.0

    def __str__(self) -> str:
        left = self.seconds_left
        return (
            f"{self.done}/{self.runs} runs, {f'{self.solved} solved, ' if self.solvable else ''}"
            f"{count(self.rate)} steps/s, {'--:--' if left is None else clock(left)} left"
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

    def say(self, line: str) -> None:
        """Print a line beside the bar."""


class Log(Progress):
    """A line now and then, for a log file."""

    def __init__(self, file: TextIO) -> None:
        self.file, self.done = file, 0
        self.last = time.perf_counter()

    def show(self, tally: Tally) -> None:
        """Print a line if the last is some time ago, or all is done."""
        now, shown = time.perf_counter(), self.done
        self.done = tally.done
        if now - self.last >= LOG_SECONDS or shown < tally.done == tally.runs:
            self.last = now
            self.say(str(tally))

    def say(self, line: str) -> None:
        """Print a line."""
        print(f"petridish: {line}", file=self.file, flush=True)


class Bar(Progress):
    """A bar for a terminal."""

    def __init__(self, title: str) -> None:
        self.bar = terminal_bar(title)

    def __enter__(self) -> Bar:
        """Begin."""
        self.move = self.bar.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        """End."""
        self.bar.__exit__(None, None, None)

    def show(self, tally: Tally) -> None:
        """Move the bar."""
        self.move(tally.share, str(tally))

    def say(self, line: str) -> None:
        """Print a line; a bar that is shown moves down."""
        print(f"petridish: {line}", file=sys.stderr)


class NotebookBar(Progress):
    """A bar of HTML that changes in its place, for a notebook."""

    def __init__(self, title: str) -> None:
        self.title, self.last = title, 0.0
        self.handle: Any = None

    def show(self, tally: Tally) -> None:
        """Move the bar."""
        from IPython.display import HTML, display

        now = time.perf_counter()
        if now - self.last < SHOWN_SECONDS and tally.done < tally.runs:
            return
        self.last = now
        text = f"{escape(self.title)} <progress value='{tally.share:.4f}'></progress> {tally}"
        shown = HTML(text)  # type: ignore[no-untyped-call] # IPython has no types
        if self.handle is None:
            self.handle = display(shown, display_id=True)  # type: ignore[no-untyped-call] # nor here
        else:
            self.handle.update(shown)

    def say(self, line: str) -> None:
        """Print a line below."""
        print(f"petridish: {line}", file=sys.stderr)


def _in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    if "IPython" not in sys.modules:
        return False
    from IPython import get_ipython

    return hasattr(get_ipython(), "kernel")


def make_progress(title: str, *, quiet: bool = False) -> Progress:
    """Choose what fits a notebook, or where standard error goes."""
    if _in_notebook():
        return NotebookBar(title)
    if sys.stderr is None:  # closed by the process that started us
        return Progress()
    if sys.stderr.isatty():
        return Bar(title)
    return Progress() if quiet else Log(sys.stderr)
