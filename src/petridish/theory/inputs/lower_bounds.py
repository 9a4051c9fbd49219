"""What fixed features and statistical queries cannot do [FL §4, App. C, D]."""

from __future__ import annotations

from math import comb, inf, sqrt

from petridish.errors import require


def fixed_feature_bound(k: int, features: int, norm: float, background: float = 0.5) -> float:
    """Return Theorem 2's least hinge loss, p_o (1 − √(2N) B / 2^k), or 0 where it is vacuous.

    Some distribution of FL's family, whose part without structure has the weight p_o, gives every
    linear model of norm at most B on N data-independent features in [−1, 1] at least this loss, for
    odd k with 3 < k ≤ D/16. With k = 5 and N = 600 it is vacuous for B > 0.93.

    Parameters
    ----------
    k : int
        Relevant patterns.
    features : int
        N, the dimension of the feature map.
    norm : float
        B, the bound on the norm of the linear model.
    background : float
        p_o, the weight of the part without structure.
    """
    _check("fixed_feature_bound", k, features, norm, background)
    return max(0.0, background * (1 - sqrt(2 * features) * norm / float(2**k)))


def parseval_bound(
    patterns: int, k: int, features: int, norm: float, background: float = 0.5
) -> float:
    r"""Return p_o (1 − B √(N / C(D, k))), a larger least hinge loss than Theorem 2's, any k.

    Let χ_A be the parity of the patterns A under the uniform distribution, and h = ⟨w, Ψ⟩. The
    hinge loss is at least 1 − y h, and on the part without structure, of weight p_o, its mean is at
    least :math:`1 - E\chi_A h = 1 - \langle w, E\chi_A\Psi\rangle \ge 1 - B\,\|E\chi_A\Psi\|`. The
    χ_A are orthonormal, so that Bessel's inequality for each of the N features gives
    :math:`\sum_A \|E\chi_A\Psi\|^2 \le \sum_i E\Psi_i^2 \le N`; of C(D, k) sets A, one has at most
    the mean. In the theorem's range C(D, k) ≥ 16^k, so that this is the larger bound. With D = 100,
    k = 5 and N = 600 it is above 0 for B < 354.

    Parameters
    ----------
    patterns, k : int
        D and the number of relevant patterns.
    features, norm, background
        As in `fixed_feature_bound`.
    """
    _check("parseval_bound", k, features, norm, background)
    require(
        k <= patterns,
        f"parseval_bound: k={k}, patterns={patterns}. Give at least k patterns.",
    )
    return max(0.0, background * (1 - norm * sqrt(features / comb(patterns, k))))


def vacuous_from(patterns: int, k: int, features: int) -> tuple[float, float]:
    """Return the norms B from which Theorem 2 and the bound of `parseval_bound` say nothing."""
    _check("vacuous_from", k, features, 1.0, 0.5)
    return 2**k / sqrt(2 * features), sqrt(comb(patterns, k) / features)


def query_dimension(patterns: int, k: int) -> int:
    """Return C(D, k): parities of k of D uniform bits are uncorrelated [FL Definition 31]."""
    require(
        0 <= k <= patterns,
        f"query_dimension: k={k}, patterns={patterns}. Give k from 0 to the number of patterns.",
    )
    return comb(patterns, k)


def query_bound(patterns: int, k: int) -> tuple[float, float]:
    """Return Theorem 4's bound: how many queries, or what 1/τ, an error below what needs.

    To learn all parities of k of D patterns without structure to an error below ½ − C(D, k)^{−3},
    an algorithm of statistical queries of tolerance τ needs ½ C(D, k)^{1/3} of them, or 1/τ of that
    size. For D = 100 and k = 5 these are 211 queries; a sample of 50 000 answers each to about
    τ = 0.004, 1/τ = 224: the bound does not forbid what FL-1 does not see.
    """
    dimension = query_dimension(patterns, k)
    return 0.5 * dimension ** (1 / 3), 0.5 - dimension**-3.0


def _check(name: str, k: int, features: int, norm: float, background: float) -> None:
    require(
        k >= 1 and features >= 1 and 0 <= norm < inf and 0 <= background <= 1,
        f"{name}: k={k}, features={features}, norm={norm}, background={background}. Give k and "
        "features of at least 1, a norm of at least 0, and a probability.",
    )
