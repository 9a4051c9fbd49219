r"""Bounds on the flow and on SGD of disjoint PolyNets: as printed, and as they hold [HP B.2.3].

Each bound has the version that is printed and, where that fails, one that the proof supports.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError, check_whole
from petridish.theory.closed_form import products_of_others
from petridish.theory.hidden.polynet_flow import PLATEAU, Flow, start_weights
from petridish.theory.smallest import steps_solving

Floats = NDArray[np.float64]
Version = Literal["printed", "proved"]

BERRY_ESSEEN = 0.56  # the constant that the text names
_CHUNK = 1_000  # steps whose examples are drawn at once


def lemma_b8(start: Sequence[float] | Floats, i: int, b: float) -> tuple[float, float]:
    r"""Bound when |v_i| passes b ≥ |v_i(0)| [HP Lemma B.8], for k > 2 and a positive product.

    Returns
    -------
    earliest : float
        :math:`T_i(b) \ge (\bar v_a^{1-k/2} - (\bar v_a + b^2 - v_i(0)^2)^{1-k/2}) / (k - 2)`.
    left : float
        :math:`T_i(\infty) - T_i(b) \le (\bar v_g + b^2 - v_i(0)^2)^{1-k/2} / (k - 2)`.

    Both hold, with the arithmetic and the geometric mean of the squares v_i(0)².
    """
    squares = np.asarray(start, np.float64) ** 2
    k = len(squares)
    if k < 3 or b**2 < squares[i] or np.prod(np.asarray(start)) <= 0:
        raise UserError(
            f"lemma_b8: k={k}, b={b}, start={list(start)}. Give k ≥ 3, a positive product and b of "
            "at least |v_i(0)|."
        )
    arithmetic, geometric = float(squares.mean()), float(np.exp(np.log(squares).mean()))
    rise, power = b**2 - float(squares[i]), 1 - k / 2
    earliest = (arithmetic**power - (arithmetic + rise) ** power) / (k - 2)
    return earliest, (geometric + rise) ** power / (k - 2)


def lemma_b9(
    weights: Sequence[Sequence[float]] | Floats, *, version: Version = "proved"
) -> tuple[float, float]:
    r"""Bound the error of a disjoint PolyNet with a positive product [HP Lemma B.9].

    Parameters
    ----------
    weights : array, shape (k, n')
    version : {"proved", "printed"}, default="proved"
        Printed are :math:`\mathrm{erf}(|v| / \|u\| \sqrt 2) + c \|u\|_\infty / \|u\|_2^3` and
        :math:`2 \sum \exp(-v^2 / \|u\|^2)`, and neither holds. Berry and Esseen's term is
        :math:`2 c \sum |u_j|^3 / \|u\|_2^3` for the two sides of an interval: of the order
        n'^{−1/2}, not n'^{−3/2}. Hoeffding's is :math:`\exp(-v^2 / 2\|u\|^2)`, once per block.

    Returns
    -------
    low, high : float
    """
    table = np.asarray(weights, np.float64)
    v, u = np.abs(table[:, 0]), np.abs(table[:, 1:])
    norm = np.sqrt((u**2).sum(axis=1))
    inside = np.array([math.erf(a / (s * math.sqrt(2))) for a, s in zip(v, norm, strict=True)])
    if version == "printed":
        slack = BERRY_ESSEEN * u.max(axis=1) / norm**3
        high = 2 * np.exp(-((v / norm) ** 2)).sum()
    else:
        slack = 2 * BERRY_ESSEEN * (u**3).sum(axis=1) / norm**3
        high = np.exp(-((v / norm) ** 2) / 2).sum()
    return float(0.5 - 0.5 * np.prod(np.minimum(inside + slack, 1.0))), float(high)


def plateau_bound(
    k: int, block: int, *, gamma: float = 0.5 - PLATEAU, version: Version = "proved"
) -> float:
    r"""Bound T(½ − γ) / T(0) from below for starts of ±1 with a positive product [HP Cor. B.10].

    Parameters
    ----------
    k, block : int
        Blocks (k ≥ 3), and bits of a block (n').
    gamma : float, default=0.01
        The advantage γ.
    version : {"proved", "printed"}, default="proved"
        Printed is :math:`1 - b^{2-k}` with :math:`b = \sqrt{\pi n'/2}\,(\gamma^{1/k} - 0.56
        n'^{-3/2})`, whose last term rests on the wrong Berry–Esseen term; 0.56 is the text's
        example for a constant that it leaves open. For γ = 0.01 it fails for some n' up to 132,
        103 and 67 (k = 3, 4, 5). Proved: a block's sign agrees by at most (number of values in
        (−v, v]) · (largest probability) ≤ (v + 1) √(2 / π(n' − 1)), so that the error is at least
        ½ − γ while :math:`v \le b = (2\gamma)^{1/k} \sqrt{\pi (n' - 1)/2} - 1`.

    Returns
    -------
    bound : float
        0 where b is at most 1: the proof then gives no bound.
    """
    check_whole("plateau_bound", 3, k=k)
    check_whole("plateau_bound", 2, block=block)
    if version == "printed":
        b = math.sqrt(math.pi * block / 2) * (gamma ** (1 / k) - BERRY_ESSEEN * block**-1.5)
    else:
        b = (2 * gamma) ** (1 / k) * math.sqrt(math.pi * (block - 1) / 2) - 1
    return 1 - b ** (2.0 - k) if b > 1 else 0.0


def plateau_constant(k: int, block: int, *, error: float = PLATEAU) -> float:
    r"""Return :math:`(1 - T(\epsilon) / T(0)) \, n'^{k/2 - 1}` of the all-ones start, exactly.

    [HP Thm 5.7] says that it stays bounded as n' grows. Its limit is
    :math:`(\sqrt2\, \mathrm{erf}^{-1}((1 - 2\epsilon)^{1/k}))^{2-k}`: 2.88, 4.16, 4.43 for k = 3,
    4, 5 and ε = 0.49; it fluctuates around the limit, as the sums of a block are whole numbers.
    """
    flow = Flow(start_weights("ones", k, block))
    return float(flow.remainder(error) * block ** (k / 2 - 1))


def plateau_limit(k: int, *, error: float = PLATEAU) -> float:
    """Return the limit of `plateau_constant` for n' → ∞."""
    from scipy.special import erfinv  # slow to import

    deviations = math.sqrt(2) * float(erfinv((1 - 2 * error) ** (1 / k)))
    return float(deviations ** (2.0 - k))


# SGD with any batch size


def theorem58_steps(
    block: int, k: int, *, epsilon: float, delta: float, version: Version = "proved"
) -> int:
    r"""Return the steps after which SGD has an error of at most ε [HP Thm 5.8], from ±1 weights.

    Parameters
    ----------
    block, k : int
        Bits of a block (n'), and blocks; n = k n'.
    epsilon, delta : float
        Error, and probability of failure given a positive product at the start.
    version : {"proved", "printed"}, default="proved"
        Printed is the smallest :math:`T \ge 6 L \log(2k/\epsilon) (3n' - 2)^{2k-1}` with
        :math:`L = \log(2nT/\delta)`. With Hoeffding's exponent put right (`lemma_b9`) the proof
        gives :math:`12 L \log(k/\epsilon) (3n' - 2)^{2k-1}`, which is larger; whether the printed
        T is enough is open.

    Returns
    -------
    steps : int
    """
    check_whole("theorem58_steps", 2, block=block, k=k)
    if not (0 < epsilon < 0.5 and 0 < delta < 1):
        raise UserError(
            f"theorem58_steps: epsilon={epsilon}, delta={delta}. Give an error below ½ and a "
            "probability between 0 and 1."
        )
    constant = 6 * math.log(2 * k / epsilon)
    if version == "proved":
        constant = 12 * math.log(k / epsilon)
    factor = constant * float(3 * block - 2) ** (2 * k - 1)
    return steps_solving(factor, math.log(2 * k * block / delta))


def adaptive_rates(weights: Floats, steps: int, *, delta: float) -> Floats:
    r"""Return the rate of every block at these weights, shape (…, k) for weights (…, k, n').

    :math:`\eta_i = 1 / (2 \sqrt{2 T L} \prod_{l \ne i} \|w_l\|_1)` with :math:`L =
    \log(2nT/\delta)`, as printed. A weight's noise in one step, :math:`\eta (g - \hat g)`, has the
    mean 0 and lies, given the steps before, in an interval of the length :math:`2 \eta_i
    \prod_{l \ne i} \|w_l\|_1 = 1 / \sqrt{2TL}`. So the Azuma–Hoeffding inequality for ranges,
    :math:`2 \exp(-2a^2 / \sum_t c_t^2)`, bounds a deviation of a = ½ by 2 exp(−L) = δ/nT.
    """
    k, block = weights.shape[-2:]
    products = products_of_others(np.abs(weights).sum(axis=-1))
    root = math.sqrt(2 * steps * math.log(2 * k * block * steps / delta))
    return 1 / (2 * root * products)


def adaptive_path(
    weights: Floats,
    steps: int,
    *,
    delta: float,
    rng: np.random.Generator,
) -> Iterator[tuple[int, Floats]]:
    """Run [HP Thm 5.8]'s SGD with B = 1 on fresh examples, many runs at once.

    `weights` has the shape (run, k, n'). Yields the steps taken and the weights, every thousand
    steps and at the end.
    """
    moved = np.array(weights, np.float64)
    runs, k, block = moved.shape
    root = math.sqrt(2 * steps * math.log(2 * k * block * steps / delta))
    for start in range(0, steps, _CHUNK):
        chunk = (min(_CHUNK, steps - start), runs, k, block)
        inputs = 1.0 - 2.0 * rng.integers(0, 2, size=chunk)
        rates = inputs[..., 0].prod(axis=-1, keepdims=True) / (2 * root)  # with the label's sign
        for x, rate in zip(inputs, rates, strict=True):
            # The rates of `adaptive_rates` divide every factor of the gradient by its ‖w_l‖₁.
            parts = np.einsum("rkb,rkb->rk", moved, x) / np.abs(moved).sum(axis=-1)
            moved += (rate * products_of_others(parts))[:, :, None] * x
        yield start + chunk[0], moved.copy()


def adaptive_sgd(
    weights: Floats,
    steps: int,
    *,
    delta: float,
    rng: np.random.Generator,
) -> Floats:
    """Return the weights after the last step of `adaptive_path`, of which there is at least one."""
    check_whole("adaptive_sgd", 1, steps=steps)
    *_, (_, moved) = adaptive_path(weights, steps, delta=delta, rng=rng)
    return moved


def claim_b12(
    block: int, k: int, taken: int, steps: int, *, delta: float, version: Version = "proved"
) -> float:
    r"""Return what the relevant weights are at least, by size, after `taken` of T steps.

    Parameters
    ----------
    block, k : int
        Bits of a block (n'), and blocks.
    taken, steps : int
        Steps taken, t − 1 in the text, and T, by which the rate is chosen.
    delta : float
        Probability of failure, given a positive product at the start.
    version : {"proved", "printed"}, default="proved"
        Printed is :math:`\frac12 + \frac{1}{4\sqrt2} (3n' - 2)^{1-k} \sqrt{(t - 1) /
        \log(nT/\delta)}` [HP Claim B.12], the growth under a rate that falls like
        :math:`1/\sqrt t`. Under the theorem's rate, which does not fall, the proof gives
        :math:`\frac12 (1 + (3n' - 2)^{1-k} (t - 1) / \sqrt{2 T L})`, which is less at first and
        more at the end.
    """
    share = float(3 * block - 2) ** (1 - k)
    if version == "printed":
        log = math.log(k * block * steps / delta)
        return 0.5 + share * math.sqrt(taken / log) / (4 * math.sqrt(2))
    log = math.log(2 * k * block * steps / delta)
    return 0.5 * (1 + share * taken / math.sqrt(2 * steps * log))
