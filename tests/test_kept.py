"""What runs keep beside their curves: final weights, margins over all inputs, their precision."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from petridish.groups import find_group
from petridish.models import MLP, Homogeneous, Power, ReLU
from petridish.publish.records import lighter, slim
from petridish.store import Store
from petridish.tasks import GroupProduct, SparseParity
from petridish.theory.features.margin_networks import (
    Neurons,
    all_bits,
    all_pairs,
    group_network,
    margins,
    parity_network,
)
from petridish.theory.features.margins import group_margin, parity_margin
from petridish.training import (
    ENGINES,
    INSTRUMENTS,
    CrossEntropy,
    Curves,
    Data,
    Evaluation,
    NeuronNorm,
    NormPower,
    Outcome,
    RunSpec,
    Silent,
    Training,
    load_engine,
    run_key,
)
from petridish.training.chains import ended
from petridish.training.readings import Gauges
from tests.domains import bits
from tests.test_engines import STEPPING

NET, BITS = MLP(6), SparseParity(8, 2)


def spec_of(model: Any = NET, task: Any = BITS, **training: Any) -> RunSpec:
    """Return a short run that keeps its weights."""
    return RunSpec(
        task=task,
        data=Data(m=40, n_test=50),
        model=model,
        training=Training(**{"steps": 20, "batch_size": 8, "target_error": None} | training),
        evaluation=Evaluation(every=20, weights=True),
    )


@pytest.mark.parametrize("engine", STEPPING, ids=lambda engine: engine.name)
def test_a_run_keeps_the_weights_with_which_it_ends(engine: Any, seed: int) -> None:
    """They are those of a run made again; without being asked for, none are kept."""
    spec = replace(spec_of(), seed=seed)
    (record,) = engine.run([spec], Silent())
    again = list(ended(spec).values())

    assert record.weights is not None
    for kept, parameter, weight in zip(record.weights, spec.parameters, again, strict=True):
        assert len(kept) == parameter.size
        assert np.allclose(np.reshape(kept, parameter.shape), weight, atol=1e-5)
    (bare,) = engine.run([replace(spec, evaluation=Evaluation(every=20))], Silent())
    assert bare.weights is None


@pytest.mark.parametrize("engine", STEPPING, ids=lambda engine: engine.name)
def test_a_diverged_run_keeps_none(engine: Any) -> None:
    """Weights that are no longer finite say nothing."""
    spec = spec_of(MLP(6, activation=Power(2)), learning_rate=1e6)
    (record,) = engine.run([spec], Silent())

    assert record.outcome is Outcome.DIVERGED
    assert record.weights is None


def test_weights_come_back_from_the_store(tmp_path: Path) -> None:
    """A shard holds them; a reader without curves is spared them; a record may keep them."""
    (record,) = load_engine("torch").run([spec_of()], Silent())
    store = Store(tmp_path)
    store.write([record])
    whole = store.read(columns="all").table

    assert whole["weights"].to_list()[0] == record.weights
    assert "weights" not in store.read().table.columns
    assert "weights" not in slim(whole).columns
    kept = np.concatenate(slim(lighter(whole), ("weights",))["weights"].to_list()[0])
    assert np.allclose(kept, np.concatenate(record.weights or []), rtol=2**-11, atol=0)
    assert np.array_equal(np.frexp(kept)[0] * 2048 % 1, np.zeros(len(kept)))
    large = whole.with_columns(weights=pl.lit([[1e9, -3e-9]], dtype=whole.schema["weights"]))
    assert np.allclose(lighter(large)["weights"].to_list()[0][0], [1e9, -3e-9], rtol=2**-11, atol=0)


def test_float64_sees_what_float32_does_not() -> None:
    """From one start both go the same way; a change of 1e-9 is lost in float32 alone."""
    engine = load_engine("torch")
    task = GroupProduct("Z5")
    ends = {}
    for precision in ("float32", "float64"):
        spec = spec_of(
            Homogeneous(8),
            task,
            precision=precision,
            loss=CrossEntropy(),
            weight_decay=0.0,
            learning_rate=1e-9,
            steps=3,
        )
        spec = replace(spec, evaluation=Evaluation(every=3, curves=True, instruments=("movement",)))
        (record,) = engine.run([spec], Silent())
        ends[precision] = record.curves.values["movement"][-1]

    assert ends["float64"] > 1e-11
    assert ends["float32"] == 0
    one, other = (spec_of(precision=precision) for precision in ("float32", "float64"))
    assert run_key(one) != run_key(other)


def margin_of(network: Neurons, task: Any, model: Homogeneous, seed: int = 0) -> float:
    """Read the instrument off exact weights."""
    weights = [network.inputs, network.outputs.T]
    spec = RunSpec(
        task=task,
        data=Data(m=10, n_test=10),
        model=model,
        training=Training(loss=CrossEntropy()),
        evaluation=Evaluation(curves=True, instruments=("normalised_margin", "feature_power")),
        seed=seed,
    )
    gauges, found = Gauges(spec, weights), Curves()  # type: ignore[arg-type]
    gauges.read(0, weights, found)  # type: ignore[arg-type]
    return found["normalised_margin"][0]


def test_the_margin_is_that_of_all_inputs(seed: int) -> None:
    """On random weights it is the least of `margins`; on constructions it is γ*."""
    rng = np.random.default_rng(seed)
    group = find_group("S3")
    drawn = Neurons(rng.normal(size=(7, 12)), rng.normal(size=(7, 6)))
    exact = group_network(group)
    bits = Neurons(rng.normal(size=(5, 6)), rng.normal(size=(5, 2)), 3)
    parity = SparseParity(6, 3, (0, 1, 2))

    for network in (drawn, exact):
        found = margin_of(network, GroupProduct("S3"), Homogeneous(network.width))
        assert found == pytest.approx(margins(network, *all_pairs(group)).min())
    assert found == pytest.approx(group_margin(group).margin)
    for network in (bits, parity_network(6, 3)):
        found = margin_of(network, parity, Homogeneous(network.width, Power(3)))
        assert found == pytest.approx(margins(network, *all_bits(6, 3)).min())
    assert found == pytest.approx(parity_margin(3))


def test_a_network_of_one_output_has_the_margin_of_two(seed: int) -> None:
    """The margin of f is the one that outputs f and −f have, over the norm with one output."""
    rng = np.random.default_rng(seed)
    inputs, output = rng.normal(size=(5, 6)), rng.normal(size=(5, 1))
    task = SparseParity(6, 2, (0, 1))
    one = margin_of(Neurons(inputs, output), task, Homogeneous(5))
    both = Neurons(inputs, np.concatenate([output, -output], axis=1))
    norms = np.square(inputs).sum(axis=1) + np.square(output[:, 0])
    gap = margins(both, *all_bits(6, 2)).min() * (both.norms() ** 3).sum()

    assert one == pytest.approx(gap / (norms**1.5).sum())


def test_margins_are_read_where_there_are_any() -> None:
    """Other models, and more inputs than can be listed, have none; nor has a parity features."""
    few, many = SparseParity(6, 2), SparseParity(30, 2)
    assert {"normalised_margin", "feature_power"} <= set(INSTRUMENTS)
    for task, model in ((few, MLP(4)), (many, Homogeneous(4))):
        spec = RunSpec(
            task=task,
            model=model,
            training=Training(steps=1),
            evaluation=Evaluation(
                every=1, curves=True, instruments=("normalised_margin", "feature_power")
            ),
        )
        (record,) = load_engine("torch").run([spec], Silent())
        for name in ("normalised_margin", "feature_power"):
            assert all(math.isnan(value) for value in record.curves[name])


def test_the_penalty_by_hand() -> None:
    """λ Σ ‖ω_i‖^b of two neurons, biases among their weights and the output's bias not.

    `NormPower` takes the sum to the power of r/b.
    """
    import torch

    parameters = MLP(2).parameters(bits(2), 1)
    weights = [
        torch.tensor(values)[None]
        for values in ([[3.0, 0.0], [0.0, 2.0]], [4.0, 1.0], [[0.0, 2.0]], [100.0])
    ]
    # ω_1 = (3, 0, 4, 0) and ω_2 = (0, 2, 1, 2): lengths 5 and 3, sums 7 and 5.
    assert NeuronNorm(0.1, 2, 3)(parameters, weights).item() == pytest.approx(0.1 * (125 + 27))
    assert NeuronNorm(0.1, 1, 2)(parameters, weights).item() == pytest.approx(0.1 * (49 + 25))
    for r in (1, 2, 3):
        found = NormPower(0.1, 2, 3, r)(parameters, weights).item()
        assert found == pytest.approx(0.1 * (125 + 27) ** (r / 3))


def test_engines_without_a_penalty_or_float64_refuse_them() -> None:
    """The compiled engine says what it lacks, and which engine has it."""
    native = ENGINES["native"]
    for change, sentence in (
        (
            {"penalty": NeuronNorm(0.1, 2, 3)},
            "it has no penalty, and this run has neuron_norm(0.1, 2.0, 3.0). The engine torch can.",
        ),
        (
            {"precision": "float64"},
            "it computes in float32, and this run in float64. The engine torch can.",
        ),
    ):
        assert native.refusal(spec_of(**change)) == sentence
    assert native.refusal(spec_of()) is None
    assert native.refusal(spec_of(Homogeneous(4, ReLU()))) == (
        "it trains two-layer networks of this package's activations, polynets, transformers of "
        "attention alone, the minimal one and blocks with [CLS], and the model is "
        "homogeneous(4, relu). The engine torch can."
    )


def test_a_threshold_that_no_run_reached_stays_in_a_record() -> None:
    """That it is empty is the answer; a column that no run was asked for says nothing."""
    runs = pl.DataFrame({"seed": [0, 1], "reached.test_error": [None, None], "drawn.x": [None] * 2})
    assert slim(runs).columns == ["seed", "reached.test_error"]
