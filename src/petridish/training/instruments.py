"""The instruments of the package, by name."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from petridish.choices import describe
from petridish.errors import UserError, check_one_of, nearest
from petridish.models import DisjointPolyNet, Homogeneous
from petridish.tasks import Finite, GroupProduct, HasDirections
from petridish.tasks.base import OnSupport
from petridish.training.attention import AttentionMap, BackAttention, StrategyLoss
from petridish.training.cls_attention import ClsAttention, ClsAttentionMap
from petridish.training.effective_positions import (
    EffectivePositions,
    EvenOdd,
    PeakRatio,
    TokenSpread,
)
from petridish.training.induction_heads import (
    DiagonalShare,
    KeyMatrix,
    LossByPosition,
    PositionShare,
    SuccessorAttention,
)
from petridish.training.numerics import with_floats
from petridish.training.population_gradient import (
    first_gradient,
    first_layer,
    first_weights,
    relevant,
    relevant_inputs,
)
from petridish.training.probes import CentreCosine, LinearProbe, PatternRatio
from petridish.training.readings import Instrument, Reading
from petridish.training.weight_probes import (
    FilterWeights,
    LargestClass,
    OpenMargins,
    PatternGradient,
    RelativeMovement,
    WeightClusters,
)
from petridish.values import Gone

if TYPE_CHECKING:
    from torch import Tensor

    from petridish.training.spec import RunSpec

MOST_INPUTS = 2**18  # of a task whose margin is computed: it takes all inputs


@dataclass(frozen=True)
class Movement(Instrument):
    """‖θ_t − θ_0‖_∞ over all parameters, or over those that a pattern names."""

    name: ClassVar[str] = "movement"
    short: ClassVar[str] = "movement"

    of: str = "*"

    @property
    def label(self) -> str:
        """`movement`, with the pattern if there is one."""
        return "movement" if self.of == "*" else f"movement {self.of}"

    def check(self, spec: RunSpec) -> None:
        """Refuse a pattern that fits nothing."""
        parameters = spec.parameters
        if not any(p.fits(self.of) for p in parameters):
            names = ", ".join(p.name for p in parameters)
            raise UserError(
                f"Movement: the pattern {self.of!r} fits no parameter of this model. It has: "
                f"{names}."
            )

    def read(self, reading: Reading) -> float:
        """Return the largest change."""
        named = {p.name for p in reading.spec.parameters if p.fits(self.of)}
        return max(
            float(np.abs(now - reading.start[name]).max(initial=0))
            for name, now in reading.now.items()
            if name in named
        )


@dataclass(frozen=True)
class FirstLayerMovement(Instrument):
    """HP's ρ = ‖W_t − W_0‖_∞ over the weights of the first layer [HP §5, App. B.3.3]."""

    name: ClassVar[str] = "first_layer_movement"
    short: ClassVar[str] = "first_layer_movement"

    def read(self, reading: Reading) -> float:
        """Return the largest change."""
        return float(
            np.abs(first_weights(reading) - next(iter(reading.start.values()))).max(initial=0)
        )


@dataclass(frozen=True)
class NeuronSize(Instrument):
    """The largest ‖w_j‖₂ of the first layer's neurons."""

    name: ClassVar[str] = "neuron_norm"
    short: ClassVar[str] = "neuron_norm"

    def read(self, reading: Reading) -> float:
        """Return the largest norm."""
        rows = first_weights(reading).astype(np.float64)
        return float(np.linalg.norm(rows.reshape(len(rows), -1), axis=1).max())


class _FirstLayer(Instrument):
    """What is read off the weights of a first layer with one column per input."""

    def check(self, spec: RunSpec) -> None:
        """Refuse a model without such a layer."""
        first, n_inputs = spec.parameters[0], spec.domain.n_inputs
        blocks = isinstance(spec.model, DisjointPolyNet)
        if not blocks and (len(first.shape) != 2 or first.shape[1] != n_inputs):
            raise UserError(
                f"The instrument {self.name} reads the first layer's weights, one column per "
                f"input, and the first parameter of {describe(spec.model)}, {first.name}, has the "
                f"shape {first.shape} for {n_inputs} inputs. Leave the instrument out."
            )


class _LargestWeight(_FirstLayer):
    """The largest |w_ji| of the first layer over some of the inputs i."""

    @abstractmethod
    def columns(self, reading: Reading) -> NDArray[np.bool_]:
        """Return which inputs count."""

    def read(self, reading: Reading) -> float:
        """Return the largest weight."""
        return float(np.abs(first_layer(reading)[:, self.columns(reading)]).max(initial=0))


@dataclass(frozen=True)
class RelevantWeight(_LargestWeight):
    """The largest |w_ji| of the first layer over the relevant inputs i ∈ S."""

    name: ClassVar[str] = "relevant_weight"
    short: ClassVar[str] = "relevant_weight"

    def columns(self, reading: Reading) -> NDArray[np.bool_]:
        """Return S."""
        return relevant(reading)


@dataclass(frozen=True)
class IrrelevantWeight(_LargestWeight):
    """The largest |w_ji| of the first layer over the other inputs i ∉ S."""

    name: ClassVar[str] = "irrelevant_weight"
    short: ClassVar[str] = "irrelevant_weight"

    def columns(self, reading: Reading) -> NDArray[np.bool_]:
        """Return all but S."""
        return ~relevant(reading)


@dataclass(frozen=True)
class RelevantLead(_FirstLayer):
    """max_j (min_{i ∈ S} |w_ji| − max_{i ∉ S} |w_ji|) over the neurons j of the first layer.

    Above 0 once some neuron has relevant weights that are all larger than all its irrelevant ones.
    """

    name: ClassVar[str] = "relevant_lead"
    short: ClassVar[str] = "relevant_lead"

    def read(self, reading: Reading) -> float:
        """Return the lead of the best neuron."""
        size, chosen = np.abs(first_layer(reading)), relevant(reading)
        others = size[:, ~chosen].max(axis=1, initial=0)
        return float((size[:, chosen].min(axis=1) - others).max())


@dataclass(frozen=True)
class FirstLayerWeights(_FirstLayer):
    """The weights of the first layer, kept as an array (neuron, input), relevant inputs first.

    Attributes
    ----------
    at : tuple of int, optional
        Steps at which it is read, if not at every evaluation: the array of a wide layer is large.
    """

    name: ClassVar[str] = "first_layer_weights"
    short: ClassVar[str] = "first_layer_weights"

    at: tuple[int, ...] | None = None

    def read(self, reading: Reading) -> NDArray[np.float64]:
        """Return the weights."""
        order = np.argsort(~relevant(reading), kind="stable")
        return first_layer(reading)[:, order].astype(np.float64)


@dataclass(frozen=True)
class FourierGap(Instrument):
    """Γ = max_{i ∈ S} |g_i| − max_{i ∉ S} |g_i|, the largest of the first layer's neurons."""

    name: ClassVar[str] = "fourier_gap"
    short: ClassVar[str] = "fourier_gap"

    def read(self, reading: Reading) -> float:
        """Return the gap; NaN where there is no population gradient."""
        from petridish.theory.fourier import fourier_gap

        gradient = reading.once(first_gradient)
        if gradient is None:
            return math.nan
        return float(fourier_gap(gradient, np.flatnonzero(relevant(reading)).tolist()).max())


@dataclass(frozen=True)
class PopulationGradient(Instrument):
    """max_{i ∈ S} |g_i|, the largest of the first layer's neurons."""

    name: ClassVar[str] = "population_gradient"
    short: ClassVar[str] = "population_gradient"

    def read(self, reading: Reading) -> float:
        """Return the largest entry; NaN where there is no population gradient."""
        gradient = reading.once(first_gradient)
        return math.nan if gradient is None else float(np.abs(gradient[:, relevant(reading)]).max())


@dataclass(frozen=True)
class NormalisedMargin(Instrument):
    r"""min (f(x)[y] − max_{y' ≠ y} f(x)[y']) / ‖θ‖_{2,ν}^ν over all inputs [TH §7.3].

    ν is the degree of a `Homogeneous` network; NaN for other models and for tasks whose inputs are
    too many. A network with one output, f, has the margin 2 y f: the classes' outputs are ±f.
    """

    name: ClassVar[str] = "normalised_margin"
    short: ClassVar[str] = "normalised_margin"

    def read(self, reading: Reading) -> float:
        """Return the margin in units of the norm."""
        import torch

        from petridish.training.penalties import norm_sum

        spec = reading.spec
        model, task = spec.model, spec.task
        if not isinstance(model, Homogeneous) or not isinstance(task, Finite):
            return math.nan
        if task.n_possible > MOST_INPUTS:
            return math.nan
        x, labels = _every_input(task, spec.seed)
        weights = [torch.from_numpy(np.array(weight))[None] for weight in reading.now.values()]
        n_outputs = weights[-1].shape[1]
        least = math.inf
        for start in range(0, len(labels), 2048):  # pieces that stay in the cache
            piece = x[start : start + 2048]
            given = with_floats(piece, weights[0].dtype)
            outputs = model.forward(weights, given[None])[0]  # (example, output)
            y = labels[start : start + 2048]
            if n_outputs == 1:
                margins = 2 * outputs[:, 0] * (1 - 2 * y)
            else:
                right = outputs.gather(1, y[:, None])
                margins = (right - outputs.scatter(1, y[:, None], -math.inf)).amin(dim=1)
            least = min(least, float(margins.min()))
        return least / float(norm_sum(spec.parameters, weights, order=2, power=model.degree))


@dataclass(frozen=True)
class FeaturePower(Instrument):
    """The mean over neurons of the largest share of one frequency or representation in u.

    NaN where the task is no group's composition [TH Fig. 7.4].
    """

    name: ClassVar[str] = "feature_power"
    short: ClassVar[str] = "feature_power"

    def read(self, reading: Reading) -> float:
        """Return the mean share."""
        task = reading.spec.task
        if not isinstance(task, GroupProduct):
            return math.nan
        from petridish.groups.spectra import largest_share

        first = first_weights(reading)[:, : task.order]
        return float(np.mean(largest_share(task.structure(), first)))


@dataclass(frozen=True)
class DirectionCosine(Instrument):
    """The largest cosine of a neuron's first-layer weights with the sum of the task's directions.

    The paper's is max_i cos(w_i, Σ_j M_j) [FL E.1]; with `sign="either"`, that of ±Σ_j M_j. On bits
    the directions are those of the relevant ones. A neuron whose weights are all 0 has no cosine;
    NaN where no neuron has one, or the task has no directions. Lengths are computed in float64:
    weights of 1e-9 are as good as others.
    """

    name: ClassVar[str] = "direction_cosine"
    short: ClassVar[str] = "direction_cosine"

    sign: Literal["plus", "either"] = "plus"

    def __post_init__(self) -> None:
        check_one_of("DirectionCosine", ("plus", "either"), sign=self.sign)

    @property
    def label(self) -> str:
        """`direction_cosine`, with the sign if either counts."""
        return "direction_cosine" if self.sign == "plus" else "direction_cosine either"

    def read(self, reading: Reading) -> float:
        """Return the largest cosine."""
        target = reading.shared.once(_summed_directions)
        rows = first_layer(reading).astype(np.float64)
        if target is None or rows.ndim != 2 or rows.shape[1] != len(target):
            return math.nan
        lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(target)
        cosines = (rows @ target)[lengths > 0] / lengths[lengths > 0]
        if self.sign == "either":
            cosines = np.abs(cosines)
        return float(cosines.max()) if len(cosines) else math.nan


def _summed_directions(spec: RunSpec) -> NDArray[np.float64] | None:
    """Return the sum of the directions on which the labels of a run depend, if there are such."""
    task = spec.task
    if isinstance(task, HasDirections):
        summed: NDArray[np.float64] = task.directions([spec.seed])[0].sum(axis=0)
        return summed
    return relevant_inputs(spec).astype(np.float64) if isinstance(task, OnSupport) else None


INSTRUMENTS: dict[str, type[Instrument]] = {
    kind.name: kind
    for kind in (
        *(Movement, NeuronSize, RelevantWeight, IrrelevantWeight, FirstLayerMovement),
        *(RelevantLead, FirstLayerWeights, FourierGap, PopulationGradient),
        *(NormalisedMargin, FeaturePower),
        *(DirectionCosine, LinearProbe, PatternRatio, CentreCosine),
        *(WeightClusters, PatternGradient, OpenMargins, RelativeMovement, LargestClass),
        FilterWeights,
        *(BackAttention, AttentionMap, StrategyLoss, ClsAttention, ClsAttentionMap),
        *(SuccessorAttention, EffectivePositions, EvenOdd, TokenSpread, PositionShare),
        *(DiagonalShare, LossByPosition, PeakRatio, KeyMatrix),
    )
}


def instrument(given: Instrument | str) -> Instrument:
    """Return the instrument, or the one of that name."""
    if isinstance(given, str):
        if given not in INSTRUMENTS:
            raise UserError(
                f"Evaluation: there is no instrument called {given!r}. "
                f"{nearest(given, INSTRUMENTS)}"
            )
        return INSTRUMENTS[given]()
    if not isinstance(given, Instrument | Gone):
        raise UserError(
            f"Evaluation: instruments has {given!r}, which is no Instrument. Give for example "
            "instruments=(Movement(),), or a name."
        )
    return given  # a value of a missing class is kept, and does not run


@lru_cache(maxsize=2)
def _every_input(task: Finite, seed: int) -> tuple[Tensor, Tensor]:
    """Return all inputs of a run, one-hot ones by their places, and their classes."""
    import torch

    examples = task.at([seed], np.arange(task.n_possible)[None])
    inputs = examples.x if examples.hot is None else examples.hot
    return torch.from_numpy(inputs[0]), torch.from_numpy(examples.labels[0].astype(np.int64))
