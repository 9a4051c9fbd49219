"""Noise drawn for every neuron, and weights of classes: FL's first two steps by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from petridish.chapters.inputs.trainings import after, both_steps, forgetting, start, weighted
from petridish.errors import UserError
from petridish.models import MLP, NoisyMLP, ReLU, SmoothedTruncatedReLU, TruncatedReLU
from petridish.models.modules import NoisyModule
from petridish.models.parameters import parameters_of
from petridish.seeds import Streams
from petridish.tasks import Bits, Classes, Dictionary, Domain, SparseParity, Values
from petridish.training import (
    CrossEntropy,
    Evaluation,
    Hinge,
    Logistic,
    MeanLoss,
    RunRecord,
    RunSpec,
    Silent,
    Square,
    Training,
    Weighted,
    load_engine,
)
from petridish.training.data import initial_weights, training_examples
from petridish.training.metrics import Metric

Floats = NDArray[np.float64]
TASK = Dictionary(12, 8, 3, space="patterns", negatives=0.8)
M, WIDTH, NOISE = 50, 6, 0.4
RATES = (0.3, 0.7)


def first_steps(model: MLP | NoisyMLP, loss: Hinge | Weighted) -> RunSpec:
    """Return the two steps that forget, of a network of truncated ReLUs."""
    begun = start(TASK, m=M, width=WIDTH, n_test=40)
    begun = replace(begun, model=model, training=replace(begun.training, loss=loss))
    run = both_steps(begun, *RATES)
    return replace(run, evaluation=Evaluation(fitted_error=None, weights=True))


def trained(spec: RunSpec, engine: str) -> RunRecord:
    """Return the record of one run."""
    (record,) = load_engine(engine).run([spec], Silent())
    return record


def by_hand(spec: RunSpec, noise: float, weights: tuple[float, float]) -> Floats:
    """Return the first layer's weights after both steps, neuron by neuron in NumPy."""
    drawn = training_examples([spec], 0, M)
    x = drawn.x[0].astype(np.float64)
    y = 1.0 - 2.0 * drawn.labels[0]
    share = np.where(y > 0, *weights)
    w, b, a = (each[0].astype(np.float64) for each in initial_weights([spec]))
    for step, rate in enumerate(RATES):
        normals = Streams([spec.seed], "module/0").normals(step * M * WIDTH, M * WIDTH)
        z = x @ w.T + b + noise * normals.reshape(M, WIDTH).astype(np.float32)
        f = np.clip(z, 0, 1) @ a[0]
        slope = np.where(1 - y * f > 0, -y, 0.0) * share / share.sum()
        gates = (z > 0) & (z < 1)
        w = -rate * np.einsum("e,er,r,ed->rd", slope, gates, a[0], x)  # the old weights are lost
    return np.asarray(w)


@pytest.mark.parametrize("engine", ["torch", "reference"])
@pytest.mark.parametrize("loss", [Hinge(), Weighted((2.5, 0.625))])
def test_two_steps_with_drawn_noise_by_hand(engine: str, loss: Hinge | Weighted) -> None:
    """Each neuron has its own number for every example and step; classes have their weights."""
    spec = first_steps(NoisyMLP(WIDTH, NOISE, (), TruncatedReLU(), "linear"), loss)
    first, second = loss.weights if isinstance(loss, Weighted) else (1.0, 1.0)
    record = trained(spec, engine)
    assert record.weights is not None
    expected = by_hand(spec, NOISE, (first, second))

    found = np.reshape(record.weights[0], expected.shape)
    assert np.allclose(found, expected, rtol=1e-5, atol=1e-7)
    assert np.abs(expected - by_hand(spec, 0.0, (first, second))).max() > 0.01


def test_the_closed_form_is_the_mean_over_samples() -> None:
    """Of outputs, and of gradients of the weights where the loss is linear in the outputs."""
    torch.manual_seed(0)
    domain = TASK.domain
    noisy = NoisyMLP(WIDTH, NOISE, (), TruncatedReLU(), "linear").build(domain, 1)
    closed = MLP(WIDTH, (), SmoothedTruncatedReLU(NOISE), "linear").build(domain, 1)
    closed.load_state_dict(noisy.state_dict())
    x = torch.from_numpy(TASK.draw([0], "train", 0, 5).x[0]).float()
    copies = 20_000
    sampled, smooth = noisy(x.repeat(copies, 1)).view(copies, 5), closed(x)[:, 0]
    error = sampled.std(dim=0) / copies**0.5
    names = dict(noisy.named_parameters())
    (slopes,) = torch.autograd.grad(sampled.mean(), [names["layer1.weight"]])
    (slope,) = torch.autograd.grad(
        smooth.mean(), [dict(closed.named_parameters())["layer1.weight"]]
    )

    assert ((sampled.mean(dim=0) - smooth).abs() < 5 * error).all()
    assert torch.allclose(slopes, slope, atol=0.003)
    assert slope.abs().max() > 0.03


def test_noise_is_for_training_alone() -> None:
    """In evaluation the network is the MLP; its parameters are too, so that either follows."""
    noisy = NoisyMLP(5, 0.3, (3,))
    domain = SparseParity(8, 3).domain
    x = torch.ones(4, 8)
    module, plain = noisy.build(domain, 1), noisy.quiet.build(domain, 1)
    plain.load_state_dict(module.state_dict())

    assert noisy.quiet == MLP(5, (3,))
    assert parameters_of(noisy, domain, 1) == parameters_of(noisy.quiet, domain, 1)
    assert torch.equal(module.eval()(x), plain(x))
    assert not torch.equal(module.train()(x), plain(x))
    assert torch.equal(NoisyModule(ReLU(), 0.3).eval()(-x), torch.zeros(4, 8))


def test_class_weights_in_the_first_two_steps_alone() -> None:
    """App. F's 1/(2 Pr[y = v]) for as long as the steps on the whole sample last.

    With them the gradient is the mean of the two classes' own.
    """
    plain = start(TASK, m=M, width=WIDTH, n_test=40)
    steps = weighted(both_steps(plain, *RATES))
    later = after(plain, steps)
    labels = torch.tensor([[0, 1, 1, 1, 1]])
    f = torch.linspace(-2, 2, 5)[None, :, None]
    each = Hinge().each(f, labels)[0]

    assert isinstance(steps.training.loss, Weighted)
    assert steps.training.loss.loss == Hinge()
    assert np.allclose(steps.training.loss.weights, (0.5 / 0.2, 0.5 / 0.8))
    assert later.training.loss == Hinge()
    assert weighted(forgetting(plain, 1.0)).training.loss == steps.training.loss
    assert np.isclose(steps.training.loss(f, labels), (each[0] + each[1:].mean()) / 2)


@pytest.mark.parametrize("loss", [Hinge, Logistic, Square])
def test_weights_of_two_classes_by_hand(loss: Callable[..., Any]) -> None:
    """Σ w_y loss / Σ w_y, run by run; −1 is no label, and no weights are weights of 1."""
    labels = torch.tensor([[0, 1, -1, 1], [1, 1, 1, 1]])
    f = torch.tensor([[0.3, -0.2, 9.0, 2.0], [0.5, 1.5, -1.0, 0.0]])[..., None]
    each = loss().each(f, labels)
    found = Weighted((3, 1), loss())(f, labels)
    bits = Weighted((3, 1), loss())(f[1:], labels[1:].to(torch.uint8))

    assert np.isclose(found[0], (3 * each[0, 0] + each[0, 1] + each[0, 3]) / 5)
    assert np.isclose(found[1], each[1].mean())
    assert torch.equal(bits, found[1:])
    assert torch.allclose(Weighted((1, 1), loss())(f, labels), loss()(f, labels))
    assert Weighted((3, 1), loss()).is_mean is False
    assert torch.equal(Weighted((), loss())(f, labels), loss()(f, labels))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            lambda: NoisyMLP(5, 0),
            "NoisyMLP: noise=0. Give a positive standard deviation, or an MLP without noise.",
        ),
        (
            lambda: NoisyMLP(0, 0.1),
            "MLP: width=0. Give a whole number of at least 1.",
        ),
        (
            lambda: Weighted((1, -1)),
            "Weighted: weights=(1, -1). Give one finite number of at least 0 per class, not all of "
            "them 0.",
        ),
        (
            lambda: Weighted(3),  # type: ignore[arg-type] # that is what is refused
            "Weighted: weights=3. Give one finite number of at least 0 per class, not all of "
            "them 0.",
        ),
        (
            lambda: Weighted((1, 2, 3)).n_outputs(Domain(Bits(4), Classes(2))),
            "Weighted: 3 weights were given, but the task has 2 classes. Give one weight per "
            "class.",
        ),
        (
            lambda: Weighted((1, 2), Square()).n_outputs(Domain(Bits(4), Values(2))),
            "Weighted: 2 weights were given, but the task has real targets. Give none.",
        ),
        (
            lambda: Weighted((1, 2), CrossEntropy()),  # type: ignore[arg-type] # the same
            "Weighted: loss=CrossEntropy(weights=()). Give a margin loss, such as Hinge(); "
            "CrossEntropy has weights of its own.",
        ),
        (
            lambda: CrossEntropy(()).n_outputs(Domain(Bits(4), Values(2))),
            "The loss cross_entropy needs classes, but the task has real targets. Use square.",
        ),
    ],
)
def test_what_has_no_meaning_is_refused(wrong: Callable[[], object], message: str) -> None:
    """In one line."""
    with pytest.raises(UserError) as refused:
        wrong()
    assert str(refused.value) == message


def test_a_weighted_loss_is_no_metric_and_not_compiled() -> None:
    """The native engine says so, and which engine can."""
    spec = RunSpec(task=SparseParity(8, 3), model=MLP(4), training=Training(loss=Weighted((1, 2))))
    watched: Metric = MeanLoss(Weighted((1, 2)))

    assert load_engine("native").refusal(spec) == "it has no loss weighted. The engine torch can."
    with pytest.raises(UserError, match="MeanLoss"):
        replace(spec, evaluation=Evaluation(metrics=(watched,), curves=True)).check()
