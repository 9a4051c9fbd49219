"""The parameters of a module, read off it: names, shapes, and what initialisations go by."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from petridish.choices import blamed, placed
from petridish.errors import UserError
from petridish.models.base import FitsItself, Kind, Model, Parameter, Stacked
from petridish.seeds import Streams
from petridish.tasks.domain import Domain

if TYPE_CHECKING:
    from torch import nn


def parameters_of(model: Model, domain: Domain, n_outputs: int) -> tuple[Parameter, ...]:
    """List the parameters of a model: as it says itself, or as its module has them."""
    if isinstance(model, FitsItself):
        return ()
    if isinstance(model, Stacked):
        return model.parameters(domain, n_outputs)
    return _of_module(model, domain, n_outputs)


@lru_cache(maxsize=256)
def _of_module(model: Model, domain: Domain, n_outputs: int) -> tuple[Parameter, ...]:
    return read_parameters(build(model, domain, n_outputs))


def build(model: Model, domain: Domain, n_outputs: int, seed: int = 0) -> nn.Module:
    """Return a model's module as it is built in the run `seed`; the caller's generator is kept."""
    from torch import nn

    with blamed("model", model, "build", domain=domain, n_outputs=n_outputs):
        module = seeded(lambda: model.build(domain, n_outputs), seed)
    if not isinstance(module, nn.Module):
        raise UserError(
            f"The model {placed(model)} built {module!r}, which is no torch.nn.Module. Return "
            "one from build."
        )
    if not any(True for _ in module.parameters()):
        raise UserError(
            f"The model {placed(model)} built a module without parameters: there is nothing to "
            "train. Register its layers as attributes of the module."
        )
    return module


def seeded(make: Callable[[], nn.Module], seed: int) -> nn.Module:
    """Build a module with PyTorch's generator set from the run's stream "init/module"."""
    import torch

    word = int(Streams([seed], "init/module").words(0, 1)[0, 0]) % 2**63
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(word)
        return make()


def read_parameters(module: nn.Module) -> tuple[Parameter, ...]:
    """List a module's parameters.

    A layer is a submodule with parameters of its own, counted in their order. A vector is a bias
    if it is called so, else a scale; its fans are those of the weights beside it.
    """
    found, layers = [], dict[str, int]()
    named = dict(module.named_parameters())
    shapes = {name: tuple(parameter.shape) for name, parameter in named.items()}
    for name, shape in shapes.items():
        owner, _, leaf = name.rpartition(".")
        layer = layers.setdefault(owner, len(layers))
        weights = leaf.replace("bias", "weight", 1)  # `bias_ih_l0` belongs to `weight_ih_l0`
        beside = shapes.get(f"{owner}.{weights}" if owner else weights, shape)
        wide = shape if len(shape) > 1 else beside
        if len(wide) > 1:
            area = math.prod(wide[2:])
            fan_in, fan_out = wide[1] * area, wide[0] * area
        else:
            fan_in = fan_out = shape[0] if shape else 1
        trained = named[name].requires_grad
        found.append(
            Parameter(name, shape, fan_in, fan_out, layer, _kind(leaf, shape), trained=trained)
        )
    return tuple(found)


def _kind(leaf: str, shape: tuple[int, ...]) -> Kind:
    if len(shape) > 1:
        return "weight"
    return "bias" if leaf.startswith("bias") else "scale"
