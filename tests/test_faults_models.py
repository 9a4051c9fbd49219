"""The faults of a user's module or start, found before anything is trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from petridish.models import MLP, FitsItself
from petridish.tasks import Domain, SparseParity
from petridish.testing import (
    check_init,
    check_model,
    short_run,
)
from petridish.training import (
    Data,
    RunSpec,
)
from tests.faults import at, carried_out, refused
from tests.own_parts import Waves


@dataclass(frozen=True)
class Built:
    """A module with one fault at a time."""

    name: ClassVar[str] = "built"
    fault: str = ""

    def build(self, domain: Domain, n_outputs: int) -> nn.Module:
        """Return the module."""
        if self.fault == "build":
            return self.missing  # type: ignore[attr-defined,no-any-return]
        if self.fault == "sequential":
            return nn.Sequential(nn.Linear(domain.n_inputs + 1, n_outputs))
        return BuiltModule(self.fault, domain.n_inputs, n_outputs)


class BuiltModule(nn.Module):
    """A linear layer, and a fault."""

    seen: Tensor

    def __init__(self, fault: str, n_inputs: int, n_outputs: int) -> None:
        super().__init__()
        self.fault, self.calls, self.many = fault, 0, [1.0]
        self.layer = nn.Linear(n_inputs + (fault == "size"), n_outputs)
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        """Return outputs."""
        match self.fault:
            case "counts":
                self.calls += 1
            case "list":
                self.many[0] += 1
            case "buffer":
                self.seen += 1
            case "trains":
                self.seen += self.training
            case "others":
                x = x - x.mean(dim=0)
            case "nan":
                x = (x - x).log() * 0
        outputs: Tensor = self.layer(x) * self.many[0]
        return outputs


MODELS = [
    (
        "sequential",
        f"The module of built(sequential) ({at(Built, '@dataclass')}) failed in forward: "
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (3x3 and 4x2). It was given x of "
        "shape (3, 3).",
    ),
    (
        "size",
        f"The module of built(size) failed in forward at {at(BuiltModule.forward, 'self.layer')}: "
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (3x3 and 4x2). It was given x of "
        "shape (3, 3).",
    ),
    (
        "build",
        f"The model built(build) failed in build at {at(Built.build, 'missing')}: AttributeError: "
        "'Built' object has no attribute 'missing'. It was given domain=Domain(Reals((3,)), "
        "Values(2)), n_outputs=2.",
    ),
    (
        "counts",
        "The module of built(counts) changes its attribute calls in forward, which is no part of "
        "the run's state: engines call a module at other times. Register a buffer, and change it "
        "where self.training is true, or leave it out.",
    ),
    (
        "list",
        "The module of built(list) returns other outputs when it is called again with the same "
        "inputs, weights and buffers: it keeps state, or draws random numbers, in attributes of "
        "its own. Register buffers, or use nn.Dropout, torch.rand_like or torch.randn_like.",
    ),
    (
        "buffer",
        "The module of built(buffer) changes its buffer seen in evaluation: a run would depend on "
        "when it is measured. Change it only where self.training is true, as nn.BatchNorm1d does.",
    ),
    (
        "others",
        "The module of built(others) answers an example by what others are beside it, in "
        "evaluation too. Let an output depend on its own example, as with nn.BatchNorm1d in "
        "evaluation.",
    ),
    (
        "nan",
        "The module of built(nan) returns NaN for finite inputs, with the weights that it begins "
        "with. Look for logarithms, roots and divisions that leave their domain.",
    ),
]


@pytest.mark.parametrize(("fault", "sentence"), MODELS)
def test_a_fault_of_a_module(fault: str, sentence: str) -> None:
    """Before anything is trained."""
    assert refused(short_run(Waves(), Built(fault)).check) == sentence
    assert refused(check_model, Built(fault), Waves()) == sentence


def test_a_buffer_that_training_changes_is_state() -> None:
    """As running means are: both engines keep it."""
    check_model(Built("trains"), Waves())


@dataclass(frozen=True)
class Bent:
    """An activation that changes shapes."""

    name: ClassVar[str] = "bent"

    def __call__(self, z: Tensor) -> Tensor:
        """Return half of the neurons."""
        return z[..., : z.shape[-1] // 2]


def test_a_fault_inside_one_of_our_models() -> None:
    """An activation of one's own is tried with the model around it."""
    sentence = refused(short_run(Waves(), MLP(4, activation=Bent())).check)
    assert sentence == (
        "The module of mlp(4, (), bent) failed in forward: RuntimeError: mat1 and mat2 shapes "
        "cannot be multiplied (3x2 and 4x2). It was given x of shape (3, 3)."
    )


@dataclass(frozen=True)
class Guess(FitsItself):
    """Predicts one class for all."""

    name: ClassVar[str] = "guess"

    def fit_predict(self, *_: Any, **__: Any) -> Any:
        """Return one number."""
        return np.zeros(1)


def test_a_fault_of_a_model_that_fits_itself() -> None:
    """One class per example."""
    spec = RunSpec(task=SparseParity(8, 2), data=Data(m=9, n_test=7), model=Guess())
    assert refused(carried_out, "fit", spec) == (
        "The model guess predicted classes of shape (1,) for 7 examples. Return one class per "
        "example from fit_predict."
    )


@dataclass(frozen=True)
class Start:
    """A start with one fault at a time."""

    name: ClassVar[str] = "start"
    fault: str

    def draw(self, parameters: Any, seeds: Any) -> Any:
        """Draw ones."""
        found = [np.ones((len(seeds), *p.shape), np.float32) for p in parameters]
        match self.fault:
            case "few":
                return found[1:]
            case "shape":
                found[0] = found[0][..., :1]
            case "number":
                return 1.0
            case "random":
                found[1] += torch.rand(()).item()
            case "type":
                found = [each.astype(np.float64) for each in found]
            case "neighbours":
                found[0][1:] = 2.0
        return found


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        (
            "few",
            "The start start(few) drew 3 arrays for 4 parameters. Return a list with one array per "
            "parameter.",
        ),
        (
            "number",
            "The start start(number) drew float for 4 parameters. Return a list with one array per "
            "parameter.",
        ),
        (
            "shape",
            "The start start(shape) drew ndarray of shape (1, 4, 1) for layer1.weight. Return "
            "float32 of the shape (1, 4, 3).",
        ),
    ],
)
def test_a_fault_of_a_start(fault: str, sentence: str) -> None:
    """Before anything is trained."""
    assert refused(short_run(Waves(), MLP(4), init=Start(fault)).check) == sentence


def test_a_start_that_is_no_runs_own() -> None:
    """Hidden randomness, neighbours and types are told apart."""
    found = {
        fault: refused(check_init, Start(fault), MLP(4), Waves())
        for fault in ("random", "neighbours", "type")
    }
    assert found == {
        "random": "start(random): layer1.bias, drawn again for the same runs, is another: it is "
        "drawn by random numbers that are not the run's. Draw it from Streams(seeds, name).",
        "neighbours": "start(neighbours): layer1.weight of one run depends on the other runs. Draw "
        "it from Streams(seeds, name), one row per run.",
        "type": "start(type): layer1.weight was drawn with the type float64. Draw float32.",
    }
