"""PF: Pareto frontiers in deep feature learning, data, compute, width and luck.

The paper names no loss; hinge is its companion paper's choice and ours. Minibatches are drawn with
replacement from the m training examples. Unless said otherwise B = 32, η = 0.1, λ = 0.01, a budget
of 10^5 steps, and success is a test error of at most 10 % on 10^4 held-out examples [PF App. C.1].
"""

from __future__ import annotations

from functools import partial
from typing import Any

from petridish.chapters.pareto.figures.sparsity import sparsity_curves
from petridish.chapters.pareto.rules.samples import Steadier, WidthRemoves, Worsens
from petridish.chapters.pareto.rules.starts import BestStart
from petridish.experiment import Experiment
from petridish.figures.curves import frontier_and_curves
from petridish.figures.heat_map import class_map, success_heat_map
from petridish.figures.slices import success_slices
from petridish.models import MLP, Init, Sparse, Uniform
from petridish.rules.claims import Claim
from petridish.rules.comparisons import BestOrTied
from petridish.rules.outcome_classes import Groks
from petridish.rules.success import Beats, FrontierShrinks, NeverDecreases
from petridish.rules.times import Quicker, SlowAtTheEdge
from petridish.sweeps import Sweep
from petridish.tasks import SparseParity
from petridish.training import ONLINE, Data, Evaluation, RunSpec, Training

DENSE_AND_SPARSE: tuple[Init, ...] = (Uniform(), Sparse(2))
WIDTHS = (10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)
SAMPLES = (
    *(100, 200, 300, 600, 1e3, 2e3, 3e3, 6e3, 1e4, 2e4, 3e4, 6e4),
    *(1e5, 2e5, 3e5, 6e5, 1e6, ONLINE),
)
TASKS = tuple(SparseParity(n, k) for n in (50, 100, 150, 200, 250, 300) for k in (3, 4))
LAPTOP = SparseParity(50, 3)


def grid(
    *tasks: SparseParity,
    widths: tuple[int, ...],
    samples: tuple[float, ...],
    seeds: int,
    inits: tuple[Init, ...] = DENSE_AND_SPARSE,
    steps: int = 100_000,
    n_test: int = 10_000,
    curves_every: int | None = None,
) -> Sweep:
    """Sweep sample sizes m, widths r and initialisations [PF §4.1, App. C.1]."""
    base = RunSpec(
        task=tasks[0],
        data=Data(n_test=n_test),
        model=MLP(width=widths[0]),
        training=Training(steps=steps),
        evaluation=Evaluation(every=curves_every or 100, curves=curves_every is not None),
    )
    axes = {
        "task": tasks,
        "model.width": widths,
        "init": inits,
        "data.m": samples,
        "seed": range(seeds),
    }
    return Sweep(base, axes)


smoke = partial(grid, SparseParity(10, 2), steps=1_000, n_test=1_000)

SPARSE_AND_DENSE = ("sparse(2)", "uniform")
WIDE: dict[str, Any] = {"at_least": {"model.width": 100}}
GONE = tuple(
    Claim(
        f"gone-{start}",
        f"From the {start} start, the time of the widest network that was run no longer grows with "
        "the sample.",
        "PF Fig. 2 right",
        WidthRemoves(init),
        "The sample-wise double descent of the time disappears with larger widths, of up to 10^5.",
        kind="ours",  # the widest network that was run is not the paper's
    )
    for start, init in (("dense", "uniform"), ("sparse", "sparse(2)"))
)

FRONTIER = Experiment(
    id="PF-1",
    title="The success frontier: sample size against width, dense and sparse initialisation",
    source="PF §4.1, Fig. 1 left, Fig. 4, App. C.1",
    scales={
        "smoke": smoke(widths=(4, 32), samples=(30, 100, 300), seeds=4),
        "demo": grid(
            LAPTOP,
            widths=(10, 30, 100, 300, 1_000),
            samples=(400, 600, 800, 1_000, 1_200, 1_500, 2_000, 3_000),
            seeds=10,
            steps=30_000,
            curves_every=100,  # for the explorer's sliders; costs as much as the training
        ),
        "laptop": grid(
            LAPTOP,
            widths=(10, 30, 100, 300, 1_000),
            samples=(300, 450, 600, 800, 1e3, 1_300, 2e3, 4e3, 1e4, 1e5, ONLINE),
            seeds=10,
        ),
        "panel": grid(LAPTOP, widths=WIDTHS[:7], samples=SAMPLES, seeds=50),
        "paper": grid(*TASKS, widths=WIDTHS, samples=SAMPLES, seeds=50),
    },
    claims=(
        Claim(
            "a",
            "The smallest sample with which half of the runs succeed does not grow with width, and "
            "shrinks from the narrowest to the widest network.",
            "PF §4.1 (1)",
            FrontierShrinks(within=("task", "init")),
            "A success frontier: large width can compensate for small datasets.",
            kind="paper",
        ),
        Claim(
            "b",
            "At equal sample size and initialisation, success never decreases with width.",
            "PF §4.1 (2)",
            NeverDecreases(within=("data.m", "task", "init")),
            "Success only rises upwards in every panel; exceptions such as 98 % to 96 % lie within "
            "their errors.",
            kind="paper",
        ),
        Claim(
            "c-luck",
            "From width 100 on, sparse initialisation succeeds more often than dense at equal "
            "sample size and width.",
            "PF §4.1 (3)",
            Beats("init", *SPARSE_AND_DENSE, within=("task", "data.m", "model.width"), **WIDE),
            "With a wide network, sparse axis-aligned starts improve data, time and luck strongly.",
            kind="paper",
        ),
        Claim(
            "c-data",
            "From width 100 on, the sparse start needs a smaller sample than the dense for half of "
            "the runs to succeed.",
            "PF §4.1 (3)",
            FrontierShrinks(
                "init", within=("task", "model.width"), ends=SPARSE_AND_DENSE[::-1], **WIDE
            ),
            "With a wide network, sparse axis-aligned starts improve data, time and luck strongly.",
            kind="paper",
        ),
        Claim(
            "c-time",
            "From width 100 on, the sparse start needs fewer steps than the dense at equal sample "
            "size and width.",
            "PF §4.1 (3)",
            Quicker(
                "init",
                within=("task", "data.m", "model.width"),
                ends=SPARSE_AND_DENSE[::-1],
                **WIDE,
            ),
            "With a wide network, sparse axis-aligned starts improve data, time and luck strongly.",
            kind="paper",
        ),
        Claim(
            "c-narrow",
            "Up to width 30, the sparse start needs more steps than the dense.",
            "PF §4.1 (3)",
            Quicker(
                "init",
                within=("task", "data.m", "model.width"),
                ends=SPARSE_AND_DENSE,
                at_most={"model.width": 30},
            ),
            "The paper speaks of wide networks alone.",
            kind="ours",
        ),
        Claim(
            "d",
            "Somewhere, success falls as the sample grows.",
            "PF §4.1 (4)",
            Worsens("success", margin=0.3),
            "Success probability can worsen with increasing data.",
            kind="paper",
            judged_at=("panel", "paper"),  # with ten seeds it could not be contradicted
        ),
        Claim(
            "e",
            "Somewhere, success falls as the sample grows, and rises again with still more data.",
            "PF App. C.1 (4)",
            Worsens("success", returns=True, margin=0.3),
            "In some horizontal slices of Fig. 4 networks enter and exit a first feasible regime "
            "and succeed again at large enough samples.",
            kind="paper",
            judged_at=("paper",),  # of all panels; one of them could not contradict it
        ),
        Claim(
            "f",
            "As the sample grows, success falls less from the sparse start than from the dense.",
            "PF App. C.1 (4)",
            Steadier(),
            "Sparse initialisation reduces the non-monotonic success, but not entirely, as at "
            "(200, 3).",
            kind="paper",
        ),
        *GONE,
    ),
    figures={"frontier": success_heat_map, "classes": class_map},
)

NEAR_THE_LIMIT = (
    *(300, 400, 500, 600, 700, 800, 900, 1e3, 1_200, 1_500),
    *(2e3, 3e3, 1e4, 3e4, 1e5, ONLINE),
)

SLICES = Experiment(
    id="PF-2",
    title="Slices: success and time against sample size, for several widths",
    source="PF §4.1, Fig. 2",
    scales={
        "smoke": smoke(widths=(4, 32), samples=(30, 60, 100, 300), seeds=4),
        "laptop": grid(LAPTOP, widths=(10, 30, 100, 300), samples=NEAR_THE_LIMIT, seeds=20),
        "n=100": grid(
            SparseParity(100, 3),
            widths=(30, 100, 300, 1_000),
            samples=(600, 1e3, 1_400, 2e3, 2_800, 4e3, 6e3, 1e4, 3e4, 1e5, ONLINE),
            seeds=20,
        ),
        "k=4": grid(
            SparseParity(50, 4),
            widths=(100, 300, 1_000),
            samples=(1e3, 2e3, 3e3, 6e3, 1e4, 2e4, 3e4, 1e5, 1e6, ONLINE),
            seeds=20,
        ),
        "large": grid(
            *(SparseParity(n, 3) for n in (50, 100, 200)),
            widths=WIDTHS,
            samples=tuple(sorted({*SAMPLES, *NEAR_THE_LIMIT})),
            seeds=50,
        ),
    },
    claims=(
        Claim(
            "luck",
            "At equal sample size, success never decreases with width: width buys luck.",
            "PF §4.1 (2), Fig. 2 centre",
            NeverDecreases(within=("data.m", "task", "init")),
            "Width improves success at every sample size, though it raises capacity.",
            kind="paper",
        ),
        Claim(
            "time",
            "At equal sample size, wider networks need fewer steps: width buys time.",
            "PF §4.1 (2), Fig. 2 right",
            Quicker(),
            "Larger networks take fewer serial steps to converge.",
            kind="paper",
        ),
        Claim(
            "edge",
            "At the smallest sample that suffices, learning takes longer than with more data.",
            "PF §4.1 (4), Fig. 2 right",
            SlowAtTheEdge(),
            "In the grokking regime at the edge of feasibility, less data costs more steps.",
            kind="paper",
        ),
        Claim(
            "descent",
            "Somewhere, the time to success grows as the sample grows.",
            "PF §4.1 (4), Fig. 2 right",
            Worsens("time", margin=0.5),
            "A «sample-wise double descent»: convergence times can worsen with increasing data.",
            kind="paper",
        ),
        *GONE,
    ),
    figures={"slices": success_slices},
)

CURVES = Experiment(
    id="PF-3",
    title="Training curves: memorising, grokking, learning at once",
    source="PF §4.1, Fig. 1 right",
    scales={
        "smoke": smoke(widths=(32,), samples=(30, 100), seeds=3, curves_every=50),
        "laptop": grid(
            LAPTOP,
            widths=(30, 300, 1_000),
            samples=(300, 600, 1e3, 1e4),
            seeds=10,
            curves_every=500,
        ),
        "n=100": grid(
            SparseParity(100, 3),
            widths=(300, 1_000),
            samples=(1e3, 2e3, 3e3, 1e4),
            seeds=10,
            curves_every=500,
        ),
        "k=4": grid(
            SparseParity(50, 4),
            widths=(300, 1_000),
            samples=(2e3, 6e3, 1e4, 1e5),
            seeds=10,
            curves_every=500,
        ),
        "large": grid(
            LAPTOP,
            widths=(10, 100, 1_000, 10_000),
            samples=(300, 600, 1e3, 1e4),
            seeds=10,
            curves_every=100,
        ),
    },
    claims=(
        Claim(
            "grokking",
            "There are runs that fit their sample to 1 % long before their test error leaves "
            "chance, and generalise later.",
            "PF §1, §4.1 (4), Fig. 1 right",
            Groks(),
            "Grokking, delayed and sudden generalisation, is evident in some of the curves.",
            kind="paper",
        ),
    ),
    figures={"curves": frontier_and_curves},
)


def starts(*values: int) -> tuple[Init, ...]:
    """Return first layers that start with s nonzero weights per neuron, and the dense start."""
    return (*(Sparse(s) for s in values), Uniform())


SPARSITY = Experiment(
    id="PF-4",
    title="Sparsity of the start: how many nonzero weights a neuron",
    source="PF §4.1 (3), App. C.1",
    scales={
        "smoke": smoke(inits=starts(1, 2, 10), widths=(32,), samples=(100,), seeds=4),
        "laptop": grid(
            LAPTOP,
            inits=starts(1, 2, 3, 4, 8, 16, 50),
            widths=(1_000,),
            samples=(600, 1e3),
            seeds=50,
        ),
        "edge": grid(
            LAPTOP,
            inits=starts(1, 2, 3, 4, 8, 16, 50),
            widths=(1_000,),
            samples=(550, 600, 650, 700),
            seeds=50,
        ),
        "n=200": grid(
            SparseParity(200, 3),
            inits=starts(1, 2, 3, 4, 8, 16, 200),
            widths=(1_000, 3_000, 10_000),
            samples=(600, 1e3, 2e3, 3e3, 6e3, 1e4),
            seeds=50,
        ),
    },
    claims=(
        Claim(
            "s=2",
            "At equal sample size and width, s = 2 succeeds more often than every other sparsity.",
            "PF §4.1 (3), App. C.1",
            BestStart("sparse(2)"),
            "A sparse start improves data, time and luck; in smaller sweeps s = 2 works best.",
            kind="paper",
        ),
        Claim(
            "tied",
            "No sparsity of the start succeeds more often than s = 2, by ten points.",
            "PF §4.1 (3), App. C.1",
            BestOrTied("init", "sparse(2)"),
            "In smaller sweeps s = 2 works best: this allows others that are as good.",
            kind="ours",
        ),
        Claim(
            "time",
            "At equal sample size and width, s = 2 needs fewer steps than every other sparsity.",
            "PF §4.1 (3), App. C.1",
            BestStart("sparse(2)", "time"),
            # «Best» is said of data, time and luck alike, so that both claims are the paper's.
            "A sparse start improves data, time and luck; in smaller sweeps s = 2 works best.",
            kind="paper",
        ),
    ),
    figures={"sparsity": sparsity_curves},
)
