"""Classical learners of a sparse AND on the same samples, and the sample that each needs.

They are simulated, from fixed seeds, on the task's own draws without rejection.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from petridish.tasks import BiasedAnd
from petridish.theory.variables.generalisation import least_sample

SAMPLES: tuple[int, ...] = (
    *(8, 9, 10, 11, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 33, 36, 40, 44, 48, 54, 60, 66, 72),
    *(80, 88, 96, 106, 116, 128, 140, 154, 170, 186, 204, 224),
)
"""Sizes that are tried: steps of about a tenth."""
Floats = NDArray[np.float64]
Learner = Callable[[BiasedAnd, int, int], bool]


def search_finds(task: BiasedAnd, m: int, seed: int) -> bool:
    """Return whether one AND alone explains a sample, so that exhaustive search finds it.

    This is also what the rejection of samples asks for. LASSO on monomials of 0/1 bits is no
    different: the true AND is a monomial with the correlation 1, so that it enters first but for
    ties, which are other ANDs with all labels.
    """
    return not task.several_explain(task.draw([seed], "train", 0, m))[0]


def lasso_finds(task: BiasedAnd, m: int, seed: int) -> bool:
    """Return whether the first s bits that enter the LASSO's path are the relevant ones."""
    from sklearn.linear_model import lars_path

    sample = task.draw([seed], "train", 0, m)
    x, y = sample.x[0].astype(np.float64), sample.labels[0].astype(np.float64)
    x, y = x - x.mean(axis=0), y - y.mean()
    norms = np.linalg.norm(x, axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of collinear bits, of which one is left out
        _, entered, _ = lars_path(
            x / np.where(norms > 0, norms, 1), y, method="lasso", max_iter=task.s + 2
        )
    support = set(task.supports([seed])[0].tolist())
    return set(map(int, list(entered)[: task.s])) == support


LEARNERS: Mapping[str, Learner] = {
    "exhaustive search": search_finds,
    "LASSO on bits": lasso_finds,
}


@lru_cache(maxsize=256)
def sample_needed(learner: str, n: int, s: int = 3, *, trials: int = 60) -> float:
    """Return the least m of `SAMPLES` with which 80 % of the trials succeed; NaN if none does.

    Success is taken to rise along m, and the sizes are bisected.
    """
    task = BiasedAnd(n, s)
    succeeds = LEARNERS[learner]

    def enough(m: int) -> bool:
        return sum(succeeds(task, m, seed) for seed in range(trials)) >= 0.8 * trials

    low, high = -1, len(SAMPLES)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(SAMPLES[middle]) else (middle, high)
    return float(SAMPLES[high]) if high < len(SAMPLES) else float("nan")


def sizes_beside(lengths: tuple[int, ...], s: int = 3) -> dict[str, Floats]:
    """Return log₂ C(T, s) and the samples that the classical learners need, by name."""
    found = {"log₂ C(T, 3), the least of any learner": [least_sample(n, s) for n in lengths]}
    for learner in LEARNERS:
        found[learner] = [sample_needed(learner, n, s) for n in lengths]
    return {name: np.array(values) for name, values in found.items()}
