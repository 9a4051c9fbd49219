"""Modules in a stack: tied parameters, what a module is left with, gradients in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import pytest
import torch
from torch import Tensor, nn

from petridish.models.parameters import build
from petridish.tasks import Domain
from petridish.testing import check_engine, short_run
from petridish.training import SGD, Adam, AdamW, RunSpec, load_engine
from petridish.training.engines.stack import _stacked_weights
from petridish.training.networks import ModuleStack, stack_of, stacking_problem
from petridish.training.noise import Given, draw_numbers
from petridish.training.updates import make_update
from tests.own_parts import Convolved, Dropped, Stripes, Waves


class TiedModule(nn.Module):
    """One matrix used forwards and, transposed, backwards; a buffer under two names."""

    means: Tensor

    def __init__(self, n_inputs: int, width: int, n_outputs: int) -> None:
        super().__init__()
        self.first = nn.Linear(n_inputs, width)
        self.back = nn.Linear(n_inputs, width)
        self.back.weight = self.first.weight
        self.norm = nn.BatchNorm1d(n_inputs)
        self.register_buffer("means", self.norm.running_mean)
        self.output = nn.Linear(n_inputs, n_outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs of inputs that went through the tied matrix twice."""
        hidden = torch.tanh(self.first(x))
        again = torch.tanh(hidden @ self.back.weight + self.means)
        outputs: Tensor = self.output(self.norm(again))
        return outputs


@dataclass(frozen=True)
class Tied:
    """A module with a tied parameter and a tied buffer."""

    name: ClassVar[str] = "tied"
    width: int = 4

    def build(self, domain: Domain, n_outputs: int) -> nn.Module:
        """Return the module."""
        return TiedModule(domain.n_inputs, self.width, n_outputs)


def test_a_tied_parameter_has_the_value_of_its_run_in_every_place() -> None:
    """In a stack, alone and by the reference; a buffer of two names is one state, too."""
    spec = short_run(Waves(), Tied())

    assert [p.name for p in spec.parameters].count("back.weight") == 0
    assert stacking_problem(spec.model, spec.task, spec.n_outputs) is None
    check_engine(load_engine("torch"), spec)


def by_functional_call(
    module: nn.Module,
    weights: Sequence[Tensor],
    buffers: dict[str, Tensor],
    x: Tensor,
    numbers: list[Tensor],
) -> Tensor:
    """Return the outputs of a stack by PyTorch's own way to put parameters into a module."""
    names = [name for name, _ in module.named_parameters()]

    def one(own: list[Tensor], kept: dict[str, Tensor], x: Tensor, drawn: list[Tensor]) -> Tensor:
        state = {**dict(zip(names, own, strict=True)), **kept}
        with Given(drawn):
            outputs: Tensor = torch.func.functional_call(module, state, (x,))
        return outputs

    found: Tensor = torch.func.vmap(one)(list(weights), buffers, x, numbers)
    return found


@pytest.mark.parametrize("model", [Tied(), Dropped()], ids=lambda model: model.name)
def test_a_stack_computes_what_functional_call_computes(model: Tied | Dropped) -> None:
    """Outputs and moved buffers of a training step, with its random numbers."""
    spec = short_run(Waves(), model)
    specs = [replace(spec, seed=seed) for seed in (3, 4)]
    network = stack_of(specs)
    assert isinstance(network, ModuleStack)
    weights = _stacked_weights(specs)
    buffers = {name: buffer.clone() for name, buffer in network.buffers.items()}
    x = torch.randn(2, 8, 3, generator=torch.Generator().manual_seed(0))
    numbers = draw_numbers(network.calls, (3, 4), 5, full=8, examples=8)
    module = build(model, spec.domain, spec.n_outputs).train()

    found = network.train(weights, x, (3, 4), 5)

    torch.testing.assert_close(found, by_functional_call(module, weights, buffers, x, numbers))
    for name, buffer in network.buffers.items():
        torch.testing.assert_close(buffer, buffers[name])


def test_a_module_gets_its_own_parameters_back() -> None:
    """After a step, and after one that fails on the way, it holds what it held before."""
    spec = short_run(Stripes(), Convolved())
    network = stack_of([spec, replace(spec, seed=1)])
    assert isinstance(network, ModuleStack)
    weights = _stacked_weights([spec, replace(spec, seed=1)])
    before = [*network.module.parameters(), *network.module.buffers()]

    network.train(weights, torch.zeros(2, 8, 1, 6, 6), (0, 1), 0)
    with pytest.raises(RuntimeError):
        network.train(weights, torch.zeros(2, 8, 7), (0, 1), 0)

    after = [*network.module.parameters(), *network.module.buffers()]
    assert all(own is held for own, held in zip(after, before, strict=True))


@pytest.mark.parametrize("optimiser", [SGD(), SGD(momentum=0.9), Adam(), AdamW()], ids=repr)
def test_an_update_does_not_depend_on_how_a_gradient_lies_in_memory(optimiser: SGD | Adam) -> None:
    """Autograd may return a transposed gradient; the weights stay as they lie."""
    spec: RunSpec = short_run(Waves(), Dropped())
    spec = replace(spec, training=replace(spec.training, optimiser=optimiser))
    found = []
    for transposed in (False, True):
        weights = _stacked_weights([spec, replace(spec, seed=1)])
        update = make_update([spec, replace(spec, seed=1)], weights)
        for step in range(3):
            gradients = [weight.sin() + step for weight in weights]
            if transposed:
                gradients = [g.mT.contiguous().mT if g.dim() == 3 else g for g in gradients]
            update(weights, gradients, step)
        assert all(weight.is_contiguous() for weight in weights)
        found.append(weights)

    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)
