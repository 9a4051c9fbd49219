"""What every model and every initialisation offers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError
from petridish.tasks.base import Task
from petridish.tasks.domain import Domain

if TYPE_CHECKING:
    from torch import Tensor, nn

Weights = NDArray[np.float32]
Kind = Literal["weight", "bias", "scale"]
Said = TypeVar("Said")


@dataclass(frozen=True)
class Parameter:
    """One array of a model, before it has values.

    Attributes
    ----------
    name : str
        As `named_parameters` of the model's module has it: `layer1.weight`.
    shape : tuple of int
        In one run. A layer's weights are (fan_out, fan_in), one row per neuron.
    fan_in, fan_out : int
        Inputs and outputs of its layer.
    layer : int
        The layer it belongs to, 0 for the first: per-layer rates and decays go by it.
    kind : "weight", "bias" or "scale"
        A scale multiplies, as a normalisation's gain does, and starts at 1.
    trained : bool
        Whether steps change it.
    stream : str
        Its name in random streams, if that is not `name`: it stays when a parameter is renamed.
    """

    name: str
    shape: tuple[int, ...]
    fan_in: int
    fan_out: int
    layer: int
    kind: Kind = "weight"
    trained: bool = True
    stream: str = ""

    def __post_init__(self) -> None:
        if not self.stream:
            object.__setattr__(self, "stream", self.name)

    @property
    def size(self) -> int:
        """Number of entries in one run."""
        return math.prod(self.shape)

    def fits(self, pattern: str) -> bool:
        """Return whether a pattern means it: `layer1.*` by its name, `@bias` by its kind."""
        if pattern.startswith("@"):
            return self.kind == pattern[1:]
        return fnmatchcase(self.name, pattern)


def layer_parameter(
    layer: int, kind: Literal["weight", "bias"], fan_in: int, fan_out: int, **more: Any
) -> Parameter:
    """Return the weights or biases of a linear layer, called `layer1.weight` for layer 0.

    Layers are counted from 1 in names, as the papers count them.
    """
    shape = (fan_out, fan_in) if kind == "weight" else (fan_out,)
    name = more.pop("name", f"layer{layer + 1}.{kind}")
    return Parameter(name, shape, fan_in, fan_out, layer, kind, **more)


def first_fitting(
    owner: str, rules: Sequence[tuple[str, Said]], parameters: Sequence[Parameter]
) -> list[Said]:
    """Return what the first fitting pattern says of each parameter; refuse patterns without effect.

    A last line for '*' may fit none that is left.
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


class Model(Hashable, Protocol):
    """A network, or anything else that learns: a frozen dataclass with these names.

    The module is plain PyTorch: inputs (batch, …) to outputs (batch, output), or (batch, position,
    output) where the task has labels at every position. Any module can be trained. A model that
    can say more inherits from the class that says so: `Stacked`, `ChecksTask`, `FitsItself`.
    """

    name: ClassVar[str]

    def build(self, domain: Domain, n_outputs: int) -> nn.Module:
        """Return a module for inputs of `domain` with `n_outputs` outputs, or refuse them."""


class Stacked(ABC):
    """A model that computes a stack of runs by itself: the same as its module, only faster.

    Its parameters are those of the module, in the same order and under the same names; listing
    them imports no PyTorch.
    """

    takes_places: ClassVar[bool] = False  # one-hot inputs may come as the places of their ones

    @abstractmethod
    def parameters(self, domain: Domain, n_outputs: int) -> tuple[Parameter, ...]:
        """List the parameters, or refuse the domain."""

    @abstractmethod
    def forward(self, parameters: Sequence[Tensor], x: Tensor) -> Tensor:
        """Return the outputs of a stack of runs.

        Every array has the run as axis 0: parameters (run, *shape), inputs (run, batch, …),
        outputs (run, batch, output). A run's outputs depend on its own entries alone.
        """

    @abstractmethod
    def build(self, domain: Domain, n_outputs: int) -> nn.Module:
        """Return the module."""


class ChecksTask(ABC):
    """A model that refuses some tasks of its domain, before a run begins."""

    @abstractmethod
    def check_task(self, task: Task) -> None:
        """Refuse a task that it cannot learn."""


class FitsItself(ABC):
    """A model that is fitted in one call, such as a forest, not in steps (engine `fit`)."""

    name: ClassVar[str]

    @abstractmethod
    def fit_predict(
        self,
        x: NDArray[np.float32],
        y: NDArray[Any],
        x_test: NDArray[np.float32],
        *,
        seed: int,
        n_classes: int,
    ) -> NDArray[Any]:
        """Fit the classes `y` of `x`, and return those of `x_test`: in one thread, reproducibly."""

    def typical_seconds(self, rows: int, features: int) -> float:
        """Guess the time of a fit on one core, for plans and for an order of work."""
        return 1.0

    def build(self, domain: Domain, n_outputs: int) -> nn.Module:
        """Refuse: there is nothing that takes steps."""
        raise UserError(
            f"The model {self.name} is fitted whole and has no module. Use the engine fit."
        )


class Init(Protocol):
    """The initial parameters of a model: a frozen dataclass with these names."""

    name: ClassVar[str]

    def draw(self, parameters: Sequence[Parameter], seeds: Sequence[int]) -> list[Weights]:
        """Draw the values of `parameters` for the runs `seeds`, each of shape (run, *shape)."""
