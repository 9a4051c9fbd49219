"""Networks of maximum margin as exact weights [TH Theorems 7.7 to 7.9], and one that memorises."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError, check_whole
from petridish.groups import Group, real_irreps
from petridish.theory.features.margins import group_margin
from petridish.theory.fourier import all_signs

Floats = NDArray[np.float64]
Inputs = tuple[Floats, NDArray[np.intp]]  # (example, input), and the right classes


@dataclass(frozen=True, eq=False)
class Neurons:
    r"""A network without biases: :math:`f(x) = \sum_i w_i (u_i \cdot x)^k`.

    Attributes
    ----------
    inputs : array, shape (width, n_inputs)
        The weights u of every neuron; for two elements of a group, u and v side by side, as the
        inputs are one-hot.
    outputs : array, shape (width, n_classes)
        The weights w.
    power : int
        The activation's degree k.
    """

    inputs: Floats
    outputs: Floats
    power: int = 2

    @property
    def width(self) -> int:
        """The number of neurons."""
        return len(self.inputs)

    @property
    def degree(self) -> int:
        """The degree of homogeneity ν of a neuron: k + 1."""
        return self.power + 1

    def logits(self, x: Floats) -> Floats:
        """Return the outputs for inputs (example, input), shape (example, class)."""
        return (x @ self.inputs.T) ** self.power @ self.outputs

    def norms(self) -> Floats:
        r"""Return :math:`\|\omega_i\|_2` of every neuron."""
        both = np.concatenate([self.inputs, self.outputs], axis=1)
        lengths: Floats = np.linalg.norm(both, axis=1)
        return lengths


def margins(network: Neurons, x: Floats, y: NDArray[np.integer]) -> Floats:
    r"""Return the normalised margins of the wrong answers, shape (example, class - 1)."""
    logits = network.logits(x)
    right = np.take_along_axis(logits, y[:, None], axis=1)
    wrong = np.ones(logits.shape, bool)
    np.put_along_axis(wrong, y[:, None], values=False, axis=1)
    gaps: Floats = (right - logits)[wrong].reshape(len(y), -1)
    return gaps / float((network.norms() ** network.degree).sum())


def all_pairs(group: Group) -> Inputs:
    """Return every pair of elements, one-hot side by side, and the place of their product."""
    one = np.eye(group.order)
    a, b = np.divmod(np.arange(group.order**2), group.order)
    return np.concatenate([one[a], one[b]], axis=1), group.table[a, b]


def modular_network(p: int, *, neurons: Literal[8, 6] = 8) -> Neurons:
    """Build the network of width 4(p - 1) for addition modulo an odd p [TH §D.6.2].

    Eight neurons for each frequency ζ from 1 to (p - 1)/2: waves of equal size whose phases have
    θ_u + θ_v = θ_w, so that the squares cancel and cos 2πζ(a + b - c)/p is left.

    Six are enough, which is a width of 3(p - 1): with θ_u = 2πk/6 and θ_v = 4 · 2πk/6, k from 0 to
    5, all of θ_u ± θ_v, 3θ_u + θ_v, θ_u + 3θ_v, 2θ_u, 2θ_v and 2θ_u + 2θ_v turn around the circle,
    and every other product cancels. Six are also the fewest for each frequency of any network of
    maximum margin, by the proof in
    docs/reference/theory-margins.md in the repository.
    """
    check_whole("modular_network", 3, p=p)
    if p % 2 == 0:
        raise UserError(f"modular_network: p={p} is even. Give an odd one, or ask group_network.")
    if neurons == 6:
        step, phases = np.pi / 3, [(k, 4 * k) for k in range(6)]
    else:
        step = np.pi / 2
        pairs = [(0, 0), (1, -1), (-1, 0), (0, -1)]  # θ_u and θ_v of the four products, in steps
        phases = [(u, v + turn) for u, v in pairs for turn in (0, 2)]
    angle = 2 * np.pi * np.arange(p) / p
    rows = [
        [np.cos(phase * step + frequency * angle) for phase in (u, v, u + v)]
        for frequency in range(1, (p + 1) // 2)
        for u, v in phases
    ]
    waves: Floats = np.array(rows)  # (neuron, one of u v w, element)
    return Neurons(waves[:, :2].reshape(len(waves), -1), waves[:, 2])


def group_network(group: Group, shares: Floats | None = None) -> Neurons:
    r"""Build a network of maximum margin for composing elements of any finite group [TH §D.9].

    Two neurons for each product :math:`R(a)_{ij} R(b)_{jk} R(c)_{ik}` in the trace of
    :math:`R(a) R(b) R(c)^{-1}`, of the size given by the shares of `group_margin`; a representation
    with the share 0 has none. Other `shares` give other networks, with that part of
    :math:`\|\theta\|_{2,3}^3` in each representation.
    """
    if shares is None:
        shares = group_margin(group).shares
    if len(shares) != len(real_irreps(group)) or min(shares) < 0:
        raise UserError(
            f"group_network: shares={shares}. Give one of at least 0 for each of the "
            f"{len(real_irreps(group))} representations of {group.name}."
        )
    inputs, outputs = [], []
    for irrep, share in zip(real_irreps(group), shares, strict=True):
        if share <= 1e-12 or irrep.name == "trivial":
            continue
        size, count = irrep.dimension, 2 * irrep.dimension**3
        # Entries have the squared norm |G|/d, of which a neuron has three.
        scale = (share / count) ** (1 / 3) * np.sqrt(size / (3 * group.order))
        entry = scale * irrep.matrices
        for i, j, k in product(range(size), repeat=3):
            u, v, w = entry[:, i, j], entry[:, j, k], entry[:, i, k]
            inputs += [np.concatenate([u, v]), np.concatenate([u, -v])]
            outputs += [w, -w]
    return Neurons(np.array(inputs), np.array(outputs))


def memorising_network(answers: NDArray[np.integer]) -> Neurons:
    """Build the network of 2n² neurons that memorises any function of two arguments [TH §D.4].

    `answers` has the shape (n, n) and holds 0, …, n - 1, such as the table of a group. Its weights
    are one-hot, with equal power in all frequencies; it is right everywhere.
    """
    size = len(answers)
    one, places = np.eye(size), np.arange(size**2)
    pairs = np.concatenate([one[places // size], one[places % size]], axis=1)
    answer = one[answers.ravel()] / 4
    signs = np.repeat([1.0, -1.0], size)  # the second argument subtracted
    return Neurons(np.concatenate([pairs, pairs * signs]), np.concatenate([answer, -answer]))


def parity_network(n: int, k: int) -> Neurons:
    r"""Build the network of width :math:`2^{k-1}` for the parity of k of n bits [TH §D.7].

    Each neuron has signs σ on the first k bits, + on the first of all, and :math:`\prod \sigma`
    times (1, -1) for the classes +1 and -1, all of size :math:`|u_j| = \|w\|`.
    """
    check_whole("parity_network", 1, k=k, n=n)
    if n < k:
        raise UserError(f"parity_network: n={n} is less than k={k}. Give at least k bits.")
    signs = np.array([(1.0, *rest) for rest in product((1.0, -1.0), repeat=k - 1)])
    inputs = np.zeros((len(signs), n))
    inputs[:, :k] = signs
    outputs = signs.prod(axis=1)[:, None] * np.array([1.0, -1.0]) / np.sqrt(2)
    return Neurons(inputs, outputs, power=k)


def all_bits(n: int, k: int) -> Inputs:
    """Return every input of n bits ±1, and the class of its parity on the first k: 0 for +1."""
    bits = all_signs(n).astype(np.float64)
    return bits, (bits[:, :k].prod(axis=1) < 0).astype(np.intp)
