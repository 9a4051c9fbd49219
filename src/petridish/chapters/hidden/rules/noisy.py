"""Learning from noisy labels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from petridish.chapters.hidden.rules.table_rule import TableRule, decide, refuse_mixed
from petridish.errors import require
from petridish.rules.claims import Finding, Reads
from petridish.statistics.intervals import exact_interval

if TYPE_CHECKING:
    import polars as pl

NOISE, BATCH = "data.label_noise", "training.batch_size"


@dataclass(frozen=True)
class ConvergesUnderNoise(TableRule, Reads):
    """Networks solve the parity from labels flipped with any probability p < ½ [HP B.3.6].

    A run is solved when it reaches its target error on the clean held-out sample. For each p the
    share of runs solved is taken at the batch size that solves most. Supported if for every p it
    is above ½ at some batch size, at the level divided by the number of batch sizes, among which
    one may choose; contradicted if for some p it is below ½ at all of them, at the level divided by
    the number of p. Bounds are exact [Clopper & Pearson 1934]: Wilson's would say more of five runs
    solved out of five than they can. The estimate is the least of the best shares. What is not
    solved within its budget may be later: the remark says how far such runs came.
    """

    quantity = "least share of runs solved over the noise levels, at the best batch size"
    columns = ("curve.test_error",)

    def _judge(self, table: pl.DataFrame, level: float) -> Finding:
        table = table.filter(table[NOISE] < 0.5)
        require(len(table) > 0, "no run with labels flipped less often than ½")
        refuse_mixed(table, (NOISE, BATCH))
        cells: dict[float, dict[Any, tuple[int, int]]] = {}  # (solved, runs) by p and batch size
        for (p, batch), runs in sorted(table.partition_by(NOISE, BATCH, as_dict=True).items()):
            solved = int((runs["outcome"] == "SOLVED").sum())
            cells.setdefault(p, {})[batch] = (solved, len(runs))
        best = {
            p: max(row, key=lambda b: (row[b][0] / row[b][1], row[b][1]))
            for p, row in cells.items()
        }
        share = {p: row[best[p]][0] / row[best[p]][1] for p, row in cells.items()}
        # «Some batch size» is a choice among several, «some p» too; «every» and «all» are not.
        bounds = {
            p: {b: exact_interval(*cell, coverage=1 - level / len(row)) for b, cell in row.items()}
            for p, row in cells.items()
        }
        against = {
            p: {
                b: exact_interval(*cell, coverage=1 - level / len(cells)) for b, cell in row.items()
            }
            for p, row in cells.items()
        }
        solving = [p for p in cells if any(low > 0.5 for low, _ in bounds[p].values())]
        failing = [p for p in cells if all(high < 0.5 for _, high in against[p].values())]
        judgement = decide(contradicted=failing, supported=len(solving) == len(cells))
        worst = min(failing or share, key=lambda p: share[p])
        low, high = (against if failing else bounds)[worst][best[worst]]
        remarks = [f"at p = {worst:g}, B = {best[worst]}"]
        remarks.append(
            "solved: " + ", ".join(f"p = {p:g} {share[p]:.0%} (B = {best[p]})" for p in cells)
        )
        for p in cells:
            if p not in solving:
                runs = table.filter(table[NOISE] == p)
                clear = "not solved" if p in failing else "open"
                remarks.append(
                    f"p = {p:g} {clear}: at most {max(runs['training.steps']):,} steps, smallest "
                    f"test error {_smallest_error(runs):.3f}"
                )
        ends = low, high, self.quantity
        return Finding(judgement, share[worst], *ends, len(table), "; ".join(remarks))


def _smallest_error(runs: pl.DataFrame) -> float:
    """Return the smallest test error that any of these runs had at an evaluation or its end."""
    ends = runs["test_error"].to_numpy()
    found = [float(np.nanmin(ends))] if np.any(~np.isnan(ends)) else [math.nan]
    if "curve.test_error" in runs.columns:
        found += [float(c.min()) for c in runs["curve.test_error"] if c is not None]
    return float(np.nanmin(found))
