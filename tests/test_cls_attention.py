"""What instruments read off the attention of [CLS]."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from petridish.choices import describe
from petridish.errors import UserError
from petridish.models import MLP, ClsTransformer
from petridish.tasks import BiasedAnd, GroupProduct
from petridish.testing import check_instrument, short_run
from petridish.training import ClsAttention, ClsAttentionMap, Instrument

OF_CLS: list[Instrument] = [ClsAttention(), ClsAttentionMap(n=3)]


@pytest.mark.parametrize("instrument", OF_CLS, ids=describe)
def test_instruments_keep_their_contract(instrument: Instrument) -> None:
    """On a task with relevant bits."""
    check_instrument(instrument, short_run(BiasedAnd(5), ClsTransformer(4, 2)))


def reading_of(shares: Any) -> Any:
    """Return a reading of five bits, of which 1 and 3 matter, with known shares."""
    task = BiasedAnd(5, 2, support=(1, 3))
    spec = SimpleNamespace(model=ClsTransformer(4, 2), seed=0, task_of=lambda on: task)
    sample = SimpleNamespace(x=np.zeros((1, 9, 5)))
    return SimpleNamespace(
        capture=lambda part, on, n: torch.tensor(shares), spec=spec, sample=lambda on: sample
    )


def test_shares_are_added_up_by_hand() -> None:
    """Two heads and one example: the mean over heads of each group; together they are 1."""
    reading = reading_of([[[0.1, 0.4, 0.1, 0.3, 0.0, 0.1], [0.0, 0.2, 0.0, 0.2, 0.2, 0.4]]])
    found = {of: ClsAttention(of=of).read(reading) for of in ("relevant", "irrelevant", "cls")}
    assert found == pytest.approx({"relevant": 0.55, "irrelevant": 0.2, "cls": 0.25})
    assert ClsAttention().label == "attention_irrelevant"
    assert ClsAttentionMap(n=1).read(reading).shape == (1, 2, 6)


def test_what_is_no_attention_of_cls_is_refused() -> None:
    """One sentence each: another part, a task without a support, an unknown group of tokens."""
    with pytest.raises(UserError) as refused:
        ClsAttention("cls", "mlp1").read(reading_of([[[0.5, 0.5]]]))
    assert str(refused.value) == (
        "The part 'mlp1' of the model cls_transformer(4, 2) puts out the shape (1, 1, 2), and the "
        "attention of [CLS] is read as (example, head, 6 tokens). Name another part."
    )
    with pytest.raises(UserError) as refused:
        ClsAttention().check(short_run(GroupProduct("S3"), MLP(4)))
    assert str(refused.value) == (
        "ClsAttention: the task group_product(S3) has no relevant bits. Give a task on a support, "
        "such as biased_and."
    )
    with pytest.raises(UserError) as refused:
        ClsAttention("all")  # type: ignore[arg-type]
    assert str(refused.value) == (
        "ClsAttention: of='all'. Give 'relevant' or 'irrelevant' or 'cls'."
    )
