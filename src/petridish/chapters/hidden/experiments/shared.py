"""HP: hidden progress, the settings that its experiments share.

Unless said otherwise data are online, the loss is hinge, B = 32, λ = 0, and a run has converged
when every one of the held-out examples is right, evaluated every 10 steps: 8192 examples where
curves are kept, 128 in the large sweeps [HP App. B.4.2].

The paper's uniform start is "Xavier's, the default of deep learning packages", which are two: the
default of PyTorch is ±1/√fan_in. It is the one taken here: with it every configuration that the
paper names converges, with Xavier's bound the sinusoidal neurons mostly do not
(docs/results/hidden.md).
"""

from __future__ import annotations

from typing import Any

from petridish.models import MLP, Init, Model, Uniform
from petridish.tasks import SparseParity
from petridish.training import ONLINE, Data, Evaluation, Hinge, RunSpec, Training


def relu(width: int) -> MLP:
    """Return HP's MLP: u·relu(Wx + b)."""
    return MLP(width, output="linear")


def setting(
    task: SparseParity,
    model: Model,
    *,
    rate: float,
    batch: int = 32,
    steps: int = 100_000,
    n_test: int = 128,
    every: int = 10,
    curves: bool = False,
    instruments: tuple[str, ...] = (),
    target: float | None = 0.0,
    init: Init = Uniform(),  # noqa: B008 - frozen
    m: float = ONLINE,
    label_noise: float = 0.0,
) -> RunSpec:
    """Return a run in HP's manner."""
    return RunSpec(
        task=task,
        data=Data(m=m, label_noise=label_noise, n_test=n_test),
        model=model,
        init=init,
        training=Training(
            loss=Hinge(),
            learning_rate=rate,
            weight_decay=0.0,
            batch_size=batch,
            steps=steps,
            target_error=target,
        ),
        evaluation=Evaluation(every=every, curves=curves, instruments=instruments),
    )


def followed(task: SparseParity, model: Model, *, n_test: int = 8192, **how: Any) -> RunSpec:
    """Return such a run that keeps its curves, evaluated on more examples."""
    return setting(task, model, n_test=n_test, curves=True, **how)
