"""The last weights of runs from which others begin: one file per run, beside the shards.

They are kept whether or not the run's own spec keeps weights: a parent is the same run as one that
nothing begins from. A file is written aside, then renamed.
"""

from __future__ import annotations

import io
import os
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np

from petridish.errors import UserError
from petridish.training import Ended, RunSpec, run_key

FOLDER = "weights"


_TORN = (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile)


class WeightFiles:
    """The files in the folder `weights` of a store."""

    def __init__(self, store: Path) -> None:
        self.folder = store / FOLDER

    def keys(self) -> set[str]:
        """Return the keys of the runs whose weights are kept."""
        if not self.folder.is_dir():
            return set()
        return {path.stem for path in self.folder.iterdir() if path.suffix == ".npz"}

    def write(self, key: str, weights: Ended) -> None:
        """Keep the weights of a run."""
        self.folder.mkdir(exist_ok=True)
        part = self.folder / f".{key}.{os.getpid()}.part"
        with part.open("wb") as file:
            file.write(packed(weights))
            file.flush()
            os.fsync(file.fileno())
        part.replace(self.folder / f"{key}.npz")

    def problems(self) -> list[str]:
        """Return a sentence about each file that cannot be read."""
        found = []
        for key in sorted(self.keys()):
            path = self.folder / f"{key}.npz"
            try:
                _load(path)
            except _TORN as error:
                found.append(
                    f"The file {path} cannot be read ({error or type(error).__name__}). Remove it: "
                    "the run whose weights it held is carried out anew when another begins from it."
                )
        return found

    def read(self, spec: RunSpec) -> Ended:
        """Return the weights of a run, or refuse one that has none here."""
        key = run_key(spec)
        path = self.folder / f"{key}.npz"
        try:
            return _load(path)
        except FileNotFoundError as error:
            raise UserError(
                f"The store {self.folder.parent} has no weights of the run {key[:8]} (seed "
                f"{spec.seed}), from which another run begins: it was not carried out before. Run "
                "both by one sweep, which carries parents out first; a class of your own that "
                "needs runs inherits Needs and names them."
            ) from error
        except _TORN as error:
            with suppress(OSError):
                path.unlink()
            raise UserError(
                f"The file {path} cannot be read ({error or type(error).__name__}), and was "
                "removed. Give the same command again: the run whose weights it held is carried "
                "out anew."
            ) from error


def packed(weights: Ended) -> bytes:
    """Return weights as the bytes of a file: numbers and names, and no Python object."""
    file = io.BytesIO()
    np.savez(file, *weights.values(), names=np.array(list(weights)))
    return file.getvalue()


def unpacked(content: bytes) -> Ended:
    """Return the weights that `packed` has written."""
    return _load(io.BytesIO(content))


def _load(file: Path | io.BytesIO) -> Ended:
    with np.load(file) as found:
        names = found["names"].tolist()
        return {name: found[f"arr_{place}"] for place, name in enumerate(names)}
