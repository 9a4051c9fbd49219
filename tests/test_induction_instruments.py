"""What instruments read off transformers of chains and the minimal model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from petridish.choices import describe
from petridish.models import (
    AttentionOnly,
    CausalTransformer,
    MinimalAttention,
    PublishedInduction,
)
from petridish.tasks import MarkovChains
from petridish.testing import check_instrument
from petridish.training import (
    DiagonalShare,
    EffectivePositions,
    EvenOdd,
    KeyMatrix,
    LossByPosition,
    PeakRatio,
    PositionShare,
    RunSpec,
    SuccessorAttention,
    TokenSpread,
)
from petridish.training.effective_positions import effective_positions
from petridish.training.induction_heads import exact_one_back, successors
from petridish.training.readings import Reading, Shared
from tests.test_induction_models import run_of

OF_HEADS: list[Any] = [
    *(SuccessorAttention(n=5), EffectivePositions(size=4), EvenOdd(), TokenSpread(), PeakRatio())
]
OF_MINIMAL: list[Any] = [PositionShare(), DiagonalShare(), LossByPosition(), KeyMatrix()]


def test_successors_by_hand() -> None:
    """Of 0 1 0 0: the last 0 was followed by tokens 1 and 3 (itself)."""
    found = successors(np.array([[0, 1, 0, 0]]))[0]
    expected = [[0, 0, 0, 0], [0, 0, 0, 0], [0, 1, 0, 0], [0, 1, 0, 1]]
    assert np.array_equal(found.astype(int), expected)


def with_constructed_layers() -> tuple[RunSpec, dict[str, Any]]:
    """Return a run and the weights of Proposition 8.2's construction, with a large c."""
    k, task = 3, MarkovChains(3, 12)
    spec, c = run_of(AttentionOnly(9), task), 60.0
    one, zero = np.eye(k), np.zeros((9, 9))

    def block(row: int, column: int, value: float) -> Any:
        found = zero.copy()
        found[k * row : k * row + k, k * column : k * column + k] = value * one
        return found

    positions = np.zeros((9, 12))
    positions[:k, 1] = 1
    weights = {
        "tokens": np.concatenate([one, np.zeros((6, k))]),
        "attention1.positions": positions,
        "attention1.query.weight": block(0, 0, c),
        "attention1.key.weight": zero,
        "attention1.value.weight": block(1, 0, 1.0),
        "attention2.positions": np.zeros((9, 12)),
        "attention2.query.weight": block(0, 0, c),
        "attention2.key.weight": block(0, 1, c),
        "attention2.value.weight": block(2, 0, 1.0),
        "output.weight": np.concatenate([np.zeros((k, 6)), one], axis=1),
    }
    return spec, {name: value.astype(np.float32) for name, value in weights.items()}


def test_what_the_construction_attends_to() -> None:
    """Layer 2 is on successors but for x_1 → x_1; with layer 1 even it is not, unless replaced.

    The first token attends to itself in layer 1, so that token 1 counts as its own successor, and
    some mass goes there: less than all is on true successors.
    """
    spec, weights = with_constructed_layers()
    broken = weights | {"attention1.query.weight": 0 * weights["attention1.query.weight"]}

    def read(now: dict[str, Any], given: str = "") -> float:
        reading = Reading(spec, 0, now, now, {}, Shared(spec))
        return SuccessorAttention(given=given, n=40).read(reading)

    assert 0.6 < read(weights) < 0.999
    assert read(weights, "attention1.pattern") == pytest.approx(read(weights), abs=1e-3)
    assert read(broken) < 0.3
    assert read(broken, "attention1.pattern") == pytest.approx(read(weights), abs=1e-3)
    exact = exact_one_back(torch.ones(1, 4, 4))[0]
    assert np.array_equal(exact.argmax(dim=1), [0, 0, 1, 2])


def test_what_positions_say() -> None:
    """v̂ of the construction is all on the token before, for every token."""
    spec, weights = with_constructed_layers()
    reading = Reading(spec, 0, weights, weights, {}, Shared(spec))
    v = EffectivePositions(size=3).read(reading)
    np.testing.assert_allclose(v, [0, 1, 0], atol=1e-6)
    assert TokenSpread().read(reading) == pytest.approx(0, abs=1e-6)
    assert PeakRatio().read(reading) == pytest.approx(0, abs=1e-5)


WITH_TABLES: list[Any] = [
    AttentionOnly(4, 1, 2),
    CausalTransformer(4, 1, 2),
    CausalTransformer(4, norm=True),
    CausalTransformer(4, 1, 2, coupling="key"),
    PublishedInduction(2),
    PublishedInduction(1, coupling="key"),
]


@pytest.mark.parametrize("model", WITH_TABLES, ids=describe)
def test_effective_positions_are_the_attention_of_equal_tokens(model: Any) -> None:
    """Where the other matrix is 0, a sequence of one token is attended to by distance as v̂ says."""
    spec = run_of(model)
    torch.manual_seed(1)
    module = spec.model.build(spec.domain, 2).eval()
    weights = dict(module.named_parameters())
    idle = "key" if getattr(model, "coupling", "query") == "query" else "query"
    with torch.no_grad():
        for name, parameter in weights.items():
            parameter.copy_(torch.randn(parameter.shape))
            if name.startswith("norm"):
                parameter.add_(1)
        weights[f"attention1.{idle}.weight"].zero_()
    now = {name: value.detach().numpy() for name, value in weights.items()}
    reading = Reading(spec, 0, now, now, {}, Shared(spec))
    found = effective_positions(reading)
    seen: list[torch.Tensor] = []
    part = module.get_submodule("attention1.pattern")
    part.register_forward_hook(lambda _module, _given, shares: seen.append(shares))
    with torch.no_grad():
        module(torch.tensor([[0] * 12, [1] * 12]))
    shares = seen[0] if seen[0].dim() == 3 else seen[0].mean(dim=1)  # over heads
    np.testing.assert_allclose(found, shares[:, -1].flip(-1), atol=1e-5)


def test_numbers_of_the_minimal_model() -> None:
    """By hand: even/odd of a zigzag and of a line, peaks, shares above those of equal entries."""
    spec = run_of(MinimalAttention())

    def read(instrument: Any, v: Any, key: Any = ((1.0, 0.0), (0.0, 1.0))) -> float:
        now = {
            "positions": np.array(v, np.float32),
            "key": np.array(key, np.float32),
        }
        return float(instrument.read(Reading(spec, 0, now, now, {}, Shared(spec))))

    line = np.arange(12.0, 0, -1)
    assert read(EvenOdd(), line) == pytest.approx(0, abs=1e-6)
    assert read(EvenOdd(), [0, 9, 1, 3, 1, 3, 1, 3, 1, 0, 0, 0]) == pytest.approx(0.5)
    assert read(EvenOdd(), np.zeros(12)) == 0
    assert read(PeakRatio(), [0, 4, 0, 1, 0, *[0] * 7]) == pytest.approx(0.25)
    assert read(PositionShare(2), [0, 3, 0, -1, *[0] * 8]) == pytest.approx(
        (0.75 - 1 / 12) * 12 / 11
    )
    assert read(DiagonalShare(), line) == 1
    key = np.arange(4, dtype=np.float32).reshape(2, 2)
    now = {"positions": np.zeros(12, np.float32), "key": key}
    assert np.array_equal(KeyMatrix().read(Reading(spec, 0, now, now, {}, Shared(spec))), key)
    assert read(DiagonalShare(), line, ((2.0, 1.0), (-1.0, 2.0))) == pytest.approx(1 / 3)
    assert read(DiagonalShare(), line, ((0.0, 0.0), (0.0, 0.0))) == 0


def test_losses_by_position() -> None:
    """Their last entry is KL(truth ‖ network) at the last token; an even answer's by hand."""
    spec, weights = with_constructed_layers()
    zero = {name: 0 * value for name, value in weights.items()}
    reading = Reading(spec, 0, zero, zero, {}, Shared(spec))
    found = LossByPosition(n=40).read(reading)
    sample, task = reading.sample(), spec.task
    assert isinstance(task, MarkovChains)
    truth = task.predict("truth", sample)[0]
    expected = (truth * np.log(3 * truth)).sum(axis=-1).mean(axis=0)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("instrument", OF_HEADS, ids=lambda each: each.name)
def test_instruments_of_attention_keep_their_contract(instrument: Any) -> None:
    """As every instrument does."""
    check_instrument(instrument, run_of(AttentionOnly(4)))


@pytest.mark.parametrize("instrument", OF_MINIMAL, ids=lambda each: each.name)
def test_instruments_of_the_minimal_model_keep_their_contract(instrument: Any) -> None:
    """As every instrument does."""
    check_instrument(instrument, run_of(MinimalAttention()))
