"""Cutting a sweep into batches, each of one engine and one shape."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from petridish.models import FitsItself
from petridish.sweeps.generations import with_parents
from petridish.tasks import LimitsData
from petridish.training import Engine, RunSpec, choose_engine, load_engine, run_key
from petridish.training.chains import with_weights

MULTIPLICATIONS_A_SECOND = 1e10  # of one core, to weigh models that fit themselves


@dataclass(frozen=True)
class Batch:
    """Runs that one call of one engine carries out."""

    engine: str
    specs: tuple[RunSpec, ...]
    parents: bool = False  # others begin from them: their last weights are kept

    @property
    def cost(self) -> float:
        """Estimate the work if no run ends early, in multiplications."""
        return sum(run_cost(spec) for spec in self.specs)


def run_cost(spec: RunSpec) -> float:
    """Estimate the work of one run; the constant is what a step costs however small the net."""
    if isinstance(spec.model, FitsItself):
        seconds = spec.model.typical_seconds(int(spec.data.m), spec.domain.n_inputs)
        return MULTIPLICATIONS_A_SECOND * seconds
    weights = sum(parameter.size for parameter in spec.parameters)
    return float(spec.training.steps) * (spec.examples_a_step * weights + 20_000)


def cut(specs: Iterable[RunSpec], *, engine: str, jobs: int, parents: bool = False) -> list[Batch]:
    """Cut runs into batches; `parents` are runs from which others begin.

    Runs stay in their order within a shape: neighbours in a grid end at similar times, and a stack
    whose runs end together is never nearly empty.
    """
    engines: dict[Hashable, Engine] = {}
    buckets: dict[tuple[str, Hashable], list[RunSpec]] = {}
    for spec in specs:
        what = (spec.task, spec.model, spec.training, spec.data.online, spec.evaluation)
        if what not in engines:
            engines[what] = choose_engine(with_weights(spec) if parents else spec, engine)
        chosen = engines[what]
        buckets.setdefault((chosen.name, chosen.shape(spec)), []).append(spec)
    batches = []
    for (name, _), bucket in buckets.items():
        chosen = load_engine(name)
        size = min(chosen.stack_size(bucket[0]), -(-len(bucket) // jobs))
        batches += [
            Batch(chosen.name, tuple(bucket[start : start + size]), parents)
            for start in range(0, len(bucket), size)
        ]
    return batches


def check_all(specs: Iterable[RunSpec]) -> dict[str, RunSpec]:
    """Refuse runs that cannot be carried out, and their parents; return them by key, each once."""
    by_key = {run_key(spec): spec for spec in specs}
    checked: set[Hashable] = set()
    for generation in with_parents(by_key).runs:
        for spec in generation.values():
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
            if what not in checked:
                spec.check()
                checked.add(what)
    return by_key
