r"""Why a margin is the largest: the best single neuron bounds every network [TH Lemmas 7.2 to 7.6].

The mean margin over all inputs, wrong answers weighed by :math:`\tau`, is a sum over neurons. So no
network has a larger one than its best neuron of norm 1, and its least margin is no larger than its
mean. A network whose least margin is the best neuron's mean has the maximum margin.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from petridish.groups import Group
from petridish.theory.features.margin_networks import Neurons, margins

Floats = NDArray[np.float64]
Labels = NDArray[np.integer]


def class_weights(group: Group, weights: Floats) -> Floats:
    r"""Return :math:`\tau(a, b)[c]` for all pairs, shape (pair, answer), from weights of classes.

    `weights` has :math:`|C| \tau_C`, as a `MarginCertificate` has them.
    """
    order = group.order
    each = np.zeros(order)
    for members, weight in zip(group.classes, weights, strict=True):
        each[members] = weight / len(members)
    by_right: Floats = each[group.table[:, group.inverse]]  # (right answer ab, c): of ab c⁻¹
    return by_right[group.table.ravel()]


def even_weights(y: Labels, n_classes: int) -> Floats:
    """Return the same weight for every wrong answer; of two classes, 1 for the other one."""
    return (1 - np.eye(n_classes)[y]) / (n_classes - 1)


def neuron_means(network: Neurons, x: Floats, y: Labels, weights: Floats) -> Floats:
    r"""Return each neuron's mean :math:`\psi'(\omega_i)`: right minus weighed wrong answers.

    Their sum is the network's mean margin, before it is divided by the norm [TH Lemma 7.3, 7.5].
    """
    targets = np.eye(network.outputs.shape[1])[y] - weights  # (example, class)
    found: Floats = np.einsum(
        "ei,ei->i", (x @ network.inputs.T) ** network.power, targets @ network.outputs.T
    )
    return found / len(y)


def best_neuron(
    x: Floats, y: Labels, weights: Floats, *, power: int, starts: int = 5, seed: int = 0
) -> Neurons:
    """Climb from random starts to the neuron of norm 1 with the largest mean margin."""
    from scipy.optimize import minimize

    rng = np.random.default_rng(seed)
    n_inputs = x.shape[1]
    targets = np.eye(weights.shape[1])[y] - weights
    degree = power + 1

    def below(flat: Floats) -> tuple[float, Floats]:
        # −E[ψ'(ω)] / ‖ω‖^ν, which does not change with the size of ω.
        u, w = flat[:n_inputs], flat[n_inputs:]
        inner, outer = x @ u, targets @ w
        value = float((inner**power) @ outer) / len(y)
        parts = power * (inner ** (power - 1) * outer) @ x, inner**power @ targets
        slope = np.concatenate(parts) / len(y)
        size = math.sqrt(float(flat @ flat))
        pull = degree * value * flat / size**2  # back to the same size
        return -value / size**degree, (pull - slope) / size**degree

    found = min(
        (
            minimize(
                below,
                rng.normal(size=n_inputs + weights.shape[1]),
                jac=True,
                method="L-BFGS-B",
                options={"gtol": 1e-12, "ftol": 1e-16, "maxiter": 2_000},
            )
            for _ in range(starts)
        ),
        key=lambda end: float(end.fun),
    )
    unit = found.x / np.linalg.norm(found.x)
    return Neurons(unit[None, :n_inputs], unit[None, n_inputs:], power)


def parity_neuron_mean(u: Floats, w: Floats, k: int) -> float:
    r"""Return a neuron's mean margin on the parity of the first k bits.

    :math:`\sqrt 2\, k! \prod_{i \le k} u_i \beta` with :math:`\beta = (w_+ - w_-) / \sqrt 2`
    [TH §D.7]. Under a norm of 1 the k + 1 factors have the largest product where all have the size
    :math:`1 / \sqrt{k + 1}`, which is γ*.
    """
    return math.sqrt(2) * math.factorial(k) * float(u[:k].prod() * (w[0] - w[1])) / math.sqrt(2)


@dataclass(frozen=True, eq=False)
class CertificatePair:
    r"""A network beside a distribution of inputs and weights of wrong answers [TH §7.3].

    Attributes
    ----------
    least : float
        Its normalised margin: the least over all inputs.
    mean : float
        The mean of its margins over all inputs, wrong answers weighed.
    bound : float
        The best neuron's mean, which no network's mean and so no network's margin exceeds.
    neurons : array
        The mean of each of its neurons, scaled to norm 1; the bound, for all that can be in a
        network of maximum margin.
    spread : float
        By how much the margin of an input exceeds the least, at most.
    """

    least: float
    mean: float
    bound: float
    neurons: Floats
    spread: float

    def proves(self, tolerance: float = 1e-6) -> bool:
        """Return whether the network is of maximum margin: its least margin is the bound."""
        return self.least >= self.bound * (1 - tolerance)


def certificate_pair(network: Neurons, x: Floats, y: Labels, weights: Floats) -> CertificatePair:
    """Set a network beside all inputs, each as likely, and weights of wrong answers."""
    sizes = network.norms() ** network.degree
    means = neuron_means(network, x, y, weights)
    best = best_neuron(x, y, weights, power=network.power)
    each = margins(network, x, y).min(axis=1)
    return CertificatePair(
        least=float(each.min()),
        mean=float(means.sum() / sizes.sum()),
        bound=float(neuron_means(best, x, y, weights)[0]),
        neurons=means[sizes > 0] / sizes[sizes > 0],
        spread=float(each.max() - each.min()),
    )


def largest_mean(width: int, norm_power: float, degree: float) -> float:
    r"""Return :math:`\max \|\lambda\|_\nu^\nu` under :math:`\|\lambda\|_b \le 1`, for m neurons.

    The best mean margin of a network over that of one neuron: 1 for b ≤ ν, of one neuron alone
    where b < ν; m^(1 − ν/b) for b > ν, of neurons of one size. With b = ν all sizes are alike,
    which is what lets neurons be combined [TH §D.5.1, remark].
    """
    return max(1.0, math.pow(width, 1 - degree / norm_power))
