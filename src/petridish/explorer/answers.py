"""What the page asks and what it is answered, as JSON: the same live and in an exported file."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any

from petridish.errors import UserError, nearest
from petridish.explorer import aggregation, calculator, details, judged
from petridish.explorer.run_sets import RunSet, RunSets, Snapshot
from petridish.rules.mixtures import LIMITS
from petridish.store.followed import RUN

HELD = "is."  # before a field that is held at one value, as in addresses
MOST_KEPT = 300  # answers in memory
Asked = Mapping[str, str]
Answer = Callable[[RunSet, Snapshot, Asked], dict[str, Any]]


class Explorer:
    """Answers questions about sets of runs; each is computed once for every version of a store."""

    def __init__(self, sets: RunSets) -> None:
        self.sets = sets
        self._kept: OrderedDict[tuple[Any, ...], tuple[Lock, list[bytes]]] = OrderedDict()
        self._lock = Lock()

    def answer(self, what: str, asked: Asked) -> bytes:
        """Return the answer to a question as JSON."""
        if what == "home":
            return as_json(self._home())
        if what == "state":
            return as_json(self._state())
        if what == "scoreboard":
            versions = (store.refresh() for store in self.sets.stores)
            records, sets = self.sets.records, self.sets.all().values()
            return self._once((what, *versions), lambda: judged.scoreboard_of(records, sets))
        if what not in ANSWERS:
            raise UserError(f"There is no question called {what!r}. {nearest(what, ANSWERS)}")
        found = self.sets.find(asked.get("of", ""))
        now = found.snapshot()
        key = (what, now.version, found.name, *sorted(asked.items()))
        return self._once(key, lambda: ANSWERS[what](found, now, asked))

    def _once(self, key: tuple[Any, ...], compute: Callable[[], dict[str, Any]]) -> bytes:
        """Return an answer that is kept, or compute it; who asks for the same meanwhile waits."""
        with self._lock:
            lock, found = self._kept.setdefault(key, (Lock(), []))
            self._kept.move_to_end(key)
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        with lock:
            if not found:
                found.append(as_json(compute()))
            return found[0]

    def _home(self) -> dict[str, Any]:
        return {
            "sets": [_summary(each) for each in self.sets.all().values()],
            "stores": [
                {"folder": str(store.folder), "runs": len(store.ends)} for store in self.sets.stores
            ],
            "problems": self.sets.problems,
        }

    def _state(self) -> dict[str, Any]:
        found = self.sets.all().values()
        versions = {each.name: each.kept.refresh() for each in found if each.kind != "record"}
        running = [s.name for s in found if s.kind == "sweep" and s.is_running]
        return {"versions": versions, "running": running, "problems": self.sets.problems}


def _summary(found: RunSet) -> dict[str, Any]:
    summary = {
        "name": found.name,
        "kind": found.kind,
        "title": found.title,
        "id": found.experiment.id if found.experiment else "",
        "scale": found.scale,
        "settings": list(found.settings),
        "place": found.place,
        "of": found.size,
        "claims": len(found.experiment.claims) if found.experiment else 0,
        "running": found.is_running,
        "part": found.part,
    }
    if found.kind == "record":  # is not read before it is looked at
        return summary | {"runs": found.recorded["runs"], "verdicts": found.recorded["verdicts"]}
    now = found.snapshot()
    arms = "arm" in now.runs.columns  # a run may belong to several
    return summary | {"runs": now.runs.n_unique(RUN) if arms else len(now.runs)}


def _set(found: RunSet, now: Snapshot, _: Asked) -> dict[str, Any]:
    fields = aggregation.fields_of(found, now)
    axes = fields["axes"]
    shown = [name for name in (axes["rows"], axes["columns"], *axes["panels"]) if name]
    experiment = found.experiment
    user_file = experiment.user_file if experiment else None
    return {
        **_summary(found),
        **fields,
        "version": now.version,
        "source": experiment.source if experiment else "",
        "file": str(user_file) if user_file else "",
        "named": found.named and found.kind != "store",
        "asked": found.asked,
        "counts": aggregation.counts_of(now),
        "values": aggregation.value_names(now),
        "usual": aggregation.usual(now, shown),
        "thresholds": aggregation.thresholds_of(now),
        "curves": {"curve.train_error", "curve.test_error"} <= {*now.curves},
        "claim_names": [
            {"name": claim.name, "kind": claim.kind, "text": claim.text}
            for claim in (experiment.claims if experiment else ())
        ],
        "problems": list(found.kept.problems),
    }


def _calculated(found: RunSet, now: Snapshot, asked: Asked) -> dict[str, Any]:
    have = {n: calculator.limit(asked[n]) for n in LIMITS if asked.get(n)}
    target = calculator.limit(asked.get("target", "0.9"))
    where = {n.removeprefix(HELD): text for n, text in asked.items() if n.startswith(HELD)}
    return calculator.calculated(found, now, target=target, have=have, where=where)


def _dots(found: RunSet, now: Snapshot, _: Asked) -> dict[str, Any]:
    return aggregation.dots_of(now)


ANSWERS: dict[str, Answer] = {
    "set": _set,
    "value": lambda s, now, a: aggregation.value_of(s, now, a.get("value", "solved")),
    "dots": _dots,
    "stairs": lambda s, now, a: aggregation.staircases(s, now),
    "setting": lambda s, now, a: details.setting_of(s, now, a.get("id", "")),
    "curves": lambda s, now, a: details.curves_of(s, now, a.get("id", ""), a.get("curve", "")),
    "run": lambda s, now, a: details.run_of(
        s, now, a.get("id", ""), a.get("seed", ""), a.get("restart", "0")
    ),
    "picture": lambda s, now, a: details.picture_of(
        *(s, now, a.get("id", ""), a.get("seed", ""), a.get("restart", "0"), a.get("what", "")),
        int(a["at"]) if a.get("at", "").isdigit() else 0,
    ),
    "claims": lambda s, now, a: judged.claims_of(s, now),
    "calculator": _calculated,
}
"""The questions about one set of runs."""


def as_json(document: dict[str, Any]) -> bytes:
    """Return a document as JSON; NaN is refused, as no script reads it."""
    return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
