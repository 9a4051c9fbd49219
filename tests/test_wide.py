"""Runs on tables: epochs, and the wide engine against the reference."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from petridish.errors import UserError
from petridish.models import MLP, Identity, Sparse, Uniform
from petridish.tasks import SparseParity
from petridish.tasks.table import find_table
from petridish.training import (
    SGD,
    Adam,
    AdamW,
    CrossEntropy,
    Data,
    Evaluation,
    Hinge,
    Logistic,
    Outcome,
    RunSpec,
    Silent,
    Training,
    choose_engine,
    load_engine,
    run_key,
    spec_text,
    step_schedule,
)
from petridish.training.data import batch_indices

CANCER, DIGITS = find_table("breast_cancer"), find_table("digits")


def spec_of(**changes: Any) -> RunSpec:
    """Return a short run on a table, watched at its end only."""
    training: dict[str, Any] = {
        "loss": Logistic(),
        "optimiser": Adam(),
        "learning_rate": 1e-3,
        "weight_decay": 0.01,
        "batch_size": 32,
        "batches": "epochs",
        "steps": 40,
        "target_error": None,
    } | changes.pop("training", {})
    base: dict[str, Any] = {
        "task": CANCER,
        "data": Data(m=100, n_test=56),
        "model": MLP(24),
        "init": Sparse(2),
        "training": Training(**training),
        "evaluation": Evaluation(every=10, fitted_error=None),
    }
    return RunSpec(**(base | changes))


SPECS = {
    "adam": spec_of(),
    "adamw": spec_of(training={"optimiser": AdamW(), "weight_decay": 0.5}),
    "momentum": spec_of(training={"optimiser": SGD(0.9), "learning_rate": 0.05}),
    "sgd": spec_of(training={"optimiser": SGD(), "learning_rate": 0.1}),
    "dense": spec_of(init=Uniform()),
    "depth 3": spec_of(model=MLP(12, deeper=(20, 8))),
    "cross entropy": spec_of(training={"loss": CrossEntropy()}),
    "ten classes": spec_of(
        task=DIGITS, data=Data(m=90, n_test=179), training={"loss": CrossEntropy()}
    ),
    "noise": spec_of(data=Data(m=100, n_test=56, label_noise=0.3)),
    "replacement": spec_of(training={"batches": "replacement"}),
    "full batch": spec_of(training={"batches": "replacement", "batch_size": None}),
    "one batch an epoch": spec_of(training={"batch_size": 256}),
}


@pytest.mark.parametrize("name", SPECS)
def test_wide_runs_agree_with_the_reference(name: str, seed: int) -> None:
    """Loss and error at the end are those of `nn.Module` and autograd, and of the stack."""
    spec = replace(SPECS[name], seed=seed)
    assert choose_engine(spec).name == "wide"
    wide, stacked, plain = (
        next(iter(load_engine(engine).run([spec], Silent())))
        for engine in ("wide", "torch", "reference")
    )
    for record in (wide, stacked):
        assert (record.outcome, record.steps) == (Outcome.OUT_OF_STEPS, 40)
        assert record.train_loss == pytest.approx(plain.train_loss, rel=1e-3)
        # A rounding may move an example across the boundary.
        assert record.test_error == pytest.approx(plain.test_error, abs=1.5 / spec.data.n_test)


def test_a_wide_run_is_its_own_whatever_runs_beside_it() -> None:
    """Alone, in company and in another order, a run ends with the same bits."""
    specs = [replace(SPECS["adam"], seed=seed) for seed in range(4)]
    engine = load_engine("wide")
    together = {r.spec: (r.test_error, r.train_loss) for r in engine.run(specs, Silent())}
    for spec in reversed(specs):
        (record,) = engine.run([spec], Silent())
        assert (record.test_error, record.train_loss) == together[spec]
    assert len(set(together.values())) > 1


def test_a_wide_run_that_diverges_says_so() -> None:
    """A loss that is not finite ends the run, and the error is not a number."""
    spec = spec_of(training={"optimiser": SGD(), "learning_rate": 1e30, "batch_size": 16})
    (record,) = load_engine("wide").run([spec], Silent())
    assert record.outcome is Outcome.DIVERGED
    assert record.steps < 40
    assert math.isnan(record.test_error)
    assert math.isnan(record.train_loss)


def test_a_stopped_wide_run_is_given_up() -> None:
    """A monitor that stops ends the call without a record."""

    class Stop(Silent):
        def stopped(self) -> bool:
            return True

    assert list(load_engine("wide").run([spec_of()], Stop())) == []


def test_wide_refuses_what_it_was_not_written_for() -> None:
    """Each refusal says what it takes and what was given, and names the engine that can."""
    refused = {
        "it trains on tables, and the task is sparse_parity. The engine torch can.": spec_of(
            task=SparseParity(10, 2)
        ),
        "it trains ReLU networks with an output layer, and the model is mlp(5, (), identity). "
        "The engine torch can.": spec_of(model=MLP(5, activation=Identity())),
        "it has no loss hinge. The engine torch can.": spec_of(training={"loss": Hinge()}),
        "it measures a run at its end only, and this run is to be watched. The engine torch "
        "can.": spec_of(evaluation=Evaluation(curves=True)),
        "it has one rate for the whole run, and this run has a schedule. The engine torch "
        "can.": spec_of(training={"schedule": step_schedule((10,), 0.1)}),
    }
    for sentence, spec in refused.items():
        assert load_engine("wide").refusal(spec) == sentence
        assert choose_engine(spec).name != "wide"


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 50), st.integers(1, 20), st.integers(0, 1000))
def test_an_epoch_sees_every_example_once(m: int, batch: int, seed: int) -> None:
    """The batches of an epoch are a permutation of the sample, and the next epoch has another."""
    spec = spec_of(data=Data(m=m, n_test=5), training={"batch_size": batch}, seed=seed)
    steps = -(-m // batch)
    epochs = [
        np.concatenate([batch_indices([spec], e * steps + s, 1)[0, 0] for s in range(steps)])
        for e in range(3)
    ]
    for order in epochs:
        assert sorted(order) == list(range(m))
    if m > 20:  # two orders of 21 examples agree with a chance of 10^-19
        assert not np.array_equal(epochs[0], epochs[1])
    assert len(batch_indices([spec], 0, 1)[0, 0]) == min(batch, m) == spec.examples_per_step


def test_epochs_need_a_sample_and_a_batch_size() -> None:
    """What cannot be cut into epochs is refused, in whole sentences."""
    with pytest.raises(UserError) as error:
        Training(batches="epochs", batch_size=None)
    assert str(error.value) == (
        "Training: batches='epochs' cuts the sample into minibatches, and batch_size=None takes it "
        "whole. Give a batch size."
    )
    with pytest.raises(UserError) as error:
        Training(batches="epoch")  # type: ignore[arg-type] # the mistake meant
    assert str(error.value) == "Training: batches='epoch'. Give 'replacement' or 'epochs'."
    with pytest.raises(UserError) as error:
        RunSpec(task=SparseParity(10, 2), training=Training(batches="epochs"))
    assert str(error.value) == (
        "RunSpec: batches='epochs' goes through the training sample, but online there is none. "
        "Give a finite data.m or batches='replacement'."
    )


def test_runs_stored_before_there_were_epochs_keep_their_names() -> None:
    """Drawing with replacement is no part of a run's name; going through epochs is."""
    spec = spec_of(training={"batches": "replacement"})
    assert run_key(spec) != run_key(spec_of())
    assert "batches" not in spec_text(spec)
    assert '"batches": "epochs"' in spec_text(spec_of())
