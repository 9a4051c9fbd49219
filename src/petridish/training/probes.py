"""Instruments of learned features: what a linear classifier makes of them, what they point at."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from petridish.errors import check_whole
from petridish.models import MLP
from petridish.tasks import Classes, Dictionary, HasCentres
from petridish.training.numerics import with_floats
from petridish.training.population_gradient import first_layer
from petridish.training.readings import Instrument, Reading

if TYPE_CHECKING:
    from petridish.training.spec import RunSpec

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LinearProbe(Instrument):
    """The held-out error of the best linear classifier on the last hidden layer of an MLP.

    Logistic regression (scikit-learn, C = 100) on the features of the first `n` training examples,
    each feature standardised: a classifier on features as small as 1e-9 is as good as on others.
    NaN for other models, for real targets and online, where there is no training sample.

    Attributes
    ----------
    n : int
        Training examples, and held-out ones, at most.
    at : tuple of int, optional
        Steps at which it is read, if not at every evaluation: one fit takes seconds.
    """

    name: ClassVar[str] = "linear_probe"
    short: ClassVar[str] = "linear_probe"

    n: int = 10_000
    at: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        check_whole("LinearProbe", 1, n=self.n)

    def read(self, reading: Reading) -> float:
        """Fit on training features, and count errors on held-out ones."""
        spec = reading.spec
        target = spec.domain.target
        classes = isinstance(target, Classes) and target.positions is None
        if not isinstance(spec.model, MLP) or not classes or spec.data.online:
            return math.nan
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        (x, y), (new_x, new_y) = (self._features(reading, on) for on in ("train", "test"))
        if len(np.unique(y)) < 2:
            return float(np.mean(new_y != y[0])) if len(y) else math.nan
        model = make_pipeline(StandardScaler(), LogisticRegression(C=100.0, max_iter=500, tol=1e-3))
        return float(np.mean(model.fit(x, y).predict(new_x) != new_y))

    def _features(self, reading: Reading, on: str) -> tuple[Floats, NDArray[Any]]:
        """Return the features of the labelled examples of a sample, in float64, and labels."""
        import torch

        model, drawn = reading.spec.model, reading.sample(on)
        assert isinstance(model, MLP), "asked before"
        given = torch.from_numpy(np.array(drawn.x[0, : self.n])).flatten(1)
        h = with_floats(given, torch.float64)
        values = [torch.from_numpy(np.array(v, np.float64)) for v in reading.now.values()]
        for place in range(0, 2 * (1 + len(model.deeper)), 2):
            h = model.activation(h @ values[place].mT + values[place + 1])
        labels = drawn.labels[0, : self.n].astype(np.int64)
        return h.numpy()[labels >= 0], labels[labels >= 0]


@dataclass(frozen=True)
class PatternRatio(Instrument):
    """max_{j ∉ A} |q_j| / min_{j ∈ A} |q_j| for q_j = ⟨w, M_j⟩, the median over neurons.

    Of a `Dictionary` with orthonormal columns. After a step that forgets, q is the step's T up to
    a factor: the ratio is below 1 where the gradient has found the relevant patterns A [FL Lemmas
    15, 20]. NaN on other tasks, and where a neuron has no weights at all.
    """

    name: ClassVar[str] = "pattern_ratio"
    short: ClassVar[str] = "pattern_ratio"

    def read(self, reading: Reading) -> float:
        """Return the median ratio."""
        task = reading.spec.task
        if not isinstance(task, Dictionary) or task.patterns == task.k:
            return math.nan
        rows = first_layer(reading).astype(np.float64)
        along = rows @ task.dictionary(reading.spec.seed) if task.space == "inputs" else rows
        sizes = np.abs(along[:, : task.patterns])
        inside, outside = sizes[:, : task.k].min(axis=1), sizes[:, task.k :].max(axis=1)
        there = inside > 0
        return float(np.median(outside[there] / inside[there])) if there.any() else math.nan


@dataclass(frozen=True)
class CentreCosine(Instrument):
    """The cosine of a centre with its nearest neuron, for the centre that is covered worst.

    NaN on tasks without centres (`HasCentres`). By itself it says little: many random directions
    within the span of the centres cover them well (`theory.inputs.coverage`).
    """

    name: ClassVar[str] = "centre_cosine"
    short: ClassVar[str] = "centre_cosine"

    def read(self, reading: Reading) -> float:
        """Return the least over centres of the largest cosine over neurons."""
        centres = reading.shared.once(_unit_centres)
        rows = first_layer(reading).astype(np.float64)
        if centres is None or rows.ndim != 2:
            return math.nan
        lengths = np.linalg.norm(rows, axis=1)
        rows = rows[lengths > 0] / lengths[lengths > 0, None]
        return float((rows @ centres.T).max(axis=0).min()) if len(rows) else math.nan


def _unit_centres(spec: RunSpec) -> Floats | None:
    """Return the directions of the centres of a run, shape (centre, input)."""
    if not isinstance(spec.task, HasCentres):
        return None
    found = spec.task.centres([spec.seed])[0]
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    return np.asarray(found / np.where(lengths > 0, lengths, 1), np.float64)
