"""How many supports explain a sample: all of them are counted, many examples at a time.

A hypothesis is a Boolean function of s bits at s of n places. Examples are the bits of words, one
column of words per place, so that a set of places is tried on 64 examples at once. Sets are built
up place by place, and one whose values on some example leave no way to its label is dropped at
once.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from petridish.seeds import Words, pack_bits

Bools = NDArray[np.bool_]
AT_ONCE = 500_000  # sets of places looked at together: 4 MB of words
ALL = np.uint64(2**64 - 1)


def columns_of(bits: Bools) -> Words:
    """Return the examples of each place as words, shape (place, word), from (example, place)."""
    return pack_bits(bits.T.astype(np.uint8))


def relevant_table(table: Bools) -> Bools:
    """Return a table of the bits on which another one depends, shape (2, …, 2)."""
    for place in reversed(range(table.ndim)):
        off, on = np.take(table, 0, place), np.take(table, 1, place)
        if np.array_equal(off, on):
            table = off
    return table


def orders(table: Bools) -> tuple[Bools, ...]:
    """Return the different tables that a function has when its bits are named in other orders."""
    found = {}
    for order in permutations(range(table.ndim)):
        turned = table.transpose(order)
        found[turned.tobytes()] = turned
    return tuple(found.values())


def explaining(bits: Bools, labels: Bools, table: Bools, *, most: int) -> int:
    """Count the functions with a sample's labels, up to `most` of them.

    Parameters
    ----------
    bits : array of bool, shape (example, place)
        The sample's inputs.
    labels : array of bool, shape (example,)
        And its labels.
    table : array of bool, shape (2,) * s
        The value of the function at each setting of its bits. Functions that agree everywhere
        are one: sets are counted once, in each of the orders that matter.
    most : int
        Where to stop.
    """
    table = relevant_table(table)
    if not table.ndim:  # a constant is one function, wherever it looks
        return min(most, int((labels == bool(table)).all()))
    columns, target = columns_of(bits), columns_of(labels[:, None])[0]
    found = 0
    for turned in orders(table):
        for some in _fitting(columns, target, turned, len(labels)):
            found += some
            if found >= most:
                return most
    return found


def _fitting(columns: Words, target: Words, table: Bools, examples: int) -> Iterator[int]:
    """Yield how many increasing sets of places fit, a few at a time."""
    n, s = len(columns), table.ndim
    valid = columns_of(np.ones((examples, 1), np.bool_))[0]  # the last word may be short
    sets = np.zeros((1, 0), np.int64)
    for size in range(1, s):
        grown = []
        for some in _extended(sets, n, s - size):
            kept = np.ones(len(some), np.bool_)
            for word in range(len(target)):
                own = columns[:, word][some[kept]]  # (set, place of it)
                wrong = _lost(own, target[word], table) & valid[word]
                kept[kept] = wrong == 0
            grown.append(some[kept])
        sets = np.concatenate(grown) if grown else np.zeros((0, size), np.int64)
    yield from _last_places(columns, target, valid, table, sets)


def _extended(sets: NDArray[np.int64], n: int, left: int) -> Iterator[NDArray[np.int64]]:
    """Yield the sets with one further, larger place each, of which `left` more must fit in."""
    step = max(1, AT_ONCE // max(1, n))
    for start in range(0, len(sets), step):
        some = sets[start : start + step]
        last = some[:, -1] if some.shape[1] else np.full(len(some), -1)
        row, place = np.nonzero(np.arange(n - left)[None] > last[:, None])
        yield np.concatenate([some[row], place[:, None]], axis=1)


def _lost(own: Words, target: np.uint64, table: Bools) -> Words:
    """Return the examples on which the values of a set's places leave no way to the label."""
    size = own.shape[1]
    lost = np.zeros(len(own), np.uint64)
    for setting in np.ndindex(*(2,) * size):
        rest = table[setting]
        can = (target if rest.any() else np.uint64(0)) | (~target if not rest.all() else 0)
        if can == ALL:
            continue
        here = np.full(len(own), ALL)
        for place, value in enumerate(setting):
            here &= own[:, place] if value else ~own[:, place]
        lost |= here & ~np.uint64(can)
    return lost


def _last_places(
    columns: Words, target: Words, valid: Words, table: Bools, sets: NDArray[np.int64]
) -> Iterator[int]:
    """Yield how many sets fit with one further place, word after word of those that still do.

    Of a set without its last place each example says that the last bit must be 1, or 0, or does
    not matter.
    """
    n, size = len(columns), sets.shape[1]
    one, care = (np.zeros((len(sets), len(target)), np.uint64) for _ in range(2))
    for setting in np.ndindex(*(2,) * size):
        off, on = bool(table[(*setting, 0)]), bool(table[(*setting, 1)])
        if off == on:
            continue
        here = np.full((len(sets), len(target)), ALL)
        for place, value in enumerate(setting):
            own = columns[sets[:, place]]
            here &= own if value else ~own
        care |= here
        one |= here & (target if on else ~target)
    care &= valid
    one &= care
    step = max(1, AT_ONCE // max(1, n))
    for start in range(0, len(sets), step):
        some = slice(start, start + step)
        last = sets[some, -1] if size else np.full(len(sets[some]), -1)
        first = care[some, 0, None] & (columns[None, :, 0] ^ one[some, 0, None])
        row, last_place = np.nonzero((first == 0) & (np.arange(n)[None] > last[:, None]))
        for word in range(1, len(target)):
            differs = care[some][row, word] & (columns[last_place, word] ^ one[some][row, word])
            row, last_place = row[differs == 0], last_place[differs == 0]
        yield len(row)
