"""HP's architectures: what each can represent, and that each computes what its formula says."""

from __future__ import annotations

import itertools
from math import comb, sqrt
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from petridish.models import (
    MLP,
    DisjointPolyNet,
    InfiniteZigzag,
    Normal,
    Oscillating,
    PolyNet,
    Power,
    Sine,
    Stacked,
    Zigzag,
)
from petridish.models.activations import Activation
from tests.domains import bits

Floats = NDArray[np.float64]
SIZES = [(n, k) for n in range(1, 7) for k in range(1, n + 1)]


def cube(n: int) -> Floats:
    """Return all inputs of n signs, a row each."""
    return np.array(list(itertools.product([1.0, -1.0], repeat=n)))


def subsets(n: int, k: int) -> Floats:
    """Return w_S for all S of k of n bits, a row each: they are the runs of one stack."""
    chosen = list(itertools.combinations(range(n), k))
    indicators = np.zeros((len(chosen), n))
    np.put_along_axis(indicators, np.array(chosen), 1.0, axis=1)
    return indicators


def outputs(model: Stacked, weights: list[Any], n: int, *, dtype: Any = torch.float64) -> Floats:
    """Return f on the whole cube, shape (run, input)."""
    arrays = [torch.tensor(np.asarray(weight), dtype=dtype) for weight in weights]
    x = torch.tensor(cube(n), dtype=dtype).expand(len(weights[0]), -1, -1)
    found: Floats = model.forward(arrays, x).squeeze(2).double().numpy()
    return found


def parities(indicators: Floats) -> Floats:
    """Return χ_S on the whole cube, shape (run, input)."""
    chosen = np.where(indicators[:, None, :] > 0, cube(indicators.shape[1]), 1.0)
    products: Floats = chosen.prod(axis=2)
    return products


def spread(values: Any, runs: int) -> Floats:
    """Return every run the same values."""
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
    """With an output bias k ReLU neurons are enough, without it k + 1 are, in the plainest way.

    As a function of m the parity has k pieces. The kinks at 1 … k − 1 and one neuron that is
    active everywhere give its shape; a line that changes its sign needs one more, or a bias. With
    kinks elsewhere fewer will do from k = 4 on: tests/test_relu_width.py.
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
    """Return every way in which a neuron can be active on the rows of x: all linear thresholds."""
    from scipy.optimize import linprog

    found = []
    for labels in itertools.product([0, 1], repeat=len(x)):
        signs = 2 * np.array(labels) - 1
        separable = linprog(
            np.zeros(x.shape[1]),
            A_ub=-signs[:, None] * x,
            b_ub=-np.ones(len(x)),
            bounds=(None, None),
        )
        if separable.status == 0:
            found.append(np.array(labels))
    return found


def symmetries(k: int) -> list[NDArray[np.int64]]:
    """Return how the rows of the cube move if bits change places and an even number is flipped.

    The parity stays as it is, and so does whether a network can represent it.
    """
    places = 2 ** np.arange(k)[::-1]
    return [
        ((1 - cube(k)[:, order] * flips) @ places // 2).astype(np.int64)
        for order in itertools.permutations(range(k))
        for flips in cube(k)
        if flips.prod() > 0
    ]


def is_representable(k: int, width: int, *, output: str) -> bool:
    """Whether sign(Σ_j ± (w_j · x + b_j)_+ + β) can be the parity of k bits, β = 0 if "linear".

    For given activation patterns and signs that is a linear program, and patterns are few.
    Flipping one input exchanges y and −y, so that at least half of the signs may be taken as +.
    Of patterns that a symmetry makes of each other one is enough.
    """
    from scipy.optimize import linprog

    x = np.column_stack([cube(k), np.ones(2**k)])
    y = cube(k).prod(axis=1)
    active = patterns(x)
    number = {pattern.tobytes(): i for i, pattern in enumerate(active)}
    images = [[number[a[rows].tobytes()] for a in active] for rows in symmetries(k)]

    def choices(count: int, needed: NDArray[np.bool_]) -> list[tuple[int, ...]]:
        """Return all patterns of so many neurons; without β some neuron is active where needed."""
        every = itertools.combinations_with_replacement(range(len(active)), count)
        if output == "affine":
            return list(every)
        return [
            chosen
            for chosen in every
            if count and np.any([active[i] for i in chosen], axis=0)[needed].all()
        ]

    for n_plus in range((width + 1) // 2, width + 1):
        for plus, minus in itertools.product(
            choices(n_plus, y > 0), choices(width - n_plus, y < 0)
        ):
            moved = (
                (sorted(image[i] for i in plus), sorted(image[i] for i in minus))
                for image in images
            )
            if any(other < ([*plus], [*minus]) for other in moved):
                continue
            chosen = [active[i] for i in (*plus, *minus)]
            signs = [1] * n_plus + [-1] * (width - n_plus)
            f = np.hstack(
                [
                    *(s * a[:, None] * x for s, a in zip(signs, chosen, strict=True)),
                    np.full((len(x), 1), float(output == "affine")),
                ]
            )
            holds = np.zeros((width, len(x), f.shape[1]))
            for j, a in enumerate(chosen):
                holds[j, :, j * x.shape[1] : (j + 1) * x.shape[1]] = -(2 * a - 1)[:, None] * x
            bounds = np.concatenate([-np.ones(len(x)), np.zeros(width * len(x))])
            rows = np.vstack([-y[:, None] * f, holds.reshape(-1, f.shape[1])])
            program = linprog(np.zeros(f.shape[1]), A_ub=rows, b_ub=bounds, bounds=(None, None))
            if program.status == 0:
                return True
    return False


@pytest.mark.parametrize("k", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
def test_up_to_three_bits_k_relu_neurons_without_an_output_bias_are_too_few(k: int) -> None:
    """The paper's r ≥ k [HP App. B.4.1] is short by one there, even for the sign, for any weights.

    For k = 2, by hand: one neuron is positive on both inputs with y = 1, the other on both with
    y = −1, and the sums of w · x + b over either two are 2b. So 2 u_1 b_1 > 2 |u_2| b_2 and the
    converse would both hold. From k = 4 on k ReLUs are enough, and from 5 on too many
    (tests/test_relu_width.py); four are the fewest for k = 3, 4 and 5, as three fail for k = 3 and
    with one bit fixed a parity of more bits is one of three.
    """
    assert not is_representable(k, k, output="linear")
    if k < 3:
        assert is_representable(k, k + 1, output="linear")


@pytest.mark.parametrize("k", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
def test_up_to_three_bits_k_relu_neurons_with_an_output_bias_are_the_fewest(k: int) -> None:
    """Of any weights, even for the sign. With one bit fixed, three are the fewest for k = 4 too."""
    assert not is_representable(k, k - 1, output="affine")
    if k < 3:
        assert is_representable(k, k, output="affine")


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
    """Width k is enough for z^k without an output bias, as the paper says.

    Among functions of Σ_S x it is the least: tests/test_relu_width.py.
    """
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
    """Return weights of a network of squares whose output is the product of its k ≤ 2^depth inputs.

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

    assert [weight[0].shape for weight in weights] == [
        p.shape for p in model.parameters(bits(k), 1)
    ]
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
    weights = Normal().draw(model.parameters(bits(5), 1), range(seed, seed + 20))
    f = outputs(model, weights, 5)

    assert ((f >= 0).all(axis=1) | (f <= 0).all(axis=1)).all()


@pytest.mark.parametrize("depth", [1, 2])
def test_deep_squares_do_not_correlate_with_higher_degrees(depth: int, seed: int) -> None:
    """E[f χ_S] and its gradient are 0 for |S| > 2^depth, and not for |S| ≤ 2^depth."""
    model = MLP(3, (3,) * (depth - 1), Power(2), "linear")
    drawn = Normal().draw(model.parameters(bits(6), 1), [seed])
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
