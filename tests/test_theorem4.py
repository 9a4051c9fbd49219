"""Theorem 4's algorithm: its start, and its first step against the population gradient."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from petridish.chapters.pareto.experiments.mechanisms import theorem_4
from petridish.errors import UserError
from petridish.models import MLP, OverSparse
from petridish.theory.pareto.gradients import over_sparse_constants, population_gradient
from petridish.theory.pareto.over_sparse import over_sparse_biases
from petridish.training.chains import ended
from petridish.training.data import initial_weights
from tests.domains import bits


@given(st.integers(1, 8), st.sampled_from([2, 4, 6]), st.integers(0, 2**32))
def test_the_start_is_that_of_the_appendix(s: int, k: int, seed: int) -> None:
    """Every neuron has s ones; biases are of the repaired set, outputs ±1, and pairs cancel."""
    parameters = MLP(20).parameters(bits(8), 1)
    weight, bias, output, last = (drawn[0] for drawn in OverSparse(s, k).draw(parameters, [seed]))

    assert np.array_equal(weight.sum(axis=1), np.full(20, s))
    assert set(np.unique(weight)) <= {0.0, 1.0}
    allowed = over_sparse_biases(k).astype(np.float32)
    assert np.isin(bias, allowed).all()
    assert np.array_equal(np.abs(output), np.ones((1, 20)))
    assert np.array_equal(weight[:10], weight[10:])
    assert np.array_equal(bias[:10], bias[10:])
    assert np.array_equal(output[:, :10], -output[:, 10:])
    assert last == 0


def test_odd_parities_are_refused() -> None:
    """The theorem is about even k."""
    with pytest.raises(UserError) as caught:
        OverSparse(5, 3)
    assert str(caught.value) == "OverSparse: k=3. Give an even number of at least 2."


def test_one_step_leaves_the_population_gradient() -> None:
    """After the step each weight is u η E[∂h χ_S] up to the sample's error; nothing else moved.

    Each entry of the sample's gradient is a mean of m values in [−1, 1]: off by more than 5.5/√m
    with probability below 1e-6 [Hoeffding], for 16 · 12 entries.
    """
    n, k, s, m = 12, 2, 9, 20_000
    spec = theorem_4(n, k, s, m=m, width=16, steps=1)
    began = [weight[0] for weight in initial_weights([spec])]
    last = list(ended(spec).values())
    support = spec.task.supports([spec.seed])[0].tolist()  # type: ignore[attr-defined] # a parity
    rate = 1 / (2 * k * abs(float(over_sparse_constants(k, s)[0])))

    for start, end, sign in zip(began[0], last[0], began[2][0], strict=True):
        ones = np.flatnonzero(start).tolist()
        mean = np.array(
            [float(g) for g in population_gradient(n, support, ones, regime="over-sparse")]
        )
        assert np.abs(end - sign * rate * mean).max() <= rate * 5.5 / np.sqrt(m)
    for before, after in zip(began[1:], last[1:], strict=True):
        assert np.array_equal(before, after)


def test_the_rates_make_relevant_weights_one_over_2k() -> None:
    """For a good neuron the weights on S become ±1/2k: what the biases are made for."""
    for k, s in ((2, 9), (4, 17)):
        first = theorem_4(30, k, s, m=10, width=4, steps=200).rates()[0]
        rate = first.rate[0]
        assert rate * abs(float(over_sparse_constants(k, s)[0])) == pytest.approx(1 / (2 * k))
        assert rate * first.decay[0] == pytest.approx(1)  # where the weights began is erased
