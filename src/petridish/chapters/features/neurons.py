r"""Neurons of trained networks without biases: margins, spectra, phases, signs [TH Ch. 7].

They learned a group's composition or a sparse parity. How many neurons are of a kind is said in two
ways, which may differ much: by number, all neurons alike, and by their share of
:math:`\|\theta\|_{2,\nu}^\nu`, in which the margin is measured too. The *large* neurons are those
that carry 99 % of it; the others are small, and many are on their way to 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from petridish.choices import describe
from petridish.groups import Group, real_irreps
from petridish.groups.spectra import feature_names, is_modular, power
from petridish.models import Homogeneous
from petridish.tasks import GroupProduct, SparseParity
from petridish.training import NormPower, RunSpec

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
CARRIED = 0.99  # share of the norm of the neurons that are called large
ONE_FEATURE = 0.95  # normalised power from which a weight vector counts as one frequency
SETTLED = 0.8  # and from which it is assigned to one: ReLU's neurons stay at 0.9
PHASE = 0.1  # radians by which phases may miss their relation
ON_SUPPORT = 0.99  # share of ‖u‖² on S from which u counts as zero elsewhere
SIZE = 0.05  # relative, by which |u_j| may miss ‖w‖, and ‖u‖, ‖v‖ and ‖w‖ each other
STRAIGHT = 0.99  # cosine from which w lies along (1, −1)


@dataclass(frozen=True, eq=False)
class TrainedNeurons:
    r"""The neurons with which a run ended.

    Attributes
    ----------
    spec : RunSpec
        The run, with its seed: its model is `Homogeneous`, on a group's composition or a parity.
    inputs : array, shape (width, n_inputs)
        The paper's u; for groups u and v side by side.
    outputs : array, shape (width, n_classes)
        The paper's w.
    steps, margins : array
        The normalised margin at each evaluation; empty where it was not watched.
    """

    spec: RunSpec
    inputs: Floats
    outputs: Floats
    steps: Floats
    margins: Floats

    @property
    def task(self) -> GroupProduct | SparseParity:
        """What it was trained on."""
        assert isinstance(self.spec.task, GroupProduct | SparseParity), "as `networks` chose it"
        return self.spec.task

    @property
    def model(self) -> Homogeneous:
        """What was trained."""
        assert isinstance(self.spec.model, Homogeneous), "as `networks` chose it"
        return self.spec.model

    @property
    def activation(self) -> str:
        """Its activation as text: "power(2)", "power(4)" or "relu"."""
        return describe(self.model.activation)

    @property
    def degree(self) -> int:
        """The degree ν of homogeneity of its outputs in its weights."""
        return self.model.degree

    @property
    def seed(self) -> int:
        """The run's seed."""
        return self.spec.seed

    @property
    def strength(self) -> float:
        """The λ of its regulariser λ ‖θ‖_{2,ν}^r.

        NaN where it had another, or was not trained on all inputs with their right labels.
        """
        data, training = self.spec.data, self.spec.training
        whole = data.draws == "distinct" and data.m == self.task.n_possible
        own = (training.penalty.order, training.penalty.power) == (2, self.degree)
        if whole and own and not training.weight_decay and not data.label_noise:
            return training.penalty.strength
        return math.nan

    @property
    def exponent(self) -> float:
        """The r of its regulariser λ ‖θ‖_{2,ν}^r."""
        penalty = self.spec.training.penalty
        return penalty.exponent if isinstance(penalty, NormPower) else penalty.power

    @property
    def label(self) -> str:
        """The name of the run in tables and figures: Z23, or Z23, ReLU."""
        if isinstance(self.task, SparseParity):
            name = f"({self.task.n}, {self.task.k})"
        else:
            group = self.task.group
            name = group if isinstance(group, str) else f"a table of {self.group.order}"
        return f"{name}, ReLU" if self.activation == "relu" else name

    @property
    def on_group(self) -> bool:
        """Whether it was trained on a group's composition."""
        return isinstance(self.task, GroupProduct)

    @property
    def on_cycle(self) -> bool:
        """Whether it was trained on addition modulo p."""
        return self.on_group and is_modular(self.group)

    @cached_property
    def group(self) -> Group:
        """The group of its task."""
        assert isinstance(self.task, GroupProduct), "a run on a group"
        return self.task.structure()

    @cached_property
    def best(self) -> float:
        """The maximum margin γ*; NaN where no theorem gives it, as for ReLU."""
        from petridish.theory.features.margins import group_margin, parity_margin

        if isinstance(self.task, GroupProduct):
            known = self.activation == "power(2)" and self.group.order > 1
            return group_margin(self.group).margin if known else math.nan
        return (
            parity_margin(self.task.k) if self.activation == f"power({self.task.k})" else math.nan
        )

    @cached_property
    def allowed(self) -> float:
        """The ratio γ/γ* at the minimum of the regularised loss, to which training leads.

        On a parity and modulo an odd number it is 1: all wrong answers are alike. NaN if unknown.
        """
        from petridish.theory.features.margins import regularised_margin

        if math.isnan(self.best) or not self.strength > 0:
            return math.nan
        if not isinstance(self.task, GroupProduct):
            return 1.0
        return regularised_margin(self.group, self.strength, self.exponent).margin / self.best

    @cached_property
    def ratios(self) -> Floats:
        """The margin at each evaluation over γ*."""
        return self.margins / self.best

    @property
    def gaining(self) -> float:
        """What the ratio gained in the last tenth of the steps."""
        before = np.searchsorted(self.steps, 0.9 * self.steps[-1], side="right") - 1
        return float(self.ratios[-1] - self.ratios[before])

    @property
    def watched(self) -> bool:
        """Whether its margin was watched, and its maximum is known."""
        return len(self.margins) > 0 and math.isfinite(self.best)

    @cached_property
    def input_margins(self) -> Floats:
        """The normalised margin of every input at the end, over γ*; of powers alone."""
        from petridish.theory.features.margin_networks import Neurons, all_bits, all_pairs, margins

        network = Neurons(self.inputs, self.outputs, self.degree - 1)
        if isinstance(self.task, GroupProduct):
            x, y = all_pairs(self.group)
        else:
            bits, y = all_bits(self.task.n, self.task.k)
            order = [*np.flatnonzero(self.support), *np.flatnonzero(~self.support)]
            x = np.empty_like(bits)
            x[:, order] = bits  # the relevant bits first
        # In pieces: S5 has 14 400 inputs and 2000 neurons.
        least = [
            margins(network, x[start : start + 2048], y[start : start + 2048]).min(axis=1)
            for start in range(0, len(x), 2048)
        ]
        return np.concatenate(least) / self.best

    @cached_property
    def weight(self) -> Floats:
        r"""Each neuron's share of :math:`\|\theta\|_{2,\nu}^\nu`."""
        squares = np.square(self.inputs).sum(axis=1) + np.square(self.outputs).sum(axis=1)
        parts: Floats = squares ** (self.degree / 2)
        shares: Floats = parts / parts.sum()
        return shares

    @cached_property
    def large(self) -> Mask:
        """The largest neurons, those that carry 99 % of the norm."""
        order = np.argsort(-self.weight)
        carried = np.cumsum(self.weight[order]) - self.weight[order]  # by the larger ones
        mask = np.zeros(len(order), np.bool_)
        mask[order[carried < CARRIED]] = True
        return mask

    # --- groups

    @property
    def vectors(self) -> tuple[Floats, Floats, Floats]:
        """The paper's u, v and w, functions on the group, shape (neuron, element) each."""
        size = self.group.order
        return self.inputs[:, :size], self.inputs[:, size:], self.outputs

    @cached_property
    def spectra(self) -> Floats:
        """Power of u, v and w in each feature, shape (3, neuron, feature)."""
        return np.stack([power(self.group, part) for part in self.vectors])

    @cached_property
    def shares(self) -> Floats:
        """The maximum normalised power of u, v and w, shape (3, neuron)."""
        shares: Floats = self.spectra.max(axis=2) / self.spectra.sum(axis=2)
        return shares

    @cached_property
    def home(self) -> NDArray[np.intp]:
        """The feature in which u, v and w together have the most power."""
        found: NDArray[np.intp] = self.spectra.sum(axis=0).argmax(axis=1)
        return found

    def at_home(self, share: float) -> Mask:
        """Return which neurons have `share` of each vector's power in one nontrivial feature."""
        own = self.spectra[:, np.arange(len(self.home)), self.home]
        found: Mask = (own >= share * self.spectra.sum(axis=2)).all(axis=0) & (self.home > 0)
        return found

    @cached_property
    def settled(self) -> Mask:
        """Which neurons can be assigned to a feature; at the start nearly none."""
        return self.at_home(SETTLED)

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """How many neurons have settled in each feature, the trivial one first."""
        return np.bincount(self.home[self.settled], minlength=self.spectra.shape[2])

    @cached_property
    def large_counts(self) -> NDArray[np.int64]:
        """How many of them are large."""
        found = self.home[self.large & self.settled]
        return np.bincount(found, minlength=self.spectra.shape[2])

    @cached_property
    def norm_shares(self) -> Floats:
        r"""The share of :math:`\|\theta\|_{2,3}^3` of the neurons settled in each feature."""
        weights = self.weight * self.settled
        shares = np.bincount(self.home, weights, minlength=self.spectra.shape[2])
        return shares.astype(np.float64)

    @cached_property
    def phase_errors(self) -> Floats:
        """θ_u + θ_v − θ_w at the home frequency, in (−π, π]; of modular addition alone."""
        rows = np.arange(len(self.home))
        u, v, w = (np.fft.rfft(part)[rows, self.home] for part in self.vectors)
        return np.angle(u * v * np.conj(w))

    # --- parities

    @cached_property
    def support(self) -> Mask:
        """The relevant bits S."""
        assert isinstance(self.task, SparseParity), "a run on a parity"
        mask = np.zeros(self.task.n, np.bool_)
        mask[self.task.supports([self.seed])[0]] = True
        return mask

    def has(self, what: Trait) -> Mask:
        """Return which neurons have a trait."""
        return TRAITS[what](self)


Trait = Literal["one feature", "phases", "amplitudes", "support", "sizes", "signs"]


def _on_support(network: TrainedNeurons) -> Mask:
    squares = np.square(network.inputs)
    found: Mask = squares[:, network.support].sum(axis=1) >= ON_SUPPORT * squares.sum(axis=1)
    return found


def _of_one_size(network: TrainedNeurons) -> Mask:
    size = np.linalg.norm(network.outputs, axis=1, keepdims=True)
    found: Mask = np.abs(np.abs(network.inputs[:, network.support]) / size - 1).max(axis=1) <= SIZE
    return found


def _of_one_amplitude(network: TrainedNeurons) -> Mask:
    """Require ‖u‖, ‖v‖ and ‖w‖ within 5 % of each other."""
    lengths = np.stack([np.linalg.norm(part, axis=1) for part in network.vectors])
    found: Mask = lengths.max(axis=0) <= (1 + SIZE) * lengths.min(axis=0)
    return found


def _of_right_sign(network: TrainedNeurons) -> Mask:
    """Require w along (1, −1), and a product of u on S with the sign of w · (1, −1)."""
    along = network.outputs[:, 0] - network.outputs[:, 1]
    straight = np.abs(along) >= STRAIGHT * math.sqrt(2) * np.linalg.norm(network.outputs, axis=1)
    found: Mask = straight & (network.inputs[:, network.support].prod(axis=1) * along > 0)
    return found


TRAITS: dict[Trait, Callable[[TrainedNeurons], Mask]] = {
    "one feature": lambda network: network.at_home(ONE_FEATURE),
    "phases": lambda network: np.abs(network.phase_errors) <= PHASE,
    "amplitudes": _of_one_amplitude,
    "support": _on_support,
    "sizes": _of_one_size,
    "signs": _of_right_sign,
}


def theory_shares(group: Group) -> Floats:
    r"""Return the share of :math:`\|\theta\|_{2,3}^3` of each feature at the maximum margin."""
    from petridish.theory.features.margins import group_margin

    return _by_feature(group, group_margin(group).shares)


def _by_feature(group: Group, shares: Floats) -> Floats:
    """Put shares of representations in the order of the features."""
    if not is_modular(group):
        return shares
    found = np.zeros(len(feature_names(group)))
    for irrep, share in zip(real_irreps(group), shares, strict=True):
        found[int(power(group, irrep.character).argmax())] += share
    return found


def regularised_shares(network: TrainedNeurons) -> Floats:
    """Return each feature's share of the norm at the minimum of the regularised loss, if known."""
    from petridish.theory.features.margins import regularised_margin

    if math.isnan(network.allowed):
        return np.empty(0)
    found = regularised_margin(network.group, network.strength, network.exponent).shares
    return _by_feature(network.group, found)


def dimensions(group: Group) -> NDArray[np.int64]:
    """Return the dimension of each feature's real representation."""
    if not is_modular(group):
        return np.array([irrep.dimension for irrep in real_irreps(group)])
    # A frequency has dimension 2, the constant and the alternating one have 1.
    alone = np.isin(np.arange(len(feature_names(group))), (0, group.order / 2))
    return np.where(alone, 1, 2)
