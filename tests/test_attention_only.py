"""The attention-only transformer against its formula, and against the paper's construction."""

from __future__ import annotations

from itertools import product
from math import exp, sqrt

import numpy as np
import pytest
import torch

from petridish.errors import UserError
from petridish.models import AttentionOnly
from petridish.models.modules import AttentionOnlyModule, CausalAttention
from petridish.tasks import BiasedAnd, MarkovChains, SparseParity
from petridish.tasks.base import Task


def module_of(k: int, length: int, d: int, layers: int = 2, heads: int = 1) -> AttentionOnlyModule:
    """Return a module in double precision with weights of a usual size."""
    built = AttentionOnly(d, layers, heads).build(MarkovChains(k, length).domain, k).double()
    assert isinstance(built, AttentionOnlyModule)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in built.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator).double())
    return built


def layers_of(module: AttentionOnlyModule) -> list[CausalAttention]:
    """Return the layers of attention."""
    return [part for part in module.children() if isinstance(part, CausalAttention)]


@pytest.mark.parametrize("heads", [1, 3])
def test_outputs_are_those_of_the_formula(heads: int) -> None:
    """(8.4)–(8.5) written out with loops over heads, positions i, and tokens j."""
    k, t, d = 3, 5, 4
    module = module_of(k, t, d, heads=heads)
    x = torch.tensor([[0, 2, 1, 1, 0], [1, 1, 2, 0, 2]])
    for sequence, outputs in zip(x.tolist(), module(x).detach().numpy(), strict=True):
        z = [module.tokens[:, token].detach().numpy() for token in sequence]
        for layer in layers_of(module):
            named = {name: value.detach().numpy() for name, value in layer.named_parameters()}
            added = np.zeros((t, d))
            for own in np.split(np.arange(heads * d), heads):
                w_q, w_k, w_v = (named[f"{n}.weight"][own].T for n in ("query", "key", "value"))
                for i in range(t):
                    v = [named["positions"][own, i - j] for j in range(i + 1)]
                    sizes = [
                        exp(float((z[i] @ w_q) @ (z[j] @ w_k + v[j])) / sqrt(d))
                        for j in range(i + 1)
                    ]
                    taken = sum(sizes[j] * (z[j] @ w_v) for j in range(i + 1))
                    added[i] += taken / sum(sizes)
            z = [a + b for a, b in zip(z, added, strict=True)]
        expected = np.array(z) @ module.output.weight.detach().numpy().T
        np.testing.assert_allclose(outputs, expected, rtol=1e-9)


def test_the_papers_construction_computes_bigram_frequencies() -> None:
    """Proposition 8.2 on all 64 sequences of six tokens of two states.

    Outputs are frequencies, not counts, and the first token has only itself to attend to, which
    counts as a transition x_1 → x_1 (docs/results/induction.md); a token that never had a
    successor attends to all alike.
    """
    k, t, c = 2, 6, 200.0
    d = 3 * k
    module = module_of(k, t, d)
    one, zero = torch.eye(k).double(), torch.zeros(k, k).double()
    first, second = layers_of(module)

    def blocks(*rows: list[torch.Tensor]) -> torch.Tensor:
        return torch.cat([torch.cat(row, dim=1) for row in rows])

    def put(parameter: torch.Tensor, rows: torch.Tensor) -> None:
        parameter.copy_(rows.T)  # the paper multiplies rows from the left

    with torch.no_grad():
        for parameter in module.parameters():
            parameter.zero_()
        module.tokens[:k] = one
        first.positions[:k, 1] = 1.0  # v_2: one token back
        empty = [zero, zero, zero]
        put(first.query.weight, blocks([c * one, zero, zero], empty, empty))
        put(first.value.weight, blocks([zero, one, zero], empty, empty))
        put(second.query.weight, blocks([c * one, zero, zero], empty, empty))
        put(second.key.weight, blocks(empty, [c * one, zero, zero], empty))
        put(second.value.weight, blocks([zero, zero, one], empty, empty))
        module.output.weight.copy_(torch.cat([zero, zero, one], dim=1))

    x = torch.tensor(list(product(range(k), repeat=t)))
    for sequence, outputs in zip(x.tolist(), module(x).detach().numpy(), strict=True):
        before = [sequence[0], *sequence[:-1]]
        for i in range(t):
            after = [sequence[j] for j in range(i + 1) if before[j] == sequence[i]]
            after = after or sequence[: i + 1]
            shares = [after.count(j) / len(after) for j in range(k)]
            np.testing.assert_allclose(outputs[i], shares, atol=1e-12)


def test_no_position_sees_a_later_token() -> None:
    """Another token at place 4 changes no output before it."""
    module = module_of(3, 7, 5)
    x = torch.tensor([[0, 1, 2, 0, 1, 2, 0]])
    other = x.clone()
    other[0, 4] = 0
    here, there = module(x), module(other)
    torch.testing.assert_close(here[:, :4], there[:, :4])
    assert not torch.allclose(here[:, 4:], there[:, 4:])


def test_the_usual_start_is_small_attention() -> None:
    """With t = 100 no share is four times that of another at the start: nearly uniform."""
    from petridish.training import CrossEntropy, Data, RunSpec, Training
    from petridish.training.data import initial_weights

    spec = RunSpec(
        task=MarkovChains(3, 100),
        data=Data(n_test=10),
        model=AttentionOnly(),
        training=Training(loss=CrossEntropy(), target_error=None),
    )
    names = [parameter.name for parameter in spec.parameters]
    drawn = dict(zip(names, (w[0] for w in initial_weights([spec])), strict=True))
    module = AttentionOnly().build(spec.domain, 3)
    module.load_state_dict({name: torch.from_numpy(value) for name, value in drawn.items()})
    seen: list[torch.Tensor] = []
    for part in ("attention1.pattern", "attention2.pattern"):
        module.get_submodule(part).register_forward_hook(lambda _m, _i, out: seen.append(out))
    module(torch.from_numpy(spec.task.draw([0], "test", 0, 4).x[0]))
    for shares in seen:
        last = shares[:, -1]
        assert (last.amax(dim=1) < 4 * last.amin(dim=1)).all()
        torch.testing.assert_close(last.sum(dim=1), torch.ones(4))


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (
            SparseParity(5, 2),
            "AttentionOnly embeds tokens, and the task's inputs are Bits(n=5). Give a task of "
            "tokens.",
        ),
        (
            BiasedAnd(5, 2),
            "AttentionOnly answers at each of 5 positions, and the task has 2 classes. Give a task "
            "with a label at every position.",
        ),
    ],
)
def test_other_tasks_are_refused(task: Task, message: str) -> None:
    """By listing the parameters and by building the module."""
    for ask in (AttentionOnly().parameters, AttentionOnly().build):
        with pytest.raises(UserError) as refused:
            ask(task.domain, 2)
        assert str(refused.value) == message
