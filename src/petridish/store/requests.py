"""What was asked of a store: which experiment or file, at which scale, with which settings.

One small JSON file per distinct request, in `<store>/sweeps/`. Runs do not depend on these notes; a
report does, which shows what was run as it was asked for. What has neither an id nor a file, such
as a sweep of a notebook, is kept in the note itself.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from petridish import __version__

FOLDER = "sweeps"


@dataclass(frozen=True)
class SweepNote:
    """A sweep that only the process had that ran it.

    Attributes
    ----------
    title : str
        What it shows.
    claims : int
        How many claims it declared; the note does not keep them.
    sweep : dict
        The sweep as JSON, as `spec.json` of a record has it.
    """

    title: str
    claims: int
    sweep: dict[str, Any]


@dataclass(frozen=True)
class Request:
    """One request, whenever it was made.

    Attributes
    ----------
    name : str
        The id of an experiment, or the absolute path of a user's file.
    scale : str
        The scale.
    settings : tuple of str
        The settings of `--set`, as written.
    first, last : str
        When it was first and last made, in ISO 8601, UTC.
    version : str
        The version of petridish that made it last.
    own : SweepNote, optional
        What was run, where no name leads to it.
    """

    name: str
    scale: str
    settings: tuple[str, ...]
    first: str
    last: str
    version: str
    own: SweepNote | None = None


def note_request(
    store: Path,
    name: str,
    scale: str,
    settings: Sequence[str] = (),
    own: SweepNote | None = None,
) -> None:
    """Keep a note of what is asked of a store; one that cannot be written is left out."""
    if name.endswith(".py"):
        name = str(Path(name).resolve())
    asked = json.dumps([name, scale, *settings, *([own.sweep] if own else ())])
    path = store / FOLDER / f"{hashlib.sha256(asked.encode()).hexdigest()[:16]}.json"
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    before = _read(path)
    request = Request(
        name, scale, tuple(settings), before.first if before else now, now, __version__, own
    )
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(json.dumps(asdict(request), ensure_ascii=False) + "\n", encoding="utf-8")
        part.replace(path)  # a reader sees the whole note or none


def requests(store: Path) -> list[Request]:
    """Return what was asked of a store, the oldest first; unreadable notes are left out."""
    found = map(_read, (store / FOLDER).glob("*.json"))
    return sorted((request for request in found if request), key=lambda r: (r.first, r.name))


def _read(path: Path) -> Request | None:
    try:
        note = json.loads(path.read_text(encoding="utf-8"))
        own = note.setdefault("own", None)  # older notes have none
        known = {field.name: note[field.name] for field in fields(Request)}
        known |= {"settings": tuple(note["settings"]), "own": own and SweepNote(**own)}
        return Request(**known)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
