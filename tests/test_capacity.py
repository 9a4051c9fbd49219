"""Capacity of attention, with explicit constants [TH §4.4, App. A.1]."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from petridish.errors import UserError
from petridish.theory.variables.capacity import (
    BlockNorms,
    HeadNorms,
    best_split,
    head_cover,
    heads_cover,
    layers_cover,
    linear_cover,
    matrix_cover,
    positions_cover,
    split_cover,
)
from petridish.theory.variables.constructions import embeddings, mean_head
from petridish.theory.variables.generalisation import (
    gap_bound,
    least_sample,
    rademacher_bound,
    sufficient_sample,
)

Floats = NDArray[np.float64]
SEEDS = st.integers(0, 2**32 - 1)
ONE = HeadNorms(value=1, value_columns=1, scores=1)


def softmax(x: Floats) -> Floats:
    """Return the softmax over the last axis."""
    weights = np.exp(x - x.max(axis=-1, keepdims=True))
    found: Floats = weights / weights.sum(axis=-1, keepdims=True)
    return found


def project(x: Floats) -> Floats:
    """Project rows to the unit ball."""
    found: Floats = x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1)
    return found


def attention(z: Floats, qk: Floats, v: Floats) -> Floats:
    """RowSoftmax(Z W_QK Z^T) Z W_V."""
    return softmax(z @ qk @ z.T) @ z @ v


def rows(x: Floats) -> float:
    """Return the largest norm of a row: ‖X^T‖_{2,∞}."""
    return float(np.linalg.norm(x, axis=-1).max())


def spectral(x: Floats) -> float:
    """Return the spectral norm."""
    return float(np.linalg.norm(x, 2))


def drawn(seed: int) -> tuple[np.random.Generator, Floats, Floats, Floats, Floats, Floats]:
    """Tokens in the unit ball, W_QK and W_V, and others near them or far."""
    rng = np.random.default_rng(seed)
    t, d, far = rng.integers(2, 6), rng.integers(1, 4), 10 ** rng.uniform(-3, 1)
    z = project(2 * rng.normal(size=(t, d)))
    qk, v = rng.normal(size=(2, d, d)) * 10 ** rng.uniform(-1, 0.7)
    return rng, z, qk, qk + far * rng.normal(size=(d, d)), v, v + far * rng.normal(size=(d, d))


@settings(max_examples=200, deadline=None)
@given(SEEDS)
def test_softmax_moves_at_most_twice_as_far(seed: int) -> None:
    """Corollary A.7, by Lemma A.6: the sum of differences against the largest difference."""
    rng = np.random.default_rng(seed)
    p, scale = rng.integers(1, 8), 10 ** rng.uniform(-2, 2)
    a, b = scale * rng.normal(size=(2, p))

    assert np.abs(softmax(a) - softmax(b)).sum() <= 2 * np.abs(a - b).max() + 1e-12


@settings(max_examples=200, deadline=None)
@given(SEEDS)
def test_the_projection_contracts(seed: int) -> None:
    """Lemma A.9."""
    rng = np.random.default_rng(seed)
    u, v = rng.normal(size=(2, rng.integers(1, 5))) * 10 ** rng.uniform(-1, 1, size=(2, 1))

    assert np.linalg.norm(project(u) - project(v)) <= np.linalg.norm(u - v) + 1e-12


@settings(max_examples=200, deadline=None)
@given(SEEDS)
def test_attention_is_lipschitz_in_its_weights(seed: int) -> None:
    """Lemma A.13, and so Lemma 4.7 with the softmax and linear values."""
    _, z, qk, other_qk, v, other_v = drawn(seed)
    moved = rows(attention(z, qk, v) - attention(z, other_qk, other_v))
    bound = 2 * spectral(v) * rows(z @ (qk - other_qk)) + rows(z @ (v - other_v))

    assert moved <= bound * (1 + 1e-9) + 1e-12


@settings(max_examples=200, deadline=None)
@given(SEEDS)
def test_attention_is_lipschitz_in_its_inputs(seed: int) -> None:
    """Lemma A.14."""
    rng, z, qk, _, v, _ = drawn(seed)
    other = project(z + 10 ** rng.uniform(-3, 0.5) * rng.normal(size=z.shape))
    moved = rows(attention(z, qk, v) - attention(other, qk, v))

    assert moved <= spectral(v) * (1 + 4 * spectral(qk)) * rows(z - other) * (1 + 1e-9) + 1e-12


@settings(max_examples=200, deadline=None)
@given(SEEDS)
def test_a_layer_is_lipschitz_in_its_weights_and_inputs(seed: int) -> None:
    """Lemmas A.15 and A.16, with ReLU (L_σ = 1)."""
    rng, z, qk, other_qk, v, other_v = drawn(seed)
    d = len(qk)
    c, other_c = rng.normal(size=(2, d, d))
    w, other_w = rng.normal(size=(2, d))
    other_z = project(z + 0.3 * rng.normal(size=z.shape))

    def inside(z: Floats, qk: Floats, v: Floats) -> Floats:
        return np.maximum(project(attention(z, qk, v)), 0)

    def layer(z: Floats, qk: Floats, v: Floats, c: Floats) -> Floats:
        return project(inside(z, qk, v) @ c)

    after, other = layer(z, qk, v, c), layer(other_z, other_qk, other_v, other_c)
    bound = (
        rows(inside(other_z, other_qk, other_v) @ (c - other_c))
        + spectral(c) * spectral(v) * (1 + 4 * spectral(qk)) * rows(z - other_z)
        + 2 * spectral(c) * spectral(v) * rows(other_z @ (qk - other_qk))
        + spectral(c) * rows(other_z @ (v - other_v))
    )
    scalar = abs(after[0] @ w - other[0] @ other_w)
    bound_of_scalar = np.linalg.norm(w) * np.linalg.norm(after[0] - other[0])

    assert rows(after - other) <= bound * (1 + 1e-9) + 1e-12
    assert scalar <= bound_of_scalar + abs((w - other_w) @ other[0]) + 1e-12


@settings(max_examples=100, deadline=None)
@given(SEEDS)
def test_the_best_split_is_best(seed: int) -> None:
    """Lemma A.8: it keeps the constraint, has the least sum printed, and no other is lower."""
    rng = np.random.default_rng(seed)
    alpha, beta = rng.uniform(0.01, 5, size=(2, rng.integers(1, 5)))
    total = rng.uniform(0.1, 3)
    x, least = best_split(alpha, beta, total)
    others = rng.exponential(size=(50, len(x)))
    others *= total / (others @ beta)[:, None]

    assert x @ beta == pytest.approx(total)
    assert (alpha / x**2).sum() == pytest.approx(least)
    assert ((alpha / others**2).sum(axis=1) >= least * (1 - 1e-9)).all()


def test_splits_of_nothing_are_refused() -> None:
    """All weights 0, in one sentence."""
    with pytest.raises(UserError) as refused:
        best_split([0.0], [1.0])

    assert str(refused.value) == (
        "best_split: alphas=[0.0], betas=[1.0]. Give alphas of at least 0, not all of them 0, and "
        "positive betas."
    )


def test_zhangs_bound_by_hand() -> None:
    """36 · 4 · log(2 · ⌈10⌉ · 5 + 1) at ε = 1, B₁B₂ = 2, N = 5; one function covers at ε = B₁B₂."""
    assert linear_cover(1, 2, 1, 5) == pytest.approx(36 * 4 * math.log(101))
    assert linear_cover(1, 2, 2, 5) == 0
    with pytest.raises(UserError, match=r"linear_cover: epsilon=0. Give a positive number."):
        linear_cover(1, 1, 0, 5)


def test_zhangs_bound_is_above_packings() -> None:
    """Functions that differ by more than 2ε on some point cannot share a cover's element.

    On the N unit vectors of R^N, of the weights ±1/√k at k places all sign patterns differ by
    2/√k: 2^k functions, at any ε below 1/√k.
    """
    for k in range(1, 12):
        assert linear_cover(1, 1, 0.99 / math.sqrt(k), k) > k * math.log(2)


def test_matrices_are_at_least_as_rich_as_their_rows() -> None:
    """One row's class lies in the matrices', and more rows, points or a smaller ε only add."""
    for epsilon in (0.01, 0.1, 0.5):
        assert matrix_cover(1, 1, epsilon, 8, 100) > linear_cover(1, 1, epsilon, 100)
        assert matrix_cover(1, 1, epsilon, 16, 100) > matrix_cover(1, 1, epsilon, 8, 100)
        assert matrix_cover(1, 1, epsilon, 8, 200) > matrix_cover(1, 1, epsilon, 8, 100)
    assert matrix_cover(1, 1, 0.1, 8, 100) > matrix_cover(1, 1, 0.2, 8, 100)


def test_a_split_cover_is_no_worse_than_an_even_one() -> None:
    """And where the parts cost nothing at an even split, it costs nothing."""

    def dear(radius: float) -> float:
        return 100 / radius**2

    def cheap(radius: float) -> float:
        return 1 / radius**2

    even = dear(0.5) + cheap(0.5)
    least = best_split([100.0, 1.0], [1.0, 1.0])[1]

    assert split_cover([(1, dear), (1, cheap)], 1) == pytest.approx(least)
    assert least < even
    assert split_cover([(1, lambda _: 0.0), (1, lambda _: 0.0)], 1) == 0


def test_a_head_grows_like_the_logarithm_of_t() -> None:
    """A hundredfold T adds the same each time, and far less than the first term."""
    sizes = [head_cover(ONE, 0.1, 1000, length) for length in (10, 1000, 100_000)]
    steps = np.diff(sizes)

    assert steps[1] == pytest.approx(steps[0], rel=0.05)
    assert steps[0] < sizes[0]


def test_a_head_s_order_in_epsilon_and_norms() -> None:
    """1/ε² up to logarithms; where scores decide, B_X (tokens) · (B_X · B_X) (scores), squared."""
    sharp = HeadNorms(value=1, value_columns=1e-3, scores=100)
    wide = HeadNorms(value=1, value_columns=1e-3, scores=100, inputs=2)

    assert head_cover(ONE, 0.05, 100, 10) / head_cover(ONE, 0.1, 100, 10) == pytest.approx(
        4, rel=0.1
    )
    assert head_cover(wide, 1e-3, 100, 10) / head_cover(sharp, 1e-3, 100, 10) == pytest.approx(
        2**6, rel=0.1
    )


def test_heads_are_cubed() -> None:
    """Lemma A.12 for equal heads: H³, up to logarithms."""
    ratio = heads_cover([ONE] * 4, 0.01, 100, 10) / heads_cover([ONE], 0.01, 100, 10)

    assert ratio == pytest.approx(4**3, rel=0.2)
    assert heads_cover([ONE], 0.01, 100, 10) == pytest.approx(head_cover(ONE, 0.01, 100, 10))


def test_trained_positions_cost_a_share_of_t() -> None:
    """Linear in T, where fixed ones leave a head its logarithm; by hand at T = d = 1."""
    assert positions_cover(1, 1, 1.0, 0.5) == pytest.approx(math.log(5))
    assert positions_cover(300, 8, 1.0, 0.1) == pytest.approx(3 * positions_cover(100, 8, 1.0, 0.1))
    fixed = [head_cover(ONE, 0.1, 100, length) for length in (100, 300)]
    assert fixed[1] < 1.2 * fixed[0]


def test_skips_cost_a_constant_factor() -> None:
    """With B_V of 1 a skip at most doubles a layer's factor, and its square counts."""
    block = BlockNorms(
        scores=0.0,
        value=1.0,
        output=1.0,
        scores_columns=1.0,
        value_columns=1.0,
        output_columns=1.0,
    )
    plain, skipping = (
        layers_cover([block] * 2, 0.01, 100, 10, d=8, k=8, skips=skips)
        for skips in ("none", "attention")
    )

    assert plain < skipping < 4.4 * plain
    with pytest.raises(UserError) as refused:
        layers_cover([block], 0.1, 100, 10, d=8, k=8, skips="all")  # type: ignore[arg-type]
    assert str(refused.value).startswith("layers_cover: skips='all'")


def test_layers_multiply_what_comes_before() -> None:
    """A later layer's factor L B_C B_V (1 + 4 B_QK) multiplies an earlier one's part, not its own.

    The text prints α_i with the layers before i; its own recursion has those after i.
    """
    plain = dict(scores_columns=1.0, value_columns=1.0, output_columns=1.0, output=1.0, value=1.0)
    flat, steep = BlockNorms(scores=0.0, **plain), BlockNorms(scores=2.0, **plain)

    def cover(*blocks: BlockNorms) -> float:
        return layers_cover(blocks, 0.01, 100, 10, d=8, k=8)

    assert cover(flat, steep) > 3 * cover(steep, flat)  # what is before the steep layer counts 9²
    assert cover(steep, flat) == pytest.approx(cover(flat, flat))
    many = [layers_cover([flat], 0.1, 100, 10, d=d, k=d) for d in (8, 64, 512)]
    assert 0 < many[2] - many[1] < 1.1 * (many[1] - many[0])  # at most logarithmic in d


def test_rademacher_s_bound_against_enumeration() -> None:
    """All sign patterns of functions ±ε on a few points: the exact average is below the bound."""
    m = 4
    functions = np.array(list(itertools.product((-1.0, 1.0), repeat=m)))
    signs = functions
    exact = (signs @ functions.T).max(axis=1).mean() / m  # of all functions: 1
    bound = rademacher_bound(lambda radius: len(functions) if radius < 1 else 0.0, m, largest=1)

    assert exact == 1 <= bound <= 1  # never above the largest value


def test_rademacher_s_bound_of_an_integral_by_hand() -> None:
    """Log N = C/ε²: 4δ + 12 √(C/m) log(A/δ) is least at δ = 3 √(C/m)."""
    c, m = 1.0, 1e8
    root = math.sqrt(c / m)
    wanted = 12 * root + 12 * root * math.log(1 / (3 * root))

    assert rademacher_bound(lambda r: c / r**2, m, largest=1) == pytest.approx(wanted, rel=0.1)
    assert rademacher_bound(lambda r: c / r**2, m, largest=1) >= wanted


def test_the_sample_that_a_bound_asks_for() -> None:
    """Its gap is at most the one asked, and 2 % fewer examples have a larger one."""

    def cover(radius: float, m: float) -> float:
        return head_cover(ONE, radius, m, 100)

    m = sufficient_sample(cover, gap=0.5)

    assert gap_bound(lambda r: cover(r, m), m) <= 0.5
    assert gap_bound(lambda r: cover(r, m / 1.02), m / 1.02) > 0.5
    assert math.isinf(sufficient_sample(lambda _r, m: m, gap=0.5))


def test_supports_in_bits() -> None:
    """log₂ C(300, 3) is 22 bits: the least number of labels."""
    assert least_sample(300, 3) == pytest.approx(math.log2(300 * 299 * 298 / 6))
    with pytest.raises(UserError, match=r"least_sample: sparsity=4 of n=3 bits. Give at most n."):
        least_sample(3, 4)


def test_the_bound_is_vacuous_by_eleven_decades() -> None:
    """The head of Lemma A.19 at T = 300, with its own norms: the bound asks for 10^13 samples.

    VC-1's text names about 70. Even a Lipschitz constant of 1 and a gap of ½ are granted here.
    """
    made = embeddings(300, 303)
    head = mean_head(made, (0, 1, 2))
    scores, values = head.query @ head.key.T, head.value @ head.output
    norms = HeadNorms(
        value=spectral(values),
        value_columns=float(np.linalg.norm(values, axis=0).sum()),
        scores=float(np.linalg.norm(scores.T, axis=0).sum()),
        inputs=math.sqrt(2),
        d=303,
    )
    m = sufficient_sample(lambda radius, m: head_cover(norms, radius, m, 300), gap=0.5)

    assert 12.9 < math.log10(m) < 13.3
    assert least_sample(300, 3) < 70 < m / 10**11
