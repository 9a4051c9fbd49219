"""The faults of a user's loss, metric or instrument: one sentence each."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

from petridish.cli.main import run_command
from petridish.models import MLP
from petridish.tasks import Domain, Examples, SparseParity
from petridish.testing import (
    check_instrument,
    check_loss,
    check_metric,
    short_run,
)
from petridish.training import (
    Hinge,
    Instrument,
    MeanLoss,
    Metric,
    Reading,
)
from tests.faults import at, carried_out, measured, refused, without_digits

PARITY = short_run(SparseParity(8, 3), MLP(4), Hinge())


@dataclass(frozen=True)
class Lost:
    """A loss with one fault at a time."""

    name: ClassVar[str] = "lost"
    fault: str

    def n_outputs(self, domain: Domain) -> int:
        """Return one."""
        return 1

    def __call__(self, outputs: Tensor, labels: Tensor) -> Any:
        """Return the mean square of the outputs."""
        value = outputs.square().flatten(1).mean(dim=1)
        match self.fault:
            case "number":
                return 1.0
            case "total":
                return value.sum()
            case "detached":
                return value.detach()
            case "random":
                return value * torch.rand(())
            case "raises":
                return value[:, 0]
        return value


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("number", "returned float for 2 runs. Return a tensor with one number per run."),
        (
            "total",
            "returned Tensor of shape () for 2 runs. Return a tensor with one number per run.",
        ),
        (
            "detached",
            "has no gradient by the outputs. Compute it with PyTorch's functions of the outputs, "
            "without detaching them.",
        ),
        (
            "random",
            "returns another value for the same outputs and labels: it draws random numbers that "
            "are not the run's. Leave them out.",
        ),
        (
            "raises",
            f"failed in its call at {at(Lost.__call__, 'value[:, 0]')}: IndexError: too many "
            "indices for tensor of dimension 1. It was given outputs of shape (2, 3, 1), labels of "
            "shape (2, 3).",
        ),
    ],
)
def test_a_fault_of_a_loss(fault: str, sentence: str) -> None:
    """Before anything is trained; the check says the same."""
    whole = f"The loss lost({fault}) {sentence}"
    assert refused(short_run(SparseParity(8, 3), MLP(4), Lost(fault)).check) == whole
    checked = refused(check_loss, Lost(fault), SparseParity(8, 3).domain)
    assert checked == whole.replace("(2, 3", "(2, 6")


@dataclass(frozen=True)
class Seen(Metric):
    """A metric with one fault at a time."""

    name: ClassVar[str] = "seen"
    fault: str = ""
    on: str = "test"

    @property
    def label(self) -> str:
        """The fault."""
        return f"seen_{self.fault}"

    def facts(self, task: Any, examples: Examples) -> Any:
        """Return what is asked for."""
        match self.fault:
            case "unknown":
                return {"heads": examples.facts["heads"]}
            case "few":
                return {"some": np.zeros(3)}
            case "one" | "two":
                return {"mask": np.full(examples.labels.shape[:2], float(self.fault == "two"))}
        return {}

    def each(self, outputs: Tensor, labels: Tensor, facts: Any) -> Any:
        """Return one number per example."""
        match self.fault:
            case "shape":
                return outputs
            case "number":
                return 1.0
            case "raises":
                return facts["heads"]
            case "one" | "two":
                return facts["mask"]
        return outputs.flatten(2).mean(dim=2)


GIVEN = "It was given outputs of shape (2, 3, 1), labels of shape (2, 3), facts []."


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        (
            "unknown",
            f"failed in facts at {at(Seen.facts, 'heads')}: KeyError: 'heads'. It was given "
            "task=sparse_parity(8, 3), facts [].",
        ),
        (
            "few",
            "returned the fact 'some' of shape (3,) for 3 examples of 2 runs. Return a NumPy array "
            "of numbers, (run, example) first.",
        ),
        (
            "shape",
            "returned Tensor of shape (2, 3, 1) from each, for 3 examples of 2 runs. Return a "
            "tensor with one number per run and example.",
        ),
        (
            "number",
            "returned float from each, for 3 examples of 2 runs. Return a tensor with one number "
            "per run and example.",
        ),
        (
            "raises",
            f"failed in each at {at(Seen.each, 'heads')}: KeyError: 'heads'. {GIVEN}",
        ),
    ],
)
def test_a_fault_of_a_metric(fault: str, sentence: str) -> None:
    """Before anything is trained, by the check, and by engines that nobody asked first."""
    whole = f"The metric seen({fault}) {sentence}"
    spec = measured(PARITY, Seen(fault))
    assert refused(spec.check) == whole
    assert refused(check_metric, Seen(fault), PARITY) == whole
    for engine in ("torch", "reference"):
        found = refused(carried_out, engine, spec)
        assert without_digits(found) == without_digits(whole)


def test_two_metrics_do_not_share_a_fact_in_silence() -> None:
    """One would be given what the other asked for."""
    spec = measured(PARITY, Seen("one"), Seen("two"))
    spec.check()
    assert refused(carried_out, "torch", spec) == (
        "Two metrics of this run, seen(two) the second, return different facts called 'mask'. Give "
        "each its own name."
    )


def test_a_metric_of_a_loss_of_ones_own_is_tried() -> None:
    """Also where our class holds it."""

    @dataclass(frozen=True)
    class Halved(Hinge):
        name: ClassVar[str] = "halved"

        def of_margin(self, f: Tensor, y: Tensor) -> Tensor:
            return super().of_margin(f, y).sum(dim=1)

    assert refused(measured(PARITY, MeanLoss(Halved())).check) == (
        "The metric mean_loss(halved) failed in each: RuntimeError: The size of tensor a (3) must "
        f"match the size of tensor b (2) at non-singleton dimension 1. {GIVEN}"
    )


@dataclass(frozen=True)
class Gauge(Instrument):
    """An instrument with one fault at a time."""

    name: ClassVar[str] = "gauge"
    fault: str = ""

    def read(self, reading: Reading) -> Any:
        """Return what is no reading."""
        step = reading.step
        faults: dict[str, Callable[[], Any]] = {
            "tensor": lambda: torch.ones(2),
            "none": lambda: None,
            "text": lambda: np.array(["a"]),
            "shape": lambda: np.ones(1 + step),
            "kind": lambda: np.ones(2) if step == 0 else 1.0,
            "later": lambda: math.nan if step == 0 else np.ones(2),
            "raises": lambda: reading.now["layer9"],
        }
        return faults[self.fault]()


OTHERWISE = "Return a number or a NumPy array of numbers, such as float(x) or x.numpy()."
SAME = "Return the same shape at every reading."


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("tensor", f"returned Tensor of shape (2,) at step 0. {OTHERWISE}"),
        ("none", f"returned NoneType at step 0. {OTHERWISE}"),
        ("text", f"returned ndarray of shape (1,) at step 0. {OTHERWISE}"),
        (
            "shape",
            f"returned an array of shape (2,) at step 1, after an array of shape (1,). {SAME}",
        ),
        ("kind", f"returned a number at step 1, after an array of shape (2,). {SAME}"),
        ("later", f"returned an array of shape (2,) at step 1, after a number. {SAME}"),
        (
            "raises",
            f"failed in read at {at(Gauge.read, 'layer9')}: KeyError: 'layer9'. It was given "
            "step=0.",
        ),
    ],
)
def test_a_fault_of_an_instrument(fault: str, sentence: str) -> None:
    """At its first reading, or at the first that differs, in every engine."""
    whole = f"The instrument gauge({fault}) {sentence}"
    spec = measured(PARITY, instruments=(Gauge(fault),))
    for engine in ("torch", "reference", "native"):
        assert refused(carried_out, engine, spec) == whole
    assert refused(check_instrument, Gauge(fault), PARITY) == whole


FILE = '''
"""An instrument that stumbles."""
from dataclasses import dataclass
from typing import ClassVar

from petridish.models import MLP
from petridish.sweeps import Sweep
from petridish.tasks import SparseParity
from petridish.training import Data, Evaluation, Instrument, RunSpec, Training


@dataclass(frozen=True)
class Stumbling(Instrument):
    name: ClassVar[str] = "stumbling"

    def read(self, reading):
        return reading.now["layer9"]


SWEEP = Sweep(
    RunSpec(
        task=SparseParity(8, 2),
        data=Data(m=20, n_test=20),
        model=MLP(3),
        training=Training(steps=5),
        evaluation=Evaluation(every=5, curves=True, instruments=(Stumbling(),)),
    ),
    {"seed": range(4)},
)
'''


@pytest.mark.parametrize("executor", ["inline", "local"])
def test_a_fault_in_a_users_file_is_one_line(
    executor: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With its place in the file, also from a worker process."""
    path = tmp_path / "stumbling.py"
    path.write_text(FILE, encoding="utf-8")
    options = ["--store", str(tmp_path / "store"), "--executor", executor, "--jobs", "2"]

    assert run_command(["run", str(path), *options]) == 2
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert last == (
        "petridish: The instrument stumbling failed in read at stumbling.py:17: KeyError: "
        "'layer9'. It was given step=0."
    )
