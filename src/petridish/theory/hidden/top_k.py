r"""Reading S off a sample's first gradient: its k largest entries [HP Prop. B.7].

The gradient is that of one ReLU neuron with weights ±1 under the correlation loss, for odd n and
even k. Its signs are all +1 here: flipping inputs changes no modulus.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError
from petridish.theory.checks import check_probability
from petridish.theory.fourier import set_mask
from petridish.theory.hidden.one_step import first_gradient
from petridish.theory.parity_step import nested_trials
from petridish.theory.smallest import first_size

Floats = NDArray[np.float64]


def gap_samples(n: int, k: int, *, delta: float) -> int:
    r"""Return a sample size whose gradient shows S with probability 1 − δ [HP Prop. B.7].

    The paper says :math:`O(\log n / \gamma^2)`. By Hoeffding's inequality for terms in [−1, 1] and
    a union over n entries, :math:`8 \log(2n/\delta) / \gamma^2` examples put every entry within γ/2
    of its mean, γ being the gap of `first_gradient`, so that those of S are the largest.
    """
    check_probability(delta=delta)
    inside, outside = first_gradient(n, k)
    if inside <= outside:
        raise UserError(
            f"gap_samples: n={n}, k={k}. There is no gap below n = 2k: give more bits or a lower k."
        )
    return math.ceil(8 * math.log(2 * n / delta) / float(inside - outside) ** 2)


def top_k_trials(
    n: int, k: int, sample_sizes: Sequence[int], *, trials: int, rng: np.random.Generator
) -> Floats:
    """Return whether S has the k largest entries of the gradient, shape (trial, size), 1 or 0.

    The rising `sample_sizes` are nested within a trial.
    """
    first_gradient(n, k)  # refuses sizes for which there is none

    def shows(total: Floats, _: int) -> float:
        return float(np.abs(total[:k]).min() > np.abs(total[k:]).max())

    return nested_trials("top_k_trials", (n, k, 0), sample_sizes, shows, trials=trials, rng=rng)


def predicted_top_k(n: int, k: int, sample_size: float) -> float:
    """Predict the mean of `top_k_trials`, the gradient's entries taken for independent normals."""
    from scipy.special import ndtr  # slow to import

    means = [float(value) for value in first_gradient(n, k)]
    spreads = [math.sqrt((0.5 - mean**2) / sample_size) for mean in means]
    t = np.linspace(0, means[0] + 9 * spreads[0], 4001)

    def within(mean: float, spread: float, bound: Floats) -> Floats:
        chance: Floats = ndtr((bound - mean) / spread) - ndtr((-bound - mean) / spread)
        return chance

    smallest = 1 - (1 - within(means[0], spreads[0], t)) ** k  # of S, its distribution function
    middle = (t[1:] + t[:-1]) / 2
    others = within(means[1], spreads[1], middle) ** (n - k)
    return float(np.sum(np.diff(smallest) * others))


def predicted_top_k_size(n: int, k: int, *, goal: float = 0.5) -> float:
    """Return the m at which `predicted_top_k` reaches `goal`."""
    check_probability(goal=goal)
    return first_size(lambda m: predicted_top_k(n, k, m) >= goal)


# The HP document's own definition and proposition, which the dissertation replaced


def conference_gap(coefficients: Floats, n: int, k: int) -> float:
    r"""Return the largest γ for which h has a γ-Fourier gap at S by the conference's Definition 1.

    Parameters
    ----------
    coefficients : array, shape (2^n,)
        The spectrum of h (`fourier_coefficients`).
    n, k : int
        Bits, and size of S, the first k of them.

    Returns
    -------
    gamma : float
        It asks for :math:`|\hat h(S')| \ge \gamma` at every set S' ⊂ S of k − 1 bits, and for
        :math:`|\hat h(S')| \le \gamma / 2` at *every* set of k + 1 bits, whether it contains S or
        not; 0 where no γ does both.
    """
    spectrum = np.abs(np.asarray(coefficients, np.float64))
    inside = min(spectrum[set_mask(sorted({*range(k)} - {i}))] for i in range(k))
    outside = max(
        (spectrum[set_mask(chosen)] for chosen in combinations(range(n), k + 1)), default=0.0
    )
    return float(inside) if inside >= 2 * outside else 0.0


def detected(gradient: Floats, gamma: float) -> list[int]:
    """Return the bits with |g_i| ≥ 3γ/4, which are S by the conference's Proposition 5.

    That asks for an estimate of the gradient to within γ/4. As printed, ≤ γ/4, it fails where a
    coefficient outside S is γ/2 and the error just γ/4: such a bit is detected too. An error below
    γ/4 is enough.
    """
    return [int(i) for i in np.flatnonzero(np.abs(gradient) >= 0.75 * gamma)]
