"""PF: Pareto frontiers in deep feature learning, data, compute, width and luck.

The source names no loss; hinge is its companion paper's choice and ours. Minibatches are drawn with
replacement from the m training examples.
"""

from __future__ import annotations

from petridish.analysis import Beats, Claim, FrontierShrinks, NeverDecreases
from petridish.experiment import Experiment
from petridish.figures import success_heat_map
from petridish.models import MLP, Sparse, Uniform
from petridish.sweeps import Sweep
from petridish.tasks import SparseParity
from petridish.training import ONLINE, Data, RunSpec, Training

INITS = (Uniform(), Sparse(2))
WIDTHS = (10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)
SAMPLES = (
    *(100, 200, 300, 600, 1e3, 2e3, 3e3, 6e3, 1e4, 2e4, 3e4, 6e4),
    *(1e5, 2e5, 3e5, 6e5, 1e6, ONLINE),
)


def frontier(
    tasks: tuple[SparseParity, ...],
    *,
    widths: tuple[int, ...],
    samples: tuple[float, ...],
    seeds: int,
    training: Training,
    n_test: int = 10_000,
) -> Sweep:
    """Sweep sample sizes m and widths r for both initialisations [PF §4.1, App. C.1]."""
    base = RunSpec(
        task=tasks[0],
        data=Data(n_test=n_test),
        model=MLP(width=widths[0]),
        training=training,
    )
    axes = {
        "task": tasks,
        "model.width": widths,
        "init": INITS,
        "data.m": samples,
        "seed": range(seeds),
    }
    return Sweep(base, axes)


FRONTIER = Experiment(
    id="PF-1",
    title="The success frontier: sample size against width, dense and sparse initialisation",
    source="PF §4.1, Fig. 1 left, Fig. 4, App. C.1",
    scales={
        "smoke": frontier(
            (SparseParity(10, 2),),
            widths=(4, 32),
            samples=(30, 100, 300),
            seeds=4,
            training=Training(steps=1_000),
            n_test=1_000,
        ),
        "demo": frontier(
            (SparseParity(50, 3),),
            widths=(10, 30, 100, 300, 1_000),
            samples=(400, 600, 800, 1_000, 1_200, 1_500, 2_000, 3_000),
            seeds=10,
            training=Training(steps=30_000),
        ),
        "laptop": frontier(
            (SparseParity(30, 3),),
            widths=(3, 10, 30, 100, 300),
            samples=(200, 300, 400, 500, 600, 800, 1_000, 1_500, 3_000, 10_000, ONLINE),
            seeds=25,
            training=Training(steps=20_000),
        ),
        "panel": frontier(
            (SparseParity(50, 3),),
            widths=WIDTHS[:7],
            samples=SAMPLES,
            seeds=50,
            training=Training(steps=100_000),
        ),
        "paper": frontier(
            tuple(SparseParity(n, k) for n in (50, 100, 150, 200, 250, 300) for k in (3, 4)),
            widths=WIDTHS,
            samples=SAMPLES,
            seeds=50,
            training=Training(steps=100_000),
        ),
    },
    claims=(
        Claim(
            "a",
            "The smallest sample with which half of the runs succeed does not grow with width, and "
            "shrinks from the narrowest to the widest network.",
            "PF §4.1 (1)",
            FrontierShrinks(within=("task", "init")),
        ),
        Claim(
            "b",
            "At equal sample size and initialisation, success never decreases with width.",
            "PF §4.1 (2)",
            NeverDecreases(within=("data.m", "task", "init")),
        ),
        Claim(
            "c",
            "From width 100 on, sparse initialisation succeeds more often than dense at equal "
            "sample size and width.",
            "PF §4.1 (3)",
            Beats(
                "init",
                "sparse(2)",
                "uniform",
                within=("task", "data.m", "model.width"),
                at_least={"model.width": 100},
            ),
        ),
    ),
    figures={"frontier": success_heat_map},
)
