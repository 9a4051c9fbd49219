"""What two steps of gradient descent find, and what rules on fixed features can do [FL §5, E.1]."""

from __future__ import annotations

from math import comb, sqrt

import numpy as np
from numpy.typing import NDArray

from petridish.errors import require


def step_cosine(
    n: int, k: int, patterns: int, correlation: float, background: float = 0.5
) -> float:
    r"""Return the cosine of a step's weights with Σ_{j ∈ A} M_j, from a sample of n.

    A step that forgets leaves each neuron with :math:`\eta a\,\hat E[y x \sigma']`. Where all
    neurons are open, as they are with tiny weights and a positive bias, this is one vector: γ/σ
    along each of the k relevant patterns, and noise of the variance :math:`p_o (1 - p_o) / (n
    \sigma^2)` along each of the D − k others, hence

    .. math:: \cos = \left(1 + \frac{(D - k)\, p_o (1 - p_o)}{n k \gamma^2}\right)^{-1/2}.

    The fluctuation within A, of order 1/n as well and k/D as large, is left out.

    Parameters
    ----------
    n, k, patterns : int
        Examples, relevant patterns, all patterns D.
    correlation, background : float
        γ and p_o.
    """
    require(
        n >= 1 and 1 <= k <= patterns and correlation > 0,
        f"step_cosine: n={n}, k={k}, patterns={patterns}, correlation={correlation}. Give n of at "
        "least 1, k from 1 to the number of patterns, and a positive correlation.",
    )
    noise = (patterns - k) * background * (1 - background)
    return 1.0 / sqrt(1 + noise / (n * k * correlation**2))


def open_probability(bias: float, noise: float) -> float:
    """Return β = Pr[b + ξ ∈ (0, 1)] for ξ ~ N(0, noise²) [FL Lemma 20]; without noise, 0 or 1.

    In the second step, where first-layer weights are tiny, a neuron's T_j is βγ/σ for j in A.
    """
    require(noise >= 0, f"open_probability: noise={noise}. Give a number of at least 0.")
    if noise == 0:
        return float(0 < bias < 1)
    from scipy.special import ndtr

    return float(ndtr((1 - bias) / noise) - ndtr(-bias / noise))


def later_movement_bound(
    steps: int, rate: float, output: float, *, decay: float = 0.0, weight: float = 0.0
) -> float:
    """Return 2tηλ ‖w‖ + η²t² + ηt|a|, which no neuron's weights move beyond in t steps [Lemma 24].

    For a hinge loss on inputs whose mean length is at most 1, as FL's are, and λ decaying by λ‖θ‖²:
    a grows by at most η per step, and w by at most η|a|. The text's (265) has t|a| in the place of
    ηt|a|, which is larger.

    Parameters
    ----------
    steps : int
        t, counted from the features of step two.
    rate, decay : float
        η and λ.
    output, weight : float
        |a| and ‖w‖ of the neuron after step two.
    """
    require(
        steps >= 0 and min(rate, abs(output), decay, weight) >= 0,
        f"later_movement_bound: steps={steps}, rate={rate}, decay={decay}, weight={weight}. Give "
        "numbers of at least 0.",
    )
    return 2 * steps * rate * decay * weight + (rate * steps) ** 2 + rate * steps * abs(output)


def schedule_bound(k: int, neurons: int, steps: int) -> float:
    """Return k⁸/m^⅔ + k³T/m² + k²m^⅔/T, the loss of Theorems 1 and 26 with a constant of 1.

    The text has O(·), for 2m neurons and some t ≤ T. A hinge loss of 1 is that of the zero
    function: with k = 5, m = 300 and T = 600 the bound is 8700, and it is below 1 only for m beyond
    k¹², here 2.4 · 10⁸.

    Parameters
    ----------
    k, neurons, steps : int
        Relevant patterns, the text's m (half of the neurons), and T.
    """
    require(
        min(k, neurons, steps) >= 1,
        f"schedule_bound: k={k}, neurons={neurons}, steps={steps}. Give numbers of at least 1.",
    )
    root = float(neurons) ** (2 / 3)
    return float(k**8 / root + k**3 * steps / neurons**2 + k**2 * root / steps)


def best_linear_error(k: int, share: float) -> float:
    """Return the error of the best threshold rule of a linear function of φ_A, parity labels.

    With the weight 1 − ρ patterns are uniform, else all or none of the k are present, with
    probability ½ each. A threshold rule agrees with the parity of k uniform bits on at most ½ +
    C(k − 1, (k − 1)/2) / 2^k of them: a majority of signed bits, the signs so chosen that it agrees
    with all present and with none. The error is (1 − ρ)(½ − C(k − 1, (k − 1)/2) / 2^k).
    """
    _check_odd("best_linear_error", k, share)
    return (1 - share) * (0.5 - float(comb(k - 1, (k - 1) // 2) / 2**k))


def balanced_linear_error(k: int, share: float) -> float:
    """Return the error of the rule |φ_A| > k/2, which a convex loss on linear features finds.

    For k ≡ 3 (mod 4) majority is anti-correlated with parity, and this is above (1 − ρ)/2.
    """
    _check_odd("balanced_linear_error", k, share)
    wrong = sum(comb(k, t) for t in range(k + 1) if (t > k / 2) != (t % 2 == 1))
    return (1 - share) * float(wrong / 2**k)


def best_threshold_error(k: int, share: float) -> float:
    """Return the error of the best rule |φ_A| ≥ t."""
    _check_odd("best_threshold_error", k, share)
    law: list[float] = [
        (1 - share) * float(comb(k, t) / 2**k) + share / 2 * (t in (0, k)) for t in range(k + 1)
    ]
    plus = [t % 2 == 1 for t in range(k + 1)]
    return min(sum(law[t] for t in range(k + 1) if (t >= cut) != plus[t]) for cut in range(k + 2))


def _check_odd(name: str, k: int, share: float) -> None:
    require(
        k >= 1 and k % 2 == 1 and 0 <= share <= 1,
        f"{name}: k={k}, share={share}. Give an odd k of at least 1, and a share from 0 to 1.",
    )


def tent(z: NDArray[np.float64], s: float, a: float, b: float) -> NDArray[np.float64]:
    """Return δ_{s,a,b}(z): 0 outside [s − b, s + b], a·b at s, linear between [FL Lemma 7].

    a σ(z − s + b) − 2a σ(z − s) + a σ(z − s − b) for the ReLU σ.
    """
    first, second, third = (np.maximum(z - s + shift, 0) for shift in (b, 0.0, -b))
    return np.asarray(a * (first - 2 * second + third))
