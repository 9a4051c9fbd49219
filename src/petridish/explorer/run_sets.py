"""What the explorer shows: sets of runs, each a sweep in a store, a record, or a whole store."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl

from petridish.api.asked import find_sweep
from petridish.errors import UserError
from petridish.experiment import Experiment
from petridish.explorer.record_runs import KeptRuns, RecordRuns
from petridish.publish.records import read_sweep
from petridish.rules.varying import ARM, PARTS, as_axis
from petridish.store.followed import FollowedStore
from petridish.store.requests import Request, requests
from petridish.store.schema import with_fields
from petridish.sweeps import Arms, by_arm
from petridish.sweeps.allocation import chooses, search_of
from petridish.sweeps.leases import FOLDER as LEASES
from petridish.sweeps.leases import LEASE_SECONDS
from petridish.sweeps.runner import outcomes
from petridish.training import read_cell
from petridish.values import find_gone

if TYPE_CHECKING:
    from petridish.store import Columns
    from petridish.sweeps import Sweep

STEP = "curve.step"
Kind = Literal["sweep", "record", "store"]


@dataclass(frozen=True)
class Snapshot:
    """The runs of a set at one moment.

    Attributes
    ----------
    version : int
        That of the store.
    runs : DataFrame
        One row per run, or per run and arm, with the number of its setting in `setting`.
    settings : DataFrame
        One row per setting: its number, its `id` in addresses, its cell, its arm and its fields.
    curves : tuple of str
        The columns of curves that some of the runs keep.
    """

    version: int
    runs: pl.DataFrame
    settings: pl.DataFrame
    curves: tuple[str, ...]

    def with_settings(self, *names: str) -> pl.DataFrame:
        """Return the runs with some fields of their settings."""
        fields = [n for n in names if n in self.settings.columns and n not in self.runs.columns]
        if not fields:
            return self.runs
        return self.runs.join(self.settings.select("setting", *fields), on="setting", how="left")

    def of_setting(self, name: str) -> tuple[pl.DataFrame, dict[str, object]]:
        """Return the runs of a setting by its id, and its fields."""
        found = self.settings.filter(pl.col("id") == name)
        if found.is_empty():
            raise UserError(
                f"There is no setting {name!r} among these runs. Choose one on the map: the store "
                "may have changed since."
            )
        row = found.row(0, named=True)
        runs, starts = self._in_order
        first, last = starts[row["setting"]], starts[row["setting"] + 1]
        return runs[first:last], row

    @cached_property
    def _in_order(self) -> tuple[pl.DataFrame, list[int]]:
        """The runs of one setting after another, by seed, and where each setting's begin."""
        runs = self.runs.sort("setting", "seed", "restart")
        counts = np.bincount(runs["setting"].to_numpy(), minlength=len(self.settings))
        return runs, [0, *np.cumsum(counts).tolist()]


@dataclass
class RunSet:
    """Runs that are looked at together.

    Attributes
    ----------
    name : str
        What addresses call it.
    kind : "sweep", "record" or "store"
        The runs of a sweep in a store, a record, or all runs of a store.
    title : str
        What it shows.
    place : str
        The store or record, as a user would write it.
    kept : KeptRuns
        Where its runs are.
    experiment, scale, settings, sweep
        What was run, if that is known.
    """

    name: str
    kind: Kind
    title: str
    place: str
    kept: KeptRuns
    experiment: Experiment | None = None
    scale: str = ""
    settings: tuple[str, ...] = ()
    sweep: Sweep | None = None
    named: bool = True  # a command leads to it
    part: bool = False  # of the cells that its experiment declares
    asked: str = ""  # when it was first asked for, of runs that no command names
    recorded: dict[str, Any] = field(default_factory=dict)  # what a record says of itself
    _snapshot: Snapshot | None = None
    _distinct: pl.DataFrame = field(default_factory=pl.DataFrame)
    _lock: Lock = field(default_factory=Lock)

    def snapshot(self) -> Snapshot:
        """Return the runs as they are now; computed once for every version of the store."""
        with self._lock:
            version = self.kept.refresh()
            if self._snapshot is None or self._snapshot.version != version:
                self._snapshot = self._look(version)
            return self._snapshot

    def _look(self, version: int) -> Snapshot:
        runs = self.among(self.kept.ends)
        by = ["cell", *([ARM] if ARM in runs.columns else [])]
        distinct = runs.select(by).unique().sort(by)
        before = self._snapshot
        if before is not None and distinct.equals(self._distinct):
            settings, curves = before.settings, before.curves
        else:
            settings = self._settings(distinct)
            curves = tuple(curve_names(self, settings["cell"].cast(pl.String)))
            self._distinct = distinct
        numbered = runs.join(settings.select("setting", *by), on=by, how="inner")
        return Snapshot(version, numbered, settings, curves)

    def _settings(self, distinct: pl.DataFrame) -> pl.DataFrame:
        """Return one row per setting: its number, its id, and its fields."""
        cells = self.kept.fields(sorted(distinct["cell"].unique().cast(pl.String)))
        fields = distinct.join(cells, on="cell", how="inner", maintain_order="left")
        names = [n for n in fields.columns if n.partition(".")[0] in PARTS]
        ids = [
            hashlib.sha256("\n".join(map(str, key)).encode()).hexdigest()[:10]
            for key in fields.select(distinct.columns).iter_rows()
        ]
        return fields.select(
            pl.int_range(pl.len(), dtype=pl.UInt32).alias("setting"),
            pl.Series("id", ids, dtype=pl.String),
            *distinct.columns,
            *(as_axis(fields[name]) for name in names),
        )

    def among(self, table: pl.DataFrame) -> pl.DataFrame:
        """Keep the rows that belong to the set; one for each arm of a run."""
        if self.sweep is None or (self.kind == "record" and not isinstance(self.sweep, Arms)):
            return table
        found = self.sweep.among(table)
        return by_arm(found) if "arms" in found.columns else found

    def table(self, columns: Columns = ()) -> pl.DataFrame:
        """Return the table that claims and the frontier are judged from."""
        ends = self.kept.ends
        if self.sweep is not None:
            ends = self.sweep.among(ends)
        cells = ends["cell"].unique(maintain_order=True).cast(pl.String).to_list()
        fields = self.kept.fields(cells)
        rows = fields.drop("cell").to_dicts()
        whole = with_fields(
            ends, {c: row for c, row in zip(fields["cell"].cast(pl.String), rows, strict=True)}
        )
        wanted = self.kept.names if columns == "all" else {*columns} & self.kept.names
        wanted = {n for n in wanted if n not in whole.columns}
        if not wanted:
            return whole
        kept = self.kept.read(ends, wanted)
        return pl.concat([whole, kept.drop(whole.columns, strict=False)], how="horizontal")

    @property
    def size(self) -> int | None:
        """The number of runs of the whole sweep; None where it is not known before."""
        return None if self.sweep is None or chooses(self.sweep) else len(self.sweep)

    def is_complete(self, runs: pl.DataFrame) -> bool:
        """Return whether the runs are all that the sweep asks for."""
        if self.sweep is None:
            return False
        if chooses(self.sweep):
            mine = self.sweep.among(self.kept.ends)
            endings = self.kept.read(mine, ("key", "outcome"))
            return "key" in endings.columns and not search_of(self.sweep).wanted(outcomes(endings))
        return len(runs) >= len(self.sweep)

    @property
    def is_running(self) -> bool:
        """Whether some command trains runs into this store now."""
        if not isinstance(self.kept, FollowedStore):
            return False
        try:
            signs = [p.stat().st_mtime for p in (self.kept.folder / LEASES).glob("*.lock")]
        except OSError:
            return False
        return any(time.time() - sign < LEASE_SECONDS for sign in signs)


class RunSets:
    """All sets of runs that some stores and a folder of records have."""

    def __init__(self, stores: Sequence[Path], records: Path | None) -> None:
        self.stores = [FollowedStore(folder) for folder in stores]
        self.records = records
        self._found: dict[str, RunSet] = {}
        self._unreadable: dict[str, str] = {}
        self._lock = Lock()

    def all(self) -> dict[str, RunSet]:
        """Return the sets by name; what was asked of a store since is there too."""
        with self._lock:
            for store in self.stores:
                for request in requests(store.folder):
                    self._add_request(store, request)
                self._add(self._whole(store))
            if self.records is not None and not any(
                s.kind == "record" for s in self._found.values()
            ):
                for record in self._recorded(self.records):
                    self._add(record)
            order = {"sweep": 0, "store": 1, "record": 2}
            return dict(sorted(self._found.items(), key=lambda item: order[item[1].kind]))

    @property
    def problems(self) -> list[str]:
        """A sentence about everything that cannot be read or shown."""
        return [
            *(why for store in self.stores for why in store.problems),
            *self._unreadable.values(),
        ]

    def find(self, name: str) -> RunSet:
        """Return a set by its name."""
        found = self.all()
        if name not in found:
            raise UserError(f"There are no runs called {name!r} here. Choose some from the home.")
        return found[name]

    def _add(self, found: RunSet) -> None:
        self._found.setdefault(found.name, found)

    def _add_request(self, store: FollowedStore, request: Request) -> None:
        name = self._name(store, request)
        if name in self._found or name in self._unreadable:
            return
        own, place = request.own, str(store.folder)
        try:
            if own is not None:
                sweep = read_sweep(own.sweep)
                whole = Experiment(request.name, own.title, "Run from Python", {"own": sweep})
                self._add(
                    RunSet(
                        *(name, "sweep", own.title, place, store, whole, "own", (), sweep),
                        named=False,
                        asked=request.first,
                    )
                )
                return
            asked = find_sweep(request.name, request.scale, list(request.settings))
        except Exception as reason:  # a user's file may be gone, or raise whatever it likes
            self._unreadable[name] = f"{request.name} is not shown. {reason}"
            return
        experiment, scale, sweep = asked
        self._add(
            RunSet(
                name=name,
                kind="sweep",
                title=experiment.title,
                place=place,
                kept=store,
                experiment=experiment,
                scale=scale,
                settings=request.settings,
                sweep=sweep,
                part=experiment.is_part(scale, request.settings, sweep),
            )
        )

    def _name(self, store: FollowedStore, request: Request) -> str:
        digest = json.dumps([*request.settings, request.own.sweep if request.own else None])
        more = hashlib.sha256(digest.encode()).hexdigest()[:6] if digest != "[null]" else ""
        name = Path(request.name).stem if request.name.endswith(".py") else request.name
        return _slug(name, request.scale, more, self._number(store))

    def _number(self, store: FollowedStore) -> str:
        place = self.stores.index(store)
        return f"store{place + 1}" if place else ""

    def _whole(self, store: FollowedStore) -> RunSet:
        name = _slug("all", "runs", self._number(store))
        title = f"All runs of {store.folder.name or store.folder}"
        return RunSet(name, "store", title, str(store.folder), store)

    def _recorded(self, records: Path) -> Iterator[RunSet]:
        from petridish.chapters import EXPERIMENTS

        for path in sorted(records.glob("*/spec.json")):
            folder = path.parent
            try:
                spec = json.loads(path.read_text(encoding="utf-8"))
                experiment = EXPERIMENTS[spec["id"]]
                sweep = read_sweep(spec["sweep"])
                judged = json.loads((folder / "verdicts.json").read_text(encoding="utf-8"))
                says = {"runs": spec["runs"], "verdicts": [each["verdict"] for each in judged]}
            except (OSError, ValueError, KeyError) as reason:
                self._unreadable[folder.name] = f"The record {folder} is not shown. {reason!r}"
                continue
            yield RunSet(
                name=_slug("record", folder.name),
                kind="record",
                title=experiment.title,
                place=str(folder),
                kept=RecordRuns(folder),
                experiment=experiment,
                scale=spec["scale"],
                sweep=sweep,
                recorded=says,
            )


def curve_names(found: RunSet, cells: Iterable[str]) -> list[str]:
    """Return the columns of curves that runs of some cells keep, but for that of the steps."""
    names: dict[str, None] = {}
    seen: set[tuple[int, ...]] = set()  # cells share most of their parts
    for cell in cells:
        spec = read_cell(cell)
        parts = spec.evaluation, spec.task, spec.training, spec.data.online
        if tuple(map(id, parts)) in seen:
            continue
        seen.add(tuple(map(id, parts)))
        if find_gone(parts) is not None:  # nobody knows what it kept
            return sorted(n for n in found.kept.names if n.startswith("curve.") and n != STEP)
        if spec.evaluation.curves:
            own = [metric.column for metric in spec.curve_metrics]
            gauges = [each.label for each in spec.evaluation.gauges]
            names |= dict.fromkeys(["train_loss", "train_error", *own, *gauges])
    return [column for name in names if (column := f"curve.{name}") in found.kept.names]


def _slug(*parts: str) -> str:
    return "-".join(re.sub(r"[^\w.]+", "_", part) for part in parts if part)
