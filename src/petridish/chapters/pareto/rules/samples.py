"""What more data spoils: success and time that worsen as the sample grows [PF §4.1 (4), C.1].

To choose the largest fall and to measure it on the same runs would find one where there is none. So
one half of a stratum's seeds chooses two blocks of neighbouring sample sizes, the better before the
worse, and the other half measures the difference between them, and the other way round: every seed
is measured once, on blocks that it had no part in choosing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from petridish.rules.cells import mixed
from petridish.rules.claims import (
    Finding,
    Judgement,
    by_interval,
    nothing,
    seeds_to_exclude,
)
from petridish.rules.times import solved_times
from petridish.statistics.chances import share_distances
from petridish.statistics.intervals import FEWEST

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]
Score = Literal["success", "time"]
Block = tuple[int, int]  # first place, and one beyond the last
LONGEST = 4  # neighbouring sample sizes in a block
WITHIN = ("task", "init", "model.width")
TOO_FEW = f"no stratum has {2 * FEWEST} seeds at three sample sizes, and a success"


@dataclass(frozen=True)
class Stratum:
    """One stratum: its values, and by how much each seed worsens, and then improves again.

    `fall` and `rise` are means over a block less means over the next; of time they are logarithms.
    `high` is how good the block before the fall is on average, `low` the one after; `runs` are
    behind it.
    """

    key: tuple[Any, ...]
    fall: Floats
    rise: Floats
    high: float
    low: float
    runs: int


def strata_of(table: pl.DataFrame, score: Score, *, returns: bool = False) -> list[Stratum]:
    """Return how far every stratum with enough seeds worsens as the sample grows.

    A run that is not solved counts as solved at the end of its budget.
    """
    steps = table["training.steps"] if "training.steps" in table.columns else ()
    budget = max(map(float, steps), default=1.0)
    keys, _, times = solved_times(table, along="data.m", within=WITHIN)
    found = []
    for key, rows in zip(keys, times, strict=True):
        run = rows[(~np.isnan(rows)).sum(axis=1) >= 2 * FEWEST]  # (sample size, seed)
        values = run[:, ~np.isnan(run).any(axis=0)]
        enough = values.shape[0] >= 3 and values.shape[1] >= 2 * FEWEST
        if not enough or not np.isfinite(values).any():  # what never succeeds cannot worsen
            continue
        last = max(budget, float(np.max(values[np.isfinite(values)], initial=1.0)))
        good = (
            np.isfinite(values) * 1.0 if score == "success" else -np.log(np.minimum(values, last))
        )
        fall, rise = np.empty(good.shape[1]), np.empty(good.shape[1])
        ends = np.empty((2, good.shape[1]))
        for half in (0, 1):
            chosen = _blocks(good[:, half::2].mean(axis=1), returns=returns)
            means = [good[slice(*block), 1 - half :: 2].mean(axis=0) for block in chosen]
            fall[1 - half :: 2], rise[1 - half :: 2] = means[0] - means[1], means[-1] - means[1]
            ends[:, 1 - half :: 2] = means[:2]
        high, low = ends.mean(axis=1).tolist()
        found.append(Stratum(key, fall, rise, high, low, good.size))
    return found


def _blocks(means: Floats, *, returns: bool) -> tuple[Block, ...]:
    """Return the blocks with the clearest fall, or with the clearest fall and return."""
    starts, ends, triples = _all_blocks(len(means), 3 if returns else 2)
    total = np.concatenate([[0.0], np.cumsum(means)])
    lengths = (ends - starts).astype(np.float64)
    each = (total[ends] - total[starts]) / lengths
    weigh = np.sqrt(1 / (1 / lengths[triples[:, 0]] + 1 / lengths[triples[:, 1]]))
    clear = (each[triples[:, 0]] - each[triples[:, 1]]) * weigh
    if returns:
        weigh = np.sqrt(1 / (1 / lengths[triples[:, 2]] + 1 / lengths[triples[:, 1]]))
        clear = np.minimum(clear, (each[triples[:, 2]] - each[triples[:, 1]]) * weigh)
    best = triples[int(np.argmax(clear))]
    return tuple((int(starts[place]), int(ends[place])) for place in best)


@lru_cache(maxsize=16)
def _all_blocks(columns: int, count: int) -> tuple[Any, Any, Any]:
    """Return the blocks of a grid, and all ways to take `count` of them one after another."""
    blocks = [
        (start, end)
        for start in range(columns)
        for end in range(start + 1, min(start + LONGEST, columns) + 1)
    ]

    def ordered(chosen: tuple[int, ...]) -> bool:
        return all(blocks[a][1] <= blocks[b][0] for a, b in pairwise(chosen))

    ways = [chosen for chosen in combinations(range(len(blocks)), count) if ordered(chosen)]
    starts, ends = np.array(blocks).T
    return starts, ends, np.array(ways)


def _interval(values: Floats, score: Score, level: float) -> tuple[float, float, float]:
    """Return the mean over seeds with its interval: Student's, or Wilson's if all seeds agree."""
    middle = float(values.mean())
    if np.ptp(values) == 0 and score == "time":
        return middle, middle, middle
    below, above = share_distances(np.abs(values) if np.ptp(values) == 0 else values, level)
    if np.ptp(values) == 0 and middle < 0:
        below, above = above, below
    return middle, middle - below, middle + above


def _text(score: Score, number: float) -> str:
    return f"{number:.0%}" if score == "success" else f"{math.exp(-number):,.0f} steps"


@dataclass(frozen=True)
class Worsens:
    """Somewhere, success or time worsens as the sample grows; with `returns`, and improves again.

    In every stratum (task, start, width) the fall of the clearest blocks, with an interval at the
    level over the strata; with `returns` the smaller of the fall and of the rise after it.
    Supported if it lies above 0 in some stratum; contradicted if it lies below `margin` in every
    one (of success a difference, of time what is added to a ratio of 1). The numbers are those of
    the stratum that decides.
    """

    score: Score = "success"
    returns: bool = False
    margin: float = 0.1

    @property
    def _unit(self) -> str:
        return "fall of success" if self.score == "success" else "growth of time, as a ratio"

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep."""
        quantity = f"largest {self._unit}, with more data"
        quantity += ", before it is made up again" if self.returns else ""
        if clash := mixed(table, ("data.m", *WITHIN)):
            return nothing(quantity, clash)
        strata = strata_of(table, self.score, returns=self.returns)
        if not strata:
            return nothing(quantity, TOO_FEW)
        share = level / len(strata)
        found = [(self._ends(each, share), each) for each in strata]
        most = self.margin if self.score == "success" else math.log(1 + self.margin)
        best, where = max(found, key=lambda pair: pair[0][1])
        judgement = Judgement.UNDECIDED
        if best[1] > 0:
            judgement = Judgement.SUPPORTED
        else:
            best, where = max(found, key=lambda pair: pair[0][2])
        if best[2] < most:
            judgement = Judgement.CONTRADICTED
        remark = f"at {', '.join(map(str, where.key))}: {_text(self.score, where.high)}, then "
        remark += f"{_text(self.score, where.low)}; {len(strata)} strata"
        if judgement is Judgement.UNDECIDED:
            remark += ", and here it may be as much as the interval's upper end"
        estimate, low, high = best if self.score == "success" else map(math.exp, best)
        n = sum(each.runs for each in strata)
        nil, most = (0.0, self.margin) if self.score == "success" else (1.0, 1 + self.margin)
        asked = most if estimate < (nil + most) / 2 else nil
        note = seeds_to_exclude(
            *(asked, estimate, low, high), seeds=len(where.fall), of="the fall", claimed="above"
        )
        ends = estimate, low, high
        return Finding(judgement, *ends, quantity, n, remark, note, bound=nil)

    def _ends(self, stratum: Stratum, level: float) -> tuple[float, float, float]:
        fall = _interval(stratum.fall, self.score, level)
        if not self.returns:
            return fall
        rise = _interval(stratum.rise, self.score, level)
        # Both must be there: each end is the lesser of the two.
        estimate, low, high = (min(pair) for pair in zip(fall, rise, strict=True))
        return estimate, low, high


@dataclass(frozen=True)
class WidthRemoves:
    """From one start, the time of the widest network no longer worsens with the sample.

    The estimate is the growth of the time at the widest network that has enough seeds, as a ratio.
    Supported if the whole interval lies below 1 and `margin`; contradicted if it lies above 1.
    Where the time of no narrower network worsens there is nothing to remove.
    """

    init: str
    margin: float = 0.1

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep."""
        import polars as pl

        quantity = f"growth of time with more data at the widest, as a ratio ({self.init})"
        table = table.filter(pl.col("init") == self.init)
        if clash := mixed(table, ("data.m", *WITHIN)):
            return nothing(quantity, clash)
        strata = sorted(strata_of(table, "time"), key=lambda each: each.key[2])
        widths = sorted({each.key[2] for each in strata})
        if len(widths) < 2:
            return nothing(quantity, f"needs two widths; {TOO_FEW}" if not strata else TOO_FEW)
        by_width = {
            width: np.concatenate([each.fall for each in strata if each.key[2] == width])
            for width in widths
        }
        narrower = {
            width: _interval(values, "time", level / (len(widths) - 1))
            for width, values in by_width.items()
            if width != widths[-1]
        }
        ends = _interval(by_width[widths[-1]], "time", level)
        judgement = by_interval(-ends[2], -ends[1], -math.log(1 + self.margin))
        if judgement is not Judgement.SUPPORTED:
            judgement = Judgement.CONTRADICTED if ends[1] > 0 else Judgement.UNDECIDED
        remark = "by width " + ", ".join(
            f"{width}: {math.exp(values.mean()):.2f}" for width, values in by_width.items()
        )
        if all(low <= 0 for _, low, _ in narrower.values()):
            judgement = Judgement.UNDECIDED
            remark += "; no narrower network's time worsens, so that there is nothing to remove"
        estimate, low, high = map(math.exp, ends)
        n = sum(each.runs for each in strata)
        return Finding(judgement, estimate, low, high, quantity, n, remark)


@dataclass(frozen=True)
class Steadier:
    """Success falls less as the sample grows from one start than from another.

    The estimate is the mean over tasks and widths of the fall from `other` less that from `init`,
    seed by seed. Supported above 0, contradicted below.
    """

    init: str = "sparse(2)"
    other: str = "uniform"

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep."""
        quantity = f"fall of success with more data, {self.other} − {self.init}"
        if clash := mixed(table, ("data.m", *WITHIN)):
            return nothing(quantity, clash)
        strata = strata_of(table, "success")
        pairs = list(self._pairs({each.key: each.fall for each in strata}))
        if not pairs:
            return nothing(quantity, f"{TOO_FEW} from both starts")
        seeds = min(len(values) for pair in pairs for values in pair)
        gains = np.mean([(other[:seeds] - own[:seeds]) for own, other in pairs], axis=0)
        if np.ptp(gains) == 0 and gains[0] == 0:
            return nothing(quantity, f"success falls from neither start, in {len(pairs)} strata")
        estimate, low, high = _interval(gains, "success", level)
        own, other = (float(np.mean([pair[side].mean() for pair in pairs])) for side in (0, 1))
        remark = (
            f"mean fall {self.init} {own:.3f}, {self.other} {other:.3f}, over {len(pairs)} "
            "tasks and widths"
        )
        n = sum(each.runs for each in strata)
        note = seeds_to_exclude(0.0, estimate, low, high, seeds=seeds, claimed="above")
        judgement, ends = by_interval(low, high, 0.0), (estimate, low, high)
        return Finding(judgement, *ends, quantity, n, remark, note, bound=0.0)

    def _pairs(self, strata: dict[tuple[Any, ...], Floats]) -> Iterator[Sequence[Floats]]:
        for (task, init, width), own in strata.items():
            if init == self.init and (task, self.other, width) in strata:
                yield own, strata[task, self.other, width]
