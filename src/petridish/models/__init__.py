"""What learns, and how it starts."""

from petridish.models.activations import (
    Activation,
    Identity,
    InfiniteZigzag,
    Oscillating,
    Power,
    ReLU,
    Sine,
    SmoothedTruncatedReLU,
    TruncatedReLU,
    Zigzag,
)
from petridish.models.attention_only import AttentionOnly
from petridish.models.bare_head import BareHead
from petridish.models.base import ChecksTask, FitsItself, Init, Model, Parameter, Stacked
from petridish.models.causal_transformer import CausalTransformer, PublishedInduction
from petridish.models.cls_transformer import ClsTransformer
from petridish.models.homogeneous import Homogeneous
from petridish.models.inits import (
    Bernoulli,
    Constant,
    KaimingGaussian,
    Normal,
    Projected,
    Seeded,
    Signs,
    Sparse,
    Uniform,
    XavierUniform,
)
from petridish.models.minimal_attention import MinimalAttention
from petridish.models.mlp import MLP
from petridish.models.module_inits import ByName, FromModule, Own, usual_start
from petridish.models.noisy_mlp import NoisyMLP
from petridish.models.paired_inits import OverSparse, Paired, SymmetricSigns
from petridish.models.parameters import parameters_of
from petridish.models.parity_transformer import ParityTransformer
from petridish.models.polynet import DisjointPolyNet, PolyNet
from petridish.models.resnet import ResNet
from petridish.models.tangent import Tangent, TangentStart

ACTIVATIONS: dict[str, type] = {
    a.name: a
    for a in (
        *(ReLU, Power, Identity, Zigzag, Oscillating, InfiniteZigzag, Sine),
        TruncatedReLU,
        SmoothedTruncatedReLU,
    )
}
INITS: dict[str, type] = {
    i.name: i
    for i in (
        *(Uniform, XavierUniform, KaimingGaussian, Bernoulli, Sparse, Paired, OverSparse),
        *(SymmetricSigns, Constant, Normal, Projected, Signs, Seeded, TangentStart, Own),
    )
}
MODELS: dict[str, type] = {
    m.name: m
    for m in (
        *(MLP, PolyNet, DisjointPolyNet, ParityTransformer, Tangent, Homogeneous),
        ClsTransformer,
        AttentionOnly,
        BareHead,
        *(MinimalAttention, CausalTransformer, PublishedInduction),
        NoisyMLP,
    )
}

__all__ = [
    "ACTIVATIONS",
    "INITS",
    "MLP",
    "MODELS",
    "Activation",
    "AttentionOnly",
    "BareHead",
    "Bernoulli",
    "ByName",
    "CausalTransformer",
    "ChecksTask",
    "ClsTransformer",
    "Constant",
    "DisjointPolyNet",
    "FitsItself",
    "FromModule",
    "Homogeneous",
    "Identity",
    "InfiniteZigzag",
    "Init",
    "KaimingGaussian",
    "MinimalAttention",
    "Model",
    "NoisyMLP",
    "Normal",
    "Oscillating",
    "OverSparse",
    "Own",
    "Paired",
    "Parameter",
    "ParityTransformer",
    "PolyNet",
    "Power",
    "Projected",
    "PublishedInduction",
    "ReLU",
    "ResNet",
    "Seeded",
    "Signs",
    "Sine",
    "SmoothedTruncatedReLU",
    "Sparse",
    "Stacked",
    "SymmetricSigns",
    "Tangent",
    "TangentStart",
    "TruncatedReLU",
    "Uniform",
    "XavierUniform",
    "Zigzag",
    "parameters_of",
    "usual_start",
]
