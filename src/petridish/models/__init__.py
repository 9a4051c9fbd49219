"""What learns, and how it starts."""

from petridish.models.activations import Activation, Identity, Power, ReLU
from petridish.models.base import Init, Model, Parameter
from petridish.models.inits import (
    Bernoulli,
    KaimingGaussian,
    OverSparse,
    Paired,
    Sparse,
    Uniform,
    XavierUniform,
)
from petridish.models.mlp import MLP

ACTIVATIONS: dict[str, type] = {a.name: a for a in (ReLU, Power, Identity)}
INITS: dict[str, type] = {
    i.name: i
    for i in (Uniform, XavierUniform, KaimingGaussian, Bernoulli, Sparse, Paired, OverSparse)
}
MODELS: dict[str, type] = {m.name: m for m in (MLP,)}

__all__ = [
    "ACTIVATIONS",
    "INITS",
    "MLP",
    "MODELS",
    "Activation",
    "Bernoulli",
    "Identity",
    "Init",
    "KaimingGaussian",
    "Model",
    "OverSparse",
    "Paired",
    "Parameter",
    "Power",
    "ReLU",
    "Sparse",
    "Uniform",
    "XavierUniform",
]
