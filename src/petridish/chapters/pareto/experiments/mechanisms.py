"""PF, the mechanisms: lottery tickets (PF-5), and theorems beside classical solvers (PF-7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from petridish.chapters.pareto.experiments.frontiers import FRONTIER
from petridish.chapters.pareto.figures.theorems import (
    bounds_and_solvers,
    over_sparse_curves,
    recovery_curves,
)
from petridish.chapters.pareto.figures.tickets import ticket_curves
from petridish.chapters.pareto.rules.theorems import (
    AboveTheBound,
    GrowsNoFaster,
    KeptSigns,
    RecoverySlope,
    SubnetworkAgrees,
)
from petridish.chapters.pareto.rules.tickets import TicketsImprove, TicketsWin
from petridish.experiment import Experiment
from petridish.models import MLP, OverSparse, Sparse
from petridish.rules import Each, Rule, Share, Solved
from petridish.rules.claims import Claim
from petridish.sweeps import Arms, Sweep, joined
from petridish.tasks import SparseParity
from petridish.theory.pareto.gradients import over_sparse_constants
from petridish.theory.pareto.neurons import good_chance
from petridish.training import (
    Below,
    Data,
    Evaluation,
    Hinge,
    MeanLoss,
    Piece,
    RunSpec,
    Schedule,
    Ticket,
    Training,
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

    The paper names B and η alone; with λ = 0.01 networks of this width collapse to 0, so that λ is
    0 here. The support is fixed: parents and tickets must learn the same parity. Nothing stops a
    run before its last step, since neurons are chosen «at the end of training»; when a run is
    solved is read off its curve.
    """
    base = RunSpec(
        task=SparseParity(n, k, support=tuple(range(k))),
        data=Data(n_test=n_test),
        model=MLP(width),
        init=Sparse(2),
        training=Training(steps=steps, weight_decay=0.0, target_error=None),
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
        "large": tickets(50, 5, width=100, kept=5, parents=50, retrained=50, every=100),
    },
    claims=(
        Claim(
            "improves",
            "Most rewound tickets come to a test error of at most 25 %, and less than a third of "
            "random subnetworks of their size do.",
            "PF App. C.2",
            TicketsImprove(),
            "Trained from its initialisation, the subnetwork's performance quickly improves, "
            "unlike the large majority of randomly initialised subnetworks of the same size.",
            kind="paper",
        ),
        Claim(
            "more",
            "Rewound tickets are solved (at most 10 % error) more often than random neurons and "
            "than new networks of the same size.",
            "PF App. C.2",
            TicketsWin("success"),
            "The paper speaks of improving, not of a target error.",
            kind="ours",
        ),
        Claim(
            "sooner",
            "Of the runs that are solved, those of rewound tickets are solved sooner.",
            "PF App. C.2",
            TicketsWin("time"),
            "«Quickly», of the subnetwork; the paper compares no times of solved runs.",
            kind="ours",
        ),
    ),
    figures={"tickets": ticket_curves},
)


# Expected pairs of good neurons, in the widths among which the least that suffices is looked for.
PAIRS = (0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6)
AMPLE = 8.0  # pairs of good neurons on average: more than enough
EXAMPLES = (90, 125, 180, 250, 350, 500, 700, 1_000, 1_400, 2_000, 2_800)
Setting = tuple[int, int]  # n and s


def width_with(pairs: float, n: int, s: int, k: int = 2) -> int:
    """Return the even width that has so many pairs of good neurons on average [PF Lemma 7]."""
    return 2 * max(1, round(pairs / float(good_chance(n, k, s))))


def theorem_4(n: int, k: int, s: int, *, m: float, width: int, steps: int) -> RunSpec:
    """Declare Theorem 4's algorithm at one sparsity s [PF App. B.2.2].

    Gradient descent on the whole sample: one step of the first layer's weights with η = 1/(2k|C|)
    and a decay that erases where they began, then the second layer alone. Lemma 14 lets the second
    layer's rate and decay be chosen; the biases' offset of 1/16 makes its features small (1/64 for
    k = 2), so that the rate is large. Success is the theorem's own event, a population loss of at
    most ε, at the largest ε that it allows: a hinge loss of at most ½ on held-out examples, where 1
    is the loss of the network that is 0.
    """
    rate = 1 / (2 * k * abs(float(over_sparse_constants(k, s)[0])))
    first = Piece(0, (rate, 0.0, 0.0, 0.0), (1 / rate, 0.0, 0.0, 0.0))
    then = Piece(1, (0.0, 0.0, 100.0, 1.0), (0.0, 0.0, 1e-5, 0.0))
    return RunSpec(
        task=SparseParity(n, k),
        data=Data(m=m, n_test=2_000),
        model=MLP(width),
        init=OverSparse(s, k),
        training=Training(
            learning_rate=1.0,
            weight_decay=1.0,
            schedule=Schedule((first, then)),
            batch_size=None,
            steps=steps,
            stop=Below(MeanLoss(Hinge()), 0.5),
        ),
        evaluation=Evaluation(every=10, fitted_error=None),
    )


def theorem_4_arms(
    *,
    measured: str,
    width_along_s: tuple[Setting, ...],
    width_along_n: tuple[Setting, ...],
    sample_along_s: tuple[Setting, ...],
    sample_along_n: tuple[Setting, ...],
    sample_in_proportion: tuple[Setting, ...],
    seeds: int,
    ample: float = 4_000,
    pairs: tuple[float, ...] = PAIRS,
    examples: tuple[int, ...] = EXAMPLES,
    steps: int = 200,
) -> Arms:
    """Sweep widths at an ample sample, and samples at an ample width, for k = 2 bits.

    Each setting (n, s) has widths of its own, around the one that has a pair of good neurons, so
    that the least that suffices lies among them. Beside these, a scale of PF-1.
    """

    def cells(settings: tuple[Setting, ...], vary: Literal["width", "sample", "nothing"]) -> Sweep:
        parts = []
        for n, s in settings:
            widths = tuple(dict.fromkeys(width_with(p, n, s) for p in pairs))
            base = theorem_4(n, 2, s, m=ample, width=width_with(AMPLE, n, s), steps=steps)
            axes: dict[str, Sequence[Any]] = {"seed": range(seeds)}
            if vary == "width":
                axes = {"model.width": widths, **axes}
            elif vary == "sample":
                axes = {"data.m": tuple(map(float, examples)), **axes}
            parts.append(Sweep(base, axes))
        return joined(parts)

    everything = (
        *(width_along_s + width_along_n + sample_along_s),
        *(sample_along_n + sample_in_proportion),
    )
    return Arms(
        {
            "width along s": cells(width_along_s, "width"),
            "width along n": cells(width_along_n, "width"),
            "sample along s": cells(sample_along_s, "sample"),
            "sample along n": cells(sample_along_n, "sample"),
            "sample, s in proportion to n": cells(sample_in_proportion, "sample"),
            "ample": cells(tuple(dict.fromkeys(everything)), "nothing"),
            "SGD": FRONTIER.scales[measured],
        }
    )


THEORY = Experiment(
    id="PF-7",
    title="Theory: the lower bound, over-sparse and under-sparse starts, classical solvers",
    source="PF §3, App. B",
    scales={
        "smoke": theorem_4_arms(
            measured="smoke",
            width_along_s=((13, 9), (13, 11)),
            width_along_n=((11, 9), (13, 9)),
            sample_along_s=((13, 9), (13, 11)),
            sample_along_n=((11, 9), (13, 9)),
            sample_in_proportion=((13, 9), (15, 11)),
            pairs=(1.0, 4.0),
            examples=(60, 300),
            ample=500,
            seeds=4,
            steps=30,
        ),
        "laptop": theorem_4_arms(
            measured="laptop",
            width_along_s=((65, 9), (65, 17), (65, 33)),
            width_along_n=((17, 9), (25, 9), (33, 9), (49, 9), (65, 9)),
            sample_along_s=((49, 9), (49, 17), (49, 25), (49, 33)),
            sample_along_n=((17, 9), (25, 9), (33, 9), (49, 9)),
            sample_in_proportion=((17, 9), (33, 17), (65, 33)),
            seeds=20,
        ),
        "large": theorem_4_arms(
            measured="panel",
            width_along_s=((129, 9), (129, 17), (129, 33), (129, 65)),
            width_along_n=((17, 9), (33, 9), (65, 9), (129, 9)),
            sample_along_s=((129, 9), (129, 17), (129, 33), (129, 65)),
            sample_along_n=((17, 9), (33, 9), (65, 9), (129, 9)),
            sample_in_proportion=((17, 9), (33, 17), (65, 33), (129, 65)),
            ample=32_000,
            examples=(*EXAMPLES, 4_000, 5_600, 8_000, 11_000, 16_000),
            seeds=50,
        ),
    },
    claims=(
        Claim(
            "P3",
            "In PF-1's and Theorem 4's runs, no offline cell that succeeds in half of its runs "
            "used less than Proposition 3's product of parameters, steps, data and luck.",
            "PF Prop. 3",
            AboveTheBound(),
            "If rT/(τ²δ) ≤ ½ C(n, k), the first T steps of SGD are independent of some parity: for "
            "a loss with ℓ' = −y + ℓ0(ŷ), gradients of at most 1 and adversarial noise of at most "
            "τ, none of which these runs have; τ² = 1/m is ours.",
            kind="check",
        ),
        Claim(
            "T4e",
            "Theorem 4's algorithm ends with a loss of at most ½ in more than half of its runs, at "
            "every n and s, with widths and samples of the theorem's order.",
            "PF Thm 4",
            Rule(Solved(), Each(("task", "init"), only={"arm": "ample"}), Share(), above=0.5),
            "With probability at least 0.99 the loss is at most ε, for every ε < ½ and an s that "
            "grows as 1/ε²; biases repaired, k = 2.",
            kind="ours",
        ),
        Claim(
            "T4rs",
            "Over-sparse starts: the least width falls with s at least as fast as s^−k.",
            "PF Thm 4",
            GrowsNoFaster("width along s", "init.s", "model.width", exponent=-2),
            "A width of order (n/s)^k suffices.",
            kind="ours",
        ),
        Claim(
            "T4rn",
            "Over-sparse starts: the least width grows no faster than n^k at fixed s.",
            "PF Thm 4",
            GrowsNoFaster("width along n", "task.n", "model.width", exponent=2),
            "A width of order (n/s)^k suffices.",
            kind="ours",
        ),
        Claim(
            "T4ms",
            "Over-sparse starts: the least sample grows no faster than s^(k−1).",
            "PF Thm 4",
            GrowsNoFaster("sample along s", "init.s", "data.m", exponent=1),
            "A sample of order (s/k)^(k−1) n² log n suffices.",
            kind="ours",
        ),
        Claim(
            "T4mn",
            "Over-sparse starts: the least sample grows no faster than n² log n at fixed s.",
            "PF Thm 4, §3.2.1",
            GrowsNoFaster("sample along n", "task.n", "data.m", exponent=2, per_log=True),
            "With a sparsity independent of n the sample grows only as n² log n.",
            kind="ours",
        ),
        Claim(
            "T4mp",
            "Over-sparse starts: with s in proportion to n, the least sample grows no faster than "
            "n^(k+1) log n.",
            "PF Thm 4, §3.2.1",
            GrowsNoFaster(
                "sample, s in proportion to n", "task.n", "data.m", exponent=3, per_log=True
            ),
            "With s = αn a width independent of n suffices, and the sample is of order n^(k+1).",
            kind="ours",
        ),
        Claim(
            "T5m",
            "Under-sparse starts: the sample from which one truncated step finds the whole set S "
            "grows no faster than n^(k−s−1) log n.",
            "PF Thm 5, Thm 21",
            RecoverySlope(k=4, s=2, n_values=(21, 41, 81, 161), trials=60),
            "m of order (n/k)^(k−s−1) suffices for one truncated step; the logarithm is ours.",
            kind="check",
        ),
        Claim(
            "T5c",
            "Under-sparse starts: after one truncated step, with the second layer at ±1 as it "
            "leaves it, a subnetwork has a correlation of at least ½ with the parity.",
            "PF Thm 5, Thm 21",
            KeptSigns(((4, 2), (6, 2), (6, 4))),
            "For even s < k there is a subnetwork with a correlation of at least ½ − ε.",
            kind="check",
        ),
        Claim(
            "T5o",
            "Ours instead: if the second layer is solved for anew, and γ lies half-way between the "
            "two gradients, good neurons agree with the parity by more than ½ after one step.",
            "PF Thm 5, Thm 21",
            SubnetworkAgrees(n=21, k=4, s=2, m=16_000, trials=20),
            "Neither is in the text: the step leaves the second layer as it is, and γ is the "
            "gradient of the irrelevant bits.",
            kind="check",
        ),
    ),
    figures={
        "bounds": bounds_and_solvers,
        "over-sparse": over_sparse_curves,
        "under-sparse": recovery_curves,
    },
)
