"""Graph-to-graph differentiation and batching. Knows the contract of ops, no op in particular."""

from retrograd.autodiff.batching import batch, batched
from retrograd.autodiff.forward import pushforward, tangent
from retrograd.autodiff.reverse import (
    Cotangents,
    Visit,
    contributions,
    depends,
    gradient,
    pullback,
    seeds,
    walk,
)

__all__ = [
    "Cotangents",
    "Visit",
    "batch",
    "batched",
    "contributions",
    "depends",
    "gradient",
    "pullback",
    "pushforward",
    "seeds",
    "tangent",
    "walk",
]
