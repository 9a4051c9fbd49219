"""Training layer by layer, each with all before it frozen [HP App. B.3.7; Belilovsky et al. 2019].

Also the schedules that freeze the first layers of a network: with them, `random_features` trains an
output layer over neurons that stay as they were drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from petridish.errors import UserError, check_whole
from petridish.models import MLP, Init, Uniform
from petridish.models.base import Parameter, Weights
from petridish.training.chains import StartsFromRuns, ended
from petridish.training.optimisers import Factors, Piece, Schedule, per_layer
from petridish.training.spec import RunSpec


def frozen_below(n_frozen: int, n_layers: int) -> Schedule:
    """Freeze the first `n_frozen` of `n_layers` layers, and train the rest at the run's rate.

    Layers are counted as in `Parameter`, the output's among them. A rate of 0 also stops weight
    decay, which every optimiser here multiplies by the rate.
    """
    check_whole("frozen_below", 0, n_frozen=n_frozen)
    check_whole("frozen_below", n_frozen, n_layers=n_layers)
    return per_layer((0.0,) * n_frozen + (1.0,) * (n_layers - n_frozen))


def random_features(n_layers: int = 2) -> Schedule:
    """Train the output layer alone: linear regression on random features [HP §4.1].

    ``RunSpec(task=…, model=MLP(100), training=Training(schedule=random_features()))`` keeps
    σ(Wx + b) as it was drawn. For the features of the tangent kernel see `models.Tangent`.
    """
    return frozen_below(n_layers - 1, n_layers)


@dataclass(frozen=True)
class Greedy(StartsFromRuns):
    """Start an MLP on the hidden layers that a run with one layer less has learned, and keep them.

    The parent is the same run without its last hidden layer, trained to its end; it is greedy too,
    until one hidden layer is left, which starts by `base`. The run takes over the parent's hidden
    layers as they ended, draws the new one and the output by `base`, and trains these alone. What
    it sees in training is what the parent saw, from its first example on.

    Its schedule must freeze the layers taken over: of L hidden layers with an output to train that
    is ``frozen_below(L - 1, L + 1)``. The parent has the same schedule without its first layer.
    """

    name: ClassVar[str] = "greedy"

    base: Init = Uniform()

    def __post_init__(self) -> None:
        if isinstance(self.base, StartsFromRuns):
            raise UserError(
                f"Greedy: base={self.base.name} depends on other runs itself. Give a start that is "
                "drawn, such as Uniform()."
            )

    def draw(self, parameters: Sequence[Parameter], seeds: Sequence[int]) -> list[Weights]:
        """Check the shapes by `base`; drawing needs the whole spec (see `start`)."""
        if seeds:
            raise TypeError("a greedy start depends on more than its seed: see initial_weights")
        return self.base.draw(parameters, ())

    def parents(self, spec: RunSpec) -> tuple[RunSpec, ...]:
        """Return the run without the last hidden layer, where there are several."""
        return (_parent(spec),) if isinstance(spec.model, MLP) and spec.model.deeper else ()

    def start(self, specs: Sequence[RunSpec]) -> list[Weights]:
        """Return the first weights of runs of one model; each has its own parent."""
        spec, model = specs[0], specs[0].model
        if not isinstance(model, MLP):
            raise UserError(
                f"Greedy: {model.name} has no hidden layers to be trained one after another. "
                "Give an MLP."
            )
        drawn = self.base.draw(spec.parameters, [spec.luck for spec in specs])
        if not model.deeper:
            return drawn
        for each in specs:
            self._check_frozen(each)
        names = [parameter.name for parameter in _parent(spec).parameters[:-2]]
        found = [ended(_parent(each)) for each in specs]
        learned = [np.stack([weights[name] for weights in found]) for name in names]
        return [*learned, *drawn[len(learned) :]]

    def _check_frozen(self, spec: RunSpec) -> None:
        """Refuse a schedule that trains a layer taken over from the parent."""
        assert isinstance(spec.model, MLP)
        n_frozen, n_layers = len(spec.model.deeper), spec.parameters[-1].layer + 1
        trained = {
            parameter.layer + 1
            for part in spec.rates()
            for parameter, rate in zip(spec.parameters, part.rate, strict=True)
            if rate and parameter.layer < n_frozen
        }
        if trained:
            raise UserError(
                f"Greedy: the schedule trains layer {min(trained)}, which is taken over as it was "
                f"learned. Give schedule=frozen_below({n_frozen}, {n_layers})."
            )


def _parent(spec: RunSpec) -> RunSpec:
    """Return the run without the last hidden layer."""
    assert isinstance(spec.model, MLP)
    training = spec.training
    pieces = tuple(
        Piece(
            piece.start,
            *(_without_first(piece, each, spec) for each in (piece.rate, piece.decay, piece.keep)),
        )
        for piece in training.schedule.pieces
    )
    return replace(
        spec,
        model=replace(spec.model, deeper=spec.model.deeper[:-1]),
        training=replace(training, schedule=Schedule(pieces)),
        # Evaluations decide when the parent ends; what else they would find is not asked for.
        evaluation=replace(
            spec.evaluation,
            curves=False,
            instruments=(),
            fitted_error=None,
            metrics=(),
            reached=(),
            weights=False,
        ),
    )


def _without_first(piece: Piece, factors: Factors, spec: RunSpec) -> Factors:
    """Drop the first layer's factors: the parent's new layer is one place further to the front."""
    if not isinstance(factors, tuple):
        return factors
    return piece.spread(factors, spec.parameters)[2:]
