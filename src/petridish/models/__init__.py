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
from petridish.models.homogeneous import Homogeneous
from petridish.models.inits import (
    Bernoulli,
    Constant,
    KaimingGaussian,
    Normal,
    OverSparse,
    Paired,
    Seeded,
    Signs,
    Sparse,
    SymmetricSigns,
    TangentStart,
    Uniform,
    XavierUniform,
)
from petridish.models.mlp import MLP
from petridish.models.polynet import DisjointPolyNet, PolyNet
from petridish.models.tangent import Tangent
from petridish.models.transformer import ParityTransformer

ACTIVATIONS: dict[str, type] = {
    a.name: a for a in (ReLU, Power, Identity, Zigzag, Oscillating, InfiniteZigzag, Sine)
}
INITS: dict[str, type] = {
    i.name: i
    for i in (
        *(Uniform, XavierUniform, KaimingGaussian, Bernoulli, Sparse, Paired, OverSparse),
        *(SymmetricSigns, Constant, Normal, Signs, Seeded, TangentStart),
    )
}
MODELS: dict[str, type] = {
    m.name: m for m in (MLP, PolyNet, DisjointPolyNet, ParityTransformer, Tangent, Homogeneous)
}

__all__ = [
    "ACTIVATIONS",
    "INITS",
    "MLP",
    "MODELS",
    "Activation",
    "Bernoulli",
    "Constant",
    "DisjointPolyNet",
    "Homogeneous",
    "Identity",
    "InfiniteZigzag",
    "Init",
    "KaimingGaussian",
    "Model",
    "Normal",
    "Oscillating",
    "OverSparse",
    "Paired",
    "Parameter",
    "ParityTransformer",
    "PolyNet",
    "Power",
    "ReLU",
    "Seeded",
    "Signs",
    "Sine",
    "Sparse",
    "SymmetricSigns",
    "Tangent",
    "TangentStart",
    "Uniform",
    "XavierUniform",
    "Zigzag",
]
