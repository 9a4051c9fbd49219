"""Instruments of neurons one by one: clusters, gradients along patterns, margins, movement."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from petridish.errors import UserError
from petridish.models import MLP, Constant, Normal, TruncatedReLU
from petridish.tasks import Dictionary, Injected, SparseParity, find_images
from petridish.training import (
    ONLINE,
    BalancedOnUnlabelled,
    Data,
    Evaluation,
    FilterWeights,
    Instrument,
    LargestClass,
    OpenMargins,
    PatternGradient,
    RelativeMovement,
    RunRecord,
    RunSpec,
    Silent,
    Training,
    WeightClusters,
    load_engine,
)
from petridish.training.weight_probes import silhouette, unit_rows

SMALL = Dictionary(9, 6, 3)


def watched(*instruments: Instrument, task: Any = SMALL, **more: Any) -> RunSpec:
    """Return a run of two steps that reads these at each of them."""
    spec = RunSpec(
        task=task,
        data=Data(m=40, n_test=30),
        model=MLP(8, activation=TruncatedReLU(), output="linear"),
        training=Training(steps=2, target_error=None, batch_size=None, precision="float64"),
        evaluation=Evaluation(every=1, curves=True, weights=True, instruments=instruments),
    )
    return replace(spec, **more)


def carried_out(spec: RunSpec) -> RunRecord:
    """Check and carry out a run."""
    spec.check()
    (record,) = load_engine("reference").run([spec], Silent())
    return record


def test_clusters_by_hand() -> None:
    """Two pairs of directions 90° apart have the silhouette 1; an even star has little of it."""
    pairs = np.array([[3.0, 0], [1, 0], [0, 2], [0, 5], [0, 0]])
    angles = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    star = np.stack([np.cos(angles), np.sin(angles)], axis=1)

    assert len(unit_rows(pairs)) == 4
    assert silhouette(unit_rows(pairs), 2) == pytest.approx(1)
    assert silhouette(unit_rows(star), 2) < 0.8
    assert np.isnan(silhouette(unit_rows(pairs[:2]), 2))
    assert np.isnan(silhouette(unit_rows(np.ones((5, 3))), 2))


def test_clusters_of_a_run() -> None:
    """Read at the start and after steps; another number of clusters has a name of its own."""
    record = carried_out(watched(WeightClusters(), WeightClusters(3, at=(2,))))

    assert all(-1 <= value <= 1 for value in record.curves["weight_clusters"])
    assert np.isnan(record.curves["weight_clusters 3"][0])
    assert record.curves["weight_clusters 3"][2] != record.curves["weight_clusters"][2]


@pytest.mark.parametrize("space", ["inputs", "patterns"])
def test_gradients_along_patterns(space: Any) -> None:
    """T_j = mean of y σ'(z) x · M_j where y f < 1, by hand from weights and sample."""
    task = replace(SMALL, space=space)
    record = carried_out(watched(PatternGradient(), task=task))
    assert record.weights is not None
    found = record.curves.arrays["pattern_gradient"][2]
    w, b, a = (
        np.array(values, np.float64).reshape(parameter.shape)
        for values, parameter in zip(record.weights, record.spec.parameters, strict=True)
    )
    drawn = task.draw([0], "train", 0, 40)
    x, y = drawn.x[0].astype(np.float64), 1.0 - 2 * drawn.labels[0]
    z = x @ w.T + b
    counted = (y * (np.clip(z, 0, 1) @ a[0]) < 1)[:, None] & (z > 0) & (z < 1)
    steps = (counted * y[:, None]).T @ x / len(x)  # (neuron, input)
    along = steps @ task.dictionary(0) if space == "inputs" else steps[:, :6]

    assert found.shape == (8, 5)
    assert np.allclose(found[:, 1], along[:, :3].mean(axis=1), atol=1e-6)
    assert np.allclose(found[:, 3], np.abs(along[:, 3:]).max(axis=1), atol=1e-6)
    assert np.allclose(found[:, 4], b, atol=1e-6)
    assert (found[:, 0] <= found[:, 1]).all()
    assert (found[:, 1] <= found[:, 2]).all()


def test_margins_and_movement() -> None:
    """By hand from the run's own losses and weights."""
    spec = watched(OpenMargins(), RelativeMovement(), init=Normal(0.4))
    record = carried_out(spec)
    start = carried_out(replace(spec, training=replace(spec.training, learning_rate=0.0)))
    assert record.weights is not None
    assert start.weights is not None
    before, now = (np.reshape(run.weights[0], (8, 9)) for run in (start, record))  # type: ignore[index]
    moved = np.linalg.norm(now - before, axis=1) / np.linalg.norm(before, axis=1)

    assert record.curves["relative_movement"][2] == pytest.approx(np.median(moved), rel=1e-4)
    assert start.curves["relative_movement"] == [0.0] * 3
    assert 0 < record.curves["open_margins"][2] <= 1
    still = carried_out(watched(OpenMargins(), RelativeMovement(), init=Constant(0.0)))
    assert still.curves["open_margins"][0] == 1.0  # outputs of 0
    assert np.isnan(still.curves["relative_movement"]).all()


def test_filters_are_rows() -> None:
    """The rows of a layer by its name."""
    record = carried_out(watched(FilterWeights("layer1.weight", at=(0, 2))))
    readings = record.curves.arrays["filter_weights layer1.weight"]
    assert record.weights is not None

    assert [reading.shape for reading in readings] == [(8, 9)] * 2
    assert np.allclose(readings[1].ravel(), record.weights[0], atol=1e-6)


def test_the_largest_class_of_a_part() -> None:
    """Counted in the held-out sample; the injected part has no labels of its own."""
    task = Injected(find_images("digits", (0, 1)), 0.5)
    spec = watched(
        LargestClass(),
        LargestClass("injected"),
        LargestClass(on="train"),
        task=task,
        init=Normal(1),
    )
    curves = carried_out(spec).curves
    labels = task.draw([0], "test", 0, 30).labels[0]
    counts = np.bincount(labels[labels >= 0])

    assert curves["largest_class"][0] == counts.max() / counts.sum()
    assert np.isnan(curves["largest_class_injected"]).all()
    assert 0.5 <= curves["largest_class_train"][0] <= 1


@pytest.mark.parametrize(
    ("instrument", "changes", "message"),
    [
        (
            PatternGradient(),
            {"task": SparseParity(9, 3)},
            "PatternGradient: the task sparse_parity(9, 3) has no irrelevant patterns. Give a "
            "Dictionary with more patterns than k, or leave the instrument out.",
        ),
        (
            PatternGradient(),
            {"model": MLP(8, (4,))},
            "PatternGradient: it reads an MLP with one hidden layer and one output, trained on a "
            "sample, and the model is mlp(8, (4,)). Leave the instrument out.",
        ),
        (
            OpenMargins(),
            {"data": Data(m=ONLINE), "training": Training(steps=2)},
            "OpenMargins: the run on dictionary(9, 6, 3) has no training sample with the margins "
            "of one output. Give a finite data.m, two classes and a margin loss.",
        ),
        (
            FilterWeights("layer*.weight"),
            {},
            "FilterWeights: of='layer*.weight' names 2 layers of mlp(8, (), truncated_relu, "
            "linear). Did you mean layer1.weight or layer2.weight?",
        ),
        (
            LargestClass("injected"),
            {},
            "LargestClass: the task dictionary(9, 6, 3) has no part called 'injected'. Known: "
            "structured, uniform.",
        ),
    ],
)
def test_what_cannot_be_read(instrument: Instrument, changes: Any, message: str) -> None:
    """Runs that they do not fit, before any training."""
    with pytest.raises(UserError) as refused:
        watched(instrument, **changes).check()
    assert str(refused.value) == message


def test_the_regulariser_by_hand() -> None:
    """Two unlabelled examples with p = (¾, ¼) and (¼, ¾): R₁ = −ln 2, R₂ their own entropy."""
    import torch

    log3 = float(np.log(3))
    outputs = torch.tensor([[[log3, 0.0], [0.0, log3], [0.0, 0.0]]], dtype=torch.float64)
    labels = torch.tensor([[-1, -1, 0]])
    entropy = -(0.75 * np.log(0.75) + 0.25 * np.log(0.25))

    found = float(BalancedOnUnlabelled(2.0, 0.5)(outputs, labels)[0])
    assert found == pytest.approx(np.log(2) + 2 * (-np.log(2) + 0.5 * entropy))
    alone = BalancedOnUnlabelled()(outputs[:, 2:], labels[:, 2:])
    assert float(alone[0]) == pytest.approx(np.log(2))


def test_bad_regularisers() -> None:
    """A negative strength; labels at every position."""
    with pytest.raises(UserError) as refused:
        BalancedOnUnlabelled(-1)
    assert str(refused.value) == (
        "BalancedOnUnlabelled: strength=-1.0. Give a finite number of at least 0."
    )
