"""Lottery tickets: start with those neurons of a wider run that grew largest [PF App. C.2]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from petridish.errors import UserError, check_whole
from petridish.models import MLP, Init, Sparse
from petridish.models.base import Parameter, Weights
from petridish.tasks.base import HasSupport
from petridish.training.chains import StartsFromRuns, ended
from petridish.training.spec import RunSpec


@dataclass(frozen=True)
class Ticket(StartsFromRuns):
    """Start from a few neurons of a wider network, with the weights they had before training.

    The parent is the run that this one would be with `width` neurons, started by `base` at
    `seed`. Of its neurons as many are kept as the run has, with the weights they started with;
    the output's bias is the parent's too. What the run sees in training is its own seed's.

    Attributes
    ----------
    chosen : "largest" or "random"
        The neurons whose incoming weights have the largest norm when the parent's training ends;
        or neurons of a new network for every run, the control: its parent is not trained, and
        starts at the run's own seed.
    """

    name: ClassVar[str] = "ticket"

    chosen: Literal["largest", "random"] = "largest"
    width: int = 100
    base: Init = Sparse(2)
    seed: int = 0

    def __post_init__(self) -> None:
        check_whole("Ticket", 1, width=self.width)
        check_whole("Ticket", 0, seed=self.seed)
        if self.chosen not in ("largest", "random"):
            raise UserError(f"Ticket: chosen={self.chosen!r}. Give 'largest' or 'random' neurons.")

    def draw(self, parameters: Sequence[Parameter], seeds: Sequence[int]) -> list[Weights]:
        """Refuse a network that is wider than its parent; the rest takes the whole run."""
        kept = parameters[0].fan_out
        if len(parameters) != 4 or kept > self.width:
            raise UserError(
                f"Ticket: {kept} neurons in {len(parameters) // 2} layers cannot be a part of a "
                f"two-layer network of {self.width}. Give a two-layer model of at most that width."
            )
        if seeds:
            raise TypeError("a ticket depends on more than its seed: draw it by initial_weights")
        return []

    def parents(self, spec: RunSpec) -> tuple[RunSpec, ...]:
        """Return the wide run, where it is to be trained."""
        if self.chosen == "random":
            return ()
        if isinstance(spec.task, HasSupport) and spec.task.support is None:
            raise UserError(
                "Ticket: the task draws its support anew for every seed, so that the parent would "
                "have learned another function. Give the task a support."
            )
        return (self._parent(spec, self.seed),)

    def _parent(self, spec: RunSpec, seed: int) -> RunSpec:
        return replace(spec, model=MLP(self.width), init=self.base, restart=0, seed=seed)

    def start(self, specs: Sequence[RunSpec]) -> list[Weights]:
        """Return the first weights of runs that agree in all but their seeds."""
        each = [self._start(spec) for spec in specs]
        return [np.stack(weights) for weights in zip(*each, strict=True)]

    def _start(self, spec: RunSpec) -> list[Weights]:
        kept = spec.parameters[0].fan_out
        if self.chosen == "largest":
            (parent,) = self.parents(spec)
            norms = np.linalg.norm(ended(parent)["layer1.weight"].astype(np.float64), axis=1)
            neurons = np.sort(np.argsort(-norms, kind="stable")[:kept])
        else:
            parent = self._parent(spec, spec.luck)
            neurons = np.arange(kept)  # the neurons of a fresh network are exchangeable
        weight, bias, output, last = (
            drawn[0] for drawn in self.base.draw(parent.parameters, [parent.seed])
        )
        return [weight[neurons], bias[neurons], output[:, neurons], last]
