r"""Maximum normalised margins of one-hidden-layer networks without biases [TH Ch. 7].

The margin of a network θ is its least :math:`f(x)[y] - \max_{y' \ne y} f(x)[y']` over all inputs,
divided by :math:`\|\theta\|_{2,\nu}^\nu = \sum_i \|\omega_i\|_2^\nu`, with ν the degree of
homogeneity of a neuron :math:`\omega_i`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError, check_whole
from petridish.groups import Group, Irrep, real_irreps
from petridish.groups.irreps import on_classes
from petridish.groups.partitions import symmetric_characters

Floats = NDArray[np.float64]


def modular_margin(p: int) -> float:
    r"""Return the maximum margin of addition modulo an odd p.

    :math:`\gamma^* = \sqrt{2/27} / (p^{1/2} (p - 1))` for squares and ν = 3 [TH Theorem 7.7].
    """
    check_whole("modular_margin", 3, p=p)
    if p % 2 == 0:
        raise UserError(f"modular_margin: p={p} is even. Give an odd one, or ask group_margin.")
    return math.sqrt(2 / 27) / (math.sqrt(p) * (p - 1))


def parity_margin(k: int) -> float:
    r"""Return the maximum margin of a parity of k bits.

    :math:`\gamma^* = k! \sqrt{2 (k+1)^{-(k+1)}}` for k-th powers and ν = k + 1, whatever the number
    of bits beside them [TH Theorem 7.8].
    """
    check_whole("parity_margin", 1, k=k)
    return math.factorial(k) * math.sqrt(2 * (k + 1) ** -(k + 1))


@dataclass(frozen=True, eq=False)
class MarginCertificate:
    r"""The maximum margin of a group's composition, and what attains and proves it.

    Attributes
    ----------
    margin : float
        γ* for squares and ν = 3.
    shares : array, one per representation
        The part of :math:`\|\theta\|_{2,3}^3` in each representation's neurons, in a network that
        attains it; 0 for the trivial one.
    weights : array, one per conjugacy class
        The weights :math:`|C| \tau_C` of wrong answers under which no network has a larger margin
        on average; 0 for the class of e, and positive only on the margin.
    """

    margin: float
    shares: Floats
    weights: Floats


@dataclass(frozen=True, eq=False)
class RegularisedOptimum:
    r"""Where training with :math:`\lambda \|\theta\|_{2,3}^3` leads on a group's composition.

    Attributes
    ----------
    margin : float
        The normalised margin :math:`\gamma_\lambda`; γ* in the limit of small λ [TH Theorem 7.1].
    shares : array, one per representation
        The part of the norm in each representation's neurons; 0 for the trivial one.
    loss, norm : float
        The cross entropy, and :math:`\|\theta\|_{2,3}^3`.
    """

    margin: float
    shares: Floats
    loss: float
    norm: float


def condition(group: Group) -> Floats:
    r"""Return :math:`\sum_{R \ne 1} d_R^{1.5} \chi_R(C)` for each conjugacy class but that of e.

    Where all are negative and all representations of real kind, Theorem 7.9 holds [TH §7.6.2]:
    every representation is used, and every wrong answer is on the margin.
    """
    irreps = real_irreps(group)[1:]
    if not irreps:
        return np.empty(0)
    sizes = np.array([irrep.dimension for irrep in irreps])
    return sizes**1.5 @ on_classes(irreps, group.classes[1:])


def symmetric_condition(n: int) -> Floats:
    """Return `condition` of S_n, from partitions: S6 would take seconds by its 720 elements.

    One per conjugacy class, in the order of `symmetric_characters`, but that of e, the last.
    """
    table = symmetric_characters(n).characters
    sizes = table[1:, -1].astype(float)
    found: Floats = sizes**1.5 @ table[1:, :-1]
    return found


def theorem_applies(group: Group) -> bool:
    """Return whether Theorem 7.9 applies: real representations, and `condition` negative."""
    real = all(irrep.kind == "real" for irrep in real_irreps(group))
    return group.order > 1 and real and bool((condition(group) < -1e-9).all())


def theorem_margin(group: Group) -> float:
    r"""Return :math:`\frac{2}{3 \sqrt{3 |G|}} / \sum_{R \ne 1} d_R^{2.5}` [TH Theorem 7.9]."""
    sizes = np.array([irrep.dimension for irrep in _gains(group)[0]], float)
    return float(2 / (3 * math.sqrt(3 * group.order)) / (sizes**2.5).sum())


def neuron_margin(irrep: Irrep, order: int) -> float:
    r"""Return what a neuron of norm 1 adds to its own answer, over d: :math:`2 (3 d |G|)^{-3/2}`.

    Neurons of one representation can be put together so that they give the answer c to (a, b) the
    value :math:`\kappa \chi(a b c^{-1})`, κ being this number, for :math:`\|\theta\|^3_{2,3} = 1`.
    No neurons do more: products of three entries have the largest mean that the Cauchy–Schwarz
    inequality allows [TH Lemma D.13]. For real representations of complex or quaternionic kind the
    number is the same, with d the real dimension.
    """
    return float(2 / (3 * irrep.dimension * order) ** 1.5)


@lru_cache(maxsize=32)  # rules, figures and tables ask for the same few groups
def group_margin(group: Group) -> MarginCertificate:
    r"""Find the maximum margin of composing elements of any finite group.

    A network with the share :math:`\mu_R` in each representation has the margin
    :math:`\sum_R \mu_R \kappa_R (d_R - \chi_R(C))` to wrong answers c with
    :math:`a b c^{-1} \in C`; the best shares and the weights that prove them best are the two sides
    of one linear programme. Theorem 7.9 is the case that all shares and weights are positive,
    :math:`\mu_R \propto d_R^{2.5}`; where its condition fails the programme finds the subsets of
    [TH §D.9.2]; Theorem 7.7 is a cyclic group.
    """
    from scipy.optimize import linprog

    irreps, gains = _gains(group)
    scale = gains.max()  # the solver's tolerances are absolute
    found = linprog(
        c=[*np.zeros(len(irreps)), -1.0],
        A_ub=np.column_stack([-gains / scale, np.ones(len(gains))]),
        b_ub=np.zeros(len(gains)),
        A_eq=[[*np.ones(len(irreps)), 0.0]],
        b_eq=[1.0],
        method="highs",
    )
    shares = np.concatenate([[0.0], found.x[:-1]])
    weights = np.concatenate([[0.0], -found.ineqlin.marginals])
    # Real characters do not tell a class from that of its inverses, but a single neuron does.
    home = {int(member): place for place, c in enumerate(group.classes) for member in c}
    inverses = [home[int(group.inverse[members[0]])] for members in group.classes]
    return MarginCertificate(
        margin=float((gains @ shares[1:]).min()),
        shares=shares,
        weights=(weights + weights[inverses]) / 2,
    )


def _gains(group: Group) -> tuple[tuple[Irrep, ...], Floats]:
    """Return the representations but the trivial one, and what each gains over each wrong class.

    Shape (class, representation): κ_R (d_R - χ_R(C)), of a norm of 1.
    """
    irreps = real_irreps(group)[1:]
    if not irreps:
        raise UserError(
            f"{group.name} has one element, so that no answer is wrong. Give a larger group."
        )
    table = on_classes(irreps, group.classes)
    worth = np.array([neuron_margin(irrep, group.order) for irrep in irreps])
    return irreps, (worth[:, None] * (table[:, :1] - table[:, 1:])).T


EXPONENT = 3.0  # of the norm itself, ‖θ‖_{2,3}³


@lru_cache(maxsize=64)
def regularised_margin(
    group: Group, strength: float, exponent: float = EXPONENT
) -> RegularisedOptimum:
    r"""Find the margin that λ ‖θ‖_{2,3}^r leads to, among the theorem's networks; r = 3 by default.

    Networks of the neurons that maximum margins are made of give the answer c the logit
    :math:`\sum_R n_R \kappa_R \chi_R(a b c^{-1})`, :math:`n_R` being the part of
    :math:`\|\theta\|_{2,3}^3` in R. Cross entropy plus :math:`\lambda \sum_R n_R` is convex in n,
    and its minimum is found here. The margin is below γ* where wrong answers differ: those on the
    margin cause most of the loss, but not all. Where all are alike, as modulo an odd number, it
    is γ*.

    Another r has the minimum of another λ: where the norm is N = ‖θ‖³, the slope of λ N^(r/3) is
    that of (r/3) λ N^(r/3 − 1) ‖θ‖³. The minimum with the largest norm is returned; for r < 3 the
    network without weights is another.
    """
    if not 0 < strength < math.inf:
        raise UserError(
            f"regularised_margin: strength={strength}. Give a finite number above 0; without a "
            "regulariser the limit is group_margin."
        )
    if not 0 < exponent < math.inf:
        raise UserError(f"regularised_margin: exponent={exponent}. Give a finite number above 0.")
    found = _cubic_optimum(group, strength)
    alike = strength
    while exponent != EXPONENT and found.norm:
        new = strength * exponent / EXPONENT * found.norm ** (exponent / EXPONENT - 1)
        found = _cubic_optimum(group, new)
        if abs(math.log(new / alike)) < 1e-9:
            break
        alike = new
    return found


def _cubic_optimum(group: Group, strength: float) -> RegularisedOptimum:
    """Find the minimum of cross entropy plus λ ‖θ‖³."""
    from scipy.optimize import minimize

    best = group_margin(group)
    _, gains = _gains(group)
    sizes = np.log([len(members) for members in group.classes[1:]])

    unit = strength / best.margin  # the price of a margin of 1

    def objective(parts: Floats) -> tuple[float, Floats]:
        # Parts n_R γ*, and the objective in units of their price: every λ is then alike, and wrong
        # answers of a probability far below 10^-16 still count.
        gaps = gains @ (parts / best.margin)
        odds = np.exp(np.clip(sizes - gaps - math.log(unit), None, 600.0))  # over the unit
        total = float(odds.sum())
        slope = 1 - gains.T @ odds / (1 + unit * total) / best.margin
        return math.log1p(unit * total) / unit + float(parts.sum()), slope

    start = best.shares[1:] * max(1.0, math.log(best.margin * group.order / strength))
    tight = {"maxiter": 100_000, "maxfun": 1_000_000, "ftol": 1e-15, "gtol": 1e-11}
    for _ in range(3):  # a restart drops old estimates of the curvature
        found = minimize(
            objective,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=[(0, None)] * len(start),
            options=tight,
        )
        start = found.x
    value, slope = objective(found.x)
    off = np.where(found.x > 0, np.abs(slope), np.maximum(-slope, 0))
    if off.max() > 1e-4:  # not a minimum
        raise UserError(
            f"regularised_margin: no minimum was found for {group.name} at strength={strength:g}. "
            "Give a larger one."
        )
    parts = found.x / best.margin
    norm = float(parts.sum())
    margin = float((gains @ parts).min()) / norm if norm else 0.0
    shares = np.concatenate([[0.0], parts / norm if norm else parts])
    return RegularisedOptimum(margin, shares, unit * value - strength * norm, norm)
