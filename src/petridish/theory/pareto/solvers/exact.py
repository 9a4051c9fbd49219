"""Solvers for noiseless labels: elimination, exhaustive search, guessing."""

from __future__ import annotations

from math import comb

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError, check_whole
from petridish.seeds import Words, n_words, pack_bits, unpack_bits
from petridish.theory.pareto.solvers.candidates import (
    check_candidates,
    lower_size,
    subset_xors,
    table_operations,
    unrank,
    upper_sets,
)
from petridish.theory.pareto.solvers.sample import (
    Answer,
    Bits,
    Support,
    check_sample,
    pack_columns,
)

MOST_FREE = 24  # 2^24 members of a word each are 128 MB
BLOCK = 2**12  # guesses checked at a time


def eliminate(inputs: Words, labels: Bits, *, n: int, k: int, max_free: int = 16) -> Answer:
    r"""Solve for S by Gaussian elimination over GF(2).

    With bits for signs, a label is the inner product of its input with the indicator of S, mod 2:
    m equations in n unknowns. At rank n they have one solution, the parity of whatever weight. At a
    lower rank the solutions are an affine space of :math:`2^{n - \mathrm{rank}}` members; if they
    are no more than :math:`2^{\text{max\_free}}`, all are looked at, and those of weight k counted.

    Parameters
    ----------
    max_free : int, default=16
        Most free unknowns; 0 is plain elimination, which waits for rank n.

    Returns
    -------
    answer : Answer
        With the support if exactly one member has weight k. `fits` is 0 if the equations contradict
        each other (noise) or no member has weight k, and None if the space is too large.
    """
    check_sample("eliminate", inputs, labels, n, k)
    check_whole("eliminate", 0, max_free=max_free)
    if max_free > MOST_FREE:
        raise UserError(
            f"eliminate: max_free={max_free} would list 2^{max_free} sets. "
            f"Give at most {MOST_FREE}."
        )
    rows = np.zeros((len(inputs), n_words(n + 1)), np.uint64)
    rows[:, : inputs.shape[1]] = inputs
    rows[:, n // 64] |= labels.astype(np.uint64) << np.uint64(n % 64)  # column n: the label
    pivots, operations = reduce_rows(rows, n)

    free = n - len(pivots)
    contradiction = bool(rows[len(pivots) :].any())  # 0 = 1: only the label is left of a row
    if contradiction or free > max_free:
        return Answer(support=None, fits=0 if contradiction else None, operations=operations)
    members = solutions(rows, pivots, n)
    operations += members.size
    fitting = members[np.bitwise_count(members).sum(axis=1) == k]
    if len(fitting) != 1:
        return Answer(support=None, fits=len(fitting), operations=operations)
    support = tuple(np.flatnonzero(unpack_bits(fitting[0])).tolist())
    return Answer(support=support, fits=1, disagreements=0, operations=operations)


def reduce_rows(rows: Words, n: int) -> tuple[list[int], int]:
    """Bring packed rows to reduced echelon form in place, over their first `n` columns.

    Returns
    -------
    pivots : list of int
        Row i is the only one with a bit in column pivots[i]; rows beyond have none of the n.
    operations : int
        Words that were added to others.
    """
    pivots: list[int] = []
    operations = 0
    for column in range(n):
        rank = len(pivots)
        if rank == len(rows):
            break
        has = (rows[:, column // 64] >> np.uint64(column % 64) & np.uint64(1)).astype(np.bool_)
        pivot = rank + int(has[rank:].argmax())
        if not has[pivot]:
            continue
        rows[[rank, pivot]] = rows[[pivot, rank]]
        has[[rank, pivot]] = False, has[rank] and pivot != rank
        rows[has] ^= rows[rank]
        operations += int(has.sum()) * rows.shape[1]
        pivots.append(column)
    return pivots, operations


def solutions(rows: Words, pivots: list[int], n: int) -> Words:
    """List the solutions of consistent, reduced rows, packed, shape (2^(n − rank), word)."""
    reduced = unpack_bits(rows[: len(pivots)])
    free = np.setdiff1d(np.arange(n), pivots)
    basis = np.zeros((1 + len(free), n), np.uint8)  # a solution, then the kernel's basis
    basis[0, pivots] = reduced[:, n]
    basis[1 + np.arange(len(free)), free] = 1
    basis[1:, pivots] = reduced[:, free].T
    packed = pack_bits(basis)
    members = packed[:1]
    for vector in packed[1:]:
        members = np.concatenate([members, members ^ vector])
    return members


def search(inputs: Words, labels: Bits, *, n: int, k: int, max_candidates: int = 10**10) -> Answer:
    """Try all C(n, k) sets, on the first 64 examples; those that pass, on the rest [PF §3.2].

    A wrong set passes 64 examples with probability 2^−64, so the rest costs next to nothing, and
    the first word of each column decides the time.

    Parameters
    ----------
    max_candidates : int
        More sets than these are refused before anything starts.

    Returns
    -------
    answer : Answer
        With the support if exactly one set explains all labels; `fits` counts those that do.
    """
    check_sample("search", inputs, labels, n, k)
    check_candidates("search", n, k, max_candidates)
    columns, target = pack_columns(inputs, labels, n)
    t = lower_size(n, k)
    table = subset_xors(columns[:, :1], t)[0]
    operations = table_operations(n, t) + comb(n, k)

    fits = 0
    support: Support | None = None
    for upper, count in upper_sets(n, k, t):
        wanted = target[0] ^ np.bitwise_xor.reduce(columns[upper, 0])
        passed = np.flatnonzero(table[:count] == wanted)
        if not len(passed):
            continue
        lower = unrank(passed, n, t)
        sets = np.hstack([lower, np.tile(upper, (len(passed), 1)).astype(np.int64)])
        alive, words = explaining(columns[:, 1:], target[1:], sets)
        operations += words
        fits += len(alive)
        if len(alive):
            support = tuple(sets[alive[0]].tolist())
    return Answer(
        support=support if fits == 1 else None,
        fits=fits,
        disagreements=0 if fits else None,
        operations=operations,
    )


def explaining(
    columns: Words, target: Words, sets: NDArray[np.int64]
) -> tuple[NDArray[np.int64], int]:
    """Find the `sets` (set, k) that explain all labels; a set is dropped at its first wrong word.

    Returns
    -------
    alive : array
        Places in `sets`.
    operations : int
        Words that were combined, k a set and word.
    """
    alive = np.arange(len(sets))
    operations = 0
    for word in range(len(target)):
        operations += sets[alive].size
        found = np.bitwise_xor.reduce(columns[:, word][sets[alive]], axis=1)
        alive = alive[found == target[word]]
        if not len(alive):
            break
    return alive, operations


def guess(
    inputs: Words,
    labels: Bits,
    *,
    n: int,
    k: int,
    rng: np.random.Generator,
    budget: int | None = None,
) -> Answer:
    """Try random sets and take the first that explains the labels: luck for time [PF §3.2].

    Parameters
    ----------
    rng : numpy Generator
        Draws the sets, independent and uniform, so some come twice.
    budget : int, optional
        Sets to try; C(n, k) if not given, which finds S with probability 1 − 1/e.

    Returns
    -------
    answer : Answer
        Never known to be unique: sets that were not tried may fit as well.
    """
    check_sample("guess", inputs, labels, n, k)
    budget = comb(n, k) if budget is None else budget
    check_whole("guess", 0, budget=budget)
    columns, target = pack_columns(inputs, labels, n)
    operations = 0
    support: Support | None = None
    for start in range(0, budget, BLOCK):
        sets = random_sets(n, k, min(BLOCK, budget - start), rng)
        alive, words = explaining(columns, target, sets)
        operations += words
        if len(alive):
            support = tuple(sets[alive[0]].tolist())
            break
    return Answer(
        support=support, disagreements=None if support is None else 0, operations=operations
    )


def random_sets(n: int, k: int, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw k-sets of {0 … n − 1}, uniform and independent, rising, shape (count, k).

    By Floyd's algorithm: for j = n − k … n − 1 draw t ≤ j, and take t, or j where t is taken.
    """
    tops = np.arange(n - k, n)
    chosen = rng.integers(0, tops + 1, size=(count, k))
    for place in range(1, k):
        taken = (chosen[:, :place] == chosen[:, place, None]).any(axis=1)
        chosen[:, place] = np.where(taken, tops[place], chosen[:, place])
    return np.sort(chosen, axis=1)
