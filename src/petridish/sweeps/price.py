"""What a sweep costs before it runs: runs, model-steps, and time from a calibration."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache

from petridish.models import MLP, FitsItself, Homogeneous, Stacked
from petridish.sweeps.allocation import Search, chooses, simulate
from petridish.sweeps.batches import cores, run_cost
from petridish.sweeps.generations import with_parents
from petridish.sweeps.planned import Planned
from petridish.sweeps.sweep import Sweep
from petridish.tasks import Classes, GroupProduct, SparseParity
from petridish.tasks.table import find_table
from petridish.training import (
    Adam,
    CrossEntropy,
    Data,
    Evaluation,
    Instrument,
    NeuronNorm,
    RunSpec,
    Silent,
    Training,
    choose_engine,
    parents_of,
)
from petridish.training.devices import CPU, Device

CALIBRATION_WIDTHS = (10, 100, 1000)
CALIBRATION_SECONDS = 0.6
CALIBRATION_RUNS = 64  # trained at once: more take longer and cost the same per step
TIMED = 4  # cells of each class of modules: some take a second to time, and a sweep has hundreds


@dataclass(frozen=True)
class Price:
    """The cost of a sweep on this machine if no run ends early: an upper bound.

    `parents` are further runs, from which those of the sweep begin. Of a sweep that chooses its
    runs, `chosen` are the fewest and the most of them if it is clear which succeed; model-steps and
    seconds are those of the most. `longest` are the seconds of the longest run on one core, where
    runs are not stacked: no number of machines is quicker.
    """

    runs: int
    model_steps: int
    seconds: float
    jobs: int
    parents: int = 0
    chosen: tuple[int, int] | None = None
    longest: float = 0.0

    def on_machines(self, count: int) -> float:
        """Return the seconds on several such machines: at least those of the longest run."""
        return max(self.seconds / count, self.longest)


@dataclass(frozen=True)
class Speeds:
    """Seconds per model-step on one core, at several amounts of work (multiplications per step)."""

    work: tuple[float, ...]
    seconds: tuple[float, ...]

    def of(self, spec: RunSpec) -> float:
        """Estimate the seconds a model-step of `spec` takes on one core.

        Between the calibrated amounts of work by a power law; above them in proportion to the
        work; below them as the smallest.
        """
        work = work_of(spec)
        if work <= self.work[0]:
            return self.seconds[0]
        if work >= self.work[-1]:
            return self.seconds[-1] * work / self.work[-1]
        above = next(i for i, known in enumerate(self.work) if known >= work)
        share = math.log(work / self.work[above - 1]) / math.log(
            self.work[above] / self.work[above - 1]
        )
        return math.exp(
            (1 - share) * math.log(self.seconds[above - 1]) + share * math.log(self.seconds[above])
        )


def work_of(spec: RunSpec) -> float:
    """Count the multiplications of a step, about: every weight at every answer."""
    weights, target = sum(parameter.size for parameter in spec.parameters), spec.domain.target
    answers = (target.positions or 1) if isinstance(target, Classes) else 1
    return float(spec.examples_per_step * answers * weights)


def _on_bits(width: int) -> RunSpec:
    return RunSpec(
        task=SparseParity(50, 20),  # not to be learned: every run uses its whole budget
        data=Data(m=1000, n_test=1000),
        model=MLP(width=width),
        training=Training(steps=20),
    )


def _on_a_table(width: int) -> RunSpec:
    table = find_table("breast_cancer")  # it is always there
    return RunSpec(
        task=table,
        data=Data(m=500, n_test=table.n_test_rows),
        model=MLP(width=width, deeper=(width,)),
        training=Training(
            loss=CrossEntropy(), optimiser=Adam(), batch_size=256, steps=20, target_error=None
        ),
        evaluation=Evaluation(fitted_error=None),
    )


def calibrate(
    engine: str = "auto",
    widths: Sequence[int] = CALIBRATION_WIDTHS,
    base_of: Callable[[int], RunSpec] = _on_bits,
) -> Speeds:
    """Time short runs of three widths on this machine, a couple of seconds in all."""
    work, seconds = [], []
    for width in widths:
        base = base_of(width)
        chosen = choose_engine(base, engine)
        most = 2 if chosen.name == "wide" else CALIBRATION_RUNS  # which takes them in turn
        stack = min(most, chosen.stack_size(base))
        specs = [replace(base, seed=seed) for seed in range(stack)]
        _timed(chosen.name, specs)  # the first call imports and warms up
        taken = _timed(chosen.name, specs)
        steps = max(20, int(20 * CALIBRATION_SECONDS / taken))
        longer = [replace(spec, training=replace(spec.training, steps=steps)) for spec in specs]
        work.append(work_of(base))
        seconds.append(_timed(chosen.name, longer) / (steps * len(specs)))
    return Speeds(tuple(work), tuple(seconds))


def _timed(engine: str, specs: Sequence[RunSpec], device: Device = CPU) -> float:
    started = time.perf_counter()
    for _ in choose_engine(specs[0], engine).run(specs, Silent(), device):
        pass
    return time.perf_counter() - started


def seconds_here(spec: RunSpec, runs: int, workers: int, engine: str) -> float:
    """Estimate the seconds of runs that differ in their seed, on the CPU's workers.

    A run takes one of them, so that a few runs take as few.
    """
    workers = min(workers, runs)
    if is_timed(spec):
        return _module_seconds([(spec, runs)], workers) / workers
    return _cell_seconds(spec, runs, _usual_rates(engine), workers) / workers


@cache
def _usual_rates(engine: str) -> Speeds:
    return calibrate(engine)


Cells = Sequence[tuple[RunSpec, int]]
"""Runs, given by cell and number."""
Elsewhere = Callable[[Cells], tuple[Cells, float]]
"""Takes the runs of an accelerator: returns the others, and the seconds of those taken."""


def _nowhere(cells: Cells) -> tuple[Cells, float]:
    return cells, 0.0


def price(
    sweep: Sweep, rates: Speeds, *, jobs: int | None = None, elsewhere: Elsewhere = _nowhere
) -> Price:
    """Price a sweep by a calibration, its runs spread over all cores or `jobs` of them.

    Runs that an accelerator takes are `elsewhere`, and priced there.
    """
    workers = jobs or cores()
    if sweep.allocate is not None:
        search = sweep.allocate.search(sweep)
        return _price_of_choice(sweep, search, rates, workers, elsewhere)
    if not chooses(sweep):
        needing = (spec for spec in sweep.cells() if parents_of(spec[0]))
        runs = (replace(spec, seed=seed) for spec, seeds in needing for seed in seeds)
        cells = [(spec, len(seeds)) for spec, seeds in sweep.cells()]
        return _price(cells, _parents(runs), rates, workers, elsewhere)
    parts = [price(part, rates, jobs=jobs, elsewhere=elsewhere) for part in sweep.parts()]
    fewest, most = zip(*(part.chosen or (part.runs, part.runs) for part in parts), strict=True)
    return Price(
        len(sweep),
        sum(part.model_steps for part in parts),
        sum(part.seconds for part in parts),
        workers,
        sum(part.parents for part in parts),
        (sum(fewest), sum(most)),
        max(part.longest for part in parts),
    )


def _price_of_choice(
    sweep: Sweep, search: Search, rates: Speeds, workers: int, elsewhere: Elsewhere
) -> Price:
    """Price a sweep that chooses its runs, by how they may end."""
    found = []
    for scenario in search.scenarios():
        made = simulate(search, scenario).values()
        found.append(_price(_counted(made), _parents(made), rates, workers, elsewhere))
    most = max(found, key=lambda each: each.seconds)
    chosen = (min(each.runs for each in found), max(each.runs for each in found))
    return replace(most, runs=len(sweep), chosen=chosen)


def _price(
    cells: Cells, parents: Sequence[RunSpec], rates: Speeds, workers: int, elsewhere: Elsewhere
) -> Price:
    """Price runs, and those from which they begin."""
    every = [*cells, *_counted(parents)]
    steps = sum(spec.training.steps * runs for spec, runs in every)
    here, there = elsewhere(every)
    modules = [cell for cell in here if is_timed(cell[0])]
    seconds = _module_seconds(modules, workers)
    seconds += sum(
        _cell_seconds(spec, runs, rates, workers) for spec, runs in here if not is_timed(spec)
    )
    runs = sum(number for _, number in cells)
    plain = [spec for spec, _ in here if not is_timed(spec)]
    longest = max((_cell_seconds(spec, 1, rates, workers) for spec in plain), default=0.0)
    return Price(runs, steps, seconds / workers + there, workers, len(parents), longest=longest)


def _counted(specs: Iterable[RunSpec]) -> list[tuple[RunSpec, int]]:
    """Return how many runs there are of each cell."""
    return list(Counter(replace(spec, seed=0, restart=0) for spec in specs).items())


def _parents(specs: Iterable[RunSpec]) -> list[RunSpec]:
    """Return the runs that some runs need and that are none of them, each once."""
    runs = Planned.of(specs)
    asked = set(runs.run_keys())
    every = (item for generation in with_parents(runs).runs for item in generation.items())
    return [spec for key, spec in every if key not in asked]


def is_timed(spec: RunSpec) -> bool:
    """Whether nobody knows what a step costs: a module that needs no other run is timed."""
    return not isinstance(spec.model, Stacked | FitsItself) and not parents_of(spec)


def _module_seconds(cells: Sequence[tuple[RunSpec, int]], workers: int) -> float:
    """Estimate the seconds of runs of modules, on one core, from a few of their steps.

    Of the cells of one class of model, from the cheapest to the costliest, `TIMED` are timed; each
    other costs what the nearest of these does, in proportion to its work.
    """
    kinds: dict[type, list[tuple[RunSpec, int]]] = {}
    for spec, runs in cells:
        kinds.setdefault(type(spec.model), []).append((spec, runs))
    total = 0.0
    for kind in kinds.values():
        kind.sort(key=lambda cell: run_cost(cell[0]))
        last = len(kind) - 1
        places = sorted({round(last * part / (TIMED - 1)) for part in range(TIMED)})
        for place, (spec, runs) in enumerate(kind):
            timed, _ = kind[min(places, key=lambda known: abs(known - place))]
            engine = choose_engine(timed)
            size = min(engine.stack_size(timed), -(-runs // workers))
            seconds = timed_seconds(engine.name, timed, size) / size
            total += seconds * runs * run_cost(spec) / run_cost(timed)
    return total


def _cell_seconds(spec: RunSpec, runs: int, rates: Speeds, workers: int) -> float:
    """Estimate the seconds of runs that differ in their seed, on one core.

    By their model's own guess, by their steps, or, where they are stacked, by the stacks' too.
    """
    if isinstance(spec.model, FitsItself):
        return runs * spec.model.typical_seconds(int(spec.data.m), spec.domain.n_inputs)
    engine = choose_engine(spec)
    if engine.name == "torch":
        stacks = -(-runs // min(engine.stack_size(spec), -(-runs // workers)))
        call, work = _stack_rates()
        double = 2 if spec.training.precision == "float64" else 1
        return spec.training.steps * (call * stacks + double * work * work_of(spec) * runs)
    if engine.name == "wide":
        rates = _table_rates()
    return rates.of(spec) * spec.training.steps * runs


@lru_cache(maxsize=64)
def timed_seconds(engine: str, spec: RunSpec, size: int, device: Device = CPU) -> float:
    """Estimate the seconds of a stack of runs whose module nobody knows: by a few of their steps.

    Three short stacks tell what a step costs and what an evaluation does.
    """
    evaluation, steps = spec.evaluation, spec.training.steps
    few = min(10, evaluation.every, max(1, steps // 2))

    def seconds(taken: int, every: int) -> float:
        short = replace(
            spec,
            training=replace(spec.training, steps=taken),
            evaluation=replace(evaluation, every=every, at=(), instruments=_at_all(evaluation)),
        )
        return _timed(engine, [replace(short, seed=seed) for seed in range(size)], device)

    seconds(1, 1)  # the first call imports and warms up
    once, twice, seldom = seconds(few, few), seconds(2 * few, few), seconds(2 * few, 2 * few)
    evaluating = max(0.0, twice - seldom)
    step = max(0.0, twice - once - evaluating) / few
    evaluations = steps // evaluation.every + len(evaluation.at) + 1
    return steps * step + evaluations * evaluating


def _at_all(evaluation: Evaluation) -> tuple[Instrument, ...]:
    """Return the instruments that are read at every evaluation: the others' steps are left out."""
    return tuple(gauge for gauge in evaluation.gauges if gauge.at is None)


@cache
def _stack_rates() -> tuple[float, float]:
    """Return the seconds of a stack's step, and of each multiplication in it, on one core."""
    return measured_rates(CPU, runs=1)


def measured_rates(device: Device, *, runs: int) -> tuple[float, float]:
    """Measure the seconds of a stack's step, and of each multiplication in it, on a device.

    From two networks on a group: one so small that only the calls cost; of the other `runs` at a
    time, so that it is busy with products alone: on one core a single run fills the cache.
    """
    seconds = []
    for group, width, steps, stack in (("Z3", 4, 300, 1), ("Z31", 500, 15, runs)):
        task = GroupProduct(group)
        spec = RunSpec(
            task=task,
            data=Data(m=task.n_possible, n_test=task.n_possible, draws="distinct"),
            model=Homogeneous(width),
            training=Training(
                loss=CrossEntropy(), batch_size=None, steps=steps, penalty=NeuronNorm(1e-4, 2, 3)
            ),
            evaluation=Evaluation(every=steps, fitted_error=None),
        )
        specs = [replace(spec, seed=seed) for seed in range(stack)]
        short = [replace(each, training=replace(each.training, steps=2)) for each in specs]
        _timed("torch", short, device)
        seconds.append(_timed("torch", specs, device) / steps)
    call, large = seconds
    return call, max(0.0, large - call) / (work_of(spec) * runs)


@cache
def _table_rates() -> Speeds:
    return calibrate(base_of=_on_a_table)
