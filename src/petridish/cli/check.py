"""`petridish check`: hold a file of one's own to the contracts before it is run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from petridish.cli.common import DataFolder, Id, Scale, Settings, find_sweep, use_data
from petridish.errors import UserError

if TYPE_CHECKING:
    import polars as pl

    from petridish.experiment import Experiment
    from petridish.sweeps import Sweep
    from petridish.training import Instrument, Metric, RunSpec

FEW_CELLS = 16  # of the runs on which rules and figures are tried
FEW_STEPS = 4  # of the runs in which metrics and instruments are compared between engines


def check(
    name: Id, scale: Scale = None, settings: Settings = None, data: DataFolder = None
) -> None:
    """Check a file of your own: contracts, steps, memory, price."""
    from petridish.choices import describe
    from petridish.sweeps.batches import check_all
    from petridish.sweeps.price import calibrate, price
    from petridish.sweeps.progress import clock, count
    from petridish.tasks.labels import FEW_LABELS, unusual_labels
    from petridish.testing import Broken
    from petridish.training import choose_engine
    from petridish.training.memory import check_memory, in_words

    use_data(data)
    experiment, scale, sweep = find_sweep(name, scale, settings)
    typer.echo(
        f"{experiment.id} at {scale} scale: {len(sweep)} runs, claims: {len(experiment.claims)}"
    )
    own = list(_own_parts(sweep))
    for kind, value, held in own:
        try:
            note = held()
        except Broken as broken:
            raise UserError(str(broken)) from broken
        typer.echo(f"contract     {kind} {describe(value)} keeps it")
        if isinstance(note, str) and note:
            typer.echo(f"{kind:<12} {note}")
        if kind == "task" and (unusual := unusual_labels(value, FEW_LABELS)):
            typer.echo(f"labels       {unusual}")
    tried = list(_own_claims_and_figures(experiment, sweep))
    for line in tried:
        typer.echo(f"contract     {line}")
    if not own and not tried:
        typer.echo("contract     no class of your own is used")
    cells = [spec for spec, _ in sweep.cells()]
    if note := _compared_at_ends(experiment, cells):
        typer.echo(f"claims       {note}")
    check_all(cells)
    typer.echo(f"settings     all {len(cells)} cells can be trained")
    largest = max(cells, key=check_memory)
    engine, steps = choose_engine(largest), _FirstSteps()
    for _ in engine.run([largest], steps):
        pass
    typer.echo(f"first steps  {steps.taken} taken by the engine {engine.name}")
    typer.echo(f"memory       about {in_words(check_memory(largest))} for the largest run")
    cost = price(sweep, calibrate())
    typer.echo(
        f"price        at most {clock(cost.seconds)} on the {cost.jobs} cores of this machine, "
        f"{count(cost.model_steps)} model-steps"
    )


def _compared_at_ends(experiment: Experiment, cells: list[RunSpec]) -> str:
    """Return which claims compare values at the end of runs that may stop at success."""
    from petridish.rules.outcome_remarks import AT_EQUAL_STEPS, ends_early, rule_reads_end

    names = [claim.name for claim in experiment.claims if rule_reads_end(claim.rule)]
    stop = next(filter(None, map(ends_early, cells)), "")
    if not names or not stop:
        return ""
    reads = f"{', '.join(names)} {'reads' if len(names) == 1 else 'read'} values at the end"
    cure = AT_EQUAL_STEPS.format(stop)
    return f"{reads}, and a run ends once it is solved: runs may differ in their steps. {cure}"


class _FirstSteps:
    """A monitor that stops a run at the first evaluation after its first step."""

    def __init__(self) -> None:
        self.taken = 0

    def stopped(self) -> bool:
        return self.taken > 0

    def stepped(self, model_steps: int) -> None:
        self.taken += model_steps


def _own_parts(sweep: Sweep) -> Iterator[tuple[str, Any, Callable[[], object]]]:
    """Yield the parts of a sweep that are of the user's own classes, each once, with its check."""
    from petridish.values import has_users

    seen = set()
    for spec, _ in sweep.cells():
        for kind, value, held in _parts(spec):
            if has_users(value) and (kind, value) not in seen:
                seen.add((kind, value))
                yield kind, value, held


def _own_claims_and_figures(experiment: Experiment, sweep: Sweep) -> Iterator[str]:
    """Try the user's rules and figures on the table of a few short runs."""
    from petridish.choices import describe, said_by
    from petridish.figures import NothingToDraw
    from petridish.figures.style import as_figure
    from petridish.rules import Finding
    from petridish.sources import is_users
    from petridish.values import has_users

    rules = {claim.name: claim.rule for claim in experiment.claims if has_users(claim.rule)}
    figures = {
        name: draw
        for name, draw in dict[str, Any](experiment.figures).items()
        if is_users(getattr(draw, "func", draw))  # a partial function's
    }
    if not rules and not figures:
        return
    table = _short_runs(experiment, sweep)
    for name, rule in rules.items():
        what = f"The rule {describe(rule)} of the claim {name}"
        try:
            found: object = rule.judge(table, experiment.level)
        except UserError as unfit:
            yield f"rule {describe(rule)} has nothing to judge in short runs: {unfit}"
            continue
        except Exception as error:
            raise UserError(f"{what} failed in judge{said_by(error)}.") from error
        if not isinstance(found, Finding):
            raise UserError(
                f"{what} returned {type(found).__name__} from judge. Return a Finding, such as "
                'Finding(Judgement.UNDECIDED, estimate, low, high, "what it measures", n).'
            )
        yield f"rule {describe(rule)} returns a finding"
    for name, draw in figures.items():
        try:
            as_figure(draw(table, experiment.title), name, draw)
        except NothingToDraw:
            yield f"figure {name} has nothing to draw of short runs"
            continue
        except UserError:
            raise
        except Exception as error:
            raise UserError(f"The figure {name} failed{said_by(error)}.") from error
        yield f"figure {name} is drawn"


def _short_runs(experiment: Experiment, sweep: Sweep) -> pl.DataFrame:
    """Return the table of a few runs of a sweep, each of a few steps."""
    from tempfile import TemporaryDirectory

    from petridish.store import Store
    from petridish.sweeps.executors import Inline
    from petridish.sweeps.placement import Placement
    from petridish.sweeps.progress import Progress
    from petridish.sweeps.runner import run_specs

    specs = [
        replace(_few_steps(spec), seed=seed)
        for spec, _ in islice(sweep.cells(), FEW_CELLS)
        for seed in (0, 1)
    ]
    columns = experiment.columns_needed(sweep, "claims", "figures")
    with TemporaryDirectory() as folder:
        store, here = Store(Path(folder)), Placement("cpu", "auto", jobs=1)
        run_specs(specs, store, here, Inline(), Progress())
        return store.read(columns=columns).table


def _few_steps(spec: RunSpec) -> RunSpec:
    steps = min(FEW_STEPS, spec.training.steps)
    at = tuple(step for step in spec.evaluation.at if step <= steps)
    return replace(
        spec,
        training=replace(spec.training, steps=steps),
        evaluation=replace(spec.evaluation, at=at),
    )


def _parts(spec: RunSpec) -> Iterator[tuple[str, Any, Callable[[], object]]]:
    from petridish import testing
    from petridish.training.data import sample_attempts

    task, model, loss = spec.task, spec.model, spec.training.loss
    short = _few_steps(spec)
    few = replace(short, evaluation=replace(short.evaluation, at=(), instruments=()))

    def measured(check: Callable[..., object], value: Any) -> str:
        check(value, few)
        return _never_a_number(value, few)

    yield "task", task, partial(testing.check_task, task)
    yield "model", model, partial(testing.check_model, model, task, loss=loss)
    if spec.data.accept is not None:
        yield "sample rule", spec.data.accept, partial(sample_attempts, spec)
    yield "init", spec.init, partial(testing.check_init, spec.init, model, task, loss=loss)
    yield "loss", loss, partial(testing.check_loss, loss, spec.domain)
    for metric in spec.metrics:
        yield "metric", metric, partial(measured, testing.check_metric, metric)
    for gauge in spec.evaluation.gauges:
        yield "instrument", gauge, partial(measured, testing.check_instrument, gauge)


def _never_a_number(value: Metric | Instrument, few: RunSpec) -> str:
    """Return that a metric or an instrument is NaN whenever a short run measures it, if it is."""
    import numpy as np

    from petridish.testing.base import curves_of
    from petridish.training import Metric, Silent, choose_engine

    steps = few.training.steps
    asked: dict[str, Any]
    if isinstance(value, Metric):
        asked, name = {"metrics": (value,)}, value.column
    elif value.at is not None and min(value.at, default=steps + 1) > steps:
        return ""
    else:
        asked, name = {"instruments": (value,)}, value.label
    spec = replace(few, evaluation=replace(few.evaluation, every=1, curves=True, **asked))
    (record,) = choose_engine(spec).run([spec], Silent())
    found = [values for key, values in curves_of(record).items() if key.split()[-1] == name]
    if not all(np.isnan(values).all() for values in found):
        return ""
    return (
        f"{name} is NaN whenever it is measured in a run of {steps} steps. Where that is not "
        "meant, look for a division by zero or the logarithm of a negative number."
    )
