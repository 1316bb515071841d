"""In-place operators on leaves: what `p -= lr * p.grad` does.

`x += y` binds a name to a new tensor, and nobody else sees a change. For a leaf that requires a
gradient that would be a trap: what comes after has a gradient by the leaf of before, which nobody
holds any more. So while gradients are on it is an error, and inside of `no_grad` the handle itself
takes the new value and stays the leaf that it is, as it does in an optimizer's step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.eager.modes import GIVEN, active, grad_enabled, is_tracing, sought
from retrograd.errors import DTypeError, GradientError, ShapeError, TraceError


def _is_argument(x: LazyTensor) -> bool:
    """Whether a transform around here differentiates with respect to a tensor."""
    node = x.leaf_or_node
    return node in active() or any(node is h._state for h in sought())


def change(x: LazyTensor, operation: Callable[..., Any], other: Any) -> Any:
    """What the name that stands for x stands for after the in-place form of an operation."""
    if not x.is_source or _is_argument(x):  # computed, or the argument of a transform
        return operation(x, other)
    arguments = GIVEN.get()
    if grad_enabled():
        if arguments is not None and x.leaf_or_node in arguments:
            return operation(x, other)
        raise GradientError(
            f"a leaf that requires a gradient cannot be changed by an in-place operation: "
            f"{x.leaf_or_node.describe()}; its gradient would belong to the value of before. Write "
            "y = x + 1 for a new tensor, or change it inside of rg.no_grad(), as optimizers do"
        )
    if arguments is not None or is_tracing():
        raise TraceError(
            f"{x.leaf_or_node.describe()} comes from outside of the function that is compiled, "
            "which cannot change it; return the new value"
        )
    with_other = operation(x, other)
    if with_other is not NotImplemented:
        x.replace(_fitting(x, with_other).value())
        return x
    return with_other


def _fitting(x: LazyTensor, new: LazyTensor) -> LazyTensor:
    """A result of the shape and dtype of what it takes the place of."""
    if new.shape != x.shape:
        raise ShapeError(
            f"an in-place operation on a leaf of the shape {x.shape} has a result of the shape "
            f"{new.shape}; a leaf keeps its shape"
        )
    if new.dtype.is_complex and not x.dtype.is_complex:
        raise DTypeError(f"a result of {new.dtype} cannot take the place of a leaf of {x.dtype}")
    return new if new.dtype is x.dtype else new.astype(x.dtype)  # type: ignore[attr-defined]
