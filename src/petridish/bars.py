"""A progress bar in the terminal, on standard error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

MoveBar = Callable[[float, str], None]


@contextmanager
def terminal_bar(title: str, *, transient: bool = False) -> Iterator[MoveBar]:
    """Show a bar; yield the function that moves it to a share of the work, with a text beside it.

    A `transient` bar is erased at the end.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (TextColumn(title), BarColumn(), TextColumn("{task.fields[text]}"))
    with Progress(*columns, console=Console(stderr=True), transient=transient) as bar:
        task = bar.add_task("", total=None, text="starting …")
        yield lambda share, text: bar.update(task, total=1.0, completed=share, text=text)
