r"""Population gradients on a parity in closed form, for any number of bits [HP App. B.3.1].

As in `fourier`, x is uniform on {±1}^n and y = χ_S(x): for a sine, for a polynomial of low degree
and for a product of linear factors, E[y x_i σ'(w · x + b)] needs no enumeration of the inputs.
"""

from __future__ import annotations

import math
from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError
from petridish.theory.fourier import all_signs, support_mask

Floats = NDArray[np.float64]


def sine_gradient(
    weights: Floats, biases: Floats, support: Collection[int], *, rate: float, phase: float
) -> Floats:
    r"""Return E[y x_i cos(a (w · x + b) + φ)] of a batch of neurons, in closed form.

    Parameters
    ----------
    weights, biases : array, shape (neuron, n) and (neuron,)
    support : collection of int
        S, the bits of y.
    rate, phase : float
        a and φ.

    Returns
    -------
    gradient : array, shape (neuron, n)
        Bits are independent, so that the mean of χ_T exp(i a w · x) is a product over bits, of
        i sin(a w_j) inside T and cos(a w_j) outside; T is S without i, or with it.
    """
    inside = support_mask(support, weights.shape[1])
    sine, cosine = np.sin(rate * weights), np.cos(rate * weights)
    others = products_of_others(np.where(inside, sine, cosine))
    turned = np.cos(rate * biases + phase + (inside.sum() - 1) * math.pi / 2)[:, None]
    gradient: Floats = turned * others * np.where(inside, cosine, -sine)
    return gradient


def polynomial_gradient(
    weights: Floats, support: Collection[int], *, degree: int, leading: float
) -> Floats:
    r"""Return E[y x_i σ'(w · x + b)] for a polynomial σ of degree at most |S|, any n.

    A polynomial of degree d − 1 in x has no coefficient beyond that degree, and at S ∖ {i} none but
    that of its leading term: with σ(z) = a z^d + … and d = |S| the gradient is
    :math:`a\, d! \prod_{j \in S, j \ne i} w_j` on S and 0 elsewhere; with d < |S| it is 0.
    """
    inside = support_mask(support, weights.shape[1])
    if degree > inside.sum():
        raise UserError(
            f"polynomial_gradient: degree={degree} is above |S|={inside.sum()}, where there is no "
            "short form. Enumerate the inputs instead."
        )
    gradient = np.zeros_like(weights)
    if degree == inside.sum():
        gradient[:, inside] = (
            leading * math.factorial(degree) * products_of_others(weights[:, inside])
        )
    return gradient


def product_gradient(weights: Floats, support: Collection[int]) -> Floats:
    r"""Return E[y ∂f/∂w_{li}] of a PolyNet f(x) = Π_l (w_l · x + b_l) with k = |S| factors, any n.

    Without factor l the product has the degree k − 1: on S the gradient is the permanent of the
    weights without row l and column i, over the columns S; elsewhere it is 0.
    """
    inside = np.flatnonzero(support_mask(support, weights.shape[1]))
    k = len(weights)
    if k != len(inside):
        raise UserError(
            f"product_gradient: {k} factors and |S|={len(inside)} bits. Give as many of both."
        )
    gradient = np.zeros_like(weights)
    rows = np.arange(k)
    for place, bit in enumerate(inside):
        columns = np.delete(inside, place)
        for factor in range(k):
            minor = weights[np.ix_(rows != factor, columns)]
            gradient[factor, bit] = _permanent(minor)
    return gradient


def _permanent(matrix: Floats) -> float:
    """Average Π_i δ_i Π_j (δ · column j) over the signs δ with δ_1 = 1 [Glynn 2010]."""
    if not len(matrix):
        return 1.0
    signs = np.ones((2 ** (len(matrix) - 1), len(matrix)))
    signs[:, 1:] = all_signs(len(matrix) - 1)
    return float(np.mean(signs.prod(axis=1) * (signs @ matrix).prod(axis=1)))


def products_of_others(v: Floats) -> Floats:
    """Return Π_{j≠i} v_j for every i of the last axis, without dividing."""
    if v.shape[-1] == 2:
        return v[..., ::-1].copy()
    one = np.ones_like(v[..., :1])
    before = np.concatenate([one, np.cumprod(v[..., :-1], axis=-1)], axis=-1)
    after = np.concatenate([np.cumprod(v[..., :0:-1], axis=-1)[..., ::-1], one], axis=-1)
    products: Floats = before * after
    return products
