"""Run the tests as they would run on other machines: older processors, one core, other places.

    python -m tests.portable                  every test on every machine
    python -m tests.portable --quick          the tests of numbers alone, in a few minutes
    python -m tests.portable old -- -k margin  one machine; what follows -- is pytest's

NumPy, OpenBLAS, MKL, PyTorch and our own kernels choose their code by the processor, and each can
be told to hide what the processor has. They then round as an older one would, which no test may
notice.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent

# Tests of numbers from NumPy, SciPy, BLAS and PyTorch that take seconds each.
QUICK = [
    *(
        "test_golden.py",
        "test_records.py",
        "test_emergence.py",
        "test_margins.py",
        "test_groups.py",
    ),
    *("test_spectra.py", "test_fourier*.py", "test_theory_*.py", "test_rules_*.py"),
    *("test_models.py", "test_variance.py", "test_analysis.py", "test_paired.py", "test_wide.py"),
    *("test_members.py", "test_kept.py"),
]


def processor(year: int) -> dict[str, str]:
    """Hide from the libraries what an x86 processor of that year did not have."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return {"PETRIDISH_ISA": "portable"}
    # No public function lists them, and the names change with NumPy's version.
    from numpy._core._multiarray_umath import __cpu_dispatch__  # type: ignore[import-not-found]

    beyond_avx2 = [name for name in __cpu_dispatch__ if "512" in name or name == "X86_V4"]
    if year < 2013:
        return {
            "NPY_DISABLE_CPU_FEATURES": " ".join(__cpu_dispatch__),
            "OPENBLAS_CORETYPE": "Nehalem",
            "ATEN_CPU_CAPABILITY": "default",
            "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
            "MKL_CBWR": "COMPATIBLE",
            "ONEDNN_MAX_CPU_ISA": "SSE41",
            "PETRIDISH_ISA": "portable",
        }
    return {
        "NPY_DISABLE_CPU_FEATURES": " ".join(beyond_avx2),
        "OPENBLAS_CORETYPE": "Haswell",
        "ATEN_CPU_CAPABILITY": "avx2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "PETRIDISH_ISA": "avx2",
    }


def machines() -> dict[str, tuple[int, dict[str, str]]]:
    """Return cores and environment of each machine, by name."""
    without_utf8 = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    return {
        "old": (
            2,
            {**processor(2008), **without_utf8, "PYTHONHASHSEED": "1", "TZ": "Asia/Kolkata"},
        ),
        "avx2": (2, {**processor(2013), "PYTHONHASHSEED": "2", "TZ": "Pacific/Kiritimati"}),
        "one-core": (1, {"PYTHONHASHSEED": "3", "TZ": "America/St_Johns"}),
    }


def run_tests(cores: int, environment: dict[str, str], arguments: list[str]) -> int:
    """Run pytest on some of the cores; return its exit code."""
    available = sorted(os.sched_getaffinity(0))[:cores]
    workers = ["-n", str(len(available)), "--dist", "loadfile"] if len(available) > 1 else []
    return subprocess.run(
        [sys.executable, "-m", "pytest", *workers, *arguments],
        env={**os.environ, **environment},
        preexec_fn=lambda: os.sched_setaffinity(0, available),
    ).returncode


def main() -> None:
    """Run the tests on the machines asked for; the exit code is 1 if any of them fails."""
    known = machines()
    parser = argparse.ArgumentParser(
        prog="python -m tests.portable",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("machine", nargs="*", help=f"of {', '.join(known)}; all by default")
    parser.add_argument("--quick", action="store_true", help="the tests of numbers alone")
    given = [*sys.argv[1:], "--"]
    ours, theirs = given[: given.index("--")], given[given.index("--") + 1 : -1]
    options = parser.parse_args(ours)
    for name in options.machine:
        if name not in known:
            parser.error(f"there is no machine {name!r}; there are {', '.join(known)}")
    files = [str(path) for pattern in QUICK for path in sorted(TESTS.glob(pattern))]
    arguments = [*theirs, *(files if options.quick else [])]
    failed = []
    for name in options.machine or known:
        cores, environment = known[name]
        print(f"\n== {name}: {environment}", flush=True)
        if run_tests(cores, environment, arguments) != 0:
            failed.append(name)
    if failed:
        sys.exit(f"Tests failed on: {', '.join(failed)}.")


if __name__ == "__main__":
    main()
