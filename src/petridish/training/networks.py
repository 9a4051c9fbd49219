"""A stack of networks of one model, as the engine `torch` computes it.

A model that is `Stacked` computes the stack itself. The module of any other is stacked by
`torch.func`, after a trial with two runs has shown that the stack computes what each module
computes alone.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import vmap

from petridish.choices import blamed, describe
from petridish.errors import UserError
from petridish.models import Model, Stacked
from petridish.models.parameters import build
from petridish.tasks import Task
from petridish.tasks.base import draw_examples
from petridish.training.data import initial_buffers
from petridish.training.devices import CPU, Device, with_numbers
from petridish.training.noise import Call, Given, draw_numbers, note_calls
from petridish.training.numerics import dtype_of, with_floats
from petridish.training.readings import Compiled
from petridish.training.spec import RunSpec
from petridish.training.taught import Taught
from petridish.training.user_code_checks import output_shape
from petridish.values import has_users

TRIED = 3  # examples of a trial
CLOSE = 1e-4  # relative to the largest output: more than rounding of another kernel


class Network(ABC):
    """The networks of a stack; `buffers` are what they keep beside their weights, (run, …)."""

    buffers: dict[str, Tensor]
    by_example = False  # whether an example's outputs have the same bits whatever is beside it
    compiled: Compiled | None = None
    """Of a single run, for its instruments: see `Reading.of_network`."""

    @abstractmethod
    def train(
        self, weights: Sequence[Tensor], x: Tensor, seeds: Sequence[int], step: int
    ) -> Tensor:
        """Return the outputs (run, batch, …) in training, at a step of the runs `seeds`."""

    @abstractmethod
    def test(self, weights: Sequence[Tensor], x: Tensor, rows: Tensor | None) -> Tensor:
        """Return the outputs in evaluation, of the runs `rows` of the stack or of all."""

    def test_last(self, weights: Sequence[Tensor], x: Tensor, rows: Tensor | None) -> Tensor:
        """Return outputs of which the last position alone is read: others may be left out."""
        return self.test(weights, x, rows)

    def keep(self, kept: Callable[[Tensor], Tensor]) -> None:
        """Keep some runs of the stack: those that `kept` returns of a tensor (run, …)."""
        self.buffers = {name: kept(buffer) for name, buffer in self.buffers.items()}


class OwnForward(Network):
    """The stack that a model computes itself; an activation of it may be a user's."""

    def __init__(self, model: Stacked, device: Device = CPU) -> None:
        self.model = model
        self.device = device if has_users(model) else CPU
        self.buffers = {}

    def train(
        self, weights: Sequence[Tensor], x: Tensor, seeds: Sequence[int], step: int
    ) -> Tensor:
        """Return the model's outputs."""
        with made_on(self.device):
            found = self.model.forward(weights, x)
        return found

    def test(self, weights: Sequence[Tensor], x: Tensor, rows: Tensor | None) -> Tensor:
        """Return the model's outputs."""
        with made_on(self.device):
            found = self.model.forward(weights, x)
        return found


class ModuleStack(Network):
    """Modules stacked by `torch.func`."""

    def __init__(
        self,
        module: nn.Module,
        calls: Sequence[Call],
        full: int,
        buffers: dict[str, Tensor],
        device: Device = CPU,
    ) -> None:
        self.module, self.buffers, self.device = module, buffers, device
        self.calls, self.full = calls, full  # as noted on a full batch
        self.places = _places(module)
        self.stacked = vmap(self._one)

    def train(
        self, weights: Sequence[Tensor], x: Tensor, seeds: Sequence[int], step: int
    ) -> Tensor:
        """Return the outputs in training; buffers such as running means move with it."""
        examples = x.shape[1]
        numbers = draw_numbers(
            self.calls, seeds, step, full=self.full, examples=examples, device=self.device
        )
        if not self.module.training:  # `train` visits all of its parts
            self.module.train()
        with made_on(self.device):
            found: Tensor = self.stacked(x, numbers, *weights, *self.buffers.values())
        return found

    def test(self, weights: Sequence[Tensor], x: Tensor, rows: Tensor | None) -> Tensor:
        """Return the outputs in evaluation."""
        self.module.eval()
        buffers = self.buffers.values()
        kept = buffers if rows is None else [buffer[rows] for buffer in buffers]
        with made_on(self.device):
            found: Tensor = self.stacked(x, [], *weights, *kept)
        return found

    def _one(self, x: Tensor, numbers: list[Tensor], *state: Tensor) -> Tensor:
        """Return the outputs of one run, with its parameters and buffers in place of the module's.

        `torch.func.functional_call` does the same but looks up every name at each call.
        """
        before = [holder[name] for place in self.places for holder, name in place]
        try:
            for place, own in zip(self.places, state, strict=True):
                for holder, name in place:
                    holder[name] = own
            with Given(numbers) if numbers else nullcontext():
                outputs: Tensor = self.module(x)
            return outputs
        finally:
            flat = (at for place in self.places for at in place)
            for (holder, name), own in zip(flat, before, strict=True):
                holder[name] = own


def made_on(device: Device) -> AbstractContextManager[object]:
    """Let what a user's class makes, such as `torch.arange(n)` in `forward`, lie on a device."""
    return nullcontext() if device.host else torch.device(device.name)


def _places(module: nn.Module) -> list[list[tuple[dict[str, Any], str]]]:
    """Return where a module holds each parameter, then each buffer: a tied one, at several."""
    found: dict[int, list[tuple[dict[str, Any], str]]] = {}
    for kind in ("_parameters", "_buffers"):
        for part in module.modules():
            holder = getattr(part, kind)
            for name, own in holder.items():
                if own is not None:
                    found.setdefault(id(own), []).append((holder, name))
    return list(found.values())


def first_buffers(spec: RunSpec, dtype: torch.dtype) -> dict[str, Tensor]:
    """Return the buffers with which the module of a run begins."""
    module = build(spec.model, spec.domain, spec.n_outputs, spec.luck).to(dtype)
    load_buffers(module, spec)
    return dict(module.named_buffers())


def load_buffers(module: nn.Module, spec: RunSpec) -> None:
    """Load into a module the buffers that a run takes over from another."""
    given = {name: torch.from_numpy(values) for name, values in initial_buffers(spec).items()}
    module.load_state_dict(given, strict=False)


def stack_of(specs: Sequence[RunSpec], device: Device = CPU) -> Network:
    """Return the networks of runs of one shape."""
    spec, model = specs[0], specs[0].model
    if isinstance(model, Stacked):
        return OwnForward(model, device)
    dtype, full = dtype_of(spec), spec.examples_per_step
    buffers: dict[str, Tensor] = {}
    with with_numbers():
        # It stays on the host: whatever it holds is replaced by what the stack holds.
        module = build(model, spec.domain, spec.n_outputs, spec.luck).to(dtype)
        calls = note_calls(module, batch_inputs(spec.task, full, dtype))
        if any(True for _ in module.buffers()):
            each = [first_buffers(spec, dtype) for spec in specs]
            buffers = {name: torch.stack([own[name] for own in each]) for name in each[0]}
    buffers = {name: device.take(stacked) for name, stacked in buffers.items()}
    return ModuleStack(module, calls, full, buffers, device)


def batch_inputs(task: Task, examples: int, dtype: torch.dtype) -> Tensor:
    """Return inputs of a task as a module takes them, some of them repeated if need be."""
    source = task.inputs if isinstance(task, Taught) else task  # no labels are asked for
    drawn = draw_examples(source, [0], "train", 0, min(examples, TRIED)).x[0]
    x = torch.from_numpy(drawn)[torch.arange(examples) % len(drawn)]
    return with_floats(x, dtype)


@lru_cache(maxsize=256)
def check_module(model: Model, task: Task, n_outputs: int) -> None:
    """Refuse a module whose outputs are not what the task asks for, or that draws by itself."""
    domain = task.domain
    module, x = build(model, domain, n_outputs), batch_inputs(task, TRIED, torch.float32)
    _check_repeats(model, module, x)
    module.eval()
    expected = (TRIED, *output_shape(domain, n_outputs))
    with torch.no_grad():
        found = {"module of": (module(x), expected)}
        if isinstance(model, Stacked):
            weights = [p.detach()[None] for p in module.parameters()]
            with blamed("model", model, "forward", x=x[None]):
                found["stacked form of"] = (model.forward(weights, x[None]), (1, *expected))
    for what, (outputs, asked) in found.items():
        shape = tuple(outputs.shape) if isinstance(outputs, Tensor) else type(outputs).__name__
        if shape != asked:
            raise UserError(
                f"The {what} {describe(model)} returned {shape} for {TRIED} examples of "
                f"{describe(task)}, and loss and task ask for the shape {asked}. Size it by the "
                "domain and n_outputs that build is given."
            )
    if bool(found["module of"][0].isnan().any()) and bool(x.isfinite().all()):
        raise UserError(
            f"The module of {describe(model)} returns NaN for finite inputs, with the weights that "
            "it begins with. Look for logarithms, roots and divisions that leave their domain."
        )
    with torch.no_grad():
        fewer = module(x[:2])  # one example would fail in batch normalisation
    if not _close(found["module of"][0][:2], fewer):
        raise UserError(
            f"The module of {describe(model)} answers an example by what others are beside it, in "
            "evaluation too. Let an output depend on its own example, as with nn.BatchNorm1d in "
            "evaluation."
        )


def _check_repeats(model: Model, module: nn.Module, x: Tensor) -> None:
    """Refuse random numbers that are not the run's, and state that is none of it."""
    with blamed("module of", model, "forward", x=x):
        note_calls(module, x)  # refuses what draws by PyTorch's generator
    name = f"The module of {describe(model)}"
    for training in (True, False):
        copies = [copy.deepcopy(module).train(training) for _ in range(2)]
        before = _numbers_of(copies[0])
        buffers = {key: buffer.clone() for key, buffer in module.named_buffers()}
        found = []
        for again in (*copies, copies[0]):
            with torch.no_grad(), Given() as noted:
                if training:  # which may change them, as running means are
                    for key, buffer in again.named_buffers():
                        buffer.copy_(buffers[key])
                found.append(again(x))
            if noted.calls and not training:
                raise UserError(
                    f"{name} draws random numbers in evaluation too. Draw them only where "
                    "self.training is true, as nn.Dropout does."
                )
        for key, buffer in copies[0].named_buffers():
            if not (training or _same(buffer, buffers[key])):
                raise UserError(
                    f"{name} changes its buffer {key} in evaluation: a run would depend on when it "
                    "is measured. Change it only where self.training is true, as nn.BatchNorm1d "
                    "does."
                )
        after = _numbers_of(copies[0])
        if changed := [key for key in after if after[key] != before.get(key)]:
            raise UserError(
                f"{name} changes its attribute {changed[0]} in forward, which is no part of the "
                "run's state: engines call a module at other times. Register a buffer, and change "
                "it where self.training is true, or leave it out."
            )
        if not all(isinstance(each, Tensor) for each in found):
            continue  # the check of its shape refuses it
        if not _same(found[0], found[1]):
            raise UserError(
                f"{name} returns other outputs for the same inputs and weights: it draws random "
                "numbers that are not the run's. Use nn.Dropout, torch.rand_like or "
                "torch.randn_like."
            )
        if not _same(found[0], found[2]):
            raise UserError(
                f"{name} returns other outputs when it is called again with the same inputs, "
                "weights and buffers: it keeps state, or draws random numbers, in attributes of "
                "its own. Register buffers, or use nn.Dropout, torch.rand_like or torch.randn_like."
            )


def _numbers_of(module: nn.Module) -> dict[str, object]:
    """Return the numbers and texts among the attributes of a module and its parts, by name."""
    return {
        f"{part}.{name}" if part else name: value
        for part, each in module.named_modules()
        for name, value in vars(each).items()
        if isinstance(value, int | float | str) and name != "training"
    }


def _same(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and torch.equal(one.nan_to_num(), other.nan_to_num())


def activations(spec: RunSpec) -> int:
    """Count the numbers that the layers of a run's network put out for one example, about."""
    if isinstance(spec.model, Stacked):
        return sum(parameter.fan_out for parameter in spec.parameters)
    return numbers_per_example(spec.model, spec.task, spec.n_outputs)


@lru_cache(maxsize=256)
def numbers_per_example(model: Model, task: Task, n_outputs: int) -> int:
    """Count what the innermost parts of a module put out for one example: what a step holds."""
    module, x = build(model, task.domain, n_outputs).eval(), batch_inputs(task, 1, torch.float32)
    found = [0]

    def count(_module: nn.Module, _given: object, outputs: object) -> None:
        parts = outputs if isinstance(outputs, tuple) else (outputs,)
        found[0] += sum(part.numel() for part in parts if isinstance(part, Tensor))

    for part in module.modules():
        if not any(True for _ in part.children()):
            part.register_forward_hook(count)
    with torch.no_grad():
        module(x)
    return max(found[0], 1)


@lru_cache(maxsize=256)
def stacking_problem(model: Model, task: Task, n_outputs: int) -> str | None:
    """Return why `torch.func` cannot stack a model's modules, from a trial with two, or None.

    The stack must compute what each module computes alone, in training and in evaluation, and keep
    what each keeps.
    """
    dtype, domain = torch.float64, task.domain
    modules = [build(model, domain, n_outputs, seed).to(dtype) for seed in (0, 1)]
    x = batch_inputs(task, TRIED, dtype)
    calls = note_calls(modules[0], x)
    weights = [torch.stack(pair) for pair in zip(*(m.parameters() for m in modules), strict=True)]
    weights = [weight.detach() for weight in weights]
    try:
        owned = [dict(module.named_buffers()) for module in modules]
        buffers = {name: torch.stack([own[name] for own in owned]) for name in owned[0]}
        shell = build(model, domain, n_outputs).to(dtype)
        stack = ModuleStack(shell, calls, TRIED, buffers)
        both = torch.stack([x, x])
        with torch.no_grad():
            together = [stack.train(weights, both, (0, 1), 0), stack.test(weights, both, None)]
    except UserError:
        raise
    except Exception as error:  # whatever torch.func or the module raises
        return f"torch.func cannot stack it ({str(error).strip().splitlines()[0]})"
    for place, module in enumerate(modules):
        numbers = draw_numbers(calls, (place,), 0, full=TRIED, examples=TRIED)
        with torch.no_grad():
            module.train()
            with Given([each[0] for each in numbers]):
                alone = [module(x)]
            alone.append(module.eval()(x))
        kept = zip(module.buffers(), stack.buffers.values(), strict=True)
        pairs = [*zip(alone, (each[place] for each in together), strict=True)]
        pairs += [(own, stacked[place]) for own, stacked in kept]
        for own, stacked in pairs:
            if own.shape != stacked.shape or not _close(own, stacked):
                return "a stack of two computes something else than each alone"
    return None


def _close(one: Tensor, other: Tensor) -> bool:
    one, other = one.double(), other.double()
    size = float(one.abs().max()) if one.numel() else 0.0
    return bool(((one - other).abs() <= CLOSE * max(size, 1e-12)).all())
