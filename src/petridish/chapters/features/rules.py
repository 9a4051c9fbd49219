"""Rules about features that emerge, and about the maximum margins that explain them [TH Ch. 7]."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from petridish.chapters.features.exact_rules import dense_ratio
from petridish.chapters.features.neurons import (
    ON_SUPPORT,
    PHASE,
    SIZE,
    TrainedNeurons,
    Trait,
)
from petridish.chapters.features.stored_networks import NO_WEIGHTS, READ, cells, networks
from petridish.rules.claims import Finding, Judgement, Reads, blind_within, nothing, remarks
from petridish.rules.specs import where
from petridish.statistics.intervals import student_half_width
from petridish.tasks import GroupProduct
from petridish.training import RunSpec

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]
FEWEST = 3  # runs of a task that an interval needs


@dataclass(frozen=True)
class _TaskMean:
    """The mean of one number per run over the runs of a task, with its interval."""

    label: str
    mean: float
    low: float
    high: float
    text: str


class OnEveryTask(Reads):
    """A number of trained networks lies between two ends on every task.

    One number per run, with Student's interval over the runs of a task and its share of the level;
    tasks with fewer than three runs are left undecided. The estimate is that of the weakest task,
    and the remark names every task.
    """

    columns: ClassVar[tuple[str, ...]] = READ
    most: ClassVar[float] = 1.0  # the largest possible value
    activation: str | None = "power(2)"  # of the networks that count; None: any

    @property
    @abstractmethod
    def quantity(self) -> str:
        """What the estimate measures."""

    @property
    @abstractmethod
    def wanted(self) -> str:
        """What a run must be to count."""

    @property
    @abstractmethod
    def ends(self) -> tuple[float, float]:
        """The two ends between which the claim puts the number."""

    @abstractmethod
    def _of(self, network: TrainedNeurons) -> float:
        """Return the number of a network."""

    def _counts(self, network: TrainedNeurons) -> bool:
        """Return whether the claim is about a network."""
        return network.on_group

    def _say(self, network: TrainedNeurons) -> str:
        """Return what the remark says of the first run of a task."""
        return ""

    def _text(self, value: float) -> str:
        """Write a number near 1 so that what is missing can be read."""
        return f"1 − {1 - value:.1g}" if 0.995 < value < 1 - 1e-9 else f"{value:.3g}"

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from runs that kept their weights."""
        kept = networks(table, self.activation)
        found = [network for network in kept if self._counts(network)]
        if not found:
            why = f"none of these runs {self.wanted}" if kept else NO_WEIGHTS
            return nothing(self.quantity, why)
        parts = list(cells(found))
        measured = [self._measured(*part, 1 - level / len(parts)) for part in parts]
        floor, ceiling = self.ends
        worst = min(
            measured, key=lambda task: (min(task.mean - floor, ceiling - task.mean), task.label)
        )
        judgement = Judgement.UNDECIDED
        if any(task.high < floor or task.low > ceiling for task in measured):
            judgement = Judgement.CONTRADICTED
        elif all(floor < task.low and task.high < ceiling for task in measured):
            judgement = Judgement.SUPPORTED
        remark = "; ".join(task.text for task in measured)
        if judgement is Judgement.UNDECIDED:
            remark = remarks(remark, next(filter(None, map(self._blind, measured)), ""))
        return Finding(
            judgement, worst.mean, worst.low, worst.high, self.quantity, len(found), remark
        )

    def _blind(self, task: _TaskMean) -> str:
        """Return what is not seen on a task whose interval contains one of the ends."""
        found = (
            blind_within(end, task.mean, task.low, task.high, ratio=False) for end in self.ends
        )
        said = next(filter(None, found), "")
        return said and f"{task.label}: {said}"

    def _measured(self, label: str, members: list[TrainedNeurons], coverage: float) -> _TaskMean:
        values = np.array([self._of(network) for network in members])
        few = len(values) < FEWEST
        half = math.nan if few else student_half_width(values, coverage)
        mean, said = float(values.mean()), self._say(members[0])
        text = f"{label}: {self._text(mean)}{f' ({said})' if said else ''}"
        text += f", {len(values)} of {FEWEST} runs" if few else ""
        return _TaskMean(label, mean, mean - half, min(mean + half, self.most), text)


class AboveBound(OnEveryTask):
    """A number of trained networks lies above `bound` on every task."""

    bound: float

    @property
    def ends(self) -> tuple[float, float]:
        """The bound, and nothing above."""
        return self.bound, math.inf


@dataclass(frozen=True)
class OfGroups(Reads):
    """Judge the networks on some groups alone, by a rule.

    What is said of a group that has too few runs is then undecided, and what is said of the others
    is judged.

    Attributes
    ----------
    rule : OnEveryTask
        How they are judged.
    only, but : tuple of str
        Names of groups: of those that count, if any are given, and of those that do not.
    """

    rule: OnEveryTask
    only: tuple[str, ...] = ()
    but: tuple[str, ...] = ()

    columns: ClassVar[tuple[str, ...]] = READ

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs on these groups."""

        def counts(spec: RunSpec) -> bool:
            name = spec.task.group if isinstance(spec.task, GroupProduct) else None
            return name not in self.but and (not self.only or name in self.only)

        kept = where(table, counts)
        if kept.is_empty():
            asked = ", ".join(self.only) or f"another group than {', '.join(self.but)}"
            return nothing(self.rule.quantity, f"none of these runs is on {asked}")
        return self.rule.judge(kept, level)


@dataclass(frozen=True)
class ReachesMargin(AboveBound):
    """The normalised margin ends above `bound` of the theorem's maximum γ*, on every task.

    One ratio γ/γ* per run, at its last evaluation. The remark says what the first run of each task
    still gained in the last tenth of its steps, and which ratio the regulariser allows, where it is
    not 1.
    """

    bound: float = 0.9
    activation = None
    quantity = "γ/γ* at the end, the weakest task's mean"
    wanted = "watched a margin whose maximum is known"

    def _counts(self, network: TrainedNeurons) -> bool:
        return network.watched

    def _of(self, network: TrainedNeurons) -> float:
        return float(network.ratios[-1])

    def _say(self, network: TrainedNeurons) -> str:
        allowed = network.allowed
        limit = f", λ allows {allowed:.3g}" if allowed < 0.9995 else ""
        return f"{network.gaining:+.1g} in the last tenth{limit}"


@dataclass(frozen=True)
class OnTheMargin(AboveBound):
    """Every input comes to be on the margin: the least margin is above `bound` of the largest.

    One ratio per run, of the least margin over all inputs to the largest, with the weights of the
    end. At a maximum margin it is 1 [TH Lemmas 7.4, 7.6].
    """

    bound: float = 0.9
    activation = "power"
    quantity = "least over largest margin of an input, the weakest task's mean"
    wanted = "watched a margin whose maximum is known"

    def _counts(self, network: TrainedNeurons) -> bool:
        return network.watched

    def _of(self, network: TrainedNeurons) -> float:
        return float(network.input_margins.min() / network.input_margins.max())

    def _say(self, network: TrainedNeurons) -> str:
        low, high = network.input_margins.min(), network.input_margins.max()
        return f"from {low:.3f} to {high:.3f} γ*"


QUANTITY: dict[Trait, str] = {
    "one feature": "u, v and w in one feature",
    "phases": f"θ_u + θ_v = θ_w within {PHASE}",
    "amplitudes": f"‖u‖, ‖v‖ and ‖w‖ within {100 * SIZE:g} %",
    "support": f"{100 * ON_SUPPORT:g} % of ‖u‖² on S",
    "sizes": f"every |u_j| on S within {100 * SIZE:g} % of ‖w‖",
    "signs": "w along ±(1, −1) and the sign of Π u_j",
}


By = Literal["number", "norm"]


@dataclass(frozen=True)
class NeuronsShare(AboveBound):
    r"""More than `bound` of the neurons have a trait, on every task.

    By number all neurons count alike, by norm each by its share of
    :math:`\|\theta\|_{2,\nu}^\nu`. The remark says how many have it in the first run, of all and of
    those that carry 99 % of the norm.
    """

    trait: Trait
    by: By = "norm"
    bound: float = 0.9
    activation = "power"

    @property
    def quantity(self) -> str:
        """What the estimate measures."""
        return f"share of neurons, by {self.by}, with {QUANTITY[self.trait]}"

    @property
    def wanted(self) -> str:
        """What a run must have to count."""
        return f"has neurons of which the trait «{self.trait}» can be asked"

    def _counts(self, network: TrainedNeurons) -> bool:
        if self.trait == "phases":
            return network.on_cycle
        return network.on_group == (self.trait in ("one feature", "amplitudes"))

    def _of(self, network: TrainedNeurons) -> float:
        has = network.has(self.trait)
        return float(has.mean() if self.by == "number" else network.weight[has].sum())

    def _say(self, network: TrainedNeurons) -> str:
        has, large = network.has(self.trait), network.large
        return f"{has.sum()} of {len(has)} neurons, {(has & large).sum()} of {large.sum()} large"


@dataclass(frozen=True)
class PowerNear(AboveBound):
    """More than `bound` of the neurons have a maximum normalised power of u between two ends.

    By number. The remark has the mean and the ends of the middle 98 %, of the first run.
    """

    low: float
    high: float
    bound: float = 0.9
    activation: str | None = "relu"
    wanted = "is on a group"

    @property
    def quantity(self) -> str:
        """What the estimate measures."""
        return (
            f"share of neurons whose maximum normalised power of u is from {self.low:g} to "
            f"{self.high:g}"
        )

    def _of(self, network: TrainedNeurons) -> float:
        power = network.shares[0]
        return float(((self.low <= power) & (power <= self.high)).mean())

    def _say(self, network: TrainedNeurons) -> str:
        low, high = np.quantile(network.shares[0], [0.01, 0.99])
        return f"mean {network.shares[0].mean():.3f}, {low:.3f} to {high:.3f}"


@dataclass(frozen=True)
class TrainedBeatDense(AboveBound):
    """Trained networks have larger margins than the dense one: γ/γ* less its own, on every task."""

    bound: float = 0.0
    activation = None
    quantity = "γ/γ* less the dense network's, the weakest task's mean"
    wanted = "watched its margin on addition modulo an odd p"
    most = math.inf

    def _counts(self, network: TrainedNeurons) -> bool:
        return network.on_cycle and network.group.order % 2 == 1 and network.watched

    def _of(self, network: TrainedNeurons) -> float:
        return float(network.ratios[-1]) - dense_ratio(network.group.order)
