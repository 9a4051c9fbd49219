"""What instruments read off attention, on maps that are known."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from petridish.choices import describe
from petridish.errors import UserError
from petridish.models import MLP, AttentionOnly
from petridish.tasks import MarkovChains, SparseParity
from petridish.testing import check_instrument, short_run
from petridish.training import AttentionMap, BackAttention, Hinge, Instrument, StrategyLoss
from petridish.training.readings import Reading, Shared

OF_CHAINS = [BackAttention(), BackAttention(back=0), AttentionMap(size=4), StrategyLoss("bigram")]


@pytest.mark.parametrize("instrument", OF_CHAINS, ids=describe)
def test_instruments_keep_their_contract(instrument: Instrument) -> None:
    """On Markov chains, which have attention and strategies."""
    check_instrument(instrument, short_run(MarkovChains(3, 6), AttentionOnly(4)))


@dataclass(frozen=True)
class Shown:
    """A model whose name stands in messages."""

    name: ClassVar[str] = "shown"


def reading_of(shares: torch.Tensor) -> Any:
    """Return a reading of which only the captured shares are known."""
    return SimpleNamespace(
        of_network=lambda part, on, n, instead: shares[:n], spec=SimpleNamespace(model=Shown())
    )


def even(t: int) -> torch.Tensor:
    """Attention spread evenly over the tokens up to each position."""
    return torch.ones(t, t).tril() / torch.arange(1, t + 1)[:, None]


def one_back(t: int) -> torch.Tensor:
    """All attention on the previous token; of the first position, on itself."""
    return torch.cat([torch.eye(t)[:1], torch.eye(t)[:-1]])


@pytest.mark.parametrize("t", [2, 5, 50])
def test_attention_is_measured_above_chance(t: int) -> None:
    """0 for even attention at every length, 1 for all of it, a quarter for a quarter of both."""
    back = BackAttention()
    assert back.read(reading_of(even(t)[None])) == pytest.approx(0, abs=1e-7)
    assert back.read(reading_of(one_back(t)[None])) == 1
    mixed = 0.75 * even(t) + 0.25 * one_back(t)
    assert back.read(reading_of(mixed[None])) == pytest.approx(0.25, abs=1e-6)
    heads = torch.stack([even(t), one_back(t)])[None]  # (example, head, position, token)
    assert back.read(reading_of(heads)) == pytest.approx(0.5, abs=1e-6)


def test_other_distances() -> None:
    """The token itself, and two places back, where attention is all one place back."""
    shares = one_back(5)[None]
    # Positions 2 to 5 give nothing to themselves: −(1/p) / (1 − 1/p) = −1 / (p − 1).
    expected = -np.mean([1 / (p - 1) for p in (2, 3, 4, 5)])
    assert BackAttention(back=0).read(reading_of(shares)) == pytest.approx(expected)
    expected = -np.mean([1 / (p - 1) for p in (3, 4, 5)])
    assert BackAttention(back=2).read(reading_of(shares)) == pytest.approx(expected)


def test_a_map_is_the_last_corner_of_the_first_example() -> None:
    """Rows are positions, columns tokens."""
    shares = torch.rand(3, 6, 6)
    corner = AttentionMap(size=2).read(reading_of(shares))
    assert np.array_equal(corner, shares[0, 4:, 4:].numpy())
    assert AttentionMap(size=9).read(reading_of(shares)).shape == (6, 6)


def test_labels_name_the_layer() -> None:
    """So that several layers have curves of their own."""
    assert BackAttention().label == "attention1_back1"
    assert BackAttention("attention2.pattern", 0).label == "attention2_back0"
    assert AttentionMap("pattern").label == "pattern_map"
    assert StrategyLoss("bigram", on="iid").label == "iid_kl_of_bigram"


def test_the_loss_of_a_strategy_is_its_divergence_from_the_truth() -> None:
    """By the sum over the held-out examples at the last position; of the truth it is 0."""
    spec = short_run(MarkovChains(3, 6), AttentionOnly(4))
    reading = Reading(spec, 0, {}, {}, {}, Shared(spec))
    sample, task = reading.sample(), spec.task
    assert isinstance(task, MarkovChains)
    p, q = (task.predict(name, sample)[0, :, -1] for name in ("truth", "unigram"))
    terms = [sum(a * np.log(a / b) for a, b in zip(*pair)) for pair in zip(p, q)]  # noqa: B905
    assert StrategyLoss().read(reading) == pytest.approx(float(np.mean(terms)))
    assert StrategyLoss("truth").read(reading) == 0


@pytest.mark.parametrize(
    ("instrument", "shares", "message"),
    [
        (
            AttentionMap("pattern"),
            torch.ones(2, 3, 5),
            "The part 'pattern' of the model shown puts out the shape (1, 3, 5), and attention is "
            "read as (example, position, token). Name another part.",
        ),
        (
            BackAttention(back=4),
            torch.ones(2, 4, 4),
            "BackAttention: back=4, and no token of 4 has another so far before it. Lower back.",
        ),
    ],
)
def test_what_is_no_attention_is_refused(instrument: Any, shares: Any, message: str) -> None:
    """One sentence each."""
    with pytest.raises(UserError) as refused:
        instrument.read(reading_of(shares))
    assert str(refused.value) == message


def test_a_task_without_the_strategy_is_refused() -> None:
    """Before anything is trained."""
    with pytest.raises(UserError) as refused:
        StrategyLoss("trigram").check(short_run(MarkovChains(3, 6), AttentionOnly(4)))
    assert str(refused.value) == (
        "StrategyLoss: the task markov(3, 6) knows no strategy called 'trigram'. Did you mean "
        "bigram or unigram?"
    )
    with pytest.raises(UserError) as refused:
        StrategyLoss().check(short_run(SparseParity(8, 2), MLP(4), Hinge()))
    assert str(refused.value) == (
        "StrategyLoss: the task sparse_parity(8, 2) knows no strategy called 'unigram'. It knows "
        "none."
    )
