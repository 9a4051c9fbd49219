"""The minimal model in the native engine against its plain module, and the other engines."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from petridish.models import ByName, Constant, MinimalAttention
from petridish.tasks import MarkovChains
from petridish.training import SGD, Silent, choose_engine, load_engine
from petridish.training.engines.native_attention import arguments
from petridish.training.native.attention_run import NO_LABEL, NativeAttention
from tests.native_runs import HERE
from tests.test_native_attention import (
    SHAPES,
    UNSHRUNK,
    Arrays,
    apart,
    gradient_of,
    module_of,
    spec_of,
)


@settings(deadline=None, max_examples=20, phases=UNSHRUNK, derandomize=True)
@given(SHAPES, st.integers(0, 2**32 - 1), st.sampled_from([1.0, 4.0, 16.0]))
def test_gradients_of_the_minimal_model_are_those_of_autograd(
    shape: tuple[int, int, int, int, int, int], seed: int, scale: float
) -> None:
    """In float64 by the plain module: 1e-5 at any size of the weights, and bits of every set.

    There is no exponential but that of the loss, so that large weights change nothing.
    """
    k, t, _, _, _, batch = shape
    spec = spec_of(
        MarkovChains(k, t), MinimalAttention(), training={"batch_size": batch}, seed=seed
    )
    x, y = np.random.default_rng(seed).integers(0, k, (2, batch, t), dtype=np.uint8)
    if seed % 2 and batch * t > 1:
        y.flat[::2] = NO_LABEL  # half of the positions do not count
    module = module_of(spec, scale)
    weights: Arrays = [p.detach().numpy() for p in module.parameters()]
    exact_loss, exact = gradient_of(copy.deepcopy(module).double(), x, y)
    expected = module(torch.from_numpy(x).long()).detach().numpy()
    found = set()
    for isa in HERE:
        with NativeAttention(replace(arguments(spec), weights=weights), isa) as run:
            loss, gradient = run.gradient(x, y)
            outputs = run.outputs(x)
        assert loss == pytest.approx(exact_loss, rel=1e-4, abs=1e-6)
        if max(np.abs(each).max() for each in exact) > 1e-12:
            assert apart(gradient, exact, 1e-3) <= 1e-5
        np.testing.assert_allclose(outputs, expected, atol=1e-5 * np.abs(expected).max() + 1e-9)
        found.add(b"".join(each.tobytes() for each in (*gradient, outputs)))
    assert len(found) == 1


def test_the_papers_start_of_the_minimal_model_is_served() -> None:
    """W = 0 and a constant v: the first gradient is that of the plain module."""
    start = ByName((("key", Constant(0.0)), ("positions", Constant(0.02))))
    spec = spec_of(model=MinimalAttention(), init=start, training={"optimiser": SGD()})
    found, plain = (
        next(iter(load_engine(name).run([spec], Silent()))) for name in ("native", "reference")
    )
    np.testing.assert_allclose(
        found.curves.values["train_loss"], plain.curves.values["train_loss"], atol=1e-5
    )


def test_longer_sequences_are_left_to_torch() -> None:
    """The engine is chosen by length alone."""
    engines = [choose_engine(spec_of(MarkovChains(3, t), MinimalAttention())) for t in (512, 513)]
    assert [engine.name for engine in engines] == ["native", "torch"]
