"""Heads and read-outs that hold sparse functions [TH App. A.2], and where the print fails."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from petridish.errors import UserError
from petridish.theory.variables.adversary import worst_bag_error, worst_mean_error
from petridish.theory.variables.constructions import (
    Embeddings,
    bag_head,
    bag_of,
    bit_heads,
    chosen_positions,
    embeddings,
    influence,
    keys,
    mean_head,
    tokens_of,
)
from petridish.theory.variables.readouts import any_readout, exact_near, symmetric_readout
from petridish.theory.variables.shattering import selecting_outputs, shattered_sequences

Floats = NDArray[np.float64]
BITS = np.array(list(itertools.product((0, 1), repeat=7)))
SUPPORT = (1, 4, 5)


def random_embeddings(length: int, d: int, seed: int = 0) -> Embeddings:
    """Return random directions as positions."""
    return embeddings(length, d, np.random.default_rng(seed))


def ones(support: tuple[int, ...]) -> NDArray[np.int64]:
    """Return the number of relevant ones of each string."""
    found: NDArray[np.int64] = BITS[:, list(support)].sum(axis=1)
    return found


@pytest.mark.parametrize("support", [(3,), (0, 6), SUPPORT])
def test_the_mean_head_holds_on_all_strings(support: tuple[int, ...]) -> None:
    """On all 128 strings of 7 bits the output is within γ/4 of the mean of χ, which rises in r."""
    made, s = random_embeddings(7, 60), len(support)
    head = mean_head(made, support)
    out = head(tokens_of(made, BITS), made.cls)[:, 0]
    wanted = 2 * ones(support) / s - 1

    assert np.abs(out - wanted).max() <= (2 / s) / 4
    assert np.abs(out - wanted).max() == pytest.approx(worst_mean_error(head, made, support))


@pytest.mark.parametrize(("length", "d"), [(50, 300), (1000, 300), (1000, 600)])
def test_the_mean_head_holds_at_large_t(length: int, d: int) -> None:
    """The exact worst string of T bits is within γ/4, with random directions (Δ about 0.2)."""
    made = random_embeddings(length, d)
    head = mean_head(made, SUPPORT)

    assert worst_mean_error(head, made, SUPPORT) <= (2 / 3) / 4
    assert np.linalg.norm(head.key) < 3  # the text allows s


def test_the_mean_head_as_printed_fails() -> None:
    """With the key Σ v_i and the printed R, near-orthogonal positions are off by more than γ/4.

    Scores on I differ by up to R (s − 1) Δ, and softmax makes an uneven mixture of them.
    """
    errors = []
    for seed in range(10):
        made = random_embeddings(50, 600, seed)
        head = mean_head(made, SUPPORT, key="sum")
        errors.append(worst_mean_error(head, made, SUPPORT))

    assert np.median(errors) > 1.5 * (2 / 3) / 4


def test_with_orthogonal_positions_the_print_holds() -> None:
    """At Δ = 0 the printed key and R are within γ/4, and norms are as bounded."""
    made, length, s = embeddings(40, 43), 40, 3
    head = mean_head(made, SUPPORT, key="sum")
    gamma = 2 / s
    rate = np.log(8 * length / gamma)

    assert worst_mean_error(head, made, SUPPORT) <= gamma / 4
    assert head.norms["W_Q"] == pytest.approx(rate)
    assert head.norms["W_K"] == pytest.approx(np.sqrt(s))  # so ‖W_K‖ ≤ s cannot fail
    assert head.norms["W_V"] == pytest.approx(np.sqrt(2))


def test_the_printed_key_asks_for_a_small_coherence() -> None:
    """Δ ≥ 1/s is refused for the printed key, in one sentence."""
    made = random_embeddings(30, 10)
    with pytest.raises(UserError, match=r"asks for Δ < 1/s = 0.333, and these positions have Δ ="):
        mean_head(made, SUPPORT, key="sum")


@pytest.mark.parametrize("d", [10, 60])
def test_heads_of_single_bits(d: int) -> None:
    """S heads write χ_i, each into its own coordinate, within γ/4 = 1/2."""
    made = embeddings(7, 10) if d == 10 else random_embeddings(7, d)
    heads = bit_heads(made, SUPPORT)
    x = tokens_of(made, BITS)
    out = np.sum([head(x, made.cls) for head in heads], axis=0)

    assert np.abs(out[:, :3] - (2 * BITS[:, list(SUPPORT)] - 1)).max() <= 0.5
    assert not out[:, 3:].any()


def test_the_printed_value_of_several_heads_is_zero() -> None:
    """W_V ending in e_2 and W_C reading from e_1 multiply to 0, whatever the bits."""
    tokens = embeddings(7, 10).tokens
    value = np.outer(tokens[0] - tokens[1], np.eye(4)[1])
    output = np.outer(np.eye(4)[0], np.eye(10)[0])

    assert not (value @ output).any()


def test_trained_positions_need_no_orthogonality() -> None:
    """With one vector for all of I and 0 elsewhere, R = log(8T/γ) is enough in any d ≥ 4."""
    made = chosen_positions(random_embeddings(7, 4), SUPPORT)
    head = mean_head(made, SUPPORT, gamma=2 / 3)

    assert worst_mean_error(head, made, SUPPORT) <= (2 / 3) / 4
    assert head.norms["W_Q"] <= np.log(8 * 7 / (2 / 3))
    assert np.linalg.norm(made.positions, axis=1).sum() == pytest.approx(3)


def test_trained_positions_let_the_printed_choice_stand() -> None:
    """The least-norm key of equal positions is a third of v_1 thrice: scores of 1 on I."""
    made = chosen_positions(random_embeddings(7, 12), SUPPORT)
    key = keys(made.positions, SUPPORT).sum(axis=0)

    assert made.positions @ key == pytest.approx(np.isin(np.arange(7), SUPPORT).astype(float))


@pytest.mark.parametrize("d", [10, 60])
def test_the_bag_of_vectors_on_all_strings(d: int) -> None:
    """Coordinates are within γ/4 of (b_i − 1)/(r + 1), their sum within γ/4 of (r − s)/(r + 1)."""
    made = embeddings(7, 10) if d == 10 else random_embeddings(7, d)
    x, r = bag_of(made, BITS), ones(SUPPORT)
    out = bag_head(made, SUPPORT)(x, made.cls)[:, :3]
    total = bag_head(made, SUPPORT, output="sum")(x, made.cls)[:, 0]

    assert np.abs(out - (BITS[:, list(SUPPORT)] - 1) / (r + 1)[:, None]).max() <= 1 / 12
    assert np.abs(total - (r - 3) / (r + 1)).max() <= 1 / 12


def test_the_order_of_a_bag_does_not_matter() -> None:
    """Rows b_t v_t may be permuted: the head answers alike."""
    made = random_embeddings(7, 60)
    head, x = bag_head(made, SUPPORT), bag_of(made, BITS)
    order = np.random.default_rng(0).permutation(8)

    assert head(x[:, order], made.cls) == pytest.approx(head(x, made.cls), abs=1e-12)


@pytest.mark.parametrize(("length", "d"), [(100, 120), (500, 300)])
def test_the_bag_of_vectors_at_large_t(length: int, d: int) -> None:
    """The worst string, found exactly, is within γ/4 for every setting of the relevant bits."""
    made = embeddings(100, 120) if length == 100 else random_embeddings(length, d)
    head = bag_head(made, SUPPORT, output="sum")
    worst = worst_bag_error(head, made, SUPPORT)
    rng, found = np.random.default_rng(0), 0.0
    for bits in rng.integers(0, 2, (200, length)):
        r = bits[list(SUPPORT)].sum()
        out = float(head(bag_of(made, bits), made.cls)[0])
        found = max(found, abs(out - (r - 3) / (r + 1)))

    assert found <= worst <= 1 / 12


def test_the_worst_string_of_a_bag_is_the_worst_of_all() -> None:
    """Against all 128 strings of 7 bits."""
    made = random_embeddings(7, 20)
    head = bag_head(made, SUPPORT, output="sum")
    r = ones(SUPPORT)
    every = np.abs(head(bag_of(made, BITS), made.cls)[:, 0] - (r - 3) / (r + 1)).max()

    assert worst_bag_error(head, made, SUPPORT) == pytest.approx(every, rel=1e-9)


@pytest.mark.parametrize("symbols", [3, 4])
def test_any_function_of_several_symbols(symbols: int) -> None:
    """Two of four places with M symbols: s heads and a read-out of sM^s points, on all strings."""
    made = embeddings(4, 40, np.random.default_rng(0), symbols=symbols)
    words = np.array(list(itertools.product(range(symbols), repeat=4)))
    gamma = 2 / (symbols - 1)
    heads = bit_heads(made, (1, 3), gamma=gamma)
    out = np.sum([head(tokens_of(made, words), made.cls) for head in heads], axis=0)[:, :2]
    codes = np.array(list(itertools.product(np.linspace(-1, 1, symbols), repeat=2)))
    values = np.random.default_rng(1).integers(0, 2, symbols**2)
    readout = any_readout(codes, values, gamma)

    assert readout.first.shape[1] == 4 * 2 * symbols**2
    assert readout(out) == pytest.approx(values[words[:, 1] * symbols + words[:, 3]], abs=1e-9)


def test_any_symmetric_function_with_one_head() -> None:
    """Parity of three of seven bits, exactly, on all strings: head and read-out of A.22."""
    made = random_embeddings(7, 60)
    r = ones(SUPPORT)
    readout = symmetric_readout(2 * np.arange(4) / 3 - 1, np.arange(4) % 2, 2 / 3)
    out = mean_head(made, SUPPORT)(tokens_of(made, BITS), made.cls)[:, 0]

    assert readout(out[:, None]) == pytest.approx(r % 2, abs=1e-9)
    assert readout.norms["W_1"] <= 1 / (2 / 3 / 4) + 2


@pytest.mark.parametrize("way", ["heads", "bag"])
def test_any_sparse_function(way: str) -> None:
    """Every one of the 256 tables on three bits, by s heads or by one head on a bag of vectors."""
    made = random_embeddings(7, 60)
    codes = np.array(list(itertools.product((0, 1), repeat=3)))
    place = BITS[:, list(SUPPORT)] @ (4, 2, 1)
    if way == "heads":
        x = tokens_of(made, BITS)
        out = np.sum([head(x, made.cls) for head in bit_heads(made, SUPPORT)], axis=0)[:, :3]
        points, gamma = 2.0 * codes - 1, 2.0
    else:
        out = bag_head(made, SUPPORT)(bag_of(made, BITS), made.cls)[:, :3]
        points, gamma = (codes - 1) / (codes.sum(axis=1) + 1)[:, None], 1 / 3
    for table in range(256):
        values = (table >> np.arange(8)) & 1
        found = any_readout(points, values, gamma)(out)
        assert found == pytest.approx(values[place], abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 3),
    st.integers(1, 6),
    st.floats(0.01, 3.0),
    st.integers(0, 2**32 - 1),
)
def test_readouts_are_exact_near_their_points(d: int, n: int, delta: float, seed: int) -> None:
    """Within δ of a point in every coordinate the value is the point's; W₁ is at most B/δ + 2."""
    rng = np.random.default_rng(seed)
    cells = rng.choice(np.arange(8**d), size=n, replace=False)
    x = 4 * delta * np.stack([cells // 8**place % 8 for place in range(d)], axis=1)
    x += rng.uniform(-1, 1)  # anywhere
    f = rng.normal(size=n)
    readout = exact_near(x, f, delta)
    near = x[:, None] + delta * rng.choice([-1.0, 1.0, 0.0, 0.3], size=(n, 20, d)) * (1 - 1e-9)

    assert readout(near) == pytest.approx(np.repeat(f[:, None], 20, axis=1), abs=1e-7)
    assert readout.norms["W_1"] <= max(1, np.abs(x).max()) / delta + 2 + 1e-9
    assert readout.norms["W_2"] == max(1, d)


def test_the_printed_bump_vanishes_on_the_bump() -> None:
    """ψ(x) = ν(x) − ν(2δ − x) is 0 for 0 ≤ x ≤ 2δ, where it should be 1 (δ = 1)."""

    def ramp(x: Floats) -> Floats:
        return np.maximum(x + 1, 0) - np.maximum(x, 0)

    x = np.linspace(0, 2, 9)

    assert not (ramp(x) - ramp(2 - x)).any()
    u = x - 1
    repaired = ramp(u + 1) - ramp(u - 2)
    assert repaired == pytest.approx(np.ones(9))


def test_an_eighth_of_gamma_is_too_narrow() -> None:
    """With δ = γ/8 a read-out of what is known to γ/4 answers wrongly at most of it."""
    means, gamma = 2 * np.arange(4) / 3 - 1, 2 / 3
    known = means[:, None] + np.linspace(-1, 1, 41) * gamma / 4
    narrow = exact_near(means[:, None], np.arange(4.0), gamma / 8)
    wrong = np.abs(narrow(known[..., None]) - np.arange(4.0)[:, None]) > 1e-6

    assert wrong[1:].mean() > 0.45  # f(0) = 0 is right by chance
    wide = symmetric_readout(means, np.arange(4.0), gamma)
    assert wide(known[..., None]) == pytest.approx(np.repeat(np.arange(4.0)[:, None], 41, axis=1))


def test_points_that_are_too_near_are_refused() -> None:
    """Two points within 4δ have no read-out, in one sentence."""
    with pytest.raises(UserError) as refused:
        exact_near([[0.0], [1.0]], [0.0, 1.0], 0.3)

    assert str(refused.value) == (
        "exact_near: delta=0.3, and the nearest two points are 1 apart. Give a positive delta of "
        "at most a quarter of that."
    )


@pytest.mark.parametrize("length", [2, 4, 16, 64, 256])
def test_heads_shatter_the_sequences(length: int) -> None:
    """The T heads sort log₂ T sequences in all 2^(log₂ T) ways at the threshold ½."""
    x = shattered_sequences(length)
    sides = {tuple(selecting_outputs(x, place) > 0.5) for place in range(length)}

    assert len(sides) == length == 2 ** len(x)


def test_influence_by_hand_and_by_a_head() -> None:
    """One relevant bit of a head with scores R on I and 0 elsewhere moves it by 2 e^R / Σ."""
    assert influence(4, 4, 0.0) == 0.5
    made = embeddings(30, 33)
    head = mean_head(made, SUPPORT)
    rate = head.norms["W_Q"]
    on, off = np.zeros(30, int), np.zeros(30, int)
    on[1] = 1
    moved = (head(tokens_of(made, on), made.cls) - head(tokens_of(made, off), made.cls))[0]

    assert moved == pytest.approx(influence(30, 3, rate))


def test_influence_at_constant_norms_and_with_log_t() -> None:
    """At constant R a tenfold T leaves a tenth; R = log T leaves it within a factor of 2."""
    assert influence(10_000, 3, 2.0) / influence(100_000, 3, 2.0) == pytest.approx(10, rel=0.01)
    lengths = [10, 100, 1000, 10_000]
    kept = [influence(length, 3, np.log(length)) for length in lengths]
    assert max(kept) < 2 * min(kept)


def test_supports_are_checked() -> None:
    """A support outside the positions is refused, in one sentence."""
    with pytest.raises(UserError) as refused:
        mean_head(embeddings(5, 8), (1, 7))

    assert str(refused.value) == (
        "support=(1, 7) of 5 positions. Give different positions from 0 to 4."
    )
