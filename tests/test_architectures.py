"""HP's architectures: what each can represent, and that each computes what its formula says."""

from __future__ import annotations

import itertools
from dataclasses import replace
from math import comb, sqrt
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from petridish.models import (
    MLP,
    Constant,
    DisjointPolyNet,
    InfiniteZigzag,
    Model,
    Normal,
    Oscillating,
    Paired,
    ParityTransformer,
    PolyNet,
    Power,
    ReLU,
    Seeded,
    Signs,
    Sine,
    Sparse,
    SymmetricSigns,
    Tangent,
    TangentStart,
    Uniform,
    XavierUniform,
    Zigzag,
)
from petridish.models.activations import Activation
from petridish.naming import UserError, describe
from petridish.tasks import SparseParity
from petridish.training import (
    Adam,
    AdamW,
    Data,
    Evaluation,
    Piece,
    RunSpec,
    Schedule,
    Silent,
    Training,
    load_engine,
    per_layer,
    run_key,
)
from petridish.training.data import initial_weights
from petridish.training.final import final_weights
from petridish.training.greedy import Greedy, frozen_below, random_features
from petridish.training.reference import trained_network

Floats = NDArray[np.float64]
SIZES = [(n, k) for n in range(1, 7) for k in range(1, n + 1)]


def cube(n: int) -> Floats:
    """Give all inputs of n signs, a row each."""
    return np.array(list(itertools.product([1.0, -1.0], repeat=n)))


def subsets(n: int, k: int) -> Floats:
    """Give w_S for all S of k of n bits, a row each: they are the runs of one stack."""
    chosen = list(itertools.combinations(range(n), k))
    indicators = np.zeros((len(chosen), n))
    np.put_along_axis(indicators, np.array(chosen), 1.0, axis=1)
    return indicators


def outputs(model: Model, weights: list[Any], n: int, *, dtype: Any = torch.float64) -> Floats:
    """Give f on the whole cube, shape (run, input)."""
    arrays = [torch.tensor(np.asarray(weight), dtype=dtype) for weight in weights]
    x = torch.tensor(cube(n), dtype=dtype).expand(len(weights[0]), -1, -1)
    found: Floats = model.forward(arrays, x).squeeze(2).double().numpy()
    return found


def parities(indicators: Floats) -> Floats:
    """Give χ_S on the whole cube, shape (run, input)."""
    chosen = np.where(indicators[:, None, :] > 0, cube(indicators.shape[1]), 1.0)
    products: Floats = chosen.prod(axis=2)
    return products


def spread(values: Any, runs: int) -> Floats:
    """Give every run the same values."""
    return np.repeat(np.asarray(values, float)[None], runs, axis=0)


# What single neurons represent


@pytest.mark.parametrize(("n", "k"), SIZES)
def test_one_neuron_is_the_parity(n: int, k: int) -> None:
    """σ(w_S · x) = χ_S(x) for all x and S, of all single neurons; the zigzags without rounding."""
    indicators = subsets(n, k)
    weights = [indicators[:, None, :], np.zeros((len(indicators), 1))]
    neurons: list[tuple[Activation, float]] = [
        (Zigzag(k), 0.0),
        (InfiniteZigzag(k), 0.0),
        (Oscillating(k), 1e-5),
        (Sine(k), 1e-5),
    ]
    for activation, rounding in neurons:
        model = MLP(1, activation=activation, output="sum")
        f = outputs(model, weights, n, dtype=torch.float32)
        assert np.abs(f - parities(indicators)).max() <= rounding
        with_output = MLP(1, activation=activation, output="linear")
        again = outputs(with_output, [*weights, np.ones((len(f), 1, 1))], n, dtype=torch.float32)
        assert np.array_equal(f, again)


def test_waves_are_the_parity_of_every_number_of_bits() -> None:
    """∞-zigzag and sine of one k represent other numbers of bits, up to the neuron's bias.

    With k' bits the wave has to be shifted by k − k'.
    """
    for k, others in ((2, 5), (3, 4), (4, 1)):
        indicators = subsets(6, others)
        weights = [indicators[:, None, :], np.full((len(indicators), 1), float(k - others))]
        for activation in (InfiniteZigzag(k), Sine(k)):
            f = outputs(MLP(1, activation=activation, output="sum"), weights, 6)
            assert np.allclose(f, parities(indicators), atol=1e-12)


@pytest.mark.parametrize("k", [1, 2, 3, 4, 7])
def test_activations_are_the_curves_that_the_source_draws(k: int) -> None:
    """All pass through the same points; slopes of zigzags are ±1, also beyond the last points."""
    points = torch.arange(-k, k + 1, 2, dtype=torch.float64)
    heights = (-1.0) ** ((k - points) / 2)
    for activation in (Zigzag(k), InfiniteZigzag(k), Oscillating(k), Sine(k)):
        assert torch.allclose(activation(points), heights, atol=1e-9)
    scaled = Sine(k, scale=2.0)(points / 2)
    assert torch.allclose(scaled, heights, atol=1e-9)

    z = (torch.linspace(-k - 5, k + 5, 1001, dtype=torch.float64) + 1e-4).requires_grad_()
    for activation in (Zigzag(k), InfiniteZigzag(k)):
        (slopes,) = torch.autograd.grad(activation(z).sum(), z)
        assert torch.equal(slopes.abs(), torch.ones_like(z))
    inside = z.abs() < k
    assert torch.allclose(Zigzag(k)(z)[inside], InfiniteZigzag(k)(z)[inside])
    assert InfiniteZigzag(k)(z).abs().max() <= 1
    assert Zigzag(k)(torch.tensor(k + 3.0)) == 4
    assert Zigzag(k)(torch.tensor(-k - 3.0)).abs() == 4
    assert torch.allclose(
        InfiniteZigzag(k)(z), 2 / torch.pi * torch.asin(Sine(k)(z).clamp(-1, 1)), atol=1e-6
    )


# What two-layer networks represent


def relu_system(k: int, kinks: range, *, bias: bool) -> tuple[Floats, Floats, Floats]:
    """Solve for v (and β): Σ_j v_j (m − j)_+ + β = χ, for m = 0 … k bits that are +1."""
    m = np.arange(k + 1)
    features = np.maximum(m[:, None] - np.array(kinks), 0)
    if bias:
        features = np.column_stack([features, np.ones(k + 1)])
    found = np.linalg.solve(features, (-1.0) ** (k - m))
    return np.array(kinks, float), found[: len(kinks)], found[len(kinks) :]


@pytest.mark.parametrize(("n", "k"), SIZES)
def test_relu_networks_represent_parities(n: int, k: int) -> None:
    """With an output bias k ReLU neurons are enough; without it k + 1 are.

    As a function of m the parity has k pieces. The kinks at 1 … k − 1 and one neuron that is
    active everywhere give its shape; a line that changes its sign needs one more, or a bias.
    """
    indicators = subsets(n, k)
    runs = len(indicators)
    for output, kinks in (("affine", range(k)), ("linear", range(-1, k))):
        at, v, bias = relu_system(k, kinks, bias=output == "affine")
        weights = [
            np.repeat(indicators[:, None, :] / 2, len(at), axis=1),  # m = w_S · x / 2 + k / 2
            spread(k / 2 - at, runs),
            spread(v[None], runs),
            *([spread(bias, runs)] if output == "affine" else []),
        ]
        model = MLP(len(at), output=output)  # type: ignore[arg-type] # one of the literals
        assert np.allclose(outputs(model, weights, n), parities(indicators), atol=1e-9)


def patterns(x: Floats) -> list[NDArray[np.int64]]:
    """Give every way in which a neuron can be active on the rows of x: all linear thresholds."""
    from scipy.optimize import linprog

    found = []
    for bits in itertools.product([0, 1], repeat=len(x)):
        signs = 2 * np.array(bits) - 1
        separable = linprog(
            np.zeros(x.shape[1]),
            A_ub=-signs[:, None] * x,
            b_ub=-np.ones(len(x)),
            bounds=(None, None),
        )
        if separable.status == 0:
            found.append(np.array(bits))
    return found


def is_representable(k: int, width: int) -> bool:
    """Whether sign(Σ_j ± (w_j · x + b_j)_+) can be the parity of k bits.

    For given activation patterns and signs that is a linear program, and patterns are few.
    Flipping one input exchanges y and −y, so that at least half of the signs may be taken as +.
    """
    from scipy.optimize import linprog

    x = np.column_stack([cube(k), np.ones(2**k)])
    y = cube(k).prod(axis=1)
    active = patterns(x)
    for n_plus in range((width + 1) // 2, width):
        plus = [
            chosen
            for chosen in itertools.combinations_with_replacement(active, n_plus)
            if np.any(chosen, axis=0)[y > 0].all()  # else f ≤ 0 at an input with y = 1
        ]
        minus = [
            chosen
            for chosen in itertools.combinations_with_replacement(active, width - n_plus)
            if np.any(chosen, axis=0)[y < 0].all()
        ]
        for neurons in itertools.product(plus, minus):
            chosen = [*neurons[0], *neurons[1]]
            signs = [1] * n_plus + [-1] * (width - n_plus)
            f = np.hstack([s * a[:, None] * x for s, a in zip(signs, chosen, strict=True)])
            holds = np.zeros((width, len(x), width, x.shape[1]))
            for j, a in enumerate(chosen):
                holds[j, :, j] = -(2 * a - 1)[:, None] * x
            bounds = np.concatenate([-np.ones(len(x)), np.zeros(width * len(x))])
            rows = np.vstack([-y[:, None] * f, holds.reshape(-1, f.shape[1])])
            program = linprog(np.zeros(f.shape[1]), A_ub=rows, b_ub=bounds, bounds=(None, None))
            if program.status == 0:
                return True
    return False


@pytest.mark.parametrize("k", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
def test_k_relu_neurons_without_an_output_bias_are_too_few(k: int) -> None:
    """The source's r ≥ k [HP App. B.4.1] is short by one for f = u·σ(Wx + b), even for the sign.

    For k = 2, by hand: one neuron is positive on both inputs with y = 1, the other on both with
    y = −1, and the sums of w · x + b over either two are 2b. So 2 u_1 b_1 > 2 |u_2| b_2 and the
    converse would both hold.
    """
    assert not is_representable(k, k)
    if k < 3:
        assert is_representable(k, k + 1)


def power_weights(k: int) -> tuple[Floats, Floats]:
    """Find t and u with Σ_j u_j (s + t_j)^k = χ at all sums s of k signs, with k neurons.

    With p(s) = Σ_i C(k, i) c_i s^(k − i) the oscillating polynomial, that is Σ_j u_j t_j^i = c_i
    for i = 0 … k: one equation too many, unless Π_j (t − t_j) = Σ_i g_i t^i has Σ_i g_i c_i = 0
    [Sylvester]. So the last node follows from the others.
    """
    points = np.arange(-k, k + 1, 2)
    p = np.polyfit(points, (-1.0) ** ((k - points) // 2), k)
    c = p / [comb(k, i) for i in range(k + 1)]
    chosen = sqrt(k) * np.cos(np.pi * np.arange(1, k) / (k + 0.3))
    h = np.atleast_1d(np.poly(chosen))[::-1]  # ascending; 1 alone where nothing is chosen
    nodes = np.append(chosen, h @ c[1:] / (h @ c[:-1])).astype(np.float64)
    u = np.linalg.solve(np.vander(nodes, k, increasing=True).T, c[:-1])
    return nodes, u.astype(np.float64)


@pytest.mark.parametrize(("n", "k"), SIZES)
def test_k_neurons_with_powers_represent_parities(n: int, k: int) -> None:
    """Width k is enough for z^k without an output bias, as the source says."""
    indicators = subsets(n, k)
    runs = len(indicators)
    nodes, u = power_weights(k)
    weights = [
        np.repeat(indicators[:, None, :], k, axis=1),
        spread(nodes, runs),
        spread(u[None], runs),
    ]
    f = outputs(MLP(k, activation=Power(k), output="linear"), weights, n)

    assert np.allclose(f, parities(indicators), atol=1e-7)


@pytest.mark.parametrize(("n", "k"), SIZES)
def test_polynets_represent_parities(n: int, k: int) -> None:
    """Unit vectors as weights, in any order; one bit of each block for the disjoint one."""
    indicators = subsets(n, k)
    chosen = np.array(list(itertools.combinations(range(n), k)))[:, ::-1]
    weights = [np.eye(n)[chosen], np.zeros((len(chosen), k))]
    assert np.array_equal(outputs(PolyNet(k), weights, n), parities(indicators))

    if n % k == 0:
        block = n // k
        places = np.array(list(itertools.product(range(block), repeat=k)))
        apart = np.zeros((len(places), n))
        np.put_along_axis(apart, places + block * np.arange(k), 1.0, axis=1)
        f = outputs(DisjointPolyNet(k), [np.eye(block)[places]], n)
        assert np.array_equal(f, parities(apart))


def test_polynets_are_products(seed: int) -> None:
    """Π_i (w_i · x + b_i), and Π_i w_i · x_{P_i} over blocks, for any weights."""
    rng = np.random.default_rng(seed)
    w, b, apart = rng.normal(size=(3, 4, 8)), rng.normal(size=(3, 4)), rng.normal(size=(3, 4, 2))
    x = cube(8)

    expected = np.prod(np.einsum("rki,xi->rxk", w, x) + b[:, None], axis=2)
    assert np.allclose(outputs(PolyNet(4), [w, b], 8), expected)
    blocks = np.stack([x[:, 2 * i : 2 * i + 2] for i in range(4)], axis=1)  # (input, k, n/k)
    expected = np.prod(np.einsum("rki,xki->rxk", apart, blocks), axis=2)
    assert np.allclose(outputs(DisjointPolyNet(4), [apart], 8), expected)


# What deep networks of squares represent


def squares(depth: int, k: int) -> list[Floats]:
    """Give weights of a network of squares whose output is the product of its k ≤ 2^depth inputs.

    With p, q = ±1 a neuron (p + q)² is 2 + 2pq, and half of it minus 1 the product. Where there is
    no bit left, p = 1 takes its place as a bias.
    """
    weights: list[Floats] = []
    width = 2**depth
    values = np.eye(width)[:, :k]  # a row of factors of the layer below for each value,
    constants = (np.arange(width) >= k).astype(float)  # and what is added to it
    while width > 1:
        width //= 2
        weights += [values[::2] + values[1::2], constants[::2] + constants[1::2]]
        values, constants = np.eye(width) / 2, np.full(width, -1.0)
    return [*weights, values, constants]


@pytest.mark.parametrize("k", range(1, 9))
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_deep_squares_represent_parities_of_up_to_two_to_the_depth_bits(depth: int, k: int) -> None:
    """L = depth + 1 layers of squares, of widths 2^(L−2) … 2, 1, are the parity of k ≤ 2^(L−1).

    L = 3 has HP-11's widths (2, 1). A bias of the output is needed: see the next test.
    """
    if k > 2**depth:
        return
    model = MLP(2 ** (depth - 1), tuple(2**i for i in range(depth - 1))[::-1], Power(2))
    weights = [weight[None] for weight in squares(depth, k)]

    assert [weight[0].shape for weight in weights] == [p.shape for p in model.parameters(k, 1)]
    assert np.allclose(outputs(model, weights, k), parities(np.ones((1, k))))


@pytest.mark.parametrize("deeper", [(1,), (10, 1)])
def test_one_last_square_without_an_output_bias_has_one_sign(
    deeper: tuple[int, ...], seed: int
) -> None:
    """u·h with a single square h cannot be a parity, whatever the weights.

    HP App. B.3.7 writes u·z, and reports that widths (2, 1) and (10, 10, 1) were trained to 100 %:
    its networks must have had an output bias.
    """
    model = MLP(2, deeper, Power(2), "linear")
    weights = Normal().draw(model.parameters(5, 1), range(seed, seed + 20))
    f = outputs(model, weights, 5)

    assert ((f >= 0).all(axis=1) | (f <= 0).all(axis=1)).all()


@pytest.mark.parametrize("depth", [1, 2])
def test_deep_squares_do_not_correlate_with_higher_degrees(depth: int, seed: int) -> None:
    """E[f χ_S] and its gradient are 0 for |S| > 2^depth, and not for |S| ≤ 2^depth."""
    model = MLP(3, (3,) * (depth - 1), Power(2), "linear")
    drawn = Normal().draw(model.parameters(6, 1), [seed])
    weights = [torch.from_numpy(w).double().requires_grad_() for w in drawn]
    f = model.forward(weights, torch.from_numpy(cube(6))[None])[0, :, 0]
    scale = float(f.detach().abs().mean())
    for k in range(1, 7):
        y = torch.from_numpy(parities(subsets(6, k))[0])
        mean = (f * y).mean()
        gradients = torch.autograd.grad(mean, weights, retain_graph=True)
        correlation = abs(mean.item())
        largest = max(float(gradient.abs().max()) for gradient in gradients)
        if k > 2**depth:
            assert correlation < 1e-12 * scale
            assert largest < 1e-11 * scale
        else:
            assert correlation > 1e-6 * scale


# The Transformer


def plain_transformer(model: ParityTransformer, p: list[Tensor], x: Tensor) -> Tensor:
    """Compute one example of one run from the formulas, head by head and token by token."""
    positions, tokens, w_q, w_k, w_v, w_out, w1, b1, w2, b2, u = p
    minus, plus, cls = tokens.T
    embedded = [(plus if bit > 0 else minus) + positions[:, i] for i, bit in enumerate(x.tolist())]
    z = cls
    for h in range(model.heads):
        part = slice(h * model.d_attn, (h + 1) * model.d_attn)
        query = w_q[part] @ cls
        scores = [query @ (w_k[part] @ token) / sqrt(model.d_attn) for token in [*embedded, cls]]
        total = sum(score.exp() for score in scores)
        heard = [
            score.exp() / total * (w_v[part] @ token)
            for score, token in zip(scores, [*embedded, cls], strict=True)
        ]
        z = z + w_out[:, part] @ torch.stack(heard).sum(dim=0)
    inner = w1 @ z + b1
    gelu = inner * (1 + torch.erf(inner / sqrt(2))) / 2
    output: Tensor = u @ (z + w2 @ gelu + b2)
    return output


@pytest.mark.parametrize("model", [ParityTransformer(5, 2, 3), ParityTransformer(4, 3, 1, 7)])
def test_the_transformer_is_its_formula(model: ParityTransformer, seed: int) -> None:
    """Values and gradients of a stack agree with the plain computation to 1e-10."""
    drawn = Normal(0.7).draw(model.parameters(6, 1), [seed, seed + 1])
    weights = [torch.from_numpy(w).double().requires_grad_() for w in drawn]
    x = torch.from_numpy(np.random.default_rng(seed).choice([-1.0, 1.0], (2, 4, 6)))
    ours = model.forward(weights, x)
    plain = torch.stack(
        [
            torch.stack([plain_transformer(model, [w[run] for w in weights], row) for row in rows])
            for run, rows in enumerate(x)
        ]
    )
    away = torch.from_numpy(np.random.default_rng(seed + 9).normal(size=ours.shape))

    assert ours.shape == (2, 4, 1)
    assert torch.allclose(ours, plain, rtol=0, atol=1e-10)
    for mine, theirs in zip(
        torch.autograd.grad((ours * away).sum(), weights),
        torch.autograd.grad((plain * away).sum(), weights),
        strict=True,
    ):
        assert torch.allclose(mine, theirs, rtol=0, atol=1e-10)
        assert theirs.abs().max() > 1e-3


def test_the_transformer_has_the_sources_parameters() -> None:
    """3 + n embeddings, 4 H matrices of d_emb × d_attn, an MLP of 4 d_emb, and u, at HP's sizes."""
    parameters = ParityTransformer().parameters(50, 1)
    d = 1024
    expected = (3 + 50) * d + 128 * 4 * d * 8 + 2 * d * 4 * d + 4 * d + d + d

    assert sum(p.size for p in parameters) == expected
    assert len({p.name for p in parameters}) == len(parameters)
    bound = XavierUniform().draw(ParityTransformer(64, 4, 8).parameters(20, 1), [0])
    query = bound[2]
    assert 0.97 * sqrt(6 / (64 + 32)) < np.abs(query).max() <= sqrt(6 / (64 + 32))


def test_a_small_transformer_learns_a_parity() -> None:
    """A sanity check of the science: Adam brings a parity of two bits to error 0."""
    spec = RunSpec(
        task=SparseParity(8, 2),
        data=Data(n_test=256),
        model=ParityTransformer(32, 4, 4),
        init=XavierUniform(),
        training=Training(
            optimiser=Adam(), learning_rate=2e-3, weight_decay=0, steps=1500, target_error=0.0
        ),
    )
    (record,) = load_engine("torch").run([spec], Silent())

    assert record.solved_at is not None


# The tangent model


@pytest.mark.parametrize("activation", [ReLU(), Power(3), Sine(2), Zigzag(3)], ids=describe)
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_the_tangent_model_is_the_first_order_of_taylors_series(
    activation: Activation, n_outputs: int, seed: int
) -> None:
    """f(x) = d/dε g(x; θ_0 + εθ) at ε = 0, for the MLP g without output bias."""
    tangent, network = Tangent(4, activation), MLP(4, activation=activation, output="linear")
    drawn = Normal().draw(tangent.parameters(5, n_outputs), [seed, seed + 1])
    weights = [torch.from_numpy(w).double() for w in drawn]
    theta, start = weights[:3], weights[3:]
    x = torch.from_numpy(np.random.default_rng(seed).normal(size=(2, 7, 5)))

    def along(epsilon: Tensor) -> Tensor:
        moved = [a + epsilon * b for a, b in zip(start, theta, strict=True)]
        return network.forward(moved, x)

    zero = torch.zeros((), dtype=torch.float64)
    expected = torch.autograd.functional.jacobian(along, zero)  # type: ignore[no-untyped-call] # PyTorch's own has no types
    assert torch.allclose(tangent.forward(weights, x), expected, rtol=0, atol=1e-12)


def test_the_tangent_model_is_linear_in_what_it_trains(seed: int) -> None:
    """The gradient in θ is the network's at θ_0, whatever θ; that in θ_0 is 0."""
    tangent, network = Tangent(4), MLP(4, output="linear")
    drawn = Normal().draw(tangent.parameters(5, 1), [seed])
    weights = [torch.from_numpy(w).requires_grad_() for w in drawn]
    x = torch.from_numpy(np.random.default_rng(seed).normal(size=(1, 7, 5)).astype(np.float32))
    gradients = torch.autograd.grad(tangent.forward(weights, x).sum(), weights)
    expected = torch.autograd.grad(network.forward(weights[3:], x).sum(), weights[3:])

    for mine, theirs in zip(gradients[:3], expected, strict=True):
        assert torch.allclose(mine, theirs, rtol=1e-5, atol=1e-5)
    assert all(torch.equal(mine, torch.zeros_like(mine)) for mine in gradients[3:])
    with torch.no_grad():  # as at a look
        doubled = [2 * w if i < 3 else w for i, w in enumerate(weights)]
        assert torch.allclose(
            tangent.forward(doubled, x), 2 * tangent.forward(weights, x), rtol=1e-5, atol=1e-5
        )


TANGENT = RunSpec(
    task=SparseParity(10, 2),
    data=Data(n_test=200),
    model=Tangent(30),
    init=TangentStart(XavierUniform()),
    training=Training(steps=60, weight_decay=0, target_error=None),
    evaluation=Evaluation(every=20, curves=True),
)


def test_a_tangent_model_starts_at_the_networks_start() -> None:
    """θ_0 is what the base draws for the network itself at the run's seed, and θ is 0."""
    drawn = initial_weights([TANGENT, replace(TANGENT, seed=1)])
    network = MLP(30, output="linear")
    theirs = XavierUniform().draw(network.parameters(10, 1), [0, 1])

    assert all(not theta.any() for theta in drawn[:3])
    for mine, other in zip(drawn[3:], theirs, strict=True):
        assert np.array_equal(mine, other)
    paired = initial_weights([replace(TANGENT, init=TangentStart(Paired()))])
    assert np.array_equal(paired[5][..., 15:], -paired[5][..., :15])


@pytest.mark.parametrize("optimiser", [Training().optimiser, Adam(), AdamW()], ids=describe)
def test_training_moves_theta_alone(optimiser: Any) -> None:
    """At the end θ_0 is bit for bit what it was, under every optimiser."""
    spec = replace(TANGENT, training=replace(TANGENT.training, optimiser=optimiser))
    start, end = initial_weights([spec]), final_weights(spec)

    for then, now in zip(start[:3], end[:3], strict=True):
        assert np.abs(now - then[0]).max() > 1e-4
    for then, now in zip(start[3:], end[3:], strict=True):
        assert np.array_equal(then[0], now)


def test_decay_of_frozen_weights_is_refused_for_every_start() -> None:
    """Weight decay would shrink θ_0; it may act on θ alone."""
    decayed = replace(TANGENT, training=replace(TANGENT.training, weight_decay=0.01))
    for spec in (decayed, replace(decayed, init=Uniform())):
        with pytest.raises(UserError) as error:
            list(load_engine("torch").run([TANGENT, spec], Silent()))
        assert str(error.value) == (
            "The model tangent holds some of its weights fixed, and the weight decay 0.01 would "
            "move them. Give weight_decay=0."
        )
    spared = per_layer(decays=(1.0, 1.0, 0.0, 0.0))
    spec = replace(decayed, training=replace(decayed.training, schedule=spared))
    assert np.array_equal(final_weights(spec)[3], initial_weights([spec])[3][0])


def test_random_features_stay_as_they_were_drawn() -> None:
    """With the schedule `random_features` only the output moves, also under weight decay."""
    spec = RunSpec(
        task=SparseParity(10, 2),
        data=Data(n_test=100),
        model=MLP(12, (8,), output="linear"),
        training=Training(
            steps=50, weight_decay=0.1, schedule=random_features(3), target_error=None
        ),
    )
    network, _ = trained_network(spec, Silent())
    end = [parameter.detach().numpy() for parameter in network.parameters()]
    moved = [
        not np.array_equal(then[0], now)
        for then, now in zip(initial_weights([spec]), end, strict=True)
    ]

    assert moved == [False] * 4 + [True]
    assert random_features() == per_layer((0.0, 1.0))


# Initialisations


def test_a_seeded_start_is_the_same_for_every_run(seed: int) -> None:
    """Runs share the weights that the base draws at that seed, and not their examples."""
    model = MLP(6, output="linear")
    spec = RunSpec(task=SparseParity(10, 2), model=model, init=Seeded(Sparse(2), 5), seed=seed)
    drawn = initial_weights([spec, replace(spec, seed=seed + 1)])
    own = initial_weights([replace(spec, init=Sparse(2), seed=5)])

    for shared, theirs in zip(drawn, own, strict=True):
        assert np.array_equal(shared[0], shared[1])
        assert np.array_equal(shared[0], theirs[0])


def test_plain_starts_have_one_scale_for_all_parameters(seed: int) -> None:
    """Constants, normals and signs do not ask for the layer's size."""
    parameters = MLP(100).parameters(50, 1)
    for weight in Constant(2).draw(parameters, [seed]):
        assert (weight == 2).all()
    for weight in Signs(0.5).draw(parameters, [seed]):
        assert (np.abs(weight) == 0.5).all()
    normal, signs = Normal(3.0).draw(parameters, [seed]), Signs().draw(parameters, [seed])
    assert abs(normal[0].std() / 3 - 1) < 5 / sqrt(2 * 5000)
    assert abs(normal[2].std() / 3 - 1) < 5 / sqrt(2 * 100)
    assert abs(signs[0].mean()) < 5 / sqrt(5000)


@pytest.mark.parametrize("output", ["affine", "linear"])
def test_symmetric_signs_are_theorem_5_5s_start(output: Any, seed: int) -> None:
    """w, u = ±1, biases uniform on the multiples of 1/k within ±1, pairs that cancel."""
    model = MLP(20_000, output=output)
    parameters = model.parameters(9, 1)
    weights = SymmetricSigns(4).draw(parameters, [seed])
    w, b, u = weights[:3]

    assert {*np.unique(w)} == {*np.unique(u)} == {-1, 1}
    values, counts = np.unique(b[0, :10_000], return_counts=True)
    assert np.array_equal(values, np.arange(-3, 4) / 4)
    assert np.abs(counts / 10_000 - 1 / 7).max() < 5 * sqrt(6 / 49 / 10_000)
    assert np.array_equal(w[:, :10_000], w[:, 10_000:])
    assert np.array_equal(b[:, :10_000], b[:, 10_000:])
    assert np.array_equal(u[..., :10_000], -u[..., 10_000:])
    assert np.abs(outputs(model, weights, 9)).max() == 0
    if output == "affine":
        assert not weights[3].any()


def test_a_paired_start_needs_no_output_bias(seed: int) -> None:
    """Without one the network starts as the zero function all the same."""
    model = MLP(4, (6,), output="linear")
    weights = Paired(XavierUniform()).draw(model.parameters(5, 1), [seed])

    assert np.abs(outputs(model, weights, 5)).max() < 1e-6
    assert np.abs(weights[4]).min() > 0


@pytest.mark.parametrize("k", [2, 4, 6, 8])
def test_the_grid_of_biases_holds_the_neurons_that_the_proof_needs(k: int) -> None:
    """After the first step a good neuron is (±(m/k − 1/2) + b)_+, m bits being +1 [HP Lemma B.4].

    With the grid's b, both signs, they span the parity. The proof's k neurons b_i = −1/2 + (i+1)/k,
    i = 1 … k, do not; i = 0 … k do, with its u* and the opposite sign: 8k (−1)^i and so on.
    """
    m = np.arange(k + 1)
    parity = (-1.0) ** (k - m)
    centred = m / k - 1 / 2
    grid = np.arange(-k + 1, k) / k
    neurons = [np.maximum(sign * centred + b, 0) for b in grid for sign in (1, -1)]
    found, *_ = np.linalg.lstsq(np.transpose(neurons), parity, rcond=None)
    assert np.allclose(found @ neurons, parity)

    i = np.arange(k + 1)
    proofs = np.maximum(centred + (-1 / 2 + (i[:, None] + 1) / k), 0)
    outer = 8 * k * (-1.0) ** i
    outer[k - 1 :] = -6 * k, 2 * k
    assert np.allclose(outer @ proofs, 2 * parity)
    found, *_ = np.linalg.lstsq(proofs[1:].T, parity, rcond=None)
    assert not np.allclose(found @ proofs[1:], parity, atol=0.1)
    assert k < 4 or set(np.round(k * (-1 / 2 + (i + 1) / k))) <= set(np.round(k * grid))


# Greedy layerwise training

GREEDY = RunSpec(
    task=SparseParity(8, 3, support=(1, 4, 6)),
    data=Data(n_test=200),
    model=MLP(6, (5, 4), Power(2)),
    init=Greedy(XavierUniform()),
    training=Training(
        steps=40,
        learning_rate=0.002,
        weight_decay=0.01,
        schedule=frozen_below(2, 4),
        target_error=None,
    ),
    evaluation=Evaluation(every=20, curves=True),
    seed=3,
)


def cut(spec: RunSpec, deeper: tuple[int, ...]) -> RunSpec:
    """Give a greedy run with fewer layers, written out by hand."""
    schedule = frozen_below(len(deeper), len(deeper) + 2)
    return replace(
        spec,
        model=MLP(6, deeper, Power(2)),
        training=replace(spec.training, schedule=schedule),
    )


def test_a_greedy_run_takes_over_what_shorter_runs_learned() -> None:
    """By hand: train one hidden layer; freeze it and train the next; freeze both.

    The new layers start as the base draws them for the whole network.
    """
    fresh = XavierUniform().draw(GREEDY.parameters, [3])
    one = replace(cut(GREEDY, ()), init=XavierUniform())
    first = final_weights(one)
    second = final_weights(cut(GREEDY, (5,)))
    start = initial_weights([GREEDY])
    middle = initial_weights([cut(GREEDY, (5,))])

    for j in range(2):  # the first layer never moves after its own run
        assert np.array_equal(middle[j][0], first[j])
        assert np.array_equal(second[j], first[j])
        assert np.array_equal(start[j][0], first[j])
        assert np.array_equal(start[j + 2][0], second[j + 2])
        assert not np.array_equal(second[j + 2], middle[j + 2][0])
    assert not np.array_equal(first[0], fresh[0][0])
    for mine, drawn in zip(start[4:], fresh[4:], strict=True):
        assert np.array_equal(mine, drawn)
    end = final_weights(GREEDY)
    moved = [not np.array_equal(now, then[0]) for now, then in zip(end, start, strict=True)]
    assert moved == [False] * 4 + [True] * 4


@pytest.mark.parametrize("output", ["affine", "linear", "sum"])
def test_every_output_can_be_trained_greedily(output: Any) -> None:
    """The head is drawn anew in each run, whatever it is; engines agree on the whole run."""
    n_layers = 3 if output == "sum" else 4
    spec = replace(
        GREEDY,
        model=MLP(6, (5, 4), Power(2), output),
        training=replace(GREEDY.training, schedule=frozen_below(2, n_layers)),
    )
    specs = [spec, replace(spec, seed=4)]
    spec.check()
    stacked = {r.spec.seed: r for r in load_engine("torch").run(specs, Silent())}
    for theirs in load_engine("reference").run(specs, Silent()):
        mine = stacked[theirs.spec.seed]
        assert mine.steps == theirs.steps == 40
        assert np.allclose(mine.curves.train_loss[1:], theirs.curves.train_loss[1:], rtol=1e-4)
        assert np.allclose(mine.curves.test_error, theirs.curves.test_error, atol=0.01)


def test_each_run_of_a_stack_has_its_own_parent() -> None:
    """Runs that are stacked may differ in their rates, and then their parents do."""
    faster = replace(GREEDY, training=replace(GREEDY.training, learning_rate=0.003))
    together = initial_weights([GREEDY, faster])
    alone = initial_weights([GREEDY]), initial_weights([faster])

    for both, *each in zip(together, *alone, strict=True):
        assert np.array_equal(both, np.concatenate(each))
    assert not np.array_equal(together[0][0], together[0][1])


def test_a_greedy_parent_has_the_schedule_without_its_first_layer() -> None:
    """Pieces by layer or by parameter keep what they say of the new layer and the output."""
    from petridish.training.greedy import _parent

    by_layer = Schedule((Piece(0, (0.0, 0.0, 1.0, 0.5), 2.0), Piece(9, (0.0, 0.0, 0.1, 0.2))))
    by_parameter = per_layer((0.0,) * 4 + (1.0, 0.0, 0.5, 0.4), tuple(map(float, range(8))))
    for given, expected in (
        (by_layer, Schedule((Piece(0, (0.0, 1.0, 0.5), 2.0), Piece(9, (0.0, 0.1, 0.2))))),
        (
            by_parameter,
            per_layer((0.0,) * 2 + (1.0, 0.0, 0.5, 0.4), tuple(map(float, range(2, 8)))),
        ),
    ):
        spec = replace(GREEDY, training=replace(GREEDY.training, schedule=given))
        parent = _parent(spec)
        assert parent.training.schedule == expected
        assert parent.model == MLP(6, (5,), Power(2))
        assert (parent.init, parent.seed) == (spec.init, spec.seed)
        assert not parent.evaluation.curves


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        (
            replace(GREEDY, training=Training()),
            "Greedy: the schedule trains layer 1, which is taken over as it was learned. "
            "Give schedule=frozen_below(2, 4).",
        ),
        (
            replace(
                GREEDY,
                training=Training(
                    schedule=Schedule((*frozen_below(2, 4).pieces, Piece(9, (0.0, 1.0, 1.0, 1.0))))
                ),
            ),
            "Greedy: the schedule trains layer 2, which is taken over as it was learned. "
            "Give schedule=frozen_below(2, 4).",
        ),
        (
            replace(GREEDY, model=PolyNet(3), training=Training()),
            "Greedy: polynet has no hidden layers to be trained one after another. Give an MLP.",
        ),
    ],
)
def test_what_cannot_be_trained_greedily_is_refused(spec: RunSpec, sentence: str) -> None:
    """Each refusal says what to do."""
    with pytest.raises(UserError) as error:
        initial_weights([spec])
    assert str(error.value) == sentence


def test_layers_are_frozen_from_the_first_on() -> None:
    """The schedule has a rate of 0 for each frozen layer and 1 for the others."""
    assert frozen_below(1, 3) == per_layer((0.0, 1.0, 1.0))
    assert frozen_below(0, 2) == per_layer((1.0, 1.0))
    with pytest.raises(UserError) as error:
        frozen_below(3, 2)
    assert str(error.value) == ("frozen_below: n_layers=2. Give a whole number of at least 3.")


# Names of runs


def test_the_choice_of_an_output_leaves_earlier_runs_their_names() -> None:
    """Keys as they were before `MLP.output` came; another output is another run."""
    task = SparseParity(50, 3)
    base = RunSpec(task=task, model=MLP(1000), init=Paired(Sparse(3)), seed=7)

    assert run_key(RunSpec(task=task)) == "69dd9fcfc5bd34c58abccfde2f2438ce"
    assert run_key(base) == "c699401a08b3ba0776c6f8584e391183"
    assert run_key(replace(base, model=MLP(1000, output="affine"))) == run_key(base)
    assert run_key(replace(base, model=MLP(1000, output="linear"))) != run_key(base)
