"""The native engine in service: what it takes, refuses, measures, and how it stops."""

from __future__ import annotations

import ctypes
import re
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from petridish.errors import UserError
from petridish.models import MLP, DisjointPolyNet, Identity, Oscillating
from petridish.tasks import SparseMajority, SparseParity
from petridish.tasks.base import OnSupport
from petridish.training import (
    INSTRUMENTS,
    LOSSES,
    SGD,
    Adam,
    CrossEntropy,
    Data,
    Evaluation,
    Hinge,
    Piece,
    RunSpec,
    Schedule,
    Silent,
    Training,
    choose_engine,
    load_engine,
)
from petridish.training.data import initial_weights
from petridish.training.engines.native import CALL_SECONDS, MOST_WORK, Pace, prepare
from petridish.training.native import library
from petridish.training.native.library import ISA_VARIABLE, chosen_set
from petridish.training.native.run import LOSSES as COMPILED_LOSSES
from petridish.training.native.run import NativeRun
from tests.conftest import Command
from tests.native_runs import (
    HERE,
    by_hand,
    carry_out,
    spec_of,
)


class Stopper(Silent):
    """A monitor that notes the steps it hears of, and asks to stop after so many calls."""

    def __init__(self, stop_after: int) -> None:
        self.steps: list[int] = []
        self.stop_after = stop_after

    def stepped(self, model_steps: int) -> None:
        """Note the steps."""
        self.steps.append(model_steps)

    def stopped(self) -> bool:
        """Stop after as many calls as were asked for."""
        return len(self.steps) >= self.stop_after


def test_the_callers_floating_point_mode_comes_back() -> None:
    """Numbers below 1e-38 exist again after a run."""
    carry_out(spec_of(), HERE[0])
    assert np.float32(1e-40) * np.float32(0.5) > 0


def test_a_call_is_a_small_part_of_a_wide_step() -> None:
    """A monitor is asked after every call, and the first calls are short however wide the network.

    A step of this network is 3.2 million units of work (a neuron on 32 examples); six calls, were
    each twice as long as the last, would do 20 000 · (2^6 − 1) of them.
    """
    spec = RunSpec(
        task=SparseParity(200, 3),
        model=MLP(100_000),
        data=Data(m=1000),
        training=Training(batch_size=1024),
    )
    stopper = Stopper(stop_after=6)
    assert list(load_engine("native").run([spec], stopper)) == []
    assert stopper.steps == [0] * 6


@given(st.floats(1e-12, 1e3), st.integers(1, MOST_WORK))
def test_the_pace_of_calls_follows_their_length(seconds: float, work: int) -> None:
    """Work moves towards calls of 0.04 s, by a factor of two at most, and never to nothing."""
    pace = Pace()
    pace.work = work
    pace.adjust(seconds)

    assert 1 <= pace.work <= MOST_WORK
    assert work // 2 <= pace.work <= 2 * work
    if seconds >= 2 * CALL_SECONDS:
        assert pace.work == max(1, work // 2)
    if seconds <= CALL_SECONDS / 2:
        assert pace.work == min(MOST_WORK, 2 * work)


NETWORKS = (
    "it trains two-layer networks of this package's activations, polynets, transformers of "
    "attention alone, the minimal one and blocks with [CLS]"
)
REFUSALS: dict[str, dict[str, Any]] = {
    f"{NETWORKS}, and the model is mlp(5, (5,))": {"model": MLP(5, (5,))},
    f"{NETWORKS}, and the model is mlp(5, (), identity)": {"model": MLP(5, (), Identity())},
    f"{NETWORKS}, and the model is mlp(5, (), oscillating(31))": {
        "model": MLP(5, (), Oscillating(31))
    },
    f"{NETWORKS}, and the model is disjoint_polynet(2)": {"model": DisjointPolyNet(2)},
    "it takes up to 4096 inputs, and the task has n=5000": {"task": SparseParity(5000, 3)},
    "it has no loss cross_entropy": {"training": {"loss": CrossEntropy()}},
    "it has plain SGD alone, and the optimiser is adam": {"training": {"optimiser": Adam()}},
    "it has plain SGD alone, and the optimiser is sgd(0.5)": {"training": {"optimiser": SGD(0.5)}},
    "it takes batches of up to 1024, and the batch size is 1025": {
        "training": {"batch_size": 1025}
    },
    "online it takes functions of up to 16 bits other than parities, and the task has 17": {
        "task": SparseMajority(20, 17),
        "data": Data(),
    },
    "it takes learning rate × weight decay up to 0.99, and here it is 2": {
        "training": {"schedule": Schedule((Piece(3, decay=20.0),)), "weight_decay": 1.0}
    },
}


def test_its_losses_are_those_of_the_header_and_known_by_name() -> None:
    """In one order on both sides; a loss of a user's own, of the same name, is another one."""
    header = Path(__file__).parent.parent / "native/petridish.h"
    listed = re.search(r"enum petridish_loss \{(.*?)\}", header.read_text(encoding="utf-8"))
    assert listed is not None
    numbered = [f"{name.upper()} = {number}" for number, name in enumerate(COMPILED_LOSSES)]
    assert [each.strip() for each in listed[1].split(",")] == numbered

    for name in COMPILED_LOSSES:
        assert choose_engine(spec_of(training={"loss": LOSSES[name]()}), "native").name == "native"
    own = type("Own", (Hinge,), {"__module__": __name__})
    assert choose_engine(spec_of(training={"loss": own()})).name == "torch"


@pytest.mark.parametrize("reason", REFUSALS)
def test_what_it_cannot_serve_is_refused_by_name(reason: str) -> None:
    """Before anything starts, with the engine that can; `auto` takes that one."""
    spec = spec_of(**REFUSALS[reason])
    with pytest.raises(UserError) as error:
        choose_engine(spec, "native")
    assert str(error.value) == (
        f"The engine native cannot serve this run: {reason}. The engine torch can."
    )
    assert choose_engine(spec).name == "torch"


def test_the_environment_chooses_the_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    """PETRIDISH_ISA names one of the sets; an unknown one is refused with those that run here."""
    for isa in HERE:
        monkeypatch.setenv(ISA_VARIABLE, isa.name)
        assert chosen_set() == isa
    monkeypatch.setenv(ISA_VARIABLE, "portible")
    with pytest.raises(UserError) as error:
        chosen_set()
    assert str(error.value) == (
        "PETRIDISH_ISA=portible asks for instructions that this processor, or this build, does "
        "not have. Did you mean portable?"
    )


def test_without_the_library_torch_takes_over_with_one_warning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The warning says what was lost and how to get it; asking for native by name is refused."""
    monkeypatch.setattr("petridish.training.engines.base.is_built", lambda: False)
    with pytest.warns(UserWarning, match="was not built") as warned:
        assert choose_engine(spec_of()).name == "torch"
    assert [str(warning.message) for warning in warned] == [
        "The native engine was not built; the engine torch takes its place and is many times "
        "slower. Install a C++ compiler and install petridish again."
    ]
    with pytest.raises(UserError) as error:
        choose_engine(spec_of(), "native")
    assert str(error.value) == (
        "The engine native cannot serve this run: it was not built when petridish was installed. "
        "The engine torch can."
    )


ELSEWHERE = (
    *("attention", "cls_attention", "effective_positions", "induction_heads", "weight_probes"),
)
"""Modules of instruments of transformers and dictionaries, which have tests of their own."""


@pytest.mark.parametrize("engine", ["native", "torch", "reference"])
def test_instruments_are_read_at_every_look(engine: str) -> None:
    """Movement, norms, relevant and irrelevant weights, as by hand from the weights by hand."""
    elsewhere = {f"petridish.training.{room}" for room in ELSEWHERE}
    names = {name for name, kind in INSTRUMENTS.items() if kind.__module__ not in elsewhere}
    spec = spec_of(evaluation=Evaluation(every=25, curves=True, instruments=tuple(sorted(names))))
    (record,) = load_engine(engine).run([spec], Silent())
    found = record.curves.values
    relevant = spec.task.supports([spec.seed])[0]  # type: ignore[attr-defined] # a parity
    start = [weight[0] for weight in initial_weights([spec])]
    _, end = by_hand(spec)
    others = np.setdiff1d(np.arange(20), relevant)

    arrays = {"first_layer_weights"}
    assert set(found) == {"train_loss", "train_error", "test_error", *names} - arrays
    assert all(len(values) == 3 for values in found.values())
    assert found["movement"][0] == 0
    moved = max(np.abs(now - before).max() for now, before in zip(end, start, strict=True))
    assert found["movement"][2] == pytest.approx(moved, rel=1e-4)
    assert found["neuron_norm"][2] == pytest.approx(np.linalg.norm(end[0], axis=1).max(), rel=1e-4)
    assert found["relevant_weight"][0] == np.abs(start[0][:, relevant]).max()
    assert found["relevant_weight"][2] == pytest.approx(np.abs(end[0][:, relevant]).max(), rel=1e-4)
    assert found["irrelevant_weight"][2] == pytest.approx(np.abs(end[0][:, others]).max(), rel=1e-4)
    lead = np.abs(end[0][:, relevant]).min(axis=1) - np.abs(end[0][:, others]).max(axis=1)
    assert found["relevant_lead"][2] == pytest.approx(lead.max(), rel=1e-4, abs=1e-6)
    kept = record.curves.arrays["first_layer_weights"]
    ordered = end[0][:, [*sorted(relevant), *others]]
    assert len(kept) == 3
    assert kept[2] == pytest.approx(ordered, rel=1e-4, abs=1e-6)


class OddLabels(SparseParity):
    """A parity with an exception, whose labels come as 64-bit integers, as NumPy's sums do."""

    label = OnSupport.label

    def evaluate(self, bits: Any) -> Any:
        """Add the bits up, modulo 2; no bit at all counts as one."""
        ones = bits.sum(-1)
        return (ones + (ones == 0)) % 2


@pytest.mark.parametrize("data", [Data(m=100, n_test=64), Data(n_test=64)], ids=["sample", "fresh"])
def test_a_users_own_labels_are_taken_as_they_are(data: Data) -> None:
    """Another rule and another type of integer than this package's: the reference's losses."""
    spec = spec_of(task=OddLabels(12, 3), data=data)
    (ours,) = load_engine("native").run([spec], Silent())
    (theirs,) = load_engine("reference").run([spec], Silent())
    assert np.allclose(ours.curves["train_loss"][1:], theirs.curves["train_loss"][1:], rtol=1e-4)
    assert ours.curves["test_error"] == theirs.curves["test_error"]


def test_weights_of_another_shape_are_refused() -> None:
    """Before the library reads them."""
    (arguments,) = prepare([spec_of(model=MLP(4), task=SparseParity(3, 1))])
    weight, bias, output, output_bias = arguments.weights
    with pytest.raises(UserError) as error:
        NativeRun(replace(arguments, weights=[weight.T, bias, output, output_bias]))
    assert str(error.value) == (
        "The initial weights have the shapes [(3, 4), (4,), (1, 4), (1,)], but a two-layer network "
        "of 3 neurons on 3 inputs has [(3, 3), (3,), (1, 3), (1,)]. Let the initialisation give "
        "each parameter its own shape."
    )


def test_numbers_beyond_64_bits_mean_never() -> None:
    """A look every 2^64 steps, or a rate from step 2^64 on, is one that does not come."""
    plain = spec_of(evaluation=Evaluation(every=60, curves=True))
    late = replace(
        plain,
        evaluation=Evaluation(every=2**64, curves=True),
        training=replace(plain.training, schedule=Schedule((Piece(2**64, 0.0),))),
    )
    (one,), (other,) = (list(load_engine("native").run([spec], Silent())) for spec in (plain, late))
    assert repr(one.curves) == repr(other.curves)  # as text: NaN equals NaN


def test_the_warning_is_shown_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks for an engine, and however often."""
    monkeypatch.setattr("petridish.training.engines.base.is_built", lambda: False)
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("default")
        choose_engine(spec_of())
        choose_engine(spec_of(model=MLP(3)))
    assert len(shown) == 1


def test_another_library_is_refused(petridish: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line, the variable by name, exit code 2."""
    monkeypatch.setenv("PETRIDISH_LIBRARY", "no-such-library.so")
    done = petridish("run", "PF-1", "--scale", "smoke", "--executor", "inline")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(
        "petridish: The native engine cannot be loaded: "
    )
    assert done.stderr.endswith(". Correct PETRIDISH_LIBRARY.\n")


def test_a_library_of_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the number of its interface, and by the size of each struct that crosses it."""
    load, compiled = library.library.__wrapped__, library.library()._name
    end = "Install petridish again."

    longer = type("State", (library.State,), {"_fields_": [("more", ctypes.c_double)]})

    with monkeypatch.context() as patched:
        patched.setattr(library, "_STRUCTS", (*library._STRUCTS[:3], longer))
        with pytest.raises(UserError) as of_struct:
            load()
    assert str(of_struct.value) == (
        f"The native engine at {compiled} is of another version of petridish (its State has 40 "
        f"bytes, this one's has 48). {end}"
    )
    monkeypatch.setattr(library, "ABI", library.ABI + 1)
    with pytest.raises(UserError) as of_interface:
        load()
    assert str(of_interface.value) == (
        f"The native engine at {compiled} is of another version of petridish (its interface is "
        f"{library.ABI - 1}, this one's is {library.ABI}). {end}"
    )
