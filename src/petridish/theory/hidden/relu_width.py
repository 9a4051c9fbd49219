r"""How many ReLUs a parity takes if they see the sum of its bits alone [HP §5.3.1, App. B.4.1].

The networks are f(x) = Σ_j u_j relu(w_j s + b_j), with or without an output bias, of s = Σ_S x_i,
which has the k + 1 values −k, −k + 2, …, k; the parity alternates over them and is +1 at s = k.

Any such f needs k − 1 neurons, even for the sign: between two neighbouring values f rises or falls
somewhere, by turns, and the pieces that do so differ, so that f has k pieces and k − 1 bends. What
a network of other weights needs is another question: setting one bit of S to a constant leaves a
parity of k − 1 bits, so that its least width does not fall with k, and no more is shown here.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError, check_whole

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Fit = Literal["exact", "sign"]
Output = Literal["linear", "affine"]

_SMALLEST = 1e-6  # margins below are the solver's rounding; the least that occurs is near 1/30
# u, w and b of each neuron, for one to five bits
_FIRST = {
    1: ((1, 1, 0), (-1, -1, 0)),
    2: ((1, 1, 0), (1, -1, 0), (-1, 0, 1)),
    3: ((1, 1, 2), (-1, -1, -2), (-2, 1, 1), (2, 1, -1)),
    4: ((1, -2, 4), (-1, 2, 0), (-1, -1, 7), (1, 2, 4)),
    5: ((1, 3, 2), (-1, -3, 2), (-1, 2, 6), (1, -2, 6)),
}


def parity_relus(k: int) -> tuple[Ints, Ints, Ints]:
    """Return w, b and u of a network without output bias that is the parity of k bits, exactly.

    It has k + 1 neurons for k ≤ 3, four for k = 4 and k − 1 from 5 on: the fewest of
    neurons that see s alone, and for k ≤ 5 the fewest of all
    (docs/reference/theory-hidden.md in the repository, «Widths»).

    One bit more takes one neuron more: with it s is s' + 1, −f(s' + 1) is right but for the new
    value s' = k + 1, where it is −3, and 2 relu(s' − k + 1) is 4 there and 0 at all others.
    """
    check_whole("parity_relus", 1, k=k)
    neurons = list(_FIRST[min(k, 5)])
    for bits in range(5, k):
        neurons = [(-u, w, b + w) for u, w, b in neurons] + [(2, 1, 1 - bits)]
    u, w, b = np.array(neurons, np.int64).T
    return w, b, u


def best_margin(k: int, width: int, *, fit: Fit, output: Output = "linear") -> float:
    r"""Return the largest margin of `width` ReLUs of s on the parity of k bits, 0 where they fail.

    Parameters
    ----------
    k, width : int
        Bits of the parity, and neurons.
    fit : {"exact", "sign"}
        Whether f is a multiple of the parity, or has its sign.
    output : {"linear", "affine"}, default="linear"
        Without an output bias, or with one.

    Returns
    -------
    margin : float
        The largest t with f(s) χ(s) = t (or ≥ t) at every s, where no |u_j| relu(w_j s + b_j) and
        no output bias is above 1. This loses nothing, as f may be scaled. A mixed-integer linear
        programme: a neuron is given by the set of values at which it is active (all above one, all
        below one, or all) and by the sign of u; two that agree in both may be added up to one.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp  # slow to import

    check_whole("best_margin", 1, k=k)
    check_whole("best_margin", 0, width=width)
    if fit not in ("exact", "sign") or output not in ("linear", "affine"):
        raise UserError(
            f"best_margin: fit={fit!r}, output={output!r}. Give 'exact' or 'sign', and 'linear' or "
            "'affine'."
        )
    plus = np.arange(k + 1)  # bits that are +1
    parity = (-1.0) ** (k - plus)
    line = np.column_stack([2.0 * plus - k, np.ones(k + 1)])
    kinds = [(active, sign) for active in _active_sets(k) for sign in (1, -1)]
    n_kinds = len(kinds)
    # Variables: w and b of every kind, whether it is there, the output bias, the margin.
    n_values = 3 * n_kinds + 2
    f = np.zeros((k + 1, n_values))
    f[:, -2] = output == "affine"
    rows, low, high = [], [], []
    for kind, (active, sign) in enumerate(kinds):
        at = slice(2 * kind, 2 * kind + 2)
        f[:, at] = sign * active[:, None] * line
        inner = np.zeros((k + 1, n_values))
        inner[:, at] = line
        rows.append(inner)  # from 0 where it is active, to 0 where it is not
        low.append(np.where(active, 0.0, -np.inf))
        high.append(np.where(active, np.inf, 0.0))
        capped = inner[active]
        capped[:, 2 * n_kinds + kind] = -1
        rows.append(capped)  # at most 1 if it is there, 0 if not
        low.append(np.full(len(capped), -np.inf))
        high.append(np.zeros(len(capped)))
    right = parity[:, None] * f
    right[:, -1] = -1
    rows.append(right)
    low.append(np.zeros(k + 1))
    high.append(np.full(k + 1, 0.0 if fit == "exact" else np.inf))
    number = np.zeros((1, n_values))
    number[0, 2 * n_kinds : 3 * n_kinds] = 1
    constraints = [
        LinearConstraint(np.vstack(rows), np.concatenate(low), np.concatenate(high)),
        LinearConstraint(number, 0, width),
    ]
    there = number[0].astype(bool)
    least, most = np.full(n_values, -np.inf), np.full(n_values, np.inf)
    least[there], most[there] = 0, 1
    least[-2:], most[-2:] = (-1, 0), (1, 1)
    cost = np.zeros(n_values)
    cost[-1] = -1
    found = milp(
        cost,
        constraints=constraints,
        integrality=there.astype(int),
        bounds=Bounds(least, most),
    )
    margin = -float(found.fun)
    return margin if margin > _SMALLEST else 0.0


def least_width(k: int, *, fit: Fit, output: Output = "linear") -> int:
    """Return the fewest ReLUs of s that are, or have the sign of, the parity of k bits.

    Among networks whose neurons see s alone (equal weights on S, 0 elsewhere), by `best_margin`:
    2, 3, 4, 4, 4, 5, 6, 7 for k = 1 to 8 without an output bias, 1, 2, 3, 3, 4, 5, 6, 7 with one;
    the same for both kinds of fit.
    """
    width = max(k - 1, 0)
    while best_margin(k, width, fit=fit, output=output) == 0:
        width += 1
    return width


def _active_sets(k: int) -> list[Bools]:
    """Return the sets of values of s at which a neuron can be active, the empty one left out."""
    place = np.arange(k + 1)
    rising = [place >= first for first in range(k + 1)]
    falling = [place <= last for last in range(k)]
    return [*rising, *falling]
