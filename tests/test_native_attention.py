"""Attention in the native engine against plain modules, tasks in NumPy, and other engines."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import nn

from petridish.errors import UserError
from petridish.models import AttentionOnly, MinimalAttention
from petridish.seeds import Streams
from petridish.tasks import Classes, Domain, Examples, MarkovChains, Task, Tokens
from petridish.training import (
    KL,
    SGD,
    Adam,
    AdamW,
    AttentionMap,
    BackAttention,
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
from petridish.training.engines.native_attention import arguments
from petridish.training.native.attention_run import NO_LABEL, NativeAttention
from tests.native_runs import HERE
from tests.own_parts import Coins
from tests.test_native_service import Stopper

Arrays = list[NDArray[np.float32]]


def spec_of(
    task: Task | None = None,
    model: AttentionOnly | MinimalAttention | None = None,
    **more: Any,
) -> RunSpec:
    """Return a short run of attention, measured at every step."""
    training: dict[str, Any] = {
        "loss": CrossEntropy(),
        "optimiser": AdamW(),
        "learning_rate": 3e-3,
        "batch_size": 18,
        "steps": 50,
        "target_error": None,
    }
    return RunSpec(
        task=task or MarkovChains(3, 12),
        data=more.pop("data", Data(n_test=20)),
        model=model or AttentionOnly(8),
        training=Training(**training | more.pop("training", {})),
        evaluation=more.pop("evaluation", Evaluation(every=1, curves=True, fitted_error=None)),
        **more,
    )


def module_of(spec: RunSpec, scale: float) -> nn.Module:
    """Return the plain module of a run at its start, every parameter multiplied by `scale`."""
    module = spec.model.build(spec.domain, spec.n_outputs)
    with torch.no_grad():
        for own, drawn in zip(module.parameters(), initial_weights([spec]), strict=True):
            own.copy_(torch.from_numpy(drawn[0]) * scale)
    return module


def gradient_of(module: nn.Module, x: NDArray[np.uint8], y: NDArray[np.uint8]) -> tuple[float, Any]:
    """Return the loss and the gradient by autograd."""
    labels = torch.from_numpy(y).long()
    outputs = module(torch.from_numpy(x).long())
    loss = nn.functional.cross_entropy(
        outputs.flatten(0, 1), labels.flatten(), ignore_index=NO_LABEL
    )
    loss.backward()  # type: ignore[no-untyped-call] # PyTorch's own has no types
    return loss.item(), [p.grad.numpy() for p in module.parameters() if p.grad is not None]


def apart(found: list[Any], exact: list[Any], least: float) -> float:
    """Return the largest error of a parameter's gradient, relative to its largest entry.

    That counts as at least a share `least` of the whole gradient's largest entry.
    """
    floor = least * max(np.abs(each).max() for each in exact)
    pairs = zip(found, exact, strict=True)
    return float(max(np.abs(f - e).max() / max(np.abs(e).max(), floor) for f, e in pairs))


UNSHRUNK = (Phase.explicit, Phase.generate)  # a smaller case takes minutes, and says no more
SHAPES = st.tuples(
    st.integers(2, 16),  # states
    st.integers(1, 40),  # length
    st.sampled_from([1, 3, 4, 8, 16, 17, 64]),  # d
    st.integers(1, 4),  # heads
    st.integers(1, 3),  # layers
    st.integers(1, 35),  # batch
).filter(lambda shape: shape[3] <= shape[2])


@settings(deadline=None, max_examples=40, phases=UNSHRUNK, derandomize=True)
@given(SHAPES, st.integers(0, 2**32 - 1), st.sampled_from([1.0, 4.0, 16.0]))
def test_gradients_are_those_of_autograd(
    shape: tuple[int, int, int, int, int, int], seed: int, scale: float
) -> None:
    """In float64 by the plain module: each parameter to 1e-5 at weights of the usual size.

    With all parameters times 4 or 16 scores reach thousands, attention settles, and what float32
    rounds off moves the gradient by more than 1e-5, PyTorch's too. It is then compared as a whole,
    and PyTorch's float32 error is the measure: 32 times it at most, since each is the largest of
    few.
    """
    k, t, d, heads, layers, batch = shape
    spec = spec_of(
        MarkovChains(k, t),
        AttentionOnly(d, layers, heads),
        training={"batch_size": batch},
        seed=seed,
    )
    drawn = np.random.default_rng(seed)
    x, y = drawn.integers(0, k, (2, batch, t), dtype=np.uint8)
    if seed % 2 and batch * t > 1:
        y.flat[::2] = NO_LABEL  # half of the positions do not count
    module = module_of(spec, scale)
    given_ = arguments(spec)
    weights: Arrays = [p.detach().numpy() for p in module.parameters()]
    with NativeAttention(replace(given_, weights=weights), HERE[0]) as run:
        loss, gradient = run.gradient(x, y)
        outputs = run.outputs(x)
    exact_loss, exact = gradient_of(copy.deepcopy(module).double(), x, y)
    if not max(np.abs(each).max() for each in exact) > 1e-12:
        return  # nothing is left to compare
    assert loss == pytest.approx(exact_loss, rel=1e-4, abs=1e-6)
    if scale == 1:
        assert apart(gradient, exact, 1e-3) <= 1e-5
        expected = module(torch.from_numpy(x).long()).detach().numpy()
        np.testing.assert_allclose(outputs, expected, atol=1e-5, rtol=1e-5)
    else:
        plain = apart(gradient_of(copy.deepcopy(module), x, y)[1], exact, 1.0)
        assert apart(gradient, exact, 1.0) <= max(1e-5, 32 * plain)


def test_attention_that_has_settled_has_no_gradient_but_zero() -> None:
    """Scores of 10^4: all attention is on one token, and nothing is left but exact zeros."""
    spec = spec_of(MarkovChains(2, 8), AttentionOnly(4))
    module = module_of(spec, 60.0)
    given_ = arguments(spec)
    weights: Arrays = [p.detach().numpy() for p in module.parameters()]
    x = np.random.default_rng(0).integers(0, 2, (18, 8), dtype=np.uint8)
    with NativeAttention(replace(given_, weights=weights), HERE[0]) as run:
        loss, gradient = run.gradient(x, x)
    assert math.isfinite(loss)
    assert all(np.isfinite(each).all() for each in gradient)


@pytest.mark.parametrize(
    ("task", "model"),
    [
        (MarkovChains(3, 12), AttentionOnly(8)),
        (MarkovChains(2, 9, "unigram"), AttentionOnly(5, 1)),
        (MarkovChains(4, 17), AttentionOnly(16, 3)),
        (MarkovChains(3, 6, "doubly"), AttentionOnly(16, 2, heads=3)),
        (MarkovChains(9, 11), AttentionOnly(3, 2, heads=2)),
        (Coins(), AttentionOnly(7, 3, heads=2)),
        (MarkovChains(3, 12), MinimalAttention()),
        (MarkovChains(5, 6, "doubly"), MinimalAttention()),
    ],
    ids=str,
)
def test_losses_and_weights_are_those_of_reference(
    task: Task, model: AttentionOnly | MinimalAttention
) -> None:
    """50 steps with the same data and start: 1e-4, and the same metrics."""
    spec = spec_of(task, model)
    found, plain = (
        next(iter(load_engine(name).run([spec], Silent()))) for name in ("native", "reference")
    )
    assert (found.engine, found.outcome, found.steps) == ("native", plain.outcome, plain.steps)
    for name, values in plain.curves.values.items():
        np.testing.assert_allclose(found.curves.values[name], values, atol=2e-4, err_msg=name)
    np.testing.assert_allclose(
        found.curves.values["train_loss"], plain.curves.values["train_loss"], atol=1e-4
    )


@pytest.mark.parametrize(
    "training",
    [
        {"optimiser": SGD(), "learning_rate": 0.1, "weight_decay": 0.1},
        {"optimiser": SGD(0.9), "learning_rate": 0.05, "clip": 0.1},
        {"optimiser": Adam(0.8, 0.99), "weight_decay": 0.1},
        {
            "weight_decay": 0.1,
            "schedule": Schedule(
                (
                    Piece(0, rate=(("*.positions", 0.5), ("*", 1.0)), decay=(("@weight", 1.0),)),
                    Piece(20, rate=0.1, keep=(("output.*", 0.9), ("*", 1.0))),
                )
            ),
        },
        {"batch_size": None},
        {"batches": "epochs"},
    ],
    ids=str,
)
def test_optimisers_schedules_and_samples(training: dict[str, Any]) -> None:
    """Those of PyTorch, on a sample."""
    spec = spec_of(training=training, data=Data(m=40, n_test=20))
    found, plain = (
        next(iter(load_engine(name).run([spec], Silent()))) for name in ("native", "reference")
    )
    np.testing.assert_allclose(
        found.curves.values["train_loss"], plain.curves.values["train_loss"], atol=1e-4
    )
    assert found.final == pytest.approx(plain.final, abs=1e-4)


@pytest.mark.parametrize("k", [2, 3, 5, 8, 9, 12, 16])
@pytest.mark.parametrize("rows", ["dirichlet", "unigram"])
def test_chains_are_drawn_to_the_last_bit(k: int, rows: Any) -> None:
    """Inside as by the task, from any place of the stream."""
    task = MarkovChains(k, 23, rows)
    with NativeAttention(arguments(spec_of(task, seed=5)), HERE[0]) as run:
        tokens, labels = run.draw(3, 500)
    expected = task.draw([5], "train", 3, 500)
    np.testing.assert_array_equal(tokens, expected.x[0])
    np.testing.assert_array_equal(labels, expected.labels[0])


@settings(deadline=None, max_examples=15, phases=UNSHRUNK)
@given(SHAPES, st.integers(0, 2**32 - 1), st.lists(st.integers(1, 10**5), min_size=1))
def test_bits_depend_on_neither_processor_nor_calls(
    shape: tuple[int, int, int, int, int, int], seed: int, works: list[int]
) -> None:
    """Every instruction set, in one call or in many that end in the middle of steps."""
    k, t, d, heads, layers, batch = shape
    model = MinimalAttention() if seed % 4 == 0 else AttentionOnly(d, layers, heads)
    spec = spec_of(MarkovChains(k, t), model, training={"batch_size": batch}, seed=seed)
    found = []
    for isa in HERE:
        for work in ([10**12], works):
            losses: list[float] = []
            with NativeAttention(arguments(spec), isa) as run:
                while len(losses) < 3:
                    losses += run.advance(work[0], 3 - len(losses)).tolist()
                    work = [*work[1:], work[0]]
                found.append([np.array(losses), *run.weights()])
    for other in found[1:]:
        for one, another in zip(found[0], other, strict=True):
            assert one.tobytes() == another.tobytes()


@dataclass(frozen=True)
class Holes:
    """Tokens of which half have no label; a task of a user's own."""

    name: ClassVar[str] = "holes"

    @property
    def domain(self) -> Domain:
        """Four states, and a label at some of seven positions."""
        return Domain(Tokens(4, 7), Classes(4, positions=7))

    def draw(self, seeds: Any, purpose: str, start: int, count: int) -> Examples:
        """Draw tokens; the label is the token itself, where it is even."""
        drawn = Streams(seeds, purpose).integers(4, start * 7, count * 7)
        tokens = drawn.reshape(len(seeds), count, 7)
        return Examples(np.where(tokens % 2, -1, tokens), dense=tokens)


def test_positions_without_a_label_do_not_count() -> None:
    """As in the other engines, on a task that is not this package's."""
    spec = spec_of(Holes(), AttentionOnly(4))
    found, plain = (
        next(iter(load_engine(name).run([spec], Silent()))) for name in ("native", "reference")
    )
    np.testing.assert_allclose(
        found.curves.values["train_loss"], plain.curves.values["train_loss"], atol=1e-4
    )


def test_metrics_stop_rules_and_instruments_are_read() -> None:
    """Measured on the compiled outputs, and by the module with the run's weights."""
    evaluation = Evaluation(
        every=20,
        curves=True,
        fitted_error=None,
        metrics=(KL("truth"), MeanLoss(CrossEntropy()), Error()),
        instruments=(BackAttention(), AttentionMap("attention2.pattern", 4)),
    )
    spec = spec_of(evaluation=evaluation)
    found, plain = (
        next(iter(load_engine(name).run([spec], Silent()))) for name in ("native", "reference")
    )
    assert found.curves.step == plain.curves.step
    for name, values in plain.curves.values.items():
        np.testing.assert_allclose(found.curves.values[name], values, atol=1e-4, err_msg=name)
    for name, arrays in plain.curves.arrays.items():
        np.testing.assert_allclose(found.curves.arrays[name], arrays, atol=1e-4, err_msg=name)


@pytest.mark.parametrize("model", [AttentionOnly(8), MinimalAttention()], ids=str)
def test_a_run_that_diverges_says_so(model: AttentionOnly | MinimalAttention) -> None:
    """At the step whose loss is not finite, in every instruction set."""
    spec = spec_of(model=model, training={"optimiser": SGD(), "learning_rate": 1e30})
    record = next(iter(load_engine("native").run([spec], Silent())))
    assert record.outcome is Outcome.DIVERGED
    assert math.isnan(record.train_loss)
    plain = next(iter(load_engine("reference").run([spec], Silent())))
    assert (record.steps, record.final) == (plain.steps, plain.final)
    for isa in HERE:
        with NativeAttention(arguments(spec), isa) as run:
            assert len(run.advance(10**12, 50)) == record.steps


def test_it_stops_when_it_is_asked_to() -> None:
    """A monitor is asked between short calls; the first is one group of sequences."""
    spec = spec_of(
        MarkovChains(8, 400),
        AttentionOnly(16, 2, heads=4),
        training={"batch_size": 256, "steps": 10**6},
        evaluation=Evaluation(every=10**6, fitted_error=None),
    )
    stopper = Stopper(stop_after=3)
    assert list(load_engine("native").run([spec], stopper)) == []
    assert sum(stopper.steps) <= 1


REFUSALS: dict[str, tuple[RunSpec, str]] = {
    "it takes attention with layers up to 3, and the model has layers=4": (
        spec_of(model=AttentionOnly(4, 4)),
        "torch",
    ),
    "it takes attention with heads up to 4, and the model has heads=5": (
        spec_of(model=AttentionOnly(8, heads=5)),
        "torch",
    ),
    "it takes attention with d up to 64, and the model has d=65": (
        spec_of(model=AttentionOnly(65)),
        "torch",
    ),
    "it takes sequences of up to 512 tokens of 16 values, and the task has 513 of 3": (
        spec_of(MarkovChains(3, 513)),
        "torch",
    ),
    "it takes sequences of up to 512 tokens of 16 values, and the task has 5 of 17": (
        spec_of(MarkovChains(17, 5)),
        "torch",
    ),
    "it trains transformers on cross entropy, and the loss is cross_entropy((1.0, 1.0, 2.0))": (
        spec_of(training={"loss": CrossEntropy((1.0, 1.0, 2.0))}),
        "torch",
    ),
    "it computes in float32, and this run in float64": (
        spec_of(training={"precision": "float64"}),
        "torch",
    ),
    "it has no penalty, and this run has neuron_norm(0.1)": (
        spec_of(training={"penalty": NeuronNorm(0.1)}),
        "torch",
    ),
}


@pytest.mark.parametrize("reason", REFUSALS)
def test_what_it_cannot_serve_is_refused_by_name(reason: str) -> None:
    """With the engine that can; `auto` takes that one."""
    spec, other = REFUSALS[reason]
    with pytest.raises(UserError) as error:
        choose_engine(spec, "native")
    assert str(error.value) == (
        f"The engine native cannot serve this run: {reason}. The engine {other} can."
    )
    assert choose_engine(spec).name == other


def test_it_is_chosen_by_itself() -> None:
    """`auto` takes the compiled engine where it serves."""
    assert choose_engine(spec_of()).name == "native"
    assert choose_engine(spec_of(MarkovChains(3, 8, "doubly"))).name == "native"
    assert choose_engine(spec_of(model=MinimalAttention())).name == "native"
