"""Neural networks: modules, layers, losses, initial values."""

from retrograd.nn import functional, init, losses
from retrograd.nn.activation import GELU, Flatten, ReLU, Sigmoid, SiLU, Tanh
from retrograd.nn.attention import MultiHeadAttention
from retrograd.nn.containers import ModuleList, Sequential
from retrograd.nn.convolution import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from retrograd.nn.dropout import Dropout
from retrograd.nn.embedding import Embedding
from retrograd.nn.linear import Identity, Linear
from retrograd.nn.module import LoadResult, Module
from retrograd.nn.normalization import LayerNorm, RMSNorm
from retrograd.nn.parameter import Parameter
from retrograd.nn.pooling import (
    AdaptiveAvgPool1d,
    AdaptiveAvgPool2d,
    AdaptiveAvgPool3d,
    AvgPool1d,
    AvgPool2d,
    AvgPool3d,
    MaxPool1d,
    MaxPool2d,
    MaxPool3d,
)

__all__ = [
    # modules
    "LoadResult",
    "Module",
    "ModuleList",
    "Parameter",
    "Sequential",
    # layers
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "Dropout",
    "Embedding",
    "Flatten",
    "GELU",
    "Identity",
    "LayerNorm",
    "Linear",
    "MultiHeadAttention",
    "RMSNorm",
    "ReLU",
    "SiLU",
    "Sigmoid",
    "Tanh",
    # functions
    "functional",
    "init",
    "losses",
]
