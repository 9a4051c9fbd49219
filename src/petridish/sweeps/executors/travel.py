"""What goes between a caller and the workers of a cluster: specs as JSON, classes, tables.

Classes of a user's file travel as the text of that file and of the modules beside it; those of a
notebook, a script or another module by value. Either way their digests are compared on arrival.
"""

from __future__ import annotations

import hashlib
import importlib
import io
import pickle
import sys
import tempfile
import types
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from pathlib import Path
from typing import Any

import cloudpickle
import polars as pl

from petridish.errors import UserError
from petridish.sources import code_digest, receive
from petridish.sweeps.userfile import load_user_file
from petridish.training import RunSpec, run_key
from petridish.training.keys import APART, cell_text, read_cell, users_codes
from petridish.user_classes import learn

Cells = list[tuple[str, list[tuple[int, int]]]]
"""The JSON of cells, each with the seeds and restarts of its runs."""
RECEIVED = "petridish_received"  # the module of classes that came from a caller


@dataclass(frozen=True)
class Code:
    """A user's classes on their way.

    Attributes
    ----------
    path : str
        The user's file where the caller has it; empty if there is none.
    files : tuple of pairs
        The texts of that file and of modules beside it, by their paths from its folder.
    classes : tuple
        Name of the module (empty: the file), name in it, and digest of each class of these files.
    values : bytes
        The other classes by value, with their digests.
    """

    path: str = ""
    files: tuple[tuple[str, str], ...] = ()
    classes: tuple[tuple[str, str, str], ...] = ()
    values: bytes = b""

    def plain(self) -> dict[str, Any]:
        """Return the parts by name: what is sent has no object of this package."""
        return {part.name: getattr(self, part.name) for part in fields(self)}

    @property
    def digest(self) -> str:
        """A name for these classes."""
        return hashlib.sha256(repr(self.plain()).encode()).hexdigest()[:16]


def write_specs(specs: Iterable[RunSpec]) -> Cells:
    """Return specs as data; neighbours of one cell share its text."""
    found: Cells = []
    for spec in specs:
        text = cell_text(spec)
        if not found or found[-1][0] != text:
            found.append((text, []))
        found[-1][1].append((spec.seed, spec.restart))
    return found


def read_specs(cells: Cells) -> tuple[RunSpec, ...]:
    """Return the specs that `write_specs` has written."""
    return tuple(
        replace(read_cell(text), seed=seed, restart=restart)
        for text, runs in cells
        for seed, restart in runs
    )


def digest_of(specs: Iterable[RunSpec]) -> str:
    """Return a hash of the keys of runs, in their order."""
    return hashlib.sha256("".join(map(run_key, specs)).encode()).hexdigest()[:16]


def pack(specs: Iterable[RunSpec], user_file: Path | None) -> Code:
    """Return the classes that are not petridish's in some specs."""
    names = [part.name for part in fields(RunSpec) if part.name not in APART]
    parts = {id(part): part for spec in specs for part in map(spec.__getattribute__, names)}
    codes = users_codes(tuple(parts.values()))
    if not codes:
        return Code()
    own = load_user_file(user_file) if user_file else None
    path = Path(own.__file__ or "").resolve() if own else None
    beside = _beside(path) if path else {}
    places: list[tuple[str, str, str]] = []
    by_value: dict[type, str] = {}
    for kind, digest in codes.items():
        if own and kind.__module__ == own.__name__:
            places.append(("", kind.__qualname__, digest))
        elif kind.__module__ in beside:
            places.append((kind.__module__, kind.__qualname__, digest))
        else:
            by_value[kind] = digest
    files = () if path is None else tuple(_texts([path, *beside.values()], path.parent))
    with _by_value(by_value):
        values = cloudpickle.dumps(by_value) if by_value else b""
    return Code(str(path) if places else "", files if places else (), tuple(places), values)


def _beside(path: Path) -> dict[str, Path]:
    """Return the modules that were imported from a file's folder or below it, by name."""
    found = {}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if not isinstance(file, str) or not file.endswith(".py"):
            continue
        where = Path(file)
        if not where.is_absolute() or where.resolve() == path:
            continue
        where = where.resolve()
        if not where.is_relative_to(path.parent) or not where.is_file():
            continue
        installed = "site-packages" in where.parts or name.split(".")[0] == "petridish"
        if not installed and name != "__main__":
            found[name] = where
    return found


def _texts(paths: Iterable[Path], folder: Path) -> Iterator[tuple[str, str]]:
    for path in dict.fromkeys(paths):
        yield path.relative_to(folder).as_posix(), path.read_text(encoding="utf-8")


@contextmanager
def _by_value(kinds: Iterable[type]) -> Iterator[None]:
    """Let classes of modules that are not installed be written by value, inside the block."""
    modules = {sys.modules[kind.__module__] for kind in kinds if kind.__module__ in sys.modules}
    written = [m for m in modules if "site-packages" not in (getattr(m, "__file__", "") or "")]
    for module in written:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in written:
            cloudpickle.unregister_pickle_by_value(module)


def unpack(code: Code) -> None:
    """Make a caller's classes known to this process, and compare their digests."""
    received = types.ModuleType(RECEIVED)
    found: dict[type, str] = pickle.loads(code.values) if code.values else {}
    receive(found)
    if code.path:
        own = load_user_file(_place(code))
        for module, name, digest in code.classes:
            kind = attrgetter(name)(importlib.import_module(module) if module else own)
            found[kind] = digest
            if code_digest(kind) != digest:
                raise UserError(
                    f"The class {name} of {code.path} is not the same on a worker, which imports "
                    "the file anew: it uses a constant that is computed there, or changed by the "
                    "caller. Make it a field of the class."
                )
    for kind in found:
        setattr(received, kind.__name__, kind)
    learn(received)


def _place(code: Code) -> Path:
    """Return the user's file on this machine: where the caller has it, or a copy."""
    path = Path(code.path)
    if all(_holds(path.parent / name, text) for name, text in code.files):
        return path
    # As long as this process: a module's classes are read again when their code is hashed.
    folder = Path(tempfile.mkdtemp(prefix="petridish-code-"))
    for name, text in code.files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder / path.name


def _holds(path: Path, text: str) -> bool:
    try:
        return path.read_text(encoding="utf-8") == text
    except (OSError, ValueError):
        return False


def table_bytes(tables: Sequence[pl.DataFrame]) -> list[bytes]:
    """Return tables of records as bytes of Parquet."""
    found = []
    for table in tables:
        buffer = io.BytesIO()
        table.cast({pl.Categorical: pl.String}).write_parquet(buffer)
        found.append(buffer.getvalue())
    return found
