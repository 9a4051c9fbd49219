"""Parts of a spec whose classes are gone, wherever they are nested.

No test defines a class Fled: any class of an imported module could stand in for one that is gone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from petridish.errors import UserError
from petridish.models import MLP, ByName, Constant, Homogeneous, Normal, Paired, Sine
from petridish.tasks import GroupProduct, SparseParity
from petridish.training import (
    Below,
    CrossEntropy,
    Data,
    Error,
    Evaluation,
    Held,
    MeanLoss,
    Movement,
    NeuronNorm,
    Piece,
    RunSpec,
    Schedule,
    Silent,
    Square,
    Training,
    choose_engine,
    flat,
    load_engine,
    read_spec,
    spec_text,
)
from petridish.values import Gone, GoneError


def test_a_metric_or_instrument_that_is_gone_leaves_the_store_readable() -> None:
    """Its run is read, printed and grouped like others, and refuses to run."""
    spec = RunSpec(
        task=SparseParity(8, 2),
        training=Training(stop=Below(Error(part="a"), 0.1)),
        evaluation=Evaluation(
            curves=True, metrics=(Error(on="train"),), instruments=(Movement("layer1.*"),)
        ),
    )
    text = spec_text(spec)
    for name in ("Error", "Movement", "Below"):
        strange = text.replace(f'"type": "{name}"', '"code": "0123456789abcdef", "type": "Fled"')
        gone = read_spec(strange)

        assert json.loads(spec_text(gone)) == json.loads(strange)
        assert "Fled" in str(flat(gone))
        with pytest.raises(UserError, match="The class Fled of this run is not here"):
            gone.check()


def _places(written: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all values in the JSON of a spec."""
    if isinstance(written, dict) and path:
        yield path
    inner = written.items() if isinstance(written, dict) else enumerate(written)
    for name, part in inner:
        if isinstance(part, dict | list):
            yield from _places(part, (*path, name))


NESTED = [
    RunSpec(
        task=SparseParity(8, 2),
        model=MLP(5, activation=Sine(2)),
        init=ByName((("@bias", Constant(0.0)), ("*", Paired(Normal())))),
        training=Training(
            schedule=Schedule((Piece(0, decay=(("layer1.*", 0.0), ("*", 1.0))),)),
            penalty=NeuronNorm(1e-3),
            stop=Below(MeanLoss(Square()), 0.1),
        ),
        evaluation=Evaluation(
            curves=True,
            metrics=(Error(on="other"),),
            samples=(Held("other", SparseParity(8, 2)),),
            reached=(Below(Error(on="other"), 0.2),),
            instruments=(Movement("layer1.*"),),
        ),
    ),
    RunSpec(task=GroupProduct("Z5"), model=Homogeneous(5), training=Training(loss=CrossEntropy())),
]


@pytest.mark.parametrize("spec", NESTED, ids=lambda spec: spec.model.name)
def test_a_part_that_is_gone_is_found_wherever_it_is_nested(spec: RunSpec) -> None:
    """Every part in turn: its run is read with its key, and neither check nor engine carries it."""
    written = json.loads(spec_text(spec))
    refusal = (
        "The class Fled of this run is not here: the run can be looked at, but not carried out. "
        "Load the file that defines it."
    )
    for path in _places(written):
        changed = json.loads(json.dumps(written))
        part = changed
        for step in path:
            part = part[step]
        part |= {"type": "Fled", "code": "0123456789abcdef"}
        gone = read_spec(json.dumps(changed))

        assert json.loads(spec_text(gone)) == changed
        for refused in (gone.check, lambda gone=gone: choose_engine(gone)):
            with pytest.raises(UserError) as error:
                refused()
            assert str(error.value) == refusal


@pytest.mark.parametrize("engine", ["torch", "reference"])
def test_an_engine_that_is_given_a_gone_activation_says_so(engine: str) -> None:
    """Also where nobody has checked the run."""
    gone: Any = Gone("Fled", (("code", "0123456789abcdef"),))
    spec = RunSpec(task=SparseParity(8, 2), data=Data(m=9, n_test=9), model=MLP(5, (), gone))
    with pytest.raises(GoneError) as error:
        list(load_engine(engine).run([spec], Silent()))
    assert str(error.value) == gone.refusal
