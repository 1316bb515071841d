"""Leaving for NumPy and for Python's numbers, which know nothing of what they were computed from.

Where a gradient is being taken, a value that left would count as a constant, and the gradient be
wrong without a word. So it is refused, unless the tensor was detached.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from retrograd.eager.lazy_tensor import Array, LazyTensor
from retrograd.eager.modes import active, grad_enabled
from retrograd.errors import GradientError, HistoryWarning
from retrograd.ir import Node


def is_sought(x: LazyTensor) -> bool:
    """Whether a transform around here differentiates a tensor."""
    sought = active()
    if not (sought and x._requires_grad and grad_enabled()):
        return False
    seen: set[Node] = {x.node}
    todo = [x.node]
    for node in todo:  # which grows
        if node in sought:
            return True
        if node.op == "stop_gradient":
            continue
        for y in node.inputs:
            if y not in seen and y.type.is_inexact:
                seen.add(y)
                todo.append(y)
    return False


def number_of(x: LazyTensor, how: str) -> Array:
    """The value of a tensor for Python. Outside of transforms those that require a gradient may
    leave, too: a loss is printed and logged."""
    if is_sought(x):
        raise GradientError(lost(how))
    return x.value()


def scalar_of(x: LazyTensor, how: str) -> Array:
    """The value of a tensor for `float()` and its like, which Python's arithmetic asks for, too:
    nothing can tell later that the number came from a tensor, so there is a warning."""
    found = number_of(x, how)
    if x._requires_grad and grad_enabled():
        warnings.warn(lost(how), HistoryWarning, stacklevel=3)
    return found


def array_of(x: LazyTensor, how: str) -> Array:
    """The value of a tensor for NumPy, read-only. Outside of transforms those that require a
    gradient may leave, too, to be looked at, but not come back: see `returned`."""
    found = number_of(x, how)
    if x._requires_grad and grad_enabled():
        left = np.asarray(_Left(np.ascontiguousarray(found).reshape(-1).view(np.uint8)))
        found = left.view(found.dtype).reshape(found.shape)
    found = found.view()
    found.setflags(write=False)
    return found


class _Left:
    """The memory of a value that left: NumPy makes it the base of arrays on it, and of parts."""

    def __init__(self, memory: Array) -> None:
        self.memory = memory
        self.__array_interface__ = memory.__array_interface__


def returned(a: Any) -> bool:
    """Whether an array, or one in a list, is the value of a tensor that requires a gradient, or
    part of it. Next to such a tensor, `x * x.numpy()`, it would count as a constant."""
    if isinstance(a, list | tuple):
        return any(map(returned, a))
    while isinstance(a, np.ndarray):
        a = a.base
    return isinstance(a, _Left)


def lost(how: str) -> str:
    """What to say of a value that would lose its history."""
    return (
        f"{how} of a tensor that requires a gradient is a plain number or array, which knows "
        "nothing of what it was computed from: its gradient would silently be zero. Compute with "
        "tensors (rg.sin instead of math.sin or np.sin, rg.asarray or rg.stack for lists of "
        "tensors), or use x.detach() first, if a constant is meant"
    )
