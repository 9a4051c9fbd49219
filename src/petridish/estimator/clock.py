"""Early stopping: one number of steps for all members, by held-out loss.

A network that goes on after it has learned what it can becomes sure of its mistakes: its held-out
cross entropy grows while its held-out error still falls. The clock therefore removes the scale
(temperature) of the outputs before it compares losses.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from petridish.training.members import MemberLoss

Floats = NDArray[np.float64]

FIRST, RATIO = 20, 1.25  # steps to the first evaluation, and from one to the next
LEAST_STEPS = 2000  # of the budget: small tables without noise profit from going on


def usual_steps(n: float) -> int:
    """Return the number of steps that is best for most tables of n rows: 12 √n."""
    return math.ceil(12 * math.sqrt(n))


def most_steps(n: float) -> int:
    """Return the steps after which a clock is no longer asked: 2000, or 20 √n if that is more."""
    return max(LEAST_STEPS, math.ceil(20 * math.sqrt(n)))


def evaluation_steps(most: int) -> list[int]:
    """Return the steps of evaluations, each a quarter more than the one before, up to `most`.

    >>> evaluation_steps(40)
    [20, 25, 31, 39, 40]
    """
    count = max(0, math.ceil(math.log(most / FIRST, RATIO)))
    before = (round(FIRST * RATIO**place) for place in range(count))
    return [*(step for step in before if step < most), most]


def scaled_loss(loss: MemberLoss, outputs: Floats, target: Floats, weight: Floats) -> float:
    r"""Compute the mean loss of a row after the best single scale for all outputs.

    Parameters
    ----------
    loss : "logistic", "cross_entropy" or "square"
        What the members make small.
    outputs, target : array, shape (row, output)
        Of the members, and what is true.
    weight : array, shape (row,)
        Of the rows.

    Returns
    -------
    loss : float
        :math:`\min_{0.02 < a < 7} \ell(a z, y)` for outputs z; for the square loss, which
        has no such scale, :math:`\frac12 \log` of the mean squared error: the loss of a row if
        noise is normal, of the variance that fits best.
    """
    from scipy.optimize import minimize_scalar
    from scipy.special import logsumexp

    share = weight / weight.sum()
    if loss == "square":
        mean = share @ np.square(outputs - target).mean(axis=1)
        return 0.5 * math.log(max(mean, np.finfo(float).tiny))

    def mean_at(log_scale: float) -> float:
        scaled = math.exp(log_scale) * outputs
        if loss == "logistic":
            each = (np.logaddexp(0, scaled) - target * scaled).sum(axis=1)
        else:
            each = logsumexp(scaled, axis=1) - (target * scaled).sum(axis=1)
        return float(share @ each)

    found = minimize_scalar(mean_at, bounds=(-4, 2), method="bounded", options={"xatol": 1e-3})
    return float(found.fun)


class Clock:
    r"""Find the evaluation with the lowest held-out loss.

    The one with the least of :math:`L_t + \log^2(t / t_0) / n`: :math:`L_t` is the `scaled_loss`
    after t steps, averaged with its neighbours (¼, ½, ¼); the second term is a prior for
    :math:`\log t` around the usual :math:`t_0` with variance ½, which counts little when the n
    held-out rows are many.

    Parameters
    ----------
    usual : int
        Steps that most tables like: :math:`t_0`.
    n : float
        Held-out rows.
    patience : float
        The multiple of the best step at which to end.
    """

    def __init__(self, usual: int, n: float, *, patience: float = 2.5) -> None:
        self.usual, self.n, self.patience = usual, n, patience
        self.steps: list[int] = []
        self.losses: list[float] = []

    def note(self, step: int, loss: float) -> None:
        """Note the held-out loss after `step` steps; one that is not finite is worse than any."""
        self.steps.append(step)
        self.losses.append(loss if math.isfinite(loss) else math.inf)

    def best(self) -> int:
        """Return the best step so far."""
        return self.steps[int(np.argmin(self._judged()))]

    def over(self) -> bool:
        """Return whether the best step lies so far back that none later will be better."""
        return self.steps[-1] >= max(self.usual, self.patience * self.best())

    def wanted(self) -> set[int]:
        """Return the steps that may yet be called best: one of the past, and the last.

        The smoothed loss of the last evaluation changes once more, with the next.
        """
        past = self._judged()[:-1]
        return {self.steps[-1], *([self.steps[int(np.argmin(past))]] if len(past) else [])}

    def _judged(self) -> Floats:
        padded = np.pad(self.losses, 1, mode="edge")
        smooth = (padded[:-2] + 2 * padded[1:-1] + padded[2:]) / 4
        away = np.log(np.array(self.steps) / self.usual)
        judged: Floats = smooth + np.square(away) / self.n
        return judged


def deal_folds(order: NDArray[Any], n_folds: int, seed: int) -> NDArray[np.intp]:
    """Deal rows into folds of equal size, each with the same share of every class or range of y.

    Parameters
    ----------
    order : array, shape (row,)
        Class or value of each row.
    n_folds, seed : int
        Number of folds, and what decides between equal rows.
    """
    ties = np.random.default_rng(seed).permutation(len(order))
    fold = np.empty(len(order), np.intp)
    fold[np.lexsort((ties, order))] = np.arange(len(order)) % n_folds
    return fold
