"""HP, the theory: Fourier gaps (HP-7), disjoint PolyNets (HP-12), one big step (HP-13)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from petridish.chapters.hidden.experiments.shared import followed, relu, setting
from petridish.chapters.hidden.figures.flows import flow_curves, one_step_curves
from petridish.chapters.hidden.figures.gap_histograms import gap_histograms, gap_paths
from petridish.chapters.hidden.rules.architectures import architecture
from petridish.chapters.hidden.rules.disjoint_polynets import (
    GaussianPlateau,
    LearnsByTheorem58,
    LearnsDisjoint,
    PlateauShare,
)
from petridish.chapters.hidden.rules.gap_growth import GapAtStart, GapComparable, GapGrowth
from petridish.chapters.hidden.rules.one_big_step import (
    FirstGradientShowsTheParity,
    FixedFeaturesStayAtChance,
    OneStepRecovers,
)
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
from petridish.theory.majority import majority_coefficient
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

INSTRUMENTS = ("fourier_gap", "population_gradient", "first_layer_movement")


def gap_runs(n: int, ks: Sequence[int], seeds: int, *, rate: float = 0.01, **how: Any) -> Sweep:
    """Sweep sinusoidal neurons whose Fourier gap is followed, exactly [HP Fig. B.8 right]."""
    how = {"rate": rate, "steps": 20_000, "every": 20, "instruments": INSTRUMENTS, **how}
    return joined(
        Sweep(
            followed(SparseParity(n, k), architecture("(xiv)", k), **how),
            {"seed": range(100, 100 + seeds)},
        )
        for k in ks
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
        Claim(
            "S",
            "From PyTorch's weights, a sinusoidal neuron's gap is positive and smaller than "
            "majority's, for even k.",
            "HP App. B.3.1, Fig. B.8 right",
            Rule(
                GapAtStart(),
                Each(("task", "model"), only={"task.k": (2, 4)}),
                Median(),
                between=(0.0, 1.0),
            ),
            "The gap is consistently positive at initialization, but somewhat smaller than that of "
            "majority.",
            kind="ours",
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
) -> Sweep:
    """Sweep disjoint PolyNets with B = 1 and a constant rate, blocks of n' bits [HP Fig. B.1]."""
    training = Training(
        loss=Correlation(),
        learning_rate=rate,
        weight_decay=0.0,
        batch_size=1,
        steps=steps,
        target_error=0.0,
    )
    return joined(
        Sweep(
            RunSpec(
                task=SparseParity(k * n, k, support=tuple(n * i for i in range(k))),
                data=Data(n_test=2_048),
                model=DisjointPolyNet(k),
                training=training,
                evaluation=Evaluation(every=50, curves=True),
            ),
            {"init": inits, "seed": range(seeds)},
        )
        for n in blocks
    )


DISJOINT = Experiment(
    id="HP-12",
    title="Disjoint PolyNets: a plateau that gradient flow itself has, followed exactly",
    source="HP §4.2, App. B.2.3, B.2.4, Fig. B.1",
    scales={
        "smoke": disjoint((4,), 2, inits=(Constant(),), seeds=4, rate=3e-3, steps=3_000),
        "laptop": disjoint((10, 20), 3, inits=(Constant(), Normal()), seeds=20),
        "large": disjoint((10, 20, 40), 3, inits=(Constant(), Normal()), seeds=100, rate=2e-5),
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
        *(
            Claim(
                f"G{k}",
                "In the median over Gaussian starts with a positive product, gradient flow spends "
                f"all but a vanishing part of its time above an error of ½ − γ, k = {k}.",
                "HP App. B.2.3, Thm 5.7, full statement",
                GaussianPlateau(k, (32, 128, 512)),
                "Given Π v_i(0) > 0, with probability 1 − 1/poly(n') over N(0, 1) weights, "
                "T(½ − γ) / T(0) = 1 − Õ(n'^(1 − k/2) γ^(2/k − 1)) for γ in (0, ½).",
                kind="check",
            )
            for k in (3, 4)
        ),
        Claim(
            "S",
            "SGD with one example per step, from weights ±1 with a positive product and by the "
            "theorem's own rate and steps, ends at an error of at most ¼.",
            "HP App. B.2.4, Thm 5.8, full statement",
            LearnsByTheorem58(),
            "With probability ½ over ±1 weights and 1 − δ over the examples the error is at most ε "
            "after T ≥ 6 log(2nT/δ) log(2k/ε) (3n' − 2)^(2k − 1) steps of an adaptive rate.",
            kind="check",
        ),
        Claim(
            "C",
            "With a constant rate, SGD with one example per step learns the disjoint parity from "
            "ones and from Gaussian weights.",
            "HP App. B.2.3, Fig. B.1 right",
            LearnsDisjoint(),
            "A run with B = 1, a constant rate and Gaussian weights falls to an error of 0.",
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

    Gradient descent on the whole sample. The first step has η = 1/(k|ξ_{k−1}|) for the hidden layer
    and a decay of 1 in the paper's form, (1 − λ) w, which erases all weights, those of the second
    layer too; biases move and are not erased. The second layer's rate is 0 in that step, so that it
    is 0 after it (u^(1) = 0), and then our choice. Success is a test error of at most 10 %.
    """
    rate = 1 / (k * abs(float(majority_coefficient(n, k - 1))))
    first = Piece(0, (rate, rate, 0.0), keep=(0.0, 1.0, 0.0))
    then = Piece(1, (0.0, 0.0, 1.0))
    base = RunSpec(
        task=SparseParity(n, k),
        data=Data(m=samples[0], n_test=n_test),
        model=relu(widths[0]),
        init=SymmetricSigns(k),
        training=Training(
            learning_rate=1.0,
            weight_decay=0.0,
            schedule=Schedule((first, then)),
            batch_size=None,
            steps=steps,
            target_error=0.1,
        ),
        evaluation=Evaluation(every=10, fitted_error=None),
    )
    return Sweep(base, {"model.width": widths, "data.m": samples, "seed": range(seeds)})


def features(
    n: int, k: int, *, widths: Sequence[int], rates: Sequence[float], seeds: int, **how: Any
) -> dict[str, Sweep]:
    """Sweep trained features, random features and tangent kernels of the same width, by name."""
    trained = setting(SparseParity(n, k), relu(widths[0]), rate=rates[0], every=100, **how)
    random = replace(trained, training=replace(trained.training, schedule=random_features()))
    tangent = replace(trained, model=Tangent(widths[0]), init=TangentStart())
    axes = {"model.width": widths, "training.learning_rate": rates, "seed": range(seeds)}
    bases = {"trained": trained, "random": random, "tangent": tangent}
    return {name: Sweep(base, axes) for name, base in bases.items()}


def _arms(stepped: Sequence[Sweep], compared: Mapping[str, Sweep]) -> Arms:
    return Arms({"one step": joined(stepped), **compared})


ONE_STEP = Experiment(
    id="HP-13",
    title="One big step: the parity is in the first gradient, and in no fixed features",
    source="HP Thms 5.5, 5.6, Prop. B.7, App. B.2.1, B.2.2",
    scales={
        "smoke": _arms(
            [one_step(9, 2, widths=(16,), samples=(100, 2_000), seeds=4, steps=100, n_test=500)],
            features(10, 2, widths=(4,), rates=(1.0,), seeds=3, steps=400, n_test=512),
        ),
        "laptop": _arms(
            [
                one_step(
                    15, 2, widths=(16, 128), samples=(30, 60, 125, 250, 500, 1e3, 2e3), seeds=10
                ),
                one_step(31, 2, widths=(16, 128), samples=(125, 250, 500, 1e3, 2e3, 4e3), seeds=10),
            ],
            features(
                30, 3, widths=(10, 30), rates=(0.1, 1.0), seeds=10, steps=10_000, n_test=2_048
            ),
        ),
        "large": _arms(
            [
                *(
                    one_step(n, 2, widths=(16, 64, 256), samples=(1e2, 1e3, 1e4, 1e5), seeds=25)
                    for n in (15, 31, 63, 127)
                ),
                one_step(31, 4, widths=(256, 1_024, 4_096), samples=(1e4, 1e5, 1e6), seeds=25),
            ],
            features(50, 3, widths=(10, 30, 100), rates=(0.01, 0.1, 1.0), seeds=25, n_test=2_048),
        ),
    },
    claims=(
        Claim(
            "R",
            "The parity's bits are read off the first gradient of one neuron, from a sample that "
            "grows no faster than log n / γ².",
            "HP §4.1, Prop. B.7",
            FirstGradientShowsTheParity(2, (15, 31, 63, 127)),
            "The k largest entries of the gradient are S, if it is known to γ/2; O(log n / γ²) "
            "examples suffice for that.",
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
            "If D R² < ε² C(n, k), there is a parity on which no ‖w‖ ≤ R over an embedding into D "
            "dimensions with norms of at most 1 has a loss of at most 1 − ε.",
            kind="ours",
        ),
    ),
    figures={"one-step": one_step_curves},
)
