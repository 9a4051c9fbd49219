"""Stacked members: gradients and steps against autograd and torch.optim."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from petridish.models import MLP, Sparse, Uniform
from petridish.training import SGD, Adam, AdamW
from petridish.training.members import MemberLoss, Members
from tests.domains import bits

LOSSES: list[tuple[MemberLoss, int]] = [("logistic", 1), ("cross_entropy", 3), ("square", 2)]
OPTIMISERS: list[SGD | Adam | AdamW] = [SGD(), SGD(0.9), Adam(), AdamW(0.8, 0.99)]


def start(members: int, n_inputs: int, widths: tuple[int, ...], n_outputs: int) -> list[Any]:
    """Draw the members' weights, the first layer 2-sparse where there are two inputs."""
    model = MLP(widths[0], deeper=widths[1:])
    init = Sparse(2) if n_inputs > 1 else Uniform()
    return init.draw(model.parameters(bits(n_inputs), n_outputs), range(members))


def batch(
    loss: MemberLoss, members: int, size: int, n_inputs: int, n_outputs: int, *, seed: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Draw inputs, targets and weights, a batch of its own for each member."""
    rng = torch.Generator().manual_seed(seed)
    x = torch.randn(members, size, n_inputs, generator=rng)
    target = torch.rand(members, size, n_outputs, generator=rng)
    if loss == "cross_entropy":
        target = target / target.sum(dim=2, keepdim=True)
    return x, target, torch.rand(members, size, generator=rng)


def loss_by_autograd(
    loss: MemberLoss, weights: list[Tensor], x: Tensor, target: Tensor, weight: Tensor
) -> Tensor:
    """Return one member's loss, written as PyTorch's own layers and losses."""
    h = x
    for layer in range(0, len(weights) - 2, 2):
        h = torch.nn.functional.linear(h, weights[layer], weights[layer + 1]).relu()
    f = torch.nn.functional.linear(h, weights[-2], weights[-1])
    if loss == "square":
        each = 0.5 * (f - target).square().sum(dim=1)
    elif loss == "logistic":
        each = torch.nn.functional.binary_cross_entropy_with_logits(
            f, target, reduction="none"
        ).sum(dim=1)
    else:
        each = torch.nn.functional.cross_entropy(f, target, reduction="none")
    return (each * weight).mean()


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from(LOSSES),
    st.integers(1, 3),
    st.integers(1, 6),
    st.integers(1, 9),
    st.lists(st.integers(1, 7), min_size=1, max_size=3),
    st.integers(0, 2**20),
)
def test_gradients_are_autograds(
    loss_and_outputs: tuple[MemberLoss, int],
    members: int,
    n_inputs: int,
    size: int,
    widths: list[int],
    seed: int,
) -> None:
    """For every loss, depth and shape the backward pass by hand gives what autograd gives."""
    loss, n_outputs = loss_and_outputs
    drawn = start(members, n_inputs, tuple(widths), n_outputs)
    x, target, weight = batch(loss, members, size, n_inputs, n_outputs, seed=seed)
    found = Members(drawn, loss=loss, optimiser=SGD()).gradients(x, target, weight)
    for member in range(members):
        own = [torch.tensor(values[member], requires_grad=True) for values in drawn]
        value = loss_by_autograd(loss, own, x[member], target[member], weight[member])
        for mine, theirs in zip(found, torch.autograd.grad(value, own), strict=True):
            assert torch.allclose(mine[member], theirs, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("optimiser", OPTIMISERS, ids=repr)
@pytest.mark.parametrize(("loss", "n_outputs"), LOSSES)
def test_steps_are_those_of_torch_optim(
    loss: MemberLoss, n_outputs: int, optimiser: SGD | Adam | AdamW
) -> None:
    """After 20 steps with a rate and a decay for each parameter, weights and losses agree."""
    drawn = start(2, 4, (8, 5), n_outputs)
    rates = [0.01 * (1 + place) for place in range(6)]
    decays = [0.02 * place for place in range(6)]
    members = Members(drawn, loss=loss, optimiser=optimiser)
    twins = [[torch.tensor(v[m], requires_grad=True) for v in drawn] for m in range(2)]
    optims = [torch_optimiser(optimiser, twin, rates, decays) for twin in twins]
    for step in range(20):
        x, target, weight = batch(loss, 2, 7, 4, n_outputs, seed=step)
        losses = members.step(x, target, weight, rate=rates, decay=decays)
        for m, (twin, optim) in enumerate(zip(twins, optims, strict=True)):
            value = loss_by_autograd(loss, twin, x[m], target[m], weight[m])
            assert losses[m].item() == pytest.approx(value.item(), rel=1e-4)
            optim.zero_grad()
            value.backward()  # type: ignore[no-untyped-call] # PyTorch's own has no types
            optim.step()
    for place, weight in enumerate(members.weights):
        for m, twin in enumerate(twins):
            assert torch.allclose(weight[m], twin[place], rtol=1e-4, atol=1e-5)


def torch_optimiser(
    rule: SGD | Adam | AdamW, weights: list[Tensor], rates: list[float], decays: list[float]
) -> torch.optim.Optimizer:
    """Return PyTorch's optimiser of a rule, with a rate and a decay for each weight."""
    groups: list[dict[str, Any]] = [
        {"params": [w], "lr": rate, "weight_decay": decay}
        for w, rate, decay in zip(weights, rates, decays, strict=True)
    ]
    if isinstance(rule, SGD):
        return torch.optim.SGD(groups, lr=0.0, momentum=rule.momentum)
    kind = torch.optim.AdamW if isinstance(rule, AdamW) else torch.optim.Adam
    return kind(groups, betas=(rule.beta1, rule.beta2), eps=rule.epsilon)


def test_members_that_share_a_batch_are_those_that_hold_copies() -> None:
    """Inputs, targets and weights without a member axis serve every member."""
    x, target, weight = batch("logistic", 1, 9, 3, 1, seed=0)
    shared = Members(start(3, 3, (6,), 1), loss="logistic", optimiser=Adam())
    copied = Members(start(3, 3, (6,), 1), loss="logistic", optimiser=Adam())
    for _ in range(5):
        one = shared.step(x[0], target[0], weight[0], rate=0.01)
        two = copied.step(x.repeat(3, 1, 1), target.repeat(3, 1, 1), weight.repeat(3, 1), rate=0.01)
        assert torch.allclose(one, two, rtol=1e-6)
    assert torch.allclose(shared.outputs(x[0]), copied.outputs(x.repeat(3, 1, 1)), rtol=1e-5)


def test_the_start_is_copied_and_an_unknown_loss_refused() -> None:
    """Training changes the members' weights, not the arrays they started from."""
    drawn = start(1, 3, (4,), 1)
    before = [values.copy() for values in drawn]
    members = Members(drawn, loss="square", optimiser=SGD())
    members.step(torch.ones(2, 3), torch.ones(2, 1), rate=0.1)
    assert all((a == b).all() for a, b in zip(drawn, before, strict=True))
    assert members.depth == 1
    known = "Members: loss='hinge'. Give one of ('logistic', 'cross_entropy', 'square')."
    with pytest.raises(ValueError, match=f"^{re.escape(known)}$"):
        Members(drawn, loss="hinge", optimiser=SGD())  # type: ignore[arg-type] # the mistake meant
