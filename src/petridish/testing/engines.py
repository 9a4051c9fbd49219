"""The contract of engines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from petridish.testing.base import Broken, agree, demand, in_words
from petridish.training import (
    Engine,
    RunRecord,
    RunSpec,
    Silent,
    load_engine,
    run_key,
    spec_text,
)


@in_words
def check_engine(engine: Engine, spec: RunSpec, *, seeds: Sequence[int] = (0, 1, 2)) -> None:
    """Check an engine on a run: what it computes is what `reference` does, however runs come."""
    if reason := engine.refusal(spec):
        raise Broken(f"The engine {engine.name} refuses this run: {reason}")
    specs = [replace(spec, seed=seed) for seed in seeds]
    demand(
        len({engine.shape(each) for each in specs}) == 1,
        f"The engine {engine.name} gives runs that differ in their seed alone different shapes.",
    )
    together = _in_order(engine.run(specs, Silent()), specs)
    alone = [next(iter(engine.run([each], Silent()))) for each in specs]
    for one, other in zip(together, alone, strict=True):
        demand(
            _text(one) == _text(other),
            f"The engine {engine.name}: the run {run_key(one.spec)} has another record in a stack "
            "of several than alone.",
        )
    if engine.name == "fit":
        return
    theirs = list(load_engine("reference").run(specs, Silent()))
    agree(f"the engine {engine.name} and the engine reference", together, theirs)


def _in_order(records: Any, specs: Sequence[RunSpec]) -> list[RunRecord]:
    by_text = {spec_text(record.spec): record for record in records}
    demand(
        by_text.keys() == {spec_text(spec) for spec in specs},
        f"The engine returned records of {len(by_text)} runs, and was given {len(specs)}.",
    )
    return [by_text[spec_text(spec)] for spec in specs]


def _text(record: RunRecord) -> str:
    return repr(replace(record, seconds=0.0))
