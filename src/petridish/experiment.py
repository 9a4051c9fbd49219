"""An experiment: sweeps at several scales, claims about them, and figures of them; declared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from petridish.errors import UserError, nearest
from petridish.figures.curves import training_curves
from petridish.figures.heat_map import success_heat_map
from petridish.rules.claims import Claim, Finding, Verdict, columns_of, nothing
from petridish.rules.columns import columns_read
from petridish.rules.declared import check_rule
from petridish.sweeps import Sweep, load_user_file

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

    from petridish.store import Columns

Draw = Callable[["pl.DataFrame", str], "Figure"]
Part = Literal["claims", "figures", "tables"]
Tabulate = Callable[["pl.DataFrame"], "pl.DataFrame"]


@dataclass(frozen=True)
class Experiment:
    """What is run, what is claimed, what is drawn.

    Attributes
    ----------
    id, title, source : str
        Its name on the command line, what it shows, and where the claims come from.
    scales : mapping of str to Sweep
        The same experiment at several sizes; the first is the default of a user's own.
    claims : tuple of Claim
        Judged together, each at its share of `level`.
    figures : mapping of str to function
        Each draws a table of runs under a caption; left out, what suits the sweep is drawn.
    tables : mapping of str to function
        Each makes a small table of the runs, to be read.
    located : function, optional
        Gives the same experiment on the data that are there, where its sweeps depend on them.
    """

    id: str
    title: str
    source: str
    scales: Mapping[str, Sweep]
    claims: tuple[Claim, ...] = ()
    figures: Mapping[str, Draw] = field(default_factory=dict)
    level: float = 0.05
    user_file: Path | None = None
    tables: Mapping[str, Tabulate] = field(default_factory=dict)
    located: Callable[[], Experiment] | None = None

    def sweep(self, scale: str) -> Sweep:
        """Give the sweep of a scale."""
        if scale not in self.scales:
            raise UserError(
                f"{self.id} has no scale called {scale!r}. {nearest(scale, self.scales)}"
            )
        return self.scales[scale]

    def default_scale(self) -> str:
        """Give the scale that is meant where none is named."""
        return "laptop" if "laptop" in self.scales else next(iter(self.scales))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the rules of the claims say they read; a record keeps these."""
        return tuple(dict.fromkeys(name for c in self.claims for name in columns_of(c.rule)))

    def check(self, sweep: Sweep) -> None:
        """Refuse claims that speak of what the sweep does not have, before anything is judged."""
        for claim in self.claims:
            try:
                check_rule(claim.rule, sweep)
            except UserError as mistake:
                raise UserError(f"{self.id} ({claim.name}): {mistake}") from mistake

    def judge(self, runs: pl.DataFrame) -> list[Verdict]:
        """Judge every claim from the runs of one scale."""
        share = self.level / max(1, len(self.claims))
        return [Verdict(claim, _judge(claim, runs, share), share) for claim in self.claims]

    def columns_needed(self, sweep: Sweep, *parts: Part) -> Columns:
        """Return the columns of curves, arrays and weights that some parts of it read."""
        if not sweep.keeps_curves:
            return ()
        functions: list[object] = []
        if "figures" in parts:
            functions += self.drawings(sweep).values()
        if "tables" in parts:
            functions += self.tables.values()
        found = columns_read(functions)
        return found if found == "all" or "claims" not in parts else {*found, *self.columns}

    def drawings(self, sweep: Sweep) -> Mapping[str, Draw]:
        """Give the figures of a sweep: those declared, or those that suit it."""
        if self.figures:
            return self.figures
        suited: dict[str, Draw] = {}
        if {"model.width", "data.m"} <= set(sweep.axes):
            suited["success"] = success_heat_map
        if sweep.base.evaluation.curves:
            suited["curves"] = training_curves
        return suited

    def as_json(self) -> dict[str, Any]:
        """Describe the experiment as `list --json` does."""
        return {
            "id": self.id,
            "title": self.title,
            "source": self.source,
            "scales": {
                name: {"runs": len(sweep), "model_steps": sweep.model_steps}
                for name, sweep in self.scales.items()
            },
            "claims": [
                {
                    "claim": claim.name,
                    "kind": claim.kind,
                    "text": claim.text,
                    "source": claim.source,
                }
                for claim in self.claims
            ],
        }


def _judge(claim: Claim, runs: pl.DataFrame, level: float) -> Finding:
    try:
        return claim.rule.judge(runs, level)
    except UserError as unfit:  # such as runs that differ in more than the claim speaks of
        return nothing("nothing could be judged", str(unfit))


def user_experiment(path: Path) -> Experiment:
    """Give the experiment of a user's own file: its EXPERIMENT, or its SWEEP without claims."""
    module = load_user_file(path)
    experiment, sweep = getattr(module, "EXPERIMENT", None), getattr(module, "SWEEP", None)
    if isinstance(experiment, Experiment):
        return Experiment(**{**vars(experiment), "user_file": path})
    if isinstance(sweep, Sweep):
        title = (module.__doc__ or path.stem).strip().splitlines()[0]
        return Experiment(path.stem, title, str(path), {"own": sweep}, user_file=path)
    raise UserError(
        f"{path} declares no experiment. Define SWEEP = Sweep(...) or EXPERIMENT = Experiment(...) "
        "in it; docs/extend.md shows how."
    )
