"""FL-10: filters of residual networks over 20 epochs [FL App. E.4.1]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from petridish.chapters.inputs.filter_figures import (
    STAGES,
    cluster_cosines,
    filters_in_the_plane,
    readings_of,
)
from petridish.chapters.inputs.image_clusters import CIFAR, ZERO_ONE, usual_training
from petridish.chapters.inputs.planes import DRAWN
from petridish.chapters.inputs.rules import ERROR, Floats, against, each
from petridish.experiment import Experiment
from petridish.models import ResNet
from petridish.rules import Claim, Measure
from petridish.sweeps import Arms, Sweep
from petridish.tasks import Images
from petridish.training import CrossEntropy, Data, FilterWeights, RunSpec
from petridish.training.weight_probes import unit_rows

if TYPE_CHECKING:
    import polars as pl

EARLY, EPOCHS = 3, 20
"""The text draws filters after 0, 3 and 20 epochs."""
STAGE = STAGES[2]
KEPT = f"array.filter_weights {STAGE}"
Which = Literal["centres", "own", "centres, beside the start"]


@dataclass(frozen=True)
class TurnedEarly(Measure):
    """How far a filter turns over the first 3 epochs minus over the 17 others, in degrees.

    The median over filters of the third stage, of angles between a filter's directions.
    """

    columns = (KEPT,)
    label = "degrees turned over 3 epochs minus those over the 17 others"

    def of(self, table: pl.DataFrame) -> Floats:
        """Return the number of every run; NaN for one that kept no filters."""
        return np.array([self._one(kept) for kept in table[KEPT]], np.float64)

    def _one(self, kept: Any) -> float:
        readings = readings_of(kept)
        if readings is None:
            return float("nan")
        start, early, end = (unit_rows(rows) for rows in readings)
        angles = [
            np.degrees(np.arccos(np.clip((a * b).sum(axis=1), -1, 1)))
            for a, b in ((start, early), (early, end))
        ]
        return float(np.median(angles[0]) - np.median(angles[1]))


@dataclass(frozen=True)
class OfClusters(Measure):
    """A cosine of the two clusters of third-stage filters at the end.

    "centres": between the centres. "own": of a filter with its cluster's centre, the mean.
    "centres, beside the start": between the centres, minus what k-means finds at the start.
    """

    which: Which

    columns = (KEPT,)

    @property
    def label(self) -> str:
        """What is measured, in words."""
        return {
            "own": "mean cosine with the own centre",
            "centres": "cosine between the two centres",
        }.get(self.which, "cosine between the two centres minus that at the start")

    def of(self, table: pl.DataFrame) -> Floats:
        """Return the number of every run; NaN for one that kept no filters."""
        return np.array([self._one(kept) for kept in table[KEPT]], np.float64)

    def _one(self, kept: Any) -> float:
        readings = readings_of(kept)
        if readings is None:
            return float("nan")
        own, between = cluster_cosines(readings[-1])
        if self.which == "own":
            return float(np.mean(own))
        return between - (0.0 if self.which == "centres" else cluster_cosines(readings[0])[1])


def networks(
    *, images: Images, m: int, n_test: int, filters: int, wider: int, per_epoch: int, seeds: int
) -> Arms:
    """Declare residual networks of two widths, and one on shuffled labels, over 20 epochs."""
    at = (0, EARLY * per_epoch, EPOCHS * per_epoch)

    def run(width: int, *stages: str, noise: float = 0.0) -> RunSpec:
        kept = tuple(FilterWeights(stage, at=at) for stage in stages)
        how: dict[str, Any] = {"every": at[-1], "at": at[1:2], "instruments": kept}
        data = Data(m=m, n_test=n_test, label_noise=noise)
        return usual_training(images, ResNet(width), CrossEntropy(), data=data, steps=at[-1], **how)

    arms = {
        "residual": run(filters, STAGE),
        "wider residual": run(wider, STAGE),
        "residual, shuffled labels": run(filters, STAGE, noise=0.5),
    }
    drawn = run(wider, *STAGES)
    return Arms(
        {name: Sweep(spec, {"seed": range(seeds)}) for name, spec in arms.items()}
        | {"wider residual" + DRAWN: Sweep(drawn, {"seed": range(1)})}
    )


SOURCE = "FL E.4.1, Figs. 20, 21"
FILTERS = Experiment(
    id="FL-10",
    title="Filters of residual networks at the start, and after 3 and 20 epochs",
    source=SOURCE,
    scales={
        "smoke": networks(
            images=ZERO_ONE, m=32, n_test=40, filters=2, wider=3, per_epoch=1, seeds=3
        ),
        "laptop": networks(
            images=ZERO_ONE, m=280, n_test=71, filters=4, wider=8, per_epoch=9, seeds=10
        ),
        "cifar": networks(
            images=CIFAR, m=1_000, n_test=300, filters=4, wider=8, per_epoch=32, seeds=10
        ),
        "paper": networks(
            images=CIFAR, m=10_000, n_test=2_000, filters=128, wider=256, per_epoch=313, seeds=10
        ),
    },
    claims=(
        Claim(
            "early",
            "Filters turn farther over the first 3 epochs than over the 17 that follow.",
            SOURCE,
            each(TurnedEarly(), "residual", "wider residual", above=0.0),
            "The change between epoch 0 and 3 is much more significant than that between 3 and 20.",
            kind="paper",
        ),
        Claim(
            "two",
            "In the end the centres of two clusters of filters are opposed: a cosine below −0.5.",
            SOURCE,
            each(OfClusters("centres"), "residual", "wider residual", below=-0.5),
            "−0.51 to −0.97, of clusters picked by hand; ours are those of k-means.",
            kind="paper",
        ),
        Claim(
            "start",
            "They are more opposed than what the same procedure finds at the start, by 0.1.",
            SOURCE,
            each(
                OfClusters("centres, beside the start"),
                "residual",
                "wider residual",
                below=-0.1,
            ),
            kind="ours",
        ),
        Claim(
            "shuffled",
            "They are more opposed than on shuffled labels.",
            SOURCE,
            against("residual", "residual, shuffled labels", OfClusters("centres"), below=0.0),
            kind="ours",
        ),
        Claim(
            "wider",
            "Filters of the network that is twice as wide are nearer to the centre of their "
            "cluster.",
            SOURCE,
            against("wider residual", "residual", OfClusters("own"), above=0.0),
            "ResNet(256) shows more significant clustering than ResNet(128).",
            kind="paper",
        ),
        Claim(
            "learned",
            "Both widths err on at most 5 % after 20 epochs.",
            SOURCE,
            each(ERROR, "residual", "wider residual", below=0.05),
            "95.75 and 93.8 % on airplanes and automobiles.",
            kind="ours",
        ),
    ),
    figures={"filters": filters_in_the_plane},
)
