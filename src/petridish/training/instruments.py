"""Instruments: numbers and small arrays read off a run at its evaluations, if its spec asks."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from petridish.choices import describe
from petridish.errors import UserError, nearest
from petridish.models import (
    ACTIVATIONS,
    MLP,
    Activation,
    DisjointPolyNet,
    Homogeneous,
    Identity,
    Oscillating,
    PolyNet,
    Power,
    Sine,
)
from petridish.models.base import Weights
from petridish.seeds import Streams, unpack_bits
from petridish.tasks import Examples, Finite, GroupProduct, Task
from petridish.tasks.base import OnSupport
from petridish.values import Gone

if TYPE_CHECKING:
    from torch import Tensor, nn

    from petridish.theory.fourier import Derivative
    from petridish.training.record import Curves
    from petridish.training.spec import RunSpec

Floats = NDArray[np.float64]

EXACT_BITS = 20  # up to here the inputs are enumerated
MOST_INPUTS = 2**18  # of a margin, which takes all
SAMPLED_INPUTS = 2**16  # beyond, this many stand for all


@dataclass(frozen=True)
class Reading:
    """What an instrument sees of one run.

    Attributes
    ----------
    spec : RunSpec
        What the run is.
    step : int
        Steps taken.
    start, now : mapping of str to array
        The parameters by name, at the start and now, in the module's order.
    buffers : mapping of str to array
        What the module keeps beside its parameters, such as running means.
    """

    spec: RunSpec
    step: int
    start: Mapping[str, Weights]
    now: Mapping[str, Weights]
    buffers: Mapping[str, NDArray[Any]]
    shared: Shared

    @cached_property
    def module(self) -> nn.Module:
        """The plain module with its parameters of now, in evaluation mode."""
        import torch

        state = {**self.now, **self.buffers}
        tensors = {name: torch.from_numpy(np.array(value)) for name, value in state.items()}
        self.shared.module.load_state_dict(tensors, strict=False)
        return self.shared.module.eval()  # another instrument may have left it in training

    def sample(self, on: str = "test") -> Examples:
        """Return a sample of the run: "test", "train" or one of its evaluation's."""
        return self.shared.sample(on)

    def inputs(self, on: str = "test", n: int | None = None) -> Tensor:
        """Return the first `n` inputs of a sample as the module takes them."""
        import torch

        x = torch.from_numpy(self.sample(on).x[0, :n])
        precision = getattr(torch, self.spec.training.precision)
        return x.to(precision) if x.is_floating_point() else x

    def outputs(self, on: str = "test", n: int | None = None) -> Tensor:
        """Return the module's outputs on the first `n` examples of a sample."""
        import torch

        with torch.no_grad():
            found: Tensor = self.module(self.inputs(on, n))
        return found

    def capture(self, part: str, on: str = "test", n: int = 64) -> Tensor:
        """Return what the named part of the module puts out on the first `n` examples.

        A part is a submodule, by the name that `named_modules` has for it; a model that wants to be
        looked into lets what is to be seen pass through one, such as `self.pattern = Identity()`.
        """
        parts = dict(self.module.named_modules())
        if part not in parts:
            known = [name for name in parts if name]
            raise UserError(
                f"The model {describe(self.spec.model)} has no part called {part!r}. "
                f"{nearest(part, known)}"
            )
        seen: list[Tensor] = []
        hook = parts[part].register_forward_hook(lambda _module, _given, found: seen.append(found))
        try:
            self.outputs(on, n)
        finally:
            hook.remove()
        if not seen:
            raise UserError(
                f"The part {part!r} of the model {describe(self.spec.model)} was not used on the "
                f"sample {on!r}. Name another part."
            )
        return seen[-1].detach()

    @cached_property
    def first_layer(self) -> Weights:
        """Weights of the first layer on all inputs; those of a block are 0 on the others."""
        weights = first_of(self.now)
        if not isinstance(self.spec.model, DisjointPolyNet):
            return weights
        k, size = weights.shape
        rows = np.zeros((k, k, size), weights.dtype)
        rows[range(k), range(k)] = weights
        return rows.reshape(k, k * size)

    @property
    def relevant(self) -> NDArray[np.bool_]:
        """Which inputs the labels depend on."""
        return self.shared.relevant

    @cached_property
    def gradient(self) -> Floats | None:
        """The first layer's population gradient, shape (neuron, input); see `first_gradient`."""
        return first_gradient(self)


def first_of(weights: Mapping[str, Weights]) -> Weights:
    """Return the first parameter: of this package's models, the weights of the first layer."""
    return next(iter(weights.values()))


class Shared:
    """What all readings of one run share: its module and its samples, made when first asked for."""

    def __init__(self, spec: RunSpec) -> None:
        self.spec = spec
        self._samples: dict[str, Examples] = {}

    @cached_property
    def module(self) -> nn.Module:
        """A module of the run's model, in evaluation mode and in the run's precision."""
        import torch

        from petridish.models.parameters import build

        spec = self.spec
        module = build(spec.model, spec.domain, spec.n_outputs, spec.seed)
        return module.to(getattr(torch, spec.training.precision)).eval()

    def sample(self, on: str) -> Examples:
        """Draw a sample once."""
        from petridish.training.data import sample_examples

        if on not in self._samples:
            self._samples[on] = sample_examples([self.spec], on)
        return self._samples[on]

    @cached_property
    def relevant(self) -> NDArray[np.bool_]:
        """Which inputs the labels depend on."""
        return relevant_inputs(self.spec.task, self.spec.seed)

    @cached_property
    def parity(self) -> bool:
        """Whether the labels are the product of the relevant signs."""
        return is_product(self.spec.task)


class Instrument(ABC):
    """Any number or small array that is read off a run, at every evaluation or at its own steps.

    A new instrument is a frozen dataclass that inherits from this class, with a `name` and the
    method `read`. A mean over the examples of a sample is a `Metric`: engines measure those faster.
    """

    name: ClassVar[str]
    at: tuple[int, ...] | None = None
    """The steps at which it is read, if not at every evaluation; a field of this name sets them."""

    @property
    def label(self) -> str:
        """The name of its curve, or array."""
        return self.name

    def check(self, spec: RunSpec) -> None:  # noqa: B027 - most instruments fit every run
        """Refuse a run that it cannot read."""

    @abstractmethod
    def read(self, reading: Reading) -> float | NDArray[Any]:
        """Return a number, or an array of the same shape at every reading."""


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
        return float(np.abs(first_of(reading.now) - first_of(reading.start)).max(initial=0))


@dataclass(frozen=True)
class NeuronSize(Instrument):
    """The largest ‖w_j‖₂ of the first layer's neurons."""

    name: ClassVar[str] = "neuron_norm"
    short: ClassVar[str] = "neuron_norm"

    def read(self, reading: Reading) -> float:
        """Return the largest norm."""
        rows = first_of(reading.now).astype(np.float64)
        return float(np.linalg.norm(rows.reshape(len(rows), -1), axis=1).max())


class _OfInputs(Instrument):
    """An instrument that goes by the columns of the first layer's weights, one per input."""

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


@dataclass(frozen=True)
class RelevantWeight(_OfInputs):
    """The largest |w_ji| of the first layer over the relevant inputs i ∈ S."""

    name: ClassVar[str] = "relevant_weight"
    short: ClassVar[str] = "relevant_weight"

    def read(self, reading: Reading) -> float:
        """Return the largest weight."""
        return float(np.abs(reading.first_layer[:, reading.relevant]).max(initial=0))


@dataclass(frozen=True)
class IrrelevantWeight(_OfInputs):
    """The largest |w_ji| of the first layer over the other inputs i ∉ S."""

    name: ClassVar[str] = "irrelevant_weight"
    short: ClassVar[str] = "irrelevant_weight"

    def read(self, reading: Reading) -> float:
        """Return the largest weight."""
        return float(np.abs(reading.first_layer[:, ~reading.relevant]).max(initial=0))


@dataclass(frozen=True)
class FourierGap(Instrument):
    """Γ = max_{i ∈ S} |g_i| − max_{i ∉ S} |g_i|, the largest of the first layer's neurons."""

    name: ClassVar[str] = "fourier_gap"
    short: ClassVar[str] = "fourier_gap"

    def read(self, reading: Reading) -> float:
        """Return the gap; NaN where there is no population gradient."""
        from petridish.theory.fourier import fourier_gap

        if reading.gradient is None:
            return math.nan
        return float(fourier_gap(reading.gradient, np.flatnonzero(reading.relevant).tolist()).max())


@dataclass(frozen=True)
class PopulationGradient(Instrument):
    """max_{i ∈ S} |g_i|, the largest of the first layer's neurons."""

    name: ClassVar[str] = "population_gradient"
    short: ClassVar[str] = "population_gradient"

    def read(self, reading: Reading) -> float:
        """Return the largest entry; NaN where there is no population gradient."""
        if reading.gradient is None:
            return math.nan
        return float(np.abs(reading.gradient[:, reading.relevant]).max())


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
            given = piece if not piece.is_floating_point() else piece.to(weights[0].dtype)
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

        first = first_of(reading.now)[:, : task.order]
        return float(np.mean(largest_share(task.structure(), first)))


INSTRUMENTS: dict[str, type[Instrument]] = {
    kind.name: kind
    for kind in (
        *(Movement, NeuronSize, RelevantWeight, IrrelevantWeight, FirstLayerMovement),
        *(FourierGap, PopulationGradient, NormalisedMargin, FeaturePower),
    )
}


def instrument(given: Instrument | str) -> Instrument:
    """Return an instrument, or the one that a name stands for."""
    if isinstance(given, str):
        if given not in INSTRUMENTS:
            raise UserError(
                f"Evaluation: there is no instrument called {given!r}. "
                f"{nearest(given, INSTRUMENTS)}"
            )
        return INSTRUMENTS[given]()
    if not isinstance(given, Instrument | Gone):
        raise UserError(
            f"Evaluation: instruments has {given!r}, which is no Instrument. Give such as "
            "instruments=(Movement(),), or a name."
        )
    return given  # one whose class is gone is kept, and does not run


def first_gradient(reading: Reading) -> Floats | None:
    r"""Give g_ji = E[y x_i σ'(w_j · x + b_j)] of the first layer's neurons j [HP App. B.3.1].

    The expectation is over all inputs and their true labels. It is exact

    - in closed form for sines, for powers and oscillating polynomials of degree at most |S|, and
      for PolyNets with as many factors as relevant inputs, whose g is E[y ∂f/∂w_ji];
    - by enumeration for every other activation up to 20 inputs.

    Beyond 20 inputs it is a mean over 2^16 inputs, the run's own and the same at every look, from
    its stream "instruments": an entry's standard error is then at most max |σ'| / 256.

    None where there is nothing to give: labels other than a parity's, a PolyNet with another number
    of factors, other models, weights that are no longer finite.
    """
    from petridish.theory.fourier import population_gradient_by_enumeration, sampled_gradient
    from petridish.theory.hidden.fourier_gaps import product_gradient

    model, support = reading.spec.model, np.flatnonzero(reading.relevant).tolist()
    arrays = list(reading.now.values())
    if not reading.shared.parity or not all(np.isfinite(weight).all() for weight in arrays[:2]):
        return None
    weights = reading.first_layer.astype(np.float64)
    if isinstance(model, PolyNet | DisjointPolyNet):
        if model.k != len(support):
            return None
        return product_gradient(weights, support)
    if not isinstance(model, MLP):
        return None
    biases = arrays[1].astype(np.float64)
    if (known := _closed_form(model.activation, weights, biases, support)) is not None:
        return known
    derivative = _derivative(model.activation)
    if weights.shape[1] <= EXACT_BITS:
        return population_gradient_by_enumeration(derivative, weights, biases, support)
    x = _sampled_inputs(reading.spec.seed, weights.shape[1])
    return sampled_gradient(derivative, weights, biases, support, x)[0]


def _closed_form(
    activation: Activation, weights: Floats, biases: Floats, support: list[int]
) -> Floats | None:
    """Give the gradient of sines and of polynomials of low degree; None for others."""
    from petridish.theory.hidden.fourier_gaps import polynomial_gradient, sine_gradient

    if type(activation) is not ACTIVATIONS.get(activation.name):  # a user's own, whatever its base
        return None
    if isinstance(activation, Sine):
        rate, phase = math.pi / 2 * activation.scale, math.pi / 2 * (1 - activation.k)
        return rate * sine_gradient(weights, biases, support, rate=rate, phase=phase)
    if isinstance(activation, Power | Oscillating | Identity):
        degree = 1 if isinstance(activation, Identity) else activation.k
        # The oscillating polynomial's leading coefficient is its last divided difference.
        leading = 1 / math.factorial(degree) if isinstance(activation, Oscillating) else 1.0
        if degree <= len(support):
            return polynomial_gradient(weights, support, degree=degree, leading=leading)
    return None


def _derivative(activation: Activation) -> Derivative:
    """Give σ' in NumPy: written down for this package's activations, by PyTorch for others."""
    from petridish.theory.fourier import DERIVATIVES

    name = activation.name
    if type(activation) is ACTIVATIONS.get(name) and name in DERIVATIVES:
        parts = fields(activation)  # type: ignore[arg-type] # every choice is a dataclass
        chosen = {part.name: getattr(activation, part.name) for part in parts}
        return DERIVATIVES[name](**chosen)

    def slope(z: Floats) -> Floats:
        import torch

        at = torch.from_numpy(z).requires_grad_()
        (found,) = torch.autograd.grad(activation(at).sum(), at)
        return found.numpy()

    return slope


@lru_cache(maxsize=2)
def _sampled_inputs(seed: int, n: int) -> NDArray[np.int8]:
    """Draw the inputs that stand for all: a run reads them at every look."""
    packed = Streams([seed], "instruments").packed(n, 0, SAMPLED_INPUTS)[0]
    return np.int8(1) - np.int8(2) * unpack_bits(packed)[:, :n].astype(np.int8)


@lru_cache(maxsize=2)
def _every_input(task: Finite, seed: int) -> tuple[Tensor, Tensor]:
    """Give all inputs of a run, one-hot ones by their places, and their classes."""
    import torch

    examples = task.at([seed], np.arange(task.n_possible)[None])
    inputs = examples.x if examples.hot is None else examples.hot
    return torch.from_numpy(inputs[0]), torch.from_numpy(examples.labels[0].astype(np.int64))


def relevant_inputs(task: Task, seed: int) -> NDArray[np.bool_]:
    """Say which inputs the labels of a run depend on; all, if the task does not say."""
    n_inputs = task.domain.n_inputs
    if not isinstance(task, OnSupport):
        return np.ones(n_inputs, np.bool_)
    relevant = np.zeros(n_inputs, np.bool_)
    relevant[task.supports([seed])[0]] = True
    return relevant


def is_product(task: Task) -> bool:
    """Say whether a task's label is the product of its relevant signs, from all of their values."""
    if not isinstance(task, OnSupport) or task.n_relevant > EXACT_BITS:
        return False
    settings = np.arange(2**task.n_relevant)[:, None] >> np.arange(task.n_relevant) & 1
    labels = task.evaluate(settings.astype(np.uint8))
    return bool(np.array_equal(labels % 2, settings.sum(axis=1) % 2))


def _read_only(weight: Weights) -> Weights:
    """Return a view that an instrument cannot write to: the run goes on with the array itself."""
    view = np.asarray(weight).view()
    view.flags.writeable = False
    return view


class Gauges:
    """The instruments that a run asks for, with what they compare against and what they found."""

    def __init__(self, spec: RunSpec, start: Sequence[Weights]) -> None:
        self.spec = spec
        self.instruments = spec.evaluation.gauges
        if self.instruments:
            self.names = [parameter.name for parameter in spec.parameters]
            self.start = {
                name: np.array(weight) for name, weight in zip(self.names, start, strict=True)
            }
            self.shared = Shared(spec)

    def read(
        self,
        step: int,
        now: Sequence[Weights],
        into: Curves,
        buffers: Mapping[str, NDArray[Any]] | None = None,
    ) -> None:
        """Append one reading of every instrument that is read at this step."""
        named = {name: _read_only(weight) for name, weight in zip(self.names, now, strict=True)}
        reading = Reading(self.spec, step, self.start, named, buffers or {}, self.shared)
        for each in self.instruments:
            if each.at is None or step in each.at:
                into.append(each.label, each.read(reading))
            else:
                into.skip(each.label)
