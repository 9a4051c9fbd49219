"""Whole runs of attention: the second drop comes at the same steps by compiled code and PyTorch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import ks_2samp, wilcoxon

from petridish.models import AttentionOnly
from petridish.tasks import MarkovChains
from petridish.training import (
    KL,
    AdamW,
    CrossEntropy,
    Data,
    Evaluation,
    RunSpec,
    Silent,
    StrategyLoss,
    Training,
    load_engine,
)

STEPS = 300
ERROR_RATE = 1e-3  # of each of the two tests, on engines that train alike


def second_drops(engine: str, seeds: int) -> NDArray[np.float64]:
    """Return the first evaluation at which each run is past half-way from unigrams to bigrams.

    That is in KL from the truth at the last token; a run that is never past counts as one step
    after the last.
    """
    spec = RunSpec(
        task=MarkovChains(2, 24),
        data=Data(n_test=200),
        model=AttentionOnly(8),
        training=Training(
            loss=CrossEntropy(),
            optimiser=AdamW(),
            learning_rate=1e-2,
            weight_decay=0.0,
            batch_size=32,
            steps=STEPS,
            target_error=None,
        ),
        evaluation=Evaluation(
            every=10,
            curves=True,
            fitted_error=None,
            metrics=(KL("truth"),),
            instruments=(StrategyLoss("unigram"), StrategyLoss("bigram")),
        ),
    )
    found = []
    specs = [replace(spec, seed=seed) for seed in range(seeds)]
    records = {r.spec.seed: r for r in load_engine(engine).run(specs, Silent())}
    for seed in range(seeds):
        curves = records[seed].curves
        kl, middle = np.array(curves.values["test_kl_truth"]), 0.0
        for strategy in ("unigram", "bigram"):
            middle += curves.values[f"test_kl_of_{strategy}"][0] / 2
        past = np.flatnonzero(kl < middle)
        found.append(curves.step[past[0]] if len(past) else STEPS + 1)
    return np.array(found, np.float64)


@pytest.mark.long  # 100 runs by PyTorch take many minutes
def test_the_second_drop_comes_at_the_same_steps() -> None:
    """On the same 100 specs, by two tests at an error rate of 0.001 each.

    Distributions are equal (Kolmogorov–Smirnov), and pairs are not shifted (Wilcoxon).
    """
    ours, theirs = second_drops("native", 100), second_drops("torch", 100)
    assert (theirs <= STEPS).mean() > 0.9, "the drop must be there to be compared"
    assert ks_2samp(ours, theirs).pvalue > ERROR_RATE
    if (ours != theirs).any():
        assert wilcoxon(ours, theirs).pvalue > ERROR_RATE


def test_a_few_second_drops() -> None:
    """The same four runs: each drops within 50 steps of its twin."""
    ours, theirs = second_drops("native", 4), second_drops("torch", 4)
    np.testing.assert_allclose(ours, theirs, atol=50)
