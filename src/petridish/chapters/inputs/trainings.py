"""The runs of FL: the start, steps on the whole sample that forget, what is trained after them."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt
from typing import Any, Literal

from petridish.models import (
    MLP,
    ByName,
    Constant,
    Init,
    Model,
    NoisyMLP,
    Normal,
    Paired,
    Projected,
    SmoothedTruncatedReLU,
    Tangent,
    TangentStart,
    TruncatedReLU,
)
from petridish.sweeps import Sweep
from petridish.tasks import Dictionary, HiddenLabels, Task
from petridish.training import (
    SGD,
    Data,
    DirectionCosine,
    Evaluation,
    From,
    Instrument,
    LinearProbe,
    Loss,
    PatternRatio,
    Piece,
    RunSpec,
    Schedule,
    Training,
    Weighted,
)

WHOLE = Schedule()
CLASSIFIER = Schedule((Piece(rate=(("layer1.*", 0.0), ("*", 1.0))),))
"""The first layer is frozen."""
FIRST_STEPS = (("layer1.weight", 1.0), ("*", 0.0))
ALONG = (DirectionCosine(), DirectionCosine("either"), PatternRatio())


Patterned = Dictionary | HiddenLabels


def paper_start(task: Patterned, *, zero: bool = False) -> Paired:
    """Return the start of FL §3.1: pairs of neurons that cancel.

    σ_w = 1/k, σ_b = 1/k² and σ_a = σ²/(γk²); with `zero` all weights are 0. Without structure γ is
    that of the structured inputs: networks that are compared start alike.
    """
    k = task.k
    known = isinstance(task, Dictionary) and task.space == "patterns"
    first: Init = Projected(1 / k, task.d - task.patterns) if known else Normal(1 / k)
    return Paired(
        ByName(
            (
                ("layer1.weight", Constant(0.0) if zero else first),
                ("layer1.bias", Normal(1 / k**2)),
                ("layer2.weight", Normal(output_scale(task))),
            )
        )
    )


def noise_of(model: MLP) -> float:
    """Return the noise σ_ξ over which the activation is smoothed; 0 if it is not."""
    activation = model.activation
    return activation.noise if isinstance(activation, SmoothedTruncatedReLU) else 0.0


def correlation_of(task: Patterned) -> float:
    """Return γ; of a parity without structure, the γ that it would have with it.

    Of `HiddenLabels` its patterns have one each, about 1/(2 √(2v)) for v vectors of each label.
    """
    if isinstance(task, HiddenLabels):
        return 1 / (2 * sqrt(2 * task.vectors))
    return task.correlation or (1 - task.background) / 2


def output_scale(task: Patterned) -> float:
    """Return the paper's largest σ_a = σ²/(γk²)."""
    return task.variance / (correlation_of(task) * task.k**2)


def first_rate(task: Patterned, width: int) -> float:
    """Return the paper's η⁽¹⁾ = γ²σ/(km³) for 2m neurons."""
    return correlation_of(task) ** 2 * sqrt(task.variance) / (task.k * (width / 2) ** 3)


def second_rate(task: Patterned) -> float:
    """Return 7.2 σ/(σ_a γ √k), which is ours: the paper's 1 leaves a linear classifier."""
    return 7.2 * sqrt(task.variance) / (output_scale(task) * correlation_of(task) * sqrt(task.k))


def by_momentum(
    task: Task,
    model: Model,
    loss: Loss,
    *,
    data: Data,
    momentum: float,
    rate: float,
    batch_size: int,
    steps: int,
    clip: float | None = None,
    **seen: Any,
) -> RunSpec:
    """Return usual training, by SGD with momentum and without decay; `seen` is its evaluation."""
    return RunSpec(
        task=task,
        data=data,
        model=model,
        training=Training(
            loss=loss,
            optimiser=SGD(momentum=momentum),
            learning_rate=rate,
            clip=clip,
            weight_decay=0.0,
            batch_size=batch_size,
            steps=steps,
            target_error=None,
        ),
        evaluation=Evaluation(fitted_error=None, **seen),
    )


def start(task: Patterned, *, m: int, width: int, n_test: int, zero: bool = False) -> RunSpec:
    """Return the network before training."""
    return RunSpec(
        task=task,
        data=Data(m=m, n_test=n_test),
        model=MLP(width, activation=TruncatedReLU(), output="linear"),
        init=paper_start(task, zero=zero),
        training=Training(
            weight_decay=0.0,
            batch_size=None,
            steps=1,
            target_error=None,
            precision="float64",  # a first step leaves weights of 1e-9 beside biases of 0.1
        ),
        evaluation=Evaluation(fitted_error=None),
    )


def forgetting(run: RunSpec, rate: float) -> RunSpec:
    """Take one step on the whole sample with the first layer's weights, and erase their start.

    The paper erases it by a decay of 1/(2η), which rounding turns into noise; `keep=0` is exact. It
    also moves b and a, and injects noise into the neurons; here b and a move with the classifier.
    """
    step = Piece(rate=FIRST_STEPS, keep=(("layer1.weight", 0.0), ("*", 1.0)))
    training = replace(run.training, learning_rate=rate, schedule=Schedule((step,)))
    return replace(run, training=training)


def rates_of(task: Patterned, width: int) -> tuple[float, float]:
    """Return the rates of both steps."""
    return first_rate(task, width), second_rate(task)


def two_steps(run: RunSpec, like: Patterned | None = None) -> tuple[RunSpec, RunSpec]:
    """Return the run of one forgetting step, and that of a second after it.

    Their rates are those of the run's own task, or of the task `like`.
    """
    task = like or run.task
    assert isinstance(task, Patterned), "of the start"
    assert isinstance(run.model, MLP), "of the start"
    first, second = rates_of(task, run.model.width)
    one = forgetting(run, first)
    return one, forgetting(after(run, one), second)


def both_steps(run: RunSpec, first: float, second: float, *watched: Instrument) -> RunSpec:
    """Take both steps in one run, which is watched at its start and after each.

    Like `forgetting` twice, without the rounding to float32 where a run goes on from another.
    """
    pieces = [
        Piece(
            step,
            rate=(("layer1.weight", rate), ("*", 0.0)),
            keep=(("layer1.weight", 0.0), ("*", 1.0)),
        )
        for step, rate in enumerate((first, second))
    ]
    training = replace(
        run.training, learning_rate=1.0, steps=len(pieces), schedule=Schedule(tuple(pieces))
    )
    seen = Evaluation(every=1, curves=True, fitted_error=None, instruments=watched)
    return replace(run, training=training, evaluation=seen)


def unwatched(begun: RunSpec) -> RunSpec:
    """Take both steps in one run, as a parent of others that watch what follows."""
    assert isinstance(begun.task, Patterned), "of the start"
    assert isinstance(begun.model, MLP | NoisyMLP), "of the start"
    both = both_steps(begun, *rates_of(begun.task, begun.model.width))
    return replace(both, evaluation=Evaluation(fitted_error=None))


def smoothed(run: RunSpec, noise: float) -> RunSpec:
    """Return the run with the mean over noise of its activation, in training and evaluation."""
    assert isinstance(run.model, MLP), "of the start"
    return replace(run, model=replace(run.model, activation=SmoothedTruncatedReLU(noise)))


def weighted(run: RunSpec) -> RunSpec:
    """Weigh the classes of a run's steps by 1/(2 Pr[y = v]) [FL App. F]; what follows does not."""
    task = run.task
    assert isinstance(task, Dictionary), "whose shares are known"
    y = task.mean_label  # E y, and (1 ± E y) / 2 are the shares of y = ±1
    loss = Weighted((1 / (1 + y), 1 / (1 - y)))
    return replace(run, training=replace(run.training, loss=loss))


def decaying(run: RunSpec, rate: float) -> RunSpec:
    """Take the same step as `torch.optim.SGD` would in float32, with a weight decay of 1/η."""
    training = replace(
        run.training,
        learning_rate=rate,
        weight_decay=1 / rate,
        schedule=Schedule((Piece(rate=FIRST_STEPS),)),
        precision="float32",
    )
    return replace(run, training=training)


def after(run: RunSpec, before: RunSpec) -> RunSpec:
    """Return `run` with the weights with which another run ended."""
    return replace(run, init=From(before))


def then(
    run: RunSpec,
    *,
    steps: int,
    batch_size: int,
    rate: float,
    schedule: Schedule = WHOLE,
    probe: bool = False,
    precision: Literal["float32", "float64"] = "float32",
) -> RunSpec:
    """Continue with minibatches: the whole network, or the part that a schedule trains."""
    training = replace(
        run.training,
        learning_rate=rate,
        batch_size=batch_size,
        steps=steps,
        schedule=schedule,
        precision=precision,
    )
    watched = Evaluation(
        every=max(1, steps // 10),
        curves=True,
        fitted_error=None,
        instruments=(*ALONG, *((LinearProbe(at=(0,)),) if probe else ())),
    )
    return replace(run, training=training, evaluation=watched)


def tangent(run: RunSpec) -> RunSpec:
    """Return the network's linearisation at its start: the tangent kernel as a model."""
    assert isinstance(run.model, MLP), "of the start"
    model = Tangent(run.model.width, run.model.activation)
    return replace(run, model=model, init=TangentStart(run.init))


def seeded(run: RunSpec, seeds: int, rates: tuple[float, ...] = ()) -> Sweep:
    """Return the runs of some seeds, at several rates if some are given."""
    axes: dict[str, Any] = {"training.learning_rate": rates} if rates else {}
    return Sweep(run, {**axes, "seed": range(seeds)})
