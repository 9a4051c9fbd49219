"""The options by which `run` and `figure` are told what to show over which axes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from petridish.errors import UserError

if TYPE_CHECKING:
    from petridish.store import Columns as StoreColumns
    from petridish.sweeps import Sweep
    from petridish.training import RunSpec

MOST_CELLS = 2_000  # asked which columns their runs will have

Rows = Annotated[str | None, typer.Option(help="The axis of the rows, such as r.", metavar="AXIS")]
Columns = Annotated[
    str | None,
    typer.Option("--columns", help="The axis of the columns, such as m.", metavar="AXIS"),
]
Panels = Annotated[
    str | None,
    typer.Option(help="Axes with a panel per value, separated by commas.", metavar="AXIS"),
]
Colour = Annotated[
    str | None, typer.Option(help="An axis with a line per value, instead of rows.", metavar="AXIS")
]
Value = Annotated[
    str | None,
    typer.Option(
        help="solved, time, grokking_delay, or a metric or instrument at the end, such as "
        "test_error."
    ),
]
BestOver = Annotated[
    str | None,
    typer.Option(
        help="Axes, separated by commas, whose best value counts: chosen on one half of the seeds, "
        "measured on the other.",
        metavar="AXIS",
    ),
]
BestEnd = Annotated[
    str | None,
    typer.Option(
        "--best",
        help="Which end of the value is best for --best-over: least (errors, losses, times) or "
        "most (solved), as it is without; give most for a metric that is better when larger.",
        metavar="least|most",
    ),
]


@dataclass(frozen=True)
class AxisOptions:
    """What a user asks to see; nothing by default."""

    rows: str | None = None
    columns: str | None = None
    panels: str | None = None
    colour: str | None = None
    value: str | None = None
    best_over: str | None = None
    best: str | None = None

    @property
    def asked(self) -> dict[str, Any]:
        """The options that were given."""
        return {name: text for name, text in vars(self).items() if text is not None}

    def check(self, sweep: Sweep) -> StoreColumns:
        """Refuse names that the runs of a sweep will not have, before anything is trained.

        Returns the columns of curves that are needed to show what is asked for.
        """
        from petridish.rules.declared import columns_of_run
        from petridish.rules.outcome_values import check_solvable, measure_of
        from petridish.rules.tuning import Best, check_tuned
        from petridish.rules.varying import axis_order, full_name
        from petridish.sweeps import Arms

        if not self.asked:
            return ()
        known: set[str] = {"arm"} if isinstance(sweep, Arms) else set()
        specs = [spec for spec, _ in itertools.islice(sweep.cells(), MOST_CELLS)]
        for spec in specs:
            known |= columns_of_run(spec)
        first = axis_order(sweep)
        places = [self.rows, self.columns, self.colour]
        places += (self.panels or "").split(",")
        named = [full_name(name, sorted(known), first) for name in places if name]
        over = [full_name(n, sorted(known), first) for n in (self.best_over or "").split(",") if n]
        check_tuned(over)
        named += over
        for name in named:
            if named.count(name) > 1:
                raise UserError(f"The axis {name} is asked for twice. Give each place its own.")
        if self.rows and self.colour:
            raise UserError(
                f"--rows {self.rows} and --colour {self.colour} were given, and lines of several "
                "colours take the place of rows. Give one of them."
            )
        if self.best is not None and (self.best not in get_args(Best) or not self.best_over):
            raise UserError(
                f"--best {self.best} was given{'' if self.best_over else ' without --best-over'}. "
                "Give --best-over AXIS --best least or most."
            )
        if self.value is not None:
            check_solvable(self.value, specs)
            if f"curve.{self.value}" in known and _reads_array(self.value, specs):
                known = {*known, f"array.{self.value}"} - {f"curve.{self.value}"}
        columns = () if self.value is None else measure_of(self.value, known).columns
        return tuple(name for name in columns if name.startswith("curve."))


def _reads_array(name: str, specs: Sequence[RunSpec]) -> bool:
    """Return whether an instrument reads an array, which shows once it has read a run.

    Not of runs that need others to have ended, nor where it reads later steps alone.
    """
    from petridish.training import Silent, choose_engine, parents_of

    for spec in specs:
        gauge = next((each for each in spec.evaluation.gauges if each.label == name), None)
        if gauge is None:
            continue
        if gauge.at is not None or parents_of(spec):
            return False
        evaluation = replace(spec.evaluation, at=(), every=1, curves=True, instruments=(gauge,))
        short = replace(spec, training=replace(spec.training, steps=1), evaluation=evaluation)
        (record,) = choose_engine(short).run([short], Silent())
        return name in record.curves.arrays
    return False
