"""Measure how soon commands answer where nothing is pinned; once for every release, not as a test.

    python -m tests.startup                     in a new environment, by a plain `pip install`
    python -m tests.startup --environment DIR   in one that is there

`constraints.txt` pins what petridish is tested with, but a user's `pip install` takes the newest
releases, and one of them may import much more than before. Times on a busy machine mean little.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
LIMITS = {"--help": 0.4, "list": 1.0}  # seconds, on two free cores
REPEATS = 7


def best_seconds(*command: str | Path) -> float:
    """Return the shortest of several times: the others waited for something else."""
    times = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        times.append(time.perf_counter() - started)
    return min(times)


def main() -> None:
    """Install, measure, and fail if a command takes longer than its limit."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.startup",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--environment", type=Path, help="with petridish installed in it")
    environment = parser.parse_args().environment
    if environment is not None and not (environment / "bin/petridish").exists():
        parser.error(f"{environment} has no bin/petridish. Give an environment that has, or none.")
    with tempfile.TemporaryDirectory() as made:
        if environment is None:
            environment = Path(made)
            venv.create(environment, with_pip=True)
            pip = (environment / "bin/python", "-m", "pip", "install", "--quiet")
            subprocess.run([*pip, str(ROOT)], check=True)
        nothing = best_seconds(environment / "bin/python", "-c", "pass")
        print(f"python -c pass: {nothing:.2f} s")
        late = []
        for command, limit in LIMITS.items():
            taken = best_seconds(environment / "bin/petridish", command)
            print(f"petridish {command}: {taken:.2f} s of {limit:.2f} s")
            if taken > limit:
                late.append(command)
    if late:
        sys.exit(f"Too slow: {', '.join(late)}. `python -X importtime` says what is imported.")


if __name__ == "__main__":
    main()
