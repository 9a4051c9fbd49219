"""Models and initialisations."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np
import pytest
import torch

from petridish.choices import describe, parse
from petridish.errors import UserError
from petridish.models import (
    ACTIVATIONS,
    INITS,
    MLP,
    MODELS,
    AttentionOnly,
    BareHead,
    Bernoulli,
    CausalTransformer,
    ClsTransformer,
    Constant,
    DisjointPolyNet,
    Homogeneous,
    Identity,
    InfiniteZigzag,
    Init,
    KaimingGaussian,
    MinimalAttention,
    Model,
    NoisyMLP,
    Normal,
    Oscillating,
    OverSparse,
    Own,
    Paired,
    ParityTransformer,
    PolyNet,
    Power,
    Projected,
    PublishedInduction,
    ReLU,
    ResNet,
    Seeded,
    Signs,
    Sine,
    SmoothedTruncatedReLU,
    Sparse,
    Stacked,
    SymmetricSigns,
    Tangent,
    TangentStart,
    TruncatedReLU,
    Uniform,
    XavierUniform,
    Zigzag,
)
from petridish.sweeps.sweep import OFFERED
from tests.domains import bits

ALL_INITS: list[Any] = [
    Uniform(),
    XavierUniform(),
    KaimingGaussian(),
    Bernoulli(),
    Sparse(2),
    Paired(),
    Paired(Sparse(3)),
    OverSparse(3, 4),
    SymmetricSigns(4),
    Constant(0.5),
    Normal(0.2),
    Projected(0.2, 5),
    Signs(0.1),
    Seeded(Uniform(), 3),
    TangentStart(Sparse(2)),
]
ALL_MODELS: list[Any] = [
    MLP(6),
    MLP(6, activation=Power(2)),
    MLP(4, (2, 6)),
    MLP(4, (4,), Identity()),
    MLP(6, output="linear"),
    MLP(4, (2,), Zigzag(3), "linear"),
    MLP(1, activation=InfiniteZigzag(2), output="sum"),
    MLP(2, activation=Oscillating(3), output="linear"),
    MLP(2, activation=Sine(3, 0.5), output="sum"),
    MLP(3, (2,), output="sum"),
    MLP(5, activation=TruncatedReLU(), output="linear"),
    MLP(5, activation=SmoothedTruncatedReLU(0.5), output="linear"),
    PolyNet(3),
    DisjointPolyNet(4),
    ParityTransformer(8, 2, 3),
    Tangent(4),
    Tangent(6, Power(3)),
    Homogeneous(6),
    Homogeneous(4, ReLU()),
]


def test_the_suites_cover_everything() -> None:
    """A new initialisation, activation or model must join the lists above.

    Models that read tokens or images, or draw noise, are in files of their own:
    test_attention_only.py, test_cls_transformer.py, test_bare_head.py, test_image_features.py,
    test_induction_models.py and test_noisy_neurons.py.
    """
    activations = {type(model.activation) for model in ALL_MODELS if hasattr(model, "activation")}
    assert {type(init) for init in ALL_INITS} == set(INITS.values()) - {Own}  # of modules alone
    others = {AttentionOnly, BareHead, ClsTransformer, ResNet}
    others |= {CausalTransformer, MinimalAttention, NoisyMLP, PublishedInduction}
    assert {type(model) for model in ALL_MODELS} == set(MODELS.values()) - others
    assert activations == set(ACTIVATIONS.values())


def fits(init: Init, model: Stacked) -> bool:
    """Whether an initialisation takes a model: `REFUSED` below says which do not, and why."""
    try:
        init.draw(model.parameters(bits(20), 1), [])
    except UserError:
        return False
    return True


def draw(init: Init, model: Stacked, seeds: list[int], n: int = 20) -> list[Any]:
    """Draw all parameters of a model on n inputs."""
    return init.draw(model.parameters(bits(n), 1), seeds)


@pytest.mark.parametrize(
    ("model", "init"),
    [(model, init) for model in ALL_MODELS for init in ALL_INITS if fits(init, model)],
    ids=describe,
)
def test_a_draw_has_its_shapes_and_is_a_runs_own(model: Stacked, init: Init, seed: int) -> None:
    """Every parameter has its shape, and a run's values do not depend on the other runs."""
    parameters = model.parameters(bits(20), 1)
    together = init.draw(parameters, [seed, seed + 1, seed + 2])
    alone = init.draw(parameters, [seed + 1])

    for parameter, many, one in zip(parameters, together, alone, strict=True):
        assert many.shape == (3, *parameter.shape)
        assert many.dtype == np.float32
        assert np.array_equal(many[1], one[0])


def test_uniform_is_pytorchs_default(seed: int) -> None:
    """Bounds as in nn.Linear, and 40000 weights from the same distribution (error rate 1e-4)."""
    from scipy.stats import ks_2samp

    torch.manual_seed(seed)
    theirs = torch.nn.Linear(50, 800)
    ours = Uniform().draw(MLP(800).parameters(bits(50), 1), [seed])
    for mine, other in ((ours[0], theirs.weight), (ours[1], theirs.bias)):
        assert np.abs(mine).max() <= 1 / sqrt(50)
        assert ks_2samp(mine.ravel(), other.detach().numpy().ravel()).pvalue > 1e-4


def test_scales_of_the_named_inits(seed: int) -> None:
    """Xavier's bound, Kaiming's variance and Bernoulli's two values, in every layer."""
    model = MLP(300, (200,))
    for parameter, xavier, kaiming, signs in zip(
        model.parameters(bits(50), 1),
        draw(XavierUniform(), model, [seed], 50),
        draw(KaimingGaussian(), model, [seed], 50),
        draw(Bernoulli(), model, [seed], 50),
        strict=True,
    ):
        bound = sqrt(6 / (parameter.fan_in + parameter.fan_out))
        assert np.abs(xavier).max() <= bound
        assert set(np.abs(signs).ravel().tolist()) == {float(np.float32(bound))}
        if parameter.size >= 1000:
            assert np.abs(xavier).max() > 0.98 * bound
            spread = kaiming.std() / sqrt(2 / parameter.fan_in)
            assert abs(spread - 1) < 5 / sqrt(2 * parameter.size)
            assert abs(np.mean(signs > 0) - 0.5) < 2.5 / sqrt(parameter.size)


@pytest.mark.parametrize("s", [1, 2, 7, 20])
def test_sparse_gives_each_neuron_s_ones(s: int, seed: int) -> None:
    """Row sums are s, entries 0 or 1; all other parameters are those of `Uniform`."""
    model = MLP(30)
    weights, *rest = draw(Sparse(s), model, [seed])

    assert set(np.unique(weights)) <= {0.0, 1.0}
    assert (weights.sum(axis=2) == s).all()
    for ours, uniform in zip(rest, draw(Uniform(), model, [seed])[1:], strict=True):
        assert np.array_equal(ours, uniform)


@pytest.mark.parametrize("base", [Uniform(), Sparse(2), KaimingGaussian()], ids=describe)
@pytest.mark.parametrize("model", [MLP(6), MLP(5, (8,))], ids=describe)
def test_paired_networks_start_as_the_zero_function(base: Init, model: MLP, seed: int) -> None:
    """Pairs cancel exactly, at every input."""
    weights = [torch.from_numpy(w) for w in draw(Paired(base), model, [seed])]
    x = torch.randn(1, 40, 20)

    assert model.forward(weights, x).abs().max() < 1e-6
    hidden = weights[-4]
    half = hidden.shape[1] // 2
    assert torch.equal(hidden[:, :half], hidden[:, half:])


def plain_activation(activation: Any) -> Callable[[Any], Any]:
    """Return an activation by another formula than the package's."""
    k, scale = getattr(activation, "k", 0), getattr(activation, "scale", 1.0)
    points = np.arange(-k, k + 1, 2)
    heights = (-1.0) ** ((k - points) // 2)

    def sine(z: Any) -> Any:
        return np.sin(np.pi / 2 * (scale * z + 1 - k))

    def zigzag(z: Any) -> Any:
        left, right = (z + k) * (heights[1] - heights[0]) / 2, (z - k) * (1 - heights[-2]) / 2
        inside = np.interp(z, points, heights)
        return np.where(z < -k, heights[0] + left, np.where(z > k, 1 + right, inside))

    def smoothed(z: Any) -> Any:  # by a sum over the noise
        noise = np.linspace(-8, 8, 40_001)
        weights = np.exp(-(noise**2) / 2)
        drawn = np.clip(np.asarray(z)[..., None] + 0.5 * noise, 0, 1)
        return drawn @ weights / weights.sum()

    functions: dict[type, Callable[[Any], Any]] = {
        ReLU: lambda z: np.maximum(z, 0),
        TruncatedReLU: lambda z: np.clip(z, 0, 1),
        SmoothedTruncatedReLU: smoothed,
        Identity: lambda z: z,
        Power: lambda z: z**k,
        Zigzag: zigzag,
        InfiniteZigzag: lambda z: 2 / np.pi * np.arcsin(sine(z)),
        Oscillating: lambda z: np.polyval(np.polyfit(points, heights, k), z),
        Sine: sine,
    }
    return functions[type(activation)]


def plain_forward(model: MLP, weights: list[Any], x: Any) -> Any:
    """Compute the network in NumPy, one run and one example at a time."""
    function = plain_activation(model.activation)
    for layer in range(1 + len(model.deeper)):
        x = function(weights[2 * layer] @ x + weights[2 * layer + 1])
    output = weights[2 * (1 + len(model.deeper)) :]
    if model.output == "sum":
        return x.sum()
    return output[0] @ x + (output[1] if model.output == "affine" else 0)


@pytest.mark.parametrize(
    "model", [model for model in ALL_MODELS if isinstance(model, MLP)], ids=describe
)
def test_forward_is_the_formula(model: MLP, seed: int) -> None:
    """A stack of runs gives each run its own network's outputs."""
    drawn = draw(Uniform(), model, [seed, seed + 1])
    x = np.random.default_rng(seed).standard_normal((2, 5, 20)).astype(np.float32)
    outputs = model.forward([torch.from_numpy(w) for w in drawn], torch.from_numpy(x)).numpy()

    assert outputs.shape == (2, 5, 1)
    for run in range(2):
        for example in range(5):
            expected = plain_forward(model, [w[run] for w in drawn], x[run, example])
            assert np.allclose(outputs[run, example], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("init", ALL_INITS, ids=describe)
def test_the_text_of_an_init_reads_back(init: Init) -> None:
    """`describe` and `parse` are inverse."""
    assert parse(describe(init), "init", Init, OFFERED) == init


@pytest.mark.parametrize("model", ALL_MODELS, ids=describe)
def test_the_text_of_a_model_reads_back(model: Model) -> None:
    """`describe` and `parse` are inverse for models too, with their activations inside."""
    assert parse(describe(model), "model", Model, OFFERED) == model


REFUSED = [
    (
        lambda: MLP(0),
        "MLP: width=0. Give a whole number of at least 1.",
    ),
    (
        lambda: MLP(3, (2, -1)),
        "MLP: width=-1. Give a whole number of at least 1.",
    ),
    (lambda: MLP(2.5), "MLP: width=2.5. Give a whole number of at least 1."),  # type: ignore[arg-type] # on purpose
    (lambda: Power(1.5), "Power: k=1.5. Give a whole number of at least 1."),  # type: ignore[arg-type] # on purpose
    (lambda: Sparse(0), "Sparse: s=0. Give a whole number of at least 1."),
    (lambda: Power(0), "Power: k=0. Give a whole number of at least 1."),
    (
        lambda: draw(Sparse(21), MLP(3), []),
        "Sparse: s=21 weights per neuron, but there are only 20 inputs. Give s from 1 to 20.",
    ),
    (
        lambda: draw(Paired(), MLP(3), []),
        "Paired: the last hidden layer has 3 neurons, which cannot be paired. "
        "Give an even width, such as 4.",
    ),
    (
        lambda: draw(SymmetricSigns(4), PolyNet(2), []),
        "SymmetricSigns: pairs of neurons cancel in the output layer of an MLP, and this model "
        "has none. Give an MLP with the output 'affine' or 'linear'.",
    ),
    (
        lambda: draw(Paired(), ParityTransformer(8, 2, 2), []),
        "Paired: pairs of neurons cancel in the output layer of an MLP, and this model has none. "
        "Give an MLP with the output 'affine' or 'linear'.",
    ),
    (
        lambda: draw(TangentStart(), MLP(4), []),
        "TangentStart: the model is not its linearisation: it has no frozen weights beside the "
        "trained ones. Give the model Tangent, or another initialisation.",
    ),
    (lambda: Normal(-1.0), "Normal: std=-1.0. Give a finite number of at least 0."),
    (lambda: Constant(float("nan")), "Constant: value=nan. Give a finite number."),
    (lambda: Seeded(Uniform(), -1), "Seeded: seed=-1. Give a whole number of at least 0."),
    (
        lambda: MLP(3, output="product"),  # type: ignore[arg-type] # on purpose
        "MLP: output='product'. Give 'affine', 'linear' or 'sum'.",
    ),
    (
        lambda: MLP(3, output="sum").parameters(bits(5), 2),
        "MLP: output='sum' has one output, but task and loss ask for 2. Give 'affine' or 'linear'.",
    ),
    (
        lambda: PolyNet(3).parameters(bits(5), 2),
        "PolyNet has one output, but task and loss ask for 2. "
        "Give a task of two classes and a loss such as hinge.",
    ),
    (
        lambda: DisjointPolyNet(3).parameters(bits(20), 1),
        "DisjointPolyNet: 20 inputs cannot be cut into k=3 equal blocks. "
        "Give n as a multiple of 3.",
    ),
    (
        lambda: ParityTransformer(heads=0),
        "ParityTransformer: heads=0. Give a whole number of at least 1.",
    ),
    (lambda: Tangent(0), "Tangent: width=0. Give a whole number of at least 1."),
    (lambda: Zigzag(0), "Zigzag: k=0. Give a whole number of at least 1."),
]


@pytest.mark.parametrize(("make", "sentence"), REFUSED)
def test_what_makes_no_sense_is_refused(make: Any, sentence: str) -> None:
    """One sentence: what was wrong, what was given, what to do."""
    with pytest.raises(UserError) as error:
        make()

    assert str(error.value) == sentence
