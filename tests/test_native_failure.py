"""Certificates of failure: runs that end early by proof, and runs that must not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from petridish.models import MLP
from petridish.tasks import SparseParity
from petridish.training import (
    Data,
    Evaluation,
    Hinge,
    Loss,
    Outcome,
    RunSpec,
    Silent,
    Square,
    Training,
    load_engine,
    per_layer,
)
from petridish.training.data import training_examples
from petridish.training.engines.native import prepare
from petridish.training.native.run import NativeRun, PackedExamples, Status

DOOMED = {
    # Decay wins over a gradient that a single neuron cannot use.
    "collapsed online": RunSpec(
        task=SparseParity(30, 5),
        model=MLP(1),
        data=Data(n_test=2000),
        training=Training(steps=20_000, weight_decay=0.1),
    ),
    "collapsed on a sample": RunSpec(
        task=SparseParity(30, 8),
        model=MLP(3),
        data=Data(m=5000, n_test=2000),
        training=Training(steps=20_000, weight_decay=0.1),
    ),
}


@pytest.mark.parametrize("name", DOOMED)
def test_a_run_certified_as_failing_fails(name: str) -> None:
    """Every run that ends early by proof, run to its end anyway, is never solved there."""
    certified = 0
    for seed in range(30):
        spec = replace(DOOMED[name], seed=seed)
        with NativeRun(prepare([spec])[0]) as run:
            while (status := run.advance(10**6)) is Status.RUNNING:
                pass
            if status is not Status.HOPELESS:
                continue
            certified += 1
            assert run.state.step < spec.training.steps
            assert run.state.test_wrong > 0.1 * spec.data.n_test
        whole = replace(spec, evaluation=Evaluation(curves=True))
        (record,) = load_engine("native").run([whole], Silent())  # curves are never cut short
        assert record.outcome is Outcome.OUT_OF_STEPS
        assert record.steps == spec.training.steps
        assert min(record.curves["test_error"]) > 0.1
    assert certified >= 3, "the test needs runs that are certified"


@pytest.mark.parametrize("silent_on", ["all inputs", "both samples", "the training sample"])
def test_silent_neurons_end_a_run_and_change_nothing(silent_on: str) -> None:
    """Biases that silence every neuron: certified at once if no held-out example wakes one.

    A network with one neuron awake is not given up.
    """
    from petridish.training.data import test_examples

    spec = RunSpec(
        task=SparseParity(20, 3),
        model=MLP(20),
        data=Data(m=40, n_test=1000),
        training=Training(steps=3000),
    )
    (arguments,) = prepare([spec])
    weight, _, output, output_bias = arguments.weights
    assert isinstance(arguments.train, PackedExamples)
    train, test = training_examples([spec], 0, 40).x[0], test_examples([spec]).x[0]
    x = train if silent_on == "the training sample" else np.concatenate([train, test])
    silencing = -(x @ weight.T).max(0) - np.float32(0.01)
    if silent_on == "all inputs":
        silencing = np.full_like(silencing, -100)
    silent = replace(arguments, weights=[weight, silencing, output, output_bias])
    awake = silencing.copy()
    awake[7] = 5.0
    endings = {}
    for name, given_arguments in (
        ("certified", silent),
        ("to the end", replace(silent, certify=False)),
        ("awake", replace(silent, weights=[weight, awake, output, output_bias])),
    ):
        with NativeRun(given_arguments) as run:
            endings[name] = run.advance(10**9), run.state.step

    if silent_on == "the training sample":
        assert endings["certified"] == endings["to the end"]
    else:
        assert endings["certified"] == (Status.HOPELESS, 100)
    assert endings["to the end"] == (Status.OUT_OF_STEPS, 3000)
    assert endings["awake"][1] > 100


@pytest.mark.parametrize("loss", [Square(), Hinge()], ids=lambda loss: loss.name)
def test_a_run_that_diverges_is_not_called_hopeless(loss: Loss) -> None:
    """With every neuron silent, β alone may still diverge under the square loss: no certificate."""
    outcomes = set()
    for seed in range(20):
        spec = RunSpec(
            task=SparseParity(10, 5),
            model=MLP(2),
            data=Data(m=200, n_test=500),
            training=Training(steps=600, learning_rate=1.2, weight_decay=0.0, loss=loss),
            evaluation=Evaluation(every=5),
            seed=seed,
        )
        (record,) = load_engine("native").run([spec], Silent())
        kept = replace(spec, evaluation=Evaluation(every=5, curves=True))
        (whole,) = load_engine("native").run([kept], Silent())
        outcomes.add(record.outcome)
        assert record.outcome is whole.outcome
    assert (Outcome.DIVERGED in outcomes) == (loss == Square())


def test_rows_that_vanish_stay_silent() -> None:
    """Decay far below 1e-38 flushes no entry of a row before the others: no neuron wakes by it.

    With w = (0.02, −0.01), b = −0.012 the neuron is silent where x_0 = −1. Were −0.01 to vanish
    first, the sign of what is left would change.
    """
    spec = RunSpec(
        task=SparseParity(2, 1, support=(0,)),
        model=MLP(1),
        data=Data(m=3, n_test=64),
        training=Training(steps=20_000, weight_decay=0.1, schedule=per_layer(decays=(1.0, 0.0))),
    )
    weights = [[[0.02, -0.01]], [-0.012], [[1.0]], [0.0]]
    for seed in range(40):
        (arguments,) = prepare([replace(spec, seed=seed)])
        changed = replace(arguments, weights=[np.array(weight, np.float32) for weight in weights])
        endings = []
        for certify in (True, False):
            with NativeRun(replace(changed, certify=certify)) as run:
                status = run.advance(10**9)
                endings.append(Status.OUT_OF_STEPS if status is Status.HOPELESS else status)
        assert endings[0] == endings[1]


def test_a_network_that_may_still_learn_is_not_given_up() -> None:
    """Inactive on the sample, but good by a threshold on the held-out sample: no proof."""
    spec = RunSpec(
        task=SparseParity(6, 1, support=(0,)),
        model=MLP(1),
        data=Data(m=4, n_test=500),
        training=Training(steps=400, target_error=0.1, weight_decay=0.5),
        evaluation=Evaluation(every=1),
    )
    arguments = prepare([spec])[0]
    assert isinstance(arguments.train, PackedExamples)
    # Every training example has x_0 = −1, and one neuron fires for x_0 = +1 alone: silent on the
    # sample, and right about the held-out half that it sees, so that β < 0 makes it perfect.
    inputs = arguments.train.inputs | np.uint64(1)
    weight = np.zeros((1, 6), np.float32)
    weight[0, 0] = 1.0
    changed = replace(
        arguments,
        train=PackedExamples(inputs, np.ones(4, np.uint8)),
        weights=[
            weight,
            np.zeros(1, np.float32),
            np.ones((1, 1), np.float32),
            np.full(1, 0.5, np.float32),
        ],
    )
    with NativeRun(changed) as run:
        assert run.advance(10**9) is Status.SOLVED
