"""Graph-to-graph differentiation and batching. Knows the contract of ops, no op in particular."""

from retrograd.autodiff.batching import batch, batched
from retrograd.autodiff.forward import pushforward, tangent
from retrograd.autodiff.reverse import (
    Cotangents,
    bilinear_pullback,
    contributions,
    depends,
    gradient,
    pullback,
    seeds,
)

__all__ = [
    "Cotangents",
    "batch",
    "batched",
    "bilinear_pullback",
    "contributions",
    "depends",
    "gradient",
    "pullback",
    "pushforward",
    "seeds",
    "tangent",
]
