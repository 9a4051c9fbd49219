r"""Fourier spectra on {±1}^n, and a neuron's population gradient read off them [HP §4.1, B.3.1].

For x uniform on {±1}^n and y = χ_S(x), the product of the bits in `support`, a neuron σ(w · x + b)
under the correlation loss has the population gradient

    g_i = E[y x_i σ'(w · x + b)],

up to its sign: the Fourier coefficient of x ↦ σ'(w · x + b) at S ∖ {i} for a relevant bit i, and at
S ∪ {i} for another. A *gap* between the two kinds says which bits are relevant.

Inputs are counted as in `seeds`: bit j of an input's number is 1 where x_j = −1. Sets are masks in
the same way: bit j of a set's number is 1 where j belongs to it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError, check_whole

Floats = NDArray[np.float64]
Signs = NDArray[np.int8]
Derivative = Callable[[Floats], Floats]
"""σ' of an activation, entry by entry."""

Real = TypeVar("Real", np.float32, np.float64)
Number = TypeVar("Number", np.int32, np.float32, np.float64)

MOST_BITS = 24  # of an enumeration: 2^24 inputs
_BLOCK = 2**20  # entries worked on at a time: 8 megabytes


def all_signs(n: int) -> Signs:
    """Return all inputs of {±1}^n in the order of the transform, shape (2^n, n)."""
    _check_bits("all_signs", n)
    bits = np.arange(2**n, dtype=np.int32)[:, None] >> np.arange(n, dtype=np.int32) & 1
    return (1 - 2 * bits).astype(np.int8)


def set_mask(bits: Collection[int]) -> int:
    """Return the number of a set of bits: {0, 3} is 2^0 + 2^3 = 9."""
    return sum(1 << bit for bit in set(bits))


def mask_bits(mask: int) -> tuple[int, ...]:
    """Return the bits of a set's number, the inverse of `set_mask`."""
    return tuple(bit for bit in range(mask.bit_length()) if mask >> bit & 1)


def support_mask(support: Collection[int], n: int) -> NDArray[np.bool_]:
    """Return which of n bits belong to the set `support`, shape (n,)."""
    if outside := sorted(i for i in support if not 0 <= i < n):
        raise UserError(
            f"support: the bits {outside} lie outside 0 … {n - 1}. Give more weights or lower bits."
        )
    relevant = np.zeros(n, np.bool_)
    relevant[list(support)] = True
    return relevant


def walsh_hadamard(values: NDArray[Number]) -> NDArray[Number]:
    r"""Replace a function's values by :math:`\sum_x f(x) \chi_T(x)`, in place.

    Parameters
    ----------
    values : array of int32, float32 or float64, shape (…, 2^n)
        f at all inputs, in the order of `all_signs`; contiguous. It is overwritten.

    Returns
    -------
    values : the same array
        Entry T belongs to the set with the mask T. Twice in a row gives 2^n times the values.

    Notes
    -----
    n rounds of sums and differences, n 2^n additions; beside the values it takes half as much
    memory again.
    """
    size = values.shape[-1]
    n = size.bit_length() - 1
    if size != 2**n or values.dtype not in (np.int32, np.float32, np.float64):
        raise UserError(
            f"walsh_hadamard: {size} values of type {values.dtype}. "
            "Give 2^n of them as int32, float32 or float64."
        )
    if not values.flags.c_contiguous:
        raise UserError("walsh_hadamard: the values are not contiguous. Give a copy of them.")
    for bit in range(n):
        pairs = values.reshape(-1, 2, 2**bit)  # a view: x_bit = +1, and x_bit = −1
        plus, minus = pairs[:, 0], pairs[:, 1]
        difference = plus - minus
        plus += minus
        minus[:] = difference
    return values


def fourier_coefficients(values: NDArray[Real]) -> NDArray[Real]:
    r"""Return :math:`\hat f(T) = E[f(x) \chi_T(x)]` for every set T [HP Eq. B.2].

    `values` has f at all inputs in the order of `all_signs` along its last axis, and stays as it
    is; entry T of the result belongs to the set with the mask T.
    """
    spectrum = walsh_hadamard(np.array(values, order="C"))
    spectrum /= spectrum.shape[-1]
    return spectrum


def population_gradient_by_enumeration(
    derivative: Derivative, weights: Floats, biases: Floats, support: Collection[int]
) -> Floats:
    r"""Return g_i = E[y x_i σ'(w · x + b)] of a batch of neurons over all 2^n inputs.

    Parameters
    ----------
    derivative : function
        σ', for example `relu_derivative`.
    weights : array, shape (neuron, n)
        n up to 24.
    biases : array, shape (neuron,)
    support : collection of int
        The parity's bits S.

    Returns
    -------
    gradient : array, shape (neuron, n)
        Exact but for rounding; for a ReLU the sums are whole numbers, and exact.

    Notes
    -----
    With the bits cut into two halves, w · x is the sum of entries of two short tables and y the
    product: each of the 2^n values of σ' is computed once and summed along either half.
    """
    weights, biases, relevant = _neurons("by enumeration", weights, biases, support)
    n_neurons, n = weights.shape
    _check_bits("population_gradient_by_enumeration", n)
    half = n - n // 2
    low, high = _signs(half), _signs(n // 2)  # (2^half, half), (2^(n − half), n − half)
    y_low, y_high = low[:, relevant[:half]].prod(axis=1), high[:, relevant[half:]].prod(axis=1)
    inner = weights[:, :half] @ low.T  # (neuron, 2^half)
    outer = weights[:, half:] @ high.T + biases[:, None]  # (neuron, 2^(n − half))
    gradient = np.empty_like(weights)
    rows = max(1, min(len(high), _BLOCK // len(low)))
    together = max(1, _BLOCK // (rows * len(low)))
    for first in range(0, n_neurons, together):
        some = slice(first, first + together)
        over_high = np.zeros_like(inner[some])
        over_low = np.empty_like(outer[some])
        for start in range(0, len(high), rows):
            block = slice(start, start + rows)
            values = derivative(outer[some, block, None] + inner[some, None, :])
            over_high += y_high[block] @ values  # (neuron, 2^half)
            over_low[:, block] = values @ y_low
        gradient[some, :half] = (over_high * y_low) @ low
        gradient[some, half:] = (over_low * y_high) @ high
    gradient /= 2.0**n
    return gradient


def sampled_gradient(
    derivative: Derivative,
    weights: Floats,
    biases: Floats,
    support: Collection[int],
    x: NDArray[np.int8] | Floats,
) -> tuple[Floats, Floats]:
    r"""Estimate E[y x_i σ'(w · x + b)] from a sample x of inputs, shape (m, n).

    Returns
    -------
    gradient, standard_error : array, shape (neuron, n)
        The means over the sample, and :math:`\sqrt{(E[σ'^2] - g_i^2) / m}`, as (y x_i)² = 1.
    """
    weights, biases, relevant = _neurons("by sampling", weights, biases, support)
    total, squares = np.zeros_like(weights), np.zeros((len(weights), 1))
    rows = max(1, _BLOCK // max(weights.shape))
    for start in range(0, len(x), rows):
        inputs = np.asarray(x[start : start + rows], np.float64)
        values = derivative(inputs @ weights.T + biases)  # (example, neuron)
        squares[:, 0] += (values**2).sum(axis=0)
        signed = inputs[:, relevant].prod(axis=1)[:, None] * values
        total += signed.T @ inputs
    gradient = total / len(x)
    return gradient, np.sqrt(np.maximum(squares / len(x) - gradient**2, 0) / len(x))


def fourier_gap(gradient: Floats, support: Collection[int]) -> Floats:
    r"""Return :math:`\Gamma = \max_{i \in S} |g_i| - \max_{i \notin S} |g_i|` [HP App. B.3.1].

    If it is positive, one bit of S is read off a gradient estimated to within Γ/2.

    Parameters
    ----------
    gradient : array, shape (…, n)
    support : collection of int
        S.

    Returns
    -------
    gap : array, shape (…)
        The largest |g_i| counts as 0 over no bits at all.
    """
    size, relevant = np.abs(gradient), support_mask(support, gradient.shape[-1])
    return _largest(size[..., relevant]) - _largest(size[..., ~relevant])


def strict_gap(gradient: Floats, support: Collection[int]) -> Floats:
    r"""Return :math:`\gamma = \min_{i \in S} |g_i| - \max_{i \notin S} |g_i|` [HP Def. 5.4].

    If it is positive, all of S is read off a gradient estimated to within γ/2.
    """
    size, relevant = np.abs(gradient), support_mask(support, gradient.shape[-1])
    if not relevant.any():
        raise UserError("strict_gap: the support is empty. Name at least one relevant bit.")
    gap: Floats = size[..., relevant].min(axis=-1) - _largest(size[..., ~relevant])
    return gap


def _largest(values: Floats) -> Floats:
    largest: Floats = values.max(axis=-1, initial=0.0)
    return largest


def relu_derivative(z: Floats) -> Floats:
    """Return 1{z > 0}, the derivative of a ReLU as PyTorch takes it: 0 at the corner."""
    return (z > 0).astype(np.float64)


# Checks


@lru_cache(maxsize=32)
def _signs(n: int) -> Floats:
    signs = all_signs(n).astype(np.float64)
    signs.flags.writeable = False  # shared by all callers
    return signs


def _neurons(
    owner: str, weights: Floats, biases: Floats, support: Collection[int]
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    weights, biases = np.asarray(weights, np.float64), np.asarray(biases, np.float64)
    if weights.ndim != 2 or biases.shape != weights.shape[:1]:
        raise UserError(
            f"population gradient {owner}: weights of shape {weights.shape} and biases of shape "
            f"{biases.shape}. Give (neuron, n) and (neuron,)."
        )
    return weights, biases, support_mask(support, weights.shape[1])


def _check_bits(owner: str, n: int) -> None:
    check_whole(owner, 0, n=n)
    if n > MOST_BITS:
        raise UserError(
            f"{owner}: n={n} bits have 2^{n} inputs. Give n up to {MOST_BITS}, or take a sample."
        )
