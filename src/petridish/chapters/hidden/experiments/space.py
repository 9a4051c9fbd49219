"""HP, where it works: the robust space (HP-1), small samples (HP-9), depth (HP-11)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from petridish.chapters.hidden.experiments.shared import followed, relu, setting
from petridish.chapters.hidden.figures.grokking import depth_table, grokking_grid, grokking_map
from petridish.chapters.hidden.figures.robust import alpha_table, robust_combinations, robust_table
from petridish.chapters.hidden.rules.architectures import NUMERALS, ROBUST, architecture
from petridish.chapters.hidden.rules.depth import DepthDecides, GreedyStaysAtChance
from petridish.chapters.hidden.rules.exponents import ScalingTable
from petridish.chapters.hidden.rules.grokking import DecayWidens, GrokkingBand
from petridish.chapters.hidden.rules.robust import RATES, RobustSpace
from petridish.experiment import Experiment
from petridish.models import MLP, Bernoulli, Init, KaimingGaussian, Power, Uniform
from petridish.rules.claims import Claim
from petridish.sweeps import Sweep, joined
from petridish.tasks import SparseParity
from petridish.training import Greedy, Hinge, Logistic, Loss, Square, frozen_below

STARTS: tuple[Init, ...] = (Uniform(), KaimingGaussian(), Bernoulli("fan_in"))
LOSSES: tuple[Loss, ...] = (Hinge(), Square(), Logistic())


def space(
    tasks: Sequence[tuple[int, int]],
    *,
    seeds: range,
    numerals: Sequence[str] = ROBUST,
    batches: Sequence[int] = (32,),
    starts: Sequence[Init] = STARTS[:1],
    losses: Sequence[Loss] = LOSSES[:1],
    **how: Any,
) -> Sweep:
    """Sweep architectures, batch sizes, initialisations, losses and rates [HP Figs B.3 – B.5]."""
    parts = []
    for n, k in tasks:
        models = tuple(architecture(numeral, k) for numeral in numerals)
        axes = {
            "model": models,
            "training.batch_size": batches,
            "init": starts,
            "training.loss": losses,
            "training.learning_rate": RATES,
            "seed": seeds,
        }
        parts.append(Sweep(setting(SparseParity(n, k), models[0], rate=RATES[0], **how), axes))
    return joined(parts)


NARROW = NUMERALS[15:17]  # (*iii) takes the paper's width and 45 ms a step: see HP-15
ALL_TASKS = tuple((n, k) for k in (2, 3, 4) for n in (10, 20, 30))
FEW_STEPS: Any = {"steps": 10_000, "n_test": 1_024}
SPACE_SCALES = {
    "smoke": space(
        ((8, 2), (12, 2)),
        numerals=("(i)", "(iv)", "(xi)", "(xv)", "(*ii)"),
        seeds=range(2),
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
                seeds=range(5),
                **FEW_STEPS,
            ),
            *(  # the first seeds of (10, 3) are in the grid above
                space((task,), seeds=range(5 if task == (10, 3) else 0, 15), **FEW_STEPS)
                for task in ALL_TASKS[:6]
            ),
            space(
                ALL_TASKS[:6], numerals=NARROW, batches=(4, 16, 64), seeds=range(15), **FEW_STEPS
            ),
        ]
    ),
    "paper": space(
        ALL_TASKS,
        numerals=(*ROBUST, *NARROW),
        batches=tuple(2**e for e in range(11)),
        starts=STARTS,
        losses=LOSSES,
        seeds=range(25),
        n_test=8192,
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
    every: int = 200,
    **how: Any,
) -> Sweep:
    """Sweep sample sizes and weight decays [HP Figs 5.4 right, B.11].

    The task, (50, 3), is named in Figure 4 of the conference's text. When a run counts as converged
    is not said: 1 % of the held-out examples. `decays` are PyTorch's, w ← (1 − η λ) w − η g, and η
    is 0.1: the λ of HP's Eq. 5.1, which figures and remarks show, is a tenth of them.
    """
    base = followed(
        SparseParity(n, k), relu(width), rate=0.1, every=every, target=0.01, m=samples[0], **how
    )
    return Sweep(base, {"training.weight_decay": decays, "data.m": samples, "seed": range(seeds)})


SAMPLES = (200.0, 300.0, 400.0, 500.0, 600.0, 800.0, 1e3, 1.5e3, 2e3, 5e3, 1e4)
DECAYS = (0.0, 1e-3, 3e-3, 1e-2, 2e-2, 5e-2, 0.1, 0.2)
SMALL: Any = {"width": 30, "steps": 2_000, "n_test": 512, "every": 50}
GROKKING_SCALES = {
    "smoke": samples_and_decay(10, 2, samples=(30, 300), decays=(0.0, 0.01), seeds=4, **SMALL),
    "laptop": samples_and_decay(
        50, 3, samples=(300, 500, 800, 1.5e3, 5e3), decays=DECAYS[::2] + DECAYS[-1:], seeds=8
    ),
    "grid": samples_and_decay(
        50, 3, samples=(300, 500, 800, 1e3, 1.5e3, 2e3, 5e3), decays=DECAYS, seeds=10
    ),
    "paper": samples_and_decay(50, 3, samples=SAMPLES, decays=DECAYS, seeds=50, every=100),
}


def squares(*widths: int) -> MLP:
    """Return a deep network of squares: L − 1 hidden layers, and an output [HP App. B.3.7].

    The paper writes the output as u·z. Over a last layer of one neuron, as its networks with L = 3
    and 4 have, that is a square of one sign and never a parity: the output has a bias here. With
    L = 2, ten squares, none is needed for k ≤ 2, and larger k are beyond it; it has the bias too.
    """
    return MLP(widths[0], tuple(widths[1:]), Power(2))


def depth(
    n_values: Sequence[int],
    deep: Mapping[tuple[int, ...], Sequence[int]],
    *,
    greedy: Sequence[tuple[tuple[int, ...], int]],
    seeds: int,
    steps: Sequence[int],
    longer: Mapping[tuple[int, int], int] | None = None,
    n_test: int = 1_024,
) -> Sweep:
    """Sweep depths and degrees, end to end and greedily [HP App. B.3.7].

    `deep` has the degrees k for each tuple of hidden widths, `greedy` says which of them are
    trained layer by layer too, `steps` is the budget by the number of hidden layers, from 1 on.
    `longer` has further tasks (n, k) of the deepest network, with a budget of their own.
    """
    deepest = max(deep, key=len)
    cells = [(widths, n_values, k, steps[len(widths) - 1]) for widths in deep for k in deep[widths]]
    cells += [(deepest, (n,), k, budget) for (n, k), budget in (longer or {}).items()]
    parts = []
    for widths, sizes, k, budget in cells:
        hidden = len(widths)
        layerwise = {
            "init": (Greedy(Uniform()),),
            "training.schedule": (frozen_below(hidden - 1, hidden + 1),),
        }
        how: Any = {"rate": 0.01, "steps": budget, "n_test": n_test, "every": 100}
        base = setting(SparseParity(sizes[0], k), squares(*widths), **how)
        axes = {"task.n": sizes, "seed": range(seeds)}
        parts.append(Sweep(base, axes))
        if (widths, k) in greedy:
            parts.append(Sweep(base, axes | layerwise))
    return joined(parts)


DEPTH_SCALES = {
    "smoke": depth(
        (8,),
        {(4,): (2,), (4, 2): (3,)},
        greedy=(((4, 2), 3),),
        seeds=3,
        steps=(1_000, 1_000),
        n_test=512,
    ),
    "laptop": depth(
        (10, 20),
        {(10,): range(1, 5), (2, 1): range(1, 6), (10, 10, 1): range(1, 7)},
        greedy=(((2, 1), 3), ((2, 1), 4)),
        seeds=10,
        steps=(20_000, 20_000, 50_000),
        longer=dict.fromkeys(((10, 7), (20, 7), (10, 8)), 500_000),
    ),
    "paper": depth(
        (10, 20, 30),
        {(10,): range(1, 5), (2, 1): range(1, 7), (10, 10, 1): range(1, 7)},
        greedy=(((2, 1), 3), ((2, 1), 4), *(((10, 10, 1), k) for k in (3, 4, 5, 6))),
        seeds=10,
        steps=(20_000, 20_000, 50_000),
        longer=dict.fromkeys(((10, 7), (20, 7), (30, 7), (10, 8)), 500_000),
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
            "The time to converge grows with n more slowly than the number C(n, k) of candidates.",
            "HP §3.1, Fig. B.5",
            ScalingTable(init="uniform"),
            "t_c ≤ c·n^(αk) ≤ 10^5 for small constants c, α of the architecture.",
            kind="ours",
        ),
        Claim(
            "B",
            "So do the barely wide networks (*i) and (*ii), for batches of 16 and more.",
            "HP §3.1, less robust configurations",
            RobustSpace(architectures=NARROW, at_least={"training.batch_size": 16}),
            "For (*i), (*ii) and the Transformer (*iii) the same held for B ≥ 16 only.",
            kind="paper",
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
            "Networks of L layers of squares solve the parities up to k = 2^(L−1) that the paper "
            "lists, and none higher.",
            "HP App. B.3.7",
            DepthDecides(),
            "All of 10 runs converged for L = 3, k ≤ 4 within 20 000 steps and L = 4, k ≤ 6 within "
            "50 000; L = 4 on (10, 7), (20, 7), (30, 7) and (10, 8) within 500 000; L = 2, k ≥ 3 "
            "and L = 3, k ≥ 5 failed.",
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
