"""Gradients of what is not a leaf: kept where `retain_grad()` asked for it, missed with a warning
elsewhere."""

from __future__ import annotations

import warnings
import weakref

from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.errors import GradientError

# By id: equality of tensors is that of their elements.
_RETAINED: weakref.WeakValueDictionary[int, LazyTensor] = weakref.WeakValueDictionary()


def retain(x: LazyTensor) -> None:
    """Have `backward()` add to the gradient of x."""
    if not x._requires_grad:
        raise GradientError(
            f"retain_grad() of a tensor that depends on nothing that requires a gradient: "
            f"{x.node.describe()}"
        )
    if not x.is_source:
        _RETAINED[id(x)] = x


def is_retained(x: LazyTensor) -> bool:
    """Whether `backward()` adds to the gradient of x though it is not a leaf."""
    return _RETAINED.get(id(x)) is x


def retained(root: LazyTensor) -> list[LazyTensor]:
    """What gets a gradient, if `root` depends on it, though it is no leaf."""
    if not _RETAINED:
        return []
    return [
        x
        for x in list(_RETAINED.values())
        if x._requires_grad and (x._form is None or x._page is root._page)
    ]


def warn_of_no_leaf(x: LazyTensor) -> None:
    """Say why there is no gradient, where x was computed: called by what the user's line calls."""
    if x.is_spent or (x._requires_grad and not x.is_source):
        warnings.warn(
            f"the .grad of a tensor that is not a leaf is never set by backward(): "
            f"{x._type} was computed. Call retain_grad() on it before backward(), or use rg.grad "
            "or a Tape for gradients of what is in between",
            UserWarning,
            stacklevel=3,
        )
