"""minGPT's block with a [CLS] token: its formula, its start, its parts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import erf, sqrt
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from petridish.errors import UserError
from petridish.models import ClsTransformer, parameters_of
from petridish.tasks import BiasedAnd, Bits, Classes, Domain, Tokens
from petridish.testing import check_model
from petridish.training import (
    AdamW,
    CrossEntropy,
    Data,
    Evaluation,
    Instrument,
    Piece,
    Reading,
    RunSpec,
    Schedule,
    Silent,
    Training,
    load_engine,
)

DECAY = Schedule((Piece(decay=(("embed.*", 0.0), ("@weight", 1.0), ("*", 0.0))),))
SPEC = RunSpec(
    task=BiasedAnd(6),
    data=Data(m=20, n_test=50),
    model=ClsTransformer(8, 4, 0.2),
    training=Training(
        loss=CrossEntropy(),
        optimiser=AdamW(),
        learning_rate=1e-3,
        weight_decay=1e-2,
        schedule=DECAY,
        batch_size=None,
        steps=10,
        target_error=None,
        clip=1.0,
    ),
    evaluation=Evaluation(every=1, curves=True, weights=True),
)


@pytest.mark.parametrize("model", [ClsTransformer(8, 2), ClsTransformer(6, 3, 0.0)], ids=repr)
def test_the_model_keeps_its_contract(model: ClsTransformer) -> None:
    """Stacks of runs compute what the module does, dropout included."""
    check_model(model, BiasedAnd(7))


def by_hand(w: dict[str, Any], x: list[int], heads: int) -> Any:
    """Compute the network of the docstring, one example and one head at a time."""

    def norm(z: Any, name: str) -> Any:
        scaled = (z - z.mean()) / np.sqrt(z.var() + 1e-5)
        return scaled * w[f"{name}.weight"] + w[f"{name}.bias"]

    def linear(z: Any, name: str) -> Any:
        return w[f"{name}.weight"] @ z + w[f"{name}.bias"]

    tokens = [
        w["embed.tokens.weight"][token] + w["embed.positions"][place]
        for place, token in enumerate([*x, 2])
    ]
    normed = [norm(z, "norm1") for z in tokens]
    query = linear(normed[-1], "query")
    keys, values = ([linear(z, name) for z in normed] for name in ("key", "value"))
    brought, size = [], len(query) // heads
    for head in range(heads):
        part = slice(head * size, (head + 1) * size)
        scores = np.exp([query[part] @ key[part] / sqrt(size) for key in keys])
        brought += list(
            sum(s * v[part] for s, v in zip(scores / scores.sum(), values, strict=True))
        )
    z = tokens[-1] + linear(np.array(brought), "out")
    hidden = linear(norm(z, "norm2"), "mlp1")
    z = z + linear([h * (1 + erf(h / sqrt(2))) / 2 for h in hidden], "mlp2")
    return w["output.weight"] @ norm(z, "norm3")


def test_the_module_is_the_formula() -> None:
    """In evaluation mode, on all inputs of four bits, with large random weights."""
    module = ClsTransformer(6, 3).build(Domain(Tokens(2, 4), Classes(2)), 2).double().eval()
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_()
        x = torch.cartesian_prod(*[torch.arange(2)] * 4)
        found = module(x).numpy()
    weights = {name: p.detach().numpy() for name, p in module.named_parameters()}
    expected = [by_hand(weights, row, heads=3) for row in x.tolist()]
    assert np.allclose(found, expected, rtol=1e-8)


def test_it_starts_as_mingpt_does_and_has_its_size() -> None:
    """N(0, 0.02²) but for gains of 1 and biases of 0; 57, 70 and 121 thousand parameters."""
    model = ClsTransformer()
    module = model.build(Domain(Tokens(2, 100), Classes(2)), 2)
    for name, parameter in module.named_parameters():
        value = parameter.detach()
        if name.startswith("norm") and name.endswith("weight"):
            assert (value == 1).all()
        elif value.dim() == 1:
            assert (value == 0).all()
        else:
            assert float(value.std()) == pytest.approx(0.02, rel=0.25)
    sizes = {
        n: sum(p.size for p in parameters_of(model, Domain(Tokens(2, n), Classes(2)), 2))
        for n in (100, 300, 1100)
    }
    assert sizes == {100: 56_896, 300: 69_696, 1100: 120_896}


def test_weights_of_linear_layers_alone_decay() -> None:
    """The pattern of the docstring names the six linear layers of the block and the head."""
    factors = DECAY.pieces[0].spread(DECAY.pieces[0].decay, SPEC.parameters)
    decayed = [p.name for p, factor in zip(SPEC.parameters, factors, strict=True) if factor]
    layers = ("query", "key", "value", "out", "mlp1", "mlp2", "output")
    assert decayed == [f"{name}.weight" for name in layers]


@dataclass(frozen=True)
class Seen(Instrument):
    """The shares of attention of the first two examples."""

    name: ClassVar[str] = "seen"

    def read(self, reading: Reading) -> Any:
        """Return them as an array."""
        return reading.capture("pattern", n=2).numpy()


def test_shares_of_attention_are_a_part() -> None:
    """(example, head, token), [CLS] last; they sum to 1, and start almost equal."""
    spec = replace(SPEC, evaluation=replace(SPEC.evaluation, instruments=(Seen(),)))
    (record,) = load_engine("torch").run([spec], Silent())
    first = np.asarray(record.curves.arrays["seen"][0]).reshape(2, 4, 7)
    assert np.allclose(first.sum(axis=2), 1)
    assert np.allclose(first, 1 / 7, atol=0.02)


def test_the_stack_trains_what_the_reference_does() -> None:
    """Clipped gradients, decay by name, dropout from streams: losses agree to 1e-4 for 10 steps."""
    ours, theirs = (
        next(iter(load_engine(engine).run([SPEC], Silent()))) for engine in ("torch", "reference")
    )
    losses = np.array([ours.curves["train_loss"], theirs.curves["train_loss"]])[:, 1:]
    assert np.allclose(losses[0], losses[1], rtol=1e-4)
    other = replace(SPEC, restart=1)
    (again,) = load_engine("torch").run([other], Silent())
    assert not np.allclose(again.curves["train_loss"][1:], losses[0], rtol=1e-4)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: ClsTransformer(10, 4),
            "ClsTransformer: heads=4 do not divide d=10. Give a multiple of heads as d.",
        ),
        (
            lambda: ClsTransformer(dropout=1.0),
            "ClsTransformer: dropout=1.0. Give a share from 0 to below 1.",
        ),
        (
            lambda: ClsTransformer().build(Domain(Bits(5), Classes(2)), 2),
            "ClsTransformer embeds tokens, and the task's inputs are Bits(n=5). Give a task of "
            "tokens.",
        ),
        (
            lambda: ClsTransformer().build(Domain(Tokens(2, 5), Classes(2, 5)), 2),
            "ClsTransformer has one answer per example, and the task has labels at 5 positions. "
            "Give a model that answers at every position.",
        ),
    ],
)
def test_what_it_refuses(make: Any, message: str) -> None:
    """One sentence each."""
    with pytest.raises(UserError) as refused:
        make()
    assert str(refused.value) == message
