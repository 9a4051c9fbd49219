"""One evaluation of a stack of runs: thresholds, then the metrics that are kept.

Engines take steps; the evaluator measures, in chunks of one size. Whether a count is low enough is
decided on a growing part of the sample (`training.screen`), everything else on the whole sample.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from petridish.training.data import sample_size
from petridish.training.devices import CPU, Device, on_host, power_of_two
from petridish.training.metrics import Below, Metric, Threshold
from petridish.training.networks import Network, activations, made_on
from petridish.training.pools import HeldSource, Pool, TrainingSource
from petridish.training.screen import CHUNK, allowed_errors, stages
from petridish.training.spec import RunSpec
from petridish.training.user_code_checks import each_of
from petridish.values import has_users

Values = dict[str, float]
CHUNK_NUMBERS = 2**18  # of inputs, in a chunk of outputs that do not depend on what is beside them
CHUNK_BYTES = 2**28  # of what one forward pass of an evaluation holds on an accelerator


class Source(Protocol):
    """A sample of every run of a stack."""

    pool: Pool

    def places(self, rows: Sequence[int], start: int, stop: int) -> Tensor:
        """Return the places of the examples start … stop − 1, shape (row, example)."""


@dataclass(frozen=True)
class StackState:
    """The runs still in a stack: their specs, their rows in the first stack, their weights."""

    specs: Sequence[RunSpec]
    rows: Sequence[int]
    weights: Sequence[Tensor]


class Evaluator:
    """Measures the runs of a stack; with `pairs` a single run is computed twice, side by side."""

    def __init__(
        self,
        specs: Sequence[RunSpec],
        network: Network,
        train: TrainingSource,
        *,
        pairs: bool,
        device: Device = CPU,
    ) -> None:
        self.network, self.pairs, self.device = network, pairs, device
        self.chunk = CHUNK if device.host else device_chunk(specs, device)
        self.domain = specs[0].domain
        self.large_chunk = max(1, CHUNK_NUMBERS // self.domain.n_inputs)
        self.sources: dict[str, Source] = {"train": train}
        for name in dict.fromkeys(["test", *(metric.on for metric in specs[0].metrics)]):
            if name != "train":
                self.sources[name] = HeldSource(specs, name, device)

    def evaluate(
        self, now: StackState, thresholds: Sequence[tuple[Threshold, Sequence[int]]]
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
        self, now: StackState, runs: Sequence[int], metrics: Sequence[Metric]
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

    def _passing(self, now: StackState, threshold: Threshold, runs: Sequence[int]) -> set[int]:
        """Find the runs that pass a threshold, reading no more of the sample than needed."""
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
        now: StackState,
        runs: Sequence[int],
        name: str,
        metrics: Sequence[Metric],
        start: int,
        stop: int,
    ) -> tuple[list[list[float]], list[list[int]]]:
        """Add up metrics over the examples start … stop − 1: sums and counts, (metric, run)."""
        sums, counts = self.sums(now, runs, name, metrics, start, stop)
        return on_host(sums[:, : len(runs)]).tolist(), on_host(counts[:, : len(runs)]).tolist()

    def sums(
        self,
        now: StackState,
        runs: Sequence[int],
        name: str,
        metrics: Sequence[Metric],
        start: int,
        stop: int,
    ) -> tuple[Tensor, Tensor]:
        """Add up metrics as `_totals` does, and leave the sums where the stack lies."""
        source = self.sources[name]
        places = source.places([now.rows[run] for run in runs], start, stop)
        lonely = len(runs) == 1 and self.pairs
        n_examples = stop - start
        where = self.device.name
        chosen = torch.tensor([*runs] * 2 if lonely else [*runs], device=where)
        places = places.repeat(2, 1) if lonely else places
        if self.network.by_example:
            chunk, whole = self.large_chunk, n_examples
        else:
            # Chunks of one size, the last one padded: a sum's rounding may depend on its shape.
            chunk = min(self.chunk, -(-n_examples // CHUNK) * CHUNK)
            whole = -(-n_examples // chunk) * chunk
        order = torch.arange(whole, device=where)
        places = places if whole == n_examples else places[:, order % n_examples]
        counted = order < n_examples
        # Only a user's may make tensors without saying where.
        theirs = [self.device if has_users(metric) else CPU for metric in metrics]
        everyone = len(runs) == len(now.specs)
        weights = now.weights if everyone else [weight[chosen] for weight in now.weights]
        sums = torch.zeros(len(metrics), len(chosen), dtype=self.device.sums, device=where)
        counts = torch.zeros(len(metrics), len(chosen), dtype=torch.int64, device=where)
        last = all(metric.reads_last for metric in metrics)
        test = self.network.test_last if last else self.network.test
        with torch.no_grad():
            for first in range(0, whole, chunk):
                some = places[:, first : first + chunk]
                if self.network.by_example and len(chosen) == 1:
                    start = int(some[0, 0])
                    batch = source.pool.between(start, start + some.shape[1])
                else:
                    batch = source.pool.batch(some)
                outputs = test(weights, batch.x, None if everyone else chosen)
                here = counted[first : first + chunk]
                broken: Tensor | None = None
                for place, metric in enumerate(metrics):
                    with made_on(theirs[place]):
                        each = each_of(metric, outputs, batch.labels, batch.facts)  # (run, example)
                    if self._is_count(metric):
                        sums[place] += (each * here).sum(dim=1)
                        counts[place] += min(chunk, n_examples - first)
                        continue
                    if broken is None:
                        broken = outputs.flatten(2).isnan().any(dim=2)
                    # NaN leaves an example out, unless the outputs themselves are NaN.
                    counts_here = here & (broken | ~each.isnan())
                    sums[place] += each.to(self.device.sums).where(counts_here, 0.0).sum(dim=1)
                    counts[place] += counts_here.sum(dim=1)
        return sums, counts


def device_chunk(specs: Sequence[RunSpec], device: Device) -> int:
    """Return the examples of one forward pass on an accelerator: as many as memory allows.

    A power of two from `CHUNK` up to 64 times that.
    """
    spec = specs[0]
    number = 8 if spec.training.precision == "float64" else 4
    each = number * len(specs) * (spec.domain.n_inputs + 2 * activations(spec))
    return min(64 * CHUNK, max(CHUNK, power_of_two(CHUNK_BYTES / each)))


def _by_size(now: StackState, runs: Sequence[int], name: str) -> dict[int, list[int]]:
    """Group indices into `runs` by sample size: training samples may differ in size."""
    groups: dict[int, list[int]] = {}
    for place, run in enumerate(runs):
        groups.setdefault(sample_size(now.specs[run], name), []).append(place)
    return groups
