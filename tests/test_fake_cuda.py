"""Whole steps and evaluations on fake CUDA tensors: `tests.fake_cuda`, `tests.fake_reference`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from petridish.training import INSTRUMENTS

SOURCE = Path(__file__).parent / "native" / "pretended_cuda.cpp"
WRONG = {
    "a number is asked for to clip": "DataDependentOutputException",
    "an array of the device": "numpy",
    "all losses are copied": "copies to the host at an evaluation",
    "a tensor of the host in a module": "FakeTensorDeviceMismatchError",
    "minibatches of the host": "numbers are copied for three steps",
    "a number is asked for": "DataDependentOutputException",
    "a tensor of the host": "FakeTensorDeviceMismatchError",
    "an index of the host": "index takes tensors of both cpu and cuda",
    "a copy in every step": "2 copies in two steps",
    "an operator without order": "not deterministic: ['cumsum']",
    "a copy in an evaluation": "copies to the host at an evaluation",
    "a number is asked for in reference": "DataDependentOutputException",
    "a tensor of the host in reference": "FakeTensorDeviceMismatchError",
    "a reading on the device": "an instrument gives add a tensor of the device",
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what became of every case, in a process whose PyTorch believes that it has a GPU."""
    arguments = []
    if not torch.cuda.is_available():
        compiler = next(filter(shutil.which, (os.environ.get("CXX", "c++"), "g++", "clang++")), "")
        if not compiler or sys.platform != "linux":
            pytest.skip("PyTorch's CPU build needs a device guard, which a C++ compiler makes.")
        folder = Path(torch.__file__).parent
        library = tmp_path_factory.mktemp("cuda") / "pretended_cuda.so"
        flags = ["-std=c++20", "-shared", "-fPIC", f"-I{folder / 'include'}"]
        linked = [f"-L{folder / 'lib'}", "-lc10", "-ltorch_cpu", f"-Wl,-rpath,{folder / 'lib'}"]
        made = [compiler, *flags, str(SOURCE), "-o", str(library), *linked]
        subprocess.run(made, check=True, capture_output=True, timeout=300)
        arguments = [str(library)]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.fake_cuda", *arguments],
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        encoding="utf-8",
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_every_case_takes_its_steps(found: dict[str, Any]) -> None:
    """Models, losses, optimisers, penalties, schedules, metrics, instruments; a user's modules."""
    assert len(found["cases"]) > 85
    assert {name: wrong for name, wrong in found["cases"].items() if wrong} == {}


def test_every_case_is_carried_out_by_reference(found: dict[str, Any]) -> None:
    """Whole runs: it asks for its numbers in `on_host` alone, and mixes no devices."""
    assert len(found["reference"]) > 80
    assert {name: wrong for name, wrong in found["reference"].items() if wrong} == {}


def test_every_instrument_is_read(found: dict[str, Any]) -> None:
    """With its stack on the device, in a case where it finds a number."""
    assert set(INSTRUMENTS) <= set(found["read"])


@pytest.mark.parametrize("fault", WRONG)
def test_a_fault_is_seen(found: dict[str, Any], fault: str) -> None:
    """Each of those that the others must not have."""
    assert WRONG[fault] in found["faults"][fault]
