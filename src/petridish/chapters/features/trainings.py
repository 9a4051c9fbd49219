"""The trainings of TH §D.2 as sweeps, and those of our own beside them."""

from __future__ import annotations

from typing import Literal

from petridish.models import Homogeneous, Power, ReLU
from petridish.sweeps import Sweep, joined
from petridish.tasks import GroupProduct, SparseParity
from petridish.training import (
    CrossEntropy,
    Data,
    Evaluation,
    NeuronNorm,
    NormPower,
    RunSpec,
    Training,
    step_schedule,
)

WATCHED = ("normalised_margin", "feature_power")
EVERY_1000 = tuple(range(1_000, 10_001, 1_000))  # where §D.2.1 doubles the rate
EARLY = (*range(200, 2_601, 200), 5_000, 10_000)  # where §D.2.3 does


def whole(
    task: GroupProduct | SparseParity,
    model: Homogeneous,
    penalty: NeuronNorm,
    *,
    seeds: int,
    steps: int,
    every: int,
    learning_rate: float = 0.05,
    doubled: tuple[int, ...] = (),
    batch_size: int | None = None,
    precision: Literal["float32", "float64"] = "float32",
) -> Sweep:
    """Train networks without biases on every input of their task [TH §D.2].

    The paper does not say how its networks start; here weights are uniform on ±1/√fan_in,
    PyTorch's default.
    """
    base = RunSpec(
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
    return Sweep(base, {"seed": range(seeds)})


def addition(
    p: int,
    *,
    width: int = 500,
    seeds: int = 3,
    steps: int = 40_000,
    every: int = 200,
    doubled: tuple[int, ...] = EVERY_1000,
) -> Sweep:
    """Sweep addition modulo p: squares with L_{2,3}, and ReLU with L_2 [TH §D.2.1].

    The paper writes λ ‖θ‖^r and leaves r open [TH §7.3]. Here it is the degree of the norm: its
    "L_{2,3} regularization" is taken to be λ ‖θ‖³, and its "L_2 regularization" λ ‖θ‖².
    """
    return joined(
        whole(
            GroupProduct(f"Z{p}"),
            model,
            NeuronNorm(1e-4, 2, power),
            seeds=seeds,
            doubled=doubled,
            steps=steps,
            every=every,
        )
        for model, power in ((Homogeneous(width), 3), (Homogeneous(width, ReLU()), 2))
    )


def parity(
    n: int, k: int, *, width: int, seeds: int, steps: int = 30_000, every: int = 150
) -> Sweep:
    """Sweep the parity of k of n bits with k-th powers [TH §D.2.2]."""
    model, penalty = Homogeneous(width, Power(k)), NeuronNorm(1e-3, 2, k + 1)
    task, rate = SparseParity(n, k), 0.1
    return whole(task, model, penalty, seeds=seeds, steps=steps, every=every, learning_rate=rate)


SMALL = NeuronNorm(1e-7, 2, 3)  # of S3 and S4 [TH §D.2.3]


def group(
    name: str,
    width: int,
    *,
    seeds: int,
    penalty: NeuronNorm = SMALL,
    steps: int = 50_000,
    every: int = 250,
) -> Sweep:
    """Sweep composition in a small group by gradient descent [TH §D.2.3, S3 and S4].

    The rate ends at 1638 and the loss near 10^-5, whose gradients float32 does not resolve.
    """
    return whole(
        GroupProduct(name),
        Homogeneous(width),
        penalty,
        seeds=seeds,
        doubled=EARLY,
        steps=steps,
        every=every,
        precision="float64",
    )


def exponents(*, seeds: int, steps: int = 50_000) -> Sweep:
    """Sweep S3 under λ ‖θ‖^r with r = 1, 2 and 3, at the paper's λ and rates."""
    return joined(
        group(
            "S3",
            30,
            seeds=seeds,
            penalty=NormPower(SMALL.strength, 2, 3, r),
            steps=steps,
            every=steps // 200,
        )
        for r in (1, 2, 3)
    )


def strengths(*, seeds: int, steps: int = 50_000) -> Sweep:
    """Sweep S3 under λ ‖θ‖³ at the paper's λ and at ten times as much; at 10^-5 runs diverge."""
    return joined(
        group(
            "S3",
            30,
            seeds=seeds,
            penalty=NormPower(strength, 2, 3, 3),
            steps=steps,
            every=steps // 200,
        )
        for strength in (SMALL.strength, 1e-6)
    )


def five(name: str, width: int, *, seeds: int, steps: int = 75_000, every: int = 500) -> Sweep:
    """Sweep S5, or A5 in it, by stochastic gradient descent [TH §D.2.3].

    The rate doubles eight times, to 12.8, at every 25th part of the steps.
    """
    part = steps // 25
    return whole(
        GroupProduct(name),
        Homogeneous(width),
        NeuronNorm(1e-5, 2, 3),
        seeds=seeds,
        doubled=tuple(range(part, 8 * part + 1, part)),
        steps=steps,
        every=every,
        batch_size=1_000,
    )


def moduli(
    primes: tuple[int, ...], factors: tuple[int, ...], *, seeds: int, steps: int, every: int
) -> Sweep:
    """Sweep small moduli at multiples of the width 4(p − 1) that Theorem 7.7 asks for."""
    return joined(
        whole(
            GroupProduct(f"Z{p}"),
            Homogeneous(factor * 4 * (p - 1)),
            NeuronNorm(1e-4, 2, 3),
            seeds=seeds,
            doubled=tuple(at for at in EVERY_1000 if at < steps),
            steps=steps,
            every=every,
            precision="float64",
        )
        for p in primes
        for factor in factors
    )
