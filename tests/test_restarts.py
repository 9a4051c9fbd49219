"""Restarts: another start, other minibatches and other noise, on the same data."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from torch import nn

from petridish.errors import UserError
from petridish.models import MLP
from petridish.seeds import Streams
from petridish.store import Store
from petridish.sweeps import Sweep, run_sweep
from petridish.tasks import Domain, SparseParity
from petridish.testing import check_engine
from petridish.training import (
    Data,
    Evaluation,
    RunSpec,
    Silent,
    Training,
    cell_text,
    load_engine,
    read_cell,
    read_spec,
    run_key,
    spec_text,
)
from petridish.training.data import batch_indices, initial_weights, sample_examples

SPEC = RunSpec(
    task=SparseParity(12, 3),
    data=Data(m=60, n_test=40),
    model=MLP(width=10),
    training=Training(steps=20, target_error=None),
    evaluation=Evaluation(every=10, curves=True, weights=True),
    seed=4,
)
ONLINE = replace(SPEC, data=Data(n_test=40))
AGAIN = replace(SPEC, restart=2)


@dataclass(frozen=True)
class Dropped:
    """A module with dropout."""

    name: ClassVar[str] = "dropped"

    def build(self, domain: Domain, n_outputs: int) -> nn.Module:
        """Drop half of ten neurons."""
        return nn.Sequential(
            nn.Linear(domain.n_inputs, 10), nn.ReLU(), nn.Dropout(), nn.Linear(10, n_outputs)
        )


def test_a_restart_sees_the_same_data() -> None:
    """Task, training sample and held-out sample are the seed's."""
    for name in ("train", "test"):
        one, other = sample_examples([SPEC], name), sample_examples([AGAIN], name)
        assert np.array_equal(one.x, other.x)
        assert np.array_equal(one.labels, other.labels)


def test_a_restart_draws_start_and_minibatches_anew() -> None:
    """They are what the seed that a word of the stream "restart" names would draw."""
    luck = int(Streams([4], "restart").words(2, 1)[0, 0])
    other = replace(SPEC, seed=luck)
    assert AGAIN.luck == luck
    assert SPEC.luck == 4
    for one, two in zip(initial_weights([AGAIN]), initial_weights([other]), strict=True):
        assert np.array_equal(one, two)
    assert np.array_equal(batch_indices([AGAIN], 0, 5), batch_indices([other], 0, 5))
    assert not np.array_equal(batch_indices([AGAIN], 0, 5), batch_indices([SPEC], 0, 5))


@pytest.mark.parametrize("spec", [SPEC, ONLINE], ids=["sample", "online"])
@pytest.mark.parametrize("engine", ["native", "torch"])
def test_engines_agree_on_restarts(engine: str, spec: RunSpec) -> None:
    """Every engine does with a restart what the reference does."""
    check_engine(load_engine(engine), replace(spec, restart=1))


def test_dropout_is_drawn_anew() -> None:
    """With the same start and minibatches, the masks alone would tell two restarts apart."""
    spec = replace(SPEC, model=Dropped(), init=None)  # type: ignore[arg-type] # its own start
    spec = replace(spec, training=replace(spec.training, batch_size=None))
    check_engine(load_engine("torch"), replace(spec, restart=1))


def test_old_keys_hold_and_restarts_have_their_own() -> None:
    """Restart 0 is not written; runs of one cell differ in seed and restart alone."""
    assert '"restart"' not in spec_text(SPEC)
    assert spec_text(AGAIN).endswith(', "restart": 2, "seed": 4}')
    assert run_key(SPEC) != run_key(AGAIN)
    assert cell_text(SPEC) == cell_text(AGAIN)
    assert read_spec(spec_text(AGAIN)) == AGAIN
    assert read_cell(cell_text(AGAIN)) == replace(SPEC, seed=0)


def test_a_restart_is_a_whole_number() -> None:
    """The message names the field."""
    with pytest.raises(UserError) as refused:
        replace(SPEC, restart=-1)
    assert str(refused.value) == "RunSpec: restart=-1. Give a whole number from 0 to 2^64 − 1."


def test_restarts_are_an_axis_and_a_column(tmp_path) -> None:  # type: ignore[no-untyped-def]
    """A sweep over restarts finds its own runs again, and no others."""
    sweep = Sweep(SPEC, {"restart": range(3), "seed": range(2)})
    store = Store(tmp_path)
    assert run_sweep(sweep, store, executor="inline").done == 6
    assert run_sweep(sweep, store, executor="inline").skipped == 6
    table = store.read().table
    assert sorted(table.select("restart", "seed").rows()) == [
        (restart, seed) for restart in range(3) for seed in range(2)
    ]
    assert len(Sweep(SPEC, {"seed": range(2)}).among(table)) == 2
    assert len(sweep.among(table)) == 6
    assert table["cell"].n_unique() == 1


def test_a_restart_is_another_run() -> None:
    """Two restarts end with different weights."""
    first, second = load_engine("torch").run([SPEC, AGAIN], Silent())
    assert first.weights != second.weights
