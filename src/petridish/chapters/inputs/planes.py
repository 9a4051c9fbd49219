"""FL-3: the weights in the plane, and whether their directions are those of the text."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from petridish.chapters.inputs.centres import SMALL, clouds
from petridish.chapters.inputs.interval_labels import interval
from petridish.chapters.inputs.methods import DIMENSIONS, SAMPLES, SHARES, Sizes
from petridish.chapters.inputs.plane_figures import weights_in_the_plane
from petridish.chapters.inputs.rules import CosineGap, ReadingAt, each
from petridish.chapters.inputs.trainings import Patterned, both_steps, rates_of, seeded
from petridish.experiment import Experiment
from petridish.rules import Claim, LastOf
from petridish.sweeps import Arms, Sweep
from petridish.tasks import HiddenLabels, Hypercube
from petridish.training import DirectionCosine, Evaluation, FirstLayerWeights, WeightClusters

DRAWN = ", drawn"
"""The end of the names of arms that keep weights, one run each."""
PARITIES = ("parity", *DIMENSIONS, *SAMPLES)
CUBES = {  # Table 6, and the epochs of Fig. 16
    "cube, d = 100, k = 4": (Hypercube(100, 4, 1.0), (50, 80)),
    "cube, d = 25, k = 4": (Hypercube(25, 4, 0.7), (30, 50)),
    "cube, d = 100, k = 5": (Hypercube(100, 5, 1.0), (50, 80)),
}


def planes(
    sizes: Sizes,
    *,
    others: tuple[int, int],
    samples: tuple[tuple[int, int], ...],
    within: tuple[int, int, int],
    hidden: HiddenLabels,
    gaussians: dict[str, int],
) -> Arms:
    """Declare two steps on every task of the text's pictures, and mixtures of Gaussians.

    Cosines between neurons are those of all d inputs: in the coordinates of the patterns, where one
    number stands for the rest, neurons would seem alike that are not.
    """
    parity = sizes.parity(space="inputs")
    m, width = sizes.m, sizes.width
    counts = replace(interval(sizes.d, sizes.patterns, *within), space="inputs")
    tasks: dict[str, tuple[Patterned, int, int]] = {
        "parity": (parity, m, width),
        "no structure": (replace(parity, structure=False), m, width),
        "interval": (counts, m, width),
        **{
            name: (replace(parity, d=d), m, width)
            for name, d in zip(DIMENSIONS, others, strict=True)
        },
        **{name: (replace(parity, negatives=s), m, width) for name, s in SHARES.items()},
        **{name: (parity, n, neurons) for name, (n, neurons) in zip(SAMPLES, samples, strict=True)},
        "hidden representations": (hidden, m, width),
    }
    arms: dict[str, Sweep] = {}
    for name, (task, n, neurons) in tasks.items():
        rates = rates_of(task, neurons)
        begun = replace(sizes, m=n, width=neurons).start(task)
        numbers = DirectionCosine(), WeightClusters()
        arms[name] = seeded(both_steps(begun, *rates, *numbers), sizes.seeds)
        arms[name + DRAWN] = seeded(both_steps(begun, *rates, FirstLayerWeights()), 1)
    for name, (cube, epochs) in CUBES.items():
        arms[name + DRAWN] = gaussian_arm(cube, epochs, **gaussians)
    return Arms(arms)


def gaussian_arm(
    task: Hypercube, epochs: tuple[int, int], *, m: int, width: int, per_epoch: int
) -> Sweep:
    """Train as FL-4 does, and keep the weights at the start and after some epochs."""
    at = tuple(epoch * per_epoch for epoch in (0, *epochs))
    whole = clouds(task, m=m, width=width, scale=SMALL, steps=at[-1], seeds=1, n_test=500)
    seen = Evaluation(
        every=at[-1],
        at=at[1:2],
        curves=True,
        fitted_error=None,
        instruments=(FirstLayerWeights(),),
    )
    return replace(whole, base=replace(whole.base, evaluation=seen))


def drawn(*names: str) -> tuple[str, ...]:
    """Return the names of the arms that keep the weights of these."""
    return tuple(name + DRAWN for name in names)


HIDDEN = HiddenLabels(500, 250, 50, 50)
"""E.3.1's."""
COSINE, CLUSTERS = "direction_cosine", "weight_clusters"
SOURCE = "FL E.1.1, Figs. 2, 6"
PLANES = Experiment(
    id="FL-3",
    title="Weights in the plane, at the start and after each of two steps",
    source="FL E.1 to E.3, Figs. 2, 6, 8, 10, 12, 14, 15, 16",
    scales={
        "smoke": planes(
            Sizes(d=60, patterns=20, k=3, m=1_000, width=40, n_test=200, seeds=3),
            others=(30, 90),
            samples=((500, 40), (200, 20)),
            within=(9, 6, 8),
            hidden=HiddenLabels(60, 30, 10, 10),
            gaussians={"m": 200, "width": 60, "per_epoch": 2},
        ),
        "laptop": planes(
            Sizes(m=10_000, width=200, n_test=1_000),
            others=(100, 1_000),
            samples=((5_000, 200), (2_000, 50)),
            within=(30, 20, 30),
            hidden=HIDDEN,
            gaussians={"m": 5_000, "width": 400, "per_epoch": 50},
        ),
        "paper": planes(
            Sizes(n_test=5_000),
            others=(100, 2_000),
            samples=((25_000, 600), (10_000, 100)),
            within=(30, 20, 30),
            hidden=HIDDEN,
            gaussians={"m": 5_000, "width": 800, "per_epoch": 50},
        ),
    },
    claims=(
        Claim(
            "99",
            "After two steps some neuron has a cosine above 0.99 with the sum of the relevant "
            "patterns.",
            SOURCE,
            each(LastOf(COSINE), "parity", above=0.99),
            "After the second step the weights are well-aligned with the ground truth (cosine "
            "similarity > 0.99).",
            kind="paper",
        ),
        Claim(
            "1",
            "The first step already turns some neuron by more than 0.3 of cosine towards it.",
            SOURCE,
            each(ReadingAt(COSINE, 1, less=0), "parity", above=0.3),
            "After the first gradient step some weights begin to cluster around ±Σ M; the text "
            "gives no number, the margin is ours.",
            kind="paper",
        ),
        Claim(
            "2",
            "The second step raises the largest cosine.",
            SOURCE,
            each(ReadingAt(COSINE, 2, less=1), "parity", above=0.0),
            "After the second step the weights get improved.",
            kind="paper",
        ),
        Claim(
            "C",
            "In all dimensions and sample sizes the cosine after two steps is within 0.005 of its "
            "formula.",
            "FL E.2, Figs. 10, 14, Tables 3, 5",
            each(CosineGap(), *PARITIES, between=(-0.005, 0.005)),
            "Tables 3 and 5 have 0.997, 0.997 and 0.994.",
            kind="ours",
        ),
        Claim(
            "I",
            "Interval labels turn some neuron to a cosine above 0.9 as well.",
            "FL E.1.2, Fig. 8",
            each(LastOf(COSINE), "interval", above=0.9),
            "Similar clusters appear for interval labels; the margin is ours.",
            kind="paper",
        ),
        Claim(
            "N",
            "Without structure no neuron gets a cosine above 0.5.",
            "FL E.1.1, Table 1",
            each(LastOf(COSINE), "no structure", below=0.5),
            "Table 1 has a cosine of 0.253 there, after training.",
            kind="paper",
        ),
        Claim(
            "K",
            "Without structure the weights fall into two clusters all the same: their silhouette "
            "is above 0.9 after two steps.",
            SOURCE,
            each(LastOf(CLUSTERS), "no structure", above=0.9),
            kind="ours",
        ),
        Claim(
            "H",
            "Labels by hidden representations: the silhouette of two clusters rises by more than "
            "0.5 over the two steps.",
            "FL E.3.1, Fig. 15",
            each(ReadingAt(CLUSTERS, 2, less=0), "hidden representations", above=0.5),
            "The neuron weights are updated to form clusters. Steps that forget leave two "
            "clusters whatever the data are: see (K).",
            kind="check",
        ),
    ),
    figures={
        "parity": partial(weights_in_the_plane, arms=drawn("parity", "no structure")),
        "interval": partial(weights_in_the_plane, arms=drawn("interval")),
        "dimensions": partial(weights_in_the_plane, arms=drawn(*DIMENSIONS)),
        "shares": partial(weights_in_the_plane, arms=drawn(*SHARES)),
        "samples": partial(weights_in_the_plane, arms=drawn(*SAMPLES)),
        "hidden": partial(weights_in_the_plane, arms=drawn("hidden representations")),
        "gaussians": partial(weights_in_the_plane, arms=drawn(*CUBES)),
    },
)
