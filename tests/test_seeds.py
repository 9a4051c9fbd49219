"""Random streams: the published vectors, and what each kind of draw promises."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from petridish.errors import UserError
from petridish.seeds import Streams, name_key, unpack_bits

SEEDS = st.integers(0, 2**64 - 1)


def philox(counter: tuple[int, ...], key: tuple[int, int]) -> list[int]:
    """Philox4x64-10, written out in whole numbers: the oracle of these tests."""
    c, k = list(counter), list(key)
    for _ in range(10):
        left, right = 0xD2E7470EE14C6C93 * c[0], 0xCA5A826395121157 * c[2]
        c = [
            right >> 64 ^ c[1] ^ k[0],
            right & 2**64 - 1,
            left >> 64 ^ c[3] ^ k[1],
            left & 2**64 - 1,
        ]
        k = [(k[0] + 0x9E3779B97F4A7C15) % 2**64, (k[1] + 0xBB67AE8584CAA73B) % 2**64]
    return c


ONES = 2**64 - 1
PI = (0x243F6A8885A308D3, 0x13198A2E03707344, 0xA4093822299F31D0, 0x082EFA98EC4E6C89)
PUBLISHED = [  # Random123's known answers for philox4x64-10
    (
        (0, 0, 0, 0),
        (0, 0),
        (0x16554D9ECA36314C, 0xDB20FE9D672D0FDC, 0xD7E772CEE186176B, 0x7E68B68AEC7BA23B),
    ),
    (
        (ONES,) * 4,
        (ONES,) * 2,
        (0x87B092C3013FE90B, 0x438C3C67BE8D0224, 0x9CC7D7C69CD777B6, 0xA09CAEBF594F0BA0),
    ),
    (
        PI,
        (0x452821E638D01377, 0xBE5466CF34E90C6C),
        (0xA528F45403E61D95, 0x38C72DBD566E9788, 0xA5A1610E72FD18B5, 0x57BD43B5E52B7FE6),
    ),
]


@pytest.mark.parametrize(("counter", "key", "answer"), PUBLISHED)
def test_the_oracle_gives_the_published_answers(
    counter: tuple[int, ...], key: tuple[int, int], answer: tuple[int, ...]
) -> None:
    """The generator written out above is Philox4x64-10."""
    assert tuple(philox(counter, key)) == answer


def test_the_first_published_answer_comes_out_of_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream whose name has the key 0, at seed 0, starts with the published words."""
    monkeypatch.setattr("petridish.seeds.name_key", lambda name: 0)

    assert tuple(Streams([0], "any").words(0, 4)[0].tolist()) == PUBLISHED[0][2]


@given(seed=SEEDS, start=st.integers(0, 2**40), count=st.integers(0, 20), name=st.text(max_size=8))
def test_words_are_philox_of_seed_name_and_counter(
    seed: int, start: int, count: int, name: str
) -> None:
    """Word i is lane i % 4 of the block i // 4, under the key (seed, name)."""
    words = Streams([seed], name).words(start, count)[0].tolist()

    key = (seed, name_key(name))
    assert words == [philox((i // 4, 0, 0, 0), key)[i % 4] for i in range(start, start + count)]


@given(
    seeds=st.lists(SEEDS, min_size=1, max_size=5, unique=True),
    start=st.integers(0, 1000),
    count=st.integers(1, 30),
)
def test_draws_depend_on_neither_other_runs_nor_order(
    seeds: list[int], start: int, count: int
) -> None:
    """A run draws the same alone, beside others, in another order, and after other draws."""
    together = Streams(seeds, "data")
    together.integers(7, 3, 11)
    backwards = Streams(seeds[::-1], "data")
    for run, seed in enumerate(seeds):
        alone = Streams([seed], "data")
        for draw in ("words", "halves", "bits", "signs", "uniforms", "normals"):
            expected = getattr(alone, draw)(start, count)[0]
            assert np.array_equal(getattr(together, draw)(start, count)[run], expected)
            assert np.array_equal(getattr(backwards, draw)(start, count)[-1 - run], expected)


@given(start=st.integers(0, 300), count=st.integers(1, 200))
def test_a_later_draw_is_a_part_of_an_earlier_longer_one(start: int, count: int) -> None:
    """Draws are addressed by their place, whatever the call begins at."""
    stream = Streams([5], "data")
    for draw in ("words", "halves", "bits", "signs", "uniforms", "normals"):
        whole = getattr(stream, draw)(0, start + count)
        assert np.array_equal(getattr(stream, draw)(start, count), whole[:, start:])
    assert np.array_equal(
        stream.integers(1000, start, count), stream.integers(1000, 0, start + count)[:, start:]
    )


def test_bits_and_signs_agree(seed: int) -> None:
    """The bit 1 is the sign −1, and packed bits are the stream's own words."""
    stream = Streams([seed], "data")
    bits, signs = stream.bits(0, 500)[0], stream.signs(0, 500)[0]

    assert np.array_equal(signs, 1 - 2 * bits.astype(int))
    assert np.array_equal(unpack_bits(stream.packed(64, 0, 2))[0].ravel(), bits[:128])


def test_packed_vectors_are_cut_to_their_length(seed: int) -> None:
    """Bits above n are 0, and vector i does not depend on how many are drawn."""
    drawn = Streams([seed], "data").packed(70, 0, 9)

    assert drawn.shape == (1, 9, 2)
    assert (drawn[..., 1] < 2**6).all()
    assert np.array_equal(Streams([seed], "data").packed(70, 4, 2), drawn[:, 4:6])


def test_integers_are_unbiased_where_a_remainder_would_not_be() -> None:
    """Below 3·2^30 a plain multiplication is biased by a quarter; rejection takes it away.

    Each of three thirds of the range must hold a third of 30000 draws within 4.5 standard errors
    (error rate 7e-6 for the fixed seed).
    """
    drawn = Streams([1], "batches").integers(3 * 2**30, 0, 30_000)[0]

    for third in range(3):
        share = np.mean(drawn // 2**30 == third)
        assert abs(share - 1 / 3) < 4.5 * np.sqrt(2 / 9 / 30_000)
    parity = np.mean(drawn % 2)  # the biased draw would favour values with certain low bits
    assert abs(parity - 0.5) < 4.5 * 0.5 / np.sqrt(30_000)


@given(below=st.integers(1, 2**32), seed=st.integers(0, 1000))
def test_integers_follow_the_written_rule(below: int, seed: int) -> None:
    """Each draw is the high half of half-word × below, from the first attempt not rejected."""
    drawn = Streams([seed], "batches").integers(below, 3, 5)[0].tolist()

    for place, value in zip(range(3, 8), drawn, strict=True):
        for attempt in itertools.count():
            block, lane = divmod(place // 2, 4)
            word = philox((block, attempt, 0, 0), (seed, name_key("batches")))[lane]
            product = (word >> 32 * (place % 2) & 2**32 - 1) * below
            if product % 2**32 >= 2**32 % below:
                break
        assert value == product >> 32


def test_integers_below_different_bounds() -> None:
    """`below` may differ from draw to draw."""
    drawn = Streams([0, 1], "x").integers(np.array([1, 2, 1000]), 0, 3)

    assert (drawn < np.array([1, 2, 1000])).all()
    assert (drawn[:, 0] == 0).all()


@given(n=st.integers(1, 12), data=st.data())
def test_subsets_are_sets_of_their_size(n: int, data: st.DataObject) -> None:
    """A subset has `size` different elements below n, in order."""
    size = data.draw(st.integers(0, n))
    drawn = Streams([3], "support").subsets(n, size, 2, 4)

    assert drawn.shape == (1, 4, size)
    for subset in drawn[0].tolist():
        assert len(set(subset)) == size
        assert subset == sorted(subset)
        assert all(0 <= element < n for element in subset)


def test_every_subset_is_equally_likely() -> None:
    """Over 10000 draws, each of the 10 pairs out of 5 comes within 4.5 standard errors of 1000."""
    drawn = Streams([0], "support").subsets(5, 2, 0, 10_000)[0]
    counts = Counter(map(tuple, drawn.tolist()))

    assert len(counts) == 10
    assert all(abs(count - 1000) < 4.5 * np.sqrt(900) for count in counts.values())


def test_uniforms_and_normals_have_their_distributions() -> None:
    """Kolmogorov and Smirnov find 20000 draws in order (error rate 1e-4, fixed seed)."""
    from scipy.stats import kstest

    stream = Streams([0], "init")
    assert kstest(stream.uniforms(0, 20_000)[0], "uniform").pvalue > 1e-4
    assert kstest(stream.normals(0, 20_000)[0], "norm").pvalue > 1e-4


def test_names_make_streams_apart() -> None:
    """Two names at one seed share nothing."""
    assert not np.array_equal(Streams([0], "train").words(0, 8), Streams([0], "test").words(0, 8))


@pytest.mark.parametrize("outside", [-1, 2**64])
def test_a_seed_outside_its_range_is_refused(outside: int) -> None:
    """The message says what was given and what to give."""
    with pytest.raises(UserError) as error:
        Streams([outside], "data")

    assert str(error.value) == (
        f"seed={outside} is outside 0 … 2^64 − 1. Give a whole number in that range."
    )


def test_impossible_draws_are_refused() -> None:
    """So are subsets larger than their set, and integers below 0."""
    with pytest.raises(UserError) as error:
        Streams([0], "x").subsets(3, 4, 0, 1)
    assert str(error.value) == (
        "A subset of 4 out of 3 elements was asked for. Give a size from 0 to 3."
    )
    with pytest.raises(UserError) as error:
        Streams([0], "x").integers(0, 0, 1)
    assert str(error.value) == ("Integers below 0 were asked for. Give a bound between 1 and 2^32.")
