"""Rules about Fourier gaps: of random neurons, and along the path of SGD [HP App. B.3.1]."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from petridish.rules.claims import Finding, Simulated, by_interval, nothing
from petridish.rules.measures import Measure
from petridish.statistics.intervals import wilson_interval

if TYPE_CHECKING:
    import polars as pl

    from petridish.theory.hidden.fourier_gaps import GapActivation, GapWeights

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class GapComparable(Simulated):
    """A random neuron's gap is comparable to majority's with non-negligible probability.

    Simulated here, from a fixed seed, by `trials` neurons in every case: no run of the sweep takes
    part. *Comparable* means at least `share` of the reference, the gap of a ReLU gradient at
    weights ±1; *non-negligible* means with a probability above `negligible`. The estimate is the
    least probability over all activations, weights and even k, with Wilson's interval at the
    level's share for each case. Supported if every case is above `negligible`, contradicted if one
    is below.

    For odd k majority has no gap. There a ReLU has a bias, drawn like its weights, and the
    reference one too (`reference_gap`); as the sentence does not speak of these, they are told in
    the remark, and decide nothing.
    """

    n: int = 15  # bits; a ReLU's gap costs 2^n operations
    ks: Sequence[int] = (2, 3, 4)
    activations: Sequence[GapActivation] = ("relu", "sine")
    weights: Sequence[GapWeights] = ("uniform", "gaussian", "sign")
    trials: int = 1000
    share: float = 0.5
    negligible: float = 0.05

    def simulate(self, level: float) -> Finding:
        """Judge from simulated neurons."""
        from petridish.theory.hidden.fourier_gaps import random_gaps, reference_gap

        quantity = f"P[Γ ≥ {self.share:g} Γ_majority] of a random neuron at n = {self.n}, the least"
        counts: dict[tuple[int, str, str], int] = {}
        rng = np.random.default_rng(0)  # the same rule gives the same verdict
        for k in self.ks:
            least = self.share * float(reference_gap(self.n, k)) * (1 - 1e-9)  # but for rounding
            for activation in self.activations:
                for weights in self.weights:
                    gaps = random_gaps(activation, weights, self.n, k, trials=self.trials, rng=rng)
                    counts[k, activation, weights] = int((gaps >= least).sum())
        even = {case: count for case, count in counts.items() if case[0] % 2 == 0}
        if not even:
            return nothing(quantity, "majority has a gap for even k alone: name one")
        low, high = wilson_interval(
            np.array(list(even.values())), self.trials, coverage=1 - level / len(even)
        )
        worst = min(even, key=lambda case: even[case])
        named = "k = {} {}/{}".format
        remark = f"at {named(*worst)}, of {len(even)} cases"
        if odd := {case: count for case, count in counts.items() if case[0] % 2}:
            shares = ", ".join(f"{named(*case)} {odd[case] / self.trials:.0%}" for case in odd)
            remark += f"; against a majority with a bias: {shares}"
        ends = float(low.min()), float(high.min())
        judgement, n = by_interval(*ends, self.negligible), self.trials * len(even)
        return Finding(judgement, even[worst] / self.trials, *ends, quantity, n, remark)


@dataclass(frozen=True)
class GapGrowth(Measure):
    """A run's Fourier gap at the end of its plateau, over its gap at step 0.

    The plateau ends at the last evaluation before the test error first falls below `until` (0.45
    reads the gap while the error is still at chance, 0.25 half-way down); for a run that never gets
    there, at its last one, so that no run is dropped. (The largest gap along the path would be no
    witness: the largest of many is above the first whether or not there is a trend.) A gap that was
    not positive and becomes larger has grown without limit, ∞; one that was positive and no longer
    is, or that was not and becomes smaller, is lost, 0. NaN for a run without a gap: the instrument
    speaks of parities.
    """

    columns = ("curve.test_error", "curve.fourier_gap")

    until: float = 0.45

    @property
    def label(self) -> str:
        """What is measured, in words."""
        return f"Fourier gap while the error is above {self.until:g} / at the start"

    def of(self, table: pl.DataFrame) -> Floats:
        """Return the number of every run."""
        return np.array([self._growth(*run) for run in table.select(self.columns).iter_rows()])

    def _growth(self, errors: list[float] | None, gaps: list[float] | None) -> float:
        if errors is None or gaps is None or math.isnan(gaps[0]):
            return math.nan
        left = next((i for i, error in enumerate(errors) if error < self.until), len(errors))
        start, end = gaps[0], [gap for gap in gaps[: max(left, 1)] if not math.isnan(gap)][-1]
        if end > 0 and start > 0:
            return end / start
        return 1.0 if end == start else math.inf if end > start else 0.0


@dataclass(frozen=True)
class GapAtStart(Measure):
    """A run's Fourier gap at step 0, over that of majority [HP Lemma B.2, Fig. B.8 right].

    NaN for odd k, where majority has no gap, and for a run without one: the instrument speaks of
    parities.
    """

    columns = ("task.n", "task.k", "curve.fourier_gap")
    label = "Fourier gap at the start / majority's"

    def of(self, table: pl.DataFrame) -> Floats:
        """Return the number of every run."""
        from petridish.theory.hidden.fourier_gaps import majority_gap

        return np.array(
            [
                gaps[0] / float(majority_gap(n, k)) if gaps and k % 2 == 0 else math.nan
                for n, k, gaps in table.select(self.columns).iter_rows()
            ]
        )
