"""Rules about how the time to success scales: with the task's size n, and with the width r."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from petridish.chapters.hidden.rules.architectures import NUMERALS, with_architectures
from petridish.chapters.hidden.rules.table_rule import TableRule, decide, refuse_mixed
from petridish.errors import require
from petridish.rules.claims import Finding, Judgement, by_interval
from petridish.statistics.intervals import FEWEST
from petridish.statistics.power_laws import Cell, PowerLaw, fit_power_law
from petridish.statistics.ranks import known_percentiles

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]
Key = tuple[Any, ...]
CURVES = ("architecture", "task.k")  # what tells HP's scaling curves apart
TASKS = ("task.n", "task.k")


def cells_of(table: pl.DataFrame, *, along: str, within: Sequence[str]) -> dict[Key, list[Cell]]:
    """Gather the runs of every stratum into cells, from the lowest value of `along` on.

    Architectures come in the paper's order. Where the runs of one cell had different budgets, the
    smallest holds for all: a run solved later counts as not solved. Refuses runs that share a cell
    and a seed.
    """
    import polars as pl

    require(len(table) > 0, "there are no runs")
    if "architecture" in within:
        table = with_architectures(table)
    refuse_mixed(table, (*within, along))
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
class GrowsSlowerThanSearch(TableRule):
    """The median time grows more slowly in n than C(n, k), what exhaustive search has to try.

    Every stratum (architecture and k) has the exponent of t / C(n, k), fitted to n up to `small`,
    as the paper's power laws are those of small n. Its curve is followed as far as a time that
    grew like C(n, k) from the smallest n on would still be within the budget: beyond, only slow
    growth could be seen. A stratum with three known medians is judged. The estimate is the largest
    exponent, with an interval that holds for all strata at once (Bonferroni). Supported if it lies
    below 0, contradicted if it lies above, or if in a stratum a median is for certain beyond the
    budget although C(n, k) is within it. A median there that is not known leaves it open, and so
    does a stratum that cannot be judged.
    """

    quantity = "largest exponent in n of t_c / C(n, k)"

    small: int = 40

    def _judge(self, table: pl.DataFrame, level: float) -> Finding:
        found = _up_to(table, self.small)
        share = level / len(found)
        z = NormalDist().inv_cdf(1 - share / 2)
        laws, halted, open_, texts = {}, [], [], []
        for (name, k), cells in found.items():
            within = _as_search_would(cells, k)
            law = fit_power_law(within, over=partial(_candidates, k=k))
            if any(math.isinf(cell.interval(coverage=1 - share)[0]) for cell in within):
                halted.append(f"{name}, k = {k}")
            elif law is None or any(math.isinf(cell.quantile()) for cell in within):
                open_.append(f"{name}, k = {k}")
            own = fit_power_law(within)
            if law is not None and own is not None:
                laws[name, k] = law
                texts.append(f"{name}, k = {k} to n = {within[-1].at:g}: {own.exponent:.2f}")
        require(bool(laws), f"no stratum has three known medians up to n = {self.small}")
        worst = max(laws, key=lambda key: laws[key].exponent)
        low, high = (
            max(law.exponent + sign * z * law.error for law in laws.values()) for sign in (-1, 1)
        )
        judgement = decide(
            contradicted=low > 0 or halted, supported=high < 0 and not open_ and not halted
        )
        remarks = [f"at {worst[0]}, k = {worst[1]}", f"exponents of t_c: {'; '.join(texts)}"]
        if halted:
            remarks.append(f"beyond the budget, where C(n, k) is not: {', '.join(halted)}")
        if open_:
            remarks.append(f"not judged, a median or the budget is missing: {', '.join(open_)}")
        n = sum(len(cell.times) for key in laws for cell in found[key])
        estimate = laws[worst].exponent
        remark = ". ".join(remarks)
        return Finding(judgement, estimate, low, high, self.quantity, n, remark, bound=0.0)


def _up_to(table: pl.DataFrame, small: int) -> dict[Key, list[Cell]]:
    """Return the scaling curves over n up to `small`."""
    return cells_of(table.filter(table["task.n"] <= small), along="task.n", within=CURVES)


def _candidates(n: float, k: int) -> float:
    """Return the number of supports of k of n bits."""
    return math.comb(round(n), k)


def _as_search_would(cells: Sequence[Cell], k: int) -> list[Cell]:
    """Keep the n at which a time that grew like C(n, k) would be within the budget."""
    first = cells[0]
    latest = first.interval()[1] / _candidates(first.at, k)
    return [
        cell for cell in cells if cell is first or latest * _candidates(cell.at, k) <= cell.budget
    ]


@dataclass(frozen=True)
class ExponentGrowsWithK(TableRule):
    """The exponent of the median time in n grows with k, for every architecture [HP B.3].

    The exponents of n up to `small`, for all k with three known medians; their slope in k by
    weighted least squares. The estimate is the least slope over the architectures with two k or
    more. Supported if the interval of every slope lies above 0: as each must, none needs a
    correction; contradicted if one lies below, at the level divided by their number.
    """

    quantity = "least increase of the exponent per bit of the parity"

    small: int = 40

    def _judge(self, table: pl.DataFrame, level: float) -> Finding:
        found = _up_to(table, self.small)
        laws: dict[str, dict[int, PowerLaw]] = {}
        for (name, k), cells in found.items():
            if law := fit_power_law(cells):
                laws.setdefault(name, {})[k] = law
        slopes = {name: _slope(by_k) for name, by_k in laws.items() if len(by_k) > 1}
        require(bool(slopes), "no architecture has the exponents of two k")
        judgement, numbers, agree = _all_rise(slopes, level)
        texts = [
            f"{name} {', '.join(f'{law.exponent:.2f}' for law in by_k.values())} "
            f"(k = {', '.join(map(str, by_k))})"
            for name, by_k in laws.items()
        ]
        remark = f"{agree} of {len(slopes)} architectures agree; exponents: {'; '.join(texts)}"
        n = sum(len(c.times) for (name, _), cells in found.items() if name in slopes for c in cells)
        return Finding(judgement, *numbers, self.quantity, n, remark, bound=0.0)


def _slope(by_k: Mapping[int, PowerLaw]) -> tuple[float, float]:
    """Return the slope of the exponents in k, and its standard error."""
    k, weight = np.array(list(by_k), float), np.array([law.error**-2 for law in by_k.values()])
    exponents = np.array([law.exponent for law in by_k.values()])
    away = k - (weight * k).sum() / weight.sum()
    spread = float((weight * away**2).sum())
    return float((weight * away * exponents).sum()) / spread, spread**-0.5


def _all_rise(
    effects: Mapping[Any, tuple[float, float]], level: float
) -> tuple[Judgement, tuple[float, float, float], int]:
    """Judge whether all effects, each with its standard error, lie above 0.

    Returns also the least with its interval, and how many are above 0 for certain.
    """
    alone, all_ = (NormalDist().inv_cdf(1 - level / (2 * n)) for n in (1, len(effects)))
    against = [effect for effect in effects.values() if effect[0] + all_ * effect[1] < 0]
    agree = sum(effect - alone * error > 0 for effect, error in effects.values())
    judgement = decide(contradicted=against, supported=agree == len(effects))
    least, error = min(against or effects.values())
    half = (all_ if against else alone) * error
    return judgement, (least, least - half, least + half), agree


@dataclass(frozen=True)
class ExponentWorsens(TableRule):
    """The exponent is larger beyond `small` than up to it: the power law bends upwards at last.

    For every k of the `architectures` with three known medians on either side, the exponent beyond
    less the exponent up to `small`, where the paper's small n end; its larger n have panels of
    their own. The estimate is the least increase. Supported if the interval of each lies above 0:
    as each must, none needs a correction; contradicted if one lies below, at the level divided by
    their number. An elbow beyond the largest n is not seen; the remark says how far the n go.
    """

    quantity = "least increase of the exponent beyond small n"

    architectures: tuple[str, ...]
    small: int = 40

    def _judge(self, table: pl.DataFrame, level: float) -> Finding:
        table = with_architectures(table)
        table = table.filter(table["architecture"].is_in(self.architectures))
        found = cells_of(table, along="task.n", within=CURVES)
        increases, texts, runs = {}, [], 0
        for (name, k), cells in found.items():
            below = fit_power_law([cell for cell in cells if cell.at <= self.small])
            above = fit_power_law([cell for cell in cells if cell.at > self.small])
            if below and above:
                error = math.hypot(below.error, above.error)
                increases[name, k] = above.exponent - below.exponent, error
                runs += sum(len(cell.times) for cell in cells)
                texts.append(
                    f"{name}, k = {k}: n^{below.exponent:.2f}, n^{above.exponent:.2f} from "
                    f"n = {self.small} to {cells[-1].at:g}"
                )
        require(bool(increases), f"no stratum has three known medians beyond n = {self.small}")
        judgement, numbers, _ = _all_rise(increases, level)
        return Finding(judgement, *numbers, self.quantity, runs, "; ".join(texts), bound=0.0)


@dataclass(frozen=True)
class NoParallelSpeedup(TableRule):
    """Width does not speed success up in proportion: r neurons are not r searches side by side.

    For every task, the speed-up is the median time at the smallest width from `narrowest` on over
    the median at the largest, of those whose medians are known and later than the first evaluation,
    which would hide how soon a run was solved. The estimate is its exponent, log speed-up over
    log (rmax / r0): 1 for r-fold, 0 for none; of all tasks the largest, with the interval that
    holds for all at once (Bonferroni over percentile bootstraps). Supported below `ceiling`,
    contradicted above: ½ is halfway between none and r-fold. Networks too narrow for the parity
    (r < k) had another aim and are left out.
    """

    quantity = "largest exponent of the speed-up in r"

    ceiling: float = 0.5
    narrowest: int = 10

    def _judge(self, table: pl.DataFrame, level: float) -> Finding:
        found = _widths(table, self.narrowest)
        rng = np.random.default_rng(0)
        tail = level / (2 * len(found))
        values, lows, highs, texts = [], [], [], []
        for (n, k), (narrow, wide) in found.items():
            span = math.log(wide.at / narrow.at)
            speedup = narrow.quantile() / wide.quantile()
            drawn = _log_ratio(narrow.redrawn([0.5], rng), wide.redrawn([0.5], rng))[:, 0] / span
            low, high = known_percentiles(drawn, tail)
            values.append(math.log(speedup) / span)
            lows.append(min(low, values[-1]))
            highs.append(max(high, values[-1]))
            texts.append(
                f"({n}, {k}): {speedup:.2g}-fold from r = {narrow.at:,.0f} to {wide.at:,.0f}"
            )
        judgement = by_interval(-max(highs), -max(lows), -self.ceiling)
        runs = sum(len(cell.times) for pair in found.values() for cell in pair)
        most = max(values), max(lows), max(highs)
        return Finding(judgement, *most, self.quantity, runs, "; ".join(texts), bound=self.ceiling)


@dataclass(frozen=True)
class UpperTailShrinks(TableRule):
    """Wide networks have a lighter upper tail: their slow runs are less slow beside the median.

    The tail of a cell is its 90th percentile over its median, or the highest of the `shares` known
    at both widths (its 95 % interval ends within the budget). The estimate is the tail at the
    smallest width over that at the largest, chosen as for the speed-up, geometric mean over the
    tasks, with a percentile bootstrap. Supported above 1, contradicted below.
    """

    quantity = "tail over median, narrowest / widest"

    shares: tuple[float, ...] = (0.9, 0.8, 0.7, 0.6)
    narrowest: int = 10

    def _judge(self, table: pl.DataFrame, level: float) -> Finding:
        found = _widths(table, self.narrowest)
        rng = np.random.default_rng(0)
        values, draws, texts, runs = [], [], [], 0
        for (n, k), pair in found.items():
            reached = [
                s for s in self.shares if all(cell.interval(s)[1] < math.inf for cell in pair)
            ]
            if not reached:
                continue
            share = reached[0]
            tails = [cell.quantile(share) / cell.quantile() for cell in pair]
            redrawn = [cell.redrawn([0.5, share], rng) for cell in pair]
            values.append(math.log(tails[0] / tails[1]))
            narrow, wide = (_log_ratio(drawn[:, 1], drawn[:, 0]) for drawn in redrawn)
            draws.append(_less(narrow, wide))
            low, high = known_percentiles(draws[-1], level / 2)
            runs += sum(len(cell.times) for cell in pair)
            texts.append(
                f"({n}, {k}): {100 * share:g} % / median {tails[0]:.2f} at "
                f"r = {pair[0].at:,.0f}, {tails[1]:.2f} at {pair[1].at:,.0f}, "
                f"ratio [{math.exp(low):.2f}, {math.exp(high):.2f}]"
            )
        require(bool(values), f"no task has {min(self.shares):.0%} solved at both widths")
        estimate = float(np.mean(values))
        with np.errstate(invalid="ignore"):  # ∞ − ∞: nothing is known
            low, high = known_percentiles(np.mean(draws, axis=0), level / 2)
        low, high = math.exp(min(low, estimate)), math.exp(max(high, estimate))
        judgement = by_interval(low, high, 1.0)
        numbers = math.exp(estimate), low, high
        return Finding(judgement, *numbers, self.quantity, runs, "; ".join(texts), bound=1.0)


def _widths(table: pl.DataFrame, narrowest: int) -> dict[Key, tuple[Cell, Cell]]:
    """Return the narrow and the wide end of every task."""
    table = table.filter(table["model.width"] >= table["task.k"])
    ends = {}
    for key, cells in cells_of(table, along="model.width", within=TASKS).items():
        known = [
            cell
            for cell in cells
            if len(cell.times) >= FEWEST and cell.every < cell.quantile() < math.inf
        ]
        wide = [cell for cell in known if cell.at >= narrowest]
        chosen = wide if len(wide) > 1 else known
        if len(chosen) > 1:
            ends[key] = chosen[0], chosen[-1]
    require(bool(ends), f"no task has two widths with known medians of {FEWEST} runs")
    return ends


def _log_ratio(over: Floats, under: Floats) -> Floats:
    return _less(np.log(over), np.log(under))


def _less(a: Floats, b: Floats) -> Floats:
    with np.errstate(invalid="ignore"):  # ∞ − ∞: nothing is known
        return np.asarray(a - b)
