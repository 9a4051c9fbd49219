"""The runs of one sweep, as tables, curves, verdicts and figures."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from html import escape
from typing import TYPE_CHECKING, Any

from petridish.errors import UserError, nearest
from petridish.experiment import Experiment
from petridish.figures.outcome_map import outcome_map
from petridish.figures.style import as_figure, forget_in_pyplot
from petridish.rules.claims import Verdict
from petridish.rules.columns import NO_CURVES, curve_columns
from petridish.rules.outcome_table import OutcomeTable, outcome_table
from petridish.rules.varying import axis_order, varying
from petridish.store import Store
from petridish.sweeps import Summary, Sweep
from petridish.training import RunSpec, read_cell

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure


class Verdicts(tuple[Verdict, ...]):
    """Verdicts on an experiment's claims; printed, each with its claim; in a notebook, a table."""

    __slots__ = ()

    def __repr__(self) -> str:
        lines = []
        for verdict in self:
            claim = verdict.claim
            lines.append(f"({claim.name}, {claim.kind}) {claim.text}")
            lines.append(f"    {str(verdict).partition(') ')[2]}")
            lines += [f"    → {note}" for note in verdict.notes]
        return "\n".join(lines) or "No claims are declared."

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(v.claim.name)}</td><td>{escape(v.claim.text)}</td>"
            f"<td><b>{escape(v.word)}</b></td><td>{escape(v.finding.quantity)} = "
            f"{escape(v.finding.numbers())}</td><td>{v.finding.n}</td>"
            f"<td>{'<br>→ '.join(map(escape, (v.finding.remark, *v.notes)))}</td></tr>"
            for v in self
        )
        names = ("", "claim", "verdict", "estimate", "n", "remark")
        head = "".join(f"<th>{name}</th>" for name in names)
        return f"<table><tr>{head}</tr>{rows}</table>" if self else "<p>No claims are declared.</p>"


@dataclass(frozen=True, repr=False)
class Runs:
    """The runs of one sweep that a store holds.

    Attributes
    ----------
    experiment, scale, sweep : Experiment, str, Sweep
        What was asked for.
    store : Store
        Where the runs are kept.
    summary : Summary
        What was trained by this call and what was found.
    settings : tuple of str
        Other values on some axes that were asked for, as `--set` takes them.
    """

    experiment: Experiment
    scale: str
    sweep: Sweep
    store: Store
    summary: Summary
    settings: tuple[str, ...] = ()
    _problems: set[str] = field(default_factory=set)

    def _read(self, columns: Any = ()) -> pl.DataFrame:
        """Read the runs of the sweep; files that had to be passed over are named once."""
        reading = self.store.read(columns=columns)
        for problem in set(reading.problems) - self._problems:
            self._problems.add(problem)
            warnings.warn(problem, stacklevel=3)
        return self.sweep.among(reading.table)

    @cached_property
    def table(self) -> pl.DataFrame:
        """One row per run of this sweep, in the order of its axes: its end, and its spec."""
        table = self._read()
        names = dict.fromkeys([*axis_order(self.sweep), "restart", "seed"])
        known = (name for name in names if name in table.columns)
        return table.sort([name for name in known if not table[name].dtype.is_nested()])

    def __len__(self) -> int:
        return len(self.table)

    def to_pandas(self) -> Any:
        """Return the table as a pandas frame."""
        import pandas as pd

        # Polars' own way there needs PyArrow.
        plain = {name: self.table[name].to_list() for name in self.table.columns}
        return pd.DataFrame(plain)

    @property
    def specs(self) -> list[RunSpec]:
        """The spec of each row of the table."""
        columns = self.table.select("cell", "restart", "seed").iter_rows()
        return [replace(read_cell(cell), restart=r, seed=seed) for cell, r, seed in columns]

    def curves(self) -> pl.DataFrame:
        """Return the curves in long form: one row per run, evaluation and curve.

        The columns are key, the fields in which the runs differ, step, name and value. Runs keep
        curves where ``evaluation.curves`` asks for them.
        """
        import polars as pl

        names: dict[str, None] = {}
        for spec, _ in self.sweep.cells():
            if spec.evaluation.curves:
                labels = [each.label for each in spec.evaluation.gauges]
                names |= dict.fromkeys(["train_loss", "train_error"])
                names |= dict.fromkeys([*(m.column for m in spec.curve_metrics), *labels])
        table = self._read(curve_columns(*names))
        kept = [f"curve.{name}" for name in names if f"curve.{name}" in table.columns]
        if not kept:
            raise UserError(
                f"{NO_CURVES.capitalize()}. Give Evaluation(curves=True) in the base of the sweep."
            )
        fields = varying(table, axis_order(self.sweep))
        apart = [name for name in (*fields, "restart", "seed") if name in table.columns]
        shown = ["key", *(name for name in apart if table[name].n_unique() > 1), "curve.step"]
        parts = [
            table.select(*shown, value=pl.col(name))
            .filter(pl.col("value").is_not_null())
            .explode("curve.step", "value")
            .with_columns(name=pl.lit(name.removeprefix("curve.")))
            for name in kept
        ]
        order = [*shown[:-1], "name", "step", "value"]
        return pl.concat(parts).rename({"curve.step": "step"}).select(order)

    def verdicts(self) -> Verdicts:
        """Judge the claims of the experiment from these runs.

        Beside a verdict stands about how many seeds would decide it, and at how many runs of this
        store it was judged before: the store keeps that, as seeds that are added until a verdict
        appears make it appear too often.
        """
        runs = self._read(self.experiment.columns_needed(self.sweep, "claims"))
        asked = self.store.folder, self.scale, self.settings
        return Verdicts(self.experiment.judge_shown(runs, *asked))

    def figure(self, name: str | None = None, **shown: Any) -> Figure:
        """Draw a figure of the experiment, by its name; without one, the first that it has.

        With `rows`, `columns`, `panels`, `colour`, `value`, `best_over` or `best`, what came out
        of the runs over these axes (`petridish.outcome_map`).
        """
        drawings = self.experiment.drawings(self.sweep)
        if shown:
            drawings = {"outcomes": partial(outcome_map, first=axis_order(self.sweep), **shown)}
        name = next(iter(drawings)) if name is None else name
        if name not in drawings:
            raise UserError(f"There is no figure called {name!r}. {nearest(name, drawings)}")
        title = self.experiment.headed(self.experiment.title, self.scale, self.settings)
        columns = self.experiment.columns_needed(self.sweep, "figures")
        in_notebook = _render_figures()
        table = self._read(_curve_of(shown.get("value")) if shown else columns)
        figure = as_figure(drawings[name](table, title), name, drawings[name])
        if in_notebook:  # which shows what a cell returns
            forget_in_pyplot(figure)
        return figure

    def outcomes(self, *, value: str | None = None, **axes: Any) -> pl.DataFrame:
        """Return what came out of every setting: its runs, and a value with a 95 % interval.

        `value` is "solved", "time", or a metric or an instrument at the end, such as "test_error";
        left out, the most informative of these: a notebook's table of the runs says which. Runs of
        different settings are never put together. Further arguments are `rows`, `columns`,
        `panels`, `best_over` and `best`, as of `outcome_table`.
        """
        return self._outcomes(value, axes).frame

    def _outcomes(self, value: str | None, axes: Mapping[str, Any]) -> OutcomeTable:
        table = self._read(_curve_of(value))
        return outcome_table(table, value=value, first=axis_order(self.sweep), **axes)

    def success(
        self, *, rows: str | None = None, columns: str | None = None, **axes: Any
    ) -> pl.DataFrame:
        """Return the share of runs that solved their task, over two of the fields that vary.

        What else varies stands in columns of its own. `outcomes` has the intervals.
        """
        found = self._outcomes("solved", {"rows": rows, "columns": columns, **axes})
        across = found.axes.columns
        index = [name for name in found.axes.fields if name != across]
        if across is None or not index:
            return found.frame.select(*found.axes.fields, "value")
        shares = found.frame.pivot(across, index=index, values="value")
        # Whole numbers of a column of floats, such as m, are named as such.
        return shares.rename(lambda name: name if name in index else name.removesuffix(".0"))

    def frontier(
        self, *, target: float = 0.9, have: Mapping[str, float] | None = None
    ) -> pl.DataFrame:
        """Return the mixtures of data, width, steps and restarts that reach a success probability.

        None of them takes more of one resource than another mixture without taking less of
        another. `have` gives upper limits on m, r, steps, restarts or compute, as the `--have` of
        `petridish frontier` does: those within it are returned, the cheapest first.
        """
        import polars as pl

        from petridish.rules.mixtures import LIMITS, Mixture, affordable, mixtures, no_mixture

        if not 0 < target < 1:
            raise UserError(f"target={target:g} was given. Give a probability between 0 and 1.")
        for name in have or {}:
            if name not in LIMITS:
                raise UserError(f"There is no resource called {name!r}. {nearest(name, LIMITS)}")
        found = mixtures(self.table, target=target)
        if not found:
            warnings.warn(no_mixture(self.table), stacklevel=2)
        if have is not None:
            found = affordable(found, dict(have))
        names = [*(part.name for part in fields(Mixture)), "compute"]
        return pl.DataFrame(
            [{**vars(each), "m": float(each.m), "compute": each.compute} for each in found],
            schema=names,  # also where nothing reaches the target
        )

    def _counts(self) -> Mapping[str, int]:
        counted = self.table["outcome"].value_counts(sort=True)
        return dict(zip(counted["outcome"], counted["count"], strict=True))

    def __repr__(self) -> str:
        ended = ", ".join(f"{n} {outcome}" for outcome, n in self._counts().items())
        return (
            f"Runs of {self.experiment.id} at {self.scale} scale: {len(self)} of {len(self.sweep)} "
            f"({ended or 'none'}); {self.summary.done} trained now, in {self.store.folder}"
        )

    def _repr_html_(self) -> str:
        if not len(self):
            return f"<p>{escape(repr(self))}</p>"
        shown = self._outcomes(None, {})
        said = [f"value: {shown.label}.", *shown.remarks]
        lines = "".join(f"<p>{escape(line)}</p>" for line in (repr(self), " ".join(said)))
        return lines + shown.frame._repr_html_()


def _curve_of(value: str | None) -> tuple[str, ...]:
    """Return the columns in which an instrument of this name keeps its curve."""
    return () if value in (None, "solved", "time") else curve_columns(str(value))


def _render_figures() -> bool:
    """Let a notebook show figures as pictures, as it does once pyplot was imported there.

    Returns whether this is a notebook.
    """
    import sys

    if "IPython" in sys.modules:
        from IPython import get_ipython
        from IPython.core.pylabtools import select_figure_formats

        if (shell := get_ipython()) is not None:
            select_figure_formats(shell, {"png"})  # type: ignore[no-untyped-call] # IPython has no types
            return True
    return False
