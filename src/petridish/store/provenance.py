"""Which code made a record."""

from __future__ import annotations

import subprocess
from functools import lru_cache
from pathlib import Path

from petridish import __version__


@lru_cache(maxsize=1)
def provenance() -> dict[str, str | bool | None]:
    """Return the package's version, and commit and cleanliness where it runs from a checkout."""
    here = Path(__file__).resolve()
    if _git(here.parent, "ls-files", "--error-unmatch", here.name) is None:
        return {"version": __version__, "commit": None, "clean": None}
    commit = _git(here.parent, "rev-parse", "HEAD")
    changes = _git(here.parents[1], "status", "--porcelain", "--", ".")
    return {"version": __version__, "commit": commit, "clean": changes == ""}


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=folder, capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
