"""Activations: functions of one number, applied to every entry of a tensor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

from petridish.naming import check_whole

if TYPE_CHECKING:
    from torch import Tensor


class Activation(Protocol):
    """A new activation is a frozen dataclass with a name that maps a tensor, entry by entry."""

    name: ClassVar[str]

    def __call__(self, z: Tensor) -> Tensor:
        """Apply the activation."""


@dataclass(frozen=True)
class ReLU:
    """max(z, 0)."""

    name: ClassVar[str] = "relu"

    def __call__(self, z: Tensor) -> Tensor:
        """Apply the activation."""
        return z.relu()


@dataclass(frozen=True)
class Power:
    """z^k [HP, architectures (iv)–(vi)]."""

    name: ClassVar[str] = "power"

    k: int

    def __post_init__(self) -> None:
        check_whole("Power", 1, k=self.k)

    def __call__(self, z: Tensor) -> Tensor:
        """Apply the activation."""
        return z.pow(self.k)


@dataclass(frozen=True)
class Identity:
    """z itself: the network is linear in its inputs."""

    name: ClassVar[str] = "identity"

    def __call__(self, z: Tensor) -> Tensor:
        """Apply the activation."""
        return z
