"""Blocks with [CLS] in the native engine against plain modules and other engines."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import nn

from petridish.errors import UserError
from petridish.models import ClsTransformer
from petridish.seeds import Streams
from petridish.tasks import BiasedAnd, Classes, Domain, Examples, Task, Tokens
from petridish.training import (
    SGD,
    Adam,
    AdamW,
    Below,
    CrossEntropy,
    Data,
    Error,
    Evaluation,
    MeanLoss,
    NeuronNorm,
    Outcome,
    Piece,
    RunSpec,
    Schedule,
    Silent,
    Training,
    choose_engine,
    load_engine,
)
from petridish.training.data import initial_weights
from petridish.training.engines.native_cls import arguments
from petridish.training.native.cls_run import BlockBatches, ClsArguments, NativeCls
from petridish.training.native.library import InstructionSet
from petridish.training.noise import Given, draw_numbers, note_calls
from tests.native_runs import HERE
from tests.test_native_attention import UNSHRUNK, Arrays, apart
from tests.test_native_service import Stopper

NO_LABEL = 255


def spec_of(task: Task | None = None, model: ClsTransformer | None = None, **more: Any) -> RunSpec:
    """Return a short run as minGPT trains, measured at every step."""
    training: dict[str, Any] = {
        "loss": CrossEntropy(),
        "optimiser": AdamW(),
        "learning_rate": 3e-4,
        "weight_decay": 1e-4,
        "schedule": Schedule((Piece(decay=(("embed.*", 0.0), ("@weight", 1.0), ("*", 0.0))),)),
        "clip": 1.0,
        "batch_size": None,
        "steps": 50,
        "target_error": None,
    }
    return RunSpec(
        task=task or BiasedAnd(12),
        data=more.pop("data", Data(m=23, n_test=20)),
        model=model or ClsTransformer(16, 4),
        training=Training(**training | more.pop("training", {})),
        evaluation=more.pop("evaluation", Evaluation(every=1, curves=True, fitted_error=None)),
        **more,
    )


@dataclass(frozen=True)
class Marks:
    """Sequences of several values; a task of a user's own. The label says what comes first."""

    name: ClassVar[str] = "marks"

    values: int = 5
    length: int = 7
    classes: int = 3

    @property
    def domain(self) -> Domain:
        """Tokens, and one label."""
        return Domain(Tokens(self.values, self.length), Classes(self.classes))

    def draw(self, seeds: Any, purpose: str, start: int, count: int) -> Examples:
        """Draw tokens; every seventh example has no label."""
        drawn = Streams(seeds, purpose).integers(
            self.values, start * self.length, count * self.length
        )
        tokens = drawn.reshape(len(seeds), count, self.length)
        labels = tokens[..., 0] % self.classes
        labels[:, (start + np.arange(count)) % 7 == 3] = -1
        return Examples(labels, dense=tokens)


def gradient_of(
    module: nn.Module, spec: RunSpec, x: NDArray[np.uint8], y: NDArray[np.uint8], step: int
) -> tuple[float, list[NDArray[Any]]]:
    """Return the loss with the dropout of a step, and the gradient by autograd."""
    tokens, labels = torch.from_numpy(x).long(), torch.from_numpy(y).long()
    calls = note_calls(module, tokens)
    numbers = draw_numbers(calls, [spec.luck], step, full=len(x), examples=len(x))
    module.train()
    with Given([each[0] for each in numbers]):
        loss = nn.functional.cross_entropy(module(tokens), labels, ignore_index=NO_LABEL)
    loss.backward()  # type: ignore[no-untyped-call] # PyTorch's own has no types
    return loss.item(), [p.grad.numpy() for p in module.parameters() if p.grad is not None]


SHAPES = st.tuples(
    st.integers(2, 9),  # values of a token
    st.integers(1, 33),  # length
    st.sampled_from([(1, 1), (4, 2), (6, 2), (16, 4), (20, 20), (64, 16), (32, 2), (40, 8)]),
    st.integers(2, 5),  # classes
    st.integers(1, 37),  # batch
    st.sampled_from([0.0, 0.1, 0.1, 0.5]),  # dropout
)
Shape = tuple[int, int, tuple[int, int], int, int, float]


def case_of(shape: Shape, seed: int, scale: float) -> tuple[RunSpec, ClsArguments, nn.Module]:
    """Return a run of a shape, with weights that are not its start but of about its size."""
    values, length, (d, heads), classes, m, dropout = shape
    task, model = Marks(values, length, classes), ClsTransformer(d, heads, dropout)
    spec = spec_of(task, model, data=Data(m=m, n_test=1), seed=seed)
    drawn = np.random.default_rng(seed)
    made = arguments(spec)
    weights: Arrays = [
        scale * (each + 0.1 * drawn.standard_normal(each.shape)).astype(np.float32)
        for each in made.weights
    ]
    module = model.build(spec.domain, spec.n_outputs)
    with torch.no_grad():
        for own, value in zip(module.parameters(), weights, strict=True):
            own.copy_(torch.from_numpy(value))
    return spec, replace(made, weights=weights), module


@settings(deadline=None, max_examples=40, phases=UNSHRUNK, derandomize=True)
@given(SHAPES, st.integers(0, 2**32 - 1), st.sampled_from([1.0, 1.0, 4.0, 16.0]))
def test_gradients_are_those_of_autograd(shape: Shape, seed: int, scale: float) -> None:
    """In float64 by the plain module with the same masks: each parameter to 1e-5.

    With all parameters times 4 or 16 what float32 rounds off moves the gradient by more, PyTorch's
    too: it is compared as a whole, and may be 32 times PyTorch's error in float32.
    """
    spec, given_, module = case_of(shape, seed, scale)
    values, length, _, classes, m, _ = shape
    drawn = np.random.default_rng(seed + 1)
    x = drawn.integers(0, values, (m, length), dtype=np.uint8)
    y = drawn.integers(0, classes, m, dtype=np.uint8)
    y[1::3] = NO_LABEL
    step = seed % 5
    with NativeCls(given_, HERE[0]) as run:
        loss, gradient = run.gradient(BlockBatches(x, y), step)
        outputs = run.outputs(x)
    exact_loss, exact = gradient_of(copy.deepcopy(module).double(), spec, x, y, step)
    assert loss == pytest.approx(exact_loss, rel=1e-4, abs=1e-6)
    if not max(np.abs(each).max() for each in exact) > 1e-12:
        return  # nothing is left to compare
    if scale == 1:
        assert apart(gradient, exact, 1e-3) <= 1e-5
        expected = module.eval()(torch.from_numpy(x).long()).detach().numpy()
        np.testing.assert_allclose(outputs, expected, atol=1e-5, rtol=1e-5)
    else:
        plain = apart(gradient_of(copy.deepcopy(module), spec, x, y, step)[1], exact, 1.0)
        assert apart(gradient, exact, 1.0) <= max(1e-5, 32 * plain)


ONLINE: dict[str, Any] = {"data": Data(n_test=20), "training": {"batch_size": 40}}
MOMENTUM: dict[str, Any] = {"optimiser": SGD(0.9), "learning_rate": 0.1}


@pytest.mark.parametrize(
    ("task", "model", "more"),
    [
        (BiasedAnd(12), ClsTransformer(16, 4, 0.0), {}),
        (BiasedAnd(12), ClsTransformer(16, 4), {}),
        (BiasedAnd(30), ClsTransformer(64, 16), {"training": {"batch_size": 8}}),
        (BiasedAnd(9), ClsTransformer(12, 4, 0.3), ONLINE),
        (Marks(), ClsTransformer(8, 8), {"training": {"batch_size": 6, "batches": "epochs"}}),
        (Marks(2, 5, 2), ClsTransformer(6, 1), {"training": MOMENTUM}),
        (BiasedAnd(5), ClsTransformer(16, 1), {"training": {"optimiser": Adam(0.8), "clip": None}}),
    ],
    ids=str,
)
def test_losses_are_those_of_reference(
    task: Task, model: ClsTransformer, more: dict[str, Any]
) -> None:
    """50 steps with the same data, start and masks: 1e-4, and the same metrics.

    Full batches, minibatches with replacement and by epochs, fresh examples.
    """
    spec = spec_of(task, model, **more)
    found, plain = (
        next(iter(load_engine(name).run([spec], Silent()))) for name in ("native", "reference")
    )
    assert (found.engine, found.outcome, found.steps) == ("native", plain.outcome, plain.steps)
    for name, values in plain.curves.values.items():
        np.testing.assert_allclose(found.curves.values[name], values, atol=1e-4, err_msg=name)
    assert found.final == pytest.approx(plain.final, abs=1e-4)


def test_a_restart_has_its_own_dropout() -> None:
    """The same sample, another start and other masks, as in `reference`."""
    spec = spec_of(restart=2, training={"steps": 20})
    found, plain = (
        next(iter(load_engine(name).run([spec], Silent()))) for name in ("native", "reference")
    )
    np.testing.assert_allclose(
        found.curves.values["train_loss"], plain.curves.values["train_loss"], atol=1e-4
    )


def steps_of(
    given_: ClsArguments, isa: InstructionSet, batches: BlockBatches, works: list[int]
) -> Arrays:
    """Return the losses of three steps and the last weights, by calls of such work."""
    losses: list[float] = []
    with NativeCls(given_, isa) as run:
        while len(losses) < 3:
            losses += run.advance(works[0], 3 - len(losses), batches).tolist()
            works = [*works[1:], works[0]]
        outputs = run.outputs(batches.tokens)
        return [np.array(losses, np.float32), outputs, *run.weights()]


@settings(deadline=None, max_examples=15, phases=UNSHRUNK, derandomize=True)
@given(SHAPES, st.integers(0, 2**32 - 1), st.lists(st.integers(1, 10**4), min_size=1))
def test_bits_depend_on_neither_processor_nor_calls(
    shape: Shape, seed: int, works: list[int]
) -> None:
    """Every instruction set, in one call or in many that end in the middle of steps."""
    _, given_, _ = case_of(shape, seed, 1.0)
    values, length, _, classes, m, _ = shape
    drawn = np.random.default_rng(seed)
    x = drawn.integers(0, values, (m, length), dtype=np.uint8)
    batches = BlockBatches(x, drawn.integers(0, classes, m, dtype=np.uint8))
    found = [steps_of(given_, isa, batches, w) for isa in HERE for w in ([10**9], works)]
    for other in found[1:]:
        for one, another in zip(found[0], other, strict=True):
            assert one.tobytes() == another.tobytes()


def test_it_stops_as_soon_as_it_is_solved() -> None:
    """By an error rate that is strictly below a threshold, read on no more than is needed."""
    spec = spec_of(
        BiasedAnd(6, support=(0, 1, 2)),
        ClsTransformer(16, 4, 0.0),
        data=Data(m=200, n_test=1000),
        training={"learning_rate": 1e-2, "steps": 300, "stop": Below(Error(), 0.01, strict=True)},
        evaluation=Evaluation(every=10, fitted_error=None, metrics=(MeanLoss(CrossEntropy()),)),
    )
    found, plain = (
        next(iter(load_engine(name).run([spec], Silent()))) for name in ("native", "reference")
    )
    assert found.outcome is Outcome.SOLVED
    assert (found.outcome, found.steps) == (plain.outcome, plain.steps)
    assert found.final == pytest.approx(plain.final, abs=1e-3)


def test_a_run_that_diverges_says_so() -> None:
    """At the step whose loss is not finite, in every instruction set."""
    spec = spec_of(training={"optimiser": SGD(), "learning_rate": 1e38, "clip": None})
    record = next(iter(load_engine("native").run([spec], Silent())))
    assert record.outcome is Outcome.DIVERGED
    assert math.isnan(record.train_loss)
    x = np.zeros((23, 12), np.uint8)
    batches = BlockBatches(x, np.ones(23, np.uint8))
    ends = set()
    for isa in HERE:
        with NativeCls(arguments(spec), isa) as run:
            ends.add(len(run.advance(10**12, 50, batches)))
    assert len(ends) == 1
    assert ends < set(range(50))


def test_it_stops_when_it_is_asked_to() -> None:
    """A monitor is asked between short calls; the first is one chunk of examples."""
    spec = spec_of(
        BiasedAnd(1000),
        ClsTransformer(64, 16),
        data=Data(m=2000, n_test=1),
        training={"steps": 10**6},
        evaluation=Evaluation(every=10**6, fitted_error=None),
    )
    stopper = Stopper(stop_after=3)
    assert list(load_engine("native").run([spec], stopper)) == []
    assert sum(stopper.steps) == 0


REFUSALS: dict[str, RunSpec] = {
    "it takes blocks with d up to 256, and the model has d=260": spec_of(
        model=ClsTransformer(260, 20)
    ),
    "it takes blocks with heads up to 128, and the model has heads=129": spec_of(
        model=ClsTransformer(129, 129)
    ),
    "it takes blocks with dropout up to 0.99, and the model has dropout=0.995": spec_of(
        model=ClsTransformer(4, 1, 0.995)
    ),
    "it takes heads of up to 16 dimensions, and the model's have 17": spec_of(
        model=ClsTransformer(17, 1)
    ),
    "it takes sequences of up to 4096 tokens of 16 values, and the task has 4097 of 2": spec_of(
        BiasedAnd(4097)
    ),
    "it takes sequences of up to 4096 tokens of 16 values, and the task has 7 of 17": spec_of(
        Marks(17)
    ),
    "it takes up to 16 classes, and the task has 17": spec_of(Marks(16, classes=17)),
    "it trains transformers on cross entropy, and the loss is cross_entropy((1.0, 2.0))": spec_of(
        training={"loss": CrossEntropy((1.0, 2.0))}
    ),
    "it computes in float32, and this run in float64": spec_of(training={"precision": "float64"}),
    "it has no penalty, and this run has neuron_norm(0.1)": spec_of(
        training={"penalty": NeuronNorm(0.1)}
    ),
}


@pytest.mark.parametrize("reason", REFUSALS)
def test_what_it_cannot_serve_is_refused_by_name(reason: str) -> None:
    """With the engine that can."""
    with pytest.raises(UserError) as error:
        choose_engine(REFUSALS[reason], "native")
    assert str(error.value) == (
        f"The engine native cannot serve this run: {reason}. The engine torch can."
    )


def test_it_is_chosen_by_itself() -> None:
    """`auto` takes the compiled engine where it serves."""
    assert choose_engine(spec_of()).name == "native"


def test_its_weights_are_in_the_order_of_the_module() -> None:
    """The names that compiled code takes for granted."""
    names = [parameter.name for parameter in spec_of().parameters]
    norms = [f"norm{k}.{part}" for k in (1, 2, 3) for part in ("weight", "bias")]
    layers = [
        f"{layer}.{part}"
        for layer in ("query", "key", "value", "out", "mlp1", "mlp2")
        for part in ("weight", "bias")
    ]
    expected = ["embed.positions", "embed.tokens.weight", *norms, *layers, "output.weight"]
    assert names == expected
    assert [w.shape[1:] for w in initial_weights([spec_of()])][:2] == [(13, 16), (3, 16)]
