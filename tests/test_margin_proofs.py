"""TH Ch. 7, App. D: lemmas and identities of the proofs, and the slips of the text."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from petridish.errors import UserError
from petridish.groups import Group, cyclic, find_group, real_irreps
from petridish.groups.irreps import class_sums, on_classes
from petridish.groups.partitions import symmetric_characters
from petridish.theory.features.certificates import (
    best_neuron,
    certificate_pair,
    class_weights,
    even_weights,
    largest_mean,
    neuron_means,
    parity_neuron_mean,
)
from petridish.theory.features.margin_identities import (
    coefficients,
    fourier_bounds,
    gains_of_weights,
    largest_weighted_margins,
    lemma_weights,
    subset_solution,
    weighted_margin,
)
from petridish.theory.features.margin_networks import (
    Neurons,
    all_bits,
    all_pairs,
    group_network,
    margins,
    modular_network,
    parity_network,
)
from petridish.theory.features.margins import (
    group_margin,
    modular_margin,
    neuron_margin,
    parity_margin,
)

Floats = NDArray[np.float64]
REAL = ("S3", "S4", "D4", "D5", "Z2xS3", "A5")


def drawn_neuron(size: int, seed: int) -> tuple[Floats, Floats, Floats]:
    """Draw u, v and w of a neuron of norm 1."""
    weights = np.random.default_rng(seed).normal(size=(3, size))
    u, v, w = weights / np.linalg.norm(weights)
    return u, v, w


def as_network(neuron: tuple[Floats, Floats, Floats]) -> Neurons:
    """Return a network of one neuron."""
    u, v, w = neuron
    return Neurons(np.concatenate([u, v])[None], w[None])


def drawn_weights(group: Group, seed: int) -> Floats:
    """Draw weights of wrong answers by class, with a sum of 1."""
    weights = np.random.default_rng(seed).random(len(group.classes))
    weights[0] = 0
    found: Floats = weights / weights.sum()
    return found


# Lemmas 7.2 to 7.6


@pytest.mark.parametrize(("n", "k"), [(3, 1), (5, 2), (6, 3), (10, 4), (8, 5)])
def test_no_network_has_a_larger_margin_on_a_parity(n: int, k: int) -> None:
    """Lemmas 7.2 to 7.4: γ* is the best neuron's mean margin, and the network's least margin."""
    x, y = all_bits(n, k)
    network = parity_network(n, k)
    pair = certificate_pair(network, x, y, even_weights(y, 2))
    best = best_neuron(x, y, even_weights(y, 2), power=k)
    sizes = np.abs([*best.inputs[0, :k], np.linalg.norm(best.outputs)])

    assert pair.bound == pytest.approx(parity_margin(k), rel=1e-8)
    assert pair.least == pytest.approx(pair.bound, rel=1e-8)
    assert pair.proves()
    assert pair.spread == pytest.approx(0, abs=1e-12)  # all points on the margin
    np.testing.assert_allclose(pair.neurons, parity_margin(k), rtol=1e-9)
    # The best neuron is the theorem's: one size on S, nothing elsewhere, w along (1, −1).
    np.testing.assert_allclose(sizes, 1 / math.sqrt(k + 1), atol=1e-4)
    np.testing.assert_allclose(best.inputs[0, k:], 0, atol=1e-4)
    assert best.outputs.sum() == pytest.approx(0, abs=1e-4)


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_a_neurons_mean_on_a_parity(k: int) -> None:
    """√2 k! Π u β, by all inputs [TH §D.7]; of norm 1, at most γ* by the means' inequality."""
    n = k + 2
    x, y = all_bits(n, k)
    for seed in range(20):
        weights = np.random.default_rng(seed).normal(size=n + 2)
        weights /= np.linalg.norm(weights)
        u, w = weights[:n], weights[n:]
        (mean,) = neuron_means(Neurons(u[None], w[None], k), x, y, even_weights(y, 2))

        assert mean == pytest.approx(parity_neuron_mean(u, w, k), abs=1e-12)
        assert mean <= parity_margin(k)


def test_the_mean_is_a_sum_over_neurons() -> None:
    """Lemma 7.3: best neurons of any sizes have γ* on average, and not always as least margin."""
    x, y = all_bits(5, 3)
    good = parity_network(5, 3)
    sizes = np.array([[1.0], [0.2], [0.5], [2.0]])
    other = Neurons(good.inputs * sizes, good.outputs * sizes, 3)
    pair = certificate_pair(other, x, y, even_weights(y, 2))

    assert pair.mean == pytest.approx(parity_margin(3))
    assert pair.least < 0.9 * pair.bound
    assert not pair.proves()
    worse = Neurons(good.inputs + 0.1, good.outputs, 3)
    assert certificate_pair(worse, x, y, even_weights(y, 2)).mean < 0.999 * parity_margin(3)


@pytest.mark.parametrize("name", ["Z7", "Z6", "S3", "S4", "D5", "Q8", "A4", "A5", "Z3xZ3"])
def test_no_network_has_a_larger_margin_on_a_group(name: str) -> None:
    """Lemmas 7.5, 7.6: under the certificate's weights γ* is the best neuron's mean margin."""
    group = find_group(name)
    known = group_margin(group)
    x, y = all_pairs(group)
    pair = certificate_pair(group_network(group), x, y, class_weights(group, known.weights))

    assert pair.bound == pytest.approx(known.margin, rel=1e-6)
    assert pair.proves()
    assert pair.mean == pytest.approx(known.margin, rel=1e-9)
    np.testing.assert_allclose(pair.neurons, known.margin, rtol=1e-9)
    assert pair.spread == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(("b", "width", "best"), [(2, 9, 1.0), (3, 9, 1.0), (6, 9, 3.0)])
def test_other_norms_do_not_leave_the_sizes_free(b: float, width: int, best: float) -> None:
    """§D.5.1: the largest Σ λ³ under Σ λ^b = 1; b = 3 alone has it at every choice of sizes."""
    rng = np.random.default_rng(0)
    sizes = rng.random((2000, width))
    sizes /= (sizes**b).sum(axis=1, keepdims=True) ** (1 / b)
    found = (sizes**3).sum(axis=1)

    assert largest_mean(width, b, 3) == pytest.approx(best)
    assert found.max() <= best + 1e-9
    assert (np.ptp(found) < 1e-9) == (b == 3)


# Modular addition, §D.6


@pytest.mark.parametrize("p", [3, 5, 7, 15, 23])
def test_the_bounds_of_a_neurons_mean(p: int, seed: int) -> None:
    """(D.3) and (D.4) are the mean margin; (D.5), (D.6) and γ* lie above, each above the last."""
    neuron = drawn_neuron(p, seed)
    x, y = all_pairs(cyclic(p))
    (mean,) = neuron_means(as_network(neuron), x, y, even_weights(y, p))
    found = fourier_bounds(*neuron)

    assert found.by_products == pytest.approx(mean, abs=1e-12)
    assert found.by_phases == pytest.approx(mean, abs=1e-12)
    assert mean <= found.in_phase <= found.of_one_size <= found.of_one_frequency
    assert found.of_one_frequency == pytest.approx(modular_margin(p))
    with pytest.raises(UserError) as error:
        fourier_bounds(*drawn_neuron(4, seed))
    assert str(error.value) == ("fourier_bounds: the weights have 4 entries. Give an odd number.")


def test_the_theorems_neuron_meets_every_bound() -> None:
    """One frequency, θ_u + θ_v = θ_w and one size: all five are γ*."""
    p = 11
    network = modular_network(p)
    network = Neurons(network.inputs[:1], network.outputs[:1])
    scale = network.norms()[0]
    u, v, w = (
        network.inputs[0, :p] / scale,
        network.inputs[0, p:] / scale,
        network.outputs[0] / scale,
    )
    found = fourier_bounds(u, v, w)

    for value in vars(found).values():
        assert value == pytest.approx(modular_margin(p))


def test_a_norm_of_1_is_p_in_frequencies(seed: int) -> None:
    """‖û‖² + ‖v̂‖² + ‖ŵ‖² = p ‖ω‖², as §D.6.1 has it; with §7.4's 1, γ* would be p^1.5 too small."""
    p = 7
    neuron = drawn_neuron(p, seed)

    assert sum(float((np.abs(np.fft.fft(part)) ** 2).sum()) for part in neuron) == pytest.approx(p)
    shrunk = fourier_bounds(*(part / math.sqrt(p) for part in neuron))
    assert shrunk.of_one_frequency == pytest.approx(modular_margin(p) / p**1.5)


def test_the_pair_of_d62_needs_b() -> None:
    """(cos a ± cos b)² differ by 4 cos a cos b; as printed, (cos a ± cos a)² have no b at all."""
    a, b = np.meshgrid(*[2 * np.pi * np.arange(5) / 5] * 2, indexing="ij")

    right = (np.cos(a) + np.cos(b)) ** 2 - (np.cos(a) - np.cos(b)) ** 2
    printed = (np.cos(a) + np.cos(a)) ** 2 - (np.cos(a) - np.cos(a)) ** 2
    np.testing.assert_allclose(right, 4 * np.cos(a) * np.cos(b), atol=1e-12)
    assert not np.allclose(printed, 4 * np.cos(a) * np.cos(b))


def test_the_sum_is_where_the_cosines_are_largest() -> None:
    """A + b is the c with the largest cos 2πζ(a + b − c)/p, for every ζ; summed, by p/2 (§7.1)."""
    p = 13
    turns = np.arange(p)  # a + b − c
    waves = np.array([np.cos(2 * np.pi * zeta * turns / p) for zeta in range(1, (p + 1) // 2)])
    gaps = waves[:, :1] - waves[:, 1:]

    assert (waves.argmax(axis=1) == 0).all()
    np.testing.assert_allclose(gaps.sum(axis=0), p / 2)
    assert gaps.min(axis=1).max() < 0.12  # of one frequency alone, the next c comes near


def cube(network: Neurons, group: Group) -> Floats:
    """Return f(a, b, c), the answers of a network to every pair."""
    found: Floats = network.logits(all_pairs(group)[0]).reshape([group.order] * 3)
    return found


def test_every_frequency_is_needed() -> None:
    """§D.6.3: f̂ is λ p² where j = k = −l ≠ 0; without a frequency's neurons it is 0 there."""
    p = 7
    network = modular_network(p)
    shape = np.fft.fftn(cube(network, cyclic(p)))
    margin = margins(network, *all_pairs(cyclic(p))).min() * (network.norms() ** 3).sum()
    without = Neurons(network.inputs[8:], network.outputs[8:])  # of the frequency 1
    lacking = np.fft.fftn(cube(without, cyclic(p)))
    for j in range(1, p):
        assert shape[j, j, -j] == pytest.approx(margin * p**2)
        assert (abs(lacking[j, j, -j]) < 1e-9) == (j in (1, p - 1))
    # As printed, with j in all three exponents, it depends on one index: no such support.
    wave = np.exp(-2j * np.pi * np.add.outer(np.add.outer(*[np.arange(p)] * 2), np.arange(p)) / p)
    assert (wave * cube(network, cyclic(p))).sum() == pytest.approx(shape[1, 1, 1])


def test_every_representation_is_needed() -> None:
    """§D.9.1: products of three entries of R see R's neurons alone; without them they are 0."""
    group = find_group("S4")
    known = group_margin(group)
    whole = cube(group_network(group), group)
    for place, irrep in enumerate(real_irreps(group)):
        if place == 0:
            continue
        i, j, k = (0, min(1, irrep.dimension - 1), 0)
        entry = irrep.matrices
        seen = [entry[:, i, j], entry[:, j, k], entry[:, i, k]]
        shares = known.shares.copy()
        shares[place] = 0
        lacking = cube(group_network(group, shares), group)
        value, none = (np.einsum("abc,a,b,c", f, *seen) for f in (whole, lacking))

        assert value == pytest.approx(known.margin * group.order**2 / irrep.dimension**2)
        assert none == pytest.approx(0, abs=1e-12)


# Parities, §D.7


def test_other_monomials_cancel_in_pairs() -> None:
    """Of k signs σ_1, …, σ_k: one that is outside of a monomial, turned, turns its coefficient.

    The text turns σ_(k+1) with it, which does not exist. Where the first is turned, all others are
    instead: the network has one of σ and −σ.
    """
    k = 4
    network = parity_network(k, k)
    signs = network.inputs
    assert signs.shape == (2 ** (k - 1), k)
    x, _ = all_bits(k, k)
    each = (x @ signs.T) ** k * signs.prod(axis=1)  # what a neuron adds, up to a constant
    for size in range(k):
        for subset in combinations(range(k), size):
            of = (each * x[:, subset].prod(axis=1)[:, None]).mean(axis=0)  # a coefficient
            outside = next(place for place in range(k) if place not in subset)
            turned = signs.copy()
            turned[:, outside] *= -1
            turned *= turned[:, :1]
            partner = [int(np.flatnonzero((signs == row).all(axis=1))[0]) for row in turned]

            np.testing.assert_allclose(of[partner], -of, atol=1e-9)
            assert of.sum() == pytest.approx(0, abs=1e-9)


# Groups, §D.8 and §D.9


@pytest.mark.parametrize("name", REAL)
def test_sums_over_a_class(name: str) -> None:
    """Lemma D.10 (3), (4): 0 off the diagonal, |C| χ(C)/d on it."""
    group = find_group(name)
    for irrep in real_irreps(group):
        sums = class_sums(irrep, group.classes)
        sizes = np.array([len(members) for members in group.classes])
        expected = sizes * on_classes((irrep,), group.classes)[0] / irrep.dimension

        np.testing.assert_allclose(
            sums, expected[:, None, None] * np.eye(irrep.dimension), atol=1e-9
        )


@pytest.mark.parametrize("name", REAL)
def test_the_weighted_margin_of_a_neuron(name: str, seed: int) -> None:
    """Lemma D.11 for any τ, with the 2 that it lacks; Lemma D.12: norms from coefficients."""
    group = find_group(name)
    weights = drawn_weights(group, seed)
    neuron = drawn_neuron(group.order, seed + 1)
    x, y = all_pairs(group)
    (mean,) = neuron_means(as_network(neuron), x, y, class_weights(group, weights))
    squares = sum(
        group.order / irrep.dimension * float(np.square(coefficients(irrep, part)).sum())
        for irrep in real_irreps(group)
        for part in neuron
    )

    assert weighted_margin(group, neuron, weights) == pytest.approx(mean, abs=1e-12)
    assert squares == pytest.approx(1)


@pytest.mark.parametrize("name", ["S3", "S4", "D5"])
def test_the_best_neuron_lies_in_one_representation(name: str) -> None:
    """Lemma D.13, with the 2: the largest value, attained by a neuron of the set 𝓡 alone."""
    group = find_group(name)
    weights = drawn_weights(group, 3)
    values = largest_weighted_margins(group, weights)
    x, y = all_pairs(group)
    tau = class_weights(group, weights)
    best = best_neuron(x, y, tau, power=2)
    home = real_irreps(group)[1:][int(values.argmax())]
    inside = sum(
        group.order / home.dimension * float(np.square(coefficients(home, part)).sum())
        for part in (*np.split(best.inputs[0], 2), best.outputs[0])
    )

    assert neuron_means(best, x, y, tau)[0] == pytest.approx(values.max(), rel=1e-6)
    assert inside == pytest.approx(1, abs=1e-4)


def test_even_weights_would_choose_the_sign_alone() -> None:
    """§D.9: with wrong answers of S5 weighed alike, a neuron of the sign has 2.2 γ*."""
    group = find_group("S5")
    sizes = np.array([len(members) for members in group.classes], float)
    sizes[0] = 0
    values = largest_weighted_margins(group, sizes / sizes.sum())
    first, *others = values

    assert first / max(others) == pytest.approx(2)
    np.testing.assert_allclose(gains_of_weights(group, sizes / sizes.sum()), 120 / 119)
    assert first / group_margin(group).margin == pytest.approx(2.2268, abs=1e-4)


@pytest.mark.parametrize("name", ["S3", "S4", "S5", "D4", "D5", "Z2xS3"])
def test_the_weights_of_lemma_d14_need_a_minus(name: str) -> None:
    """Each wrong answer of the class C weighs −Σ_R z_R χ_R(C), z_R = d^1.5 / Σ d^2.5, as solved."""
    group = find_group(name)
    found = lemma_weights(group)
    irreps = real_irreps(group)[1:]
    sizes = np.array([irrep.dimension for irrep in irreps], float)
    z = sizes**1.5 / (sizes**2.5).sum()
    members = np.array([len(members) for members in group.classes])

    np.testing.assert_allclose(group_margin(group).weights, found, atol=1e-9)
    assert (found[1:] > 0).all()
    assert found[1:].sum() == pytest.approx(1)  # Σ |C| τ_C = 1, where the text has Σ τ_C
    values = largest_weighted_margins(group, found)
    np.testing.assert_allclose(values, group_margin(group).margin)  # alike, and γ*
    # The proof's vector (1, −τ_C, …): char(R)ᵀτ is |G| z_R, where the text has z_R.
    vector = np.where(np.arange(len(members)) == 0, 1.0, -found)  # of a class, all together
    np.testing.assert_allclose(on_classes(irreps, group.classes) @ vector, group.order * z)
    # And z_sign is the reciprocal of Σ d^2.5.
    assert z[0] == pytest.approx(1 / (sizes**2.5).sum())


@pytest.mark.parametrize("name", ["S4", "A5"])
def test_the_neurons_of_lemma_d15(name: str) -> None:
    """Coefficients √(d/3|G|) at (i, j), (j, k), (i, k) have norm 1 and tr(αβγᵀ) = (d/3|G|)^1.5.

    Printed are 1/√(3|G|), of norm 1/√d, and γ_(i,j), with which the trace is 0 for i, j, k apart. A
    pair of neurons makes 4 times its product.
    """
    group = find_group(name)
    irrep = real_irreps(group)[-1]
    d, order = irrep.dimension, group.order
    i, j, k = 0, 1, 2
    alpha, beta, gamma, printed = np.zeros((4, d, d))
    alpha[i, j] = beta[j, k] = gamma[i, k] = printed[i, j] = math.sqrt(d / (3 * order))
    neuron = tuple(np.einsum("gij,ij->g", irrep.matrices, part) for part in (alpha, beta, gamma))
    u, v, w = neuron
    squares = sum(float(part @ part) for part in neuron)
    pair = np.add.outer(u, v) ** 2 - np.add.outer(u, -v) ** 2

    assert np.trace(alpha @ beta @ gamma.T) == pytest.approx((d / (3 * order)) ** 1.5)
    assert np.trace(alpha @ beta @ printed.T) == 0
    assert squares == pytest.approx(1)
    short = w / math.sqrt(d)  # of the printed coefficient, 1/√(3|G|)
    assert coefficients(irrep, short)[i, k] == pytest.approx(1 / math.sqrt(3 * order))
    assert 3 * float(short @ short) == pytest.approx(1 / d)
    np.testing.assert_allclose(pair, 4 * np.outer(u, v), atol=1e-12)
    # One neuron of it has κ d on average, κ = 2 (3 d |G|)^−1.5, for its own answer.
    x, y = all_pairs(group)
    nothing = np.zeros((order**2, order))
    (own,) = neuron_means(Neurons(np.concatenate([u, v])[None], w[None]), x, y, nothing)
    assert own == pytest.approx(neuron_margin(irrep, order) * d)


def test_the_subsets_of_a5() -> None:
    """§D.9.2: without 5d and (1 2)(3 4) all three conditions hold; with all, a weight is negative.

    The outputs have Σ λ = 1, which is no norm: shares of the norm are λ d^1.5 over their sum.
    """
    group = find_group("A5")
    known = group_margin(group)
    left = int(np.flatnonzero(known.weights[1:] < 1e-9)[0]) + 1
    near = tuple(place for place in range(1, 5) if place != left)
    found = subset_solution(group, (1, 2, 3), near)
    sizes = np.array([irrep.dimension for irrep in real_irreps(group)], float)
    norms = found.outputs * sizes**1.5

    assert found.holds
    np.testing.assert_allclose(found.weights, known.weights, atol=1e-9)
    np.testing.assert_allclose(norms / norms.sum(), known.shares, atol=1e-9)
    everything = subset_solution(group, (1, 2, 3, 4), (1, 2, 3, 4))
    assert not everything.positive
    assert not subset_solution(group, (1, 2), (1, left)).holds
    with pytest.raises(UserError) as error:
        subset_solution(group, (0, 1), (1, 2))
    assert str(error.value) == (
        "subset_solution: representations=(0, 1), classes=(1, 2). Give as many of one as of the "
        "other, and neither the trivial representation nor the class of e."
    )


@pytest.mark.parametrize("name", ["S3", "S4", "S5"])
def test_subsets_may_be_everything(name: str) -> None:
    """Where Theorem 7.9 applies, the systems of §D.9.2 with all of both give its weights."""
    group = find_group(name)
    all_of = tuple(range(1, len(group.classes)))
    found = subset_solution(group, all_of, all_of)

    assert found.holds
    np.testing.assert_allclose(found.weights, lemma_weights(group), atol=1e-9)


def test_other_kinds_are_refused() -> None:
    """A4's two-dimensional representation is of complex kind."""
    with pytest.raises(UserError) as error:
        lemma_weights(find_group("A4"))
    assert str(error.value) == (
        "A4 has representations that are not of real kind: 2d. The identities of App. D are for "
        "real ones; group_margin takes any group."
    )


@pytest.mark.parametrize("n", [3, 4, 5])
def test_characters_from_partitions(n: int) -> None:
    """Those of the groups of permutations, up to the order of rows and columns; class sizes too."""
    group = find_group(f"S{n}")
    ours = symmetric_characters(n)
    theirs = on_classes(real_irreps(group), group.classes).round().astype(int)

    def columns(table: NDArray[np.int64]) -> list[list[int]]:
        return sorted(sorted(map(int, column)) for column in table.T)

    assert columns(ours.characters) == columns(theirs)
    assert sorted(ours.sizes) == sorted(len(members) for members in group.classes)
    assert ours.sizes.sum() == group.order
    product = ours.characters * ours.sizes @ ours.characters.T
    assert np.array_equal(product, group.order * np.eye(len(product), dtype=int))


def test_the_rows_of_table_d1_have_each_others_names() -> None:
    """The standard representation, (4, 1), has +2 on (1 2): the row called standard ⊗ sign."""
    table = symmetric_characters(5)
    place = {partition: number for number, partition in enumerate(table.partitions)}
    classes = [
        *((1, 1, 1, 1, 1), (2, 1, 1, 1), (2, 2, 1), (3, 1, 1), (4, 1), (5,)),
        (3, 2),
    ]
    columns = [place[cycles] for cycles in classes]
    fixed_points = np.array([5, 3, 1, 2, 1, 0, 0])
    standard, twisted = (
        table.characters[place[shape]][columns] for shape in ((4, 1), (2, 1, 1, 1))
    )

    assert standard.tolist() == (fixed_points - 1).tolist() == [4, 2, 0, 1, 0, -1, -1]
    assert twisted.tolist() == [4, -2, 0, 1, 0, -1, 1]  # the row called standard
