"""Values while a model is read: sizes that are symbolic, and what has to be known.

`Shape` of an input with a size "N" gives numbers that are known up to N. Models compute with them
(`Gather`, `Concat`, `Mul`) and give the result to `Reshape`. Such values are kept as arrays of
sizes, computed with as NumPy's arrays of objects, and become tensors only where something else uses
them.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

import retrograd as rg
from retrograd.errors import ShapeError, TraceError
from retrograd.ir import Dim, Node

# Of parameters: used where one decides a shape, as the scales of Resize do.
PARAMETERS: WeakKeyDictionary[Node, Any] = WeakKeyDictionary()


class NeedsValue(TraceError):
    """A value that decides a shape is only known when the model runs. Where it is `placed`, the
    message names the node."""

    def __init__(self, message: str, is_placed: bool = False) -> None:
        super().__init__(message)
        self.is_placed = is_placed


class SymbolicSizes:
    """An array of whole numbers of which some are sizes with names."""

    def __init__(self, array: Any) -> None:
        self.array = np.asarray(array, object)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    def tensor(self) -> Any:
        """The same as a tensor of int64."""
        parts = [rg.asarray(d, dtype=rg.int64) for d in self.array.ravel()]
        return rg.reshape(rg.stack(parts), self.shape)


def from_sizes(array: Any) -> Any:
    """An array of sizes as a value: a tensor where all are known."""
    found = np.asarray(array, object)
    if any(isinstance(d, Dim) for d in found.ravel()):
        return SymbolicSizes(found)
    return rg.asarray(found.astype(np.int64))


def as_tensor(value: Any) -> Any:
    """What an operator computes with: sizes become a tensor."""
    return value.tensor() if isinstance(value, SymbolicSizes) else value


def known(value: Any) -> Any:
    """A tensor as an array, or None where it is only known when the model runs."""
    if isinstance(value, SymbolicSizes):
        return None
    if (own := PARAMETERS.get(value.node)) is not None:
        return own
    try:
        return value.numpy(force=True)
    except (TraceError, ShapeError):  # it depends on an input, or on a size that has only a name
        return None


def known_sizes(value: Any) -> Any:
    """The values of a tensor of whole numbers, or of sizes, as an array of objects; None for a
    tensor that is not known."""
    if isinstance(value, SymbolicSizes):
        return value.array
    found = known(value)
    return None if found is None else found.astype(object)


def array(value: Any, what: str) -> Any:
    """A tensor as an array of NumPy; `NeedsValue` where it is not known."""
    found = known(value)
    if found is None:
        raise NeedsValue(what)
    return found


def sizes(value: Any, what: str) -> tuple[Any, ...]:
    """What decides a shape: whole numbers and sizes, in a tuple."""
    found = known_sizes(value)
    if found is None:
        raise NeedsValue(what)
    return tuple(d if isinstance(d, Dim) else int(d) for d in found.ravel())


def ints(value: Any, what: str) -> tuple[int, ...]:
    """Whole numbers that must be known, such as axes."""
    return tuple(int(d) for d in array(value, what).ravel())


def number(value: Any, what: str) -> Any:
    """A single one."""
    (found,) = array(value, what).ravel().tolist()
    return found
