"""Deciding «solved»: the whole held-out sample decides, whatever part of it is looked at first."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from petridish.tasks import SparseParity
from petridish.training import Data, RunSpec
from petridish.training.data import test_examples as held_out
from petridish.training.screen import FIRST, MISS, allowed_errors, stages


@given(n_test=st.integers(1, 20_000), target=st.sampled_from([0.0, 0.01, 0.1, 0.3, 0.5, 1.0]))
def test_stages_cover_the_sample_and_the_last_decides(n_test: int, target: float) -> None:
    """They follow each other without a gap, and the last allows what the target does."""
    found = stages(n_test, allowed_errors(n_test, target))

    assert found[0].start == 0
    assert found[-1].stop == n_test
    assert all(one.stop == other.start for one, other in pairwise(found))
    assert found[-1].limit == allowed_errors(n_test, target)


@pytest.mark.parametrize("target", [0.01, 0.1, 0.3])
def test_limits_are_the_hypergeometric_ones(target: float) -> None:
    """The smallest count that a run at the target exceeds with probability below MISS."""
    from scipy.stats import hypergeom

    n_test = 10_000
    allowed = allowed_errors(n_test, target)
    for stage in stages(n_test, allowed_errors(n_test, target))[:-1]:
        exceeded = hypergeom(n_test, allowed, stage.stop)
        assert exceeded.sf(stage.limit) < MISS
        assert stage.limit == 0 or exceeded.sf(stage.limit - 1) >= MISS


@given(errors=st.integers(0, 3000), seed=st.integers(0, 10_000))
def test_the_decision_is_that_of_the_whole_sample(errors: int, seed: int) -> None:
    """Whatever the number of errors and wherever they lie, stage by stage or all at once."""
    n_test, target = 3000, 0.1
    wrong = np.zeros(n_test, bool)
    wrong[np.random.default_rng(seed).permutation(n_test)[:errors]] = True
    passed = all(
        wrong[: stage.stop].sum() <= stage.limit
        for stage in stages(n_test, allowed_errors(n_test, target))
    )

    assert passed == (errors <= 300)


def test_allowed_errors_are_whole() -> None:
    """A target of 0.3 allows 3 errors of 10, whatever the float says."""
    assert [allowed_errors(10, 0.3), allowed_errors(8192, 0.0), allowed_errors(7, 1.0)] == [3, 0, 7]
    assert stages(100, 10)[0].stop == 100 < FIRST


def test_the_held_out_sample_is_its_own_stream() -> None:
    """It is drawn from the stream "test", with the training sample's support."""
    spec = RunSpec(task=SparseParity(20, 3), data=Data(n_test=50))
    ours = held_out([spec, replace(spec, seed=1)])
    theirs = spec.task.draw([0, 1], "test", 0, 50)

    assert np.array_equal(ours.x, theirs.x)
    assert np.array_equal(ours.labels, theirs.labels)
    assert not np.array_equal(ours.x, spec.task.draw([0, 1], "train", 0, 50).x)
