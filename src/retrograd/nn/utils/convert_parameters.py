"""Parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import retrograd as rg
from retrograd.errors import ShapeError
from retrograd.functions.tensor.tensor import Tensor
from retrograd.nn.module.module import Module


def _listed(parameters: Module | Iterable[Tensor]) -> list[Any]:
    if isinstance(parameters, Tensor):
        raise TypeError("parameters are a module or several tensors, not one tensor")
    return list(parameters.parameters() if isinstance(parameters, Module) else parameters)


def parameters_to_vector(parameters: Module | Iterable[Tensor]) -> Tensor:
    """All numbers of parameters behind one another, `[n]`; gradients go through it. `ShapeError`
    without parameters.

    >>> import retrograd as rg
    >>> rg.nn.utils.parameters_to_vector([rg.ones((2, 1)), rg.zeros((1,))]).tolist()
    [1.0, 1.0, 0.0]
    """
    given = _listed(parameters)
    if not given:
        raise ShapeError("parameters_to_vector: there are no parameters")
    return rg.concat([rg.asarray(p).reshape((-1,)) for p in given])


def vector_to_parameters(vec: Any, parameters: Module | Iterable[Tensor]) -> None:
    """Give parameters the numbers of a vector `[n]`, in order, in their own dtypes. `ShapeError`
    where n is another number; then nothing changes.

    >>> import retrograd as rg
    >>> layer = rg.nn.Linear(2, 1)
    >>> rg.nn.utils.vector_to_parameters(rg.arange(3.0), layer)
    >>> layer.weight.tolist(), layer.bias.tolist()
    ([[0.0, 1.0]], [2.0])
    """
    given = _listed(parameters)
    values = rg.asarray(vec).detach().numpy()
    n = sum(p.size for p in given)
    if values.shape != (n,):
        raise ShapeError(f"vector_to_parameters: the parameters are [{n}], not {values.shape}")
    at = 0
    for p in given:
        part = values[at : at + p.size].reshape(p.shape)
        p.replace(part.astype(p.dtype.dtype, order="C", copy=True))
        at += p.size
