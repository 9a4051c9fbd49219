"""How much of the spread of a time the initialisation explains: a random-effects model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError

Floats = NDArray[np.float64]
FEWEST = 5  # initialisations: fewer say too little about how initialisations differ
NODES = 21  # of the quadrature: errors of 1e-6, or 6e-4 at ρ = 0.95 for a group never solved
EDGE = 8.0  # of logit ρ: a share below 3e-4 counts as 0, one above 1 − 3e-4 as 1
ROOT_2PI = math.log(2 * math.pi) / 2


def anova_icc(groups: Sequence[Floats], *, coverage: float = 0.95) -> tuple[float, float, float]:
    r"""Give the intraclass correlation of fully measured, normal values.

    Parameters
    ----------
    groups : sequence of array
        The values of every group; at least two groups, and two values in one of them.
    coverage : float
        Coverage of the two-sided interval.

    Returns
    -------
    estimate, low, high : float
        With the groups' means and the values within groups, :math:`F = \tilde n S^2_{means} / MSW`,
        where :math:`\tilde n` is the harmonic mean of the groups' sizes; :math:`ρ = (F - 1) / (F -
        1 + \tilde n)`, and the interval puts :math:`F / F_{1 ∓ α/2}` in the place of F. Exact for
        groups of one size [Searle 1971], close to it for others [Thomas & Hultquist 1978].
        The estimate is negative where groups differ less than chance would have them; the ends
        are cut at 0.
    """
    from scipy.special import fdtri  # slow to import

    sizes = np.array([len(group) for group in groups], np.float64)
    freedom = sizes.sum() - len(sizes)
    if len(sizes) < 2 or freedom < 1:
        raise UserError(
            f"anova_icc: groups of {[len(group) for group in groups]} values. Give two groups or "
            "more, and two values in one of them."
        )
    within = sum(float(((group - group.mean()) ** 2).sum()) for group in groups) / freedom
    size = len(sizes) / (1 / sizes).sum()
    between = size * float(np.var([group.mean() for group in groups], ddof=1))
    ratio = between / within if within > 0 else math.inf
    tails = fdtri(len(sizes) - 1, freedom, [0.5 + coverage / 2, 0.5 - coverage / 2])
    estimate, low, high = (_share(ratio / tail, size) for tail in (1.0, *tails))
    return estimate, max(low, 0.0), max(high, 0.0)


def _share(ratio: float, size: float) -> float:
    return 1.0 if math.isinf(ratio) else (ratio - 1) / (ratio - 1 + size)


@dataclass(frozen=True)
class LogTimes:
    """Logarithms of times, each known to lie between two values.

    Attributes
    ----------
    low, high : array, shape (group, run)
        A run first found solved at a look was solved after the look before it; one that is not
        solved has `high` infinite. Where a group has fewer runs than others, −∞ and ∞.
    """

    low: Floats
    high: Floats

    @cached_property
    def runs(self) -> NDArray[np.int64]:
        """Runs of each group."""
        made: NDArray[np.int64] = (np.isfinite(self.low) | np.isfinite(self.high)).sum(axis=1)
        return made

    @cached_property
    def unsolved(self) -> int:
        """Runs whose time is only known to lie beyond their budget."""
        return int((np.isfinite(self.low) & np.isinf(self.high)).sum())

    @cached_property
    def middle(self) -> Floats:
        """A rough value for each: the middle, or the end that is known; NaN where no run was."""
        ends = np.stack([self.low, self.high])
        known = np.isfinite(ends)
        none = ~known.any(axis=0)
        total = np.where(known, ends, 0.0).sum(axis=0)
        rough: Floats = np.where(none, np.nan, total / np.maximum(known.sum(axis=0), 1))
        return rough


@dataclass(frozen=True)
class Fit:
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
        """Give each group's log-likelihood, its gradient and its information on μ.

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
        log_p, slope, curvature, in_within = _interval_terms(low, high, eta, within)
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
        """Give the place and the width of each group's posterior of a / between."""
        rough = self.times.middle - mean
        pull = between / (between**2 + within**2 / self.times.runs)
        z = pull * np.nanmean(rough, axis=1)
        for step in range(30):  # Newton's method, on a concave function
            eta = (mean + between * z)[:, None]
            _, slope, bent, _ = _interval_terms(self.times.low, self.times.high, eta, within)
            curvature = 1 + between**2 * bent.sum(axis=1)
            move = (between * slope.sum(axis=1) - z) / curvature
            move = np.clip(move, -2.0, 2.0)
            if step and np.all(np.abs(move) * np.sqrt(curvature) < 0.01):
                break  # a centre is wanted, not the mode itself
            z = z + move
        return z, 1 / np.sqrt(curvature)

    def restricted(self, spread: float, logit: float, start: float) -> tuple[float, float]:
        """Give the restricted log-likelihood at a spread and a share, and the best mean there."""
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
        """The largest logit ρ: a standard deviation within groups of a third of a look is none."""
        look = self.times.high - self.times.low
        known = look[np.isfinite(look)]
        least = float(np.median(known)) / 3 if known.size else 0.0
        total, _ = self._rough
        return min(EDGE, math.log(max(total / max(least**2, 1e-12) - 1, 2.0)))

    @cached_property
    def fit(self) -> Fit:
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
        return Fit(mean, math.exp(found.x[0]), 1 / (1 + math.exp(-found.x[1])), height)

    def deviance(self, share: float) -> float:
        """Give twice the restricted log-likelihood that is lost by holding the share there."""
        return self._lost_at(math.log(share / (1 - share)))

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
        """Give log(1/ñ + σ_a²/σ_e²) of all groups, and without each; none where ρ is at an end."""
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
    """Give the nodes x of Gauss–Hermite quadrature, and their log weights without exp(−x²)."""
    node, weight = np.polynomial.hermite.hermgauss(NODES)
    return node, np.log(weight) + node**2


def _logit(share: float) -> float:
    return math.log(share / (1 - share))


def _interval_terms(
    low: Floats, high: Floats, eta: Floats, within: float
) -> tuple[Floats, Floats, Floats, Floats]:
    r"""Give log P(low < η + e ≤ high), slope and curvature in η, and the slope in log σ_e.

    With l, u the ends in units of σ_e, φ the normal density, P the probability, :math:`A = (φ(u) -
    φ(l)) / P` and :math:`B = (u φ(u) - l φ(l)) / P`: the slope in η is :math:`-A / σ_e`, minus the
    second derivative :math:`(B + A^2) / σ_e^2`, and the slope in log σ_e is −B.
    """
    from scipy.special import log_ndtr  # slow to import

    lower, upper = (low - eta) / within, (high - eta) / within
    swap = lower > 0  # the far tail on the left, where the logarithm of Φ is exact
    near = log_ndtr(np.where(swap, -lower, upper))
    far = log_ndtr(np.where(swap, -upper, lower))
    log_p = near + np.log(-np.expm1(np.minimum(far - near, -1e-300)))
    at_low, at_high = (np.exp(-(end**2) / 2 - ROOT_2PI - log_p) for end in (lower, upper))
    a = at_high - at_low
    b = np.where(np.isinf(upper), 0, upper) * at_high - np.where(np.isinf(lower), 0, lower) * at_low
    curvature = np.clip(b + a**2, 0.0, 1.0)  # one minus a variance that truncation made smaller
    return log_p, -a / within, curvature / within**2, -b


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

    fit: Fit
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
