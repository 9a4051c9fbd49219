"""The keys of a million runs, in the sixteen bytes that each has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

import numpy as np
from numpy.typing import NDArray

from petridish.training.keys import KEY_BYTES

KEY = np.dtype(f"S{KEY_BYTES}")
Keys = NDArray[np.bytes_]
"""The bytes of keys, of the type `KEY`."""
FEW, SHARE = 4096, 8  # new keys wait until they are so many, and one in so many of all


def as_bytes(keys: Iterable[str]) -> Keys:
    """Return keys that are written in hexadecimal digits as their bytes."""
    return np.frombuffer(b"".join(map(bytes.fromhex, keys)), KEY)


def as_texts(keys: Keys) -> Iterator[str]:
    """Yield keys in hexadecimal digits."""
    step, digits = 4096, 2 * KEY_BYTES
    for start in range(0, len(keys), step):
        text = keys[start : start + step].tobytes().hex()
        yield from (text[place : place + digits] for place in range(0, len(text), digits))


class KeySet(Set[str]):
    """A growing set of keys: a sorted array, and a set of those that came since."""

    def __init__(self) -> None:
        self._sorted, self._new = np.empty(0, KEY), set[str]()

    @classmethod
    def _from_iterable(cls, it: Iterable[str]) -> set[str]:  # type: ignore[override] # what `&` makes
        return set(it)

    def add(self, keys: Iterable[str]) -> None:
        """Add keys."""
        found = list(dict.fromkeys(keys))
        known = self._is_sorted_in(as_bytes(found)).tolist()
        self._new.update(key for key, old in zip(found, known, strict=True) if not old)
        if len(self._new) > max(FEW, len(self._sorted) // SHARE):
            self._merge()

    def _merge(self) -> None:
        self._sorted = np.sort(np.concatenate([self._sorted, as_bytes(self._new)]), kind="stable")
        self._new.clear()

    def _is_sorted_in(self, keys: Keys) -> NDArray[np.bool_]:
        if not len(self._sorted):
            return np.zeros(len(keys), bool)
        places = np.searchsorted(self._sorted, keys)
        found: NDArray[np.bool_] = self._sorted[np.minimum(places, len(self._sorted) - 1)] == keys
        return found

    def has(self, keys: Keys) -> NDArray[np.bool_]:
        """Mark those of some keys that are in the set."""
        found = self._is_sorted_in(keys)
        if self._new:
            found |= np.isin(keys, as_bytes(self._new))
        return found

    def __contains__(self, key: object) -> bool:
        if not isinstance(key, str):
            return False
        return key in self._new or bool(self._is_sorted_in(as_bytes([key]))[0])

    def __iter__(self) -> Iterator[str]:
        yield from as_texts(self._sorted)
        yield from self._new

    def __len__(self) -> int:
        return len(self._sorted) + len(self._new)

    def __repr__(self) -> str:
        return f"<KeySet of {len(self)} keys>"
