"""How much of the spread of a time the initialisation explains: a random-effects model."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from petridish.statistics.log_times import LogTimes, interval_terms

Floats = NDArray[np.float64]
FEWEST = 5  # initialisations: fewer say too little about how initialisations differ
NODES = 21  # of the quadrature: errors of 1e-6, or 6e-4 at ρ = 0.95 for a group never solved
EDGE = 8.0  # of logit ρ: a share below 3e-4 counts as 0, one above 1 − 3e-4 as 1


@dataclass(frozen=True)
class RandomEffectsFit:
    """A random-effects model fitted to log times.

    Attributes
    ----------
    mean, spread : float
        Mean and standard deviation of log t over initialisations and SGD noise.
    share : float
        The part of the variance that lies between initialisations, ρ.
    height : float
        The restricted log-likelihood there.
    """

    mean: float
    spread: float
    share: float
    height: float

    @property
    def between(self) -> float:
        """Standard deviation of log t between initialisations."""
        return self.spread * math.sqrt(self.share)

    @property
    def within(self) -> float:
        """Standard deviation of log t for one initialisation."""
        return self.spread * math.sqrt(1 - self.share)


@dataclass(frozen=True)
class RandomEffects:
    r"""The model log t_ij = μ + a_i + e_ij, normal, of which only intervals are seen.

    The likelihood of group i is the integral of :math:`\prod_j P(low_{ij} < μ + a + e ≤ high_{ij})`
    over :math:`a ∼ N(0, σ_a^2)`, by Gauss–Hermite quadrature around its mode. The share is
    :math:`ρ = σ_a^2 / (σ_a^2 + σ_e^2)`. μ is not kept at its best value but integrated
    out by Laplace's method [Cox & Reid 1987]: without it few groups would seem to differ less than
    they do; where every value is known, this is restricted likelihood (REML), and its
    estimate for groups of one size the one of the analysis of variance.

    Attributes
    ----------
    times : LogTimes
        What is known, by group.
    """

    times: LogTimes

    def contributions(self, mean: float, spread: float, logit: float) -> tuple[Floats, ...]:
        """Return each group's log-likelihood, its gradient and its information on μ.

        The gradient, shape (group, 3), is in (μ, log spread, logit ρ): the mean over the group's
        posterior of the gradient that would be seen if a were known [Louis 1982].
        """
        share = 1 / (1 + math.exp(-logit))
        between, within = spread * math.sqrt(share), spread * math.sqrt(1 - share)
        low, high = self.times.low[..., None], self.times.high[..., None]  # (group, run, 1)
        centre, width = self._modes(mean, between, within)
        node, weight = _nodes()
        z = centre[:, None] + math.sqrt(2) * width[:, None] * node  # (group, node), a = between · z
        eta = mean + between * z[:, None, :]  # (group, 1, node)
        log_p, slope, curvature, in_within = interval_terms(low, high, eta, within)
        terms = log_p.sum(axis=1) - z**2 / 2 + weight  # (group, node)
        most = terms.max(axis=1)
        posterior = np.exp(terms - most[:, None])
        total = posterior.sum(axis=1)
        posterior /= total[:, None]
        in_mean = slope.sum(axis=1)  # (group, node)
        in_within = in_within.sum(axis=1)
        seen = np.stack(
            [
                in_mean,
                in_mean * between * z + in_within,
                (in_mean * between * z * (1 - share) - in_within * share) / 2,
            ],
            axis=-1,
        )  # (group, node, parameter)
        gradient = np.einsum("ik,ikp->ip", posterior, seen)
        curved = curvature.sum(axis=1) - (in_mean - gradient[:, :1]) ** 2  # Louis's identity
        known = 1 / (between**2 + within**2 / self.times.runs)  # the most, if times were exact
        information = np.clip((posterior * curved).sum(axis=1), 1e-9 * known, known)
        return most + np.log(total * width) - math.log(math.pi) / 2, gradient, information

    def _modes(self, mean: float, between: float, within: float) -> tuple[Floats, Floats]:
        """Return the place and the width of each group's posterior of a / between."""
        rough = self.times.middle - mean
        pull = between / (between**2 + within**2 / self.times.runs)
        z = pull * np.nanmean(rough, axis=1)
        for step in range(30):  # Newton's method, on a concave function
            eta = (mean + between * z)[:, None]
            _, slope, bent, _ = interval_terms(self.times.low, self.times.high, eta, within)
            curvature = 1 + between**2 * bent.sum(axis=1)
            move = (between * slope.sum(axis=1) - z) / curvature
            move = np.clip(move, -2.0, 2.0)
            if step and np.all(np.abs(move) * np.sqrt(curvature) < 0.01):
                break  # a centre is wanted, not the mode itself
            z = z + move
        return z, 1 / np.sqrt(curvature)

    def restricted(self, spread: float, logit: float, start: float) -> tuple[float, float]:
        """Return the restricted log-likelihood at a spread and a share, and the best mean there."""
        mean = start
        for _ in range(10):
            heights, gradient, known = self.contributions(mean, spread, logit)
            information = float(known.sum())
            move = float(gradient[:, 0].sum()) / information
            if abs(move) * math.sqrt(information) < 1e-4:
                break
            mean += min(max(move, -spread), spread)
        return float(heights.sum()) - math.log(information) / 2, mean

    @cached_property
    def _rough(self) -> tuple[float, float]:
        """Total variance and variance within groups, as if every time were known."""
        rough = self.times.middle
        within = float(np.nanmean((rough - np.nanmean(rough, axis=1)[:, None]) ** 2))
        return max(float(np.nanvar(rough)), 1e-6), within

    @cached_property
    def _most(self) -> float:
        """The largest logit ρ: less than a third of the time between evaluations is no spread."""
        between = self.times.high - self.times.low
        known = between[np.isfinite(between)]
        least = float(np.median(known)) / 3 if known.size else 0.0
        total, _ = self._rough
        return min(EDGE, math.log(max(total / max(least**2, 1e-12) - 1, 2.0)))

    @cached_property
    def fit(self) -> RandomEffectsFit:
        """The model that makes the restricted likelihood largest."""
        from scipy.optimize import minimize

        total, within = self._rough
        start = _logit(min(max(1 - within / total, 0.05), 0.95))
        mean = float(np.nanmean(self.times.middle))
        scale = math.log(total) / 2

        def lost(at: Floats) -> float:
            nonlocal mean  # the last best mean is a good start for the next
            height, mean = self.restricted(math.exp(at[0]), at[1], mean)
            return -height

        found = minimize(
            lost,
            [scale, min(start, self._most)],
            method="L-BFGS-B",
            bounds=[(scale - 3, scale + 3), (-EDGE, self._most)],
            options={"eps": 1e-4, "ftol": 1e-9, "gtol": 1e-3},
        )
        height, mean = self.restricted(math.exp(found.x[0]), found.x[1], mean)
        return RandomEffectsFit(mean, math.exp(found.x[0]), 1 / (1 + math.exp(-found.x[1])), height)

    def _lost_at(self, logit: float) -> float:
        from scipy.optimize import minimize_scalar

        fit = self.fit
        mean, here = fit.mean, math.log(fit.spread)

        def lost(log_spread: float) -> float:
            nonlocal mean
            near = min(max(log_spread, here - 6), here + 6)  # no further where nothing is known
            height, mean = self.restricted(math.exp(near), logit, mean)
            return abs(log_spread - near) - height

        found = minimize_scalar(lost, bracket=(here, here + 0.1), options={"xtol": 1e-3})
        return max(0.0, 2 * (fit.height + float(found.fun)))

    def likelihood_interval(self, coverage: float) -> tuple[float, float]:
        """Bound the share by the shares that lose little likelihood.

        Those with a deviance below the square of Student's quantile with one degree of freedom
        less than there are groups: χ²'s for many groups, and wider for few.
        """
        from scipy.optimize import brentq
        from scipy.special import stdtrit  # slow to import

        most = float(stdtrit(len(self.times.runs) - 1, 0.5 + coverage / 2)) ** 2
        best = _logit(self.fit.share)
        ends: list[float] = []
        for edge in (-EDGE, self._most):
            if abs(best - edge) < 0.05 or self._lost_at(edge) <= most:
                ends.append(float(len(ends)))  # 0 below, 1 above
                continue
            end = brentq(lambda logit: self._lost_at(logit) - most, best, edge, xtol=0.01)
            ends.append(1 / (1 + math.exp(-end)))
        return ends[0], ends[1]

    def jackknife_interval(self, coverage: float) -> tuple[float, float]:
        r"""Bound the share without leaning on normality, by leaving out one group at a time.

        Student's interval for :math:`\log(1/\tilde n + σ_a^2/σ_e^2)`, the logarithm of F up to a
        constant, as the jackknife gives it [Arvesen & Schmitz 1970]. The two variances without a
        group follow from its score to first order, which on their scale is exact for groups
        of one size, fully measured. Without width where the share lies at an end.
        """
        from scipy.special import stdtrit  # slow to import

        groups, size = len(self.times.runs), self._size
        here, without = self._left_out()
        if not len(without):
            return self.fit.share, self.fit.share
        error = math.sqrt((groups - 1) ** 2 / groups * float(np.var(without, ddof=1)))
        half = float(stdtrit(groups - 1, 0.5 + coverage / 2)) * error
        ratios = [
            max(math.exp(min(end, 30.0)) - 1 / size, 0.0) for end in (here - half, here + half)
        ]
        return ratios[0] / (1 + ratios[0]), ratios[1] / (1 + ratios[1])

    @property
    def _size(self) -> float:
        """Harmonic mean of the groups' sizes."""
        return len(self.times.runs) / float((1 / self.times.runs).sum())

    def _left_out(self) -> tuple[float, Floats]:
        """Return log(1/ñ + σ_a²/σ_e²) of all groups, and without each; none if ρ is at an end."""
        fit, groups = self.fit, len(self.times.runs)
        logit = _logit(fit.share)
        if not 0.05 - EDGE < logit < self._most - 0.05:
            return math.nan, np.empty(0)
        at = np.array([fit.mean, math.log(fit.spread), logit])
        step = 1e-3
        curvature = [
            (self._scores(at + d) - self._scores(at - d)).sum(axis=0) / (2 * step)
            for d in np.eye(3) * step
        ]
        moves = np.linalg.solve(np.array(curvature), self._scores(at).T)
        moves *= groups**2 / ((groups - 1) * (groups - 2))  # a group takes its part of the mean too
        between = 1 + 2 * moves[1] + (1 - fit.share) * moves[2]  # σ_a², without over with the group
        within = 1 + 2 * moves[1] - fit.share * moves[2]
        ratio = np.maximum(between, 0.0) / np.maximum(within, 1e-3) * math.exp(logit)
        return math.log(1 / self._size + math.exp(logit)), np.log(1 / self._size + ratio)

    def _scores(self, at: Floats) -> Floats:
        return self.contributions(float(at[0]), math.exp(at[1]), float(at[2]))[1]


@cache
def _nodes() -> tuple[Floats, Floats]:
    """Return the nodes x of Gauss–Hermite quadrature, and their log weights without exp(−x²)."""
    node, weight = np.polynomial.hermite.hermgauss(NODES)
    return node, np.log(weight) + node**2


def _logit(share: float) -> float:
    return math.log(share / (1 - share))


@dataclass(frozen=True)
class Explained:
    """The share of the variance of log t that lies between groups, with what it rests on.

    Attributes
    ----------
    fit : Fit
        The model.
    likelihood, jackknife : tuple of float
        Its interval by the normal model, and without normality.
    """

    fit: RandomEffectsFit
    likelihood: tuple[float, float]
    jackknife: tuple[float, float]

    @property
    def low(self) -> float:
        """The lower of the two lower ends."""
        return min(self.likelihood[0], self.jackknife[0])

    @property
    def high(self) -> float:
        """The higher of the two upper ends."""
        return max(self.likelihood[1], self.jackknife[1])


def explained_share(times: LogTimes, *, coverage: float = 0.95) -> Explained:
    """Estimate the share of the variance of log t between groups, unsolved runs counted as such.

    The interval is the wider, to each side, of the likelihood's, which is right for normal
    log times, and the jackknife's over groups, which asks for many groups but for no normality.
    """
    model = RandomEffects(times)
    return Explained(
        model.fit, model.likelihood_interval(coverage), model.jackknife_interval(coverage)
    )
