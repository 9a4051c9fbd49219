"""What else ran on the machine while something was measured."""

from __future__ import annotations

import os
import time
from pathlib import Path

_STAT = Path("/proc/stat")
_IDLE = (3, 4)  # the fields `idle` and `iowait`


class Others:
    """Counts from when it is made: the machine's busy time but that of this process and its own."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self._before = self._seconds()

    def share(self) -> float | None:
        """Return the others' share of all cores' time so far; nothing where Linux does not say."""
        now, passed = self._seconds(), time.perf_counter() - self._started
        if now is None or self._before is None or passed <= 0:
            return None
        return min(1.0, max(0.0, (now - self._before) / passed / (os.cpu_count() or 1)))

    @staticmethod
    def _seconds() -> float | None:
        if not _STAT.exists():
            return None
        # user, nice, system, idle, iowait, irq, softirq, steal; guests are counted in `user`.
        fields = [int(field) for field in _STAT.read_text().splitlines()[0].split()[1:9]]
        busy = sum(each for place, each in enumerate(fields) if place not in _IDLE)
        own = os.times()  # children count once they were waited for
        mine = own.user + own.system + own.children_user + own.children_system
        return busy / os.sysconf("SC_CLK_TCK") - mine
