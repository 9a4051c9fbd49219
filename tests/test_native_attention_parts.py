"""What compiled attention tells instruments: patterns, outputs, and those of last positions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from petridish.errors import UserError
from petridish.models import AttentionOnly, MinimalAttention
from petridish.tasks import MarkovChains
from petridish.training import RunSpec
from petridish.training.engines.native_attention import AttentionOutputs, arguments
from petridish.training.induction_heads import exact_one_back
from petridish.training.native.attention_run import AttentionArguments, NativeAttention
from petridish.training.readings import WHOLE, Reading, Shared
from tests.native_runs import HERE
from tests.test_native_attention import spec_of

SHAPES = [  # states, length, d, heads, layers, and by what all weights are multiplied
    (3, 12, 8, 1, 2, 1),
    (3, 12, 8, 1, 2, 16),
    (2, 25, 16, 2, 3, 3),
    (5, 9, 4, 3, 3, 4),
    (8, 17, 16, 4, 2, 1),
    (4, 1, 2, 1, 1, 1),
]
N = 21  # sequences: full groups of every instruction set, and a part of one


def started(
    states: int, length: int, d: int, heads: int, layers: int, scale: float
) -> tuple[RunSpec, AttentionArguments, Reading]:
    """Return a run at its start, its weights scaled, and a reading of the plain module."""
    spec = spec_of(MarkovChains(states, length), AttentionOnly(d, layers, heads))
    given = arguments(spec)
    given = replace(given, weights=[weight * np.float32(scale) for weight in given.weights])
    names = [parameter.name for parameter in spec.parameters]
    now: dict[str, Any] = dict(zip(names, given.weights, strict=True))
    return spec, given, Reading(spec, 0, now, now, {}, Shared(spec))


@pytest.mark.skipif(not HERE, reason="the native engine was not built")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_patterns_are_the_modules(shape: tuple[int, int, int, int, int, float]) -> None:
    """Of every layer, also if an earlier one attends to the token before; all sets bit for bit.

    Errors are at most 32 times those of the module in float32, or 1e-6 of the largest number.
    """
    spec, given, reading = started(*shape)
    x = reading.inputs(n=N)
    layers = range(1, spec.model.layers + 1)  # type: ignore[attr-defined]
    cases: list[tuple[str, Any]] = [(f"attention{layer}.pattern", {}) for layer in layers]
    cases += [
        (f"attention{layer}.pattern", {f"attention{first}.pattern": exact_one_back})
        for layer in layers
        for first in range(1, layer)
    ]
    cases.append((WHOLE, {}))
    exact_reading = replace(reading, shared=Shared(spec))
    exact_reading.module.double()
    for part, instead in cases:
        plain, exact = (
            each.of_network(part, n=N, instead=instead) for each in (reading, exact_reading)
        )
        allowed = max(32 * (plain - exact).abs().max(), 1e-6 * exact.abs().max())
        found = []
        for isa in HERE:
            with NativeAttention(given, isa) as run:
                mine = AttentionOutputs(run, len(layers)).compiled(part, x, instead)
                assert mine is not None
                assert mine.shape == plain.shape
                assert (mine - exact).abs().max() <= allowed
                found.append(mine)
        assert all(torch.equal(found[0], other) for other in found)


@pytest.mark.skipif(not HERE, reason="the native engine was not built")
@pytest.mark.parametrize("model", [AttentionOnly(8), AttentionOnly(8, 1, 2), MinimalAttention()])
def test_outputs_from_a_position_on_are_those_of_all(
    model: AttentionOnly | MinimalAttention,
) -> None:
    """Bit for bit, on whole groups of sequences and a part of one."""
    spec = spec_of(MarkovChains(3, 12), model)
    x = Shared(spec).sample("test").x[0, :19].astype(np.uint8)
    for isa in HERE:
        with NativeAttention(arguments(spec), isa) as run:
            every = run.outputs(x)
            for start in (0, 5, 11):
                assert np.array_equal(run.outputs(x, start), every[:, start:])


@pytest.mark.skipif(not HERE, reason="the native engine was not built")
def test_compiled_code_says_what_it_lacks() -> None:
    """Other parts, a later layer's pattern given, or two: the module answers for these."""
    _, given, reading = started(*SHAPES[2])
    first, third = "attention1.pattern", "attention3.pattern"
    x = reading.inputs(n=2)
    with NativeAttention(given) as run:
        network = AttentionOutputs(run, 3)
        for part, instead in (
            ("attention1.query", {}),
            (first, {first: exact_one_back}),
            (first, {third: exact_one_back}),
            (third, {first: exact_one_back, "attention2.pattern": exact_one_back}),
            (WHOLE, {first: exact_one_back}),
        ):
            assert network.compiled(part, x, instead) is None
            asked = replace(reading, compiled=network.compiled)
            plain = reading.of_network(part, n=2, instead=instead)
            assert torch.equal(asked.of_network(part, n=2, instead=instead), plain)


def test_a_part_to_replace_must_be_there() -> None:
    """The module has no such part: the nearest is named."""
    reading = started(*SHAPES[0])[2]
    with pytest.raises(UserError) as error:
        reading.of_network("attention2.pattern", instead={"attention1.patern": exact_one_back})
    assert str(error.value) == (
        "The model attention_only(8) has no part called 'attention1.patern'. Did you mean "
        "attention1.pattern or attention2.pattern?"
    )
