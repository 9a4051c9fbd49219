"""FL-5: clusters of neurons on images, and the early gradients of a residual network's filters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from petridish.chapters.inputs.plane_figures import weights_in_the_plane
from petridish.chapters.inputs.planes import DRAWN, drawn
from petridish.chapters.inputs.rules import ERROR, Floats, against, each
from petridish.chapters.inputs.trainings import by_momentum
from petridish.experiment import Experiment
from petridish.models import MLP, Init, Model, Normal, ResNet, Uniform
from petridish.rules import Claim, LastOf, Measure
from petridish.rules.specs import specs_of
from petridish.sweeps import Arms, Sweep
from petridish.tasks import Images
from petridish.theory.inputs.windows import agreement, needed_steps, window_gradients
from petridish.training import (
    SGD,
    CrossEntropy,
    Data,
    FilterWeights,
    FirstLayerWeights,
    Instrument,
    Logistic,
    Loss,
    RunSpec,
    WeightClusters,
)
from petridish.training.weight_probes import clusters_of, unit_rows

if TYPE_CHECKING:
    import polars as pl

ZERO_ONE = Images("digits", (1, 8, 8), 289, 71, (0, 1), "e37fa901bf7f9d58")
"""scikit-learn's 0 and 1, written down, since finding them imports scikit-learn."""
MNIST = Images("mnist01", (1, 28, 28), 12_665, 2_115, (0, 1), "f0d0b4d68703fc01")
CIFAR = Images(
    "cifar10_airplane_automobile", (3, 32, 32), 10_000, 2_000, (0, 1), "dfbd0187a71fa21d"
)
"""Two classes each of the paper's sets, in files of these names that `--data` has to find."""
ENDS = (0, 10, 20, 30)
LAST_FILTERS = "layer4.1.conv2.weight"
FILTERS = f"array.filter_weights {LAST_FILTERS}"
SMALL, RATE, MOMENTUM = 0.01, 0.001, 0.95


@dataclass(frozen=True)
class EarlyAgreement(Measure):
    """The mean cosine of each pair of mean gradients over the steps 1–10, 11–20 and 21–30.

    Of the filter that is nearest to the mean of the larger of two clusters of filters at the end
    [FL Table 7]. Of directions at random it is 0.
    """

    columns = (FILTERS, "cell")
    label = "cosine between early gradients"

    def of(self, table: pl.DataFrame) -> Floats:
        """Return the number of every run; NaN for one that kept no filters."""
        specs = specs_of(table)
        found = []
        for kept, cell in table.select(*self.columns).iter_rows():
            readings = None if kept is None else kept["values"]
            there = readings is not None
            found.append(self._one(kept, specs[cell]) if there else np.nan)
        return np.array(found, np.float64)

    def _one(self, kept: Any, spec: RunSpec) -> float:
        readings = np.reshape(np.array(kept["values"], np.float64), kept["shape"])
        steps = needed_steps(ENDS)
        optimiser = spec.training.optimiser
        assert isinstance(optimiser, SGD), "as declared"
        chosen = nearest_to_its_cluster(readings[-1])
        weights = {step: rows[chosen] for step, rows in zip(steps, readings, strict=False)}
        rate = spec.training.learning_rate
        gradients = window_gradients(weights, ENDS, rate, optimiser.momentum)
        return float(agreement(gradients)[1].mean())


def nearest_to_its_cluster(rows: Floats) -> int:
    """Return the filter nearest to the mean direction of the larger of two clusters."""
    unit = unit_rows(rows)
    labels = clusters_of(unit, 2)
    larger = int(np.bincount(labels).argmax())
    mean = unit[labels == larger].mean(axis=0)
    return int(np.where(labels == larger, unit @ mean, -np.inf).argmax())


def usual_training(
    images: Images, model: Model, loss: Loss, *, data: Data, steps: int, **seen: Any
) -> RunSpec:
    """Return training on images as E.4 has it; its rate and momentum are ours."""
    how: dict[str, Any] = {"momentum": MOMENTUM, "rate": RATE, "batch_size": 32, "steps": steps}
    return by_momentum(images, model, loss, data=data, curves=True, **how, **seen)


def on_images(
    *,
    images: Images,
    m: int,
    n_test: int,
    width: int,
    steps: int,
    filters: int,
    deep: int,
    seeds: int,
    few: tuple[int, int] | None = None,
) -> Arms:
    """Declare two-layer networks from two starts, on true and shuffled labels, and ResNet(m).

    Residual networks have `few` training and held-out images, if that is given.
    """
    deep_m, deep_test = few or (m, n_test)
    clusters = WeightClusters(), WeightClusters(4)
    weights = (FirstLayerWeights(at=(0, steps // 4, steps)),)

    def plain(
        start: Init, noise: float = 0.0, watched: tuple[Instrument, ...] = clusters
    ) -> RunSpec:
        data = Data(m=m, n_test=n_test, label_noise=noise)
        how: dict[str, Any] = {"steps": steps, "every": steps // 4, "instruments": watched}
        return replace(usual_training(images, MLP(width), Logistic(), data=data, **how), init=start)

    def residual(noise: float = 0.0) -> RunSpec:
        at = (*needed_steps(ENDS), deep)
        kept = (FilterWeights(LAST_FILTERS, at=at),)
        data = Data(m=deep_m, n_test=deep_test, label_noise=noise)
        how: dict[str, Any] = {"steps": deep, "every": deep, "at": at, "instruments": kept}
        return usual_training(images, ResNet(filters), CrossEntropy(), data=data, **how)

    runs = {
        "small start": plain(Normal(SMALL)),
        "usual start": plain(Uniform()),
        "shuffled labels": plain(Normal(SMALL), 0.5),
        "residual": residual(),
        "residual, shuffled labels": residual(0.5),
    }
    pictures = {
        "small start": plain(Normal(SMALL), watched=weights),
        "usual start": plain(Uniform(), watched=weights),
    }
    return Arms(
        {name: Sweep(run, {"seed": range(seeds)}) for name, run in runs.items()}
        | {name + DRAWN: Sweep(run, {"seed": range(1)}) for name, run in pictures.items()}
    )


CLUSTERS = "weight_clusters"
SOURCE = "FL E.4, Figs. 3, 17, 18"
AS_AT_LAPTOP: dict[str, Any] = {"width": 50, "steps": 1_500, "filters": 4, "deep": 100, "seeds": 10}
IMAGES = Experiment(
    id="FL-5",
    title="Images: clusters of neurons, and early gradients of filters",
    source="FL E.4, Figs. 17, 18, 20, Table 7",
    scales={
        "smoke": on_images(
            images=ZERO_ONE, m=100, n_test=50, width=20, steps=40, filters=2, deep=32, seeds=3
        ),
        "laptop": on_images(images=ZERO_ONE, m=280, n_test=71, **AS_AT_LAPTOP),
        "mnist": on_images(images=MNIST, m=10_000, n_test=2_000, few=(500, 200), **AS_AT_LAPTOP),
        "cifar": on_images(images=CIFAR, m=5_000, n_test=2_000, few=(1_000, 300), **AS_AT_LAPTOP),
        "paper": on_images(
            images=CIFAR,
            m=10_000,
            n_test=2_000,
            width=50,
            steps=6_250,
            filters=128,
            deep=6_250,
            seeds=10,
        ),
    },
    claims=(
        Claim(
            "two",
            "From a small start the weights form two clusters: their silhouette is above 0.8 in "
            "the end.",
            SOURCE,
            each(LastOf(CLUSTERS), "small start", above=0.8),
            "The weights gradually form two clusters (MNIST, CIFAR-10); the start's size is not "
            "given, 0.8 is ours.",
            kind="paper",
        ),
        Claim(
            "usual",
            "From the usual start they do not: it stays below 0.5.",
            SOURCE,
            each(LastOf(CLUSTERS), "usual start", below=0.5),
            kind="ours",
        ),
        Claim(
            "shuffled",
            "On shuffled labels the silhouette is lower by more than 0.1.",
            SOURCE,
            against("small start", "shuffled labels", LastOf(CLUSTERS), above=0.1),
            kind="ours",
        ),
        Claim(
            "learned",
            "Both starts learn: the two-layer networks and the residual one err on at most 5 %.",
            "FL E.4",
            each(ERROR, "small start", "usual start", "residual", below=0.05),
            "ResNet(128) has a test accuracy of 95.75 % on airplanes and automobiles.",
            kind="ours",
        ),
        Claim(
            "early",
            "Early gradients of the filter chosen at the end agree: the mean cosine between those "
            "of the first three windows of ten steps is above 0.3.",
            "FL E.4.1, Table 7",
            each(EarlyAgreement(), "residual", above=0.3),
            "0.75, 0.51, 0.65 for ResNet(128), 0.71, 0.69, 0.91 for ResNet(256); at random 0.",
            kind="paper",
        ),
        Claim(
            "labels",
            "They agree more than on shuffled labels.",
            "FL E.4.1, Table 7",
            against("residual", "residual, shuffled labels", EarlyAgreement(), above=0.0),
            kind="ours",
        ),
    ),
    figures={
        "plane": partial(weights_in_the_plane, arms=drawn("small start", "usual start")),
    },
)
