"""PF: Pareto frontiers in deep feature learning, data, compute, width and luck.

The source names no loss; hinge is its companion paper's choice and ours. Minibatches are drawn with
replacement from the m training examples. Unless said otherwise B = 32, η = 0.1, λ = 0.01, a budget
of 10^5 steps, and success is a test error of at most 10 % on 10^4 held-out examples [PF App. C.1].
"""

from __future__ import annotations

from petridish.analysis import (
    AboveTheBound,
    Beats,
    BestOrTied,
    Claim,
    FrontierShrinks,
    FrontierSlope,
    Groks,
    NeverDecreases,
    Quicker,
    RecoverySlope,
    SlowAtTheEdge,
    SubnetworkAgrees,
    TicketsWin,
    Valley,
)
from petridish.experiment import Experiment
from petridish.figures import (
    bounds_and_solvers,
    class_map,
    frontier_and_curves,
    over_sparse_map,
    recovery_curves,
    sparsity_curves,
    success_heat_map,
    success_slices,
    ticket_curves,
)
from petridish.models import MLP, Init, OverSparse, Sparse, Uniform
from petridish.sweeps import Sweep
from petridish.tasks import SparseParity
from petridish.theory import over_sparse_constants
from petridish.training import (
    ONLINE,
    Data,
    Evaluation,
    Piece,
    RunSpec,
    Schedule,
    Ticket,
    Training,
)

DENSE_AND_SPARSE: tuple[Init, ...] = (Uniform(), Sparse(2))
WIDTHS = (10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)
SAMPLES = (
    *(100, 200, 300, 600, 1e3, 2e3, 3e3, 6e3, 1e4, 2e4, 3e4, 6e4),
    *(1e5, 2e5, 3e5, 6e5, 1e6, ONLINE),
)
TASKS = tuple(SparseParity(n, k) for n in (50, 100, 150, 200, 250, 300) for k in (3, 4))
SMALL = SparseParity(10, 2)


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


FRONTIER = Experiment(
    id="PF-1",
    title="The success frontier: sample size against width, dense and sparse initialisation",
    source="PF §4.1, Fig. 1 left, Fig. 4, App. C.1",
    scales={
        "smoke": grid(
            SMALL, widths=(4, 32), samples=(30, 100, 300), seeds=4, steps=1_000, n_test=1_000
        ),
        "demo": grid(
            SparseParity(50, 3),
            widths=(10, 30, 100, 300, 1_000),
            samples=(400, 600, 800, 1_000, 1_200, 1_500, 2_000, 3_000),
            seeds=10,
            steps=30_000,
        ),
        "laptop": grid(
            SparseParity(50, 3),
            widths=(10, 30, 100, 300, 1_000),
            samples=(300, 450, 600, 800, 1e3, 1_300, 2e3, 4e3, 1e4, 1e5, ONLINE),
            seeds=10,
        ),
        "panel": grid(SparseParity(50, 3), widths=WIDTHS[:7], samples=SAMPLES, seeds=50),
        "paper": grid(*TASKS, widths=WIDTHS, samples=SAMPLES, seeds=50),
    },
    claims=(
        Claim(
            "a",
            "The smallest sample with which half of the runs succeed does not grow with width, and "
            "shrinks from the narrowest to the widest network.",
            "PF §4.1 (1)",
            FrontierShrinks(within=("task", "init")),
            "Large width compensates for small samples: a success frontier runs through every "
            "panel of Fig. 4.",
        ),
        Claim(
            "b",
            "At equal sample size and initialisation, success never decreases with width.",
            "PF §4.1 (2)",
            NeverDecreases(within=("data.m", "task", "init")),
            "Success only rises upwards in every panel; exceptions such as 98 % to 96 % lie within "
            "their errors.",
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
            "With wide networks, 2-sparse starts improve data, time and luck; at large n they "
            "succeed where the default start fails.",
        ),
        Claim(
            "d",
            "Somewhere, success falls and rises again as the sample grows.",
            "PF §4.1 (4)",
            Valley("success"),
            "Some rows of Fig. 4 enter and leave a feasible regime and succeed again with more "
            "data, at large n above all.",
        ),
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
        "smoke": grid(
            SMALL, widths=(4, 32), samples=(30, 60, 100, 300), seeds=4, steps=1_000, n_test=1_000
        ),
        "laptop": grid(
            SparseParity(50, 3), widths=(10, 30, 100, 300), samples=NEAR_THE_LIMIT, seeds=20
        ),
        "paper": grid(
            *(SparseParity(n, 3) for n in (50, 100, 200)),
            widths=WIDTHS,
            samples=tuple(sorted({*SAMPLES, *NEAR_THE_LIMIT})),
            seeds=50,
        ),
    },
    claims=(
        Claim(
            "luck",
            "At equal sample size, success never decreases with width: width buys luck and data.",
            "PF §4.1 (2), Fig. 2 centre",
            NeverDecreases(within=("data.m", "task", "init")),
            "Width improves success at every sample size, though it raises capacity.",
        ),
        Claim(
            "time",
            "At equal sample size, wider networks need fewer steps: width buys time.",
            "PF §4.1 (2), Fig. 2 right",
            Quicker(),
            "Larger networks take fewer serial steps to converge.",
        ),
        Claim(
            "edge",
            "At the smallest sample that suffices, learning takes longer than with more data.",
            "PF §4.1 (4), Fig. 2 right",
            SlowAtTheEdge(),
            "In the grokking regime at the edge of feasibility, less data costs more steps.",
        ),
        Claim(
            "descent",
            "Somewhere, the time to success falls and rises again as the sample grows.",
            "PF §4.1 (4), Fig. 2 right",
            Valley("time"),
            "A sample-wise double descent of the convergence time, which larger widths remove.",
        ),
    ),
    figures={"slices": success_slices},
)

CURVES = Experiment(
    id="PF-3",
    title="Training curves: memorising, grokking, learning at once",
    source="PF §4.1, Fig. 1 right",
    scales={
        "smoke": grid(
            SMALL,
            widths=(32,),
            samples=(30, 100),
            seeds=3,
            steps=1_000,
            n_test=1_000,
            curves_every=50,
        ),
        "laptop": grid(
            SparseParity(50, 3),
            widths=(30, 300, 1_000),
            samples=(300, 600, 1e3, 1e4),
            seeds=10,
            curves_every=500,
        ),
        "paper": grid(
            SparseParity(50, 3),
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
        ),
    ),
    figures={"curves": frontier_and_curves},
)


def sparsities(
    n: int,
    k: int,
    *,
    values: tuple[int, ...],
    widths: tuple[int, ...],
    samples: tuple[float, ...],
    seeds: int,
    steps: int = 100_000,
    n_test: int = 10_000,
) -> Sweep:
    """Sweep the sparsity s of the first layer's start, and the dense start."""
    return grid(
        SparseParity(n, k),
        widths=widths,
        samples=samples,
        seeds=seeds,
        inits=(*(Sparse(s) for s in values), Uniform()),
        steps=steps,
        n_test=n_test,
    )


SPARSITY = Experiment(
    id="PF-4",
    title="Sparsity of the start: how many nonzero weights a neuron",
    source="PF §4.1 (3), App. C.1",
    scales={
        "smoke": sparsities(
            10,
            2,
            values=(1, 2, 10),
            widths=(32,),
            samples=(100,),
            seeds=4,
            steps=1_000,
            n_test=1_000,
        ),
        "laptop": sparsities(
            50,
            3,
            values=(1, 2, 3, 4, 8, 16, 50),
            widths=(1_000,),
            samples=(500, 700, 1e3),
            seeds=10,
        ),
        "paper": sparsities(
            200,
            3,
            values=(1, 2, 3, 4, 8, 16, 200),
            widths=(1_000, 3_000, 10_000),
            samples=(600, 1e3, 2e3, 3e3, 6e3, 1e4),
            seeds=50,
        ),
    },
    claims=(
        Claim(
            "s=2",
            "No sparsity of the start succeeds more often than s = 2.",
            "PF §4.1 (3), App. C.1",
            BestOrTied("init", "sparse(2)"),
            "In smaller sweeps s = 2 was found best for widths of 1000 and more.",
        ),
    ),
    figures={"sparsity": sparsity_curves},
)


def tickets(
    n: int,
    k: int,
    *,
    width: int,
    kept: int,
    parents: int,
    retrained: int,
    steps: int = 100_000,
    every: int = 500,
    n_test: int = 10_000,
) -> Sweep:
    """Sweep wide networks, the tickets found in them, and controls of the tickets' size.

    The source names B and η alone; with λ = 0.01 networks of this width collapse to 0, so that λ is
    0 here. The support is fixed: parents and tickets must learn the same parity.
    """
    base = RunSpec(
        task=SparseParity(n, k, support=tuple(range(k))),
        data=Data(n_test=n_test),
        model=MLP(width),
        init=Sparse(2),
        training=Training(steps=steps, weight_decay=0.0),
        evaluation=Evaluation(every=every, curves=True),
    )
    fresh = range(1_000, 1_000 + retrained)
    narrow = {"model": (MLP(kept),)}
    rewound = tuple(Ticket("largest", width, Sparse(2), parent) for parent in range(parents))
    many = range(1_000, 1_000 + parents * retrained)
    return Sweep(
        base,
        {"seed": range(parents)},
        (
            Sweep(base, narrow | {"init": rewound, "seed": fresh}),
            Sweep(base, narrow | {"init": (Ticket("random", width, Sparse(2)),), "seed": many}),
            Sweep(base, narrow | {"seed": many}),
        ),
    )


TICKETS = Experiment(
    id="PF-5",
    title="Lottery tickets: the neurons that came to matter were lucky from the start",
    source="PF App. C.2, Fig. 5",
    scales={
        "smoke": tickets(
            10, 2, width=30, kept=2, parents=3, retrained=4, steps=2_000, every=100, n_test=1_000
        ),
        "laptop": tickets(50, 5, width=100, kept=5, parents=20, retrained=10),
        "paper": tickets(50, 5, width=100, kept=5, parents=50, retrained=50, every=100),
    },
    claims=(
        Claim(
            "more",
            "Rewound tickets are solved more often than random neurons of the same network size.",
            "PF App. C.2",
            TicketsWin("success"),
            "Retrained from its start the subnetwork improves quickly, unlike the large majority "
            "of random ones.",
        ),
        Claim(
            "sooner",
            "Rewound tickets are solved sooner than random neurons.",
            "PF App. C.2",
            TicketsWin("time"),
            "As above.",
        ),
    ),
    figures={"tickets": ticket_curves},
)


def over_sparse(
    n: int,
    k: int,
    s: int,
    *,
    widths: tuple[int, ...],
    samples: tuple[float, ...],
    seeds: int,
    steps: int = 200,
    n_test: int = 2_000,
) -> Sweep:
    """Sweep Theorem 4's algorithm at one sparsity s [PF App. B.2.2].

    Gradient descent on the whole sample: one step of the first layer's weights with η = 1/(2k|C|)
    and a decay that erases where they began, then the second layer alone. The text leaves the
    second layer's rate and decay open; the biases' offset of 1/16 makes its features small (1/64
    for k = 2), so that the rate is large. Success is a test error of at most 30 %: far from the
    chance of 50 % that every network has that has not found S, and near what the irrelevant weights
    leave at these sizes (docs/theory.md).
    """
    rate = 1 / (2 * k * abs(float(over_sparse_constants(k, s)[0])))
    first = Piece(0, (rate, 0.0, 0.0, 0.0), (1 / rate, 0.0, 0.0, 0.0))
    then = Piece(1, (0.0, 0.0, 100.0, 1.0), (0.0, 0.0, 1e-5, 0.0))
    base = RunSpec(
        task=SparseParity(n, k),
        data=Data(m=samples[0], n_test=n_test),
        model=MLP(widths[0]),
        init=OverSparse(s, k),
        training=Training(
            learning_rate=1.0,
            weight_decay=1.0,
            schedule=Schedule((first, then)),
            batch_size=None,
            steps=steps,
            target_error=0.3,
        ),
        evaluation=Evaluation(every=10, fitted_error=None),
    )
    return Sweep(base, {"model.width": widths, "data.m": samples, "seed": range(seeds)})


def theory(sparsities: tuple[Sweep, ...], measured: Sweep) -> Sweep:
    """Put Theorem 4's sweeps and a measured frontier together."""
    first, *rest = sparsities
    return Sweep(first.base, first.axes, (*rest, measured))


THEORY = Experiment(
    id="PF-7",
    title="Theory: the lower bound, over-sparse and under-sparse starts, classical solvers",
    source="PF §3, App. B",
    scales={
        "smoke": theory(
            tuple(
                over_sparse(12, 2, s, widths=(8, 64), samples=(100, 1e3), seeds=4, steps=50)
                for s in (3, 9)
            ),
            FRONTIER.scales["smoke"],
        ),
        "laptop": theory(
            tuple(
                over_sparse(
                    24,
                    2,
                    s,
                    widths=(4, 8, 16, 32, 64, 128),
                    samples=(60, 120, 250, 500, 1e3, 2e3, 4e3),
                    seeds=10,
                )
                for s in (5, 9, 15, 23)
            ),
            FRONTIER.scales["laptop"],
        ),
        "paper": theory(
            tuple(
                over_sparse(
                    100,
                    2,
                    s,
                    widths=(4, 16, 64, 256, 1_024, 4_096),
                    samples=(1e3, 3e3, 1e4, 3e4, 1e5),
                    seeds=50,
                )
                for s in (9, 17, 33, 65, 99)
            ),
            FRONTIER.scales["panel"],
        ),
    },
    claims=(
        Claim(
            "P3",
            "No network succeeds with less than Proposition 3's product of parameters, steps, data "
            "and luck.",
            "PF Prop. 3",
            AboveTheBound(),
            "If rT/(τ²δ) ≤ ½ C(n, k), the first T steps of SGD are independent of some parity.",
        ),
        Claim(
            "T4r",
            "Over-sparse starts: with more ones a neuron, fewer neurons suffice.",
            "PF Thm 4",
            FrontierSlope("init.s", "model.width", "data.m", "falls", claimed=-2),
            "A width of order (n/s)^k suffices.",
        ),
        Claim(
            "T4m",
            "Over-sparse starts: with more ones a neuron, more examples are needed.",
            "PF Thm 4",
            FrontierSlope("init.s", "data.m", "model.width", "rises", claimed=1),
            "A sample of order (s/k)^(k−1) n² log n suffices.",
        ),
        Claim(
            "T5m",
            "Under-sparse starts: the sample that finds the missing bits grows like n^(k−s−1).",
            "PF Thm 5, Thm 21",
            RecoverySlope(k=4, s=2, n_values=(21, 41, 81, 161), trials=60),
            "m of order n^(k−s−1) suffices for one truncated step.",
        ),
        Claim(
            "T5c",
            "Under-sparse starts: after one truncated step a subnetwork agrees with the parity by "
            "more than ½.",
            "PF Thm 5, Thm 21",
            SubnetworkAgrees(n=21, k=4, s=2, m=16_000, trials=20),
            "A correlation of at least ½ − ε; the exact value for the printed biases is 1 − 2^−k "
            "(docs/theory.md).",
        ),
    ),
    figures={
        "bounds": bounds_and_solvers,
        "over-sparse": over_sparse_map,
        "under-sparse": recovery_curves,
    },
)
