"""The order of runs that need runs: parents before their children, each once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from petridish.errors import UserError
from petridish.training import RunSpec, parents_of, run_key

LONGEST = 100  # generations: a chain that goes on for longer has no beginning


@dataclass(frozen=True)
class Generations:
    """Runs by key, and all that they need: of a run all parents are in earlier generations.

    Attributes
    ----------
    runs : list of dict
        The generations, the first first.
    parents : dict
        The keys of the parents of each run that has any.
    """

    runs: list[dict[str, RunSpec]] = field(default_factory=list)
    parents: dict[str, tuple[str, ...]] = field(default_factory=dict)


def with_parents(by_key: Mapping[str, RunSpec]) -> Generations:
    """Sort runs, given by key, and all that they need."""
    found, depth = Generations(), dict[str, int]()

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
            found.parents[key] = tuple(parents)
        below = [place(name, parent, (*above, key)) for name, parent in parents.items()]
        depth[key] = 1 + max(below, default=-1)
        while len(found.runs) <= depth[key]:
            found.runs.append({})
        found.runs[depth[key]][key] = spec
        return depth[key]

    for key, spec in by_key.items():
        place(key, spec, ())
    return found
