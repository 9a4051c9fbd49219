"""Instruments of neurons one by one: clusters, gradients along patterns, how far each has moved."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from petridish.choices import describe
from petridish.errors import UserError, check_whole, nearest
from petridish.models import MLP
from petridish.tasks import Classes, Dictionary, HasParts
from petridish.training.population_gradient import first_weights
from petridish.training.readings import Instrument, Reading

if TYPE_CHECKING:
    from petridish.training.spec import RunSpec

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class WeightClusters(Instrument):
    """How far the directions of the first layer's neurons fall into `k` clusters: a silhouette.

    Clusters are those of k-means on weights scaled to length 1 (scikit-learn, ten starts), and the
    silhouette is the mean over neurons of (b − a) / max(a, b), with a the mean distance 1 − cosine
    to a neuron's own cluster and b that to the nearest other. It is 1 where every neuron points
    exactly where its cluster does, and about 0 where there are none. NaN where k or fewer neurons
    have weights, or all of them point one way.

    Any set of directions has a silhouette: compare with the start, and with shuffled labels.

    Attributes
    ----------
    k : int
        Number of clusters.
    at : tuple of int, optional
        Steps at which it is read, if not at every evaluation.
    """

    name: ClassVar[str] = "weight_clusters"
    short: ClassVar[str] = "weight_clusters"

    k: int = 2
    at: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        check_whole("WeightClusters", 2, k=self.k)

    @property
    def label(self) -> str:
        """`weight_clusters`, with the number of clusters if it is not 2."""
        return "weight_clusters" if self.k == 2 else f"weight_clusters {self.k}"

    def read(self, reading: Reading) -> float:
        """Return the silhouette."""
        return silhouette(unit_rows(first_weights(reading)), self.k)


def unit_rows(weights: NDArray[np.generic]) -> Floats:
    """Return the rows of a layer, flattened and scaled to length 1; those of 0 are left out."""
    rows = np.asarray(weights, np.float64).reshape(len(weights), -1)
    lengths = np.linalg.norm(rows, axis=1)
    return np.asarray(rows[lengths > 0] / lengths[lengths > 0, None], np.float64)


def silhouette(rows: Floats, k: int) -> float:
    """Return the silhouette, by cosine distance, of k-means clusters of unit vectors."""
    from sklearn.metrics import silhouette_score

    if len(rows) <= k:
        return math.nan
    labels = clusters_of(rows, k)
    if len(np.unique(labels)) < 2:
        return math.nan
    return float(silhouette_score(rows, labels, metric="cosine"))


def clusters_of(rows: Floats, k: int) -> NDArray[np.int64]:
    """Return the k-means cluster of each unit vector; fewer than k where vectors are equal."""
    import warnings

    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct vectors than clusters
        found = KMeans(k, n_init=10, random_state=0).fit_predict(rows)
    return np.asarray(found, np.int64)


@dataclass(frozen=True)
class PatternGradient(Instrument):
    """T_j = −⟨∂L/∂w_i, M_j⟩ / a_i of every neuron i [FL Lemmas 6, 15, 20], shape (neuron, 5).

    L is the loss on the whole training sample, computed in the run's precision. A step that forgets
    leaves w_i = η a_i Σ_j T_j M_j: the text says that T_j is βγ/σ for the relevant patterns A, with
    a β that is the neuron's own, and small for the others. Kept are the least, the mean and the
    largest T_j over A, the largest |T_j| over the others, and the neuron's bias.

    Of an `MLP` with one hidden layer and one output on a `Dictionary`.

    Attributes
    ----------
    at : tuple of int, optional
        Steps at which it is read, if not at every evaluation.
    """

    name: ClassVar[str] = "pattern_gradient"
    short: ClassVar[str] = "pattern_gradient"

    at: tuple[int, ...] | None = None

    def check(self, spec: RunSpec) -> None:
        """Refuse other tasks and models."""
        if not isinstance(spec.task, Dictionary) or spec.task.patterns == spec.task.k:
            raise UserError(
                f"PatternGradient: the task {describe(spec.task)} has no irrelevant patterns. Give "
                "a Dictionary with more patterns than k, or leave the instrument out."
            )
        model = spec.model
        if not isinstance(model, MLP) or model.deeper or spec.n_outputs != 1 or spec.data.online:
            raise UserError(
                f"PatternGradient: it reads an MLP with one hidden layer and one output, trained "
                f"on a sample, and the model is {describe(model)}. Leave the instrument out."
            )

    def read(self, reading: Reading) -> Floats:
        """Return the five numbers of every neuron."""
        import torch

        task, module = reading.spec.task, reading.module
        assert isinstance(task, Dictionary), "the spec was checked"
        weights = [p.detach().clone().requires_grad_() for p in module.parameters()]
        named = dict(zip((n for n, _ in module.named_parameters()), weights, strict=True))
        with torch.enable_grad():
            outputs = torch.func.functional_call(module, named, (reading.inputs("train"),))
            labels = torch.from_numpy(reading.sample("train").labels[0].astype(np.int64))
            loss = reading.spec.training.loss(outputs[None], labels[None]).sum()
            (slope,) = torch.autograd.grad(loss, weights[:1])
        a = reading.now["layer2.weight"][0].astype(np.float64)
        steps = -slope.double().numpy() / np.where(a == 0, math.nan, a)[:, None]
        in_x = task.space == "inputs"
        along = steps @ task.dictionary(reading.spec.seed) if in_x else steps
        inside, outside = along[:, : task.k], np.abs(along[:, task.k : task.patterns])
        ends = inside.min(axis=1), inside.mean(axis=1), inside.max(axis=1)
        bias = reading.now["layer1.bias"].astype(np.float64)
        return np.stack([*ends, outside.max(axis=1), bias], axis=1)


@dataclass(frozen=True)
class OpenMargins(Instrument):
    """The share of training examples with y f(x) < 1, on which a hinge loss has a slope."""

    name: ClassVar[str] = "open_margins"
    short: ClassVar[str] = "open_margins"

    def check(self, spec: RunSpec) -> None:
        """Refuse runs without a sample, or without a margin."""
        if spec.data.online or spec.n_outputs != 1 or spec.domain.target != Classes(2):
            raise UserError(
                f"OpenMargins: the run on {describe(spec.task)} has no training sample with the "
                "margins of one output. Give a finite data.m, two classes and a margin loss."
            )

    def read(self, reading: Reading) -> float:
        """Return the share."""
        y = 1 - 2.0 * reading.sample("train").labels[0]
        margins = y * reading.outputs("train").double().numpy().squeeze(-1)
        return float(np.mean(margins < 1))


@dataclass(frozen=True)
class RelativeMovement(Instrument):
    """‖w_i(t) − w_i(0)‖ / ‖w_i(0)‖ of the first layer's neurons, the median over them.

    Neurons that start at 0 are left out; NaN if all do.
    """

    name: ClassVar[str] = "relative_movement"
    short: ClassVar[str] = "relative_movement"

    def read(self, reading: Reading) -> float:
        """Return the median."""
        before, now = (
            np.asarray(w, np.float64).reshape(len(w), -1)
            for w in (next(iter(reading.start.values())), first_weights(reading))
        )
        size = np.linalg.norm(before, axis=1)
        there = size > 0
        if not there.any():
            return math.nan
        return float(np.median(np.linalg.norm(now - before, axis=1)[there] / size[there]))


@dataclass(frozen=True)
class FilterWeights(Instrument):
    """The weights of one layer, each neuron's or filter's as a row: shape (filter, fan-in).

    Attributes
    ----------
    of : str
        The name of a parameter, or a pattern that fits one alone.
    at : tuple of int, optional
        Steps at which it is read, if not at every evaluation.
    """

    name: ClassVar[str] = "filter_weights"
    short: ClassVar[str] = "filter_weights"

    of: str = "layer1.weight"
    at: tuple[int, ...] | None = None

    @property
    def label(self) -> str:
        """`filter_weights`, with the pattern."""
        return f"filter_weights {self.of}"

    def check(self, spec: RunSpec) -> None:
        """Refuse a pattern that does not name one matrix or set of filters."""
        found = [p for p in spec.parameters if p.fits(self.of) and len(p.shape) > 1]
        if len(found) != 1:
            names = [p.name for p in spec.parameters if len(p.shape) > 1]
            raise UserError(
                f"FilterWeights: of={self.of!r} names {len(found)} layers of "
                f"{describe(spec.model)}. {nearest(self.of, names)}"
            )

    def read(self, reading: Reading) -> Floats:
        """Return the rows."""
        (name,) = (p.name for p in reading.spec.parameters if p.fits(self.of) and len(p.shape) > 1)
        weights = reading.now[name]
        return weights.reshape(len(weights), -1).astype(np.float64)


@dataclass(frozen=True)
class LargestClass(Instrument):
    """The share of the most frequent label in a sample, or in one part of it.

    The error of a constant answer is 1 minus it: the baseline for errors on a teacher's labels.

    Attributes
    ----------
    part : str, optional
        Of a mixture: only the examples of this part count.
    on : str
        The sample.
    """

    name: ClassVar[str] = "largest_class"
    short: ClassVar[str] = "largest_class"

    part: str | None = None
    on: str = "test"

    @property
    def label(self) -> str:
        """`largest_class`, with the part and the sample if they are named."""
        named = (self.part, None if self.on == "test" else self.on)
        return "_".join(["largest_class", *filter(None, named)])

    def check(self, spec: RunSpec) -> None:
        """Refuse real targets, and parts that the task lacks."""
        task = spec.task_of(self.on)
        if not isinstance(spec.domain.target, Classes):
            raise UserError(
                f"LargestClass: the task {describe(task)} has {spec.domain.target}. Leave the "
                "instrument out."
            )
        parts = task.parts if isinstance(task, HasParts) else ()
        if self.part is not None and self.part not in parts:
            raise UserError(
                f"LargestClass: the task {describe(task)} has no part called {self.part!r}. "
                f"{nearest(self.part, parts)}"
            )

    def read(self, reading: Reading) -> float:
        """Return the share; NaN where no example has a label."""
        drawn, task = reading.sample(self.on), reading.spec.task_of(self.on)
        labels = drawn.labels[0].astype(np.int64)
        there = labels >= 0
        if self.part is not None:
            assert isinstance(task, HasParts), "the spec was checked"
            there &= drawn.facts["part"][0] == task.parts.index(self.part)
        if not there.any():
            return math.nan
        return float(np.bincount(labels[there]).max() / there.sum())
