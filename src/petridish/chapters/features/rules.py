"""Rules about features that emerge, and about the maximum margins that explain them [TH Ch. 7]."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from petridish.chapters.features.networks import (
    NO_WEIGHTS,
    ON_SUPPORT,
    PHASE,
    READ,
    SIZE,
    Network,
    Trait,
    cells,
    dimensions,
    networks,
    theory_shares,
)
from petridish.rules.claims import Finding, Judgement, Reads, Simulated, by_interval, nothing
from petridish.statistics.estimate import student_half_width

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]
FEWEST = 3  # runs of a task that say how far runs differ


@dataclass(frozen=True)
class _Cell:
    """One number a run, over the runs of one task."""

    label: str
    members: list[Network]
    values: Floats
    low: float
    high: float

    @property
    def mean(self) -> float:
        return float(self.values.mean())


def _measured(
    found: list[Network],
    measure: Callable[[Network], float],
    level: float,
    most: float = math.inf,
) -> list[_Cell]:
    """Measure every run, with Student's interval for each task's mean; none of one or two runs."""
    parts = list(cells(found))
    measured = []
    for label, members in parts:
        values = np.array([measure(network) for network in members])
        few = len(values) < FEWEST
        half = math.nan if few else student_half_width(values, 1 - level / len(parts))
        middle = float(values.mean())
        high = min(middle + half, most)
        measured.append(_Cell(label, members, values, middle - half, high))
    return measured


def _weakest(
    quantity: str,
    found: list[Network],
    measure: Callable[[Network], float],
    level: float,
    *,
    above: float,
    most: float = math.inf,
    reason: str = NO_WEIGHTS,
    say: Callable[[Network], str] | None = None,
) -> Finding:
    """Judge whether a number lies above a bound on every task; the estimate is the weakest task's.

    Each task's interval has its share of the level; tasks with fewer than three runs are left
    undecided. `most` is the largest value that there is. The remark names every task.
    """
    if not found:
        return nothing(quantity, reason)
    measured = _measured(found, measure, level, most)
    worst = min(measured, key=lambda cell: (cell.mean, cell.label))
    bounds = [by_interval(cell.low, cell.high, above) for cell in measured]
    if Judgement.CONTRADICTED in bounds:
        judgement = Judgement.CONTRADICTED
    elif all(bound is Judgement.SUPPORTED for bound in bounds):
        judgement = Judgement.SUPPORTED
    else:
        judgement = Judgement.UNDECIDED
    said = []
    for cell in measured:
        more = f" ({say(cell.members[0])})" if say else ""
        said.append(f"{cell.label}: {_short(cell.mean)}{more}{_too_few(len(cell.members))}")
    return Finding(
        judgement, worst.mean, worst.low, worst.high, quantity, len(found), "; ".join(said)
    )


def _why(kept: list[Network], wanted: str) -> str:
    """Say why there is nothing to judge: no weights, or no run that the claim is about."""
    return f"none of these runs {wanted}" if kept else NO_WEIGHTS


def _speaks_of(trait: Trait, network: Network) -> bool:
    if trait == "phases":
        return network.on_cycle
    return network.on_group == (trait == "one feature")


def _too_few(runs: int) -> str:
    return f", {runs} of {FEWEST} runs" if runs < FEWEST else ""


def _short(value: float) -> str:
    """Write a number near 1 so that what is missing can be read."""
    return f"1 − {1 - value:.1g}" if 0.995 < value < 1 - 1e-9 else f"{value:.3g}"


class _OfNetworks(Reads):
    """A rule about trained networks: their weights, and the margin on their way."""

    columns = READ


@dataclass(frozen=True)
class ReachesMargin(_OfNetworks):
    """The normalised margin ends above `bound` of the theorem's maximum γ*, on every task.

    One ratio γ/γ* a run, at its last look, with Student's interval over the runs of a task. The
    remark says what the first run of each still gained in the last tenth of its steps, and which
    ratio the regulariser allows, where it is not 1.
    """

    bound: float = 0.9

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from runs that watched their margin."""
        kept = networks(table)
        watched = [n for n in kept if len(n.margins) and math.isfinite(n.best)]
        return _weakest(
            "γ/γ* at the end, the weakest task's mean",
            watched,
            lambda network: float(network.ratios[-1]),
            level,
            above=self.bound,
            most=1.0,
            reason=_why(kept, "watched a margin whose maximum is known"),
            say=_margin_words,
        )


def _margin_words(network: Network) -> str:
    allowed = network.allowed
    limit = f", λ allows {allowed:.3g}" if allowed < 0.9995 else ""
    return f"{network.gaining:+.1g} in the last tenth{limit}"


QUANTITY: dict[Trait, str] = {
    "one feature": "share of neurons, by norm, with u, v and w in one feature",
    "phases": f"share of neurons, by norm, with θ_u + θ_v = θ_w within {PHASE}",
    "support": f"share of neurons, by norm, with {100 * ON_SUPPORT:g} % of ‖u‖² on S",
    "sizes": f"share of neurons, by norm, with every |u_j| on S within {100 * SIZE:g} % of ‖w‖",
    "signs": "share of neurons, by norm, with w along ±(1, −1) and the sign of Π u_j",
}


@dataclass(frozen=True)
class NeuronsShare(_OfNetworks):
    r"""More than `bound` of the neurons have a trait, on every task.

    Each neuron counts by its share of :math:`\|\theta\|_{2,\nu}^\nu`. One share a run, with
    Student's interval over the runs of a task. The remark says how many of the neurons that carry
    99 % of the norm have it, in the first run.
    """

    trait: Trait
    bound: float = 0.9
    activation: str = "power"

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from runs that kept their weights."""
        kept = networks(table, self.activation)
        fitting = [n for n in kept if _speaks_of(self.trait, n)]
        return _weakest(
            QUANTITY[self.trait],
            fitting,
            lambda network: float(network.weight[network.has(self.trait)].sum()),
            level,
            above=self.bound,
            most=1.0,
            reason=_why(kept, f"has neurons of which the trait «{self.trait}» can be asked"),
            say=lambda network: (
                f"{(network.has(self.trait) & network.active).sum()} of "
                f"{network.active.sum()} neurons"
            ),
        )


@dataclass(frozen=True)
class PowerNear(_OfNetworks):
    """The mean over neurons of the maximum normalised power of u lies between two bounds.

    One mean a run, with Student's interval over the runs; supported if the interval lies between
    the bounds, contradicted if it lies beyond one.
    """

    low: float
    high: float
    activation: str = "relu"

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from runs that kept their weights."""
        quantity = "mean maximum normalised power of u"
        kept = networks(table, self.activation)
        found = [network for network in kept if network.on_group]
        if not found:
            return nothing(quantity, _why(kept, "is on a group"))

        def mean(network: Network) -> float:
            return float(network.shares[0][network.active].mean())

        measured = _measured(found, mean, level)
        worst = max(measured, key=lambda cell: abs(cell.mean - (self.low + self.high) / 2))
        inside = all(self.low < cell.low and cell.high < self.high for cell in measured)
        beyond = any(cell.high < self.low or cell.low > self.high for cell in measured)
        judgement = Judgement.UNDECIDED
        if inside or beyond:
            judgement = Judgement.SUPPORTED if inside else Judgement.CONTRADICTED
        remark = "; ".join(
            f"{cell.label}: {cell.mean:.3f}{_too_few(len(cell.members))}" for cell in measured
        )
        return Finding(judgement, worst.mean, worst.low, worst.high, quantity, len(found), remark)


@dataclass(frozen=True)
class EveryFeature(_OfNetworks):
    """Every frequency or representation that a maximum margin needs is there, on every task.

    One number a run: the share of the norm that the neurons settled in a feature have, over its
    share at the maximum margin, of the feature where that is least; 0 if one is missing.
    """

    bound: float = 0.1

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from runs that kept their weights."""
        kept = networks(table, "power(2)")
        return _weakest(
            "least share of a feature, over that at the maximum margin",
            [network for network in kept if network.on_group],
            _least_share,
            level,
            above=self.bound,
            reason=_why(kept, "is on a group"),
            say=lambda network: f"fewest neurons: {_fewest(network)}",
        )


def _least_share(network: Network) -> float:
    theory = theory_shares(network.group)
    needed = theory > 1e-9
    return float((network.norm_shares[needed] / theory[needed]).min())


def _fewest(network: Network) -> int:
    return int(network.counts[theory_shares(network.group) > 1e-9].min())


@dataclass(frozen=True)
class NearUniform(_OfNetworks):
    """Neurons spread over the frequencies about evenly: the distance to evenness is below `bound`.

    One distance in total variation a run: the share of neurons that would have to move. Neurons
    that chose by lot would have about 0.4 √(frequencies / neurons).
    """

    bound: float = 0.2

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from runs that kept their weights."""
        kept = networks(table)
        return _weakest(
            "evenness of neurons over frequencies, 1 − distance",
            [network for network in kept if network.on_group],
            _evenness,
            level,
            above=1 - self.bound,
            most=1.0,
            reason=_why(kept, "is on a group"),
        )


def _evenness(network: Network) -> float:
    counts = network.counts[1:]
    if not counts.sum():
        return 0.0
    return 1 - float(np.abs(counts / counts.sum() - 1 / len(counts)).sum() / 2)


@dataclass(frozen=True)
class OrderedByDimension(_OfNetworks):
    """Representations of larger dimension have more neurons.

    One share a run: of the pairs of representations that differ in dimension, those in which the
    larger has more neurons. Groups whose representations have one dimension say nothing.
    """

    bound: float = 0.9

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from runs that kept their weights."""
        kept = networks(table, "power(2)")
        found = [n for n in kept if n.on_group and not math.isnan(_ordered(n))]
        return _weakest(
            "share of pairs of representations in the order of their dimensions",
            found,
            _ordered,
            level,
            above=self.bound,
            most=1.0,
            reason=_why(kept, "is on a group with representations of several dimensions"),
        )


def _ordered(network: Network) -> float:
    sizes, counts = dimensions(network.group)[1:], network.counts[1:]
    larger = sizes[:, None] > sizes
    if not larger.any():
        return math.nan
    return float((counts[:, None] > counts)[larger].mean())


@dataclass(frozen=True)
class ConstructionsAttain(Simulated):
    """The networks of Theorems 7.7 to 7.9 have the margin γ*, with every input on the margin.

    The estimate is the largest relative deviation of any input's margin from γ*; for groups, of the
    answers that a maximum margin has on it.
    """

    moduli: tuple[int, ...]
    parities: tuple[tuple[int, int], ...]
    groups: tuple[str, ...]
    tolerance: float = 1e-6

    def simulate(self, level: float) -> Finding:
        """Build them, and take the margins over all inputs."""
        from petridish.groups import cyclic, find_group
        from petridish.theory.features import margin_networks as built
        from petridish.theory.features import margins as theory

        worst = 0.0
        for p in self.moduli:
            found = built.margins(built.modular_network(p), *built.all_pairs(cyclic(p)))
            worst = max(worst, _deviation(found.min(axis=1), theory.modular_margin(p)))
        for n, k in self.parities:
            found = built.margins(built.parity_network(n, k), *built.all_bits(n, k))
            worst = max(worst, _deviation(found.min(axis=1), theory.parity_margin(k)))
        for name in self.groups:
            group = find_group(name)
            found = built.margins(built.group_network(group), *built.all_pairs(group))
            worst = max(worst, _deviation(found.min(axis=1), theory.group_margin(group).margin))
        count = len(self.moduli) + len(self.parities) + len(self.groups)
        judgement = Judgement.SUPPORTED if worst < self.tolerance else Judgement.CONTRADICTED
        return Finding(
            judgement,
            worst,
            math.nan,
            math.nan,
            "largest relative deviation of an input's margin from γ*",
            count,
            f"p = {', '.join(map(str, self.moduli))}; (n, k) = "
            f"{', '.join(f'({n}, {k})' for n, k in self.parities)}; {', '.join(self.groups)}",
        )


def _deviation(margins: Floats, best: float) -> float:
    return float(np.abs(margins / best - 1).max())


def dense_ratio(p: int) -> float:
    """Give γ/γ* of the network of §D.4 for addition modulo p, its layers in the best balance.

    It remembers each pair by two neurons of the sizes 1, 1 and ¼. With inputs α times as large and
    outputs α^-2 times, it computes the same; its norm is least where 2α² + α^-4/16 is.
    """
    from petridish.groups import cyclic
    from petridish.theory.features.margin_networks import (
        Neurons,
        all_pairs,
        margins,
        memorising_network,
    )
    from petridish.theory.features.margins import modular_margin

    dense, scale = memorising_network(cyclic(p)), 16 ** (-1 / 6)
    balanced = Neurons(dense.inputs * scale, dense.outputs / scale**2)
    return float(margins(balanced, *all_pairs(cyclic(p))).min() / modular_margin(p))


@dataclass(frozen=True)
class DenseFallsShort(Simulated):
    """The dense network of §D.4 has a smaller margin than γ*: the estimate is its largest ratio."""

    moduli: tuple[int, ...]

    def simulate(self, level: float) -> Finding:
        """Build them, and take the margins over all inputs."""
        ratios = [dense_ratio(p) for p in self.moduli]
        judgement = Judgement.SUPPORTED if max(ratios) < 1 else Judgement.CONTRADICTED
        said = "; ".join(f"p = {p}: {r:.3f}" for p, r in zip(self.moduli, ratios, strict=True))
        return Finding(
            judgement, max(ratios), math.nan, math.nan, "largest γ/γ*", len(ratios), said
        )


@dataclass(frozen=True)
class TrainedBeatDense(_OfNetworks):
    """Trained networks have larger margins than the dense one: γ/γ* less its own, on every task."""

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from runs on addition modulo an odd p."""
        kept = networks(table)
        watched = [
            n
            for n in kept
            if n.on_cycle and n.group.order % 2 and len(n.margins) and math.isfinite(n.best)
        ]
        return _weakest(
            "γ/γ* less the dense network's, the weakest task's mean",
            watched,
            lambda network: float(network.ratios[-1]) - dense_ratio(network.group.order),
            level,
            above=0.0,
            reason=_why(kept, "watched its margin on addition modulo an odd p"),
        )
