"""FL-5: clusters of neurons on images, residual networks, and their early gradients."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
import torch

from petridish.chapters.inputs.image_clusters import (
    ENDS,
    IMAGES,
    LAST_FILTERS,
    ZERO_ONE,
    EarlyAgreement,
    nearest_to_its_cluster,
)
from petridish.errors import UserError
from petridish.models import MLP, ResNet
from petridish.store import Store
from petridish.sweeps import Arms
from petridish.sweeps.arms import arm
from petridish.tasks import Classes, Domain, Reals, find_images
from petridish.theory.inputs.windows import agreement, needed_steps, window_gradients
from petridish.training import (
    SGD,
    CrossEntropy,
    Data,
    Evaluation,
    FilterWeights,
    RunSpec,
    Silent,
    Training,
    load_engine,
)
from tests.conftest import SmokeStore


@pytest.fixture
def table(smoke_store: SmokeStore) -> pl.DataFrame:
    """Return the smoke runs."""
    return IMAGES.sweep("smoke").among(Store(smoke_store("FL-5")).read(columns="all").table)


def test_the_images_are_those_of_scikit_learn() -> None:
    """Written down in the declaration."""
    assert find_images("digits", (0, 1)) == ZERO_ONE


def test_a_residual_network_has_the_sizes_of_resnet_18() -> None:
    """11 173 962 numbers for ten classes of colour images; four stages that halve the image."""
    module = ResNet().build(Domain(Reals((3, 32, 32)), Classes(10)), 10)
    small = ResNet(3).build(Domain(Reals((1, 8, 8)), Classes(2)), 2)
    shapes = {name: tuple(p.shape) for name, p in small.named_parameters()}
    seen = []
    for stage in range(1, 5):
        small.get_submodule(f"layer{stage}").register_forward_hook(
            lambda _module, _given, found: seen.append(tuple(found.shape))
        )
    small(torch.zeros(2, 1, 8, 8))

    assert sum(p.numel() for p in module.parameters()) == 11_173_962
    assert shapes[LAST_FILTERS] == (24, 24, 3, 3)
    assert seen == [(2, 3, 8, 8), (2, 6, 4, 4), (2, 12, 2, 2), (2, 24, 1, 1)]
    with pytest.raises(UserError) as refused:
        ResNet(3).build(Domain(Reals((64,)), Classes(2)), 2)
    assert str(refused.value) == (
        "ResNet: the inputs are Reals(shape=(64,)). Give images of a shape (channel, height, "
        "width)."
    )


def test_both_engines_train_it_alike() -> None:
    """Weights and running means after three steps, in float64.

    In float32 normalisation over a few numbers makes rounding large.
    """
    spec = RunSpec(
        task=ZERO_ONE,
        data=Data(m=40, n_test=20),
        model=ResNet(2),
        training=Training(
            loss=CrossEntropy(),
            learning_rate=0.05,
            batch_size=20,
            steps=3,
            target_error=None,
            precision="float64",
        ),
        evaluation=Evaluation(weights=True),
    )
    spec.check()
    one, other = (
        next(iter(load_engine(name).run([spec], Silent()))) for name in ("torch", "reference")
    )

    assert one.weights_of == other.weights_of
    assert one.weights is not None
    assert other.weights is not None
    assert any("running_mean" in name for name, _ in one.weights_of or ())
    for here, there in zip(one.weights, other.weights, strict=True):
        assert np.allclose(here, there, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_gradients_from_weights(momentum: float) -> None:
    """Of a full batch the gradient at each step is known; its means over windows agree."""
    ends = (0, 3, 6)
    at = tuple(range(7))
    spec = RunSpec(
        task=ZERO_ONE,
        data=Data(m=40, n_test=20),
        model=MLP(5),
        training=Training(
            optimiser=SGD(momentum),
            learning_rate=0.05,
            weight_decay=0.0,
            batch_size=None,
            steps=6,
            target_error=None,
            precision="float64",
        ),
        evaluation=Evaluation(every=1, curves=True, instruments=(FilterWeights(at=at),)),
    )
    (record,) = load_engine("reference").run([spec], Silent())
    weights = dict(enumerate(record.curves.arrays["filter_weights layer1.weight"]))
    velocities = [(weights[t] - weights[t + 1]) / 0.05 for t in range(6)]
    slopes = [v - momentum * u for v, u in zip(velocities, [0, *velocities], strict=False)]
    by_hand = np.stack([np.mean(slopes[:3], axis=0), np.mean(slopes[3:], axis=0)])
    kept = {step: weights[step] for step in needed_steps(ends)}

    assert needed_steps(ends) == (0, 2, 3, 5, 6)
    assert np.allclose(window_gradients(kept, ends, 0.05, momentum), by_hand, atol=1e-9)


def test_agreement_by_hand() -> None:
    """Two equal and one orthogonal; directions at random have 1/√3 with their mean, 0 in pairs."""
    with_mean, pairs = agreement(np.array([[1.0, 0], [1, 0], [0, 1]]))
    rng = np.random.default_rng(0)
    many = [agreement(rng.standard_normal((3, 2_000))) for _ in range(20)]

    assert np.allclose(with_mean, [2 / 5**0.5, 2 / 5**0.5, 1 / 5**0.5])
    assert np.allclose(pairs, [1, 0, 0])
    assert np.mean([each[0] for each in many]) == pytest.approx(3**-0.5, abs=0.01)
    assert np.mean([each[1] for each in many]) == pytest.approx(0, abs=0.02)
    with pytest.raises(UserError) as refused:
        window_gradients({0: np.zeros(2)}, (0, 10), 0.1)
    assert str(refused.value) == (
        "window_gradients: ends=(0, 10), rate=0.1, weights at [0]. Give at least two ends in "
        "order, a positive rate, and the weights at each end and one step before."
    )


def test_the_filter_that_is_chosen() -> None:
    """The nearest to the mean of the larger cluster."""
    rows = np.array([[1.0, 0.1], [1, 0], [1, -0.2], [-1, 0.0], [-1, 0.1]])
    assert nearest_to_its_cluster(rows) == 1


def test_the_smoke_runs(table: pl.DataFrame) -> None:
    """Agreement is that of the chosen filter's windows; every arm is judged, weights are drawn."""
    runs = arm(table, "residual")
    found = EarlyAgreement().of(runs)
    kept = runs[f"array.filter_weights {LAST_FILTERS}"][0]
    rows = np.array(kept["values"]).reshape(kept["shape"])
    chosen = nearest_to_its_cluster(rows[-1])
    weights = {step: each[chosen] for step, each in zip(needed_steps(ENDS), rows, strict=False)}
    gradients = window_gradients(weights, ENDS, 0.001, 0.95)
    unit = gradients / np.linalg.norm(gradients, axis=1, keepdims=True)
    pairs = [unit[0] @ unit[1], unit[0] @ unit[2], unit[1] @ unit[2]]
    arms = IMAGES.sweep("smoke")

    assert len(rows) == len(needed_steps(ENDS)) + 1
    assert found[0] == pytest.approx(np.mean(pairs))
    assert np.isnan(EarlyAgreement().of(arm(table, "small start"))).all()
    assert len(IMAGES.judge(table)) == 6
    assert len(IMAGES.figures["plane"](table, "").axes) == 6
    assert isinstance(arms, Arms)
