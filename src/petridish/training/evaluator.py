"""One evaluation of a stack of runs: thresholds first, then whatever is kept.

An engine takes steps; this measures. A sample is read in pieces of one size. Whether a count is low
enough is found on a growing part of the sample (`training.screen`), everything else on the whole.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from petridish.training.data import sample_size
from petridish.training.metrics import Below, Metric, Threshold
from petridish.training.networks import Network
from petridish.training.pools import HeldSource, Pool, TrainingSource
from petridish.training.returned import each_of
from petridish.training.screen import CHUNK, allowed_errors, stages
from petridish.training.spec import RunSpec

Values = dict[str, float]


class Source(Protocol):
    """A sample of every run of a stack."""

    pool: Pool

    def places(self, rows: Sequence[int], start: int, stop: int) -> Tensor:
        """Return the places of the examples start … stop − 1, shape (row, example)."""


@dataclass(frozen=True)
class Standing:
    """The runs of a stack as they stand: their numbers in the whole stack, and their weights."""

    specs: Sequence[RunSpec]
    rows: Sequence[int]
    weights: Sequence[Tensor]


class Evaluator:
    """Measures the runs of a stack; with `pairs` a run left alone is computed beside itself."""

    def __init__(
        self, specs: Sequence[RunSpec], network: Network, train: TrainingSource, *, pairs: bool
    ) -> None:
        self.network, self.pairs = network, pairs
        self.domain = specs[0].domain
        self.sources: dict[str, Source] = {"train": train}
        for name in dict.fromkeys(["test", *(metric.on for metric in specs[0].metrics)]):
            if name != "train":
                self.sources[name] = HeldSource(specs, name)

    def evaluate(
        self, now: Standing, thresholds: Sequence[tuple[Threshold, Sequence[int]]]
    ) -> tuple[list[set[int]], list[Values]]:
        """Find the runs that pass each threshold, and measure all metrics if curves are kept.

        Parameters
        ----------
        thresholds : sequence of (Threshold, runs)
            What is asked of which runs of the stack.

        Returns
        -------
        passed : list of set of int
            The runs that pass each threshold.
        values : list of dict
            The metrics of each run; empty without curves.
        """
        first = now.specs[0]
        if first.evaluation.curves:
            values = self.measure(now, range(len(now.specs)), first.curve_metrics)
            passed = [
                {run for run in runs if self._holds(threshold, values[run], now.specs[run])}
                for threshold, runs in thresholds
            ]
            return passed, values
        return [self._passing(now, threshold, runs) for threshold, runs in thresholds], []

    def measure(
        self, now: Standing, runs: Sequence[int], metrics: Sequence[Metric]
    ) -> list[Values]:
        """Measure metrics of some runs on whole samples."""
        found: list[Values] = [{} for _ in runs]
        for name in dict.fromkeys(metric.on for metric in metrics):
            asked = [metric for metric in metrics if metric.on == name]
            for size, places in _by_size(now, runs, name).items():
                some = [runs[place] for place in places]
                sums, counts = self._totals(now, some, name, asked, 0, size)
                for metric, total, count in zip(asked, sums, counts, strict=True):
                    for place, value, n in zip(places, total, count, strict=True):
                        found[place][metric.column] = value / n if n else math.nan
        return found

    def _is_count(self, metric: Metric) -> bool:
        return self.sources[metric.on].pool.complete and metric.counts(self.domain)

    def _holds(self, threshold: Threshold, values: Values, spec: RunSpec) -> bool:
        """Return whether a run whose metrics are known passes."""
        metric = threshold.metric
        value = values[metric.column]
        if not self._is_count(metric):
            return threshold.holds(value)
        size = sample_size(spec, metric.on)
        return threshold.holds_count(round(value * size), size)

    def _passing(self, now: Standing, threshold: Threshold, runs: Sequence[int]) -> set[int]:
        """Find the runs that pass a threshold, looking at no more of the sample than is needed."""
        if not runs:
            return set()
        metric = threshold.metric
        if not (isinstance(threshold, Below) and self._is_count(metric)):
            values = self.measure(now, runs, [metric])
            known = zip(runs, values, strict=True)
            return {run for run, found in known if self._holds(threshold, found, now.specs[run])}
        passed: set[int] = set()
        for size, places in _by_size(now, runs, metric.on).items():
            allowed = allowed_errors(size, threshold.value, strict=threshold.strict)
            wrong = {runs[place]: 0.0 for place in places}
            for stage in stages(size, allowed):
                waiting = list(wrong)
                sums, _ = self._totals(now, waiting, metric.on, [metric], stage.start, stage.stop)
                wrong = {
                    run: errors + more
                    for (run, errors), more in zip(wrong.items(), sums[0], strict=True)
                    if errors + more <= stage.limit
                }
                if not wrong:
                    break
            passed |= wrong.keys()
        return passed

    def _totals(
        self,
        now: Standing,
        runs: Sequence[int],
        name: str,
        metrics: Sequence[Metric],
        start: int,
        stop: int,
    ) -> tuple[list[list[float]], list[list[int]]]:
        """Add up metrics over the examples start … stop − 1: sums and counts, (metric, run)."""
        source = self.sources[name]
        places = source.places([now.rows[run] for run in runs], start, stop)
        lonely = len(runs) == 1 and self.pairs
        chosen = torch.tensor([*runs] * 2 if lonely else [*runs])
        places = places.repeat(2, 1) if lonely else places
        # Pieces of one size, the last filled up: a sum's rounding may depend on its shape.
        n_examples = places.shape[1]
        whole = -(-n_examples // CHUNK) * CHUNK
        places = places[:, torch.arange(whole) % n_examples]
        counted = torch.arange(whole) < n_examples
        everyone = len(runs) == len(now.specs)
        weights = now.weights if everyone else [weight[chosen] for weight in now.weights]
        sums = torch.zeros(len(metrics), len(chosen), dtype=torch.float64)
        counts = torch.zeros(len(metrics), len(chosen), dtype=torch.int64)
        with torch.no_grad():
            for first in range(0, whole, CHUNK):
                batch = source.pool.batch(places[:, first : first + CHUNK])
                outputs = self.network.test(weights, batch.x, None if everyone else chosen)
                here = counted[first : first + CHUNK]
                broken: Tensor | None = None
                for place, metric in enumerate(metrics):
                    each = each_of(metric, outputs, batch.labels, batch.facts)  # (run, example)
                    if self._is_count(metric):
                        sums[place] += (each * here).sum(dim=1)
                        counts[place] += int(here.sum())
                        continue
                    if broken is None:
                        broken = outputs.flatten(2).isnan().any(dim=2)
                    # NaN leaves an example out, unless it comes from outputs that are no numbers.
                    counts_here = here & (broken | ~each.isnan())
                    sums[place] += each.double().where(counts_here, 0.0).sum(dim=1)
                    counts[place] += counts_here.sum(dim=1)
        return sums[:, : len(runs)].tolist(), counts[:, : len(runs)].tolist()


def _by_size(now: Standing, runs: Sequence[int], name: str) -> dict[int, list[int]]:
    """Group places in `runs` by the sizes of their samples: training samples may differ."""
    groups: dict[int, list[int]] = {}
    for place, run in enumerate(runs):
        groups.setdefault(sample_size(now.specs[run], name), []).append(place)
    return groups
