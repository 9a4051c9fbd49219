"""The order of runs that need runs: parents before their children, each once."""

from __future__ import annotations

from dataclasses import dataclass, field

from petridish.errors import UserError
from petridish.sweeps.planned import Planned
from petridish.training import RunSpec, parents_of, run_key
from petridish.training.chains import parts_with_needs

LONGEST = 100  # generations: a chain that goes on for longer has no beginning


@dataclass(frozen=True)
class Generations:
    """Some runs, and all that they need: of a run all parents are in earlier generations.

    Attributes
    ----------
    runs : list of Planned
        The generations, the first first.
    parents : dict
        The keys of the parents of each run that has any, by its key.
    """

    runs: list[Planned] = field(default_factory=list)
    parents: dict[str, tuple[str, ...]] = field(default_factory=dict)


def with_parents(runs: Planned) -> Generations:
    """Sort runs, and all that they need."""
    if not any(parts_with_needs(cell) for cell, _ in runs.counted()):
        return Generations([runs])  # as nearly all sweeps are, however many runs they have
    generations, depth = list[list[RunSpec]](), dict[str, int]()
    parents_by_key: dict[str, tuple[str, ...]] = {}

    def place(key: str, spec: RunSpec, above: tuple[str, ...]) -> int:
        if key in depth:
            return depth[key]
        if key in above or len(above) > LONGEST:
            way = "leads back to itself" if key in above else "has no beginning"
            raise UserError(
                f"The run {key[:8]} needs other runs, and their chain {way}. Let a chain begin "
                "with a run that needs none."
            )
        parents = {run_key(parent): parent for parent in parents_of(spec)}
        if parents:
            parents_by_key[key] = tuple(parents)
        below = [place(name, parent, (*above, key)) for name, parent in parents.items()]
        depth[key] = 1 + max(below, default=-1)
        while len(generations) <= depth[key]:
            generations.append([])
        generations[depth[key]].append(spec)
        return depth[key]

    for key, spec in runs.items():
        place(key, spec, ())
    return Generations(list(map(Planned.of, generations)), parents_by_key)
