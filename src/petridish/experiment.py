"""An experiment: sweeps at several scales, claims about them, and figures of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from petridish.choices import code_name
from petridish.errors import UserError, nearest
from petridish.figures.curves import training_curves
from petridish.figures.heat_map import success_heat_map
from petridish.figures.outcome_map import outcome_map
from petridish.rules.claims import (
    UNFIT,
    Claim,
    Finding,
    Judgement,
    NoFinding,
    Verdict,
    columns_of,
    nothing,
)
from petridish.rules.columns import columns_read
from petridish.rules.declared import check_rule, one_axis_at_a_time
from petridish.rules.outcome_remarks import rule_reads_end, stopped_apart
from petridish.rules.varying import axis_order, is_plane
from petridish.store.verdicts_shown import Judged, VerdictsShown
from petridish.sweeps import Sweep, load_user_file
from petridish.training import cell_text

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

    from petridish.store import Columns

Draw = Callable[["pl.DataFrame", str], "Figure"]
Part = Literal["claims", "figures", "tables"]
LONGEST_SETTINGS = 60  # letters of them in the title of a picture
Tabulate = Callable[["pl.DataFrame"], "pl.DataFrame"]


@dataclass(frozen=True)
class Experiment:
    """A sweep at several scales, with the claims that it judges and the figures that it draws.

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
    before : function, optional
        Says of a sweep, in sentences, what is known before it is trained; `run` prints them.
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
    before: Callable[[Sweep], Sequence[str]] | None = None
    located: Callable[[], Experiment] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.scales, Sweep):
            raise UserError(
                f'Experiment {self.id}: scales is a sweep. Give it a name: scales={{"own": SWEEP}}.'
            )
        if not self.scales:
            raise UserError(
                f'Experiment {self.id}: scales is empty. Give a sweep: scales={{"own": SWEEP}}.'
            )
        if isinstance(self.claims, Claim) or not all(isinstance(c, Claim) for c in self.claims):
            raise UserError(
                f"Experiment {self.id}: claims holds what is no Claim. Give a tuple, such as "
                'claims=(Claim("a", text, source, rule),).'
            )
        names = [claim.name for claim in self.claims]
        for name in names:
            if names.count(name) > 1:
                raise UserError(
                    f"Experiment {self.id}: two claims are called {name!r}. Give each its own name."
                )
        for name, draw in self.figures.items():
            _check_drawing(self.id, name, draw)

    def sweep(self, scale: str) -> Sweep:
        """Return the sweep of a scale."""
        if scale not in self.scales:
            raise UserError(
                f"{self.id} has no scale called {scale!r}. {nearest(scale, self.scales)}"
            )
        return self.scales[scale]

    def headed(self, title: str, scale: str, settings: Sequence[str] = ()) -> str:
        """Return the title of a picture after id, scale and settings, which are cut if long."""
        asked = ", ".join(settings)
        if len(asked) > LONGEST_SETTINGS:
            asked = f"{asked[:LONGEST_SETTINGS]}…"
        return f"{', '.join(filter(None, [self.id, scale, asked]))}: {title}"

    def default_scale(self) -> str:
        """Return the scale that is meant where none is named."""
        return "laptop" if "laptop" in self.scales else next(iter(self.scales))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the rules of the claims say they read; a record keeps these."""
        return tuple(dict.fromkeys(name for c in self.claims for name in columns_of(c.rule)))

    def check(self, sweep: Sweep) -> None:
        """Refuse claims that speak of what the sweep does not have, before anything is judged."""
        for _ in one_axis_at_a_time(sweep) if self.claims else ():
            pass  # a spec that cannot be is no mistake of a claim
        for claim in self.claims:
            for name in () if self.located else claim.judged_at:
                if name not in self.scales:
                    raise UserError(
                        f"{self.id} ({claim.name}): judged_at={claim.judged_at}, but there is no "
                        f"scale called {name!r}. {nearest(name, self.scales)}"
                    )
            try:
                check_rule(claim.rule, sweep, self.scales.values())
            except UserError as mistake:
                raise UserError(f"{self.id} ({claim.name}): {mistake}") from mistake

    def judge(self, runs: pl.DataFrame, scale: str = "") -> list[Verdict]:
        """Judge every claim from the runs of one scale, each of the kind that it has there."""
        share = self.level / max(1, len(self.claims))
        claims = [claim.at(scale) if scale else claim for claim in self.claims]
        return [Verdict(claim, _judge(claim, runs, share), share) for claim in claims]

    def judge_again(self, claim: Claim, runs: pl.DataFrame, *, nth: int) -> Verdict:
        """Judge a claim at the level of the k-th time that it is judged: its share / (k (k + 1)).

        Seeds that are added until a verdict appears make it appear too often. These levels add up
        to half of the first one, however often the claim is judged: if the first verdict counts,
        and later ones that stand at their level, one of them is wrong with a probability of at
        most 1.5 times the level.
        """
        share = self.level / max(1, len(self.claims)) / (nth * (nth + 1))
        return Verdict(claim, _judge(claim, runs, share), share)

    def is_part(self, scale: str, settings: Sequence[str], sweep: Sweep) -> bool:
        """Return whether settings leave out cells of the experiment's sweep, and add none.

        Claims are about the whole: of one cell they say nothing. Fewer seeds are no part.
        """
        if not settings:
            return False
        cells, whole = (
            {cell_text(spec) for spec, _ in each.cells()} for each in (sweep, self.sweep(scale))
        )
        return cells < whole

    def why_part(self, scale: str) -> str:
        """Return why claims are not judged on a part of the settings."""
        return (
            f"These are some of the settings of {self.id} at {scale} scale. Its claims are about "
            "all of them, and are not judged on a part."
        )

    def judge_shown(
        self, runs: pl.DataFrame, store: Path, scale: str, settings: Sequence[str] = ()
    ) -> list[Verdict]:
        """Judge every claim to be shown: with what would decide it, and what judging again costs.

        The store keeps at how many runs verdicts were shown.
        """
        shown = VerdictsShown(store, self.id, scale, settings)
        before = shown.judged()
        found = []
        for verdict in self.judge(runs, scale):
            earlier = before.get(verdict.claim.name, ())
            again = self._judged_before(
                verdict, runs, [e for e in earlier if e[0] < verdict.finding.n]
            )
            apart = stopped_apart(runs) if rule_reads_end(verdict.claim.rule) else []
            notes = tuple(note for note in (verdict.finding.note, *apart, again) if note)
            found.append(replace(verdict, notes=notes))
        shown.note((v.claim.name, v.finding.n, v.finding.judgement.value) for v in found)
        return found

    def _judged_before(
        self, verdict: Verdict, runs: pl.DataFrame, earlier: Sequence[Judged]
    ) -> str:
        """Return at how many runs a claim was judged before, and whether the verdict stands."""
        if not earlier or verdict.claim.kind == "check":
            return ""
        at = ", ".join(f"{runs_then} ({word_then})" for runs_then, word_then in earlier)
        said, word = f"judged before at n = {at}", verdict.finding.judgement
        if word is Judgement.UNDECIDED:
            return said
        nth = len(earlier) + 1
        again = self.judge_again(verdict.claim, runs, nth=nth)
        now = again.finding.judgement
        stands = "stands" if now is word else f"is {now.value}"
        return (
            f"{said}; judging again after adding runs costs: at the level of judgement {nth}, "
            f"{again.level:.2g} instead of {verdict.level:.2g}, it {stands}"
        )

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
        """Return the figures of a sweep: those declared, or those that suit it."""
        if self.figures:
            return self.figures
        suited: dict[str, Draw] = (
            {"success": success_heat_map}
            if is_plane(sweep)
            else {"outcomes": partial(outcome_map, first=axis_order(sweep))}
        )
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
                    **({"judged_at": [*claim.judged_at]} if claim.judged_at else {}),
                }
                for claim in self.claims
            ],
        }


def _check_drawing(experiment: str, name: str, draw: object) -> None:
    """Refuse a user's figure that is no function of a table and a title."""
    if callable(draw) and str(getattr(draw, "__module__", "petridish")).startswith("petridish."):
        return
    try:
        inspect.signature(draw).bind(None, "")  # type: ignore[arg-type] # refused by a TypeError
    except (TypeError, ValueError) as error:
        drawn_by = getattr(draw, "__name__", repr(draw))
        raise UserError(
            f"Experiment {experiment}: the figure {name} is {drawn_by}, which takes no table and "
            f"title ({error}). Give a function of both, such as def drawn(table, title)."
        ) from error


def _judge(claim: Claim, runs: pl.DataFrame, level: float) -> Finding:
    try:
        found: object = claim.rule.judge(runs, level)
        if not isinstance(found, Finding):
            raise NoFinding(f"it returned {found!r}; return a Finding.")
        return found
    except NoFinding as mistake:  # of the rule, whatever the runs are
        code = type(claim.rule).judge.__code__
        place = f"{code_name(code.co_filename)}:{code.co_firstlineno}"
        raise UserError(f"The rule {type(claim.rule).__name__} ({place}): {mistake}") from mistake
    except UserError as unfit:  # such as runs that differ in more than the claim speaks of
        return nothing(UNFIT, str(unfit))


def user_experiment(path: Path) -> Experiment:
    """Return the experiment of a user's own file: its EXPERIMENT, or its SWEEP without claims."""
    module = load_user_file(path)
    experiment, sweep = getattr(module, "EXPERIMENT", None), getattr(module, "SWEEP", None)
    if isinstance(experiment, Experiment):
        return Experiment(**{**vars(experiment), "user_file": path})
    if isinstance(sweep, Sweep):
        title = (module.__doc__ or path.stem).strip().splitlines()[0]
        return Experiment(path.stem, title, str(path), {"own": sweep}, user_file=path)
    raise UserError(
        f"{path} declares no experiment. Define SWEEP = Sweep(...) or EXPERIMENT = Experiment(...) "
        "in it, such as SWEEP = Sweep(RunSpec(task=SparseParity(20, 2)), {'seed': range(5)})."
    )
