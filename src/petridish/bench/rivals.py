"""The rivals of a benchmark: engines, the papers' loop, JAX where installed."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from petridish.models import MLP
from petridish.tasks import Domain, SparseParity
from petridish.training import ONLINE, Data, Evaluation, RunSpec, Silent, Training, load_engine
from petridish.training.native.library import ISA_VARIABLE, chosen_set, instruction_sets, is_built

if TYPE_CHECKING:
    from torch import nn

BATCH = 32


class Shape(NamedTuple):
    """Inputs, width, and examples a step."""

    n: int
    width: int
    batch: int = BATCH


SHAPES = (
    *(Shape(50, width) for width in (10, 100, 1000, 10_000, 100_000)),
    *(Shape(200, width) for width in (100, 1000, 10_000)),
    Shape(50, 1000, 1024),
)
TYPICAL = Shape(50, 100)  # where variants of the native engine are compared
TURN_SECONDS, QUICK_TURN_SECONDS = 0.5, 0.25


def spec_of(n: int, width: int, steps: int, seed: int = 0, batch: int = BATCH) -> RunSpec:
    """Return a run that neither learns nor memorises its task within the time.

    So every run uses its whole budget, and nearly every example has a loss: engines that skip
    examples without a loss gain nothing.
    """
    return RunSpec(
        task=SparseParity(n, 20),
        data=Data(m=20_000, n_test=1000),
        model=MLP(width=width),
        training=Training(steps=steps, batch_size=batch),
        evaluation=Evaluation(every=steps),
        seed=seed,
    )


def _online(spec: RunSpec) -> RunSpec:
    return replace(spec, data=replace(spec.data, m=ONLINE))


def with_evaluations(spec: RunSpec) -> RunSpec:
    """Evaluate a run on 10,000 held-out examples at the default schedule."""
    return replace(spec, data=replace(spec.data, n_test=10_000), evaluation=Evaluation())


@dataclass(frozen=True)
class PlainMLP:
    """The same network as a plain module, stacked by torch.func: what that costs."""

    name: ClassVar[str] = "plain_mlp"

    width: int

    def build(self, domain: Domain, n_outputs: int) -> nn.Module:
        """Return the network: two linear layers with a ReLU between them."""
        from torch import nn

        hidden = nn.Linear(domain.n_inputs, self.width)
        return nn.Sequential(hidden, nn.ReLU(), nn.Linear(self.width, n_outputs))


def _as_module(spec: RunSpec) -> RunSpec:
    assert isinstance(spec.model, MLP)
    return replace(spec, model=PlainMLP(spec.model.width))


@dataclass(frozen=True)
class Rival:
    """A way to train: an engine and how its runs differ, or one of the loops below.

    `isa` forces the native engine's instructions; `key` names it in results.
    """

    key: str
    engine: str = ""
    variant: Callable[[RunSpec], RunSpec] | None = None
    isa: str = ""

    def prepare(self, shape: Shape) -> Callable[[int], int]:
        """Return a function that takes about a given number of model-steps and returns how many."""
        if self.isa:
            os.environ[ISA_VARIABLE] = self.isa
        if self.engine:
            return _engine(self.engine, shape, self.variant)
        return {"naive": _naive, "jax": _jax}[self.key](shape)


def rivals(shape: Shape) -> list[Rival]:
    """Return the rivals at a shape: all that are installed."""
    found = [Rival("naive"), Rival("torch", "torch")]
    if shape == TYPICAL:
        found.append(Rival("torch, module", "torch", _as_module))
    if importlib.util.find_spec("jax"):
        found.append(Rival("jax"))
    if is_built():
        found.append(Rival("native", "native"))
    if is_built() and shape == TYPICAL:
        found += [
            Rival("native, online", "native", _online),
            Rival("native, evaluations", "native", with_evaluations),
        ]
        found += [
            Rival(f"native, {isa.name}", "native", isa=isa.name)
            for isa in instruction_sets()
            if isa.runs_here and isa != chosen_set()
        ]
    return found


def _naive(shape: Shape) -> Callable[[int], int]:
    """Prepare the papers' loop: one network, nn.Linear, autograd, torch.optim; no DataLoader."""
    import torch
    from torch import nn

    x_train, y_train = (torch.from_numpy(array) for array in _sample(shape))
    hidden, output = nn.Linear(shape.n, shape.width), nn.Linear(shape.width, 1)
    network = nn.Sequential(hidden, nn.ReLU(), output)
    optimiser = torch.optim.SGD(network.parameters(), lr=0.1, weight_decay=0.01)

    def steps(count: int) -> int:
        for _ in range(count):
            index = torch.randint(len(x_train), (shape.batch,))
            loss = torch.relu(1 - y_train[index] * network(x_train[index]).squeeze(1)).mean()
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call] # PyTorch's own has no types
            optimiser.step()
        return count

    return steps


def _sample(shape: Shape) -> tuple[Any, Any]:
    from petridish.training.data import training_examples

    spec = spec_of(shape.n, shape.width, 1)
    examples = training_examples([spec], 0, int(spec.data.m))
    return examples.x[0], (1 - 2 * examples.labels[0].astype("float32"))


def _jax(shape: Shape) -> Callable[[int], int]:
    """Prepare the fastest way in JAX: a few networks by vmap, many steps by scan, one core."""
    import jax
    import jax.numpy as jnp

    n, width = shape.n, shape.width
    stack, chunk = (8, 500) if width <= 100 else (2, 200) if width <= 1000 else (1, 50)
    x_train, y_train = (jnp.asarray(array) for array in _sample(shape))

    def start(key: Any) -> tuple[Any, ...]:
        keys, bound, bound_v = jax.random.split(key, 4), n**-0.5, width**-0.5
        return (
            jax.random.uniform(keys[0], (n, width), minval=-bound, maxval=bound),
            jax.random.uniform(keys[1], (width,), minval=-bound, maxval=bound),
            jax.random.uniform(keys[2], (width,), minval=-bound_v, maxval=bound_v),
            jax.random.uniform(keys[3], (), minval=-bound_v, maxval=bound_v),
        )

    def loss(parameters: tuple[Any, ...], index: Any) -> Any:
        w, b, v, beta = parameters
        f = jax.nn.relu(x_train[index] @ w + b) @ v + beta
        return jax.nn.relu(1 - y_train[index] * f).mean()

    def step(parameters: tuple[Any, ...], index: Any) -> tuple[Any, ...]:
        gradients = jax.grad(loss)(parameters, index)
        return tuple(0.999 * p - 0.1 * g for p, g in zip(parameters, gradients, strict=True))

    def many(parameters: tuple[Any, ...], key: Any) -> Any:
        index = jax.random.randint(key, (chunk, stack, shape.batch), 0, len(y_train))
        return jax.lax.scan(lambda p, i: (jax.vmap(step)(p, i), None), parameters, index)[0]

    compiled = jax.jit(many)
    state = jax.vmap(start)(jax.random.split(jax.random.key(0), stack))

    def steps(count: int) -> int:
        nonlocal state
        rounds = max(1, count // (stack * chunk))
        for turn in range(rounds):
            state = compiled(state, jax.random.key(turn))
        jax.block_until_ready(state)
        return rounds * stack * chunk

    return steps


def _engine(
    name: str, shape: Shape, variant: Callable[[RunSpec], RunSpec] | None
) -> Callable[[int], int]:
    """Prepare runs of an engine; sampling and the set-up of runs are included."""
    engine = load_engine(name)
    n, width, batch = shape
    stack = engine.stack_size(spec_of(n, width, 1, batch=batch)) if name == "torch" else 1

    def steps(count: int) -> int:
        each = max(1, count // stack)
        specs = [spec_of(n, width, each, seed, batch) for seed in range(stack)]
        for _ in engine.run([variant(spec) if variant else spec for spec in specs], Silent()):
            pass
        return each * stack

    return steps
