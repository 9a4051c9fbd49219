"""Metrics of classes at every position against SciPy and `argmax`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import rel_entr, softmax

from petridish.training import KL, Error
from petridish.training.metrics import Positions
from tests.test_metrics import compared


def test_divergence_at_every_position_is_scipys() -> None:
    """The mean over the labelled positions, or the last one, of Σ p log(p / q), 0 log 0 being 0."""
    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.ones(3), size=(2, 5, 7))
    p[:, 0] = [1, 0, 0]
    outputs = rng.normal(size=(2, 5, 7, 3))
    labels = torch.tensor(rng.integers(-1, 3, size=(2, 5, 7)))
    labels[..., -1] = 1
    every = rel_entr(p, softmax(outputs, axis=-1)).sum(axis=-1)
    means = np.nanmean(np.where(labels >= 0, every, np.nan), axis=-1)
    cases: tuple[tuple[Positions, Any], ...] = (("all", means), ("last", every[..., -1]))
    for positions, expected in cases:
        metric = KL("truth", positions=positions)
        given = p if positions == "all" else p[:, :, -1:]
        found = compared(metric, torch.tensor(outputs, dtype=torch.float32), labels, given)
        assert found.numpy() == pytest.approx(expected, rel=1e-5)
    some = compared(metric, torch.tensor(outputs[:, :, -1:]), labels, p[:, :, -1:])
    assert some.numpy() == pytest.approx(every[..., -1], rel=1e-5)  # no other outputs are needed


def test_wrong_classes_at_every_position() -> None:
    """The first of the largest outputs is the class, as `argmax` has it; NaN is wrong."""
    outputs = torch.tensor(np.random.default_rng(4).integers(0, 3, size=(2, 4, 6, 3)) * 1.0)
    outputs[0, 0, 0, 1] = math.nan
    labels = outputs.nan_to_num().argmax(dim=-1)
    labels[1, 1] = 2 - labels[1, 1]
    wrong = (outputs.argmax(dim=-1) != labels) | outputs.isnan().any(dim=-1)
    found = Error().each(outputs, labels, {})
    assert torch.equal(found, wrong.double().mean(dim=2))
    assert 0 < found.mean() < 1
