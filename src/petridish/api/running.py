"""`petridish.run`: train what is missing, and return the runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from petridish import DEFAULT_STORE
from petridish.api.asked import Asked, Settings, find_sweep
from petridish.api.runs import Runs
from petridish.choices import describe
from petridish.experiment import Experiment
from petridish.store import Store, tidy
from petridish.store.requests import SweepNote, note_request
from petridish.sweeps import Progress, Summary, Sweep, make_progress, run_sweep
from petridish.sweeps.adaptive import AtHalf
from petridish.sweeps.executors import Executor


def run(
    asked: Asked,
    *,
    scale: str | None = None,
    store: str | Path | Store = DEFAULT_STORE,
    engine: str = "auto",
    executor: str | Executor | Any = "local",
    jobs: int | None = None,
    device: str = "cpu",
    shared_by: int = 1,
    adaptive: bool = False,
    settings: Settings | None = None,
    progress: Literal["shown", "none"] = "shown",
) -> Runs:
    """Train the runs that the store does not have, and return all runs that were asked for.

    Parameters
    ----------
    asked : Sweep, Experiment, str or Path
        A sweep, an experiment, the id of one such as "PF-1", or the path of a Python file.
    scale : str, optional
        A scale of the experiment; "laptop" if it has one, else its first.
    store : str, Path or Store
        The folder that keeps the runs: no run is trained twice.
    engine : str
        An engine's name, or "auto" for the fastest that serves each run.
    executor : "local", "inline", or a client of Dask
        One process per core, this process alone, or the workers of a cluster: a
        ``distributed.Client``, or a `Cluster` that says more.
    jobs : int, optional
        Worker processes; one per core if not given, one if a device is named.
    device : str
        "cpu", "cuda", "cuda:1" or "mps"; or "auto", an accelerator for the runs that gain by it.
        Where a run computed is no part of its key; its column `device` says it.
    shared_by : int
        How many processes run this sweep on this store at a time, on one machine or several: they
        share the work, in batches that are small enough for all of them.
    adaptive : bool
        Give further seeds only to the cells whose success may lie on either side of ½.
    settings : list of str, str or mapping, optional
        Other values on some axes: ``["m=300,600"]``, ``"m=300,600"`` or
        ``{"data.m": (300, 600)}``.
    progress : "shown" or "none"
        A bar in a terminal or a notebook, lines in a log.

    Returns
    -------
    Runs
        The runs of this sweep alone, whatever else the store holds.
    """
    experiment, scale, sweep = find_sweep(asked, scale, settings)
    kept = store if isinstance(store, Store) else Store(Path(store).expanduser())
    texts = tuple(_as_text(settings or ()))
    summary = carry_out(
        experiment,
        scale,
        sweep,
        kept,
        request=texts,
        own=_own_note(asked, experiment, sweep),
        progress=make_progress(experiment.id) if progress == "shown" else None,
        engine=engine,
        executor=executor,
        jobs=jobs,
        device=device,
        shared_by=shared_by,
        adaptive=adaptive,
    )
    return Runs(experiment, scale, sweep, kept, summary, texts)


def carry_out(
    experiment: Experiment,
    scale: str,
    sweep: Sweep,
    store: Store,
    *,
    request: Sequence[str],
    progress: Progress | None,
    engine: str = "auto",
    executor: str | Executor | Any = "local",
    jobs: int | None = None,
    device: str = "cpu",
    shared_by: int = 1,
    adaptive: bool = False,
    own: SweepNote | None = None,
) -> Summary:
    """Train what a store lacks of a sweep, and note the request with its settings.

    Small shards are merged at the end if there are many.
    """
    if adaptive:
        AtHalf().check(sweep)  # before anything is noted
    store.prepare()
    name = str(experiment.user_file or experiment.id)
    note_request(store.folder, name, scale, [*map(str, request)], own)
    summary = run_sweep(
        sweep,
        store,
        engine=engine,
        executor=executor,
        jobs=jobs,
        shared_by=shared_by,
        progress=progress,
        user_file=experiment.user_file,
        adaptive=adaptive,
        device=device,
    )
    tidy(store)
    return summary


def _own_note(asked: Asked, experiment: Experiment, sweep: Sweep) -> SweepNote | None:
    """Return what a report needs of a sweep that it cannot find again by a name."""
    from petridish.chapters import EXPERIMENTS
    from petridish.publish.records import plain_sweep

    if isinstance(asked, str | Path) or experiment.user_file:
        return None
    if EXPERIMENTS.get(experiment.id) is experiment:
        return None
    return SweepNote(experiment.title, len(experiment.claims), plain_sweep(sweep))


def _as_text(settings: Settings) -> list[str]:
    """Return settings as `--set` takes them."""
    if isinstance(settings, str):
        return [settings]
    if not isinstance(settings, Mapping):
        return [*settings]
    return [f"{axis}={','.join(map(describe, values))}" for axis, values in settings.items()]
