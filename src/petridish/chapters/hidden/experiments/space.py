"""HP, where it works: the robust space (HP-1), small samples (HP-9), depth (HP-11)."""

from __future__ import annotations

from collections.abc import Sequence

from petridish.chapters.hidden.experiments.shared import architecture, relu, setting
from petridish.chapters.hidden.figures.grokking import depth_table, grokking_grid, grokking_map
from petridish.chapters.hidden.figures.robust import alpha_table, robust_combinations, robust_table
from petridish.chapters.hidden.rules.grokking import (
    DecayWidens,
    DepthDecides,
    GreedyStaysAtChance,
    GrokkingBand,
)
from petridish.chapters.hidden.rules.robust import RobustSpace, ScalingTable
from petridish.experiment import Experiment
from petridish.models import MLP, Bernoulli, Init, KaimingGaussian, Power, Uniform
from petridish.rules.claims import Claim
from petridish.sweeps import Sweep, joined
from petridish.tasks import SparseParity
from petridish.training import Greedy, Hinge, Logistic, Loss, Square, frozen_below

ROBUST = (
    *("(i)", "(ii)", "(iii)", "(iv)", "(v)", "(vi)", "(vii)", "(viii)"),
    *("(ix)", "(x)", "(xi)", "(xii)", "(xiii)", "(xiv)", "(xv)"),
)
LESS_ROBUST = ("(*i)", "(*ii)")
RATES = (0.001, 0.01, 0.1, 1.0)
STARTS: tuple[Init, ...] = (Uniform(), KaimingGaussian(), Bernoulli("fan_in"))
LOSSES: tuple[Loss, ...] = (Hinge(), Square(), Logistic())


def space(
    tasks: Sequence[tuple[int, int]],
    *,
    numerals: Sequence[str] = ROBUST,
    batches: Sequence[int],
    starts: Sequence[Init],
    losses: Sequence[Loss],
    seeds: int,
    first_seed: int = 0,
    steps: int = 100_000,
    n_test: int = 8192,
) -> Sweep:
    """Sweep architectures, batch sizes, initialisations, losses and rates [HP Figs B.3 – B.5]."""
    parts = []
    for n, k in tasks:
        base = setting(
            SparseParity(n, k),
            architecture(numerals[0], k),
            rate=RATES[0],
            steps=steps,
            n_test=n_test,
        )
        axes = {
            "model": tuple(architecture(numeral, k) for numeral in numerals),
            "training.batch_size": tuple(batches),
            "init": tuple(starts),
            "training.loss": tuple(losses),
            "training.learning_rate": RATES,
            "seed": range(first_seed, seeds),
        }
        parts.append(Sweep(base, axes))
    return joined(parts)


ALL_TASKS = tuple((n, k) for k in (2, 3, 4) for n in (10, 20, 30))
SPACE_SCALES = {
    "smoke": space(
        ((8, 2), (12, 2)),
        numerals=("(i)", "(iv)", "(xi)", "(xv)"),
        batches=(32,),
        starts=STARTS[:1],
        losses=LOSSES[:1],
        seeds=2,
        steps=1_000,
        n_test=512,
    ),
    "laptop": joined(
        [
            space(
                ((10, 3),),
                batches=(4, 32, 256),
                starts=STARTS[:2],
                losses=LOSSES[:2],
                seeds=5,
                steps=10_000,
                n_test=1_024,
            ),
            *(
                space(
                    (task,),
                    batches=(32,),
                    starts=STARTS[:1],
                    losses=LOSSES[:1],
                    seeds=15,
                    first_seed=5 if task == (10, 3) else 0,  # the others are in the grid above
                    steps=10_000,
                    n_test=1_024,
                )
                for task in ALL_TASKS[:6]
            ),
        ]
    ),
    "paper": space(
        ALL_TASKS,
        numerals=(*ROBUST, *LESS_ROBUST),
        batches=tuple(2**e for e in range(11)),
        starts=STARTS,
        losses=LOSSES,
        seeds=25,
    ),
}


def samples_and_decay(
    n: int,
    k: int,
    *,
    samples: Sequence[float],
    decays: Sequence[float],
    seeds: int,
    width: int = 100,
    steps: int = 100_000,
    n_test: int = 8192,
    every: int = 200,
) -> Sweep:
    """Sweep sample sizes and weight decays [HP Figs 5.4 right, B.11].

    The source names neither the task nor when a run counts as converged there: (50, 3), as in its
    other figures, and 1 % of the held-out examples.
    """
    base = setting(
        SparseParity(n, k),
        relu(width),
        rate=0.1,
        steps=steps,
        n_test=n_test,
        every=every,
        curves=True,
        target=0.01,
        m=samples[0],
    )
    axes = {
        "training.weight_decay": tuple(decays),
        "data.m": tuple(samples),
        "seed": range(seeds),
    }
    return Sweep(base, axes)


SAMPLES = (200.0, 300.0, 400.0, 500.0, 600.0, 800.0, 1e3, 1.5e3, 2e3, 5e3, 1e4)
DECAYS = (0.0, 1e-3, 3e-3, 1e-2, 2e-2, 5e-2, 0.1, 0.2)
GROKKING_SCALES = {
    "smoke": samples_and_decay(
        10,
        2,
        samples=(30, 300),
        decays=(0.0, 0.01),
        seeds=4,
        width=30,
        steps=2_000,
        n_test=512,
        every=50,
    ),
    "laptop": samples_and_decay(
        50, 3, samples=(300, 500, 800, 1.5e3, 5e3), decays=DECAYS[::2] + DECAYS[-1:], seeds=8
    ),
    "grid": samples_and_decay(
        50, 3, samples=(300, 500, 800, 1e3, 1.5e3, 2e3, 5e3), decays=DECAYS, seeds=10
    ),
    "paper": samples_and_decay(50, 3, samples=SAMPLES, decays=DECAYS, seeds=50, every=100),
}


def squares(*widths: int) -> MLP:
    """Give a deep network of squares: L − 1 hidden layers, and an output [HP App. B.3.7].

    The text writes the output as u·z. Over a last layer of one neuron, as its networks with L = 3
    and 4 have, that is a square of one sign and never a parity: the output has a bias here. With
    L = 2, ten squares, none is needed for k ≤ 2, and larger k are beyond it; it has the bias too.
    """
    return MLP(widths[0], tuple(widths[1:]), Power(2))


def depth(
    n_values: Sequence[int],
    deep: dict[tuple[int, ...], Sequence[int]],
    *,
    greedy: Sequence[tuple[tuple[int, ...], int]],
    seeds: int,
    steps: dict[int, int],
    n_test: int = 1_024,
) -> Sweep:
    """Sweep depths and degrees, end to end and greedily [HP App. B.3.7].

    `deep` gives the degrees k for each tuple of hidden widths, `greedy` which of them are trained
    layer by layer too, `steps` the budget by the number of hidden layers.
    """
    parts = []
    for widths, ks in deep.items():
        for k in ks:
            base = setting(
                SparseParity(n_values[0], k),
                squares(*widths),
                rate=0.01,
                steps=steps[len(widths)],
                n_test=n_test,
                every=100,
            )
            axes = {"task.n": tuple(n_values), "seed": range(seeds)}
            parts.append(Sweep(base, axes))
            if (widths, k) in greedy:
                hidden = len(widths)
                layerwise = {
                    "init": (Greedy(Uniform()),),
                    "training.schedule": (frozen_below(hidden - 1, hidden + 1),),
                }
                parts.append(Sweep(base, axes | layerwise))
    return joined(parts)


DEPTH_SCALES = {
    "smoke": depth(
        (8,),
        {(4,): (2,), (4, 2): (3,)},
        greedy=(((4, 2), 3),),
        seeds=3,
        steps={1: 1_000, 2: 1_000},
        n_test=512,
    ),
    "laptop": depth(
        (10, 20),
        {(10,): (1, 2, 3, 4), (2, 1): (1, 2, 3, 4, 5), (10, 10, 1): (1, 2, 3, 4, 5, 6)},
        greedy=(((2, 1), 3), ((2, 1), 4)),
        seeds=10,
        steps={1: 20_000, 2: 20_000, 3: 50_000},
    ),
    "paper": depth(
        (10, 20, 30),
        {(10,): (1, 2, 3, 4), (2, 1): (1, 2, 3, 4, 5, 6), (10, 10, 1): (1, 2, 3, 4, 5, 6, 7, 8, 9)},
        greedy=(((2, 1), 3), ((2, 1), 4), *(((10, 10, 1), k) for k in (3, 4, 5, 6))),
        seeds=10,
        steps={1: 500_000, 2: 500_000, 3: 500_000},
        n_test=8192,
    ),
}


SPACE = Experiment(
    id="HP-1",
    title="The robust space: fifteen architectures, their starts, losses, batches and rates",
    source="HP §3.1, Figs B.3, B.4, B.5",
    scales=SPACE_SCALES,
    claims=(
        Claim(
            "R",
            "Every architecture (i) … (xv) converges in 20 % of the trials or more, for some rate.",
            "HP §3.1",
            RobustSpace(),
            "So in all combinations of n, k, batch size, initialisation, loss and architecture.",
            kind="paper",
        ),
        Claim(
            "A",
            "The time to converge grows with n by an exponent below k.",
            "HP §3.1, Fig. B.5",
            ScalingTable(init="uniform"),
            "t_c ≤ c·n^(αk) ≤ 10^5 for small constants c, α of the architecture.",
            kind="ours",
        ),
    ),
    figures={
        "success": robust_table,
        "combinations": robust_combinations,
        "exponents": alpha_table,
    },
)

GROKKING = Experiment(
    id="HP-9",
    title="Grokking: sample size against weight decay",
    source="HP §5, App. B.3.5, Figs 5.4 right, B.11",
    scales=GROKKING_SCALES,
    claims=(
        Claim(
            "B",
            "There is a band of sample sizes at which networks fit first and generalise later.",
            "HP App. B.3.5, Fig. B.11",
            GrokkingBand(),
            "Between samples too small and samples large enough, curves show grokking.",
            kind="paper",
        ),
        Claim(
            "W",
            "Weight decay lets smaller samples succeed, until optimisation fails.",
            "HP App. B.3.5, Fig. B.11",
            DecayWidens(),
            "Larger λ improves generalisation, but can cause optimisation to fail.",
            kind="paper",
        ),
    ),
    figures={"curves": grokking_grid, "map": grokking_map},
)

DEPTH = Experiment(
    id="HP-11",
    title="Deep but not layer by layer: squares of squares",
    source="HP App. B.3.7",
    scales=DEPTH_SCALES,
    claims=(
        Claim(
            "D",
            "Networks of L layers of squares solve parities up to k = 2^(L−1) that the source "
            "lists, and no higher.",
            "HP App. B.3.7",
            DepthDecides(),
            "All of 10 runs converged for L = 3, k ≤ 4 and L = 4, k ≤ 6; L = 2, k ≥ 3 and L = 3, "
            "k ≥ 5 failed.",
            kind="ours",
        ),
        Claim(
            "G",
            "Trained greedily, layer by layer, they stay at chance.",
            "HP App. B.3.7",
            GreedyStaysAtChance(),
            "Layer by layer the population gradient is 0.",
            kind="paper",
        ),
    ),
    figures={"depth": depth_table},
)
