"""A tensor as the output of a notebook's cell, whatever it stands for."""

from __future__ import annotations

from typing import Any

from retrograd import notebook
from retrograd.eager.lazy_tensor import LazyTensor, State
from retrograd.errors import DonatedError, TraceError
from retrograd.runtime.backend import Array


def tensor_html(x: LazyTensor) -> str:
    """What is known of a tensor: its value, unless it stands for one that there is not."""
    kind = type(x).__name__
    if x.state is State.DONATED:
        return notebook.output(
            notebook.headline(kind, "donated"), f"<div>{notebook.text(donated(x), 400)}</div>"
        )
    facts = ["requires_grad"] if x._requires_grad else []
    if getattr(x, "_grad", None) is not None:
        facts.append("has a gradient")
    array = value_of(x)
    if array is None:
        return notebook.output(
            notebook.headline(
                kind, notebook.described(x.shape, x.dtype), *facts, "traced, without value"
            )
        )
    return notebook.array_html(kind, array, facts)


def tensor_png(x: LazyTensor) -> bytes | None:
    """The picture of a matrix or of images; None of anything else."""
    if x.state is State.DONATED or len(x.shape) < 2:
        return None
    array = value_of(x)
    found = None if array is None else notebook.picture(array)
    return None if found is None else found.png


def value_of(x: LazyTensor) -> Array | None:
    """The value; None while it is traced."""
    try:
        return x.value()
    except TraceError:
        return None


def donated(x: LazyTensor) -> DonatedError | None:
    """The error that says where a tensor's memory went; None of one that was not donated."""
    state: Any = x._state
    return state.error() if x.state is State.DONATED else None
