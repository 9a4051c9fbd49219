"""Runs that are to be carried out, perhaps a million: of each its key, its seed and its cell."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from operator import attrgetter, is_
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from petridish.training import RunSpec, cell_text
from petridish.training.key_set import KEY, Keys, KeySet, as_bytes, as_texts
from petridish.training.keys import keys_like

_all_but_seed = attrgetter(*(part.name for part in fields(RunSpec) if part.name != "seed"))
CHUNK = 4096  # runs whose seeds and cells are read at a time


@dataclass(frozen=True, slots=True)
class _Table:
    """Runs in an order; of each cell the first run is kept."""

    cells: list[RunSpec]
    cell: NDArray[np.uint32]
    seed: NDArray[np.uint64]
    key: Keys


class Planned(Sequence[RunSpec]):
    """Runs in an order, each once, whose specs are made when they are asked for.

    A run takes 28 bytes (its key 16, its seed 8, the number of its cell 4) beside what its cell
    takes, and 4 more in each selection. Pickled, it is the tuple of the specs.
    """

    __slots__ = ("_places", "_table")

    def __init__(self, table: _Table, places: NDArray[np.uint32]) -> None:
        self._table, self._places = table, places

    @classmethod
    def of(cls, specs: Iterable[RunSpec]) -> Planned:
        """Return runs by their specs; one that is repeated keeps its first place."""
        cells: list[RunSpec] = []
        numbers: dict[tuple[str, int], int] = {}
        cell, seed, keys = array("I"), array("Q"), bytearray()
        last: tuple[object, ...] | None = None
        for spec in specs:
            parts = _all_but_seed(spec)
            if last is None or not all(map(is_, parts, last)):  # neighbours share theirs
                last, key = parts, keys_like(spec)
                number = numbers.setdefault((cell_text(spec), spec.restart), len(cells))
                if number == len(cells):
                    cells.append(spec)
            cell.append(number)
            seed.append(spec.seed)
            keys += key(spec.seed)
        columns = np.array(cell, np.uint32), np.array(seed, np.uint64)
        table = _Table(cells, *columns, np.frombuffer(keys, KEY))
        firsts = np.unique(table.key, return_index=True)[1]
        return cls(table, np.sort(firsts).astype(np.uint32))

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[RunSpec]:
        cells = self._table.cells
        for start in range(0, len(self), CHUNK):
            places = self._places[start : start + CHUNK]
            seeds = self._table.seed[places].tolist()
            for number, seed in zip(self._table.cell[places].tolist(), seeds, strict=True):
                cell = cells[number]
                yield cell if cell.seed == seed else replace(cell, seed=seed)

    @overload
    def __getitem__(self, place: int) -> RunSpec: ...
    @overload
    def __getitem__(self, place: slice) -> Planned: ...
    def __getitem__(self, place: int | slice) -> RunSpec | Planned:
        if isinstance(place, slice):
            return Planned(self._table, self._places[place])
        return next(iter(self.at([place])))

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (tuple(self),)

    @property
    def _keys(self) -> Keys:
        return self._table.key[self._places]

    def run_keys(self) -> Iterator[str]:
        """Yield the key of each run."""
        return as_texts(self._keys)

    def items(self) -> Iterator[tuple[str, RunSpec]]:
        """Yield the key and the spec of each run."""
        return zip(self.run_keys(), self, strict=True)

    def counted(self) -> Iterator[tuple[RunSpec, int]]:
        """Yield one run of each cell, and how many there are of it."""
        numbers, counts = np.unique(self._table.cell[self._places], return_counts=True)
        for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
            yield self._table.cells[number], count

    def among(self, keys: Iterable[str]) -> tuple[Planned, Planned]:
        """Return the runs whose keys are among some, and the others."""
        if isinstance(keys, KeySet):
            return self._divided(keys.has(self._keys))
        return self._divided(np.isin(self._keys, as_bytes(keys)))

    def at(self, places: Sequence[int]) -> Planned:
        """Return the runs at some places."""
        return Planned(self._table, self._places[np.array(places, np.intp)])

    def also(self, others: Iterable[Planned]) -> Planned:
        """Return these runs and then others, all of which were selected from the same."""
        parts = [self, *others]
        assert all(part._table is self._table for part in parts), "of one generation"
        return Planned(self._table, np.concatenate([part._places for part in parts]))

    def _divided(self, chosen: NDArray[np.bool_]) -> tuple[Planned, Planned]:
        chosen_places, others = self._places[chosen], self._places[~chosen]
        return Planned(self._table, chosen_places), Planned(self._table, others)

    def grouped(self, label: Callable[[RunSpec], Hashable]) -> dict[Any, Planned]:
        """Divide runs by a label of their cells; each part keeps the order of the whole."""
        numbers, cells = np.unique(self._table.cell[self._places], return_inverse=True)
        labels: dict[Hashable, int] = {}
        of_cell = [
            labels.setdefault(label(self._table.cells[number]), len(labels))
            for number in numbers.tolist()
        ]
        group = np.array(of_cell, np.uint32)[cells]
        order = np.argsort(group, kind="stable")
        starts = np.searchsorted(group[order], np.arange(len(labels) + 1))
        return {
            name: Planned(self._table, self._places[order[starts[place] : starts[place + 1]]])
            for name, place in labels.items()
        }


def one_of_each_cell(specs: Sequence[RunSpec]) -> Iterable[RunSpec]:
    """Return specs that have all parts of some; of runs that are planned, one per cell."""
    return (cell for cell, _ in specs.counted()) if isinstance(specs, Planned) else specs
