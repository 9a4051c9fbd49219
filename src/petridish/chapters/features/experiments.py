"""TH Ch. 7: features that emerge because they maximise a margin (FE-1 … FE-4)."""

from __future__ import annotations

from typing import Literal

from petridish.chapters.features.figures import (
    constructions,
    embeddings,
    frequency_bars,
    margin_curves,
    parity_neurons,
    phase_relation,
    power_histograms,
    representations,
)
from petridish.chapters.features.rules import (
    ConstructionsAttain,
    DenseFallsShort,
    EveryFeature,
    NearUniform,
    NeuronsShare,
    OrderedByDimension,
    PowerNear,
    ReachesMargin,
    TrainedBeatDense,
)
from petridish.chapters.features.summaries import feature_table, margin_table, neuron_table
from petridish.experiment import Experiment
from petridish.models import Homogeneous, Power, ReLU
from petridish.rules.claims import Claim
from petridish.sweeps import Sweep, joined
from petridish.tasks import GroupProduct, SparseParity
from petridish.training import (
    CrossEntropy,
    Data,
    Evaluation,
    NeuronNorm,
    RunSpec,
    Training,
    step_schedule,
)

WATCHED = ("normalised_margin", "feature_power")


def whole(
    task: GroupProduct | SparseParity,
    model: Homogeneous,
    *,
    penalty: NeuronNorm,
    learning_rate: float = 0.05,
    doubled: tuple[int, ...] = (),
    steps: int,
    every: int,
    batch_size: int | None = None,
    precision: Literal["float32", "float64"] = "float32",
) -> RunSpec:
    """Train a network without biases on every input of its task [TH §D.2].

    The source does not say how its networks start; here weights are uniform on ±1/√fan_in,
    PyTorch's default.
    """
    return RunSpec(
        task=task,
        data=Data(m=task.n_possible, n_test=task.n_possible, draws="distinct"),
        model=model,
        training=Training(
            loss=CrossEntropy(),
            learning_rate=learning_rate,
            weight_decay=0.0,
            schedule=step_schedule(doubled, 2.0),
            batch_size=batch_size,
            steps=steps,
            target_error=None,
            penalty=penalty,
            precision=precision,
        ),
        evaluation=Evaluation(
            every=every, curves=True, fitted_error=0.0, instruments=WATCHED, weights=True
        ),
    )


def addition(
    p: int,
    *,
    width: int = 500,
    seeds: int,
    relu_seeds: int,
    steps: int = 40_000,
    every: int = 200,
    doubled: tuple[int, ...] = tuple(range(1_000, 10_001, 1_000)),
) -> Sweep:
    """Sweep addition modulo p: squares with L_{2,3}, and ReLU with L_2 [TH §D.2.1].

    The source's "L_2 regularization" is taken to be λ ‖θ‖², as its L_{2,3} is λ ‖θ‖³.
    """
    task = GroupProduct(f"Z{p}")
    kinds = (
        (Homogeneous(width), NeuronNorm(1e-4, 2, 3), seeds),
        (Homogeneous(width, ReLU()), NeuronNorm(1e-4, 2, 2), relu_seeds),
    )
    return joined(
        (
            Sweep(
                whole(task, model, penalty=penalty, doubled=doubled, steps=steps, every=every),
                {"seed": range(n)},
            )
            for model, penalty, n in kinds
        )
    )


def parity(
    n: int, k: int, *, width: int, seeds: int, steps: int = 30_000, every: int = 150
) -> Sweep:
    """Sweep the parity of k of n bits with k-th powers [TH §D.2.2]."""
    base = whole(
        SparseParity(n, k),
        Homogeneous(width, Power(k)),
        penalty=NeuronNorm(1e-3, 2, k + 1),
        learning_rate=0.1,
        steps=steps,
        every=every,
    )
    return Sweep(base, {"seed": range(seeds)})


EARLY = (*range(200, 2_601, 200), 5_000, 10_000)  # where §D.2.3 doubles the rate


def group(
    name: str,
    width: int,
    *,
    seeds: int,
    steps: int = 50_000,
    every: int = 250,
    doubled: tuple[int, ...] = EARLY,
) -> Sweep:
    """Sweep composition in a small group by gradient descent [TH §D.2.3, S3 and S4].

    The rate ends at 1638 and the loss near 10^-5, whose gradients float32 does not resolve.
    """
    base = whole(
        GroupProduct(name),
        Homogeneous(width),
        penalty=NeuronNorm(1e-7, 2, 3),
        doubled=doubled,
        steps=steps,
        every=every,
        precision="float64",
    )
    return Sweep(base, {"seed": range(seeds)})


def permutations_of_five(*, seeds: int) -> Sweep:
    """Sweep S5 by stochastic gradient descent [TH §D.2.3]."""
    base = whole(
        GroupProduct("S5"),
        Homogeneous(2_000),
        penalty=NeuronNorm(1e-5, 2, 3),
        doubled=tuple(range(3_000, 24_001, 3_000)),
        steps=75_000,
        every=500,
        batch_size=1_000,
    )
    return Sweep(base, {"seed": range(seeds)})


def moduli(
    primes: tuple[int, ...], factors: tuple[int, ...], *, seeds: int, steps: int, every: int
) -> Sweep:
    """Sweep small moduli at multiples of the width 4(p − 1) that Theorem 7.7 asks for."""
    doubled = tuple(range(1_000, 10_001, 1_000))
    return joined(
        Sweep(
            whole(
                GroupProduct(f"Z{p}"),
                Homogeneous(factor * 4 * (p - 1)),
                penalty=NeuronNorm(1e-4, 2, 3),
                doubled=tuple(at for at in doubled if at < steps),
                steps=steps,
                every=every,
                precision="float64",
            ),
            {"seed": range(seeds)},
        )
        for p in primes
        for factor in factors
    )


TABLES = {"margins": margin_table, "features": feature_table, "neurons": neuron_table}

ADDITION = Experiment(
    id="FE-1",
    title="Modular addition: neurons become single frequencies, which maximises the margin",
    source="TH §7.4, Fig. 7.1, 7.4, D.1",
    scales={
        "smoke": addition(
            5, width=40, seeds=2, relu_seeds=2, steps=3_000, every=100, doubled=(200, 400, 600, 800)
        ),
        "laptop": addition(23, seeds=3, relu_seeds=3),
        "paper": addition(71, seeds=3, relu_seeds=3),
    },
    claims=(
        Claim(
            "M",
            "The normalised L_{2,3} margin of trained networks with squares approaches γ*.",
            "TH Theorem 7.7, Fig. 7.1",
            ReachesMargin(),
            "The network asymptotically reaches the maximum margin √(2/27) / (√p (p − 1)).",
            kind="paper",
        ),
        Claim(
            "F",
            "With squares, every neuron has one frequency.",
            "TH Theorem 7.7, Fig. 7.4c",
            NeuronsShare("one feature"),
            "The final maximum power is almost exactly 1 for all the neurons.",
            kind="paper",
        ),
        Claim(
            "R",
            "With ReLU, neurons are nearly of one frequency, but not quite.",
            "TH Fig. 7.4b",
            PowerNear(0.85, 0.95),
            "The final maximum power is concentrated around 0.9.",
            kind="paper",
        ),
        Claim(
            "P",
            "With squares, the phases of a neuron have θ_u + θ_v = θ_w.",
            "TH Theorem 7.7",
            NeuronsShare("phases"),
            "Every network of maximum margin has it; no figure.",
            kind="paper",
        ),
        Claim(
            "A",
            "Every frequency has a neuron.",
            "TH Theorem 7.7, Fig. D.1",
            EveryFeature(),
            "At least one neuron uses each frequency.",
            kind="ours",
        ),
        Claim(
            "U",
            "Neurons are spread over the frequencies about evenly, with squares and with ReLU.",
            "TH Fig. D.1",
            NearUniform(),
            "The final distribution across frequencies is close to uniform.",
            kind="paper",
        ),
    ),
    figures={
        "embeddings": embeddings,
        "margin": margin_curves,
        "power": power_histograms,
        "frequencies": frequency_bars,
        "phases": phase_relation,
    },
    tables=TABLES,
)

PARITY = Experiment(
    id="FE-2",
    title="Sparse parity: neurons come to see the relevant bits alone, all of one size",
    source="TH §7.5, Fig. 7.5",
    scales={
        "smoke": parity(5, 2, width=12, seeds=3, steps=2_000, every=100),
        "laptop": parity(10, 4, width=40, seeds=10),
        "paper": parity(10, 4, width=40, seeds=10),
    },
    claims=(
        Claim(
            "M",
            "The normalised L_{2,k+1} margin approaches γ* = k! √(2 (k+1)^−(k+1)).",
            "TH Theorem 7.8, Fig. 7.5b",
            ReachesMargin(),
            "The network approaches the theoretical maximum margin.",
            kind="paper",
        ),
        Claim(
            "S",
            "Neurons see the bits of S alone.",
            "TH Theorem 7.8, Fig. 7.5a",
            NeuronsShare("support"),
            "The support of every u is S.",
            kind="paper",
        ),
        Claim(
            "E",
            "On S, every |u_j| is the size of w.",
            "TH Theorem 7.8",
            NeuronsShare("sizes"),
            "|u_j| = ‖w‖ for every j in S.",
            kind="paper",
        ),
        Claim(
            "C",
            "w lies along ±(1, −1), with the sign of the product of u on S.",
            "TH Theorem 7.8",
            NeuronsShare("signs"),
            "w lies in the span of (1, −1), and (Π u_j)(w · (1, −1)) ≥ 0.",
            kind="paper",
        ),
    ),
    figures={"neurons": parity_neurons, "margin": margin_curves},
    tables={"margins": margin_table, "neurons": neuron_table},
)

GROUPS = Experiment(
    id="FE-3",
    title="Finite groups: every neuron lies in one representation",
    source="TH §7.6, Fig. 7.6, D.2, D.3",
    scales={
        "smoke": group("S3", 30, seeds=2, steps=3_000, every=100),
        "laptop": joined([group("S3", 30, seeds=5), group("S4", 200, seeds=3)]),
        "others": joined(
            group(name, width, seeds=3)
            for name, width in (("D5", 100), ("Q8", 100), ("A4", 120), ("Z2xZ4", 60))
        ),
        "paper": joined(
            [group("S3", 30, seeds=5), group("S4", 200, seeds=3), permutations_of_five(seeds=2)]
        ),
    },
    claims=(
        Claim(
            "M",
            "The normalised L_{2,3} margin approaches γ*.",
            "TH Theorem 7.9, Fig. 7.6, D.2, D.3",
            ReachesMargin(),
            "The margin approaches 2/(3√(3|G|)) / Σ d^2.5. Where the theorem does not apply, γ* is "
            "that of docs/theory-margins.md.",
            kind="paper",
        ),
        Claim(
            "F",
            "Every neuron lies in one representation.",
            "TH Theorem 7.9, Fig. 7.6d",
            NeuronsShare("one feature"),
            "Towards the end all neurons are concentrated in a single representation.",
            kind="paper",
        ),
        Claim(
            "A",
            "Every representation that a maximum margin needs has a neuron.",
            "TH Theorem 7.9",
            EveryFeature(),
            "At least one neuron for each representation but the trivial one.",
            kind="ours",
        ),
        Claim(
            "O",
            "Representations of higher dimension have more neurons.",
            "TH Fig. 7.6b, D.2b, D.3b",
            OrderedByDimension(),
            "Higher dimensional representations have more neurons.",
            kind="paper",
        ),
    ),
    figures={"representations": representations, "margin": margin_curves},
    tables=TABLES,
)

EXACT = (3, 5, 7, 11, 23, 71)
CONSTRUCTIONS = Experiment(
    id="FE-4",
    title="Constructions: networks of maximum margin as exact weights, and what training finds",
    source="TH Theorems 7.7 to 7.9, §D.4, §D.6 to §D.9",
    scales={
        "smoke": moduli((5,), (1, 4), seeds=2, steps=3_000, every=100),
        "laptop": moduli((5, 7, 11, 13), (1, 2, 8), seeds=5, steps=20_000, every=200),
        "paper": moduli(
            (5, 7, 11, 13, 17, 19, 23), (1, 2, 4, 8), seeds=10, steps=40_000, every=200
        ),
    },
    claims=(
        Claim(
            "C",
            "The constructions attain γ*, with every input on the margin.",
            "TH Theorems 7.7 to 7.9",
            ConstructionsAttain(
                EXACT,
                ((3, 1), (5, 2), (6, 3), (10, 4), (8, 5)),
                ("S3", "S4", "D5", "Z2xS3", "A4", "A5", "Q8"),
            ),
            "Theorem 7.7's network has 4(p − 1) neurons.",
            kind="check",
        ),
        Claim(
            "D",
            "A dense network that is right everywhere has a smaller margin.",
            "TH §D.4",
            DenseFallsShort(EXACT[1:]),
            "Sparsity in Fourier space is not present in every correct classifier.",
            kind="check",
        ),
        Claim(
            "T",
            "Trained networks have larger margins than the dense one.",
            "TH §D.4",
            TrainedBeatDense(),
            "It has no behavioural similarity to the solutions reached by standard training.",
            kind="paper",
        ),
    ),
    figures={"constructions": constructions, "margin": margin_curves},
    tables=TABLES,
)
