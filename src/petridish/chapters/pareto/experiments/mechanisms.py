"""PF, the mechanisms: lottery tickets (PF-5), and theorems beside classical solvers (PF-7)."""

from __future__ import annotations

from petridish.chapters.pareto.experiments.frontiers import FRONTIER
from petridish.chapters.pareto.figures.theorems import bounds_and_solvers, recovery_curves
from petridish.chapters.pareto.figures.tickets import ticket_curves
from petridish.chapters.pareto.rules.theorems import (
    AboveTheBound,
    FrontierSlope,
    RecoverySlope,
    SubnetworkAgrees,
)
from petridish.chapters.pareto.rules.tickets import TicketsWin
from petridish.experiment import Experiment
from petridish.figures.heat_map import over_sparse_map
from petridish.models import MLP, OverSparse, Sparse
from petridish.rules.claims import Claim
from petridish.sweeps import Sweep, joined
from petridish.tasks import SparseParity
from petridish.theory import over_sparse_constants
from petridish.training import Data, Evaluation, Piece, RunSpec, Schedule, Ticket, Training


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
            kind="ours",
        ),
        Claim(
            "sooner",
            "Rewound tickets are solved sooner than random neurons.",
            "PF App. C.2",
            TicketsWin("time"),
            "As above.",
            kind="ours",
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
    return joined((*sparsities, measured))


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
            kind="check",
        ),
        Claim(
            "T4r",
            "Over-sparse starts: with more ones a neuron, fewer neurons suffice.",
            "PF Thm 4",
            FrontierSlope("init.s", "model.width", "data.m", "falls", claimed=-2),
            "A width of order (n/s)^k suffices.",
            kind="ours",
        ),
        Claim(
            "T4m",
            "Over-sparse starts: with more ones a neuron, more examples are needed.",
            "PF Thm 4",
            FrontierSlope("init.s", "data.m", "model.width", "rises", claimed=1),
            "A sample of order (s/k)^(k−1) n² log n suffices.",
            kind="ours",
        ),
        Claim(
            "T5m",
            "Under-sparse starts: the sample that finds the missing bits grows like n^(k−s−1).",
            "PF Thm 5, Thm 21",
            RecoverySlope(k=4, s=2, n_values=(21, 41, 81, 161), trials=60),
            "m of order n^(k−s−1) suffices for one truncated step.",
            kind="check",
        ),
        Claim(
            "T5c",
            "Under-sparse starts: after one truncated step a subnetwork agrees with the parity by "
            "more than ½.",
            "PF Thm 5, Thm 21",
            SubnetworkAgrees(n=21, k=4, s=2, m=16_000, trials=20),
            "A correlation of at least ½ − ε; the exact value for the printed biases is 1 − 2^−k "
            "(docs/theory.md).",
            kind="check",
        ),
    ),
    figures={
        "bounds": bounds_and_solvers,
        "over-sparse": over_sparse_map,
        "under-sparse": recovery_curves,
    },
)
