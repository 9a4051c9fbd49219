"""The bare head is Definition 4.4, and learns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from petridish.models import BareHead, ReLU
from petridish.tasks import BiasedAnd, Classes, Domain, Tokens
from petridish.testing import check_model
from petridish.theory.variables.heads import (
    Layer,
    attention_head,
    blocks,
    project,
    scalar_output,
    softmax,
)
from petridish.training import AdamW, Data, Logistic, RunSpec, Silent, Training, load_engine


@pytest.mark.parametrize("model", [BareHead(6, 3), BareHead(5, 2, 3, ReLU())], ids=repr)
def test_the_model_keeps_its_contract(model: BareHead) -> None:
    """Its stacked form computes what the module does; both engines train alike."""
    check_model(model, BiasedAnd(5))


@pytest.mark.parametrize("heads", [1, 2])
def test_it_is_definition_4_4_at_cls(heads: int) -> None:
    """Against the layer of plain arrays: all T + 1 outputs, of which the scalar reads the last."""
    domain = Domain(Tokens(2, 4), Classes(2))
    module: Any = BareHead(6, 3, heads, ReLU()).build(domain, 1).double()
    x = torch.tensor([[0, 1, 1, 0], [1, 1, 0, 1]])
    tokens = module.embed(x).detach().numpy()
    weights = {name: p.detach().numpy() for name, p in module.named_parameters()}
    total = np.zeros(2)
    for head in range(heads):
        own = slice(3 * head, 3 * head + 3)
        query, key, value = (weights[f"{w}.weight"][own].T for w in ("query", "key", "value"))
        layer = Layer(query, key, value, weights["combine.weight"][:, own].T, _relu)
        y = layer(tokens)
        assert y.shape == (2, 5, 6)
        total += scalar_output(y, weights["output.weight"][0])
        general = attention_head(
            tokens,
            tokens[0, -1],
            score=lambda x, z, q=query, k=key: x @ k @ q.T @ z,  # type: ignore[misc]
            value=lambda x, v=value: x @ v,  # type: ignore[misc]
            out=lambda mixed, o=layer.output: _relu(mixed) @ o,  # type: ignore[misc]
        )
        assert np.allclose(general, y[:, -1])  # the token [CLS] is the same in both inputs
    assert np.allclose(module(x).detach().numpy()[:, 0], total)


def _relu(x: Any) -> Any:
    return np.maximum(x, 0)


def test_blocks_stay_in_the_unit_ball(seed: int) -> None:
    """Whatever the weights, each output token of a block has a norm of at most 1."""
    rng = np.random.default_rng(seed)
    weights: Any = 3 * rng.standard_normal((3, 4, 5, 5))
    layers = [Layer(q, k, v, c, _relu) for q, k, v, c in weights]
    y = blocks(project(rng.standard_normal((4, 7, 5))), layers)
    assert np.linalg.norm(y, axis=-1).max() <= 1 + 1e-12
    assert softmax(rng.standard_normal((3, 4))).sum(axis=1) == pytest.approx(1)


def test_it_learns_an_and() -> None:
    """The scalar form, with a margin loss: one output; on 60 examples of ten bits."""
    spec = RunSpec(
        task=BiasedAnd(10),
        data=Data(m=100, n_test=500),
        model=BareHead(16, 4),
        training=Training(
            loss=Logistic(),
            optimiser=AdamW(),
            learning_rate=0.01,
            weight_decay=0.0,
            batch_size=None,
            steps=400,
            target_error=0.02,
        ),
    )
    (record,) = load_engine("torch").run([spec], Silent())
    assert record.outcome.name == "SOLVED"
