"""Whole runs of a block with [CLS]: success near the threshold by compiled code and by PyTorch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binomtest, ks_2samp

from petridish.models import ClsTransformer
from petridish.tasks import BiasedAnd
from petridish.training import (
    AdamW,
    Below,
    CrossEntropy,
    Data,
    Error,
    Evaluation,
    Outcome,
    RunRecord,
    RunSpec,
    Silent,
    Training,
    load_engine,
)

STEPS = 150
ERROR_RATE = 1e-3  # of each of the two tests, on engines that train alike


def records(engine: str, m: int, seeds: int) -> list[RunRecord]:
    """Return runs on samples of m, with dropout, each of its own seed."""
    spec = RunSpec(
        task=BiasedAnd(8),
        data=Data(m=m, n_test=500),
        model=ClsTransformer(16, 4),
        training=Training(
            loss=CrossEntropy(),
            optimiser=AdamW(),
            learning_rate=3e-3,
            weight_decay=1e-4,
            batch_size=None,
            steps=STEPS,
            stop=Below(Error(), 0.01, strict=True),
            clip=1.0,
        ),
        evaluation=Evaluation(every=10, fitted_error=None),
    )
    specs = [replace(spec, seed=seed) for seed in range(seeds)]
    found = {r.spec.seed: r for r in load_engine(engine).run(specs, Silent())}
    return [found[seed] for seed in range(seeds)]


@pytest.mark.long  # 100 runs by PyTorch take minutes
def test_success_near_the_threshold_is_the_same() -> None:
    """On the same 100 specs, by two tests at an error rate of 0.001 each.

    Where one engine alone succeeds, it is either as often (an exact test of signs), and the steps
    of the runs have one distribution (Kolmogorov–Smirnov).
    """
    ours, theirs = records("native", 20, 100), records("torch", 20, 100)
    won, lost = (
        sum(a.outcome is Outcome.SOLVED and b.outcome is not Outcome.SOLVED for a, b in pairs)
        for pairs in (zip(ours, theirs, strict=True), zip(theirs, ours, strict=True))
    )
    solved = np.mean([record.outcome is Outcome.SOLVED for record in theirs])
    assert 0.1 < solved < 0.9, "near the threshold success must be open"
    if won + lost:
        assert binomtest(won, won + lost).pvalue > ERROR_RATE
    assert ks_2samp([r.steps for r in ours], [r.steps for r in theirs]).pvalue > ERROR_RATE


def test_a_few_successes() -> None:
    """The same three runs, well above the threshold: each is solved within 30 steps of its twin."""
    ours, theirs = records("native", 90, 3), records("torch", 90, 3)
    assert all(record.outcome is Outcome.SOLVED for record in theirs)
    assert all(record.outcome is Outcome.SOLVED for record in ours)
    np.testing.assert_allclose([r.steps for r in ours], [r.steps for r in theirs], atol=30)
