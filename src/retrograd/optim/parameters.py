"""What optimizers are given: parameters, in groups or in trees."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from retrograd import pytree
from retrograd.errors import GradientError, ShapeError
from retrograd.functions.complex import imag, make_complex, real
from retrograd.functions.creation import asarray
from retrograd.functions.manipulation import stack
from retrograd.functions.tensor.tensor import Tensor
from retrograd.nn.module.module import Module
from retrograd.nn.module.parameter import Parameter


def groups(params: Any) -> list[dict[str, Any]]:
    """Groups of parameters from what a user passes."""
    if isinstance(params, Module):
        return [{"params": _ready([p for p in params.parameters() if p.trainable])}]
    if isinstance(params, Tensor) or not isinstance(params, Iterable):
        raise TypeError(
            f"an optimizer takes a module or a list of tensors, not {type(params).__name__}"
        )
    given = list(params.values()) if isinstance(params, Mapping) else list(params)
    if given and isinstance(given[0], Mapping):
        return [{**g, "params": _of_group(g)} for g in given]
    return [{"params": _ready(given)}]


def _of_group(group: Mapping[str, Any]) -> list[Tensor]:
    if "params" not in group:
        raise ShapeError(f"a group of parameters has the key 'params', this has {sorted(group)}")
    given = group["params"]
    return [p for g in groups([given] if isinstance(given, Tensor) else given) for p in g["params"]]


def _ready(params: Sequence[Any]) -> list[Tensor]:
    if not params:
        raise ShapeError("an optimizer without parameters: the model has none, or all are frozen")
    for p in params:
        if not isinstance(p, Tensor):
            raise TypeError(f"a parameter is a tensor, not {type(p).__name__}")
        if isinstance(p, Parameter) and p.trainable and not p.requires_grad:
            p.requires_grad_()  # it came out of a transform
        if not (p.is_leaf and p.requires_grad):
            raise GradientError(
                f"cannot optimize {p.node.describe()}: a parameter is made with requires_grad=True "
                "and is not computed from other tensors"
            )
    return list(params)


def reject_repeated(parameters: Sequence[Tensor]) -> None:
    seen: dict[int, int] = {}
    for i, p in enumerate(parameters):
        if id(p) in seen:
            raise ShapeError(
                f"parameters {seen[id(p)]} and {i} are the same tensor, of shape {p.shape}, which "
                "would be changed twice in every step; pass it once"
            )
        seen[id(p)] = i


def learning_leaves(params: Any) -> tuple[list[Any], list[bool]]:
    """The leaves of a tree, and which of them learn: the parameters of modules that are not frozen,
    and every floating or complex leaf elsewhere."""
    leaves: list[Any] = []
    learns: list[bool] = []
    for top in pytree.tops(params, lambda x: isinstance(x, Module)):
        if isinstance(top, Module):
            found, _ = pytree.flatten(top)
            learns += [isinstance(x, Parameter) and x.trainable for x in found]
            leaves += found
        else:
            frozen = isinstance(top, Parameter) and not top.trainable
            learns.append(asarray(top).dtype.is_inexact and not frozen)
            leaves.append(top)
    return leaves, learns


def as_parts(z: Tensor) -> Tensor:
    """Complex numbers as pairs of real ones along a new last axis."""
    return stack([real(z), imag(z)], axis=-1)


def from_parts(x: Tensor) -> Tensor:
    """The inverse of `as_parts`."""
    return make_complex(x[..., 0], x[..., 1])
