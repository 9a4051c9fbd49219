"""Metrics by hand, thresholds, further samples and steps, and what is refused."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import rel_entr

from petridish.errors import UserError
from petridish.models import MLP
from petridish.tasks import SparseParity
from petridish.testing import short_run
from petridish.training import (
    KL,
    Above,
    Adam,
    Below,
    CrossEntropy,
    Data,
    Error,
    Evaluation,
    Held,
    Hinge,
    MeanLoss,
    Metric,
    Movement,
    Outcome,
    RunRecord,
    RunSpec,
    Silent,
    Square,
    SquaredError,
    Training,
    load_engine,
)
from petridish.training.screen import allowed_errors
from tests.own_parts import Coins, Dropped, Mixed, Reader, Stripes, Waves

NONE = math.nan


def records(engine: str, spec: RunSpec) -> RunRecord:
    """Carry out one run."""
    spec.check()
    return next(iter(load_engine(engine).run([spec], Silent())))


def each(metric: Metric, outputs: Any, labels: Any, **facts: Any) -> list[float]:
    """Return a metric's values of one run's examples."""
    given = {name.replace("_", " "): torch.tensor([values]) for name, values in facts.items()}
    found = metric.each(torch.tensor([outputs]), torch.tensor([labels]), given)
    return [round(value, 6) for value in found[0].tolist()]


def test_errors_by_hand() -> None:
    """The sign of one output, the largest of several, positions, parts, and no label."""
    assert each(Error(), [[2.0], [-1.0], [0.0], [1.0]], [0, 0, 0, 1]) == [0, 1, 1, 1]
    assert each(Error(), [[0.1, 0.2, 0.0], [3.0, 0.0, 0.0]], [1, 2]) == [0, 1]
    found = each(Error(), [[1.0], [1.0], [-1.0]], [0, -1, 1])
    assert [found[0], found[2]] == [0, 0]
    assert math.isnan(found[1])
    sequence = [[[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]]
    assert each(Error(), sequence, [[0, 0, 1]]) == [round(1 / 3, 6)]
    assert each(Error(), sequence, [[-1, 0, 1]]) == [0.5]
    assert each(Error(positions="last"), sequence, [[0, 0, 1]]) == [0]
    part = each(Error(part="b"), [[1.0], [1.0]], [1, 1], part_b=[False, True])
    assert math.isnan(part[0])
    assert part[1] == 1


def test_other_metrics_by_hand() -> None:
    """Squared distances, losses, and the divergence from a strategy as SciPy has it."""
    assert each(SquaredError(), [[1.0, 2.0]], [[0.0, 4.0]]) == [5]
    assert each(MeanLoss(Hinge()), [[0.25], [-3.0]], [0, 0]) == [0.75, 4]
    outputs, p = torch.tensor([[[0.3, -1.0, 2.0]]]), np.array([[[0.2, 0.8, 0.0]]], np.float32)
    found = compared(KL("truth"), outputs, torch.tensor([[0]]), p)
    expected = rel_entr(p[0, 0], outputs[0, 0].softmax(0).numpy()).sum()
    assert found.item() == pytest.approx(expected, rel=1e-6)
    sequence = torch.zeros(1, 1, 3, 2)
    half = np.array([[[[1.0, 0.0], [0.5, 0.5], [1.0, 0.0]]]])
    labels = torch.tensor([[[-1, 0, -1]]])
    found = compared(KL("truth", positions="all"), sequence, labels, half)
    assert found.item() == pytest.approx(0)


def compared(metric: KL, outputs: torch.Tensor, labels: torch.Tensor, p: Any) -> torch.Tensor:
    """Return the divergence of each example from given probabilities."""
    facts = {name: torch.tensor(values) for name, values in metric.known(p).items()}
    return metric.each(outputs, labels, facts)


def test_names_of_curves() -> None:
    """The sample, then the label."""
    names = {
        "test_error": Error(),
        "train_error": Error(on="train"),
        "test_error_b_last": Error(part="b", positions="last"),
        "iid_kl_truth": KL("truth", on="iid"),
        "test_kl_truth_all": KL("truth", positions="all"),
        "test_hinge": MeanLoss(Hinge()),
        "train_squared_error": SquaredError(on="train"),
    }
    for name, metric in names.items():
        assert metric.column == name
    assert Below(Error(), 0.1).column == "test_error <= 0.1"
    assert Above(Error(), 0.1, strict=True).column == "test_error > 0.1"


@given(
    count=st.integers(0, 50),
    of=st.integers(1, 50),
    tenth=st.integers(0, 10),
    strict=st.booleans(),
)
def test_thresholds_on_counts_are_exact(count: int, of: int, tenth: int, *, strict: bool) -> None:
    """As with whole numbers: 3 of 10 are 0.3, whatever the float says."""
    count = min(count, of)
    below, above = Below(Error(), tenth / 10, strict), Above(Error(), tenth / 10, strict)
    share, value = 10 * count, tenth * of

    assert below.holds_count(count, of) == (share < value if strict else share <= value)
    assert above.holds_count(count, of) == (share > value if strict else share >= value)
    assert below.holds_count(count, of) == (count <= allowed_errors(of, tenth / 10, strict=strict))
    for threshold in (below, above):
        assert not threshold.holds(math.nan)


LEARNED = replace(
    short_run(Waves(), MLP(16)),
    data=Data(m=400, n_test=200),
    training=Training(
        loss=Square(),
        optimiser=Adam(),
        learning_rate=0.02,
        weight_decay=0.0,
        steps=400,
        stop=Below(SquaredError(), 0.4),
    ),
    evaluation=Evaluation(
        every=20,
        at=(1, 3),
        curves=True,
        metrics=(MeanLoss(Square(), on="wide"),),
        samples=(Held("wide", Waves(), 50),),
        reached=(
            Below(SquaredError(), 0.8),
            Above(SquaredError(on="train"), 50.0),
            Below(SquaredError(), -1.0),
        ),
    ),
)


@pytest.mark.parametrize("curves", [True, False])
@pytest.mark.parametrize("engine", ["torch", "reference"])
def test_a_regression_stops_by_its_own_metric(engine: str, *, curves: bool) -> None:
    """Thresholds are noted, further steps and samples measured; curves change nothing."""
    spec = replace(LEARNED, evaluation=replace(LEARNED.evaluation, curves=curves))
    record, whole = records(engine, spec), records("reference", LEARNED)
    errors = whole.curves["test_squared_error"]

    assert whole.outcome is record.outcome is Outcome.SOLVED
    assert record.solved_at == whole.solved_at == whole.curves.step[-1]
    assert whole.curves.step[:4] == [0, 1, 3, 20]
    assert errors[-1] <= 0.4 < errors[-2]
    first = next(s for s, e in zip(whole.curves.step, errors, strict=True) if e <= 0.8)
    assert record.reached == {
        "test_squared_error <= 0.8": first,
        "train_squared_error >= 50": None,
        "test_squared_error <= -1": None,
    }
    assert record.final.keys() == {
        *("test_squared_error", "wide_square", "train_squared_error"),
    }
    assert record.final["test_squared_error"] == pytest.approx(errors[-1], rel=1e-4)
    assert math.isnan(record.test_error)
    assert record.fitted_at is None
    assert curves == bool(record.curves.step)


def test_a_screened_count_is_that_of_the_whole_sample() -> None:
    """Without curves «not yet» is found early; the step is that of every example counted."""
    spec = RunSpec(
        task=SparseParity(10, 2),
        data=Data(m=500, n_test=700),
        model=MLP(40),
        training=Training(steps=2000, stop=Below(Error(on="other"), 0.1, strict=True)),
        evaluation=Evaluation(every=25, samples=(Held("other", SparseParity(10, 2), 700),)),
    )
    for seed in range(3):
        one = replace(spec, seed=seed)
        screened = records("torch", one)
        assert screened.outcome is Outcome.SOLVED
        assert screened.solved_at == records("reference", one).solved_at


def test_missing_labels_count_nowhere() -> None:
    """An image without a label changes neither the loss nor the error of its sample."""
    spec = short_run(Stripes(), MLP(4))
    labels = Stripes().draw([0], "train", 0, 40).labels[0]
    record = records("torch", spec)

    assert (labels == -1).sum() == 10
    error = record.curves["train_error"][-1] * (labels >= 0).sum()
    assert error == pytest.approx(round(error), abs=1e-6)


@dataclass(frozen=True)
class Norm:
    """A loss that is no mean over examples."""

    name: ClassVar[str] = "norm"

    def n_outputs(self, domain: Any) -> int:
        """Return one."""
        return 1

    def __call__(self, outputs: Any, labels: Any) -> Any:
        """Return a norm."""
        return outputs.flatten(1).norm(dim=1)


PARITY = short_run(SparseParity(8, 3), MLP(4), Hinge())
COINS = short_run(Coins(), Reader())
WAVES = short_run(Waves(), Dropped())


def measured(spec: RunSpec, *metrics: Any, **changes: Any) -> RunSpec:
    """Return a run with further metrics."""
    return replace(spec, evaluation=replace(spec.evaluation, metrics=metrics, **changes))


REFUSED: list[tuple[Any, str]] = [
    (
        lambda: measured(WAVES, Error()).check(),
        "The metric error counts wrong classes, and the task waves has real targets. Use "
        "squared_error.",
    ),
    (
        lambda: measured(PARITY, SquaredError()).check(),
        "The metric squared_error needs real targets, and the task sparse_parity(8, 3) has 2 "
        "classes. Use error.",
    ),
    (
        lambda: measured(PARITY, KL("truth")).check(),
        "KL: the task sparse_parity(8, 3) knows no strategies to compare with. Give a task that "
        "inherits from HasStrategies.",
    ),
    (
        lambda: measured(COINS, KL("trush")).check(),
        "KL: the task coins knows no strategy called 'trush'. Did you mean truth?",
    ),
    (
        lambda: measured(COINS, Error(part="head")).check(),
        "Error: part='head', but the task coins has no such part. Did you mean heads?",
    ),
    (
        lambda: measured(PARITY, MeanLoss(Norm())).check(),
        "MeanLoss: the loss norm is no mean over examples. Inherit from MeanOfExamples, or measure "
        "it by an instrument.",
    ),
    (
        lambda: measured(COINS, MeanLoss(CrossEntropy((1.0, 2.0)))).check(),
        "MeanLoss: the loss cross_entropy((1.0, 2.0)) is no mean over examples. Inherit from "
        "MeanOfExamples, or measure it by an instrument.",
    ),
    (
        lambda: Evaluation(metrics=Error()),  # type: ignore[arg-type]
        "Evaluation: metrics=Error(on='test', part=None, positions='all') is no tuple. Give for "
        "example metrics=(KL('truth'),).",
    ),
    (
        lambda: measured(PARITY, MeanLoss(CrossEntropy())).check(),
        "MeanLoss: the loss cross_entropy needs 2 outputs, and the run's hinge asks for 1. Give a "
        "loss that needs as many.",
    ),
    (
        lambda: measured(PARITY, Error(on="iid")).check(),
        "There is no sample called 'iid'. Known: test, train. Give others by evaluation.samples.",
    ),
    (
        lambda: replace(measured(PARITY, Error(on="train")), data=Data(n_test=40)).check(),
        "The metric error(train) is measured on the training sample, and online there is none. "
        "Give a finite data.m or another sample.",
    ),
    (
        lambda: measured(PARITY, samples=(Held("iid", SparseParity(9, 3)),)).check(),
        "Evaluation: the sample 'iid' has the domain Domain(inputs=Bits(n=9), "
        "target=Classes(k=2, positions=None)), and the task sparse_parity(8, 3) has "
        "Domain(inputs=Bits(n=8), target=Classes(k=2, positions=None)). Give a task of the same "
        "domain.",
    ),
    (
        lambda: replace(WAVES, training=replace(WAVES.training, target_error=0.1)).check(),
        "Training: target_error=0.1 is an error rate, and the task waves has real targets. Give "
        "target_error=None, or such as stop=Below(SquaredError(), 0.1).",
    ),
    (
        lambda: measured(PARITY, at=(9,)).check(),
        "Evaluation: at=(9,) names the step 9, and the run ends at step 4. Give steps up to there.",
    ),
    (
        lambda: measured(COINS, instruments=(Mixed(at=(3,)),), every=2).check(),
        "The instrument mixed(mixed, (3,)) is to be read at the step 3, at which the run is not "
        "evaluated. Name it in evaluation.at too.",
    ),
    (
        lambda: measured(PARITY, instruments=(Movement("layer9*"),)).check(),
        "Movement: the pattern 'layer9*' fits no parameter of this model. It has: layer1.weight, "
        "layer1.bias, layer2.weight, layer2.bias.",
    ),
    (
        lambda: measured(COINS, instruments=("relevant_weight",)).check(),
        "The instrument relevant_weight reads the first layer's weights, one column per input, and "
        "the first parameter of reader, embedding.weight, has the shape (2, 6) for 8 inputs. Leave "
        "the instrument out.",
    ),
    (
        lambda: Below("error", 0.1),  # type: ignore[arg-type]
        "Below: metric='error' is no metric. Give for example Below(Error(), 0.1).",
    ),
    (lambda: Above(Error(), math.nan), "Above: value=nan. Give a number."),
    (
        lambda: Evaluation(metrics=(Hinge(),)),  # type: ignore[arg-type]
        "Evaluation: metrics has Hinge(), which is no Metric. Give for example "
        "metrics=(KL('truth'),).",
    ),
    (
        lambda: Held("test", SparseParity(8, 3)),
        "Held: name='test' is that of a sample which every run has. Give another.",
    ),
    (
        lambda: Evaluation(samples=(Held("a", Waves()), Held("a", Waves()))),
        "Evaluation: two samples are called 'a'. Give each its own name.",
    ),
    (
        lambda: short_run(Waves(), MLP(3), Hinge()).check(),
        "The loss hinge compares the sign of one output with ±1 labels, but the task has real "
        "targets. Use square.",
    ),
    (
        lambda: short_run(SparseParity(8, 3), MLP(3), CrossEntropy((1.0,) * 3)).check(),
        "CrossEntropy: 3 weights were given, but the task has 2 classes. Give one weight per "
        "class.",
    ),
    (
        lambda: short_run(Coins(), MLP(3)).check(),
        "MLP multiplies its inputs by weights, and the task's inputs are tokens. Give a model that "
        "embeds them.",
    ),
    (
        lambda: replace(WAVES, data=Data(m=10, n_test=10, label_noise=0.1)).check(),
        "RunSpec: label_noise=0.1 makes one class per example wrong, and the task waves has real "
        "targets. Give label_noise=0.",
    ),
    (
        lambda: Training(stop=0.1),  # type: ignore[arg-type]
        "Training: stop=0.1. Give for example Below(SquaredError(), 0.1).",
    ),
    (
        lambda: measured(PARITY, Error(), MeanLoss(Hinge()), Twice()).check(),
        "Two things that this run measures are called 'test_hinge'. Give one of them another "
        "label.",
    ),
]


@dataclass(frozen=True)
class Twice(Metric):
    """A metric with the label of another."""

    name: ClassVar[str] = "hinge"
    on: str = "test"

    def each(self, outputs: Any, labels: Any, facts: Any) -> Any:
        """Return the outputs."""
        return outputs.squeeze(-1)


@pytest.mark.parametrize(("make", "sentence"), REFUSED)
def test_what_does_not_fit_is_refused(make: Any, sentence: str) -> None:
    """One sentence: what was wrong, what was given, what to do."""
    with pytest.raises(UserError) as error:
        make()
    assert str(error.value) == sentence
