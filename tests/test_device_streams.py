"""Random streams drawn by tensor operations: the bits of `petridish.seeds`."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from petridish.seeds import Streams
from petridish.training.device_streams import DeviceStreams
from petridish.training.devices import Device

HERE = Device("cpu", host=False)
SEEDS = (0, 1, 2**63 - 1, 2**63, 2**64 - 1)


def both(name: str, seeds: tuple[int, ...] = SEEDS) -> tuple[Streams, DeviceStreams]:
    """Return a stream of NumPy and of tensors."""
    return Streams(seeds, name), DeviceStreams(seeds, name, HERE)


def unsigned(words: torch.Tensor) -> np.ndarray:
    """Return words without a sign."""
    return np.ascontiguousarray(words.numpy()).view(np.uint64)


def test_millions_of_words_are_the_same() -> None:
    """Five million words of five seeds, in pieces that begin at any lane."""
    numpy, tensors = both("batches")
    start = 0
    for piece in range(10):
        count = 100_001 + piece
        assert np.array_equal(numpy.words(start, count), unsigned(tensors.words(start, count)))
        start += count
    assert len(SEEDS) * start > 5_000_000


@given(
    seeds=st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=3),
    name=st.text(max_size=5),
    start=st.one_of(st.integers(0, 100), st.integers(0, 2**62)),
    count=st.integers(1, 40),
)
def test_every_kind_of_draw_is_the_same(
    seeds: list[int], name: str, start: int, count: int
) -> None:
    """Whatever the seed, the stream, and the place in it."""
    numpy, tensors = both(name, tuple(seeds))

    assert np.array_equal(numpy.words(start, count), unsigned(tensors.words(start, count)))
    assert np.array_equal(numpy.halves(start, count), tensors.halves(start, count).numpy())
    uniforms = numpy.uniforms(start, count).astype(np.float32)
    assert np.array_equal(uniforms, tensors.uniforms(start, count).numpy())
    lanes = numpy.words(start, -(-count // 4)).astype("<u8").view("<u2")[:, :count]
    assert np.array_equal(lanes, tensors.lanes(start, count).numpy())
    order = np.argsort(numpy.words(start, count), axis=1, kind="stable")
    assert np.array_equal(order, tensors.order(start, count).numpy())
    normals = numpy.normals(start, count)
    assert np.allclose(normals, tensors.normals(start, count).numpy(), rtol=1e-6, atol=1e-7)


@given(n_bits=st.integers(1, 200), start=st.integers(0, 10**9), count=st.integers(1, 9))
def test_packed_bits_are_the_same(n_bits: int, start: int, count: int) -> None:
    """The bits above the last are 0."""
    numpy, tensors = both("train")

    packed = tensors.packed(n_bits, start, count)

    assert np.array_equal(numpy.packed(n_bits, start, count), unsigned(packed))


@given(
    below=st.lists(st.integers(1, 2**31), min_size=5, max_size=5),
    start=st.integers(0, 10**9),
    count=st.integers(1, 50),
)
def test_integers_are_the_same(below: list[int], start: int, count: int) -> None:
    """Each run below a bound of its own; of large bounds many draws are rejected."""
    numpy, tensors = both("batches")
    bounds = np.array(below)[:, None]

    found = tensors.integers(torch.from_numpy(bounds), start, count)

    assert np.array_equal(numpy.integers(bounds, start, count), found.numpy())


@pytest.mark.parametrize("below", [1, 3, 1000, 2**31 - 1, 3 * 2**29])
def test_rejected_integers_are_drawn_again(below: int) -> None:
    """Of 3 · 2^29 every fourth draw is rejected, and one in 4^5 five times."""
    numpy, tensors = both("batches")

    found = tensors.integers(torch.full((len(SEEDS), 1), below), 7, 20_001)

    assert np.array_equal(numpy.integers(below, 7, 20_001), found.numpy())
