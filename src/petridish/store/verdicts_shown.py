"""Which verdicts were shown from a store, and at how many runs.

Judging a claim, adding seeds and judging it again is optional stopping: each time is a further
chance to be wrong. The store notes the times, so that a later one can say what it costs.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

Judged = tuple[int, str]
"""A number of runs, and the verdict at it."""


@dataclass(frozen=True)
class VerdictsShown:
    """The verdicts on one experiment that were shown from one store, in a small file of it.

    Other settings are another question; other seeds are not, so that `seed` is left out of them.
    """

    folder: Path
    experiment: str
    scale: str
    settings: Sequence[str] = ()

    @property
    def path(self) -> Path:
        """The file that keeps them."""
        others = sorted(text for text in self.settings if text.partition("=")[0].strip() != "seed")
        name = re.sub(r"[^\w.]+", "_", f"{self.experiment}-{self.scale}")
        marked = f"-{hashlib.sha256(repr(others).encode()).hexdigest()[:8]}" if others else ""
        return self.folder / f"verdicts-shown-{name}{marked}.json"

    def judged(self) -> dict[str, list[Judged]]:
        """Return the earlier verdicts on every claim, in order; none from a torn file."""
        try:
            kept = json.loads(self.path.read_text(encoding="utf-8"))
            return {
                claim: [(int(n), str(word)) for n, word in each] for claim, each in kept.items()
            }
        except (OSError, ValueError, TypeError, AttributeError):
            return {}

    def note(self, verdicts: Iterable[tuple[str, int, str]]) -> None:
        """Keep the claims, numbers of runs and verdicts that are shown now.

        The same runs give the same verdict: to see it twice is to judge once. A store that cannot
        be written is read all the same.
        """
        judged = self.judged()
        for claim, n, word in verdicts:
            kept = judged.setdefault(claim, [])
            if n and n not in (runs for runs, _ in kept):
                kept.append((n, word))
        if not judged:
            return  # no claims are declared
        part = self.path.with_name(f".{self.path.name}.part")
        with suppress(OSError):
            part.write_text(json.dumps(judged, indent=1), encoding="utf-8")
            part.replace(self.path)
