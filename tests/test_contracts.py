"""Every class of the package, and a user's, keeps the contract of its kind."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from petridish.choices import describe
from petridish.errors import UserError
from petridish.models import (
    MLP,
    AttentionOnly,
    BareHead,
    ByName,
    ClsTransformer,
    Constant,
    Homogeneous,
    Normal,
    Own,
    PolyNet,
    ReLU,
)
from petridish.seeds import Streams
from petridish.tasks import (
    TASKS,
    BiasedAnd,
    BiasedBits,
    Bits,
    Classes,
    Dictionary,
    Domain,
    Examples,
    GroupProduct,
    HiddenLabels,
    Hypercube,
    Injected,
    MarkovChains,
    NGrams,
    Reals,
    SparseAnd,
    SparseMajority,
    SparseOr,
    SparseParity,
    TruthTable,
    Values,
    find_images,
)
from petridish.tasks import Mixed as MixedTasks
from petridish.tasks.base import draw_examples
from petridish.tasks.table import find_table
from petridish.testing import (
    Broken,
    check_engine,
    check_init,
    check_instrument,
    check_loss,
    check_metric,
    check_model,
    check_task,
    short_run,
)
from petridish.training import (
    INSTRUMENTS,
    KL,
    LOSSES,
    METRICS,
    CrossEntropy,
    Error,
    Evaluation,
    Hinge,
    Instrument,
    MeanLoss,
    Metric,
    Movement,
    Reading,
    Silent,
    Square,
    SquaredError,
    load_engine,
)
from tests.faults import refused
from tests.own_parts import (
    Coins,
    Confidence,
    Convolved,
    Dropped,
    Mixed,
    Reader,
    Recurrent,
    Stripes,
    Waves,
)
from tests.test_attention_instruments import OF_CHAINS
from tests.test_cls_attention import OF_CLS
from tests.test_induction_instruments import OF_HEADS, OF_MINIMAL
from tests.test_models import ALL_INITS, ALL_MODELS, fits

OURS: list[Any] = [
    SparseParity(9, 3),
    SparseParity(70, 2, (0, 69)),
    SparseAnd(8, 2),
    SparseOr(8, 2),
    SparseMajority(8, 3),
    TruthTable(7, (0, 1, 1, 0)),
    GroupProduct("S3"),
    BiasedAnd(7),
    BiasedBits(7, of="parity", encoding="signs"),
    Dictionary(7, 5, 3),
    MarkovChains(3, 6),
    MarkovChains(2, 4, "unigram"),
    MarkovChains(4, 3, "doubly"),
    NGrams(2, 5, 3),
    MixedTasks(MarkovChains(3, 6), NGrams(3, 6, 2), 0.25),
    HiddenLabels(7, 5, 3, 2),
    Hypercube(5, 3, 0.7),
    Injected(Dictionary(6, 4, 3), 0.3),
    find_images("digits", (0, 1)),
    find_table("wine"),
]
OWN: list[Any] = [Waves(), Stripes(), Coins()]


def test_the_suite_covers_every_task() -> None:
    """A new task joins the list."""
    assert {type(task) for task in OURS} == set(TASKS.values())


@pytest.mark.parametrize("task", [*OURS, *OWN], ids=describe)
def test_tasks(task: Any) -> None:
    """Draws are a run's own, whoever asks, and what the domain says."""
    check_task(task)


@pytest.mark.parametrize("model", ALL_MODELS, ids=describe)
def test_models(model: Any) -> None:
    """The stacked form computes what the module does; both engines train alike."""
    task = (
        GroupProduct("Z5") if isinstance(model, Homogeneous) else SparseParity(8, 4, (0, 2, 4, 6))
    )
    loss = CrossEntropy() if isinstance(model, Homogeneous) else Hinge()
    check_model(model, task, loss=loss)


@pytest.mark.parametrize(
    ("model", "task"),
    [
        (MLP(5), Waves()),
        (MLP(5), Stripes()),
        (MLP(5), OURS[-1]),
        (Dropped(), Waves()),
        (Dropped(), Stripes()),
        (Dropped(), SparseParity(8, 2)),
        (Dropped(), OURS[-1]),
        (Convolved(), Stripes()),
        (Reader(), Coins()),
        (ClsTransformer(6, 2), BiasedAnd(5)),
        (BareHead(6, 3, 2, ReLU()), BiasedAnd(5)),
        (Recurrent(), Waves()),
        (AttentionOnly(4), MarkovChains(3, 6)),
        (AttentionOnly(5, 1), MarkovChains(2, 1, "unigram")),
        (AttentionOnly(4, 2, heads=3), MarkovChains(3, 6)),
    ],
    ids=describe,
)
def test_models_on_other_domains(model: Any, task: Any) -> None:
    """Real targets, images, labels that are missing, tokens; modules with state and noise."""
    check_model(model, task)


@pytest.mark.parametrize("init", [*ALL_INITS, ByName((("@bias", Constant(0)), ("*", Normal())))])
def test_inits(init: Any) -> None:
    """Each start on the first model that it takes."""
    model = next(m for m in ALL_MODELS if fits(init, m))
    check_init(init, model, SparseParity(8, 4, (0, 2, 4, 6)), loss=Hinge())


@pytest.mark.parametrize(
    "init", [Own(), Normal(0.1), ByName((("1.*", Normal(0.1)), ("*", Own())))], ids=describe
)
def test_inits_of_a_module(init: Any) -> None:
    """A module's own start, another, and a mixture of the two."""
    check_init(init, Dropped(), Waves())


@pytest.mark.parametrize("loss", [kind() for kind in LOSSES.values()], ids=describe)
def test_losses(loss: Any) -> None:
    """On two classes all of them; on other domains those that take them."""
    check_loss(loss, Domain(Bits(4), Classes(2)))
    if isinstance(loss, CrossEntropy):
        check_loss(CrossEntropy((1.0, 2.0, 0.5)), Domain(Bits(4), Classes(3)))
        check_loss(loss, Coins().domain)
    if isinstance(loss, Square):
        check_loss(loss, Domain(Bits(4), Values(3)))


RUNS = {
    "parity": short_run(SparseParity(8, 3), MLP(5), Hinge()),
    "waves": short_run(Waves(), Dropped()),
    "coins": short_run(Coins(), Reader()),
    "images": short_run(Stripes(), Convolved()),
}
MEASURED = [
    ("parity", Error()),
    ("parity", Error(on="train")),
    ("parity", MeanLoss(Hinge())),
    ("parity", MeanLoss(Square(), on="train")),
    ("waves", SquaredError(on="train")),
    ("waves", MeanLoss(Square())),
    ("coins", Error(positions="last")),
    ("coins", Error(part="tails", on="train")),
    ("coins", KL("truth")),
    ("coins", KL("uniform", positions="all", on="train")),
    ("coins", MeanLoss(CrossEntropy())),
    ("coins", Confidence()),
    ("images", Error(on="train")),
    ("images", MeanLoss(CrossEntropy(), on="train")),
]


def test_the_suite_covers_every_metric() -> None:
    """A new metric joins the list."""
    assert {type(metric) for _, metric in MEASURED} == {*METRICS.values(), Confidence}


@pytest.mark.parametrize(("run", "metric"), MEASURED, ids=describe)
def test_metrics(run: str, metric: Any) -> None:
    """The evaluator of the stack measures what the reference does."""
    check_metric(metric, RUNS[run])


OF_OTHERS = {i.name for i in (*OF_CHAINS, *OF_CLS)} | {"pattern_gradient", "open_margins"}
OF_OTHERS |= {i.name for i in (*OF_HEADS, *OF_MINIMAL)}


@pytest.mark.parametrize("name", sorted(set(INSTRUMENTS) - OF_OTHERS))
def test_instruments(name: str) -> None:
    """On a parity and on a group, where each reads something."""
    check_instrument(INSTRUMENTS[name](), RUNS["parity"])
    check_instrument(INSTRUMENTS[name](), short_run(GroupProduct("Z5"), Homogeneous(6)))


@pytest.mark.parametrize("name", ["pattern_gradient", "open_margins"])
def test_instruments_of_margins(name: str) -> None:
    """Of one output and a sample; gradients of a dictionary with irrelevant patterns."""
    check_instrument(INSTRUMENTS[name](), short_run(Dictionary(7, 5, 3), MLP(6), Hinge()))


@pytest.mark.parametrize("instrument", [Mixed(), Mixed(at=(0, 3)), Movement("output.*")])
def test_instruments_of_ones_own(instrument: Instrument) -> None:
    """Arrays by name, at steps of their own, through a part of the module."""
    check_instrument(instrument, RUNS["coins"])


@pytest.mark.parametrize("name", ["torch", "reference", "native", "wide", "fit"])
def test_engines(name: str) -> None:
    """A stack's records are each run's own, and the reference's."""
    from petridish.estimator.contenders import RandomForest
    from petridish.training import Adam, Data, Logistic, RunSpec, Training

    table = find_table("wine")
    runs = {
        "wide": RunSpec(
            task=find_table("breast_cancer"),
            data=Data(m=60, n_test=40),
            model=MLP(6),
            training=Training(loss=Logistic(), optimiser=Adam(), steps=5, target_error=None),
            evaluation=Evaluation(fitted_error=None),
        ),
        "fit": RunSpec(task=table, data=Data(m=40, n_test=15), model=RandomForest()),
    }
    check_engine(load_engine(name), runs.get(name, RUNS["parity"]))
    if name in ("torch", "reference"):
        for spec in RUNS.values():
            check_engine(load_engine(name), spec)


def test_fitted_models_are_values() -> None:
    """They build no module, and are read back like others."""
    from petridish.estimator.contenders import RandomForest

    check_model(RandomForest(), OURS[-1])


# Each check finds what it is for.


@dataclass(frozen=True)
class Bad:
    """A task with one fault at a time."""

    name: ClassVar[str] = "bad"
    fault: str

    @property
    def domain(self) -> Domain:
        """Return vectors and two classes."""
        return Domain(Reals((2,)), Classes(2))

    def draw(self, seeds: Any, purpose: str, start: int, count: int) -> Examples:
        """Draw with the fault."""
        stream = Streams(seeds, "x" if self.fault == "purpose" else purpose)
        first = 0 if self.fault == "start" else 2 * start
        x = stream.normals(first, 2 * count).reshape(len(seeds), count, 2).astype(np.float32)
        if self.fault == "neighbours":
            x = x - x.mean(axis=0)
        labels = (x[..., 0] > 0).astype(np.int64)
        if self.fault == "nan":
            x[:, 1000 - start : 1001 - start, 0] = np.nan
        if self.fault == "shape":
            labels = labels[..., None]
        if self.fault == "range":
            labels = labels + 1
        if self.fault == "inputs":
            x = x[..., :1]
        if self.fault == "floats":
            return Examples(labels.astype(float), dense=x)
        return Examples(labels, dense=x)


OTHERS = (
    "are others. An example must depend on its run's seed and its number alone: take all "
    "randomness from Streams(seeds, purpose), and begin at `start`."
)


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("start", f"The task bad(start): the same examples, drawn from a later start, {OTHERS}"),
        (
            "neighbours",
            f"The task bad(neighbours): the same examples, drawn for one run alone, {OTHERS}",
        ),
        (
            "purpose",
            "bad(purpose): the training and the test sample are the same inputs. Draw from "
            "Streams(seeds, purpose), which differ by purpose.",
        ),
        (
            "shape",
            "The task bad(shape) drew labels of shape (2, 64, 1), and 2 classes ask for "
            "(run, example). Return such labels from draw, or state another domain.",
        ),
        (
            "range",
            "The task bad(range) drew the label 2, and its domain has the classes 0 to 1, and -1 "
            "for no label. Return these from draw, or state another domain.",
        ),
        (
            "floats",
            "The task bad(floats) drew labels of the type float64, and 2 classes are whole "
            "numbers. Return integers from draw.",
        ),
        (
            "inputs",
            "The task bad(inputs) drew inputs of shape (2, 64, 1), and its domain asks for "
            "(2, 64, 2). Return such inputs from draw, or state another domain.",
        ),
    ],
)
def test_a_fault_of_a_task_is_found(fault: str, sentence: str) -> None:
    """In one sentence."""
    assert refused(check_task, Bad(fault)) == sentence


def test_inputs_that_are_seldom_finite_are_refused_when_they_are_drawn() -> None:
    """Four in 10,000 are beyond the few examples that are tried; runs were trained on NaN."""
    with pytest.raises(UserError) as error:
        draw_examples(Bad("nan"), [0, 1], "train", 0, 2000)
    assert str(error.value) == (
        "The task bad(nan) drew 2 of 4000 examples with inputs that are NaN or infinite. Return "
        "finite floats from draw."
    )


def test_wrong_labels_are_refused_before_training() -> None:
    """Three classes in a domain of two gave «100 % solved» once."""
    for fault in ("shape", "range", "floats"):
        for engine in ("torch", "reference"):
            spec = replace(RUNS["parity"], task=Bad(fault))
            with pytest.raises(UserError, match="The task bad"):
                list(load_engine(engine).run([spec], Silent()))


@dataclass(frozen=True)
class WrongStack(PolyNet):
    """A model whose stacked form is not its module."""

    name: ClassVar[str] = "wrong_stack"

    def forward(self, parameters: Any, x: Any) -> Any:
        """Return twice the outputs."""
        return 2 * super().forward(parameters, x)


def test_a_stacked_form_that_is_another_function_is_found() -> None:
    """It would train another network than the one that instruments and users see."""
    with pytest.raises(Broken) as error:
        check_model(WrongStack(2), SparseParity(8, 2), loss=Hinge())
    assert str(error.value) == (
        "wrong_stack(2): its stacked forward computes something else than its module. Let both "
        "compute the same, or leave the stacked form out."
    )


@dataclass(frozen=True)
class Mean(Hinge):
    """A loss that mixes the runs."""

    name: ClassVar[str] = "mean"

    def __call__(self, outputs: Any, labels: Any) -> Any:
        """Return one mean for all runs."""
        return super().__call__(outputs, labels).mean().expand(len(outputs))


@dataclass(frozen=True)
class Rank(Metric):
    """Not a mean over examples."""

    name: ClassVar[str] = "rank"
    on: str = "test"

    def each(self, outputs: Any, labels: Any, facts: Any) -> Any:
        """Return the place of an example among the others."""
        return outputs.squeeze(-1).argsort(dim=1).float()


@dataclass(frozen=True)
class Chance(Instrument):
    """Reads something else each time."""

    name: ClassVar[str] = "chance"

    def read(self, reading: Reading) -> float:
        """Return a random number that is no run's."""
        return float(torch.rand(()))


def test_faults_of_other_kinds_are_found() -> None:
    """Each in one sentence."""
    with pytest.raises(Broken) as error:
        check_loss(Mean(), Domain(Bits(3), Classes(2)))
    assert str(error.value) == (
        "mean: the loss of one run depends on the outputs of another. Take no means over axis 0."
    )
    with pytest.raises(Broken) as error:
        check_metric(Rank(), RUNS["parity"])
    assert str(error.value) == (
        "rank: the value of an example depends on the others. What is no mean over examples is an "
        "instrument."
    )
    with pytest.raises(Broken) as error:
        check_instrument(Chance(), RUNS["parity"])
    assert str(error.value) == (
        "chance: a run that is made again reads something else. Take random numbers from "
        "Streams([reading.spec.seed], name)."
    )


def test_what_is_measured_is_not_blamed_for_a_module_that_cannot_be_stacked() -> None:
    """The engine `reference` carries out such runs; the check said that the metric had failed."""
    run = short_run(Waves(), Recurrent())
    assert load_engine("torch").refusal(run)
    check_metric(SquaredError(on="train"), run)
    check_instrument(Movement("*"), run)
