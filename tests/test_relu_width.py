"""How many ReLUs, or powers, a parity takes as a function of the sum of its bits."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from petridish.errors import UserError
from petridish.theory.hidden.relu_width import Output, best_margin, least_width, parity_relus
from tests.test_theory_majority import cube

LINEAR = {1: 2, 2: 3, 3: 4, 4: 4, 5: 4, 6: 5, 7: 6, 8: 7}
AFFINE = {1: 1, 2: 2, 3: 3, 4: 3, 5: 4, 6: 5, 7: 6, 8: 7}


@pytest.mark.parametrize("k", range(1, 13))
def test_the_network_is_the_parity(k: int) -> None:
    """On all inputs, in whole numbers; with k + 1 neurons up to k = 3, 4 at 4, k − 1 from 5 on."""
    w, b, u = parity_relus(k)
    x = cube(k).astype(np.int64)
    f = np.maximum(x.sum(axis=1)[:, None] * w + b, 0) @ u

    assert np.array_equal(f, x.prod(axis=1))
    assert len(u) == LINEAR.get(k, k - 1)


def test_four_relus_are_a_parity_of_four_bits_and_of_five() -> None:
    """By hand, at every sum, without an output bias."""

    def relu(z: int) -> int:
        return max(z, 0)

    for s, y in ((4, 1), (2, -1), (0, 1), (-2, -1), (-4, 1)):
        assert relu(4 - 2 * s) - relu(2 * s) - relu(7 - s) + relu(2 * s + 4) == y
    for s, y in ((5, 1), (3, -1), (1, 1), (-1, -1), (-3, 1), (-5, -1)):
        assert relu(3 * s + 2) - relu(2 - 3 * s) - relu(2 * s + 6) + relu(6 - 2 * s) == y


@pytest.mark.parametrize("k", range(1, 9))
@pytest.mark.parametrize(("output", "expected"), [("linear", LINEAR), ("affine", AFFINE)])
def test_the_fewest_relus(k: int, output: Output, expected: dict[int, int]) -> None:
    """One neuron fewer has not even the sign; as many are a multiple of the parity itself."""
    width = expected[k]

    assert best_margin(k, width - 1, fit="sign", output=output) == 0
    assert best_margin(k, width, fit="exact", output=output) > 0.02


@pytest.mark.parametrize("k", range(2, 8))
def test_fewer_than_k_minus_one_bends_never_do(k: int) -> None:
    """The bound of the slopes: k − 2 ReLUs fail even for the sign and with an output bias."""
    assert best_margin(k, k - 2, fit="sign", output="affine") == 0


def test_margins_by_hand() -> None:
    """One bit is s = relu(s) − relu(−s); of two the parity is |s| − 1, with |s| up to 2."""
    assert best_margin(1, 2, fit="sign") == pytest.approx(1)
    assert best_margin(2, 3, fit="exact") == pytest.approx(1 / 2)
    assert best_margin(5, 4, fit="exact") == pytest.approx(1 / 17)
    assert [least_width(k, fit="exact") for k in (1, 2, 3, 4, 5)] == [2, 3, 4, 4, 4]


@given(
    st.lists(st.tuples(*[st.integers(-9, 9)] * 3), min_size=1, max_size=5),
    st.integers(1, 7),
)
def test_a_sum_of_r_powers_changes_its_sign_at_most_r_times(
    neurons: list[tuple[int, int, int]], power: int
) -> None:
    """Σ_j u_j (w_j s + b_j)^k with r neurons, in whole numbers; a parity changes it k times."""
    values = [
        sum(u * (w * s + 16 * b) ** power for u, w, b in neurons)
        for s in range(-400, 401)  # s/16, times 16^power
    ]
    signs = [value > 0 for value in values if value]
    changes = sum(before != after for before, after in itertools.pairwise(signs))

    assert changes <= len(neurons)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: parity_relus(0), "parity_relus: k=0. Give a whole number of at least 1."),
        (
            lambda: best_margin(3, 3, fit="signs"),  # type: ignore[arg-type] # the mistake
            "best_margin: fit='signs', output='linear'. Give 'exact' or 'sign', and 'linear' or "
            "'affine'.",
        ),
    ],
)
def test_mistakes(call: object, message: str) -> None:
    """One sentence each."""
    with pytest.raises(UserError) as caught:
        call()  # type: ignore[operator] # a function of nothing
    assert str(caught.value) == message
