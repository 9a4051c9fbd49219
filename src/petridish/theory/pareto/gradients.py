r"""Population gradients of one ReLU neuron at its sparse initialisation, in closed form.

The neuron is h(x) = relu(w · x), its weights 1 on the set `ones` (the paper's S') and 0
(over-sparse) or ε (under-sparse) elsewhere; x is uniform on {±1}^n and the label is χ_S(x), the
product of the bits in `support` (S). With ⊕ for the symmetric difference and T = S ⊕ {i},

    E[∂h/∂w_i · χ_S] = E[relu'(w · x) · χ_T(x)],

and relu' depends on two sums only: Σ over `ones`, and, where that one is 0 and ε > 0, Σ over the
rest. Hence products of coefficients of Half and of the step function, for all cases at once.
"""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError, check_whole
from petridish.theory.checks import check_even
from petridish.theory.majority import half_coefficient, majority_coefficient, step_coefficient

Floats = NDArray[np.float64]
Regime = Literal["over-sparse", "under-sparse"]  # weights outside `ones`: 0 [PF B.2], or ε [PF B.3]


def population_gradient(
    n: int,
    support: Collection[int],
    ones: Collection[int],
    *,
    regime: Regime,
    at_zero: int | Fraction = 0,
) -> Floats:
    r"""Return E[∂h/∂w_i · χ_S] for every bit i, for a good neuron or a bad one.

    Parameters
    ----------
    n : int
        Bits.
    support, ones : collection of int
        The parity's set S, and the set S' of weights that start at 1.
    regime : {"over-sparse", "under-sparse"}
        Whether the other weights start at 0 [PF Lemmas 8, 9] or at ε < 1/(n − s)
        [PF Lemmas 18–20]. The gradient does not depend on the value of ε.
    at_zero : {0, ½, 1}, default=0
        relu'(0): 0 as in most code, 1 for the proof's 1{Σ ≥ 0}. A bias too small to matter
        otherwise decides a tie too: its sign is `at_zero`.

    Returns
    -------
    gradient : array, shape (n,)
        With T = S ⊕ {i}, t the size of its part in S', t' of its part outside, and s = |S'|:
        Step_s(t) · 1{t' = 0} over-sparse, where Step(d) is the coefficient of the step function,
        and Half_s(t) · Step_{n−s}(t') + Step_s^0(t) · 1{t' = 0} under-sparse, where Step^0 is 0
        at ties.
    """
    check_whole("population_gradient", 1, n=n)
    parity, chosen = _bits("support", support, n), _bits("ones", ones, n)
    if regime not in ("over-sparse", "under-sparse"):
        raise UserError(f"regime={regime!r}. Give 'over-sparse' or 'under-sparse'.")
    inside, outside = len(parity & chosen), len(parity - chosen)
    gradient = np.zeros(n)
    for i in range(n):
        change = -1 if i in parity else 1  # what i does to the size of T's part
        t, rest = (inside + change, outside) if i in chosen else (inside, outside + change)
        gradient[i] = _entry(n, len(chosen), t, rest, regime, at_zero)
    return gradient


def _entry(n: int, s: int, t: int, rest: int, regime: Regime, at_zero: int | Fraction) -> Fraction:
    """Return E[relu' · χ_T] for a set T with t elements in S' and `rest` outside."""
    if regime == "over-sparse":
        return Fraction(0) if rest else step_coefficient(s, t, at_zero=at_zero)
    tied = half_coefficient(s, t) * step_coefficient(n - s, rest, at_zero=at_zero)
    return tied if rest else tied + step_coefficient(s, t)


def over_sparse_constants(k: int, s: int) -> tuple[Fraction, Fraction]:
    r"""Return :math:`C_{k,s}` and :math:`c_{k,s}` of a good over-sparse neuron [PF Lemma 8].

    ½ Maj_s(k − 1) for the bits of S, ½ Maj_s(k + 1) for the other ones of the neuron (0 where
    s = k and there are none). Their ratio |c| / |C| is (k − 1) / (s − k) for odd s and
    (k − 1) / (s − k + 1) for even s.
    """
    check_even("over_sparse_constants", k)
    if s < k:
        raise UserError(f"s={s} is below k={k}: no neuron holds S. Give s of at least k.")
    relevant = majority_coefficient(s, k - 1, tie=0) / 2
    irrelevant = majority_coefficient(s, k + 1, tie=0) / 2 if s > k else Fraction(0)
    return relevant, irrelevant


def under_sparse_constants(n: int, k: int, s: int) -> tuple[Fraction, Fraction]:
    r"""Return the gradient on S ∖ S' and outside S of a good under-sparse neuron [PF Lemma 20].

    :math:`\xi = \frac12 \widehat{\mathrm{Half}}_s(s)\, \widehat{\mathrm{Maj}}_{n-s}(k - s \mp 1)`.
    Their ratio is (n − k) / (k − s − 1) for odd n, with n − k + 1 above for even n; the printed
    one has n − s there.
    """
    check_even("under_sparse_constants", k)
    if s % 2 or not 0 <= s < k < n:
        raise UserError(f"n={n}, k={k}, s={s}. Give an even s with 0 ≤ s < k < n.")
    tied = half_coefficient(s, s) / 2
    relevant = tied * majority_coefficient(n - s, k - s - 1, tie=0)
    irrelevant = tied * majority_coefficient(n - s, k - s + 1, tie=0)
    return relevant, irrelevant


def _bits(name: str, bits: Collection[int], n: int) -> frozenset[int]:
    chosen = frozenset(bits)
    if outside := sorted(i for i in chosen if not 0 <= i < n):
        raise UserError(
            f"{name}: the bits {outside} lie outside 0 … {n - 1}. Raise n or choose lower bits."
        )
    return chosen
