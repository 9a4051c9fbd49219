"""FL-4: neurons that cover the centres of clusters; labels by hidden representations."""

from __future__ import annotations

from dataclasses import replace

from petridish.chapters.inputs.figures import coverage_over_time
from petridish.chapters.inputs.rules import ERROR, CoverageAboveChance, each
from petridish.chapters.inputs.trainings import by_momentum
from petridish.experiment import Experiment
from petridish.models import MLP, Normal, Paired
from petridish.rules import Claim
from petridish.sweeps import Arms, Sweep
from petridish.tasks import HiddenLabels, Hypercube, Task
from petridish.training import CentreCosine, Data, DirectionCosine, Logistic

SMALL, USUAL = 0.001, 0.1  # 0.1 = 1/√d for d = 100


def clouds(
    task: Task, *, m: int, width: int, scale: float, steps: int, seeds: int, n_test: int
) -> Sweep:
    """Train a two-layer network as usual: logistic loss, momentum, minibatches, no decay."""
    run = by_momentum(
        task,
        MLP(width, output="linear"),
        Logistic(),
        data=Data(m=m, n_test=n_test),
        momentum=0.9,
        rate=0.1,
        batch_size=100,
        steps=steps,
        every=max(1, steps // 10),
        curves=True,
        instruments=(CentreCosine(), DirectionCosine()),
    )
    run = replace(run, init=Paired(Normal(scale)))
    return Sweep(run, {"seed": range(seeds)})


def mixtures(*, m: int, width: int, steps: int, seeds: int, n_test: int) -> Arms:
    """Declare Table 6's three mixtures, the first from two starts, and hidden representations."""
    sizes = {"m": m, "width": width, "steps": steps, "seeds": seeds, "n_test": n_test}
    cubes: dict[str, tuple[Task, float]] = {
        "cube, d = 100, k = 4": (Hypercube(100, 4, 1.0), SMALL),
        "cube, d = 25, k = 4": (Hypercube(25, 4, 0.7), SMALL),
        "cube, d = 100, k = 5": (Hypercube(100, 5, 1.0), SMALL),
        "cube, d = 100, k = 4, usual start": (Hypercube(100, 4, 1.0), USUAL),
        "hidden labels": (HiddenLabels(500, 250, 50, 50), SMALL),
    }
    return Arms({name: clouds(task, scale=scale, **sizes) for name, (task, scale) in cubes.items()})


CUBES = ("cube, d = 100, k = 4", "cube, d = 25, k = 4", "cube, d = 100, k = 5")
CENTRES = Experiment(
    id="FL-4",
    title="Clusters of inputs: whether neurons point at their centres",
    source="FL E.3, Fig. 16, Table 6",
    scales={
        "smoke": mixtures(m=500, width=60, steps=100, seeds=4, n_test=300),
        "laptop": mixtures(m=5_000, width=800, steps=1_000, seeds=10, n_test=2_000),
        "paper": mixtures(m=5_000, width=800, steps=4_000, seeds=10, n_test=10_000),
    },
    claims=(
        Claim(
            "V",
            "Every centre is nearer to a neuron than it is in 99 of 100 sets of as many random "
            "directions within the span of the centres.",
            "FL E.3.2, Fig. 16, Table 6",
            each(CoverageAboveChance(), *CUBES, above=0.0),
            "Each Gaussian center is covered by some neurons.",
            kind="paper",
        ),
        Claim(
            "U",
            "From the usual start it is not: some centre is farther from all neurons.",
            "FL E.3.2",
            each(CoverageAboveChance(), "cube, d = 100, k = 4, usual start", below=0.0),
            kind="ours",
        ),
        Claim(
            "H",
            "Labels by hidden representations are learned: at most 1 % of errors.",
            "FL E.3.1, Fig. 15",
            each(ERROR, "hidden labels", below=0.01),
            kind="ours",
        ),
    ),
    figures={"coverage": coverage_over_time},
)
