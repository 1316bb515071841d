"""Neural networks: modules, layers, losses, initial values."""

from retrograd.nn import functional, init, losses
from retrograd.nn.activation import GELU, Flatten, ReLU, Sigmoid, SiLU, Tanh
from retrograd.nn.attention import MultiHeadAttention
from retrograd.nn.containers import ModuleList, Sequential
from retrograd.nn.dropout import Dropout
from retrograd.nn.embedding import Embedding
from retrograd.nn.linear import Identity, Linear
from retrograd.nn.module import LoadResult, Module
from retrograd.nn.normalization import LayerNorm, RMSNorm
from retrograd.nn.parameter import Parameter

__all__ = [
    # modules
    "LoadResult",
    "Module",
    "ModuleList",
    "Parameter",
    "Sequential",
    # layers
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
