r"""What each solver costs: the sample at which it finds S half of the time, and its operations.

Every `…_samples(n, k, *, noise, …)` returns the m at which the success probability reaches ½, not
rounded where it has a closed form, and ∞ where it never does; `…_operations(n, k, m, …)` the
expected number of 64-bit word operations on a noiseless sample of m.

For a set A ≠ S and uniform inputs, χ_A(x) χ_S(x) is a fair coin. So A explains m labels with
probability 2^−m whatever S is, pairs of sets do so independently, and with N sets the number of
wrong ones that fit is nearly Poisson with mean (N − 1) 2^−m.
"""

from __future__ import annotations

from math import comb, exp2, expm1, inf, log, log1p, log2

import numpy as np

from petridish.seeds import n_words
from petridish.theory.checks import check_size
from petridish.theory.lower_bounds import statistical_limit
from petridish.theory.pareto.solvers.candidates import lower_size, table_operations
from petridish.theory.pareto.solvers.sample import check_noise
from petridish.theory.smallest import first_true


def information_limit(n: int, k: int, *, noise: float = 0.0) -> float:
    r"""Return the sample size whose labels hold as many bits as it takes to name S.

    A label tells at most the capacity of a binary symmetric channel [Shannon 1948]:
    :math:`m = \log_2 \binom{n}{k} / (1 - h_2(\eta))`, with
    :math:`h_2(\eta) = -\eta \log_2 \eta - (1 - \eta) \log_2 (1 - \eta)`. Without noise it is
    `statistical_limit`, and with one example less no method names S more than half of the time. At
    strong noise it tends to :math:`2 \ln \binom{n}{k} / (1 - 2 \eta)^2`; a decoder succeeds half of
    the time at up to a fifth less, for half of the samples have fewer flips than the average.
    """
    check_size("information_limit", n, k)
    check_noise("information_limit", noise)
    entropy = -sum(p * log2(p) for p in (noise, 1 - noise) if p)
    return statistical_limit(n, k) / (1 - entropy)


def search_samples(n: int, k: int, *, noise: float = 0.0) -> float:
    r"""Return the m at which S is the only set that fits, half of the time.

    :math:`e^{-(N - 1) 2^{-m}} = 1/2` at :math:`m = \log_2((N - 1) / \ln 2)`, with
    :math:`N = \binom{n}{k}`: half an example above `statistical_limit`.
    """
    check_size("search_samples", n, k)
    check_noise("search_samples", noise)
    if noise:
        return inf
    return max(0.0, log2((comb(n, k) - 1) / log(2))) if comb(n, k) > 1 else 0.0


def search_operations(n: int, k: int, m: int) -> float:
    """Count N = C(n, k) checks of a word, the table of their beginnings, and S on what is left."""
    t = lower_size(n, k)
    return comb(n, k) + table_operations(n, t) + k * max(0, n_words(m) - 1)


def elimination_samples(n: int, k: int, *, noise: float = 0.0, max_free: int = 16) -> float:
    r"""Return the m at which elimination has rank n − max_free, and no wrong set fits.

    m random equations in n unknowns are independent with probability
    :math:`\prod_{i = n - m + 1}^{n} (1 - 2^{-i})`: 0.29 at m = n, 0.58 at m = n − 1, and of n + 1
    equations n are independent with probability 0.58. So m = n − max_free, or n + 1 for plain
    elimination, max_free = 0; never less than `search_samples`.
    """
    rank = n - max_free if max_free else n + 1
    return max(float(rank), search_samples(n, k, noise=noise))


def elimination_operations(n: int, k: int, m: int, *, max_free: int = 16) -> float:
    """Count min(n, m) pivots, each added to m / 2 − 1 rows of ⌈(n + 1) / 64⌉ words.

    Half of the rows have a bit in the pivot's column, and the pivot is one of them. About
    n² m / 128 in all; and 2^(n − m) sets of ⌈n / 64⌉ words to list, if they are few enough.
    """
    rank = min(n, m)
    listed = 2 ** (n - rank) * n_words(n) if n - rank <= max_free else 0
    return rank * max(0, m / 2 - 1) * n_words(n + 1) + listed


def guess_success(n: int, k: int, m: float, *, budget: int | None = None) -> float:
    r"""Return the probability that the first of `budget` random sets that fits is S.

    A guess is S with :math:`p = 1/N`, and a wrong set that fits with :math:`q = (1 - p) 2^{-m}`:
    :math:`\frac{p}{p + q} (1 - (1 - p - q)^{\text{budget}})`. For a large sample and a small budget
    this is budget / N.
    """
    check_size("guess_success", n, k)
    candidates = comb(n, k)
    budget = candidates if budget is None else budget
    p = 1 / candidates
    q = (1 - p) * exp2(-m)
    if p + q >= 1:
        return p if budget else 0.0
    return -p / (p + q) * expm1(budget * log1p(-p - q))


def guess_samples(n: int, k: int, *, noise: float = 0.0, budget: int | None = None) -> float:
    """Return the smallest whole m at which `guess_success` is ½; ∞ for a budget below N ln 2."""
    check_noise("guess_samples", noise)
    if noise or guess_success(n, k, inf, budget=budget) < 0.5:
        return inf
    found = first_true(lambda m: guess_success(n, k, m, budget=budget) >= 0.5, largest=10**4)
    return inf if found is None else found


def guess_operations(n: int, k: int, m: int, *, budget: int | None = None) -> float:
    """Count k columns per guess, at most: guessing ends at the first set that fits."""
    return k * (comb(n, k) if budget is None else budget)


def decoder_success(n: int, k: int, m: int, *, noise: float = 0.0) -> float:
    r"""Return the probability that S has fewer wrong labels than any other set.

    S has :math:`D \sim \mathrm{Bin}(m, \eta)` wrong labels; a wrong set's number is
    :math:`\mathrm{Bin}(m, 1/2)`, independent of D. Taking the wrong sets as independent of each
    other, the probability is :math:`E (1 - F(D))^{N - 1}` with F the
    distribution function of the latter.
    """
    from scipy.stats import binom  # slow to import, and few need it

    check_size("decoder_success", n, k)
    check_noise("decoder_success", noise)
    wrong = np.arange(m + 1)
    # F(m) = 1, whose logarithm is not needed: the sum's last term is 0 unless S is the only set.
    beaten = np.minimum(binom.cdf(wrong, m, 0.5), 1 - 2.0**-53)
    best = np.exp((comb(n, k) - 1) * np.log1p(-beaten))
    return float(binom.pmf(wrong, m, noise) @ best)


def decoder_samples(n: int, k: int, *, noise: float = 0.0) -> float:
    r"""Return the smallest whole m at which `decoder_success` is ½.

    Of the order of `information_limit` at any noise. It serves for the transform as well, and for
    regression while m ≪ C(n, k); under noise the latter needs an example or two fewer, for it
    decides where the decoder sees a tie.
    """
    found = first_true(lambda m: decoder_success(n, k, m, noise=noise) >= 0.5, largest=2**20)
    return inf if found is None else found


def decoder_operations(n: int, k: int, m: int) -> float:
    """Count ⌈m / 64⌉ words of every set, and of the table of their beginnings."""
    width = max(1, n_words(m))
    return width * (comb(n, k) + table_operations(n, lower_size(n, k, width)))


def walsh_operations(n: int, k: int, m: int) -> float:
    """Count n rounds of 2^n additions, after m to sum the labels; the same for every k."""
    return m + n * 2.0**n


def regression_operations(n: int, k: int, m: int) -> float:
    """Count m² ⌈n / 64⌉ for the kernel, m³ for its inverse, m C(n, k) for the coefficients."""
    return m * m * n_words(n) + m**3 + m * comb(n, k)
