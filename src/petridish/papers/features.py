"""TH Ch. 7: features that emerge because they maximise a margin (FE-1 … FE-4)."""

from __future__ import annotations

from petridish.models import Homogeneous, Power, ReLU
from petridish.sweeps import Sweep
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
    precision: str = "float32",
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
            precision=precision,  # type: ignore[arg-type] # the spec checks it
        ),
        evaluation=Evaluation(
            every=every, curves=True, fitted_error=0.0, instruments=WATCHED, weights=True
        ),
    )


def together(*parts: Sweep) -> Sweep:
    """Put sweeps together that are judged as one."""
    first, *rest = parts
    return Sweep(first.base, first.axes, tuple(rest))


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
    return together(
        *(
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
