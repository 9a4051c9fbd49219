"""Which runs of a store are being carried out, so that several commands share the work.

Every command holds one lease in the folder `leases` of the store, refreshed while it lives, and
lists the runs that it has begun beside it. A lease whose holder died is free at once on the same
machine, and after `LEASE_SECONDS` on another. It is a hint: a run that two commands carry out all
the same is kept twice, which is harmless.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from contextlib import ExitStack, suppress
from pathlib import Path
from uuid import uuid4

from filelock import SoftFileLease, Timeout

LEASE_SECONDS = 30.0  # without a sign of life, by the clock of the process that checks
GATE_SECONDS = 10.0  # at most, to wait for others that claim runs just now
FOLDER = "leases"


class Claims:
    """The runs that this command has begun, and those that other commands have."""

    def __init__(self, store: Path) -> None:
        self.folder = store / FOLDER
        self.name = uuid4().hex
        self.lease = self._lease(self.name)
        self.gate = self._lease("gate")
        self.others: dict[str, _Other] = {}

    def _lease(self, name: str) -> SoftFileLease:
        return SoftFileLease(self.folder / f"{name}.lock", lease_duration=LEASE_SECONDS)

    def __enter__(self) -> Claims:
        """Take a lease."""
        self.folder.mkdir(exist_ok=True)
        self.lease.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        """Release the lease."""
        with suppress(OSError):
            self._keys(self.name).unlink(missing_ok=True)
            self.lease.release()

    def claim(self, keys: Iterable[str]) -> set[str]:
        """Claim runs that no other command has begun, and return those that are claimed now."""
        free = set(keys)
        # Where no lease can be written the runs are carried out all the same.
        with suppress(OSError), ExitStack() as alone:
            with suppress(Timeout):  # who has the gate is frozen: go on, and see what others hold
                alone.enter_context(self.gate.acquire(timeout=GATE_SECONDS))
            free -= self.held()
            with self._keys(self.name).open("a", encoding="utf-8") as file:
                file.write("".join(f"{key}\n" for key in sorted(free)))
        return free

    def held(self) -> Set[str]:
        """Return the runs that other commands have begun; a command that died holds none."""
        names = {path.stem for path in self.folder.glob("*.keys")} - {self.name}
        for gone in self.others.keys() - names:
            del self.others[gone]
        for name in names:
            other = self.others.setdefault(name, _Other(self._lease(name), self._keys(name)))
            if not other.is_alive():
                self.others.pop(name)
        return set().union(*(other.keys for other in self.others.values()))

    def _keys(self, name: str) -> Path:
        return self.folder / f"{name}.keys"


class _Other:
    """Another command on the same store."""

    def __init__(self, lease: SoftFileLease, file: Path) -> None:
        self.lease, self.file = lease, file
        self.keys: set[str] = set()
        self.read = 0  # bytes of its file so far

    def is_alive(self) -> bool:
        """Read what it has begun since; if its lease is free, tidy up after it."""
        try:
            self.lease.acquire(blocking=False)
        except Timeout:
            with suppress(FileNotFoundError), self.file.open("rb") as file:
                file.seek(self.read)
                lines, _, _ = file.read().rpartition(b"\n")  # the last may be half written
                self.read += len(lines) + 1 if lines else 0
                self.keys.update(lines.decode().split())
            return True
        self.file.unlink(missing_ok=True)
        self.lease.release()
        return False
