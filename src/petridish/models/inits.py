"""Initialisations. Each parameter has its own random stream, named after it.

Random starts leave parameters of the kind «scale», which multiply, at 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import isfinite, prod, sqrt
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError, check_whole
from petridish.models.base import Init, Parameter, Weights
from petridish.seeds import Streams
from petridish.values import LATER


def init_stream(parameter: Parameter, seeds: Sequence[int]) -> Streams:
    """Return the stream from which the values of `parameter` are drawn."""
    return Streams(seeds, f"init/{parameter.stream}")


def _drawn(
    parameter: Parameter, seeds: Sequence[int], draw: Callable[[Streams, int], NDArray[Any]]
) -> Weights:
    """Return what `draw` takes from the parameter's stream, shape (run, *shape); scales are 1."""
    shape = (len(seeds), *parameter.shape)
    if parameter.kind == "scale":
        return np.ones(shape, np.float32)
    values = draw(init_stream(parameter, seeds), parameter.size)
    return values.astype(np.float32).reshape(shape)


def _uniform(parameter: Parameter, seeds: Sequence[int], bound: float) -> Weights:
    return _drawn(parameter, seeds, lambda s, size: 2 * bound * s.uniforms(0, size) - bound)


def _normal(parameter: Parameter, seeds: Sequence[int], std: float) -> Weights:
    return _drawn(parameter, seeds, lambda s, size: std * s.normals(0, size))


def draw_signs(parameter: Parameter, seeds: Sequence[int], scale: float = 1.0) -> Weights:
    """Draw plus or minus `scale` with random signs, shape (run, *shape)."""
    return _drawn(parameter, seeds, lambda s, size: np.float32(scale) * s.signs(0, size))


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
        return [draw_signs(p, seeds, of(p)) for p in parameters]


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
                f"Sparse: s={self.s} weights per neuron, but there are only {first.fan_in} inputs. "
                f"Give s from 1 to {first.fan_in}."
            )
        chosen = init_stream(first, seeds).subsets(first.fan_in, self.s, 0, first.fan_out)
        weights = np.zeros((len(seeds), first.fan_out, first.fan_in), np.float32)
        np.put_along_axis(weights, chosen, np.float32(1), axis=-1)
        return [weights, *Uniform().draw(parameters[1:], seeds)]


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
class Projected:
    """Normal weights of neurons that read more inputs than they are given [FL §3.1].

    The last input stands for `beyond` others: its weights in the first layer are the length of as
    many normal ones, `std` times a χ-distributed number. A `Dictionary` with space="patterns" has
    such an input, which is always 0: a neuron then has the length that it would have in the d
    inputs, and trains as it would there. All else is drawn as by `Normal`.
    """

    name: ClassVar[str] = "projected"

    std: float
    beyond: int

    def __post_init__(self) -> None:
        _make_finite(self, "std", least=0)
        check_whole("Projected", 0, beyond=self.beyond)

    def draw(self, parameters: Sequence[Parameter], seeds: Sequence[int]) -> list[Weights]:
        """Draw normals, and the lengths by inverting their distribution function."""
        from scipy.special import gammaincinv

        found = [_normal(parameter, seeds, self.std) for parameter in parameters]
        for parameter, drawn in zip(parameters, found, strict=True):
            if parameter.layer or parameter.kind != "weight":
                continue
            stream, neurons = init_stream(parameter, seeds), parameter.shape[:-1]
            chances = stream.uniforms(parameter.size, prod(neurons))
            # Of 0 degrees of freedom the length is 0, where the function has no value.
            squares = 2 * gammaincinv(self.beyond / 2, chances) if self.beyond else 0 * chances
            drawn[..., -1] = (self.std * np.sqrt(squares)).reshape(len(seeds), *neurons)
        return found


@dataclass(frozen=True)
class Signs:
    """Every parameter plus or minus `scale` with random signs, whatever the layers' sizes."""

    name: ClassVar[str] = "signs"

    scale: float = 1.0

    def __post_init__(self) -> None:
        _make_finite(self, "scale")

    def draw(self, parameters: Sequence[Parameter], seeds: Sequence[int]) -> list[Weights]:
        """Draw every parameter."""
        return [draw_signs(p, seeds, self.scale) for p in parameters]


@dataclass(frozen=True)
class Seeded:
    """What `base` draws at `seed`, whatever the run's own seed [HP §3.2].

    Runs that share their start differ only in their data: what they have in common is due to the
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


def _make_finite(owner: object, field: str, least: float = -np.inf) -> None:
    """Turn a field into a float, so that 1 and 1.0 are one value; refuse what is no number."""
    value = getattr(owner, field)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (number and isfinite(value) and value >= least):
        bound = f" of at least {least:g}" if isfinite(least) else ""
        raise UserError(f"{type(owner).__name__}: {field}={value!r}. Give a finite number{bound}.")
    object.__setattr__(owner, field, float(value))
