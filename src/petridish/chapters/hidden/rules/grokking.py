"""HP's finite samples, where some runs grok, and its deep networks, which no layer learns alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from petridish.chapters.hidden.rules.robust import (
    binomial_at_least,
    binomial_at_most,
    mean_share,
    outcomes_of,
)
from petridish.models import MLP, Power
from petridish.rules.cells import grid, mixed
from petridish.rules.claims import Finding, Judgement, nothing
from petridish.rules.frontier import frontier_draws, frontier_index, sample_sizes
from petridish.rules.outcomes import CLASSES, with_classes
from petridish.rules.specs import where, with_specs
from petridish.statistics.estimate import student_half_width, wilson_interval
from petridish.statistics.trend import decrease_test
from petridish.training import Greedy

if TYPE_CHECKING:
    import polars as pl

    from petridish.chapters.hidden.rules.robust import Floats

DECAY = "training.weight_decay"
DRAWS = 8_000
AT_ONCE, GROKKED = CLASSES[:2]


@dataclass(frozen=True)
class _Cell:
    """What became of the runs at one sample size."""

    m: float
    runs: int
    solved: int
    grokked: int
    at_once: int


@dataclass(frozen=True)
class GrokkingBand:
    """There are sample sizes between too few and plenty at which runs grok [HP §5, Fig. B.11].

    A run groks if it is solved at least twice as late as it has fitted its sample (`with_classes`).
    A size m is in the band, at one task and weight decay, if

    - more than `least` of its runs grok (exact binomial test);
    - at the largest sample fewer grok, and more are solved at once (Fisher's exact tests);
    - at the smallest sample fewer are solved (Fisher's), and not significantly more than `least`.

    Supported if some m between the smallest and the largest meets all of it (its p-value is the
    largest of the tests'; Bonferroni over sizes, decays and tasks). Contradicted if at every size
    and decay less than `least` of the runs grok, bounds included (each at the whole level: were one
    above, it would have to slip through its own bound), though in some cell most runs are solved.
    The estimate is the share of runs that grok where the evidence is strongest. Online runs have no
    sample to fit, and are left out.
    """

    least: float = 0.2

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep over sample sizes and weight decays."""
        import polars as pl

        quantity = "share of runs that grok, at the best sample size and weight decay"
        finite = table.filter(pl.col("data.m").is_finite())
        if clash := mixed(finite, ("task", DECAY, "data.m")):
            return nothing(quantity, clash)
        if finite["fitted_at"].is_null().all():
            return nothing(quantity, "no run was asked when it had fitted its sample, or none had")
        rows = band_rows(finite)
        found = [
            (self._p(cell, cells, level), key, cell, cells)
            for key, cells in rows.items()
            for cell in cells[1:-1]
        ]
        if not found:
            return nothing(quantity, "needs three sample sizes at some weight decay")
        best, (task, decay), cell, cells = min(
            found, key=lambda each: (each[0], -each[2].grokked / each[2].runs)
        )
        everywhere = [each for row in rows.values() for each in row]
        rare = all(binomial_at_most(c.grokked, c.runs, self.least) <= level for c in everywhere)
        learned = any(binomial_at_least(c.solved, c.runs, 0.5) <= level for c in everywhere)
        judgement = Judgement.UNDECIDED
        if best * len(found) <= level:
            judgement = Judgement.SUPPORTED
        elif rare and learned:
            judgement = Judgement.CONTRADICTED
        low, high = wilson_interval(cell.grokked, cell.runs, coverage=1 - level / len(found))
        first, last = cells[0], cells[-1]
        inside = [c.m for c in cells if c.grokked >= self.least * c.runs]
        band = f"from m = {inside[0]:g} to {inside[-1]:g}" if inside else "nowhere"
        remark = (
            f"{task}, λ = {decay:g}: {first.solved} of {first.runs} solved at m = {first.m:g}, "
            f"{cell.grokked} of {cell.runs} grok at {cell.m:g}, {last.grokked} of {last.runs} at "
            f"{last.m:g} ({last.at_once} solved at once); {self.least:.0%} or more grok {band}"
        )
        estimate = cell.grokked / cell.runs
        return Finding(judgement, estimate, float(low), float(high), quantity, len(finite), remark)

    def _p(self, cell: _Cell, cells: Sequence[_Cell], level: float) -> float:
        """Give the p-value of a size's being in the band: the largest of its tests'."""
        first, last = cells[0], cells[-1]
        if binomial_at_least(first.solved, first.runs, self.least) <= level:
            return 1.0  # the smallest sample is no lower edge: runs generalise from it
        return max(
            float(binomial_at_least(cell.grokked, cell.runs, self.least)),
            decrease_test((cell.grokked, cell.runs), (last.grokked, last.runs)),
            decrease_test((last.at_once, last.runs), (cell.at_once, cell.runs)),
            decrease_test((cell.solved, cell.runs), (first.solved, first.runs)),
        )


def band_rows(table: pl.DataFrame) -> dict[tuple[str, float], list[_Cell]]:
    """Count what became of the runs, for every task and weight decay, by sample size."""
    import polars as pl

    counts = (
        with_classes(table)
        .group_by("task", DECAY, "data.m")
        .agg(
            runs=pl.len(),
            solved=(pl.col("outcome") == "SOLVED").sum(),
            grokked=(pl.col("class") == GROKKED).sum(),
            at_once=(pl.col("class") == AT_ONCE).sum(),
        )
        .sort("task", DECAY, "data.m")
    )
    rows: dict[tuple[str, float], list[_Cell]] = {}
    for task, decay, *numbers in counts.iter_rows():
        rows.setdefault((task, decay), []).append(_Cell(*numbers))
    return rows


@dataclass(frozen=True)
class DecayWidens:
    """Weight decay lets smaller samples suffice, until optimisation fails [HP App. B.3.5].

    The smallest sample at which half of the runs are solved, at the least weight decay (0, if it
    was run), over that at another one, geometric mean over the tasks; and the success at the
    largest sample, there and at the largest decay. Supported if for some decay between the least
    and the largest both hold: the ratio is above 1 (by `frontier_draws`, the runs' posterior), and
    success at the largest sample is lower at the largest decay (Fisher's exact test); the worse of
    the two counts, Bonferroni over decays. Contradicted if at no decay, the largest included, the
    ratio is above 1 with a posterior probability of more than the level: decay wins no step of the
    grid. The estimate is the ratio where the evidence is strongest. Frontiers are places on the
    grid, and one beyond it counts as one step beyond.
    """

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep over sample sizes and weight decays."""
        import polars as pl

        quantity = "smallest m at 50 % success, without decay / with the best decay"
        finite = table.filter(pl.col("data.m").is_finite())
        if clash := mixed(finite, ("task", DECAY, "data.m")):
            return nothing(quantity, clash)
        if finite[DECAY].n_unique() < 3 or finite["data.m"].n_unique() < 2:
            return nothing(quantity, "needs three weight decays and two sample sizes")
        counts = grid(finite, rows=DECAY, columns="data.m", strata=["task"]).complete()
        if not counts.strata:
            return nothing(quantity, "no task has two runs in every cell: run it to its end")
        sizes = np.log(sample_sizes(counts.columns))
        rng = np.random.default_rng(0)  # the same table gives the same verdict
        drawn = sizes[frontier_draws(counts, draws=DRAWS, rng=rng)].mean(axis=1)  # (draw, decay)
        gain = np.round(drawn[:, :1] - drawn[:, 1:], 9)  # log of the ratio, for each other decay
        wider = ((gain > 0).sum(axis=0) + 0.5) / (DRAWS + 1)
        solved, runs = counts.solved[:, :, -1].sum(axis=0), counts.runs[:, :, -1].sum(axis=0)
        end = (int(solved[-1]), int(runs[-1]))
        p = [
            max(1 - chance, decrease_test((int(s), int(n)), end))
            for chance, s, n in zip(wider[:-1], solved[1:-1], runs[1:-1], strict=True)
        ]
        places = sizes[frontier_index(counts.solved / counts.runs)].mean(axis=0)  # (decay,)
        best = min(range(len(p)), key=lambda i: (p[i], places[i + 1]))
        judgement = Judgement.UNDECIDED
        if p[best] * len(p) <= level:
            judgement = Judgement.SUPPORTED
        elif (wider <= level).all():
            judgement = Judgement.CONTRADICTED
        tail = level / len(p) / 2
        low, high = np.exp(np.quantile(gain[:, best], [tail, 1 - tail]))
        estimate = math.exp(places[0] - places[best + 1])
        names = [f"{decay:g}" for decay in counts.rows]
        remark = (
            f"best λ = {names[best + 1]}; smallest m "
            + ", ".join(
                f"{_size(m, counts.columns[-1])} at {name}"
                for m, name in zip(places, names, strict=True)
            )
            + f"; at m = {counts.columns[-1]:g}, {solved[best + 1]} of {runs[best + 1]} are solved "
            f"with it and {end[0]} of {end[1]} with λ = {names[-1]}"
        )
        n = int(counts.runs.sum())
        low, high = float(min(low, estimate)), float(max(high, estimate))
        return Finding(judgement, estimate, low, high, quantity, n, remark)


def _size(log_m: float, largest: float) -> str:
    """Write a sample size; one beyond the grid stands for all that are larger."""
    m = math.exp(log_m)
    return f"{m:.0f}" if m < 1.001 * largest else f"above {largest:g}"


def depth(model: object) -> int | None:
    """Return the number L of layers of an MLP of squares, None for other models.

    `MLP(10, (10, 1), Power(2))` has four: hidden ones of 10, 10 and 1 neurons, and the output. Its
    degree is 2^(L − 1).
    """
    if not isinstance(model, MLP) or model.activation != Power(2):
        return None
    return 2 + len(model.deeper)


def with_depth(table: pl.DataFrame) -> pl.DataFrame:
    """Keep the runs of MLPs of squares; add `depth`, and `greedy` for layerwise training.

    A diverged run has no test error; it knows nothing of the labels, and counts as ½.
    """
    import polars as pl

    named = with_specs(
        where(table, lambda spec: depth(spec.model) is not None),
        depth=lambda spec: depth(spec.model),
        greedy=lambda spec: isinstance(spec.init, Greedy),
    )
    return named.with_columns(
        depth=pl.col("depth").cast(pl.Int64),
        greedy=pl.col("greedy").cast(pl.Boolean),
        solved=(pl.col("outcome") == "SOLVED").cast(pl.Float64),
        test_error=pl.col("test_error").fill_nan(None).fill_null(0.5),
    )


@dataclass(frozen=True)
class _Group:
    """The runs of one depth and k, over all n: cells (model and task) by seeds."""

    depth: int
    k: int
    solved: Floats
    error: Floats

    @property
    def name(self) -> str:
        return f"L = {self.depth}, k = {self.k}"

    @property
    def n(self) -> int:
        return int((~np.isnan(self.solved)).sum())

    def success(self, tail: float) -> tuple[float, float, float]:
        """Give the share solved, with bounds each of which misses with probability `tail`."""
        return mean_share(self.solved, coverage=1 - 2 * tail)

    def mean_error(self, tail: float) -> tuple[float, float, float]:
        """Give the mean test error with Student's bounds over seeds, each missing at `tail`."""
        means = np.nanmean(self.error, axis=0)
        estimate, half = float(means.mean()), student_half_width(means, 1 - 2 * tail)
        return estimate, estimate - half, estimate + half


def _groups(runs: pl.DataFrame) -> list[_Group]:
    parts = runs.partition_by("depth", "task.k", as_dict=True)
    return [
        _Group(
            layers,
            k,
            outcomes_of(parts[layers, k], ("model", "task"), "solved"),
            outcomes_of(parts[layers, k], ("model", "task"), "test_error"),
        )
        for layers, k in sorted(parts)
    ]


def _listed() -> dict[int, tuple[int, ...]]:
    return {3: (1, 2, 3, 4), 4: (1, 2, 3, 4, 5, 6)}


@dataclass(frozen=True)
class DepthDecides:
    """L layers of squares learn the parities of degree up to 2^(L−1), and no other [HP App. B.3.7].

    Trained end to end. For every depth and k that the source lists, more than half of the runs have
    to be solved, over all n; for every k > 2^(L−1), less than `rare`, with a mean test error above
    `chance`. Supported if all of these hold, bounds included (each at the whole level: were one not
    to hold, it would have to slip through its own bound), with every listed pair run and at least
    one k beyond. Contradicted if a listed pair is solved in less than half of its runs, or one
    beyond in more than `rare`, bounds included (the level split over all pairs). That a polynomial
    of lower degree cannot *be* the parity does not mean that its sign cannot resemble it: an error
    below `chance` makes the claim undecided, not false. The estimate is the least share solved of
    the listed pairs. Intervals as in `mean_share`.
    """

    listed: Mapping[int, Sequence[int]] = field(default_factory=_listed)
    rare: float = 0.2
    chance: float = 0.4

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep over depths and k."""
        import polars as pl

        quantity = "least share solved, over the depths and k that the source lists"
        runs = with_depth(table).filter(~pl.col("greedy"))
        if clash := mixed(runs, ("model", "task")):
            return nothing(quantity, clash)
        groups = _groups(runs)
        within = [g for g in groups if g.k in self.listed.get(g.depth, ())]
        beyond = [g for g in groups if g.k > 2 ** (g.depth - 1)]
        if not within:
            return nothing(quantity, "no run of an MLP of squares that the source lists")
        wanted = {(layers, k) for layers, ks in self.listed.items() for k in ks}
        absent = sorted(wanted - {(g.depth, g.k) for g in within})
        share = level / (len(within) + len(beyond))
        unsolved = [g.name for g in within if g.success(share)[2] < 0.5]
        learned = [g.name for g in beyond if g.success(share)[1] > self.rare]
        judgement = Judgement.UNDECIDED
        if unsolved or learned:
            judgement = Judgement.CONTRADICTED
        elif (
            not absent
            and beyond
            and all(g.success(level)[1] > 0.5 for g in within)
            and all(g.success(level)[2] < self.rare for g in beyond)
            and all(g.mean_error(level)[1] > self.chance for g in beyond)
        ):
            judgement = Judgement.SUPPORTED
        worst = min(within, key=lambda g: g.success(level)[0])
        parts = [f"at {worst.name}"]
        if beyond:
            most = max(beyond, key=lambda g: g.success(level)[0])
            nearest = min(beyond, key=lambda g: g.mean_error(level)[0])
            parts += [
                f"beyond 2^(L−1), at most {most.success(level)[0]:.0%} solved ({most.name}), and "
                f"the least mean error is {nearest.mean_error(level)[0]:.2f} ({nearest.name})"
            ]
        if unsolved:
            parts.append(f"not solved: {'; '.join(unsolved)}")
        if learned:
            parts.append(f"solved beyond 2^(L−1): {'; '.join(learned)}")
        if absent:
            parts.append("not run: " + "; ".join(f"L = {a}, k = {k}" for a, k in absent))
        n = sum(g.n for g in (*within, *beyond))
        return Finding(judgement, *worst.success(level), quantity, n, "; ".join(parts))


@dataclass(frozen=True)
class GreedyStaysAtChance:
    """Layer by layer, squares learn nothing of a parity that they learn end to end [HP App. B.3.7].

    For every depth and k with 2 < k ≤ 2^(L−1) that was run both ways, on equal models and tasks:
    the mean test error of the greedy runs, and the share of the others that is solved. Supported if
    every mean error is above `chance` and more than half of the others are solved, bounds included
    (each at the whole level); contradicted if a mean error is below `chance`, bounds included (the
    level split over all pairs). The estimate is the least mean error, with Student's bounds over
    seeds; a diverged run has none and counts as 0, against the claim. A single layer of squares can
    represent parities of one and two bits: they prove nothing.
    """

    chance: float = 0.4

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from greedy runs and their equals end to end."""
        import polars as pl

        quantity = "least mean test error of greedy layerwise training"
        lost = pl.when(pl.col("outcome") == "DIVERGED").then(0.0).otherwise(pl.col("test_error"))
        runs = with_depth(table.with_columns(test_error=lost)).filter(
            (pl.col("task.k") > 2) & (pl.col("task.k") <= 2 ** (pl.col("depth") - 1))
        )
        if clash := mixed(runs, ("model", "task", "greedy")):
            return nothing(quantity, clash)
        greedy, whole = runs.filter("greedy"), runs.filter(~pl.col("greedy"))
        both = (
            greedy.select("model", "task")
            .unique()
            .join(whole.select("model", "task").unique(), on=["model", "task"])
        )
        if both.is_empty():
            return nothing(quantity, "no model and task with k > 2 was trained both ways")
        sides = [
            _groups(side.join(both, on=["model", "task"], how="semi")) for side in (greedy, whole)
        ]
        pairs = list(zip(*sides, strict=True))
        share = level / len(pairs)
        judgement = Judgement.UNDECIDED
        if any(layerwise.mean_error(share)[2] < self.chance for layerwise, _ in pairs):
            judgement = Judgement.CONTRADICTED
        elif all(
            layerwise.mean_error(level)[1] > self.chance and together.success(level)[1] > 0.5
            for layerwise, together in pairs
        ):
            judgement = Judgement.SUPPORTED
        worst = min((layerwise for layerwise, _ in pairs), key=lambda g: g.mean_error(level)[0])
        weakest = min((together for _, together in pairs), key=lambda g: g.success(level)[0])
        solved = sum(float(np.nansum(layerwise.solved)) for layerwise, _ in pairs)
        n = sum(layerwise.n + together.n for layerwise, together in pairs)
        remark = (
            f"at {worst.name}; {solved:.0f} of {sum(g.n for g, _ in pairs)} greedy runs solved; "
            f"end to end at least {weakest.success(level)[0]:.0%} ({weakest.name})"
        )
        estimate, low, high = worst.mean_error(level)
        return Finding(judgement, estimate, low, high, quantity, n, remark)
