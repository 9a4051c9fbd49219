"""Rules about how the time to success scales: with the task's size n, and with the width r."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from petridish.chapters.hidden.rules.architectures import NUMERALS, with_architectures
from petridish.errors import UserError
from petridish.rules.cells import mixed
from petridish.rules.claims import Finding, Judgement, by_interval, nothing
from petridish.statistics.estimate import FEWEST
from petridish.statistics.power_laws import Cell, find_break, fit_power_law, known_medians
from petridish.statistics.trend import holm

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]
Key = tuple[Any, ...]
CURVES = ("architecture", "task.k")  # what tells HP's scaling curves apart
TASKS = ("task.n", "task.k")


def cells_of(table: pl.DataFrame, *, along: str, within: Sequence[str]) -> dict[Key, list[Cell]]:
    """Gather the runs of every stratum into cells, from the lowest value of `along` on.

    Architectures come in the source's order. Where the runs of one cell had different budgets, the
    smallest holds for all: a run solved later counts as not solved. Refuses runs that share a cell
    and a seed.
    """
    found = _cells_or_clash(table, along, within)
    if isinstance(found, str):
        raise UserError(f"{found[0].upper()}{found[1:]}.")
    return found


def _cells_or_clash(
    table: pl.DataFrame, along: str, within: Sequence[str]
) -> dict[Key, list[Cell]] | str:
    """Gather the cells, or say why they cannot be."""
    import polars as pl

    if not len(table):
        return "there are no runs"
    if "architecture" in within and "architecture" not in table.columns:
        table = with_architectures(table)
    if clash := mixed(table, (*within, along)):
        return clash
    grouped = table.group_by([*within, along]).agg(
        pl.col("solved_at").cast(pl.Float64).fill_null(math.inf).sort().alias("times"),
        pl.col("evaluation.every").max().alias("every"),
        pl.col("training.steps").min().alias("budget"),
    )
    ends = grouped["times"].list.len().cum_sum().to_list()
    parts = np.split(grouped["times"].explode().to_numpy(), ends[:-1])
    strata: dict[Key, list[Cell]] = {}
    for times, (*key, at, every, budget) in zip(
        parts, grouped.drop("times").iter_rows(), strict=True
    ):
        known = np.where(times <= budget, times, math.inf)
        strata.setdefault(tuple(key), []).append(Cell(float(at), known, int(every), int(budget)))
    return {
        key: sorted(strata[key], key=lambda cell: cell.at) for key in sorted(strata, key=_in_order)
    }


def _in_order(key: Key) -> Key:
    return tuple(
        (NUMERALS.index(part), "") if part in NUMERALS else (len(NUMERALS), part) for part in key
    )


@dataclass(frozen=True)
class ScalesAsPowerOfN:
    """The median time grows as n^{αk} with α below `ceiling`: n^k is what exhaustive search takes.

    Every stratum (architecture and k) with three known medians or more has an exponent; α is the
    exponent over k. The estimate is the largest α, with the interval that holds for all strata at
    once (Bonferroni). Supported if its upper end, and so that of every stratum, is below the
    ceiling; contradicted if its lower end is above, so that some stratum grows faster. Medians
    beyond the budget are not guessed: α is that of the n at which half of the runs are solved.
    """

    ceiling: float = 1.0
    along: str = "task.n"
    within: tuple[str, ...] = CURVES

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep."""
        quantity = "largest α of n^(αk)"
        found = _cells_or_clash(table, self.along, self.within)
        if isinstance(found, str):
            return nothing(quantity, found)
        k = self.within.index("task.k")
        fits = {key: fit_power_law(cells) for key, cells in found.items()}
        laws = {key: law for key, law in fits.items() if law is not None}
        if not laws:
            return nothing(quantity, "no stratum has three known medians")
        z = NormalDist().inv_cdf(1 - level / (2 * len(laws)))
        alpha = {key: law.exponent / key[k] for key, law in laws.items()}
        half = {key: z * law.error / key[k] for key, law in laws.items()}
        low = max(alpha[key] - half[key] for key in laws)
        high = max(alpha[key] + half[key] for key in laws)
        judgement = by_interval(-high, -low, -self.ceiling)
        texts = {key: f"{alpha[key]:.2f}" if key in alpha else "–" for key in fits}
        remark = (
            f"mean α {np.mean(list(alpha.values())):.2f}; {len(laws)} of {len(fits)} strata have "
            f"three known medians; α: {_by_k(texts, k)}"
        )
        n = sum(len(cell.times) for key in laws for cell in found[key])
        return Finding(judgement, max(alpha.values()), low, high, quantity, n, remark)


@dataclass(frozen=True)
class Elbow:
    """The exponent worsens at larger n: two lines, the upper one steeper, fit better than one.

    Every stratum with four known medians or more is searched for its best break. The p-values pay
    for the search over breaks, Holm's correction for that over strata. Supported if some stratum
    has a significant increase of slope and none a significant decrease; contradicted if there are
    decreases only. The estimate is the increase of slope in the stratum where the break is
    clearest, with an interval that holds for all breaks and strata at once. Any convex curve is
    found to break, and so is a power law to which a constant is added: the remark says where.
    """

    along: str = "task.n"
    within: tuple[str, ...] = CURVES

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep."""
        quantity = "increase of the exponent at the clearest break"
        found = _cells_or_clash(table, self.along, self.within)
        if isinstance(found, str):
            return nothing(quantity, found)
        fitted = {key: cells for key, cells in found.items() if len(known_medians(cells).x) >= 4}
        if not fitted:
            return nothing(quantity, "no stratum has four known medians")
        share = level / len(fitted)
        breaks = {
            key: broken
            for key, cells in fitted.items()
            if (broken := find_break(cells, level=share)) is not None
        }
        corrected = dict(zip(breaks, holm([one.p for one in breaks.values()]), strict=True))
        clear = [key for key in breaks if corrected[key] < level]
        up = [key for key in clear if breaks[key].increase > 0]
        down = [key for key in clear if breaks[key].increase < 0]
        judgement = Judgement.UNDECIDED
        if bool(up) != bool(down):
            judgement = Judgement.SUPPORTED if up else Judgement.CONTRADICTED
        shown = min(breaks, key=lambda key: (breaks[key].p, -breaks[key].clarity))
        one = breaks[shown]
        remark = (
            f"of {len(breaks)} strata {len(up)} have a significant increase and {len(down)} a "
            f"decrease (Holm); clearest at {_named(shown, self.within)}: n^{one.below:.2f} to "
            f"n = {one.n:g}, n^{one.below + one.increase:.2f} beyond"
        )
        others = [key for key in (up + down) if key != shown]
        if others:
            parts = [
                f"{_named(key, self.within)} at {breaks[key].n:g} ({breaks[key].increase:+.1f})"
                for key in others
            ]
            remark += f"; also {', '.join(parts)}"
        n = sum(len(cell.times) for cells in fitted.values() for cell in cells)
        return Finding(judgement, one.increase, one.low, one.high, quantity, n, remark)


@dataclass(frozen=True)
class NoParallelSpeedup:
    """Width does not speed success up in proportion: r neurons are not r searches side by side.

    For every task, the speed-up is the median time at the smallest width from `narrowest` on over
    the median at the largest, of those whose medians are known and later than the first look, which
    would hide how soon a run was solved. The estimate is its exponent, log speed-up over
    log (rmax / r0): 1 for r-fold, 0 for none; of all tasks the largest, with the interval that
    holds for all at once (Bonferroni over percentile bootstraps). Supported below `ceiling`,
    contradicted above: ½ is halfway between none and r-fold. Networks too narrow for the parity
    (r < k) had another aim and are left out.
    """

    ceiling: float = 0.5
    narrowest: int = 10
    along: str = "model.width"
    within: tuple[str, ...] = TASKS

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep."""
        quantity = "largest exponent of the speed-up in r"
        found = _widths(table, self.along, self.within, self.narrowest)
        if isinstance(found, str):
            return nothing(quantity, found)
        rng = np.random.default_rng(0)
        tail = level / (2 * len(found))
        values, lows, highs, texts = [], [], [], []
        for key, (narrow, wide) in found.items():
            span = math.log(wide.at / narrow.at)
            speedup = narrow.quantile() / wide.quantile()
            drawn = _log_ratio(narrow.redrawn([0.5], rng), wide.redrawn([0.5], rng))[:, 0] / span
            low, high = _ends(drawn, tail)
            values.append(math.log(speedup) / span)
            lows.append(min(low, values[-1]))
            highs.append(max(high, values[-1]))
            texts.append(
                f"{_task(key)}: {speedup:.2g}-fold from r = {narrow.at:,.0f} to {wide.at:,.0f}"
            )
        judgement = by_interval(-max(highs), -max(lows), -self.ceiling)
        n = sum(len(cell.times) for pair in found.values() for cell in pair)
        return Finding(judgement, max(values), max(lows), max(highs), quantity, n, "; ".join(texts))


@dataclass(frozen=True)
class UpperTailShrinks:
    """Wide networks have a lighter upper tail: their slow runs are less slow beside the median.

    The tail of a cell is its 90th percentile over its median, or the highest of the `shares` known
    at both widths (its 95 % interval ends within the budget). The estimate is the tail at the
    smallest width over that at the largest, chosen as for the speed-up, geometric mean over the
    tasks, with a percentile bootstrap. Supported above 1, contradicted below.
    """

    shares: tuple[float, ...] = (0.9, 0.8, 0.7, 0.6)
    narrowest: int = 10
    along: str = "model.width"
    within: tuple[str, ...] = TASKS

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep."""
        quantity = "tail over median, narrowest / widest"
        found = _widths(table, self.along, self.within, self.narrowest)
        if isinstance(found, str):
            return nothing(quantity, found)
        rng = np.random.default_rng(0)
        values, draws, texts, n = [], [], [], 0
        for key, pair in found.items():
            share = next((s for s in self.shares if all(_reached(cell, s) for cell in pair)), None)
            if share is None:
                continue
            tails = [cell.quantile(share) / cell.quantile() for cell in pair]
            redrawn = [cell.redrawn([0.5, share], rng) for cell in pair]
            ratios = [_log_ratio(drawn[:, 1], drawn[:, 0]) for drawn in redrawn]
            values.append(math.log(tails[0] / tails[1]))
            with np.errstate(invalid="ignore"):  # ∞ − ∞: nothing is known
                draws.append(ratios[0] - ratios[1])
            low, high = _ends(draws[-1], level / 2)
            n += sum(len(cell.times) for cell in pair)
            texts.append(
                f"{_task(key)}: {100 * share:g} % / median {tails[0]:.2f} at "
                f"r = {pair[0].at:,.0f}, {tails[1]:.2f} at {pair[1].at:,.0f}, "
                f"ratio [{math.exp(low):.2f}, {math.exp(high):.2f}]"
            )
        if not values:
            return nothing(quantity, f"no task has {min(self.shares):.0%} solved at both widths")
        estimate = float(np.mean(values))
        with np.errstate(invalid="ignore"):  # ∞ − ∞: nothing is known
            low, high = _ends(np.mean(draws, axis=0), level / 2)
        low, high = math.exp(min(low, estimate)), math.exp(max(high, estimate))
        judgement = by_interval(low, high, 1.0)
        return Finding(judgement, math.exp(estimate), low, high, quantity, n, "; ".join(texts))


def _widths(
    table: pl.DataFrame, along: str, within: tuple[str, ...], narrowest: int
) -> dict[Key, tuple[Cell, Cell]] | str:
    """Give the narrow and the wide end of every task, or say why there are none."""
    table = table.filter(table[along] >= table["task.k"])
    found = _cells_or_clash(table, along, within)
    if isinstance(found, str):
        return found
    ends = {}
    for key, cells in found.items():
        known = [
            cell
            for cell in cells
            if len(cell.times) >= FEWEST and cell.every < cell.quantile() < math.inf
        ]
        wide = [cell for cell in known if cell.at >= narrowest]
        chosen = wide if len(wide) > 1 else known
        if len(chosen) > 1:
            ends[key] = chosen[0], chosen[-1]
    return ends or f"no task has two values of {along} with known medians of {FEWEST} runs"


def _reached(cell: Cell, share: float) -> bool:
    return math.isfinite(cell.interval(share)[1])


def _log_ratio(over: Floats, under: Floats) -> Floats:
    """Give log(over / under); NaN where both are infinite."""
    with np.errstate(invalid="ignore"):  # ∞ − ∞: nothing is known
        ratio: Floats = np.log(over) - np.log(under)
    return ratio


def _ends(drawn: Floats, tail: float) -> tuple[float, float]:
    """Give the percentiles of what was drawn; a draw of which nothing is known widens both."""
    unknown = np.isnan(drawn)
    low = np.quantile(np.where(unknown, -math.inf, drawn), tail, method="inverted_cdf")
    high = np.quantile(np.where(unknown, math.inf, drawn), 1 - tail, method="inverted_cdf")
    return float(low), float(high)


def _task(key: Key) -> str:
    return f"({', '.join(map(str, key))})"


def _named(key: Key, within: Sequence[str]) -> str:
    """Name a stratum: «(i), k = 3»."""
    return ", ".join(
        str(part) if name == "architecture" else f"{name.removeprefix('task.')} = {part}"
        for name, part in zip(within, key, strict=True)
    )


def _by_k(texts: dict[Key, str], k: int) -> str:
    """Write a text for every stratum, those that differ in k alone together."""
    rows: dict[Key, list[tuple[Any, str]]] = {}
    for key, text in texts.items():
        rows.setdefault(key[:k] + key[k + 1 :], []).append((key[k], text))
    return "; ".join(
        f"{', '.join(map(str, key))} {', '.join(text for _, text in row)} "
        f"(k = {', '.join(str(value) for value, _ in row)})"
        for key, row in rows.items()
    )
