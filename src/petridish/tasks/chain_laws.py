"""Laws of random transition matrices."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from petridish.seeds import Streams

Floats = NDArray[np.float64]
REJECTED_UP_TO = 6  # states; of 43 candidates one is then doubly stochastic, of 150 with one more
SWEEPS = 12  # of the chain on doubly stochastic matrices of more states


def flat_rows(uniforms: Floats, k: int) -> Floats:
    """Return rows with the law Dirichlet(1, …, 1), shape (…, k), from k − 1 uniforms each.

    They are the k gaps that k − 1 uniform points leave in [0, 1]; differences of them are exact.
    """
    points = np.sort(uniforms, axis=-1)
    gaps: Floats = np.diff(points, axis=-1, prepend=0.0, append=1.0)
    return gaps


def dirichlet_rows(uniforms: Floats, alpha: float) -> Floats:
    """Return rows with the law Dirichlet(α, …, α), from as many uniforms as entries."""
    from scipy.special import gammaincinv  # slow to import, and α is mostly 1

    sizes = gammaincinv(alpha, uniforms)
    # Of a small α the numbers may be too small for a float: one entry then takes all.
    lost = sizes.sum(axis=-1) <= 0
    sizes[lost, uniforms[lost].argmax(axis=-1)] = 1.0
    rows: Floats = sizes / sizes.sum(axis=-1, keepdims=True)
    return rows


def symmetric_rows(uniforms: Floats, k: int, epsilon: float) -> Floats:
    """Return matrices with a on the diagonal and (1 − a)/(k − 1) elsewhere [TH (E.44)].

    a is uniform on (½ − ε, ½ + ε). Shape (…, k, k), from one uniform each.
    """
    stay = 0.5 + epsilon * (2 * uniforms - 1)
    rows = np.broadcast_to(((1 - stay) / (k - 1))[..., None, None], (*stay.shape, k, k)).copy()
    rows[..., np.arange(k), np.arange(k)] = stay[..., None]
    return rows


def words_of_doubly(k: int) -> int:
    """Return how many uniform numbers a doubly stochastic matrix takes."""
    return k * (k - 1) if k <= REJECTED_UP_TO else SWEEPS * _rounds(k) ** 2 * (k // 2) ** 2


def doubly_rows(uniforms: Floats, k: int, seeds: list[int], purpose: str, start: int) -> Floats:
    """Return doubly stochastic matrices, uniform on their polytope, shape (run, example, k, k).

    Up to six states by rejection: k − 1 rows are uniform on their simplex, the last is what is
    left of each column; where that is negative, the matrix is drawn again. Attempt a of example i
    has its own words, so that no example depends on another. Beyond, by a chain that leaves the
    uniform law as it is (`_walked`).
    """
    if k > REJECTED_UP_TO:
        return _walked(uniforms, k)
    rows = with_last_row(uniforms, k)
    count, words, attempt = rows.shape[1], k * (k - 1), 0
    while (wrong := (rows[..., -1, :] < 0).any(axis=-1)).any():
        attempt += 1  # a sample's name has no space: this stream is no other's
        again = Streams(seeds, f"{purpose}/attempt {attempt}")
        drawn = again.uniforms(start * words, count * words)
        rows[wrong] = with_last_row(drawn.reshape(len(seeds), count, words)[wrong], k)
    return rows


def with_last_row(uniforms: Floats, k: int) -> Floats:
    """Return k rows whose columns have the sum 1: the last may be negative."""
    rows = flat_rows(uniforms.reshape(*uniforms.shape[:-1], k, k - 1), k)
    rows[..., -1, :] = 1 - rows[..., :-1, :].sum(axis=-2)
    return rows


def _rounds(k: int) -> int:
    """Return the rounds in which every two of k players meet once."""
    return k - 1 if k % 2 == 0 else k


def _pairs(k: int, round_: int) -> NDArray[np.int64]:
    """Return the ⌊k/2⌋ disjoint pairs of a round, shape (pair, 2), by the circle method."""
    players = k + k % 2
    turned = [(place + round_) % (players - 1) for place in range(players - 1)] + [players - 1]
    both = [(turned[i], turned[players - 1 - i]) for i in range(players // 2)]
    return np.array([pair for pair in both if max(pair) < k])


def _walked(uniforms: Floats, k: int) -> Floats:
    """Return the end of a chain on doubly stochastic matrices, from uniforms (…, word).

    It begins with equal entries. A move takes two rows and two columns, and draws the difference
    that keeps all sums and no entry negative uniformly from what it may be: the law given all other
    entries, so that the uniform law stays. Moves of disjoint rows and columns are made together;
    each sweep makes all.
    """
    shape = uniforms.shape[:-1]
    rows = np.full((*shape, k, k), 1 / k)
    half = k // 2
    drawn = uniforms.reshape(*shape, -1, half, half)
    place = 0
    for _ in range(SWEEPS):
        for of_rows in range(_rounds(k)):
            for of_columns in range(_rounds(k)):
                (i, m), (j, n) = _pairs(k, of_rows).T, _pairs(k, of_columns).T
                i, m, j, n = i[:, None], m[:, None], j[None, :], n[None, :]
                least = -np.minimum(rows[..., i, j], rows[..., m, n])
                most = np.minimum(rows[..., i, n], rows[..., m, j])
                change = least + (most - least) * drawn[..., place, :, :]
                for row, column, sign in ((i, j, 1), (m, n, 1), (i, n, -1), (m, j, -1)):
                    rows[..., row, column] += sign * change
                place += 1
    return np.maximum(rows, 0)
