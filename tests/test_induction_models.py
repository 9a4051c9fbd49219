"""The minimal model, variants of the transformer, and what instruments read off them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from petridish.choices import describe
from petridish.errors import UserError
from petridish.models import (
    AttentionOnly,
    CausalTransformer,
    MinimalAttention,
    Normal,
    PublishedInduction,
)
from petridish.models.causal_modules import (
    CausalTransformerModule,
    MinimalAttentionModule,
    VariantAttention,
)
from petridish.models.modules import AttentionOnlyModule
from petridish.tasks import Bits, Classes, Domain, MarkovChains
from petridish.testing import check_engine, check_model
from petridish.training import (
    CrossEntropy,
    Data,
    DiagonalShare,
    Evaluation,
    EvenOdd,
    MultiMargin,
    PeakRatio,
    PositionShare,
    RunSpec,
    SuccessorAttention,
    TokenSpread,
    Training,
    load_engine,
)
from petridish.training.readings import Reading, Shared

CHAINS = MarkovChains(2, 12)
MODELS: list[Any] = [
    MinimalAttention(),
    CausalTransformer(6, 2, 2),
    CausalTransformer(6, 1, positions="absolute", mlp=5),
    CausalTransformer(6, norm=True, readout="log", coupling="key"),
    PublishedInduction(2),
    PublishedInduction(1, coupling="key"),
]


def run_of(model: Any, task: MarkovChains = CHAINS, **changes: Any) -> RunSpec:
    """Return a short run of a model on chains."""
    if isinstance(model, MinimalAttention):  # without ties, which rounding would decide
        changes["init"] = Normal(0.3)
    return RunSpec(
        task=task,
        data=Data(n_test=40),
        model=model,
        training=Training(
            loss=CrossEntropy(), batch_size=8, steps=3, learning_rate=0.05, target_error=None
        ),
        **changes,
    )


@pytest.mark.parametrize("model", MODELS, ids=describe)
def test_models_keep_their_contract(model: Any) -> None:
    """As every model does."""
    check_model(model, CHAINS)


def test_fact_83_bigrams_and_unigrams() -> None:
    """V = (0, 1, 0, …) and the identity count successors, v = (1, 0, …) and ones count tokens.

    By counting in plain Python: true counts, where attention has frequencies.
    """
    x = torch.from_numpy(np.random.default_rng(0).integers(0, 3, (20, 9)))
    module = MinimalAttentionModule(3, 9).double()
    for place, key in ((1, torch.eye(3)), (0, torch.ones(3, 3))):
        with torch.no_grad():
            module.positions.zero_()[place] = 1
            module.key.copy_(key)
            found = module(x).numpy()
        for tokens, outputs in zip(x.tolist(), found, strict=True):
            for p in range(9):
                follows = [
                    tokens[q]
                    for q in range(place, p + 1)
                    if place == 0 or tokens[q - 1] == tokens[p]
                ]
                expected = [follows.count(i) for i in range(3)]
                np.testing.assert_allclose(outputs[p], expected, atol=1e-12)


def test_the_stack_computes_what_the_formula_says() -> None:
    """`forward` by cumulative sums against (E.2), summed term by term."""
    rng = np.random.default_rng(1)
    x, v, key = rng.integers(0, 3, 7), rng.normal(size=7), rng.normal(size=(3, 3))
    expected = np.zeros((7, 3))
    for p in range(7):
        for t in range(p + 1):
            for s in range(t + 1):
                expected[p, x[t]] += v[t - s] * key[x[p], x[s]]
    weights = [torch.from_numpy(w)[None] for w in (v, key)]
    found = MinimalAttention().forward(weights, torch.from_numpy(x)[None, None])
    np.testing.assert_allclose(found[0, 0], expected, atol=1e-12)


def test_the_engines_agree_on_the_minimal_model() -> None:
    """The stack of `torch` against `reference`, with its instruments."""
    curves = Evaluation(
        every=1,
        curves=True,
        fitted_error=None,
        instruments=(PositionShare(), DiagonalShare(), EvenOdd(), PeakRatio()),
    )
    check_engine(load_engine("torch"), run_of(MinimalAttention(), evaluation=curves))


def test_without_options_the_variant_is_the_model() -> None:
    """The same outputs from the same weights, two heads in two layers."""
    domain = MarkovChains(3, 8).domain
    one = AttentionOnly(5, 2, 2).build(domain, 3)
    other = CausalTransformer(5, 2, 2).build(domain, 3)
    assert isinstance(one, AttentionOnlyModule)
    assert isinstance(other, CausalTransformerModule)
    with torch.no_grad():
        other.tokens.weight.copy_(one.tokens.mT)
        other.output.weight.copy_(one.output.weight)
        for number in (1, 2):
            mine = dict(one.get_submodule(f"attention{number}").named_parameters())
            its = other.get_submodule(f"attention{number}")
            its.load_state_dict({**mine, "positions": mine["positions"].mT})
        x = torch.from_numpy(np.random.default_rng(0).integers(0, 3, (6, 8)))
        np.testing.assert_allclose(one(x), other(x), atol=1e-6)


def test_positions_that_meet_the_keys() -> None:
    """Score (i, j) of one head: (q_i · k_j + k_j · v_{i−j}) / √d, by a loop."""
    layer = VariantAttention(
        5, 4, 1, joined=False, relative=True, coupling="key", dropout=0.0
    ).double()
    z = torch.randn(1, 5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    seen: list[torch.Tensor] = []
    layer.pattern.register_forward_hook(lambda _m, _x, found: seen.append(found))
    with torch.no_grad():
        layer.positions.normal_()
        layer(z)
        q, k = layer.query(z)[0], layer.key(z)[0]
        for i in range(5):
            scores = [float(q[i] @ k[j] + k[j] @ layer.positions[i - j]) / 2 for j in range(i + 1)]
            expected = torch.tensor(scores, dtype=torch.float64).softmax(dim=0)
            np.testing.assert_allclose(seen[0][0, i, : i + 1], expected, atol=1e-12)


def test_the_published_start() -> None:
    """N(0, 0.02²) but for output projections, N(0, 0.01²); one head in the second layer."""
    torch.manual_seed(0)
    module = PublishedInduction(3).build(MarkovChains(3, 100).domain, 3)
    named = dict(module.named_parameters())
    assert named["tokens.weight"].shape == (3, 48)
    assert module.get_submodule("attention1").heads == 3
    assert module.get_submodule("attention2").heads == 1
    for name, parameter in named.items():
        if parameter.dim() == 2 and parameter.numel() > 1_000:
            expected = 0.01 if name.endswith(".out.weight") else 0.02
            assert float(parameter.detach().std()) == pytest.approx(expected, rel=0.1), name
    assert "norm1.bias" in named
    assert "last_norm.weight" in named


def test_a_log_readout_can_give_frequencies() -> None:
    """Large outputs u become probabilities u / Σu: averages of attention may stand for them."""
    module = CausalTransformer(3, 1, readout="log").build(MarkovChains(3, 4).domain, 3)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.zero_()
        named = dict(module.named_parameters())
        named["tokens.weight"].copy_(torch.diag(torch.tensor([30.0, 60.0, 90.0])))
        named["output.weight"].copy_(torch.ones(3, 3) / 3 + torch.eye(3))
        found = module(torch.tensor([[0, 1, 2, 0]])).softmax(dim=-1)
    np.testing.assert_allclose(found[0, 0], [4 / 6, 1 / 6, 1 / 6], atol=1e-3)


def test_the_margin_loss_by_hand() -> None:
    """Outputs (1, 0, 3) with the class 1 and Δ = 2: (max(0, 3) + max(0, 5)) / 3; −1 is left out."""
    outputs = torch.tensor([[[1.0, 0.0, 3.0], [9.0, 0.0, 0.0]]])
    loss = MultiMargin(2.0)
    assert float(loss(outputs, torch.tensor([[1, -1]]))) == pytest.approx(8 / 3)
    assert float(loss(outputs, torch.tensor([[1, 0]]))) == pytest.approx(4 / 3)
    with pytest.raises(UserError) as refused:
        MultiMargin(0.0)
    assert str(refused.value) == "MultiMargin: delta=0.0. Give a finite number above 0."


REFUSED: list[tuple[Any, str]] = [
    (
        lambda: AttentionOnly(2, heads=3),
        "AttentionOnly: heads=3 are more than the d=2 dimensions. Lower heads or raise d.",
    ),
    (
        lambda: CausalTransformer(2, heads=3),
        "CausalTransformer: heads=3 are more than the d=2 dimensions. Lower heads or raise d.",
    ),
    (
        lambda: CausalTransformer(positions="absolute", coupling="key"),
        "CausalTransformer: coupling='key' has no effect with absolute positions. Leave it out.",
    ),
    (
        lambda: PublishedInduction(dropout=1.0),
        "PublishedInduction: dropout=1.0. Give a number from 0 to below 1.",
    ),
    (
        lambda: MinimalAttention().build(CHAINS.domain, 3),
        "MinimalAttention answers at each of 12 positions with one of 2 tokens, and the task has "
        "2 classes at every position and asks for 3 outputs. Give a task of next tokens, such "
        "as markov(3, 100).",
    ),
    (
        lambda: PublishedInduction().build(Domain(Bits(5), Classes(2)), 2),
        "PublishedInduction embeds tokens, and the task's inputs are Bits(n=5). Give a task of "
        "tokens.",
    ),
    (
        lambda: EvenOdd().check(run_of(AttentionOnly(4), MarkovChains(2, 8))),
        "EvenOdd: it reads 9 distances, and the task markov(2, 8) has sequences of 8 tokens. Give "
        "longer ones.",
    ),
    (
        lambda: DiagonalShare().check(run_of(AttentionOnly(4))),
        "DiagonalShare: it reads the minimal model, and this run has attention_only(4). Use "
        "minimal_attention.",
    ),
    (
        lambda: PositionShare(13).check(run_of(MinimalAttention())),
        "PositionShare: place=13, and sequences have 12 tokens. Lower place.",
    ),
    (
        lambda: TokenSpread(3).check(run_of(AttentionOnly(4))),
        "TokenSpread: layer=3, and the model attention_only(4) has 2. Lower layer.",
    ),
    (
        lambda: EvenOdd().check(run_of(CausalTransformer(4, positions="absolute"))),
        "EvenOdd: the model causal_transformer(4, 2, 1, absolute) has no relative positions that "
        "it can read. Use attention_only or minimal_attention.",
    ),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_what_does_not_fit_is_refused(call: Any, message: str) -> None:
    """One sentence each."""
    with pytest.raises(UserError) as refused:
        call()
    assert str(refused.value) == message


def test_an_unknown_part_is_refused() -> None:
    """The layer to be replaced has to be there."""
    spec = run_of(AttentionOnly(4))
    named = dict(spec.model.build(spec.domain, 2).named_parameters())
    now = {name: value.detach().numpy() for name, value in named.items()}
    reading = Reading(spec, 0, now, now, {}, Shared(spec))
    with pytest.raises(UserError) as refused:
        SuccessorAttention(given="attention0.pattern").read(reading)
    assert str(refused.value) == (
        "The model attention_only(4) has no part called 'attention0.pattern'. Did you mean "
        "attention1.pattern or attention2.pattern?"
    )
