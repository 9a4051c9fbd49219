"""A setting without effect is refused; the two spellings of a stop rule are one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from petridish.errors import UserError
from petridish.models import MLP, ByName, Constant, Normal
from petridish.sweeps import Sweep
from petridish.sweeps.batches import check_all
from petridish.sweeps.sweep import with_value
from petridish.tasks import Classes, Domain, SparseParity
from petridish.testing import short_run
from petridish.training import (
    KL,
    Above,
    Below,
    Error,
    Evaluation,
    Held,
    Hinge,
    Piece,
    RunSpec,
    Schedule,
    Training,
    run_key,
)
from tests.own_parts import Coins, Mixed, Reader

PARITY = short_run(SparseParity(8, 3), MLP(4), Hinge())
COINS = short_run(Coins(), Reader())
OTHER = Held("other", SparseParity(8, 3), 20)


def trained(**changes: Any) -> RunSpec:
    """Return a run with other settings of its training."""
    return replace(PARITY, training=replace(PARITY.training, **changes))


def measured(spec: RunSpec, **changes: Any) -> RunSpec:
    """Return a run with other settings of its evaluation."""
    return replace(spec, evaluation=replace(spec.evaluation, **changes))


def scheduled(*pieces: Piece, **changes: Any) -> RunSpec:
    """Return a run with a schedule."""
    return trained(schedule=Schedule(pieces), **changes)


class OneToss(Coins):
    """The last toss alone is asked for."""

    @property
    def domain(self) -> Any:
        """Return tokens and one class."""
        return Domain(super().domain.inputs, Classes(2))

    def draw(self, *arguments: Any) -> Any:
        """Draw sequences, with their last label."""
        drawn = super().draw(*arguments)
        return replace(drawn, labels=drawn.labels[..., -1])


REFUSED: list[tuple[Any, str]] = [
    (
        lambda: scheduled(Piece(0, rate=(("*", 1.0), ("layer1.*", 0.0)))).check(),
        "The schedule: the pattern 'layer1.*' has no effect: earlier ones, such as '*', fit all "
        "that it fits. Put it before them, or leave it out.",
    ),
    (
        lambda: replace(
            PARITY,
            init=ByName(
                (
                    ("@weight", Normal()),
                    ("layer2.bias", Constant(1.0)),
                    ("layer2.*", Constant(0.0)),
                    ("*", Normal()),
                )
            ),
        ).check(),
        "ByName: the pattern 'layer2.*' has no effect: earlier ones, such as '@weight', fit all "
        "that it fits. Put it before them, or leave it out.",
    ),
    (
        lambda: Training(target_error=0.05, stop=Above(Error(), 0.4)),
        "Training: target_error=0.05 has no effect beside stop=above(error, 0.4), which takes its "
        "place. Give one of the two.",
    ),
    (
        lambda: Training(target_error=0.05, stop=Below(Error(), 0.2)),
        "Training: target_error=0.05 has no effect beside stop=below(error, 0.2), which takes its "
        "place. Give one of the two.",
    ),
    (
        lambda: measured(PARITY, samples=(OTHER,)).check(),
        "Evaluation: nothing is measured on the sample 'other'. Name it in a metric, such as "
        "Error(on='other', part=None, positions='all'), or leave it out.",
    ),
    (
        lambda: scheduled(Piece(0, decay=(("@weight", 1.0), ("*", 0.0))), weight_decay=0.0).check(),
        "The schedule: decay=(('@weight', 1.0), ('*', 0.0)) has no effect, because weight_decay=0. "
        "Give a weight decay, or leave the factors out.",
    ),
    (
        lambda: measured(PARITY, metrics=(Error(positions="last"),)).check(),
        "Error: positions='last' has no effect, because the task sparse_parity(8, 3) has one label "
        "per example. Leave it out.",
    ),
    (
        lambda: KL("truth", positions="all").check(replace(COINS, task=OneToss())),
        "KL: positions='all' has no effect, because the task coins has one label per example. "
        "Leave it out.",
    ),
]


@pytest.mark.parametrize(("make", "sentence"), REFUSED)
def test_a_setting_without_effect_is_refused(make: Any, sentence: str) -> None:
    """One sentence: what was wrong, what was given, what to do."""
    with pytest.raises(UserError) as error:
        make()
    assert str(error.value) == sentence


def test_settings_that_have_an_effect_are_not() -> None:
    """A last line for all the rest, a sample of a threshold or an instrument, decays by layer."""
    every = (("@weight", 0.5), ("@bias", 0.1), ("*", 1.0))
    scheduled(Piece(0, rate=every)).check()
    scheduled(Piece(0, decay=(1.0, 0.0)), weight_decay=0.0).check()
    measured(PARITY, samples=(OTHER,), reached=(Below(Error(on="other"), 0.1),)).check()
    measured(COINS, samples=(Held("more", Coins(), 20),), instruments=(Mixed(),)).check()
    measured(COINS, metrics=(Error(positions="last"), KL("truth", positions="all"))).check()
    assert Training(target_error=0.05, stop=Below(Error(), 0.05)).target_error == 0.05
    assert Training(target_error=None, stop=Above(Error(), 0.4)).stop == Above(Error(), 0.4)
    assert Evaluation(samples=(OTHER,)).samples == (OTHER,)  # the run says what it measures


def test_a_sweep_is_checked_at_every_decay_that_matters() -> None:
    """A decay of 0 beside others is not passed over."""
    named = Piece(0, decay=(("@weight", 1.0), ("*", 0.0)))
    with pytest.raises(UserError, match=r"^The schedule: decay=.* has no effect, because"):
        check_all([scheduled(named), scheduled(named, weight_decay=0.0)])


def test_a_stop_rule_and_its_short_spelling_are_one_run() -> None:
    """`target_error` is short for Below(Error(), …); another rule takes its place."""
    short = RunSpec(task=SparseParity(9, 2), training=Training(target_error=0.05))
    long = replace(short, training=Training(stop=Below(Error(), 0.05)))
    other = replace(short, training=Training(stop=Below(Error(), 0.05, strict=True)))

    assert long == short
    assert run_key(long) == run_key(short)
    assert short.stop == Below(Error(), 0.05)
    assert other.training.target_error is None
    assert run_key(other) != run_key(short)
    with pytest.raises(UserError) as error:
        with_value(other, "training.target_error", 0.2)
    assert str(error.value) == (
        "Training: target_error=0.2 has no effect beside stop=below(error, 0.05, True), which "
        "takes its place. Give one of the two."
    )
    with pytest.raises(UserError) as error:  # the default can stand there without being given
        with_value(other, "training.target_error", 0.1)
    assert str(error.value) == (
        "training.target_error=0.1 has no effect here: the value stays None."
    )


def test_a_stop_rule_is_an_axis_in_either_spelling() -> None:
    """Below(Error(), …) is written as `target_error`, and has its effect."""
    rules = (Below(Error(), 0.05), Below(Error(), 0.05, strict=True), None)
    sweep = Sweep(RunSpec(task=SparseParity(9, 2)), {"training.stop": rules})
    short = Sweep(RunSpec(task=SparseParity(9, 2)), {"training.target_error": (0.05,)})

    assert [spec.stop for spec in sweep.specs()] == [*rules[:2], Below(Error(), 0.1)]
    assert next(sweep.specs()) == next(short.specs())
