"""Learning from noisy labels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from petridish.rules.cells import mixed
from petridish.rules.claims import Finding, Judgement, Reads, nothing
from petridish.statistics.estimate import exact_interval

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ConvergesUnderNoise(Reads):
    """Networks solve the parity from labels flipped with any probability p < ½ [HP B.3.6].

    A run is solved when it reaches its target error on the clean held-out sample. For each p the
    share of runs solved is taken at the batch size that solves most. Supported if for every p it
    is above ½ at some batch size, at the level divided by the number of batch sizes, among which
    one may choose; contradicted if for some p it is below ½ at all of them, at the level divided by
    the number of p. Bounds are exact [Clopper & Pearson 1934]: Wilson's would say more of five runs
    solved out of five than they can. The estimate is the least of the best shares. What is not
    solved within its budget may be later: the remark says how far such runs came.
    """

    columns = ("curve.test_error",)

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from runs at several noise levels and batch sizes."""
        import polars as pl

        quantity = "least share of runs solved over the noise levels, at the best batch size"
        table = table.filter(pl.col("data.label_noise") < 0.5)
        if not len(table):
            return nothing(quantity, "no run with labels flipped less often than ½")
        if clash := mixed(table, ("data.label_noise", "training.batch_size")):
            return nothing(quantity, clash)
        cells: dict[float, dict[Any, tuple[int, int]]] = {}
        for (p, batch), runs in sorted(
            table.partition_by("data.label_noise", "training.batch_size", as_dict=True).items()
        ):
            solved = int((runs["outcome"] == "SOLVED").sum())
            cells.setdefault(p, {})[batch] = (solved, len(runs))
        # «Some batch size» is a choice among several, «some p» too; «every» and «all» are not.
        best = {
            p: max(row, key=lambda b: (row[b][0] / row[b][1], row[b][1]))
            for p, row in cells.items()
        }
        bounds = {
            p: exact_interval(*row[best[p]], coverage=1 - level / len(row))
            for p, row in cells.items()
        }
        solving = [
            p
            for p, row in cells.items()
            if any(exact_interval(*c, coverage=1 - level / len(row))[0] > 0.5 for c in row.values())
        ]
        failing = [
            p
            for p, row in cells.items()
            if all(
                exact_interval(*c, coverage=1 - level / len(cells))[1] < 0.5 for c in row.values()
            )
        ]
        share = {p: row[best[p]][0] / row[best[p]][1] for p, row in cells.items()}
        judgement = Judgement.SUPPORTED if len(solving) == len(cells) else Judgement.UNDECIDED
        if failing:
            judgement = Judgement.CONTRADICTED
        worst = min(failing or share, key=lambda p: share[p])
        low, high = bounds[worst]
        if worst in failing:
            low, high = exact_interval(*cells[worst][best[worst]], coverage=1 - level / len(cells))
        remarks = [f"at p = {worst:g}, B = {best[worst]}"]
        remarks.append(
            "solved: " + ", ".join(f"p = {p:g} {share[p]:.0%} (B = {best[p]})" for p in cells)
        )
        for p in cells:
            if p not in solving:
                runs = table.filter(pl.col("data.label_noise") == p)
                budget = int(runs["training.steps"].max())  # type: ignore[arg-type] # a whole column
                clear = "not solved" if p in failing else "open"
                remarks.append(
                    f"p = {p:g} {clear}: at most {budget:,} steps, smallest "
                    f"test error {_smallest_error(runs):.3f}"
                )
        return Finding(judgement, share[worst], low, high, quantity, len(table), "; ".join(remarks))


def _smallest_error(runs: pl.DataFrame) -> float:
    """Give the smallest test error that any of these runs had at a look, or at its end."""
    ends = runs["test_error"].to_numpy()
    found = [float(np.nanmin(ends))] if np.any(~np.isnan(ends)) else [math.nan]
    if "curve.test_error" in runs.columns:
        found += [float(c.min()) for c in runs["curve.test_error"] if c is not None]
    return float(np.nanmin(found))
