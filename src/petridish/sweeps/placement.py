"""On which device the runs of a sweep are carried out, and how many at a time.

An accelerator pays off where a step's products take longer than asking for them. What each costs is
measured, on the CPU and on the accelerator, by the same two networks (`price.measured_rates`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import cache

from petridish.choices import describe
from petridish.errors import UserError
from petridish.models import FitsItself
from petridish.sweeps import price
from petridish.sweeps.batches import usual_size
from petridish.sweeps.planned import Planned
from petridish.sweeps.progress import clock
from petridish.training import Engine, RunSpec, load_engine
from petridish.training.devices import CPU, Device, accelerator, find_device
from petridish.training.memory import in_words

MOST_RUNS = 4096  # of a stack: each has curves and a record on the host
CALLS = 0.2  # of a step's time may go into asking for it, where memory allows so large a stack
MEMORY = 0.8  # of what is free on the device is used: kernels need some of their own
MEASURED_RUNS = 32  # whose products keep an accelerator busy


class DoesNotFitError(UserError):
    """One run alone is too large for the memory of a device."""


@dataclass(frozen=True)
class Placed:
    """Runs of one device, the engine that is asked for, and the batches that share the device."""

    device: Device
    engine: str
    specs: Planned
    sharing: int = 1

    def size_of(self, engine: Engine, spec: RunSpec) -> int:
        """Return how many runs like this one are taken at once."""
        if self.device.host:
            return usual_size(engine, spec)
        return stack_size(self.device, engine, spec, self.sharing)


class Placement:
    """Where the runs of one call go: to the CPU, to a named device, or by what they gain.

    Parameters
    ----------
    jobs : int
        Batches that are carried out at a time, wherever.
    sharing : callable, optional
        Returns how many of these share a device of a name; all of them if it is not given.
    """

    def __init__(
        self,
        device: str,
        engine: str,
        jobs: int,
        sharing: Callable[[str], int] | None = None,
    ) -> None:
        self.name, self.engine, self.jobs = device, engine, jobs
        self._said: dict[str, None] = {}
        self._new: list[str] = []
        self.device = CPU
        if device == "auto":
            self.device = accelerator() or CPU
            if self.device.host:
                self._say("all runs take the CPU: PyTorch sees no accelerator here")
        else:
            self.device = find_device(device)
        if not self.device.host and engine != "auto" and not load_engine(engine).on_devices:
            if device != "auto":
                raise UserError(
                    f"The engine {engine} computes on the CPU alone, and --device {device} was "
                    "given. Give --engine torch, or --device cpu."
                )
            self._say(f"all runs take the CPU: the engine {engine} computes there alone")
            self.device = CPU
        self.sharing = sharing(self.device.name) if sharing and not self.device.host else jobs

    def _say(self, line: str) -> None:
        if line not in self._said:
            self._said[line] = None
            self._new.append(line)

    def news(self) -> list[str]:
        """Return what has been decided since this was last asked, a sentence each."""
        new, self._new = self._new, []
        return new

    def shares(self, specs: Planned) -> list[Placed]:
        """Divide runs among the device and the CPU; runs of one shape stay together."""
        if self.device.host:
            return [Placed(CPU, self.engine, specs)] if specs else []
        taken, _ = self._taken([(spec, 1) for spec in specs], timed=self.name == "auto")
        there = {place for places in taken.values() for place in places}
        here = [place for place in range(len(specs)) if place not in there]
        shares = [
            Placed(self.device, name, specs.at(places), self.sharing)
            for name, places in taken.items()
        ]
        return [*shares, *([Placed(CPU, self.engine, specs.at(here))] if here else [])]

    def elsewhere(self, cells: price.Cells) -> tuple[price.Cells, float]:
        """Return the cells that the CPU takes, and the seconds of the others on the device."""
        taken, seconds = self._taken(cells, timed=True)
        there = {place for places in taken.values() for place in places}
        return [cell for place, cell in enumerate(cells) if place not in there], seconds

    def _taken(self, cells: price.Cells, *, timed: bool) -> tuple[dict[str, list[int]], float]:
        """Return which cells the device takes, by engine, and about the seconds if asked for."""
        shapes: dict[tuple[str, Hashable], list[int]] = {}
        for place, (spec, _) in enumerate(cells):
            if name := self._engine_for(spec):
                shapes.setdefault((name, load_engine(name).shape(spec)), []).append(place)
        taken: dict[str, list[int]] = {}
        there = here = spent = 0.0
        for (name, _), places in shapes.items():
            spec, runs = cells[places[0]][0], sum(cells[place][1] for place in places)
            if self._stays_here(name, spec):
                continue
            on_device = 0.0
            if timed:
                try:
                    one = seconds_on(self.device, load_engine(name), spec, runs, self.sharing)
                    on_device = one / max(1, self.jobs // self.sharing)  # there are so many devices
                except DoesNotFitError:
                    if self.name != "auto":
                        raise
                    model, where = describe(spec.model), self.device.name
                    self._say(f"runs of {model} take the CPU: {where} has too little memory")
                    continue
            if self.name == "auto":
                on_cores = price.seconds_here(spec, runs, self.jobs, self.engine)
                there, here = there + on_device, here + on_cores
                if on_device >= on_cores:
                    continue
            spent += on_device
            taken.setdefault(name, []).extend(places)
        if not self.device.host and cells:
            runs = sum(cells[place][1] for places in taken.values() for place in places)
            self._say_shares(runs, sum(number for _, number in cells), there, here)
        return taken, spent

    def _stays_here(self, engine: str, spec: RunSpec) -> bool:
        """Note what makes the host wait for the device; return whether a run stays here for it."""
        device = self.device.name
        if engine == "reference":
            why = load_engine("torch").refusal(spec)
            if self.engine == "auto" and why:
                reason = why.partition(". The engine ")[0]
                self._say(f"runs of {describe(spec.model)} go one at a time: {reason}")
            return False
        from petridish.training.device_memory import asking

        in_step, in_metric = asking(replace(spec, seed=0, restart=0))
        if in_metric:
            self._say(f"{in_metric} asks for a number at evaluations: each waits for {device}")
        if in_step and self.name == "auto":
            self._say(
                f"runs of {describe(spec.model)} take the CPU: {in_step} asks for a number in "
                f"every step, and each would wait for {device}"
            )
            return True
        if in_step:
            self._say(f"{in_step} asks for a number in every step: each waits for {device}")
        return False

    def _engine_for(self, spec: RunSpec) -> str | None:
        """Return the engine that carries out a run on the device, if one can."""
        if self.device.host or isinstance(spec.model, FitsItself):
            return None
        if self.device.kind == "mps" and spec.training.precision == "float64":
            return None
        asked = ("torch", "reference") if self.engine == "auto" else (self.engine,)
        return next((name for name in asked if load_engine(name).refusal(spec) is None), None)

    def _say_shares(self, runs: int, of: int, there: float, here: float) -> None:
        device = self.device.describe()
        if self.name == "auto":
            self._say(
                f"{runs} of {of} runs take {device}: those that it serves would take about "
                f"{clock(there)} there, and {clock(here)} on {self.jobs} cores"
            )
        elif runs < of:
            self._say(f"{of - runs} of {of} runs take the CPU: {device} cannot serve them")


@cache
def device_rates(device: Device) -> tuple[float, float]:
    """Return the seconds of a stack's step on a device, and of each multiplication in it."""
    call, work = price.measured_rates(device, runs=MEASURED_RUNS)
    device.release()
    return call, max(work, 1e-16)


def stack_size(device: Device, engine: Engine, spec: RunSpec, jobs: int = 1) -> int:
    """Return how many runs like this one a device takes at once: as fast as can be, and no more.

    Enough that asking for a step costs little beside its products, if memory holds them.
    """
    if engine.name != "torch":
        return engine.stack_size(spec)
    from petridish.training.device_memory import memory_of_stacks

    there = MEMORY * device.free_memory() / jobs
    fixed, each = memory_of_stacks(replace(spec, seed=0, restart=0))
    if fixed + each > there:
        raise DoesNotFitError(
            f"A run of {describe(spec.model)} on {describe(spec.task)} needs about "
            f"{in_words(fixed + each)} on {device.name}, and there is {in_words(there)} for it. "
            "Give --device cpu, a smaller batch size or a smaller model."
        )
    call, work = device_rates(device)
    quick = math.ceil(call * (1 - CALLS) / CALLS / (work * price.work_of(spec)))
    return max(1, min(MOST_RUNS, quick, int((there - fixed) / each)))


def seconds_on(device: Device, engine: Engine, spec: RunSpec, runs: int, jobs: int = 1) -> float:
    """Estimate the seconds of runs that differ in their seed on a device, in the stacks that fit.

    A module that nobody knows is timed; other steps cost what their products do, and the calls.
    """
    size = min(runs, stack_size(device, engine, spec, jobs))
    if price.is_timed(spec):
        return price.timed_seconds(engine.name, spec, size, device) * runs / size
    call, work = device_rates(device)
    stacks, double = -(-runs // size), 2 if spec.training.precision == "float64" else 1
    return spec.training.steps * (call * stacks + double * work * price.work_of(spec) * runs)
