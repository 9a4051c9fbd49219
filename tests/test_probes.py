"""Instruments of learned features: linear probes, background beside relevant patterns, coverage."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from petridish.errors import UserError
from petridish.models import MLP, ByName, Constant, Normal
from petridish.tasks import Dictionary, HiddenLabels, Hypercube, SparseParity
from petridish.training import (
    CentreCosine,
    Data,
    Evaluation,
    Instrument,
    LinearProbe,
    PatternRatio,
    RunSpec,
    Silent,
    Training,
    load_engine,
)

SMALL = Dictionary(9, 6, 3)


def read(instrument: Instrument, task: Any, **more: Any) -> tuple[float, np.ndarray, RunSpec]:
    """Return a reading after two steps, the first layer's weights then, and the run."""
    spec = RunSpec(
        task=task,
        data=Data(m=400, n_test=300),
        model=MLP(7),
        training=Training(steps=2, target_error=None, batch_size=50),
        evaluation=Evaluation(curves=True, weights=True, instruments=(instrument,)),
    )
    spec = replace(spec, **more)
    (record,) = load_engine("reference").run([spec], Silent())
    assert record.weights is not None
    rows = np.array(record.weights[0], np.float64).reshape(spec.parameters[0].shape)
    return record.curves.values[instrument.label][-1], rows, spec


@pytest.mark.parametrize("space", ["inputs", "patterns"])
def test_background_beside_relevant_patterns(space: Any) -> None:
    """By hand from the weights; in both spaces."""
    task = replace(SMALL, space=space)
    found, rows, _ = read(PatternRatio(), task)
    along = np.abs(rows[:, :6] if space == "patterns" else rows @ task.dictionary(0))
    ratios = along[:, 3:].max(axis=1) / along[:, :3].min(axis=1)

    assert found == pytest.approx(np.median(ratios), rel=1e-5)


def test_the_worst_covered_centre() -> None:
    """By hand; the corners of a cube are its centres."""
    task = Hypercube(5, 3, 0.5)
    found, rows, _ = read(CentreCosine(), task)
    corners = task.corners @ task.directions([0])[0] / np.sqrt(3)
    cosines = rows @ corners.T / np.linalg.norm(rows, axis=1, keepdims=True)

    assert found == pytest.approx(cosines.max(axis=0).min(), abs=1e-6)
    assert np.isfinite(read(CentreCosine(), HiddenLabels(8, 6, 4, 3))[0])


def test_instruments_of_other_tasks_have_no_value() -> None:
    """A parity of bits has neither patterns nor centres."""
    for instrument in (PatternRatio(), CentreCosine()):
        assert np.isnan(read(instrument, SparseParity(6, 2))[0])


def test_a_probe_finds_what_features_show() -> None:
    """A threshold on one pattern is linear in x; features of constant neurons show nothing."""
    task = Dictionary(6, 6, 1, structure=False)
    found, _, _ = read(LinearProbe(), task)
    blind = ByName((("layer1.weight", Constant(0.0)), ("*", Normal(0.1))))
    frozen = Training(steps=1, target_error=None, learning_rate=0.0, weight_decay=0.0)
    nothing, _, spec = read(LinearProbe(), task, init=blind, training=frozen)
    labels = task.draw([0], "test", 0, spec.data.n_test).labels[0]

    assert found < 0.05
    assert min(abs(nothing - share) for share in (labels.mean(), 1 - labels.mean())) < 1e-9


def test_a_probe_reads_tiny_features() -> None:
    """Weights of 1e-6 beside biases of 0.1 are as good as others: the fit scales each feature."""
    task = Dictionary(6, 6, 1, structure=False)
    frozen = Training(steps=1, target_error=None, learning_rate=0.0, weight_decay=0.0)
    sizes = [
        read(
            LinearProbe(),
            task,
            init=ByName((("layer1.weight", Normal(std)), ("*", Constant(0.1)))),
            training=replace(frozen, precision="float64"),
            model=MLP(40),
        )[0]
        for std in (1e-2, 1e-6)
    ]
    assert max(sizes) < 0.05


def test_a_probe_of_nothing() -> None:
    """One sentence."""
    with pytest.raises(UserError) as refused:
        LinearProbe(0)
    assert str(refused.value) == "LinearProbe: n=0. Give a whole number of at least 1."
