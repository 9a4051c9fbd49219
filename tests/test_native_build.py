"""Building the native engine: with sanitizers, without a compiler, and without being asked to."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from petridish.training.native.library import is_built, library

# Of everything that the self-check finds: written down, because no processor, compiler or level of
# optimisation may change a record.
DIGEST = "2230a39dab08970a"
ROOT = Path(__file__).parent.parent
COMPILER = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
CMAKE = shutil.which("cmake")
ARM_COMPILER = shutil.which("aarch64-linux-gnu-g++")  # Debian's g++-aarch64-linux-gnu
ARM_EMULATOR = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
AVX2 = ["-mavx2", "-mfma", "-mbmi2"]
AVX512 = ["-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mfma", "-mbmi2"]
FLAGS = {
    f"{what}_{isa}": flags
    for what in ("kernels", "attention", "cls")
    for isa, flags in (("avx2", AVX2), ("avx512", AVX512))
}


def compiled(
    folder: Path, *options: str, compiler: str | None = COMPILER, machine: str = os.uname().machine
) -> Path:
    """Compile the self-check with the whole engine; return the program."""
    assert compiler is not None
    sources = [*sorted((ROOT / "native").glob("*.cpp")), ROOT / "tests/native/selfcheck.cpp"]
    if machine not in ("x86_64", "amd64"):
        sources = [source for source in sources if source.stem not in FLAGS]
    jobs = []
    for source in sources:
        common = ["-std=gnu++17", "-ffp-contract=off", "-w", *options, *FLAGS.get(source.stem, [])]
        target = folder / f"{source.stem}.o"
        jobs.append(subprocess.Popen([compiler, *common, "-c", str(source), "-o", str(target)]))
    assert [job.wait() for job in jobs] == [0] * len(jobs)
    program = folder / "selfcheck"
    objects = [str(folder / f"{source.stem}.o") for source in sources]
    subprocess.run([compiler, *options, *objects, "-o", str(program)], check=True)
    return program


def with_library(folder: Path) -> Path:
    """Compile the self-check alone, linked with the library in use; return the program."""
    assert COMPILER is not None
    used, program = Path(library()._name), folder / "selfcheck"
    selfcheck = ROOT / "tests/native/selfcheck.cpp"
    folder_of_library = f"-Wl,-rpath,{used.parent}"
    subprocess.run([COMPILER, selfcheck, used, folder_of_library, "-o", program], check=True)
    return program


@pytest.mark.slow
@pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler")
def test_the_kernels_run_clean_under_sanitizers(tmp_path: Path) -> None:
    """No bad address, no undefined behaviour, in any kernel that this processor has.

    Compiled as it is written: optimising what sanitizers add takes four times as long as all else.
    """
    program = compiled(
        tmp_path, "-O0", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"
    )
    done = subprocess.run([program], capture_output=True, encoding="utf-8", timeout=600)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(f" runs, 0 differ, digest {DIGEST}\n")


@pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler")
def test_optimised_kernels_give_the_same_bits(tmp_path: Path) -> None:
    """Every instruction set that this processor has, in a program without Python.

    The program is linked with the library that the tests load, which saves compiling it again.
    """
    linked = is_built() and sys.platform != "darwin"  # a Mac's modules are loaded, never linked
    done = subprocess.run(
        [with_library(tmp_path) if linked else compiled(tmp_path, "-O2")],
        capture_output=True,
        encoding="utf-8",
        timeout=600,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(f" runs, 0 differ, digest {DIGEST}\n")


@pytest.mark.skipif(
    ARM_COMPILER is None or ARM_EMULATOR is None,
    reason="needs a compiler for 64-bit ARM and its emulator "
    "(Debian: apt install g++-aarch64-linux-gnu qemu-user)",
)
def test_arm_gives_the_same_bits(tmp_path: Path) -> None:
    """NEON's vectors, compiled here and emulated."""
    assert ARM_EMULATOR is not None
    program = compiled(tmp_path, "-O2", "-static", compiler=ARM_COMPILER, machine="aarch64")
    done = subprocess.run(
        [ARM_EMULATOR, program], capture_output=True, encoding="utf-8", timeout=600
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(f" runs, 0 differ, digest {DIGEST}\n")


def configured(folder: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Let CMake prepare a build of the project."""
    assert CMAKE is not None
    return subprocess.run(
        [CMAKE, "-S", str(ROOT), "-B", str(folder), *options],
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, **environment},
    )


@pytest.mark.skipif(CMAKE is None, reason="needs CMake; pip brings its own to a build")
def test_without_a_compiler_the_build_says_so(tmp_path: Path) -> None:
    """One sentence with both ways out; or, on request, a build without the engine."""
    failed = configured(tmp_path / "a", CXX="/no/such/compiler")
    words = " ".join(failed.stderr.split())

    assert failed.returncode != 0
    assert (
        "petridish: no C++ compiler was found, and the native engine needs one. Install one "
        "(Debian: apt install g++), or install without that engine: pip install . "
        "--config-settings=cmake.define.PETRIDISH_NATIVE=OFF"
    ) in words
    without = configured(tmp_path / "b", "-DPETRIDISH_NATIVE=OFF", CXX="/no/such/compiler")
    assert without.returncode == 0
    assert "petridish: without the native engine; the torch engine takes its place." in (
        without.stdout
    )
