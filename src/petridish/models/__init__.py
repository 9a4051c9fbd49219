"""What learns, and how it starts."""

from petridish.models.activations import (
    Activation,
    Identity,
    InfiniteZigzag,
    Oscillating,
    Power,
    ReLU,
    Sine,
    Zigzag,
)
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
from petridish.models.polynet import DisjointPolyNet, PolyNet

ACTIVATIONS: dict[str, type] = {
    a.name: a for a in (ReLU, Power, Identity, Zigzag, Oscillating, InfiniteZigzag, Sine)
}
INITS: dict[str, type] = {
    i.name: i
    for i in (Uniform, XavierUniform, KaimingGaussian, Bernoulli, Sparse, Paired, OverSparse)
}
MODELS: dict[str, type] = {m.name: m for m in (MLP, PolyNet, DisjointPolyNet)}

__all__ = [
    "ACTIVATIONS",
    "INITS",
    "MLP",
    "MODELS",
    "Activation",
    "Bernoulli",
    "DisjointPolyNet",
    "Identity",
    "InfiniteZigzag",
    "Init",
    "KaimingGaussian",
    "Model",
    "Oscillating",
    "OverSparse",
    "Paired",
    "Parameter",
    "PolyNet",
    "Power",
    "ReLU",
    "Sine",
    "Sparse",
    "Uniform",
    "XavierUniform",
    "Zigzag",
]
