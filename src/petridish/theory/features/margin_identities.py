r"""Identities and bounds by which App. D proves its theorems, each as a function [TH App. D].

Means are over all inputs (a, b). A neuron u, v, w gives the answer c the value
:math:`(u(a) + v(b))^2 w(c)`; wrong answers weigh :math:`\tau`, with a sum of 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError
from petridish.groups import Group, Irrep, real_irreps
from petridish.groups.irreps import on_classes
from petridish.theory.features.margins import modular_margin

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class FourierBounds:
    """The mean margin of a neuron modulo an odd p, and the bounds on it, each above the last.

    Attributes
    ----------
    by_products, by_phases : float
        The mean margin over all inputs and wrong answers, as (D.3) and as (D.4).
    in_phase : float
        What it would be if θ_u + θ_v = θ_w at every frequency (D.5).
    of_one_size : float
        And if |û|, |v̂| and |ŵ| were equal at every frequency, by the inequality (D.6).
    of_one_frequency : float
        And if all of the norm were in one frequency: γ* ‖ω‖³.
    """

    by_products: float
    by_phases: float
    in_phase: float
    of_one_size: float
    of_one_frequency: float


def fourier_bounds(u: Floats, v: Floats, w: Floats) -> FourierBounds:
    r"""Return the chain that leads from a neuron's mean margin to γ* [TH §D.6.1].

    (D.3) is :math:`\frac{2}{(p-1) p^2} \sum_{j \ne 0} \hat u(j) \hat v(j) \hat w(-j)`.
    """
    p = len(u)
    if p % 2 == 0:
        raise UserError(f"fourier_bounds: the weights have {p} entries. Give an odd number.")
    a, b, c = (np.fft.fft(part)[1:] for part in (u, v, w))  # the frequencies 1, …, p − 1
    scale = 2 / ((p - 1) * p**2)
    half = slice(0, (p - 1) // 2)  # one of each pair j, −j
    sizes = np.abs([a, b, c])[:, half]
    angles = np.angle(a * b * np.conj(c))[half]
    squares = np.square(sizes).sum(axis=0)  # the paper's z(j)
    norm = math.sqrt(sum(float(part @ part) for part in (u, v, w)))
    return FourierBounds(
        by_products=scale * float((a * b * np.conj(c)).sum().real),  # ŵ(−j) is the conjugate
        by_phases=2 * scale * float(sizes.prod(axis=0) @ np.cos(angles)),
        in_phase=2 * scale * float(sizes.prod(axis=0).sum()),
        of_one_size=2 * scale * float(((squares / 3) ** 1.5).sum()),
        of_one_frequency=modular_margin(p) * norm**3,
    )


def coefficients(irrep: Irrep, function: Floats) -> Floats:
    r"""Return the matrix α of a function on G: its part in R is :math:`\sum \alpha_{ij} R(g)_{ij}`.

    :math:`\|f\|^2 = \sum_R |G| \|\alpha_R\|_F^2 / d_R` [TH Lemma D.12].
    """
    found: Floats = np.tensordot(function, irrep.matrices, axes=1) * irrep.dimension
    return found / len(function)


def gains_of_weights(group: Group, weights: Floats) -> Floats:
    r"""Return :math:`1 - \sum_C \tau_C |C| \chi_R(C) / d_R` of each R but the trivial one.

    `weights` has :math:`|C| \tau_C` for each conjugacy class, 0 for that of e; as in the paper, all
    representations are of real kind.
    """
    irreps = _of_real_kind(group)
    table = on_classes(irreps, group.classes)
    found: Floats = 1 - (table / table[:, :1]) @ weights
    return found


def weighted_margin(group: Group, neuron: tuple[Floats, Floats, Floats], weights: Floats) -> float:
    r"""Return a neuron's mean margin, wrong answers weighed by class [TH Lemma D.11].

    It is :math:`2 \sum_R (1 - \sum_C \tau_C |C| \chi_R(C) / d_R) \mathrm{tr}(\alpha_R \beta_R
    \gamma_R^T) / d_R^2`; the 2, of the square, is missing in the lemma.
    """
    total = 0.0
    for irrep, gain in zip(_of_real_kind(group), gains_of_weights(group, weights), strict=True):
        alpha, beta, gamma = (coefficients(irrep, part) for part in neuron)
        total += gain * float(np.trace(alpha @ beta @ gamma.T)) / irrep.dimension**2
    return 2 * total


def largest_weighted_margins(group: Group, weights: Floats) -> Floats:
    r"""Return the largest weighted margin of a neuron of norm 1 in each R but the trivial one.

    :math:`\frac{2}{3 \sqrt 3 |G|^{3/2}} d_R^{-1/2} (1 - \sum_C \tau_C |C| \chi_R(C) / d_R)`.
    Neurons of the largest of these alone attain the maximum: the paper's set :math:`\mathcal{R}`
    [TH Lemma D.13, with the 2 of the square].
    """
    sizes = np.array([irrep.dimension for irrep in _of_real_kind(group)])
    scale = 2 / (3 * math.sqrt(3) * group.order**1.5)
    found: Floats = scale * gains_of_weights(group, weights) / np.sqrt(sizes)
    return found


def lemma_weights(group: Group) -> Floats:
    r"""Return the weights :math:`|C| \tau_C` under which all representations are alike.

    :math:`\tau_C = -\sum_{R \ne 1} z_R \chi_R(C)` with :math:`z_R = d_R^{1.5} / \sum d^{2.5}`: as
    [TH Lemma D.14], but for the minus that its proof has. They are positive where Theorem 7.9's
    condition holds.
    """
    irreps = _of_real_kind(group)
    sizes = np.array([irrep.dimension for irrep in irreps], float)
    z = sizes**1.5 / (sizes**2.5).sum()
    members = np.array([len(members) for members in group.classes])
    found: Floats = -(z @ on_classes(irreps, group.classes)) * members
    found[0] = 0.0
    return found


@dataclass(frozen=True, eq=False)
class SubsetSolution:
    r"""What the two systems of the general theorem give for a choice of subsets [TH §D.9.2].

    Attributes
    ----------
    weights : array, one per conjugacy class
        :math:`|C| \tau^*_C`, 0 outside of the subset.
    outputs : array, one per representation
        :math:`\lambda^*_R`, what the right answer's output is made of; 0 outside of the subset.
    positive, best, outside : bool
        The conditions 1, 2 and 3: no weight or output is negative; no other representation does
        better under the weights; no other class comes nearer to the right answer.
    """

    weights: Floats
    outputs: Floats
    positive: bool
    best: bool
    outside: bool

    @property
    def holds(self) -> bool:
        """Whether all three hold, so that the subsets are those of a maximum margin."""
        return self.positive and self.best and self.outside


def subset_solution(
    group: Group, representations: tuple[int, ...], classes: tuple[int, ...]
) -> SubsetSolution:
    """Solve the systems for subsets κ_R and κ_C, by their places, as many of one as of the other.

    The weights have Σ |C| τ_C = 1, where the text has Σ τ_C = 1.
    """
    if len(representations) != len(classes) or 0 in (*representations, *classes):
        raise UserError(
            f"subset_solution: representations={representations}, classes={classes}. Give as many "
            "of one as of the other, and neither the trivial representation nor the class of e."
        )
    irreps = (real_irreps(group)[0], *_of_real_kind(group))
    table = on_classes(irreps, group.classes)
    sizes = table[:, 0]
    ratios = table / sizes[:, None]
    kept, near = list(representations), list(classes)
    n = len(kept)
    # Unknown: the weights and the common value s of (1 − Σ weight χ/d) / √d.
    system = np.block([[ratios[np.ix_(kept, near)], np.sqrt(sizes[kept])[:, None]]])
    weights, outputs = np.zeros(len(table)), np.zeros(len(table))
    *weights[near], _ = np.linalg.solve(np.vstack([system, [*np.ones(n), 0.0]]), np.ones(n + 1))
    # Unknown: the outputs and the common value of Σ λ χ(C).
    columns = np.block([[table[np.ix_(kept, near)].T, -np.ones((n, 1))]])
    *outputs[kept], _ = np.linalg.solve(
        np.vstack([columns, [*np.ones(n), 0.0]]), [*np.zeros(n), 1.0]
    )
    values = (1 - ratios @ weights) / np.sqrt(sizes)
    answers = outputs @ table
    others = [place for place in range(1, len(table)) if place not in kept]
    far = [place for place in range(1, len(table)) if place not in near]
    slack = 1e-9
    return SubsetSolution(
        weights,
        outputs,
        positive=bool(min(*weights[near], *outputs[kept]) >= -slack),
        best=all(values[place] <= values[kept].max() + slack for place in others),
        outside=all(answers[place] <= answers[near].max() + slack for place in far),
    )


def _of_real_kind(group: Group) -> tuple[Irrep, ...]:
    """Return the representations but the trivial one, or refuse those of other kinds."""
    irreps = real_irreps(group)[1:]
    other = [irrep.name for irrep in irreps if irrep.kind != "real"]
    if other:
        raise UserError(
            f"{group.name} has representations that are not of real kind: {', '.join(other)}. The "
            "identities of App. D are for real ones; group_margin takes any group."
        )
    return irreps
