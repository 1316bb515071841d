"""Operations by their formulas, without a compiler; see `listing.py`."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from retrograd.codegen.emit.elementwise import ELEMENTWISE
from retrograd.ir import DType, Node
from retrograd.runtime.backend import Array
from retrograd.runtime.denormals import may_flush
from retrograd.runtime.executors.numpy_mirror.facts import once
from retrograd.runtime.executors.numpy_mirror.instructions import Unknown, fused
from retrograd.runtime.executors.numpy_mirror.listing import Function
from retrograd.runtime.executors.numpy_mirror.ordered import WIDE, affords, give_up

CALL = 1 << 9  # elements of an operation of NumPy in whose time one is called
MOST = 1 << 22  # elements that take about as long as compiling a formula


class Formula:
    """The formula of an elementwise operation."""

    def __init__(self, name: str, dtype: DType, arity: int) -> None:
        self._function = Function(ELEMENTWISE[name], dtype, arity)

    def work(self, elements: int) -> int:
        """What it has to do for so many elements, in those of an operation of NumPy."""
        return self._function.calls * CALL + self._function.passes * elements

    def __call__(self, arrays: Sequence[Array]) -> Array | None:
        """The result for arrays of one shape; None where there is an instruction in the way that is
        not known here."""
        try:
            with np.errstate(all="ignore"):
                y = self._function(*arrays)
        except Unknown:
            return None
        shape, dtype = arrays[0].shape, arrays[0].dtype
        if type(y) is np.ndarray and y.shape == shape and y.dtype == dtype:
            return y
        return np.broadcast_to(y, shape).astype(dtype)


def written(node: Node, arrays: list[Array]) -> Array | None:
    """The value of an elementwise operation on floats, if NumPy has it and shall compute it."""
    f = None if may_flush() or fused() is None else once(node, "formula", _of_node)
    if f is None or not affords(node, f.work(arrays[0].size), MOST):
        return None
    found = f(arrays)
    if found is None:
        give_up(node)
    return found


def _of_node(node: Node) -> Formula | None:
    names = {node.dtype.name, *[x.dtype.name for x in node.inputs]}
    if len(names) > 1 or node.dtype.name not in WIDE or node.op not in ELEMENTWISE:
        return None
    return formula(node.op, node.dtype, len(node.inputs))


@functools.cache
def formula(name: str, dtype: DType, arity: int) -> Formula:
    """The formula of an elementwise operation."""
    return Formula(name, dtype, arity)
