"""HP: hidden progress, the settings that its experiments share.

Unless said otherwise data are online, the loss is hinge, B = 32, λ = 0, and a run has converged
when every one of the held-out examples is right, looked at every 10 steps: 8192 examples where
curves are kept, 128 in the large sweeps [HP App. B.4.2].

The source's uniform start is "Xavier's, the default of deep learning packages", which are two: the
default of PyTorch is ±1/√fan_in. It is the one taken here: with it every configuration that the
source names converges, with Xavier's bound the sinusoidal neurons mostly do not (docs/papers.md).
"""

from __future__ import annotations

from petridish.models import (
    MLP,
    InfiniteZigzag,
    Init,
    Model,
    Oscillating,
    PolyNet,
    Power,
    Sine,
    Uniform,
    Zigzag,
)
from petridish.models.activations import Activation
from petridish.tasks import SparseParity
from petridish.training import ONLINE, Data, Evaluation, Hinge, Loss, RunSpec, Training


def architecture(numeral: str, k: int) -> Model:
    """Give an architecture of HP by its Roman numeral, for parities of k bits [HP §3.1]."""
    if numeral == "(xv)":
        return PolyNet(k)
    if numeral in ("(i)", "(ii)", "(iii)"):
        return relu(10 ** len(numeral[1:-1]))
    if numeral in ("(iv)", "(v)", "(vi)"):
        return power(10 ** (1 + ("(iv)", "(v)", "(vi)").index(numeral)), k)
    if numeral in ("(*i)", "(*ii)"):
        # Without an output bias 2 and 3 ReLUs are no parity of 2 and 3 bits. From k = 4 on none is
        # needed; it is there for every k, so that (*i) is one architecture.
        return MLP(k) if numeral == "(*i)" else power(k, k)
    neurons: tuple[Activation, ...] = (Zigzag(k), Oscillating(k), InfiniteZigzag(k), Sine(k))
    with_layer = ("(vii)", "(viii)", "(ix)", "(x)")
    without = ("(xi)", "(xii)", "(xiii)", "(xiv)")
    if numeral in with_layer:
        return MLP(1, activation=neurons[with_layer.index(numeral)], output="linear")
    return MLP(1, activation=neurons[without.index(numeral)], output="sum")


def relu(width: int) -> MLP:
    """Give HP's MLP: u·relu(Wx + b)."""
    return MLP(width, output="linear")


def power(width: int, k: int) -> MLP:
    """Give HP's polynomial MLP: u·(Wx + b)^k."""
    return MLP(width, activation=Power(k), output="linear")


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
    loss: Loss = Hinge(),  # noqa: B008 - frozen
    decay: float = 0.0,
    m: float = ONLINE,
    label_noise: float = 0.0,
) -> RunSpec:
    """Give a run in HP's manner."""
    return RunSpec(
        task=task,
        data=Data(m=m, label_noise=label_noise, n_test=n_test),
        model=model,
        init=init,
        training=Training(
            loss=loss,
            learning_rate=rate,
            weight_decay=decay,
            batch_size=batch,
            steps=steps,
            target_error=target,
        ),
        evaluation=Evaluation(every=every, curves=curves, instruments=instruments),
    )
