"""Starts that depend on more of a run than its seed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from petridish.models.base import Weights
from petridish.training.spec import RunSpec


class StartsFromRuns(ABC):
    """An initialisation that is made from other runs, and is given the whole specs."""

    @abstractmethod
    def start(self, specs: Sequence[RunSpec]) -> list[Weights]:
        """Return the first weights of runs that agree in all but their seeds."""
