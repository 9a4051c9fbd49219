"""Rules about frequencies and representations: which have neurons, and how many [TH Ch. 7]."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from petridish.chapters.features.neurons import (
    TrainedNeurons,
    dimensions,
    regularised_shares,
    theory_shares,
)
from petridish.chapters.features.rules import AboveBound, OnEveryTask
from petridish.chapters.features.stored_networks import starts


def _needed(network: TrainedNeurons) -> NDArray[np.bool_]:
    """Return which features a maximum margin needs; with ReLU, all frequencies."""
    if network.activation == "relu":
        return np.arange(len(network.counts)) > 0
    return theory_shares(network.group) > 1e-9


@dataclass(frozen=True)
class EveryFeature(AboveBound):
    """Every frequency or representation that a maximum margin needs has a neuron, on every task.

    One share per run: of the needed features, those in which at least one neuron has settled.
    Supported if it is 1 in every run. The remark has the fewest neurons of one of them in the first
    run, of all and of those that carry 99 % of the norm, and its least share of the norm.
    """

    bound: float = 1 - 1e-9
    activation: str | None = "power(2)"
    quantity = "share of the needed features that have a neuron"
    wanted = "is on a group"

    def _of(self, network: TrainedNeurons) -> float:
        return float((network.counts[_needed(network)] > 0).mean())

    def _say(self, network: TrainedNeurons) -> str:
        needed = _needed(network)
        fewest, large = network.counts[needed].min(), network.large_counts[needed].min()
        least = network.norm_shares[needed].min()
        return f"fewest neurons: {fewest}, {large} large; least share of the norm: {least:.2g}"


@dataclass(frozen=True)
class FeatureNorms(AboveBound):
    """Every needed feature has more than `bound` of its share of the norm at the maximum margin.

    One number per run: the share of the norm that the neurons settled in a feature have, over its
    share at the maximum margin, of the feature where that is least; 0 if one is missing.
    """

    bound: float = 0.1
    quantity = "least share of a feature, over that at the maximum margin"
    wanted = "is on a group"
    most = math.inf

    def _of(self, network: TrainedNeurons) -> float:
        theory = theory_shares(network.group)
        needed = theory > 1e-9
        return float((network.norm_shares[needed] / theory[needed]).min())

    def _say(self, network: TrainedNeurons) -> str:
        allowed = regularised_shares(network)
        if not len(allowed):
            return ""
        theory = theory_shares(network.group)
        needed = theory > 1e-9
        return f"λ allows {(allowed[needed] / theory[needed]).min():.3g}"


@dataclass(frozen=True)
class LeavesOut(OnEveryTask):
    """Representations that a maximum margin does not need have next to none of the norm.

    One share per run: of the norm, what neurons have that are nearest to such a representation,
    settled or not. Groups of which every representation is needed do not count.
    """

    most_left: float = 0.01
    quantity = "share of the norm in representations that no maximum margin needs"
    wanted = "is on a group of which a maximum margin leaves a representation out"
    most = math.inf

    @property
    def ends(self) -> tuple[float, float]:
        """Nothing below, and the bound."""
        return -math.inf, self.most_left

    def _counts(self, network: TrainedNeurons) -> bool:
        return network.on_group and len(self._empty(network)) > 0

    def _empty(self, network: TrainedNeurons) -> NDArray[np.intp]:
        found: NDArray[np.intp] = np.flatnonzero(theory_shares(network.group)[1:] <= 1e-9) + 1
        return found

    def _of(self, network: TrainedNeurons) -> float:
        return float(network.weight[np.isin(network.home, self._empty(network))].sum())

    def _say(self, network: TrainedNeurons) -> str:
        empty = self._empty(network)
        there, large = network.counts[empty].sum(), network.large_counts[empty].sum()
        began = np.isin(starts(network).home, empty).sum()
        return (
            f"{there} of {len(network.home)} neurons, {large} of {network.large.sum()} large; "
            f"{began} nearest to it at the start"
        )


@dataclass(frozen=True)
class NearUniform(AboveBound):
    """Neurons spread over the frequencies about evenly: the distance to evenness is at most 0.2.

    One distance in total variation per run, by number: the share of neurons that would have to
    move. Neurons that chose at random would have about 0.4 √(frequencies / neurons). The remark
    says how even the neurons that carry 99 % of the norm are, in the first run.
    """

    bound: float = 0.8
    activation = None
    quantity = "evenness of neurons over frequencies, 1 − distance"
    wanted = "is on a group"

    def _of(self, network: TrainedNeurons) -> float:
        return _evenness(network.counts[1:])

    def _say(self, network: TrainedNeurons) -> str:
        return f"large ones {_evenness(network.large_counts[1:]):.3g}"


def _evenness(counts: NDArray[np.int64]) -> float:
    if not counts.sum():
        return 0.0
    return 1 - float(np.abs(counts / counts.sum() - 1 / len(counts)).sum() / 2)


@dataclass(frozen=True)
class OrderedByDimension(AboveBound):
    """Representations of larger dimension have more neurons.

    One share per run: of the pairs of representations that differ in dimension, those in which the
    larger has more neurons, by number. The remark has the same of the neurons that carry 99 % of
    the norm, and of the norm, in the first run. Groups whose representations have one dimension are
    left out.
    """

    bound: float = 0.9
    quantity = "share of pairs of representations in the order of their dimensions"
    wanted = "is on a group with representations of several dimensions"

    def _counts(self, network: TrainedNeurons) -> bool:
        return network.on_group and len(set(dimensions(network.group)[1:])) > 1

    def _of(self, network: TrainedNeurons) -> float:
        return float(_in_order(network, network.counts).mean())

    def _say(self, network: TrainedNeurons) -> str:
        number, large, norm = (
            _in_order(network, each)
            for each in (network.counts, network.large_counts, network.norm_shares)
        )
        return (
            f"{number.sum()} of {len(number)} pairs; large neurons {large.sum()}, norm {norm.sum()}"
        )


def _in_order(
    network: TrainedNeurons, amounts: NDArray[np.int64] | NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Return for each pair of different dimension whether the larger has more."""
    sizes, own = dimensions(network.group)[1:], amounts[1:]
    found: NDArray[np.bool_] = (own[:, None] > own)[sizes[:, None] > sizes]
    return found
