"""Lottery tickets against networks of their size [PF App. C.2]."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from petridish.rules.claims import (
    Finding,
    Judgement,
    Reads,
    blind_within,
    by_interval,
    nothing,
    remarks,
)
from petridish.rules.columns import curve_columns
from petridish.statistics.chances import chance_of_smaller, share_distances

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]
FEWEST = 3
TOO_FEW = "needs tickets of three parents, and three runs of each control"


def times_to(table: pl.DataFrame, error: float) -> Floats:
    """Return the first step of each run's curve with at most this test error; ∞ where none has."""
    found = np.full(len(table), math.inf)
    curves = zip(table["curve.step"], table["curve.test_error"], strict=True)
    for run, (steps, errors) in enumerate(curves):
        low = np.flatnonzero(np.asarray(errors) <= error)
        if len(low):
            found[run] = float(steps[int(low[0])])
    return found


@dataclass(frozen=True)
class _AgainstControls(Reads):
    """What runs from tickets do, parent by parent, beside two controls of the same size.

    The controls are neurons of new wide networks, whose output weights are as small as a ticket's,
    and new narrow networks, whose output weights are larger: the paper's «randomly initialized
    subnetworks of the same size» may be either.
    """

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""
        return (*curve_columns("test_error"), "init.chosen", "init.seed", "model.width", "seed")

    def times(
        self, table: pl.DataFrame, error: float
    ) -> tuple[list[Floats], dict[str, Floats]] | None:
        """Return the times of each parent's tickets and of each control; None for too few runs."""
        import polars as pl

        if "init.chosen" not in table.columns:
            return None
        # Sums of floats depend on their order.
        runs = table.sort("init.seed", "seed").with_columns(narrow=pl.col("model.width").min())
        tickets = runs.filter(pl.col("init.chosen") == "largest")
        new = pl.col("init.chosen").is_null() & (pl.col("model.width") == pl.col("narrow"))
        parents = [
            times_to(part, error) for part in tickets.partition_by("init.seed", maintain_order=True)
        ]
        controls = {
            "random neurons": times_to(runs.filter(pl.col("init.chosen") == "random"), error),
            "new networks": times_to(runs.filter(new), error),
        }
        enough = min(len(parents), *map(len, controls.values())) >= FEWEST
        return (parents, controls) if enough else None


@dataclass(frozen=True)
class TicketsImprove(_AgainstControls):
    """Most runs from tickets improve, and the large majority of each control does not.

    A run improves if its test error falls to `error`, and a large majority is more than 1 − `few`.
    Runs from one parent share their ticket: the interval of their share is Student's over the
    parents' means, or Wilson's where all agree.
    Supported if it lies above ½ and those of both controls below `few`; contradicted if it lies
    below ½, or a control's above `few`. «Quickly» is not judged.
    """

    error: float = 0.25
    few: float = 1 / 3

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from runs that kept their curves."""
        quantity = f"share of the tickets' runs that come to {self.error:.0%} error"
        found = self.times(table, self.error)
        if found is None:
            return nothing(quantity, TOO_FEW)
        parents, controls = found
        means = np.array([np.isfinite(times).mean() for times in parents])
        below, above = share_distances(means, level / 3)
        estimate = float(means.mean())
        low, high = max(estimate - below, 0.0), min(estimate + above, 1.0)
        sides, said = [by_interval(low, high, 0.5)], [_counted("tickets", parents)]
        for name, times in controls.items():
            own = np.isfinite(times).astype(np.float64)
            down, up = share_distances(own, level / 3)
            ends = own.mean() - down, own.mean() + up
            sides.append(by_interval(-ends[1], -ends[0], -self.few))
            said.append(f"{_counted(name, [times])}, [{ends[0]:.3f}, {ends[1]:.3f}]")
        judgement = Judgement.UNDECIDED
        if Judgement.CONTRADICTED in sides:
            judgement = Judgement.CONTRADICTED
        elif all(side is Judgement.SUPPORTED for side in sides):
            judgement = Judgement.SUPPORTED
        n = sum(map(len, (*parents, *controls.values())))
        said.append(f"a control's share is to lie below {self.few:.3f}")
        return Finding(judgement, estimate, low, high, quantity, n, "; ".join(said), bound=0.5)


@dataclass(frozen=True)
class TicketsWin(_AgainstControls):
    """Runs from tickets do better than both controls of the same size.

    «success»: the difference of the shares solved. «time»: the probability that a ticket's run is
    solved before a control's, of runs that are solved: ½ is no difference, and that more of them
    are solved plays no part. Runs from one parent share their ticket: the interval is Student's
    over the parents' means, or Wilson's where all agree. The control with the lesser advantage
    decides, and the two share the level.
    """

    score: Literal["success", "time"] = "success"
    error: float = 0.1

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from runs that kept their curves."""
        quantity = "share solved, tickets − control"
        if self.score == "time":
            quantity = "probability that a solved ticket is sooner than a solved control"
        found = self.times(table, self.error)
        if found is None:
            return nothing(quantity, TOO_FEW)
        parents, controls = found
        said = [_counted("tickets", parents), *(_counted(c, [t]) for c, t in controls.items())]
        remark = ", ".join(said)
        if self.score == "time":
            parents = [kept for times in parents if len(kept := times[np.isfinite(times)])]
            controls = {name: times[np.isfinite(times)] for name, times in controls.items()}
            if min(len(parents), *map(len, controls.values())) < FEWEST:
                return nothing(quantity, f"too few of them are solved: {remark}")
        neutral = 0.0 if self.score == "success" else 0.5
        compare = self._more if self.score == "success" else self._sooner
        ends = {name: compare(parents, times, level / 2) for name, times in controls.items()}
        name = min(ends, key=lambda control: ends[control][1])
        estimate, low, high = ends[name]
        low, high = max(low, 2 * neutral - 1), min(high, 1.0)
        n = sum(map(len, (*parents, *controls.values())))
        judgement = by_interval(low, high, neutral)
        remark = remarks(remark, blind_within(neutral, estimate, low, high))
        return Finding(judgement, estimate, low, high, f"{quantity} ({name})", n, remark)

    def _more(
        self, parents: list[Floats], control: Floats, level: float
    ) -> tuple[float, float, float]:
        means = np.array([np.isfinite(times).mean() for times in parents])
        own = np.isfinite(control).astype(np.float64)
        estimate = float(means.mean() - own.mean())
        return _with_ends(estimate, means, share_distances(own, level)[::-1], level)  # subtracted

    def _sooner(
        self, parents: list[Floats], control: Floats, level: float
    ) -> tuple[float, float, float]:
        means = np.array([chance_of_smaller(times, control) for times in parents])
        everyone = np.concatenate(parents)
        own = np.array([chance_of_smaller(everyone, np.array([time])) for time in control])
        return _with_ends(float(means.mean()), means, share_distances(own, level), level)


def _with_ends(
    estimate: float, means: Floats, control: tuple[float, float], level: float
) -> tuple[float, float, float]:
    """Add the uncertainty of the parents' mean and that of the control's."""
    below, above = map(math.hypot, share_distances(means, level), control)
    return estimate, estimate - below, estimate + above


def _counted(name: str, parts: list[Floats]) -> str:
    times = np.concatenate(parts)
    solved = times[np.isfinite(times)]
    when = f" (median step {np.median(solved):,.0f})" if len(solved) else ""
    return f"{name} {len(solved)} of {len(times)}{when}"
