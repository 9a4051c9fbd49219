"""Cutting a sweep into batches, each of one engine and one shape."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field

from petridish.errors import UserError
from petridish.models import FitsItself
from petridish.sweeps.generations import with_parents
from petridish.sweeps.planned import Planned
from petridish.tasks import LimitsData
from petridish.training import Data, Engine, RunSpec, choose_engine, load_engine
from petridish.training.chains import with_weights
from petridish.training.memory import IN_USE, check_memory, in_words, total_memory
from petridish.values import refuse_gone

MULTIPLICATIONS_A_SECOND = 1e10  # of one core, to weigh models that fit themselves


@dataclass(frozen=True, slots=True)
class Batch:
    """Runs that one call of one engine carries out.

    `cost` estimates the work if no run ends early, in multiplications.
    """

    engine: str
    specs: Sequence[RunSpec]
    parents: bool = False  # others begin from them: their last weights are kept
    device: str = "cpu"
    cost: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "cost", total_cost(self.specs))


def cores() -> int:
    """Count the cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class Room:
    """Memory of workers that are not on this machine, in bytes.

    `each` is what one of several runs on a worker has, `most` what a run has that is alone there.
    """

    each: float
    most: float


def run_cost(spec: RunSpec) -> float:
    """Estimate the work of one run; the constant is what a step costs however small the net."""
    if isinstance(spec.model, FitsItself):
        seconds = spec.model.typical_seconds(int(spec.data.m), spec.domain.n_inputs)
        return MULTIPLICATIONS_A_SECOND * seconds
    weights = sum(parameter.size for parameter in spec.parameters)
    return float(spec.training.steps) * (spec.examples_per_step * weights + 20_000)


def total_cost(specs: Iterable[RunSpec]) -> float:
    """Return the sum of `run_cost` over runs; those that differ in seed alone are priced once."""
    if isinstance(specs, Planned):
        return sum(run_cost(cell) * runs for cell, runs in specs.counted())
    known: dict[tuple[int, ...], float] = {}
    total, held = 0.0, []  # what is held keeps its identity
    for spec in specs:
        parts = id(spec.task), id(spec.data), id(spec.model), id(spec.training)
        if parts not in known:
            known[parts] = run_cost(spec)
            held.append(spec)
        total += known[parts]
    return total


def usual_size(engine: Engine, spec: RunSpec) -> int:
    """Return how many runs like this one an engine takes at once."""
    return engine.stack_size(spec)


def cut(
    specs: Iterable[RunSpec],
    *,
    engine: str,
    jobs: int,
    pieces: int | None = None,
    room: Room | None = None,
    parents: bool = False,
    device: str = "cpu",
    size_of: Callable[[Engine, RunSpec], int] = usual_size,
) -> list[Batch]:
    """Cut runs into batches that fit into memory; `parents` are runs from which others begin.

    `jobs` of them are carried out at a time, on this machine unless a `room` is given. Runs of one
    shape are cut into `pieces` at least, one for each of the jobs if that is not given. `size_of`
    says how many runs a batch may have, from its engine and its largest run.

    Runs stay in their order within a shape: neighbours in a grid end at similar times, and a stack
    whose runs end together is never nearly empty.
    """
    engines: dict[Hashable, Engine] = {}

    def shape(spec: RunSpec) -> tuple[str, Hashable]:
        what = (spec.task, spec.model, spec.training, spec.data.online, spec.evaluation)
        if what not in engines:
            engines[what] = choose_engine(with_weights(spec) if parents else spec, engine)
        return engines[what].name, engines[what].shape(spec)

    batches, needs = [], []
    there = Room(total_memory() / jobs, total_memory()) if room is None else room
    runs = specs if isinstance(specs, Planned) else Planned.of(specs)
    for (name, _), bucket in runs.grouped(shape).items():
        samples = {spec.data: spec for spec, _ in bucket.counted()}.values()
        needed = {spec: check_memory(spec, there.most) for spec in samples}
        largest = max(needed, key=needed.__getitem__)
        each = needed[largest]
        fitting = max(1, int(there.each / (IN_USE * each)))
        share = -(-len(bucket) // (pieces or jobs))
        size = min(size_of(load_engine(name), largest), share, fitting)
        starts = range(0, len(bucket), size)
        batches += [Batch(name, bucket[start : start + size], parents, device) for start in starts]
        needs += [each * size] * len(starts)
    if room is None:
        _check_together(sorted(needs, reverse=True)[:jobs])
    return batches


def _check_together(needs: Sequence[float]) -> None:
    """Refuse batches that do not fit into memory at the same time."""
    there = total_memory()
    if sum(needs) > there:
        raise UserError(
            f"{len(needs)} runs at a time need about {in_words(sum(needs))} of memory, and "
            f"there is {in_words(there)}. Give --jobs {max(1, int(there / needs[0]))}."
        )


def check_all(specs: Iterable[RunSpec], *, here: bool = True) -> Planned:
    """Refuse runs that cannot be carried out, and their parents; return them, each once.

    With `here` they must fit into the memory of this machine.
    """
    asked = Planned.of(specs)
    checked: set[Hashable] = set()
    samples: set[Data] = set()
    for generation in with_parents(asked).runs:
        for spec, _ in generation.counted():
            # Where the sample cannot be of any size, as on a table, each size is checked.
            limited = isinstance(spec.task, LimitsData) or spec.data.draws == "distinct"
            data, training = spec.data, spec.training
            what = (
                spec.task,
                spec.model,
                spec.init,
                (training.loss, training.schedule, training.penalty, training.weight_decay > 0),
                (training.stop, training.target_error, training.steps),
                spec.evaluation,
                data if limited else (data.online, data.label_noise > 0, data.accept),
            )
            new = what not in checked
            if new:
                refuse_gone(spec)
            if here and (new or spec.data not in samples):
                samples.add(spec.data)
                check_memory(spec)  # before anything is drawn to check it
            if new:
                spec.check()
                checked.add(what)
    return asked
