"""Finding where success begins along an axis, without running the whole grid."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar

from petridish.errors import UserError, check_whole
from petridish.sweeps.allocation import Allocates, Search, Solved
from petridish.training import RunSpec, run_key

if TYPE_CHECKING:
    from petridish.sweeps.sweep import Sweep

Stratum = tuple[Any, ...]
Trial = list[tuple[str, RunSpec]]  # the restarts of one seed, in their order, by key


@dataclass(frozen=True)
class FindThreshold(Allocates):
    """Find the least value of an axis at which a share of the seeds succeeds: bisect its values.

    Each value on the way is judged by `first` seeds. The two neighbours between which the search
    ends get all of their seeds; if these say otherwise, the search goes on from neighbour to
    neighbour. A seed is one trial: with `until_solved="restart"` it succeeds if one of its restarts
    does, and the next is made only after the one before has failed.

    Bisection takes success to rise along the axis. What it finds may be compared between strata;
    whether success rises cannot be judged from it.

    ``FindThreshold("data.m", 0.8, within=("task.n",), until_solved="restart")`` finds the sample
    size with which 80 % of the seeds succeed, for each n, each seed with as many restarts as the
    sweep has.

    Two neighbours leave the threshold open where success rises slowly: 16 of 20 above it may be
    less than 80 %. With ``outward=(0.6, 0.95)`` further values get all of their seeds, downward
    until at most 60 % succeed and upward until at least 95 % do.

    Attributes
    ----------
    along : str
        The axis.
    success : float
        The share of trials that must succeed.
    within : tuple of str
        Axes whose values each have a threshold of their own.
    first : int
        Seeds that judge a value on the way.
    until_solved : str, optional
        The axis whose values are tried one after another until one succeeds.
    outward : (float, float), optional
        Shares below and above `success`, at which a search that has found its neighbours ends.
    """

    name: ClassVar[str] = "find_threshold"

    along: str
    success: float
    within: tuple[str, ...] = ()
    first: int = 4
    until_solved: str | None = None
    outward: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        within = (self.within,) if isinstance(self.within, str) else tuple(self.within)
        object.__setattr__(self, "within", within)
        check_whole("FindThreshold", 1, first=self.first)
        if not 0 < self.success <= 1:
            raise UserError(
                f"FindThreshold: success={self.success}. Give a share above 0 and at most 1."
            )
        if self.outward is not None:
            low, high = self.outward
            object.__setattr__(self, "outward", (low, high))
            if not 0 <= low < self.success <= high <= 1:
                raise UserError(
                    f"FindThreshold: outward=({low}, {high}). Give two shares from 0 to 1, the "
                    f"first below success={self.success}, the second not below it."
                )

    @property
    def assumes(self) -> tuple[str, ...]:
        """Success is taken to rise along the axis."""
        return (self.along,)

    def search(self, sweep: Sweep) -> ThresholdSearch:
        """Lay the sweep out."""
        return ThresholdSearch(self, sweep)

    def check(self, sweep: Sweep) -> None:
        """Refuse a sweep with axes that it does not name, or without those that it names."""
        parts = (sweep, *sweep.also)
        axes = {axis for part in parts for axis, values in part.axes.items() if len(values) > 1}
        named = {self.along, *self.within, *filter(None, [self.until_solved])}
        if missing := sorted(named - {axis for part in parts for axis in part.axes}):
            raise UserError(
                f"FindThreshold: {missing[0]!r} is no axis of this sweep. Its axes: "
                f"{', '.join(sweep.axes)}."
            )
        values = [value for part in parts for value in part.axes.get(self.along, ())]
        if not all(isinstance(value, int | float) for value in values):
            raise UserError(
                f"FindThreshold: the axis {self.along} has values that are no numbers, and "
                "bisection needs an order. Search along an axis of numbers."
            )
        if others := sorted(axes - named - {"seed"}):
            raise UserError(
                f"FindThreshold: the sweep varies {others[0]} too, and nothing says how. Name it "
                "in within, so that each of its values has a threshold of its own."
            )


class ThresholdSearch(Search):
    """The search on one sweep: its runs by stratum, value and trial."""

    def __init__(self, rule: FindThreshold, sweep: Sweep) -> None:
        self.rule, self.value_of = rule, attrgetter(rule.along)
        cells: dict[Stratum, dict[Any, dict[int, Trial]]] = {}
        for spec in sweep.specs():
            stratum = tuple(attrgetter(path)(spec) for path in rule.within)
            trials = cells.setdefault(stratum, {}).setdefault(self.value_of(spec), {})
            trials.setdefault(spec.seed, []).append((run_key(spec), spec))
        self.strata: dict[Stratum, list[tuple[Any, list[Trial]]]] = {
            stratum: [(value, list(trials[value].values())) for value in sorted(trials)]
            for stratum, trials in cells.items()
        }

    def wanted(self, solved: Solved) -> dict[str, RunSpec]:
        """Return what the search of each stratum waits for."""
        found: dict[str, RunSpec] = {}
        for cells in self.strata.values():
            _Bisection(self.rule, cells, solved, found).crossing()
        return found

    def thresholds(self, solved: Solved) -> dict[Stratum, tuple[Any, Any] | None]:
        """Return for each stratum the last value that fails and the first that succeeds.

        None stands for such a value outside the grid, and for a search that has not ended.
        """
        return {
            stratum: _Bisection(self.rule, cells, solved, {}).values()
            for stratum, cells in self.strata.items()
        }

    def lines(self, solved: Solved) -> list[str]:
        """Return a sentence per stratum about its threshold."""
        along, found = self.rule.along, []
        for stratum, ends in self.thresholds(solved).items():
            named = zip(self.rule.within, stratum, strict=True)
            where = ", ".join(f"{path} = {value}" for path, value in named)
            if ends is None:
                what = f"the least {along} is not found yet"
            elif ends[1] is None:
                what = f"no {along} up to {ends[0]:g} is enough"
            else:
                below = "" if ends[0] is None else f"; {ends[0]:g} is not"
                what = f"{along} = {ends[1]:g} is enough for {self.rule.success:.0%}{below}"
            found.append(f"{where}: {what}" if where else what)
        return found

    def scenarios(self) -> Iterator[Callable[[RunSpec], bool]]:
        """Yield a clear threshold at each value, and beyond the last."""
        values = sorted({value for cells in self.strata.values() for value, _ in cells})
        for place in range(len(values) + 1):
            yield self._from(set(values[place:]))

    def _from(self, enough: set[Any]) -> Callable[[RunSpec], bool]:
        return lambda spec: self.value_of(spec) in enough


class _Bisection:
    """The search of one stratum, as far as what has ended allows; what it waits for is noted."""

    def __init__(
        self,
        rule: FindThreshold,
        cells: Sequence[tuple[Any, list[Trial]]],
        solved: Solved,
        missing: dict[str, RunSpec],
    ) -> None:
        self.rule, self.cells, self.solved, self.missing = rule, cells, solved, missing

    def values(self) -> tuple[Any, Any] | None:
        """Return the values on both sides of the threshold."""
        places = self.crossing()
        if places is None:
            return None
        low, high = (
            self.cells[place][0] if 0 <= place < len(self.cells) else None for place in places
        )
        return low, high

    def crossing(self) -> tuple[int, int] | None:
        """Return the neighbours between which success begins; None if runs are missing.

        Before the first value nothing succeeds, after the last everything does.
        """
        low, high = -1, len(self.cells)
        while high - low > 1:
            middle = (low + high) // 2
            succeeds = self._succeeds(middle, self.rule.first)
            if succeeds is None:
                return None
            low, high = (low, middle) if succeeds else (middle, high)
        while True:
            below, above = self._succeeds(low, None), self._succeeds(high, None)
            if below is None or above is None:
                return None
            if below:
                low, high = low - 1, low
            elif not above:
                low, high = high, high + 1
            else:
                return (low, high) if self._ended_outward(low, high) else None

    def _ended_outward(self, low: int, high: int) -> bool:
        """Return whether the values beyond the neighbours are known as far as the rule asks."""
        if self.rule.outward is None:
            return True
        few, many = self.rule.outward
        # Both are asked before either answers, so that their runs are made at once.
        below = self._known_until(range(low, -1, -1), lambda share: share <= few + 1e-9)
        above = self._known_until(range(high, len(self.cells)), lambda share: share >= many - 1e-9)
        return below and above

    def _known_until(self, places: Iterable[int], far_enough: Callable[[float], bool]) -> bool:
        """Return whether the values are known on the way to the first that is far enough."""
        for share in map(self._share, places):
            if share is None or far_enough(share):
                return share is not None
        return True

    def _succeeds(self, place: int, seeds: int | None) -> bool | None:
        """Return whether enough of the first seeds of a value succeed, or of all."""
        if not 0 <= place < len(self.cells):
            return place >= 0
        share = self._share(place, seeds)
        return None if share is None else share >= self.rule.success - 1e-9

    def _share(self, place: int, seeds: int | None = None) -> float | None:
        """Return the share of the first seeds of a value that succeed, or of all; None: missing."""
        trials = self.cells[place][1][:seeds]
        ended = [self._ended(trial) for trial in trials]
        return None if None in ended else sum(map(bool, ended)) / len(trials)

    def _ended(self, trial: Trial) -> bool | None:
        """Return whether a trial succeeds; without an order, all of its runs are wanted at once."""
        if self.rule.until_solved is None:
            lacking = {key: spec for key, spec in trial if key not in self.solved}
            self.missing |= lacking
            return None if lacking else any(self.solved[key] for key, _ in trial)
        for key, spec in trial:
            if key not in self.solved:
                self.missing[key] = spec
                return None
            if self.solved[key]:
                return True
        return False
