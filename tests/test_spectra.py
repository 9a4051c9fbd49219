"""Spectra of functions on groups: against Parseval, the characters, and the Fourier transform."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from petridish.groups import Group, cyclic, find_group, real_irreps
from petridish.groups.spectra import feature_names, is_modular, largest_share, power

GROUPS = ("Z2", "Z7", "Z8", "S3", "S4", "D5", "Q8", "A4", "Z2xZ4")


@given(name=st.sampled_from(GROUPS), seed=st.integers(0, 2**32))
def test_powers_add_up_to_the_squared_norm(name: str, seed: int) -> None:
    """Parseval: the features' spaces are orthogonal and together everything."""
    group = find_group(name)
    functions = np.random.default_rng(seed).normal(size=(3, 4, group.order))
    parts = power(group, functions)

    assert parts.shape == (3, 4, len(feature_names(group)))
    assert np.allclose(parts.sum(axis=-1), np.square(functions).sum(axis=-1))


@pytest.mark.parametrize("name", GROUPS)
def test_entries_of_a_representation_lie_in_it_alone(name: str, seed: int) -> None:
    """Any combination of one representation's entries has all of its power there."""
    group = find_group(name)
    rng = np.random.default_rng(seed)
    homes = []
    for irrep in real_irreps(group):
        function = rng.normal(size=len(irrep.basis)) @ irrep.basis
        assert largest_share(group, function) == pytest.approx(1)
        homes.append(int(power(group, function).argmax()))

    assert sorted(homes) == list(range(len(feature_names(group))))


@pytest.mark.parametrize("p", [2, 5, 6, 9])
def test_frequencies_are_the_representations_of_a_cyclic_group(p: int, seed: int) -> None:
    """A cyclic group whose elements are in another order has the same powers, by its matrices."""
    rng = np.random.default_rng(seed)
    order = np.array([0, *(1 + rng.permutation(p - 1))])  # the place of each number
    table = np.empty((p, p), int)
    table[np.ix_(order, order)] = order[cyclic(p).table]
    group = Group("mixed", table)
    function = rng.normal(size=p)
    by_fourier = power(cyclic(p), function)
    mixed = np.empty(p)
    mixed[order] = function
    by_matrices = power(group, mixed)

    assert is_modular(cyclic(p))
    assert np.allclose(np.sort(by_fourier), np.sort(by_matrices))


def test_a_wave_has_its_frequency() -> None:
    """A cosine of frequency 3 on 11 numbers has all of its power at 3; half of it with another."""
    angle = 2 * np.pi * np.arange(11) / 11
    wave, other = np.cos(0.4 + 3 * angle), np.cos(1.1 + 5 * angle)

    assert power(cyclic(11), wave).argmax() == 3
    assert largest_share(cyclic(11), wave) == pytest.approx(1)
    assert largest_share(cyclic(11), wave + other) == pytest.approx(0.5)
    assert feature_names(cyclic(11)) == ("0", "1", "2", "3", "4", "5")
    assert np.isnan(largest_share(cyclic(11), np.zeros(11)))


def test_features_of_permutations_are_named_by_dimension() -> None:
    """S4 has the trivial, the sign, one of dimension 2 and two of dimension 3."""
    assert feature_names(find_group("S4")) == ("trivial", "1d", "2d", "3d_a", "3d_b")
    assert not is_modular(find_group("S3"))
