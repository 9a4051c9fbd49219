"""Rules about Fourier gaps: of random neurons, and along the path of SGD [HP App. B.3.1]."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from petridish.rules.cells import mixed
from petridish.rules.claims import Finding, Reads, Simulated, by_interval, nothing
from petridish.statistics.estimate import median_interval, wilson_interval

if TYPE_CHECKING:
    import polars as pl

    from petridish.theory.hidden.fourier_gaps import GapActivation, GapWeights

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class GapComparable(Simulated):
    """A random neuron's gap is comparable to majority's with non-negligible probability.

    Simulated here, from a fixed seed: no run of the sweep takes part. *Comparable* means at least
    `share` of the reference, the gap of a ReLU gradient at weights ±1; *non-negligible* means with
    a probability above `negligible`. The estimate is the least probability over all activations,
    weights and even k, with Wilson's interval at the level's share for each case. Supported if
    every case is above `negligible`, contradicted if one is below.

    For odd k majority has no gap. There a ReLU has a bias, drawn like its weights, and the
    reference one too (`reference_gap`); as the sentence does not speak of these, they are told in
    the remark, and decide nothing.

    Attributes
    ----------
    n : int
        Bits; a ReLU's gap costs 2^n operations.
    ks : sequence of int
        Degrees of the parity.
    trials : int
        Neurons drawn in every case.
    """

    n: int = 15
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
        remark = f"at {_case(worst)}, of {len(even)} cases"
        if odd := {case: count for case, count in counts.items() if case[0] % 2}:
            shares = ", ".join(f"{_case(case)} {odd[case] / self.trials:.0%}" for case in odd)
            remark += f"; against a majority with a bias: {shares}"
        return Finding(
            by_interval(float(low.min()), float(high.min()), self.negligible),
            even[worst] / self.trials,
            float(low.min()),
            float(high.min()),
            quantity,
            self.trials * len(even),
            remark,
        )


def _case(case: tuple[int, str, str]) -> str:
    k, activation, weights = case
    return f"k = {k} {activation}/{weights}"


@dataclass(frozen=True)
class GapGrows(Reads):
    """The Fourier gap is larger at the end of a run's plateau than at its start.

    A run's plateau ends at its last look before the test error first falls below `until`; for a run
    that never gets there, at its last look, so that no run is dropped. The gap there is set against
    the run's own gap at step 0. (Its largest value along the path would be no witness: the largest
    of many is above the first whether or not there is a trend. The remark tells it.)

    The estimate is the median ratio over the runs of a stratum, with the distribution-free interval
    between two order statistics. A gap that was not positive and becomes larger counts as grown
    without limit; one that was positive and no longer is, or that was not and becomes smaller, as
    lost. Supported if the interval lies above 1 in every stratum, contradicted if it lies below 1
    in one, each stratum at its share of the level; the numbers are those of the stratum that speaks
    most against the claim.

    Attributes
    ----------
    until : float
        0.45 reads the gap while the error is still at chance, 0.25 half-way down.
    within : tuple of str
        Columns that tell strata apart; within one, runs differ in their seed alone.
    """

    columns = ("curve.test_error", "curve.fourier_gap")

    until: float = 0.45
    within: tuple[str, ...] = ("task", "model")

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from runs that kept the instrument `fourier_gap`."""
        import polars as pl

        quantity = f"Fourier gap while the error is above {self.until:g} / at the start, median"
        name = "curve.fourier_gap"
        if name not in table.columns or table[name].is_null().all():
            return nothing(quantity, "these runs kept no fourier_gap: name it in the instruments")
        kept = table.filter(pl.col(name).list.first().is_not_nan())
        if kept.is_empty():
            return nothing(quantity, "no run has a gap: the instrument speaks of parities")
        if clash := mixed(kept, self.within):
            return nothing(quantity, clash)
        strata: dict[tuple[Any, ...], list[tuple[float, float]]] = {}
        columns = [*self.within, "curve.test_error", name]
        for *key, errors, gaps in kept.select(columns).iter_rows():
            strata.setdefault(tuple(key), []).append(self._growth(errors, gaps))
        share = level / len(strata)
        found = {
            stratum: median_ratio(np.array([end for end, _ in runs]), share)
            for stratum, runs in strata.items()
        }
        # (estimate, low, high): a stratum below 1 decides; otherwise the one that is least sure.
        worst = min(found, key=lambda stratum: found[stratum][2])
        if found[worst][2] >= 1:
            worst = min(found, key=lambda stratum: found[stratum][1])
        estimate, low, high = found[worst]
        largest = _ratio(_median(np.array([most for _, most in strata[worst]])))
        grown = sum(end > 0 for end, _ in strata[worst])
        return Finding(
            by_interval(low, high, 1.0),
            estimate,
            low,
            high,
            quantity,
            len(kept),
            f"at {', '.join(map(str, worst))}, of {len(found)} strata: {grown} of "
            f"{len(strata[worst])} grow; the largest along the path is {largest:.3g} times the "
            "first",
        )

    def _growth(self, errors: list[float], gaps: list[float]) -> tuple[float, float]:
        """Give log(end of the plateau / start), and log(largest / start)."""
        left = next((i for i, error in enumerate(errors) if error < self.until), len(errors))
        on_plateau = [gap for gap in gaps[: max(left, 1)] if not math.isnan(gap)]
        largest = max(gap for gap in gaps if not math.isnan(gap))
        return _log_ratio(on_plateau[-1], gaps[0]), _log_ratio(largest, gaps[0])


def _log_ratio(end: float, start: float) -> float:
    if end > 0 and start > 0:
        return math.log(end / start)
    return 0.0 if end == start else math.copysign(math.inf, end - start)


def _ratio(log: float) -> float:
    return math.exp(log) if log < 700 else math.inf


def _median(values: Floats) -> float:
    """Give the lower median, which was measured, infinite or not."""
    return float(np.sort(values)[(len(values) - 1) // 2])


def median_ratio(logs: Floats, level: float) -> tuple[float, float, float]:
    """Give exp of a median, with the interval between two order statistics.

    `level` is the probability that it misses. Infinite values have a place in the order too; where
    there are too few values for any interval, it is from 0 to infinity.
    """
    low, high = median_interval(logs, 1 - level)
    return _ratio(_median(np.sort(logs))), _ratio(low), _ratio(high)
