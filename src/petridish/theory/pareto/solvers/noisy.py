"""Solvers that tolerate label noise: minimum disagreement, its fast transform, and regression."""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError
from petridish.seeds import Words, n_words, unpack_bits
from petridish.theory.fourier import mask_bits, walsh_hadamard
from petridish.theory.majority import krawtchouk
from petridish.theory.pareto.solvers.candidates import (
    check_candidates,
    lower_size,
    subset_xors,
    table_operations,
    unrank,
    upper_sets,
)
from petridish.theory.pareto.solvers.sample import (
    Answer,
    Bits,
    Support,
    check_sample,
    evaluate_parity,
    pack_columns,
)

MOST_WALSH_BITS = 24  # 2^24 coefficients of 4 bytes are 64 MB
MOST_TABLE = 2**22  # 32 MB of signs: here a table's set has a number for each example
MOST_REGRESSION_EXAMPLES = 4096  # the kernel is m × m, its inverse takes m³
TIE = 1e-9  # coefficients closer than this, against their scale, differ by rounding alone


def decode(inputs: Words, labels: Bits, *, n: int, k: int, max_candidates: int = 10**9) -> Answer:
    """Find the set with the fewest wrong labels among all C(n, k).

    It is the maximum-likelihood decoder for labels flipped with any probability below ½, and the
    maximum of the correlations Σ_i y_i χ_S(x_i) = m − 2 · disagreements.

    Parameters
    ----------
    max_candidates : int
        More sets than these are refused before anything starts.

    Returns
    -------
    answer : Answer
        With the support if one set is better than all others, by `gap` labels.
    """
    check_sample("decode", inputs, labels, n, k)
    check_candidates("decode", n, k, max_candidates)
    columns, target = pack_columns(inputs, labels, n)
    width = len(target)
    t = lower_size(n, k, width)
    table = subset_xors(columns, t)  # (word, set)

    best = second = len(labels) + 1  # worse than any
    fits = 0
    support: Support | None = None
    for upper, count in upper_sets(n, k, t):
        wanted = target ^ np.bitwise_xor.reduce(columns[upper], axis=0)
        wrong = np.zeros(count, np.uint32)
        for column, word in zip(table, wanted, strict=True):
            wrong += np.bitwise_count(column[:count] ^ word)
        lowest = int(wrong.min())
        if lowest > second:
            continue
        if lowest < best:
            fits = 0
            support = (*unrank(np.array([wrong.argmin()]), n, t)[0].tolist(), *upper)
        if lowest <= best:
            fits += int((wrong == lowest).sum())
        best, second = sorted([best, second, *smallest_two(wrong)])[:2]
    return Answer(
        support=support if fits == 1 else None,
        fits=fits,
        disagreements=best,
        gap=second - best if comb(n, k) > 1 else None,
        operations=width * (table_operations(n, t) + comb(n, k)),
    )


def walsh_decode(inputs: Words, labels: Bits, *, n: int, k: int) -> Answer:
    """Decode as `decode` does, by one fast Walsh–Hadamard transform: n 2^n additions for any k.

    The transform of the labels' sums over the cube is Σ_i y_i χ_S(x_i), for all 2^n sets S at once.

    Parameters
    ----------
    inputs, labels : array
        A sample as `draw_parity` gives it.
    n, k : int
        Bits, at most 24, and relevant bits.

    Returns
    -------
    answer : Answer
        The same as that of `decode` but for its cost.
    """
    check_sample("walsh_decode", inputs, labels, n, k)
    if n > MOST_WALSH_BITS:
        raise UserError(
            f"walsh_decode: n={n} would transform 2^{n} numbers, and the limit is "
            f"n={MOST_WALSH_BITS}. Lower n, or take decode, which lists only the C(n, k) sets."
        )
    m = len(labels)
    points = inputs[:, 0].astype(np.int64)
    negative = np.bincount(points[labels == 1], minlength=2**n)
    sums = (np.bincount(points, minlength=2**n) - 2 * negative).astype(np.int32)
    walsh_hadamard(sums)
    sets = np.flatnonzero(np.bitwise_count(np.arange(2**n, dtype=np.uint32)) == k)
    wrong = (m - sums[sets]) // 2

    ranked = sorted(smallest_two(wrong))
    fits = int((wrong == ranked[0]).sum())
    found = int(sets[wrong.argmin()])
    return Answer(
        support=mask_bits(found) if fits == 1 else None,
        fits=fits,
        disagreements=ranked[0],
        gap=ranked[1] - ranked[0] if len(ranked) > 1 else None,
        operations=m + n * 2**n,
    )


def smallest_two(values: NDArray[Any]) -> list[int]:
    """Return the two smallest values, in any order; one if there is one."""
    smallest: list[int] = np.partition(values, min(1, len(values) - 1))[:2].tolist()
    return smallest


def regress(
    inputs: Words,
    labels: Bits,
    *,
    n: int,
    k: int,
    ridge: float = 0.0,
    max_candidates: int = 10**7,
) -> Answer:
    r"""Regress the labels on all degree-k monomials, and take the largest coefficient.

    With features Φ = (χ_S(x_i)), one column for each set, the coefficients minimise
    :math:`|y - \Phi w|^2 + \text{ridge} \, |w|^2`, that is
    :math:`w = \Phi^\top (K + \text{ridge})^{-1} y` with the kernel :math:`K = \Phi \Phi^\top`,
    whose entries depend on Hamming distances alone (`krawtchouk`). ridge = 0 gives the least
    squares of least norm, which interpolates the labels while m < C(n, k).

    For ridge → ∞, w is proportional to Φ^T y and the answer is that of `decode`. At ridge = 0 the
    inverse kernel takes out the examples' mutual overlaps. It changes little while m ≪ C(n, k),
    where K ≈ C(n, k) I; near m = C(n, k) small eigenvalues of K inflate label noise, and S may get
    lost again that a smaller sample found. L1 penalties are not offered, for they add nothing
    here: with one atom to find, the first atom of the lasso's path, of matching pursuit and of
    iterative hard thresholding is the one of largest |correlation|, and basis pursuit has it as its
    only minimiser once no other column is ±y (y / m is a dual certificate).

    Parameters
    ----------
    inputs, labels : array
        A sample as `draw_parity` gives it, at most 4096 examples.
    n, k : int
        Bits and relevant bits.
    ridge : float, default=0.0
        The penalty, to be compared with the kernel's diagonal, C(n, k).
    max_candidates : int
        More monomials than these are refused before anything starts.

    Returns
    -------
    answer : Answer
        With the support if one coefficient is the largest. Never known to be unique: the largest
        coefficient need not belong to the best-fitting set. `operations` are nominal,
        m² ⌈n / 64⌉ + m³ + m C(n, k), for the solution is a library's.
    """
    check_sample("regress", inputs, labels, n, k)
    check_candidates("regress", n, k, max_candidates)
    m = len(labels)
    if m > MOST_REGRESSION_EXAMPLES:
        raise UserError(
            f"regress: m={m} examples make a kernel of m² numbers, and the limit is "
            f"m={MOST_REGRESSION_EXAMPLES}. Give fewer examples, or take decode."
        )
    if not 0 <= ridge < np.inf:
        raise UserError(f"regress: ridge={ridge}. Give a finite number of at least 0.")
    distance = np.zeros((m, m), np.int64)
    for word in inputs.T:
        distance += np.bitwise_count(word[:, None] ^ word)
    of_distance = np.array([float(krawtchouk(n, k, d)) for d in range(n + 1)])
    kernel = of_distance[distance] + ridge * np.eye(m)
    signs = 1.0 - 2.0 * labels
    # Least squares also where examples repeat and K is singular.
    dual = np.linalg.lstsq(kernel, signs, rcond=None)[0] if m else signs

    columns, _ = pack_columns(inputs, labels, n)
    t = lower_size(n, k, max(1, m), most=MOST_TABLE)
    table = 1.0 - 2.0 * unpack_bits(subset_xors(columns, t).T)[:, :m]  # (set, example)
    signed = 1.0 - 2.0 * unpack_bits(columns)[:, :m]  # (bit, example)
    scale = m / (comb(n, k) + ridge)  # of w, were K diagonal: rounding shows against it if w is 0
    largest: list[tuple[float, Support]] = []  # two are enough to see a tie
    for upper, count in upper_sets(n, k, t):
        weights = table[:count] @ (dual * signed[upper].prod(axis=0))
        scale = max(scale, float(np.abs(weights).max()))
        if len(largest) == 2 and weights.max() < largest[1][0]:
            continue
        places = np.argpartition(-weights, min(1, count - 1))[:2]
        for place, lower in zip(places, unrank(places, n, t).tolist(), strict=True):
            largest.append((float(weights[place]), (*lower, *upper)))
        largest = sorted(largest, reverse=True)[:2]
    tied = len(largest) == 2 and largest[0][0] - largest[1][0] <= TIE * scale
    support = None if tied else largest[0][1]
    wrong = None if support is None else int((evaluate_parity(inputs, support) ^ labels).sum())
    return Answer(
        support=support,
        disagreements=wrong,
        operations=m * m * n_words(n) + m**3 + m * comb(n, k),
    )
