"""Initialisations. Each parameter has its own random stream, named after it.

Where a start says «every parameter», scales, which multiply, are left at 1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import isfinite, sqrt
from typing import TYPE_CHECKING, ClassVar, Literal, TypeVar

import numpy as np

from petridish.errors import UserError, check_whole
from petridish.models.base import FitsItself, Init, Model, Parameter, Stacked, Weights
from petridish.seeds import Streams
from petridish.values import LATER

if TYPE_CHECKING:
    from torch import nn

Build = Callable[[], "nn.Module"]
Said = TypeVar("Said")


def init_stream(parameter: Parameter, seeds: Sequence[int]) -> Streams:
    """Give the stream from which the values of `parameter` are drawn."""
    return Streams(seeds, f"init/{parameter.stream}")


def _ones(parameter: Parameter, seeds: Sequence[int]) -> Weights:
    return np.ones((len(seeds), *parameter.shape), np.float32)


def _uniform(parameter: Parameter, seeds: Sequence[int], bound: float) -> Weights:
    if parameter.kind == "scale":
        return _ones(parameter, seeds)
    drawn = init_stream(parameter, seeds).uniforms(0, parameter.size)
    values = (2 * bound * drawn - bound).astype(np.float32)
    return values.reshape(len(seeds), *parameter.shape)


def _normal(parameter: Parameter, seeds: Sequence[int], std: float) -> Weights:
    if parameter.kind == "scale":
        return _ones(parameter, seeds)
    values = (std * init_stream(parameter, seeds).normals(0, parameter.size)).astype(np.float32)
    return values.reshape(len(seeds), *parameter.shape)


def _signs(parameter: Parameter, seeds: Sequence[int], scale: float) -> Weights:
    if parameter.kind == "scale":
        return _ones(parameter, seeds)
    signs = init_stream(parameter, seeds).signs(0, parameter.size)
    values = (np.float32(scale) * signs).astype(np.float32)
    return values.reshape(len(seeds), *parameter.shape)


def _default_bound(parameter: Parameter) -> float:
    return 1 / sqrt(parameter.fan_in)


def _xavier_bound(parameter: Parameter) -> float:
    return sqrt(6 / (parameter.fan_in + parameter.fan_out))


@dataclass(frozen=True)
class Uniform:
    """PyTorch's default: weights and biases uniform on ±1/√fan_in [PF §4.1]."""

    name: ClassVar[str] = "uniform"

    def draw(self, parameters: Sequence[Parameter], seeds: Sequence[int]) -> list[Weights]:
        """Draw every parameter."""
        return [_uniform(p, seeds, _default_bound(p)) for p in parameters]


@dataclass(frozen=True)
class XavierUniform:
    """Weights and biases uniform on ±c, c = √(6 / (fan_in + fan_out)) [HP App. B.4]."""

    name: ClassVar[str] = "xavier"

    def draw(self, parameters: Sequence[Parameter], seeds: Sequence[int]) -> list[Weights]:
        """Draw every parameter."""
        return [_uniform(p, seeds, _xavier_bound(p)) for p in parameters]


@dataclass(frozen=True)
class KaimingGaussian:
    """Weights and biases normal with variance 2 / fan_in [HP App. B.4]."""

    name: ClassVar[str] = "kaiming"

    def draw(self, parameters: Sequence[Parameter], seeds: Sequence[int]) -> list[Weights]:
        """Draw every parameter."""
        return [_normal(p, seeds, sqrt(2 / p.fan_in)) for p in parameters]


@dataclass(frozen=True)
class Bernoulli:
    """Weights and biases ±c with random signs [HP App. B.4].

    The bound c is that of a uniform start: Xavier's, or with "fan_in" 1/√fan_in, as in `Uniform`.
    """

    name: ClassVar[str] = "bernoulli"

    bound: Literal["xavier", "fan_in"] = field(default="xavier", metadata=LATER)

    def __post_init__(self) -> None:
        if self.bound not in ("xavier", "fan_in"):
            raise UserError(f"Bernoulli: bound={self.bound!r}. Give 'xavier' or 'fan_in'.")

    def draw(self, parameters: Sequence[Parameter], seeds: Sequence[int]) -> list[Weights]:
        """Draw every parameter."""
        of = _xavier_bound if self.bound == "xavier" else _default_bound
        return [_signs(p, seeds, of(p)) for p in parameters]


@dataclass(frozen=True)
class Sparse:
    """Each neuron of the first layer starts with s weights 1 and the rest 0 [PF §3.2.1].

    All other parameters, the first layer's biases among them, start as in `Uniform`. The weights
    that start at 0 are free to move.
    """

    name: ClassVar[str] = "sparse"

    s: int

    def __post_init__(self) -> None:
        check_whole("Sparse", 1, s=self.s)

    def draw(self, parameters: Sequence[Parameter], seeds: Sequence[int]) -> list[Weights]:
        """Draw every parameter; the first weights by choosing s inputs for each neuron."""
        first = parameters[0]
        if len(first.shape) != 2:
            raise UserError(
                f"Sparse: it chooses inputs for the neurons of a first layer, and the parameter "
                f"{first.name} has the shape {first.shape}. Give a model whose first parameter is "
                "a layer's weights, such as an MLP."
            )
        if self.s > first.fan_in:
            raise UserError(
                f"Sparse: s={self.s} weights a neuron, but there are only {first.fan_in} inputs. "
                f"Give s from 1 to {first.fan_in}."
            )
        chosen = init_stream(first, seeds).subsets(first.fan_in, self.s, 0, first.fan_out)
        weights = np.zeros((len(seeds), first.fan_out, first.fan_in), np.float32)
        np.put_along_axis(weights, chosen, np.float32(1), axis=-1)
        return [weights, *Uniform().draw(parameters[1:], seeds)]


@dataclass(frozen=True)
class Paired:
    """Neurons in pairs that cancel: equal weights and biases, opposite outputs [PF App. B.2].

    Neuron i + r/2 of the last hidden layer is neuron i with the opposite sign in the output, and
    the output's bias, if it has one, is 0, so that the network starts as the zero function. `base`
    draws the rest.
    """

    name: ClassVar[str] = "paired"

    base: Init = Uniform()

    def draw(self, parameters: Sequence[Parameter], seeds: Sequence[int]) -> list[Weights]:
        """Draw by `base`, then copy one half of the last hidden layer onto the other."""
        return _paired("Paired", parameters, self.base.draw(parameters, seeds))


def _paired(name: str, parameters: Sequence[Parameter], drawn: list[Weights]) -> list[Weights]:
    """Make the second half of the last hidden layer the opposite of the first."""
    output = _output(name, parameters)
    width = parameters[output].fan_in
    if width % 2:
        raise UserError(
            f"{name}: the last hidden layer has {width} neurons, which cannot be paired. "
            f"Give an even width, such as {width + 1}."
        )
    half = width // 2
    for hidden in drawn[output - 2 : output]:  # the last hidden layer's weights and biases
        hidden[:, half:] = hidden[:, :half]
    drawn[output][..., half:] = -drawn[output][..., :half]
    for bias in drawn[output + 1 :]:
        bias[:] = 0
    return drawn


def _output(name: str, parameters: Sequence[Parameter]) -> int:
    """Find the output weights of an MLP, with or without a bias behind them."""
    layered = all(p.kind == ("weight", "bias")[i % 2] for i, p in enumerate(parameters))
    if not layered or parameters[-1].layer == 0:
        raise UserError(
            f"{name}: pairs of neurons cancel in the output layer of an MLP, and this model has "
            "none. Give an MLP with the output 'affine' or 'linear'."
        )
    return 2 * parameters[-1].layer


@dataclass(frozen=True)
class OverSparse:
    """The start of Theorem 4's algorithm for parities of k bits [PF App. B.2.2].

    Pairs of neurons that cancel; each has s weights 1 and the rest 0, a bias drawn from
    β_i = (−k + 2i + 1/16) / 2k, and an output weight ±1. The text draws i from 1 … k/2 − 1, with
    which no second layer represents the parity; i = 0 … k/2 − 1 does (docs/theory.md).
    """

    name: ClassVar[str] = "over_sparse"

    s: int
    k: int

    def __post_init__(self) -> None:
        check_whole("OverSparse", 1, s=self.s)
        if self.k < 2 or self.k % 2:
            raise UserError(f"OverSparse: k={self.k}. Give an even number of at least 2.")

    def draw(self, parameters: Sequence[Parameter], seeds: Sequence[int]) -> list[Weights]:
        """Draw weights, biases and signs; then one half of the neurons cancels the other."""
        drawn = Sparse(self.s).draw(parameters, seeds)
        place = _output("OverSparse", parameters)
        biases, outputs = parameters[1], parameters[place]
        i = init_stream(biases, seeds).integers(self.k // 2, 0, biases.size)
        drawn[1] = ((-self.k + 2 * i + 1 / 16) / (2 * self.k)).astype(np.float32)
        drawn[place] = _signs(outputs, seeds, 1.0)
        return _paired("OverSparse", parameters, drawn)


@dataclass(frozen=True)
class SymmetricSigns:
    """The start of Theorem 5.5 for parities of k bits, k even [HP App. B.2.1].

    Pairs of neurons that cancel; every weight is ±1, and hidden biases are uniform on the 2k − 1
    multiples of 1/k between −1 and 1. On an odd number of inputs |w · x| ≥ 1, so that such a bias
    never decides whether a neuron fires: its gradient is that of the majority.

    The source writes the biases as {−1 + 1/k, …, 1 − 1/k} without their spacing. Its proof wants
    neurons with b_i = −1/2 + (i + 1)/k, multiples of 1/k for even k, and counts about 2k values:
    the spacing is 1/k. That proof takes i = 1 … k, which is one neuron too few (their sum is linear
    between k − 2 and k bits of +1); i = 0 … k is right, and within the grid for k ≥ 4. For k = 2
    the mirror images, which the pairs provide, make up for i = k.
    """

    name: ClassVar[str] = "symmetric_signs"

    k: int

    def __post_init__(self) -> None:
        check_whole("SymmetricSigns", 2, k=self.k)
        if self.k % 2:
            raise UserError(f"SymmetricSigns: k={self.k}. Give an even number of at least 2.")

    def draw(self, parameters: Sequence[Parameter], seeds: Sequence[int]) -> list[Weights]:
        """Draw signs and biases; then one half of the neurons cancels the other."""
        return _paired("SymmetricSigns", parameters, [self._one(p, seeds) for p in parameters])

    def _one(self, parameter: Parameter, seeds: Sequence[int]) -> Weights:
        if parameter.kind == "weight":
            return _signs(parameter, seeds, 1.0)
        steps = init_stream(parameter, seeds).integers(2 * self.k - 1, 0, parameter.size)
        return ((steps - (self.k - 1)) / self.k).astype(np.float32)


@dataclass(frozen=True)
class Constant:
    """Every parameter equal to `value`: with 1, HP's all-ones start [HP §4.2]."""

    name: ClassVar[str] = "constant"

    value: float = 1.0

    def __post_init__(self) -> None:
        _make_finite(self, "value")

    def draw(self, parameters: Sequence[Parameter], seeds: Sequence[int]) -> list[Weights]:
        """Fill every parameter."""
        return [np.full((len(seeds), *p.shape), self.value, np.float32) for p in parameters]


@dataclass(frozen=True)
class Normal:
    """Every parameter normal with the standard deviation `std`, whatever the layers' sizes."""

    name: ClassVar[str] = "normal"

    std: float = 1.0

    def __post_init__(self) -> None:
        _make_finite(self, "std", least=0)

    def draw(self, parameters: Sequence[Parameter], seeds: Sequence[int]) -> list[Weights]:
        """Draw every parameter."""
        return [_normal(p, seeds, self.std) for p in parameters]


@dataclass(frozen=True)
class Signs:
    """Every parameter ±`scale` with random signs, whatever the layers' sizes."""

    name: ClassVar[str] = "signs"

    scale: float = 1.0

    def __post_init__(self) -> None:
        _make_finite(self, "scale")

    def draw(self, parameters: Sequence[Parameter], seeds: Sequence[int]) -> list[Weights]:
        """Draw every parameter."""
        return [_signs(p, seeds, self.scale) for p in parameters]


@dataclass(frozen=True)
class Seeded:
    """What `base` draws at `seed`, whatever the run's own seed [HP §3.2].

    Runs that share their start differ in their data alone: what they have in common is due to the
    initialisation.
    """

    name: ClassVar[str] = "seeded"

    base: Init
    seed: int

    def __post_init__(self) -> None:
        check_whole("Seeded", 0, seed=self.seed)

    def draw(self, parameters: Sequence[Parameter], seeds: Sequence[int]) -> list[Weights]:
        """Draw once, and copy for every run."""
        drawn = self.base.draw(parameters, [self.seed] if seeds else [])
        return [values.repeat(len(seeds), axis=0) for values in drawn]


@dataclass(frozen=True)
class TangentStart:
    """θ = 0, with θ_0 as `base` would start the network that is linearised: see `Tangent`."""

    name: ClassVar[str] = "tangent_start"

    base: Init = Uniform()

    def draw(self, parameters: Sequence[Parameter], seeds: Sequence[int]) -> list[Weights]:
        """Draw θ_0 under the names of the network's own parameters, and leave θ at 0."""
        half = len(parameters) // 2
        trained, frozen = parameters[:half], parameters[half:]
        if [p.shape for p in trained] != [p.shape for p in frozen]:
            raise UserError(
                "TangentStart: the model is not its linearisation: it has no frozen weights "
                "beside the trained ones. Give the model Tangent, or another initialisation."
            )
        start = [np.zeros((len(seeds), *p.shape), np.float32) for p in trained]
        return [*start, *self.base.draw(trained, seeds)]


class FromModule(ABC):
    """A start that takes what the model's own module begins with."""

    @abstractmethod
    def draw_from(
        self, build: Build, parameters: Sequence[Parameter], seeds: Sequence[int]
    ) -> list[Weights]:
        """Return the values of `parameters` for the runs `seeds`; `build` makes a new module."""


@dataclass(frozen=True)
class Own(FromModule):
    """The module's own start: what its `build` draws, from the run's stream "init/module"."""

    name: ClassVar[str] = "own"

    def draw(self, parameters: Sequence[Parameter], seeds: Sequence[int]) -> list[Weights]:
        """Meet no checks: every module has a start."""
        if seeds:
            raise TypeError("a module's own start needs the module: see initial_weights")
        return [np.zeros((0, *p.shape), np.float32) for p in parameters]

    def draw_from(
        self, build: Build, parameters: Sequence[Parameter], seeds: Sequence[int]
    ) -> list[Weights]:
        """Build one module per run."""
        from petridish.models.parameters import seeded

        each = [dict(seeded(build, seed).named_parameters()) for seed in seeds]
        return [
            np.stack([named[p.name].detach().numpy().astype(np.float32) for named in each])
            for p in parameters
        ]


@dataclass(frozen=True)
class ByName(FromModule):
    """A start for each parameter, by the first pattern that fits it.

    ``ByName((("norm*", Constant(1.0)), ("@bias", Constant(0.0)), ("*", Normal(0.02))))``: a pattern
    is that of a name, or `@weight`, `@bias`, `@scale`.
    """

    name: ClassVar[str] = "by_name"

    rules: tuple[tuple[str, Init], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", tuple((str(p), init) for p, init in self.rules))

    def draw(self, parameters: Sequence[Parameter], seeds: Sequence[int]) -> list[Weights]:
        """Draw every parameter by its rule."""
        chosen = self._chosen(parameters)
        return [init.draw([p], seeds)[0] for p, init in zip(parameters, chosen, strict=True)]

    def draw_from(
        self, build: Build, parameters: Sequence[Parameter], seeds: Sequence[int]
    ) -> list[Weights]:
        """Draw every parameter by its rule, which may be its module's own start."""
        return [
            init.draw_from(build, [p], seeds)[0]
            if isinstance(init, FromModule)
            else init.draw([p], seeds)[0]
            for p, init in zip(parameters, self._chosen(parameters), strict=True)
        ]

    def _chosen(self, parameters: Sequence[Parameter]) -> list[Init]:
        return first_fitting("ByName", self.rules, parameters)


def first_fitting(
    owner: str, rules: Sequence[tuple[str, Said]], parameters: Sequence[Parameter]
) -> list[Said]:
    """Return what the first fitting pattern says of each parameter; nothing is left in silence.

    A last line for '*' may say what holds of no parameter of this model: it is there for the rest.
    """
    first = {}
    for p in parameters:
        fitting = [place for place, (pattern, _) in enumerate(rules) if p.fits(pattern)]
        if fitting:
            first[p.name] = fitting[0]
    for place, (pattern, _) in enumerate(rules):
        fitted = [p.name for p in parameters if p.fits(pattern)]
        if not fitted:
            names = ", ".join(p.name for p in parameters)
            raise UserError(
                f"{owner}: the pattern {pattern!r} fits no parameter of this model. It has: "
                f"{names}."
            )
        if place not in first.values() and (pattern, place) != ("*", len(rules) - 1):
            earlier = rules[first[fitted[0]]][0]
            raise UserError(
                f"{owner}: the pattern {pattern!r} has no effect: earlier ones, such as "
                f"{earlier!r}, fit all that it fits. Put it before them, or leave it out."
            )
    for p in parameters:
        if p.name not in first:
            raise UserError(
                f"{owner}: nothing is said of the parameter {p.name}. End with a line for '*'."
            )
    return [rules[first[p.name]][1] for p in parameters]


def usual_start(model: Model) -> Init:
    """Return how a model starts if nothing else is said: `Uniform`, or its module's own start."""
    return Uniform() if isinstance(model, Stacked | FitsItself) else Own()


def _make_finite(owner: object, field: str, least: float = -np.inf) -> None:
    """Turn a field into a float, so that 1 and 1.0 are one value; refuse what is no number."""
    value = getattr(owner, field)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (number and isfinite(value) and value >= least):
        bound = f" of at least {least:g}" if isfinite(least) else ""
        raise UserError(f"{type(owner).__name__}: {field}={value!r}. Give a finite number{bound}.")
    object.__setattr__(owner, field, float(value))
