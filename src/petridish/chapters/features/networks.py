r"""What trained networks without biases have become: margins, spectra, phases, signs [TH Ch. 7].

The tables have runs that kept their weights, on a group's composition or on a sparse parity. How
many neurons are of a kind is measured by their share of :math:`\|\theta\|_{2,\nu}^\nu`, in which
the margin is measured too; where neurons are counted, it is those that carry 99 % of it. The others
are on their way to 0, ever more slowly, and say nothing.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from petridish.choices import describe, name_of
from petridish.groups import Group, real_irreps
from petridish.groups.spectra import feature_names, is_modular, power
from petridish.models import Homogeneous
from petridish.rules.specs import where
from petridish.tasks import GroupProduct, SparseParity
from petridish.training import Evaluation, RunSpec, cell_text, flat, read_cell

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
CARRIED = 0.99  # of the norm, by the neurons that count
ONE_FEATURE = 0.95  # normalised power from which a weight vector counts as one frequency
SETTLED = 0.8  # and from which it is clear which: ReLU's neurons stay at 0.9
PHASE = 0.1  # radians by which phases may miss their relation
ON_SUPPORT = 0.99  # share of ‖u‖² from which u sees S alone
SIZE = 0.05  # relative, by which |u_j| may miss ‖w‖
STRAIGHT = 0.99  # cosine from which w lies along (1, −1)
NO_WEIGHTS = "no homogeneous network here kept its weights: ask for them by evaluation.weights"


@dataclass(frozen=True, eq=False)
class Network:
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
        The normalised margin at each look; empty where it was not watched.
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
        """The ν with which its outputs grow as its weights do."""
        return self.model.degree

    @property
    def seed(self) -> int:
        """The run's seed."""
        return self.spec.seed

    @property
    def strength(self) -> float:
        """The λ of its regulariser ‖θ‖_{2,ν}^ν.

        NaN where it had another, or saw less than the whole population with right labels.
        """
        data, training = self.spec.data, self.spec.training
        whole = data.draws == "distinct" and data.m == self.task.n_possible
        own = (training.penalty.order, training.penalty.power) == (2, self.degree)
        if whole and own and not training.weight_decay and not data.label_noise:
            return training.penalty.strength
        return math.nan

    @property
    def label(self) -> str:
        """What the run is called among others: Z23, or Z23, ReLU."""
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
        """The group, of a run on one."""
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
        return regularised_margin(self.group, self.strength).margin / self.best

    @cached_property
    def ratios(self) -> Floats:
        """The margin at each look over γ*."""
        return self.margins / self.best

    @property
    def gaining(self) -> float:
        """What the ratio gained in the last tenth of the steps."""
        before = np.searchsorted(self.steps, 0.9 * self.steps[-1], side="right") - 1
        return float(self.ratios[-1] - self.ratios[before])

    @cached_property
    def weight(self) -> Floats:
        r"""Each neuron's share of :math:`\|\theta\|_{2,\nu}^\nu`."""
        squares = np.square(self.inputs).sum(axis=1) + np.square(self.outputs).sum(axis=1)
        parts: Floats = squares ** (self.degree / 2)
        shares: Floats = parts / parts.sum()
        return shares

    @cached_property
    def active(self) -> Mask:
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
        """Say whose u, v and w each have `share` of their power in one feature, not the trivial."""
        own = self.spectra[:, np.arange(len(self.home)), self.home]
        found: Mask = (own >= share * self.spectra.sum(axis=2)).all(axis=0) & (self.home > 0)
        return found

    @cached_property
    def settled(self) -> Mask:
        """The neurons of which it can be said where they are at home; at the start nearly none."""
        return self.at_home(SETTLED)

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """How many active neurons have settled in each feature, the trivial one first."""
        counted = self.home[self.active & self.settled]
        return np.bincount(counted, minlength=self.spectra.shape[2])

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
        """Say which neurons have a trait."""
        return TRAITS[what](self)


Trait = Literal["one feature", "phases", "support", "sizes", "signs"]


def _one_feature(network: Network) -> Mask:
    """Ask for nearly all power of u, v and w in one feature, the same and not trivial."""
    return network.at_home(ONE_FEATURE)


def _phases(network: Network) -> Mask:
    return np.abs(network.phase_errors) <= PHASE


def _support(network: Network) -> Mask:
    squares = np.square(network.inputs)
    found: Mask = squares[:, network.support].sum(axis=1) >= ON_SUPPORT * squares.sum(axis=1)
    return found


def _sizes(network: Network) -> Mask:
    ratio = np.abs(network.inputs[:, network.support]) / _output_size(network)[:, None]
    found: Mask = np.abs(ratio - 1).max(axis=1) <= SIZE
    return found


def _output_size(network: Network) -> Floats:
    size: Floats = np.linalg.norm(network.outputs, axis=1)
    return size


def _signs(network: Network) -> Mask:
    """Ask for w along (1, −1), and for a product of u on S with the sign of w · (1, −1)."""
    along = network.outputs[:, 0] - network.outputs[:, 1]
    straight = np.abs(along) >= STRAIGHT * math.sqrt(2) * _output_size(network)
    found: Mask = straight & (network.inputs[:, network.support].prod(axis=1) * along > 0)
    return found


TRAITS: dict[Trait, Callable[[Network], Mask]] = {
    "one feature": _one_feature,
    "phases": _phases,
    "support": _support,
    "sizes": _sizes,
    "signs": _signs,
}


def theory_shares(group: Group) -> Floats:
    r"""Give the share of :math:`\|\theta\|_{2,3}^3` of each feature at the maximum margin."""
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


def regularised_shares(network: Network) -> Floats:
    """Give each feature's share of the norm at the minimum of the regularised loss, where known."""
    from petridish.theory.features.margins import regularised_margin

    if math.isnan(network.allowed):
        return np.empty(0)
    found = regularised_margin(network.group, network.strength).shares
    return _by_feature(network.group, found)


def dimensions(group: Group) -> NDArray[np.int64]:
    """Give the dimension of each feature's real representation."""
    if is_modular(group):
        sizes = np.full(len(feature_names(group)), 2)
        sizes[0] = 1
        if group.order % 2 == 0:
            sizes[-1] = 1  # the frequency of signs in turn
        return sizes
    return np.array([irrep.dimension for irrep in real_irreps(group)])


READ = ("curve.step", "curve.normalised_margin", "weights")
"""The curves and weights of a table that `networks` reads."""


def networks(table: pl.DataFrame, activation: str | None = None) -> list[Network]:
    """Read the networks of a table; if it is named ("power", "power(2)"), of one activation.

    Runs of other models and on other tasks are passed over.
    """
    if "weights" not in table.columns:
        return []
    import polars as pl

    def asked_for(spec: RunSpec) -> bool:
        if not isinstance(spec.model, Homogeneous):
            return False
        kind = spec.model.activation
        named = activation is None or activation in (name_of(kind), describe(kind))
        return named and isinstance(spec.task, GroupProduct | SparseParity)

    kept = table.filter(pl.col("weights").is_not_null())
    rows = where(kept, asked_for).sort("model.width", "seed")
    found = [_network(row) for row in rows.iter_rows(named=True)]
    found.sort(key=lambda network: (network.task.domain.n_inputs, network.label, network.seed))
    return found


def starts(network: Network) -> Network:
    """Return the network with which the same run began: its weights are drawn again."""
    parameters = network.model.parameters(network.task.domain, network.outputs.shape[1])
    first, second = network.spec.init.draw(parameters, [network.seed])
    empty = np.empty(0)
    return replace(
        network,
        inputs=first[0].astype(np.float64),
        outputs=second[0].T.astype(np.float64),
        steps=empty,
        margins=empty,
    )


def _network(row: dict[str, Any]) -> Network:
    spec = replace(read_cell(row["cell"]), seed=row["seed"])
    assert isinstance(spec.model, Homogeneous), "as `networks` chose it"
    first, second = (np.array(values, np.float64) for values in row["weights"])
    return Network(
        spec=spec,
        inputs=first.reshape(spec.model.width, -1),
        outputs=second.reshape(-1, spec.model.width).T,
        steps=np.array(row.get("curve.step") or [], np.float64),
        margins=np.array(row.get("curve.normalised_margin") or [], np.float64),
    )


def cells(found: list[Network]) -> Iterator[tuple[str, list[Network]]]:
    """Give together the networks that differ in their seed alone, under a label of their own.

    Where several have one label, it says what sets them apart: Z5, width 16.
    """
    parts: dict[str, list[Network]] = {}
    for network in found:
        # What was watched of a run makes it no other network.
        cell = cell_text(replace(network.spec, evaluation=Evaluation()))
        parts.setdefault(cell, []).append(network)
    alike: dict[str, list[dict[str, Any]]] = {}
    for members in parts.values():
        alike.setdefault(members[0].label, []).append(_setting(members[0].spec))
    for members in parts.values():
        label, setting = members[0].label, _setting(members[0].spec)
        names = sorted({name for other in alike[label] for name in {*other, *setting}})
        apart = [n for n in names if any(o.get(n) != setting.get(n) for o in alike[label])]
        # A choice stands as text and by its parts: the parts say it.
        parts_only = [n for n in apart if not any(o.startswith(f"{n}.") for o in apart)]
        words = [f"{n.rpartition('.')[2]} {_word(setting.get(n))}" for n in parts_only]
        yield ", ".join([label, *words]), members


def _setting(spec: RunSpec) -> dict[str, Any]:
    """Return the fields by which runs may differ: all but the seed and what is watched of them."""
    return {
        name: value
        for name, value in flat(spec).items()
        if value is not None and name != "seed" and not name.startswith("evaluation.")
    }


def _word(value: object) -> str:
    """Write a value; of a long one, such as a table, four letters that tell it from others."""
    text = str(value)
    return text if len(text) <= 24 else f"#{hashlib.sha256(text.encode()).hexdigest()[:4]}"
