"""HP, the theory: Fourier gaps (HP-7), disjoint PolyNets (HP-12), one big step (HP-13)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from petridish.chapters.hidden.experiments.shared import architecture, relu, setting
from petridish.chapters.hidden.figures.flows import flow_curves, one_step_curves
from petridish.chapters.hidden.figures.gap_histograms import gap_histograms, gap_paths
from petridish.chapters.hidden.rules.flows import (
    FirstGradientShowsTheParity,
    FixedFeaturesStayAtChance,
    LearnsDisjoint,
    OneStepRecovers,
    PlateauOfSGD,
    PlateauShare,
)
from petridish.chapters.hidden.rules.gap_growth import GapComparable, GapGrowth
from petridish.experiment import Experiment
from petridish.models import (
    Constant,
    DisjointPolyNet,
    Init,
    Normal,
    SymmetricSigns,
    Tangent,
    TangentStart,
)
from petridish.rules import Claim, Each, Median, Rule
from petridish.sweeps import Arms, Sweep, joined
from petridish.tasks import SparseParity
from petridish.theory import majority_coefficient
from petridish.training import (
    Correlation,
    Data,
    Evaluation,
    Piece,
    RunSpec,
    Schedule,
    Training,
    random_features,
)


def gap_runs(
    n: int, ks: Sequence[int], seeds: int, *, rate: float = 0.01, n_test: int = 8192
) -> Sweep:
    """Sweep sinusoidal neurons whose Fourier gap is followed, exactly [HP Fig. B.8 right]."""
    return joined(
        [
            Sweep(
                setting(
                    SparseParity(n, k),
                    architecture("(xiv)", k),
                    rate=rate,
                    steps=20_000,
                    n_test=n_test,
                    every=20,
                    curves=True,
                    instruments=("fourier_gap", "population_gradient", "first_layer_movement"),
                ),
                {"seed": range(100, 100 + seeds)},
            )
            for k in ks
        ]
    )


GAPS = Experiment(
    id="HP-7",
    title="Fourier gaps: the first gradient of a random neuron tells relevant bits from others",
    source="HP App. B.3.1, Figs B.7, B.8",
    scales={
        "smoke": gap_runs(9, (2,), 6, rate=0.05, n_test=512),
        "laptop": gap_runs(15, (2, 3, 4), 20),
        "paper": gap_runs(15, (2, 3, 4, 5), 100),
    },
    claims=(
        Claim(
            "C",
            "With non-negligible probability, a random neuron's gap is comparable to majority's, "
            "for k up to 4.",
            "HP App. B.3.1, Figs B.7, B.8 left",
            GapComparable(),
            "For uniform and Gaussian weights and for sinusoidal neurons the gaps are comparable "
            "to majority's with non-negligible probability, at n = 15.",
            kind="check",
        ),
        Claim(
            "G",
            "The gap grows along the path of SGD, before the error leaves its plateau.",
            "HP App. B.3.1, Fig. B.8 right",
            Rule(GapGrowth(), Each(("task", "model")), Median(), above=1.0),
            "Training a sinusoidal neuron amplifies the gap that it starts with.",
            kind="paper",
        ),
    ),
    figures={"gaps": gap_histograms, "paths": gap_paths},
)


def disjoint(
    blocks: Sequence[int],
    k: int,
    *,
    inits: Sequence[Init],
    seeds: int,
    rate: float = 2e-4,
    steps: int = 50_000,
    n_test: int = 2_048,
) -> Sweep:
    """Sweep disjoint PolyNets with B = 1 and a constant rate, blocks of n' bits [HP Fig. B.1]."""
    return joined(
        [
            Sweep(
                RunSpec(
                    task=SparseParity(k * n, k, support=tuple(n * i for i in range(k))),
                    data=Data(n_test=n_test),
                    model=DisjointPolyNet(k),
                    training=Training(
                        loss=Correlation(),
                        learning_rate=rate,
                        weight_decay=0.0,
                        batch_size=1,
                        steps=steps,
                        target_error=0.0,
                    ),
                    evaluation=Evaluation(every=50, curves=True),
                ),
                {"init": tuple(inits), "seed": range(seeds)},
            )
            for n in blocks
        ]
    )


DISJOINT = Experiment(
    id="HP-12",
    title="Disjoint PolyNets: a plateau that gradient flow itself has, followed exactly",
    source="HP §4.2, App. B.2.3, B.2.4, Fig. B.1",
    scales={
        "smoke": disjoint((4,), 2, inits=(Constant(),), seeds=4, rate=3e-3, steps=3_000),
        "laptop": disjoint((10, 20), 3, inits=(Constant(), Normal()), seeds=20),
        "paper": disjoint((10, 20, 40), 3, inits=(Constant(), Normal()), seeds=100, rate=2e-5),
    },
    claims=(
        *(
            Claim(
                f"F{k}",
                "Gradient flow from ones spends all but a vanishing part of its time above an "
                f"error of 49 %, k = {k}.",
                "HP Thm 5.7",
                PlateauShare(k, (16, 32, 64, 128, 256, 512)),
                "T(0.49) / T(0) ≥ 1 − O(n'^(1 − k/2)).",
                kind="check",
            )
            for k in (3, 4)
        ),
        Claim(
            "S",
            "SGD with one example a step learns the disjoint parity.",
            "HP Thm 5.8",
            LearnsDisjoint(),
            "With an adaptive rate the error falls below ε within about n'^(2k − 1) steps.",
            kind="ours",
        ),
        Claim(
            "P",
            "SGD, too, spends most of its time at an error of 49 % or more.",
            "HP Fig. B.1 right",
            PlateauOfSGD(),
            "The curve of a run with B = 1 has a long plateau.",
            kind="ours",
        ),
    ),
    figures={"flow": flow_curves},
)


def one_step(
    n: int,
    k: int,
    *,
    widths: Sequence[int],
    samples: Sequence[float],
    seeds: int,
    steps: int = 300,
    n_test: int = 2_000,
) -> Sweep:
    """Sweep Theorem 5.5's algorithm: one step of the first layer, then the second [HP B.2.1].

    Gradient descent on the whole sample. The first step has η = 1/(k|ξ_{k−1}|) and a decay that
    erases the weights (λ = 1 in the text's own form of it); it moves the biases by the same rate.
    The second layer's rate is our choice. Success is a test error of at most 10 %.
    """
    rate = 1 / (k * abs(float(majority_coefficient(n, k - 1))))
    first = Piece(0, (rate, rate, 0.0), (1 / rate, 0.0, 0.0))
    then = Piece(1, (0.0, 0.0, 1.0), (0.0, 0.0, 0.0))
    base = RunSpec(
        task=SparseParity(n, k),
        data=Data(m=samples[0], n_test=n_test),
        model=relu(widths[0]),
        init=SymmetricSigns(k),
        training=Training(
            learning_rate=1.0,
            weight_decay=1.0,
            schedule=Schedule((first, then)),
            batch_size=None,
            steps=steps,
            target_error=0.1,
        ),
        evaluation=Evaluation(every=10, fitted_error=None),
    )
    axes = {"model.width": tuple(widths), "data.m": tuple(samples), "seed": range(seeds)}
    return Sweep(base, axes)


def features(
    n: int,
    k: int,
    *,
    widths: Sequence[int],
    rates: Sequence[float],
    seeds: int,
    steps: int,
    n_test: int = 2_048,
) -> dict[str, Sweep]:
    """Sweep trained features, random features and tangent kernels of the same width, by name."""
    trained = setting(
        SparseParity(n, k), relu(widths[0]), rate=rates[0], steps=steps, n_test=n_test, every=100
    )
    random = replace(trained, training=replace(trained.training, schedule=random_features()))
    tangent = replace(trained, model=Tangent(widths[0]), init=TangentStart())
    axes = {
        "model.width": tuple(widths),
        "training.learning_rate": tuple(rates),
        "seed": range(seeds),
    }
    bases = {"trained": trained, "random": random, "tangent": tangent}
    return {name: Sweep(base, axes) for name, base in bases.items()}


def one_step_arms(stepped: Sequence[Sweep], compared: Mapping[str, Sweep]) -> Arms:
    """Name the runs of Theorem 5.5's algorithm beside those with other features."""
    return Arms({"one step": joined(stepped), **compared})


ONE_STEP = Experiment(
    id="HP-13",
    title="One big step: the parity is in the first gradient, and in no fixed features",
    source="HP Thms 5.5, 5.6, Prop. B.7, App. B.2.1, B.2.2",
    scales={
        "smoke": one_step_arms(
            [one_step(9, 2, widths=(16,), samples=(100, 2_000), seeds=4, steps=100, n_test=500)],
            features(10, 2, widths=(4,), rates=(1.0,), seeds=3, steps=400, n_test=512),
        ),
        "laptop": one_step_arms(
            [
                one_step(
                    15, 2, widths=(16, 128), samples=(30, 60, 125, 250, 500, 1e3, 2e3), seeds=10
                ),
                one_step(31, 2, widths=(16, 128), samples=(125, 250, 500, 1e3, 2e3, 4e3), seeds=10),
            ],
            features(30, 3, widths=(10, 30), rates=(0.1, 1.0), seeds=10, steps=10_000),
        ),
        "paper": one_step_arms(
            [
                *(
                    one_step(n, 2, widths=(16, 64, 256), samples=(1e2, 1e3, 1e4, 1e5), seeds=25)
                    for n in (15, 31, 63, 127)
                ),
                one_step(31, 4, widths=(256, 1_024, 4_096), samples=(1e4, 1e5, 1e6), seeds=25),
            ],
            features(50, 3, widths=(10, 30, 100), rates=(0.01, 0.1, 1.0), seeds=25, steps=100_000),
        ),
    },
    claims=(
        Claim(
            "R",
            "The parity's bits are read off the first gradient of one neuron.",
            "HP §4.1, Prop. B.7",
            FirstGradientShowsTheParity(
                n=31, k=2, m_values=(30, 100, 300, 1_000, 3_000, 10_000), trials=200
            ),
            "S is recovered from a batch of order log(n)/γ² examples.",
            kind="check",
        ),
        Claim(
            "L",
            "After that one step the second layer learns the parity.",
            "HP Thm 5.5",
            OneStepRecovers(),
            "SGD with the hinge loss reaches any loss ε from the symmetric ±1 start.",
            kind="ours",
        ),
        Claim(
            "K",
            "Random features and tangent kernels of the same width stay at chance.",
            "HP Thm 5.6",
            FixedFeaturesStayAtChance(),
            "No fixed embedding of dimension below about C(n, k) represents all parities.",
            kind="ours",
        ),
    ),
    figures={"one-step": one_step_curves},
)
