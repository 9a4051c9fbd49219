"""Mixtures of data, width, time and luck that reach a success probability, and the best of them.

A cell (sample size m, width r) whose runs succeed with probability q within T steps reaches the
probability p with R = log(1 − p) / log(1 − q) restarts, rounded up: a run that succeeds is known by
its held-out sample. Its compute is r · T · R [PF §1.1].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from petridish.choices import name_of
from petridish.errors import UserError
from petridish.rules.cells import mixed
from petridish.rules.specs import specs_of
from petridish.statistics.intervals import anytime_interval
from petridish.tasks import SparseParity
from petridish.training import RunSpec, read_cell

if TYPE_CHECKING:
    import polars as pl

FEWEST = 5  # successes behind a mixture: of fewer, luck is guessed to a factor of ten or worse
COVERAGE = 0.95  # of the intervals, simultaneous over the budgets tried in a cell
LIMITS = {
    "m": "m",
    "r": "width",
    "steps": "steps",
    "restarts": "restarts",
    "compute": "compute",
}
"""What may be limited: its name for a user, and the attribute of a mixture."""


@dataclass(frozen=True)
class Mixture:
    """One way to reach the target.

    Attributes
    ----------
    task, init : str
        What is learned, from which initialisation.
    m, width, steps, restarts : float
        The four resources (the paper's m, r, T, and luck): `steps` per run, `restarts` runs.
    success, low, high : float
        Estimated probability that one run succeeds within `steps`, and its interval.
    runs : int
        Runs behind the estimate.
    restarts_low, restarts_high : float
        Restarts at the ends of the interval; infinite where a success of 0 is not excluded.
    bound : float
        Least compute that Proposition 3 leaves open at this m; NaN for tasks it is not about.
    best : bool
        On the front of data and compute: no other mixture takes less of one and no more of the
        other.
    """

    task: str
    init: str
    m: float
    width: int
    steps: int
    restarts: float
    success: float
    low: float
    high: float
    runs: int
    restarts_low: float
    restarts_high: float
    bound: float
    best: bool = False

    @property
    def compute(self) -> float:
        """Width × steps × restarts."""
        return self.width * self.steps * self.restarts

    @property
    def compute_interval(self) -> tuple[float, float]:
        """Compute at the ends of the success probability's interval."""
        each = self.width * self.steps
        return each * self.restarts_low, each * self.restarts_high

    def as_json(self) -> dict[str, Any]:
        """Return the mixture as JSON can hold it: an infinite number is null."""
        low, high = self.compute_interval
        numbers = {**vars(self), "compute": self.compute, "compute_low": low, "compute_high": high}
        return {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in numbers.items()
        } | {"m": "inf" if math.isinf(self.m) else int(self.m)}


def restarts_needed(success: float, target: float) -> float:
    """Count the runs after which one has succeeded with probability `target`.

    The smallest whole R with 1 − (1 − q)^R ≥ p; infinite for q = 0.
    """
    if success <= 0:
        return math.inf
    if success >= target:
        return 1.0
    if target >= 1:
        return math.inf
    needed = math.log1p(-target) / math.log1p(-success)
    return float(math.ceil(needed - 1e-9)) if needed < 1e300 else math.inf


def budgets(steps: int, every: int) -> list[int]:
    """Return the budgets that are tried: `steps`, then less by factors of √2, at evaluations."""
    found, power = [steps], 1
    while found[-1] > every:
        smaller = max(every, int(steps / 2 ** (power / 2)) // every * every)
        power += 1
        if smaller < found[-1]:
            found.append(smaller)
    return found


def mixtures(table: pl.DataFrame, *, target: float) -> list[Mixture]:
    """Return the mixtures that reach `target` and that no other one of the same task dominates.

    One dominates another if it takes no more of any of the four resources and less of one. Every
    cell offers each budget within which at least `FEWEST` of its runs succeeded. Intervals hold at
    once for all budgets of a cell (Bonferroni), and whenever its seeds stopped coming
    (`anytime_interval`).
    """
    options: dict[str, list[Mixture]] = {}
    by = ["task", "init", "data.m", "model.width", "training.steps"]
    _check_resources(table, by)
    if clash := mixed(table, by):
        raise UserError(f"{clash[0].upper()}{clash[1:]}.")
    for cell in table.partition_by(by, maintain_order=True):
        options.setdefault(cell["task"][0], []).extend(_options(cell, target))
    found = []
    for each in options.values():
        each.sort(key=lambda o: (-o.success, o.init))  # of equal mixtures the surer one is kept
        resources = np.array([[o.m, o.width, o.steps, o.restarts] for o in each]).reshape(-1, 4)
        kept = [each[place] for place in np.flatnonzero(_undominated(resources))]
        front = _undominated(np.array([[o.m, o.compute] for o in kept]).reshape(-1, 2))
        found += [replace(o, best=bool(best)) for o, best in zip(kept, front, strict=True)]
    return sorted(found, key=lambda o: (o.task, o.m, o.compute))


def _check_resources(table: pl.DataFrame, by: Sequence[str]) -> None:
    """Refuse runs that have no such resources, or nothing to reach."""
    known = [spec for spec in specs_of(table).values() if isinstance(spec, RunSpec)]
    if known and all(spec.stop is None for spec in known):
        raise UserError(
            "A frontier weighs what it takes to solve a task, and these runs have no stop rule by "
            "which one would be solved. Set training.stop, such as Below(SquaredError(), 0.1)."
        )
    for name in by:
        if name not in table.columns or table[name].null_count():
            lacking = table if name not in table.columns else table.filter(table[name].is_null())
            model = name_of(read_cell(lacking["cell"][0]).model)
            raise UserError(
                f"A frontier weighs data, width, steps and restarts, and runs of the model {model} "
                f"have no {name}. Compare them by `petridish figure`, or give the model a field "
                "`width`."
            )


def no_mixture(table: pl.DataFrame) -> str:
    """Return why there is no mixture to show."""
    import polars as pl

    solved = (pl.col("outcome") == "SOLVED").sum().alias("solved")
    most, runs = table.group_by("cell").agg(solved, pl.len()).select("solved", "len").max().row(0)
    more = "Run more seeds of each." if runs < FEWEST else "Run more seeds, or easier settings."
    return (
        f"In no cell did {FEWEST} runs or more succeed: there is no mixture to show. The most of "
        f"one cell are {most}, of at most {runs} runs. {more}"
    )


def _options(cell: pl.DataFrame, target: float) -> list[Mixture]:
    """Return what one cell offers, budget by budget."""
    first = cell.row(0, named=True)
    steps, every = int(first["training.steps"]), int(first["evaluation.every"])
    times = np.sort(cell["solved_at"].drop_nulls().to_numpy())
    enough = times[FEWEST - 1] if len(times) >= FEWEST else math.inf
    tried = [budget for budget in budgets(steps, every) if budget >= enough]
    coverage = 1 - (1 - COVERAGE) / max(1, len(tried))
    found = []
    for budget in tried:
        solved, runs = int(np.searchsorted(times, budget, side="right")), len(cell)
        low, high = (float(end) for end in anytime_interval(solved, runs, coverage=coverage))
        found.append(
            Mixture(
                task=first["task"],
                init=first["init"],
                m=first["data.m"],
                width=first["model.width"],
                steps=budget,
                restarts=restarts_needed(solved / runs, target),
                success=solved / runs,
                low=low,
                high=high,
                runs=runs,
                restarts_low=restarts_needed(high, target),
                restarts_high=restarts_needed(low, target),
                bound=_least_compute(read_cell(first["cell"]), target),
            )
        )
    return found


def _least_compute(spec: RunSpec, target: float) -> float:
    """Return Proposition 3's least width × steps × restarts at the run's m, for a sparse parity.

    A neuron has n + 2 parameters, and R restarts are one network of R times as many.
    """
    from petridish.theory.lower_bounds import sq_bound

    if not isinstance(spec.task, SparseParity):
        return math.nan
    n, k = spec.task.n, spec.task.k
    return sq_bound(n, k) * target / (spec.data.m * (n + 2))


def _undominated(resources: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Mark the rows that no other row dominates; of equal rows the first."""
    kept = np.ones(len(resources), np.bool_)
    for place, row in enumerate(resources):
        no_worse = np.all(resources <= row, axis=1)
        better = no_worse & np.any(resources < row, axis=1)
        equal_before = no_worse[:place] & ~better[:place]
        kept[place] = not (better.any() or equal_before.any())
    return kept


def affordable(options: Sequence[Mixture], have: dict[str, float]) -> list[Mixture]:
    """Keep the mixtures within a budget, the cheapest first.

    `have` gives limits on some of `LIMITS`.
    """
    within = [
        o for o in options if all(getattr(o, LIMITS[name]) <= most for name, most in have.items())
    ]
    return sorted(within, key=lambda o: (o.compute, o.m))
