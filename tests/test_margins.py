"""Maximum margins: closed forms, the linear programme, and networks that attain them."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from petridish.errors import UserError
from petridish.groups import cyclic, find_group, real_irreps
from petridish.groups.partitions import symmetric_characters
from petridish.theory.features.margin_networks import (
    Neurons,
    all_bits,
    all_pairs,
    group_network,
    margins,
    memorising_network,
    modular_network,
    parity_network,
)
from petridish.theory.features.margins import (
    condition,
    group_margin,
    modular_margin,
    parity_margin,
    regularised_margin,
    symmetric_condition,
    theorem_applies,
    theorem_margin,
)

Floats = NDArray[np.float64]
GROUPS = (
    *("Z2", "Z3", "Z4", "Z6", "Z7", "S3", "S4", "D4", "D5", "D6", "Q8", "A4", "A5"),
    *("Z2xZ2", "Z2xS3", "Q8xZ3", "Z3xZ3"),
)
APPLIES = {"Z2", "S3", "S4", "D4", "D5", "D6", "Z2xZ2", "Z2xS3"}


@pytest.mark.parametrize("p", [3, 5, 7, 13, 23, 31])
def test_the_network_for_addition_attains_its_margin(p: int) -> None:
    """Theorem 7.7: width 4(p - 1), every pair and every wrong answer on the margin."""
    network = modular_network(p)
    found = margins(network, *all_pairs(cyclic(p)))

    assert network.width == 4 * (p - 1)
    np.testing.assert_allclose(found, modular_margin(p), rtol=1e-9)
    lean = modular_network(p, neurons=6)
    assert lean.width == 3 * (p - 1)
    np.testing.assert_allclose(margins(lean, *all_pairs(cyclic(p))), modular_margin(p), rtol=1e-9)
    assert group_margin(cyclic(p)).margin == pytest.approx(modular_margin(p), rel=1e-9)


def test_margins_by_hand() -> None:
    """Z3: √(2/27) / (2√3); the parity of one bit: 1! √(2/4)."""
    assert modular_margin(3) == pytest.approx(0.0785674, abs=1e-7)
    assert parity_margin(1) == pytest.approx(np.sqrt(0.5))
    assert parity_margin(4) == pytest.approx(24 * np.sqrt(2 / 3125))


def test_the_network_for_addition_has_the_phases_of_the_theorem() -> None:
    """θ_u + θ_v = θ_w for every neuron, read off its Fourier coefficients."""
    p = 11
    network = modular_network(p)
    for weights, w in zip(network.inputs, network.outputs, strict=True):
        spectra = np.fft.rfft([weights[:p], weights[p:], w], axis=1)
        frequency = int(np.abs(spectra[0]).argmax())
        power = np.abs(spectra) ** 2
        phases = np.angle(spectra[:, frequency])

        assert np.allclose(power[:, frequency], power.sum(axis=1))
        assert np.cos(phases[0] + phases[1] - phases[2]) == pytest.approx(1)


@pytest.mark.parametrize("name", GROUPS)
def test_networks_for_groups_attain_their_margins(name: str) -> None:
    """On every pair; it is Theorem 7.9's where that applies, and all wrong answers on it."""
    group = find_group(name)
    certificate = group_margin(group)
    network = group_network(group)
    x, y = all_pairs(group)
    found = margins(network, x, y)

    assert found.min() == pytest.approx(certificate.margin, rel=1e-9)
    assert certificate.shares.sum() == pytest.approx(1)
    assert certificate.weights.sum() == pytest.approx(1)
    assert theorem_applies(group) == (name in APPLIES)
    if name in APPLIES:
        assert certificate.margin == pytest.approx(theorem_margin(group), rel=1e-9)
        np.testing.assert_allclose(found, certificate.margin, rtol=1e-9)
        sizes = np.array([irrep.dimension for irrep in real_irreps(group)], float)
        expected = sizes[1:] ** 2.5 / (sizes[1:] ** 2.5).sum()
        np.testing.assert_allclose(certificate.shares[1:], expected)


@pytest.mark.parametrize("p", [3, 5, 11])
def test_wrong_answers_have_minus_a_half(p: int) -> None:
    """Σ_ζ cos ζ(a + b − c), the sum of §D.6.2, is (p − 1)/2 if c = a + b and else −½, not 0."""
    x, y = all_pairs(cyclic(p))
    logits = modular_network(p).logits(x) / 4  # a pair of neurons makes 4 times its product
    right = np.take_along_axis(logits, y[:, None], axis=1)[:, 0]
    wrong = np.ones(logits.shape, bool)
    np.put_along_axis(wrong, y[:, None], values=False, axis=1)

    np.testing.assert_allclose(right, (p - 1) / 2, atol=1e-9)
    np.testing.assert_allclose(logits[wrong], -0.5, atol=1e-9)


@pytest.mark.parametrize("n", [3, 4, 5])
def test_the_condition_holds_up_to_s5(n: int) -> None:
    """As stated [TH §7.6.2], by elements and by partitions."""
    group = find_group(f"S{n}")

    assert theorem_applies(group)
    assert sorted(condition(group)) == pytest.approx(sorted(symmetric_condition(n)))
    assert (symmetric_condition(n) < 0).all()


def test_the_condition_fails_from_s6_on() -> None:
    """For S6 in two classes, (1 2)(3 4) and (1 2 3)(4 5 6) … by partitions; S7 and S8 too."""
    table = symmetric_characters(6)
    found = symmetric_condition(6)
    positive = {table.partitions[place] for place in np.flatnonzero(found > 0)}

    assert len(positive) == 2
    assert sorted(found[found > 0]) == pytest.approx([10.25, 11.0], abs=0.1)
    for n in (7, 8):
        assert symmetric_condition(n).max() > 0


def test_the_network_for_s5_attains_its_margin() -> None:
    """On the pairs with the first and the last element, 240 of 14 400: the others are alike."""
    group = find_group("S5")
    x, y = all_pairs(group)
    some = np.isin(np.arange(len(x)) // 120, (0, 119))
    network = group_network(group)

    assert network.width == 2 * (1 + 2 * 4**3 + 2 * 5**3 + 6**3)
    np.testing.assert_allclose(margins(network, x[some], y[some]), theorem_margin(group), rtol=1e-9)
    assert group_margin(group).margin == pytest.approx(theorem_margin(group), rel=1e-9)


def test_a_group_that_fails_the_condition_leaves_a_representation_out() -> None:
    """A5: the class of (1 2)(3 4) has a positive sum [TH §D.9.2].

    The 5d representation has no neurons, answers wrong by that class are off the margin, and the
    margin is larger than Theorem 7.9's formula.
    """
    group = find_group("A5")
    certificate = group_margin(group)
    positive = np.flatnonzero(condition(group) > 0) + 1

    assert [group.elements[group.classes[place][0]] for place in positive] == ["(2 3)(4 5)"]
    assert certificate.shares[-1] == pytest.approx(0, abs=1e-12)
    assert certificate.weights[positive] == pytest.approx(0, abs=1e-12)
    assert certificate.margin / theorem_margin(group) == pytest.approx(1.034221, abs=1e-6)


def test_remembering_every_pair_has_a_smaller_margin() -> None:
    """The one-hot network is right everywhere, dense in frequencies, and far from γ*."""
    p = 7
    network = memorising_network(cyclic(p).table)
    x, y = all_pairs(cyclic(p))
    logits = network.logits(x)
    power = np.abs(np.fft.fft(network.inputs[:, :p], axis=1)) ** 2

    assert network.width == 2 * p**2
    anything = np.random.default_rng(0).integers(0, p, (p, p))  # no group: any function of two
    np.testing.assert_allclose(
        memorising_network(anything).logits(x), np.eye(p)[anything.ravel()], atol=1e-12
    )
    np.testing.assert_allclose(logits, np.eye(p)[y], atol=1e-12)
    assert np.allclose(power, 1)
    # Each of 2p² neurons has the squared norm 2 + 1/16, and every margin is 1.
    assert margins(network, x, y).min() == pytest.approx(1 / (2 * p**2 * (2 + 1 / 16) ** 1.5))
    assert margins(network, x, y).min() / modular_margin(p) == pytest.approx(0.20093, abs=1e-5)


@pytest.mark.parametrize(("n", "k"), [(1, 1), (3, 1), (4, 2), (6, 3), (10, 4), (6, 5), (6, 6)])
def test_the_network_for_parity_attains_its_margin(n: int, k: int) -> None:
    """Theorem 7.8: width 2^(k-1), every input on the margin, |u_j| = ‖w‖ on the support."""
    network = parity_network(n, k)

    assert network.width == 2 ** (k - 1)
    np.testing.assert_allclose(margins(network, *all_bits(n, k)), parity_margin(k), rtol=1e-9)
    sizes = np.linalg.norm(network.outputs, axis=1)
    assert np.allclose(np.abs(network.inputs[:, :k]), sizes[:, None])
    assert not network.inputs[:, k:].any()
    assert (network.inputs[:, :k].prod(axis=1) * (network.outputs @ [1, -1]) > 0).all()


def test_margins_are_those_of_the_definition() -> None:
    """By hand, for random weights: right minus each wrong answer, over Σ‖ω‖^(k+1)."""
    rng = np.random.default_rng(3)
    network = Neurons(rng.normal(size=(5, 3)), rng.normal(size=(5, 4)), power=3)
    x, y = rng.normal(size=(6, 3)), rng.integers(0, 4, 6)
    neurons = list(zip(network.inputs, network.outputs, strict=True))
    norm = sum(np.linalg.norm([*u, *w]) ** 4 for u, w in neurons)
    for example, wrong in product(range(6), range(3)):
        logits = sum(w * (u @ x[example]) ** 3 for u, w in neurons)
        others = [c for c in range(4) if c != y[example]]
        expected = (logits[y[example]] - logits[others[wrong]]) / norm
        assert margins(network, x, y)[example, wrong] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (
            lambda: modular_margin(8),
            "modular_margin: p=8 is even. Give an odd one, or ask group_margin.",
        ),
        (
            lambda: modular_network(8),
            "modular_network: p=8 is even. Give an odd one, or ask group_network.",
        ),
        (lambda: modular_margin(2), "modular_margin: p=2. Give a whole number of at least 3."),
        (lambda: parity_margin(0), "parity_margin: k=0. Give a whole number of at least 1."),
        (
            lambda: parity_network(3, 4),
            "parity_network: n=3 is less than k=4. Give at least k bits.",
        ),
        (
            lambda: group_margin(find_group("Z1")),
            "Z1 has one element, so that no answer is wrong. Give a larger group.",
        ),
    ],
)  # fmt: skip
def test_mistakes(ask: object, sentence: str) -> None:
    """One sentence each."""
    with pytest.raises(UserError) as error:
        ask()  # type: ignore[operator] # a function of nothing
    assert str(error.value) == sentence


@pytest.mark.parametrize(
    ("name", "strength"), [("S3", 1e-7), ("S4", 1e-7), ("S5", 1e-5), ("Q8", 1e-3), ("Z7", 1e-4)]
)
def test_the_regularised_optimum_is_one(name: str, strength: float) -> None:
    """A network of its shares and norm has its loss, and no change of shares or norm has less."""
    group = find_group(name)
    found = regularised_margin(group, strength)
    pairs, answers = all_pairs(group)
    pairs, answers = pairs[: group.order], answers[: group.order]  # of one a: all are alike

    def cost(parts: Floats) -> float:
        logits = group_network(group, parts).logits(pairs)
        right = np.take_along_axis(logits, answers[:, None], axis=1)[:, 0]
        peak = logits.max(axis=1)
        losses = peak + np.log(np.exp(logits - peak[:, None]).sum(axis=1)) - right
        return float(losses.mean() + strength * parts.sum())

    best = found.shares * found.norm
    least = cost(best)
    assert least == pytest.approx(found.loss + strength * found.norm, rel=1e-6)
    for place in range(1, len(best)):
        for step in (0.02, -0.02):
            other = best.copy()
            other[place] = max(0.0, other[place] + step * found.norm)
            assert cost(other) >= least * (1 - 1e-9)
    made = margins(group_network(group, best), pairs, answers).min()
    assert made == pytest.approx(found.margin, rel=1e-6)


def test_a_vanishing_regulariser_leads_to_the_maximum() -> None:
    """Theorem 7.1: γ_λ rises to γ* as λ falls; modulo a prime it is γ* at once."""
    group = find_group("S4")
    best = group_margin(group).margin
    ratios = [regularised_margin(group, strength).margin / best for strength in (1e-4, 1e-7, 1e-12)]

    assert ratios == sorted(ratios)
    assert ratios[-1] < 1
    # From the conditions of a minimum, solved apart.
    assert regularised_margin(group, 1e-18).margin / best == pytest.approx(0.98186, abs=1e-5)
    prime = find_group("Z7")
    assert regularised_margin(prime, 1e-3).margin == pytest.approx(group_margin(prime).margin)


@pytest.mark.parametrize(
    ("name", "strength", "r"),
    [("S4", 1e-7, 1.0), ("S4", 1e-7, 4.0), ("S5", 1e-5, 1.0), ("S5", 1e-5, 2.0)],
)
def test_another_exponent_is_another_strength(name: str, strength: float, r: float) -> None:
    """At the minimum of λ N^(r/3), N = ‖θ‖³, every part of N costs (r/3) λ N^(r/3 − 1)."""
    group = find_group(name)
    found = regularised_margin(group, strength, r)
    alike = regularised_margin(group, strength * r / 3 * found.norm ** (r / 3 - 1))

    assert found.norm == pytest.approx(alike.norm, rel=1e-4)
    assert found.shares == pytest.approx(alike.shares, abs=1e-4)


def test_the_exponent_decides_what_s5_is_made_of() -> None:
    """At the paper's λ = 10^-5 dimension 6 has nothing for r = 3 and 2, and 0.069 for r = 1."""
    group = find_group("S5")
    best = group_margin(group).margin
    found = {r: regularised_margin(group, 1e-5, r) for r in (3.0, 2.0, 1.0)}

    assert [round(found[r].margin / best, 3) for r in found] == [0.932, 0.955, 0.966]
    assert [round(found[r].shares[-1], 3) for r in found] == [0, 0, 0.069]
    with pytest.raises(UserError) as error:
        regularised_margin(group, 1e-5, 0.0)
    assert str(error.value) == ("regularised_margin: exponent=0.0. Give a finite number above 0.")


def test_a_strong_regulariser_leaves_nothing() -> None:
    """With λ = 1 the best network for S3 is none; a λ of 0 has no minimum, and is refused."""
    found = regularised_margin(find_group("S3"), 1.0)

    assert (found.norm, found.margin) == (0, 0)
    assert found.loss == pytest.approx(math.log(6))
    with pytest.raises(UserError) as error:
        regularised_margin(find_group("S3"), 0.0)
    assert str(error.value) == (
        "regularised_margin: strength=0.0. Give a finite number above 0; without a regulariser the "
        "limit is group_margin."
    )


# Six neurons a frequency


def powers(phases: Floats, p: int, q: int) -> NDArray[np.complex128]:
    """Return α^p β^q of every neuron, α = e^{i(θ_u + θ_v)}, β = e^{i(θ_u − θ_v)}; phases (2, N)."""
    u, v = phases
    found: NDArray[np.complex128] = np.exp(1j * (p * (u + v) + q * (u - v)))
    return found


def largest_product(phases: Floats, sizes: Floats) -> float:
    """Return the largest unwanted |Σ λ³ α^p β^q|, as a share of the wanted Σ λ³."""
    unwanted = [(p, q) for p in (0, 1, 2) for q in (-1, 0, 1) if (p, q) > (0, 0)]
    share = sizes**3 / (sizes**3).sum()
    return float(max(abs((share * powers(phases, p, q)).sum()) for p, q in unwanted))


@pytest.mark.parametrize("p", [3, 5, 7, 9, 15])
def test_the_products_of_a_neuron(p: int) -> None:
    """(cos a + cos b)² cos c has, at the frequency ζ of c, nine products of α and β and no others.

    One is wanted, at the frequencies −ζ of a and b. The others are at eight other places, for every
    odd p, so that each must vanish when summed over the neurons of ζ; with their complex conjugates
    they are all α^p β^q with |p| ≤ 2, |q| ≤ 1.
    """
    places = {
        **{(0, 0): (1, 0, 2), (1, 1): (2, 0, 4), (-1, -1): (0, 0, 4)},
        **{(1, -1): (1, 1, 4), (-1, 1): (1, -1, 4)},
        **{(2, 0): (2, 1, 8), (-2, 0): (0, -1, 8), (0, 2): (2, -1, 8), (0, -2): (0, 1, 8)},
    }
    rng = np.random.default_rng(p)
    angle = 2 * np.pi * np.arange(p) / p
    for frequency in range(1, (p + 1) // 2):
        phases = rng.uniform(0, 2 * np.pi, (2, 1))
        u, v = (np.cos(phase + frequency * angle) for phase in phases)
        w = np.cos(phases.sum() + frequency * angle)
        neuron = (u[:, None, None] + v[None, :, None]) ** 2 * w
        found = np.fft.fftn(neuron)[:, :, frequency] / p**3
        expected = np.zeros((p, p), complex)
        for (a, b), (power, other, part) in places.items():
            place = (a * frequency % p, b * frequency % p)
            assert expected[place] == 0  # nine places apart
            expected[place] = powers(phases, power, other)[0] / part

        assert np.allclose(found, expected, atol=1e-12)
    signed = {(i, j) for i, j, _ in places.values()} | {(-i, -j) for i, j, _ in places.values()}
    assert signed == set(product((-2, -1, 0, 1, 2), (-1, 0, 1)))


@given(
    st.integers(1, 5).flatmap(
        lambda size: st.tuples(
            arrays(float, (2, size), elements=st.floats(0, 6.28)),
            arrays(float, size, elements=st.floats(0.1, 3)),
        )
    )
)
def test_fewer_than_six_neurons_a_frequency_leave_a_product(weights: tuple[Floats, Floats]) -> None:
    """With N ≤ 5 the largest is at least √((36/N − 6)/30) of the wanted one, a fifth for N = 5.

    The six vectors (λ^{3/2} α^p β^q), p = 0, 1, 2 and q = 0, 1, lie in N dimensions. Their Gram
    matrix, divided by Σ λ³, has the trace 6 and a rank of at most N, so that the squares of its
    entries have a sum of at least 36/N; 6 are those of the diagonal, and 30 are unwanted products.
    """
    phases, sizes = weights
    vectors = [sizes**1.5 * powers(phases, p, q) for p in (0, 1, 2) for q in (0, 1)]
    gram = np.array([[np.vdot(a, b) for b in vectors] for a in vectors]) / (sizes**3).sum()

    assert np.linalg.matrix_rank(gram, tol=1e-9) <= len(sizes)
    assert np.allclose(np.diag(gram), 1)
    assert np.abs(gram[~np.eye(6, dtype=bool)]).max() <= largest_product(phases, sizes) + 1e-12
    assert largest_product(phases, sizes) >= np.sqrt((36 / len(sizes) - 6) / 30) - 1e-9


def test_six_neurons_a_frequency_leave_none() -> None:
    """The phases of `modular_network(p, neurons=6)`: the six vectors are orthogonal."""
    phases = np.pi / 3 * np.array([np.arange(6), 4 * np.arange(6)])

    assert largest_product(phases, np.ones(6)) == pytest.approx(0, abs=1e-12)
