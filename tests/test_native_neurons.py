"""The native engine's other neurons: the reference engine's steps, on every processor."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from petridish.models import (
    MLP,
    InfiniteZigzag,
    Model,
    Oscillating,
    PolyNet,
    Power,
    ReLU,
    Sine,
    Uniform,
    Zigzag,
)
from petridish.models.activations import Activation
from petridish.tasks import SparseParity
from petridish.training import (
    Data,
    Evaluation,
    Hinge,
    Logistic,
    Loss,
    Outcome,
    RunSpec,
    Silent,
    Square,
    Training,
    load_engine,
    per_layer,
)
from petridish.training.chains import ended
from petridish.training.engines.native import prepare
from petridish.training.native.run import NativeRun, Status
from tests.native_runs import HERE, carry_out

ACTIVATIONS: tuple[Activation, ...] = (
    *(ReLU(), Power(1), Power(3), Power(4), Zigzag(1), Zigzag(4), Oscillating(3), Oscillating(4)),
    *(InfiniteZigzag(2), InfiniteZigzag(3), Sine(1), Sine(2), Sine(3, 0.5), Sine(4)),
)
MODELS: tuple[Model, ...] = (
    *(MLP(1, activation=each, output="sum") for each in ACTIVATIONS),
    *(MLP(13, activation=each, output="linear") for each in ACTIVATIONS),
    *(MLP(5, activation=each) for each in ACTIVATIONS),
    *(PolyNet(k) for k in (1, 2, 3, 5)),
)


def short(model: Model, *, n: int = 20, batch: int = 32, loss: Loss = Hinge()) -> RunSpec:  # noqa: B008
    """Return forty steps without a target, with their losses and the weights' movement."""
    return RunSpec(
        task=SparseParity(n, 3),
        data=Data(n_test=100),
        model=model,
        init=Uniform(),
        training=Training(
            loss=loss,
            learning_rate=0.02,
            weight_decay=0.1,
            batch_size=batch,
            steps=40,
            target_error=None,
        ),
        evaluation=Evaluation(every=1, curves=True, instruments=("movement",)),
    )


def assert_alike(spec: RunSpec) -> None:
    """Compare a run with the reference engine's, look by look."""
    ours = next(load_engine("native").run([spec], Silent())).curves
    theirs = next(load_engine("reference").run([spec], Silent())).curves
    assert ours.step == theirs.step
    assert np.allclose(ours["train_loss"][1:], theirs["train_loss"][1:], rtol=2e-4, atol=2e-4)
    moved, expected = (curves.values["movement"] for curves in (ours, theirs))
    assert np.allclose(moved, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_every_neuron_takes_the_reference_engines_steps(model: Model) -> None:
    """Losses and movement of forty steps agree, weight decay included."""
    assert_alike(short(model))


@pytest.mark.parametrize("loss", [Hinge(), Square(), Logistic()], ids=lambda loss: loss.name)
@pytest.mark.parametrize("batch", [1, 31, 33, 96])
@pytest.mark.parametrize("n", [7, 15, 16, 63, 64, 130])
def test_neurons_of_every_shape_take_the_same_steps(n: int, batch: int, loss: Loss) -> None:
    """Whatever the number of inputs, of examples a step, and the loss."""
    assert_alike(short(MLP(3, activation=Zigzag(3), output="linear"), n=n, batch=batch, loss=loss))


@pytest.mark.parametrize("model", MODELS[::3], ids=str)
def test_neurons_have_the_same_bits_on_every_processor(model: Model) -> None:
    """The last weights and all losses agree bit by bit between the instruction sets."""
    found = [carry_out(short(model, n=37, batch=50), isa) for isa in HERE]
    for losses, weights in found[1:]:
        assert np.array_equal(losses, found[0][0])
        assert all(np.array_equal(*pair) for pair in zip(weights, found[0][1], strict=True))


def test_rates_of_their_own_reach_weights_biases_and_outputs() -> None:
    """Frozen parts stay; with all rates different the run is still the reference engine's."""
    spec = short(MLP(4, activation=Sine(3), output="linear"))
    for factors in ((0.0, 1.0), (1.0, 0.0), (1.0, 0.3, 0.1)):
        changed = replace(spec, training=replace(spec.training, schedule=per_layer(factors)))
        assert_alike(changed)
    frozen = replace(spec, training=replace(spec.training, schedule=per_layer((0.0, 1.0))))
    start = prepare([frozen])[0].weights
    weights = ended(frozen)
    assert np.array_equal(weights["layer1.weight"], start[0])
    assert not np.array_equal(weights["layer2.weight"], start[2])


def test_a_run_does_not_depend_on_how_it_is_cut_into_calls() -> None:
    """One unit of work a call, or all at once: the same losses and weights."""
    spec = short(PolyNet(3))
    whole = carry_out(spec, HERE[0])
    with NativeRun(prepare([spec])[0], HERE[0]) as run:
        while run.advance(1) is Status.RUNNING:
            pass
        assert np.array_equal(run.curves().train_loss[1:], whole[0])


def test_a_power_that_explodes_has_diverged() -> None:
    """A loss beyond all numbers ends the run as a result, not as an error."""
    spec = short(MLP(10, activation=Power(6), output="linear"))
    spec = replace(spec, training=replace(spec.training, learning_rate=10.0, steps=500))
    assert next(load_engine("native").run([spec], Silent())).outcome is Outcome.DIVERGED
