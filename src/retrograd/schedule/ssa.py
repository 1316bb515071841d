"""The body of a loop nest: scalar values in single-assignment form.

A `SSAValue` is computed by an instruction from other values: one of `SSAOp`, or the name of an
elementwise op. Its `depth` is the number of loops it
needs: a value of depth 0 is computed once, before the nest, one of depth 2 inside the second loop.
Equal instructions are one value. So sharing and loop-invariant hoisting are done here, for every
emitter at once.

Indices are int64 values.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

import numpy as np

from retrograd.ir import Dim, DType, bool_, int64, product
from retrograd.schedule.buffer import Buffer


class SSAOp(StrEnum):
    """The instructions beside elementwise ops, with their arguments and their attribute.

    | instruction | arguments | attribute |
    |---|---|---|
    | LOOP | | number of the loop whose counter it is |
    | SIZE | | an int or a `Dim`, known when the program is called |
    | IADD ISUB IMUL IDIV IMOD | two indices; division rounds down, of a non-negative index | |
    | ILT IGE | two indices, gives bool | |
    | ISEL | bool, index, index | |
    | CONST | | a NumPy scalar |
    | LOAD | index | the buffer |
    | CAST | a value, converted to the dtype of the result | |
    | PRODUCT | two factors, of a contraction | |
    """

    LOOP = "loop"
    SIZE = "size"
    IADD = "iadd"
    ISUB = "isub"
    IMUL = "imul"
    IDIV = "idiv"
    IMOD = "imod"
    ILT = "ilt"
    IGE = "ige"
    ISEL = "isel"
    CONST = "const"
    LOAD = "load"
    CAST = "cast"
    PRODUCT = "product"


INDEX_DIVISIONS = (SSAOp.IDIV, SSAOp.IMOD)
LINEAR = frozenset((SSAOp.LOOP, SSAOp.SIZE, SSAOp.IADD, SSAOp.ISUB, SSAOp.IMUL))
# Instructions that are no arithmetic of the user's.
INDEXING = frozenset(SSAOp) - {SSAOp.CAST, SSAOp.PRODUCT}
CONJUNCTION = "bitwise_and"  # of conditions: the elementwise op


class SSAValue:
    """One scalar computed in a body."""

    __slots__ = ("args", "attr", "depth", "dtype", "op")

    def __init__(
        self, op: str, args: tuple[SSAValue, ...], dtype: DType, attr: Any, depth: int
    ) -> None:
        self.op = op
        self.args = args
        self.dtype = dtype
        self.attr = attr
        self.depth = depth

    def __repr__(self) -> str:
        return f"{self.op}({', '.join(a.op for a in self.args)}, {self.attr})"


Index = tuple[SSAValue, ...]


class ScalarBlock:
    """Makes values, each distinct one once, in an order that respects their dependence."""

    def __init__(self) -> None:
        self.values: list[SSAValue] = []
        self._known: dict[tuple[Any, ...], SSAValue] = {}
        self._loops: dict[SSAValue, frozenset[int]] = {}

    def make(
        self, op: str, args: Sequence[SSAValue], dtype: DType, attr: Any = None, depth: int = 0
    ) -> SSAValue:
        """The value of an instruction; `depth` is only for those that depend on a loop directly."""
        key = (op, *map(id, args), id(dtype), attr)
        found = self._known.get(key)
        if found is None:
            for a in args:
                if a.depth > depth:
                    depth = a.depth
            found = SSAValue(op, tuple(args), dtype, attr, depth)
            self._known[key] = found
            self.values.append(found)
        return found

    # -- leaves -------------------------------------------------------------------------------
    def loop(self, number: int) -> SSAValue:
        """The counter of a loop, counted from the outermost, 0."""
        return self.make(SSAOp.LOOP, (), int64, number, number + 1)

    def size(self, size: int | Dim) -> SSAValue:
        return self.make(SSAOp.SIZE, (), int64, size)

    def const(self, value: Any, dtype: DType) -> SSAValue:
        scalar = np.asarray(value).astype(dtype.dtype)
        key = (SSAOp.CONST, dtype, scalar.tobytes())
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = SSAValue(SSAOp.CONST, (), dtype, scalar[()], 0)
            self.values.append(found)
        return found

    def load(self, buffer: Buffer, offset: SSAValue, dtype: DType) -> SSAValue:
        return self.make(SSAOp.LOAD, (offset,), dtype, buffer)

    # -- index arithmetic ---------------------------------------------------------------------
    def add(self, a: SSAValue, b: SSAValue) -> SSAValue:
        if a.op is SSAOp.SIZE and b.op is SSAOp.SIZE:
            return self.size(a.attr + b.attr)
        if is_number(a, 0):
            return b
        return a if is_number(b, 0) else self.make(SSAOp.IADD, (a, b), int64)

    def sub(self, a: SSAValue, b: SSAValue) -> SSAValue:
        if a.op is SSAOp.SIZE and b.op is SSAOp.SIZE:
            return self.size(a.attr - b.attr)
        return a if is_number(b, 0) else self.make(SSAOp.ISUB, (a, b), int64)

    def mul(self, a: SSAValue, b: SSAValue) -> SSAValue:
        if a.op is SSAOp.SIZE and b.op is SSAOp.SIZE:
            return self.size(a.attr * b.attr)
        if is_number(a, 0) or is_number(b, 1):
            return a
        if is_number(b, 0) or is_number(a, 1):
            return b
        return self.make(SSAOp.IMUL, (a, b), int64)

    def div(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """Quotient of a non-negative index by a size."""
        if is_number(b, 1) or is_number(a, 0):
            return a
        return self.make(SSAOp.IDIV, (a, b), int64)

    def mod(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """Remainder of a non-negative index by a size."""
        if is_number(b, 1) or is_number(a, 0):
            return self.size(0)
        return self.make(SSAOp.IMOD, (a, b), int64)

    def unravelled(self, position: SSAValue, shape: Sequence[int | Dim]) -> Index:
        """The index of the element at a position in row-major order, which lies within the shape:
        what is left for the first axis needs no remainder."""
        index = []
        for k, size in enumerate(shape):
            at = self.div(position, self.size(product(shape[k + 1 :])))
            if product(shape[:k]) != 1:
                at = self.mod(at, self.size(size))
            index.append(self.size(0) if size == 1 else at)
        return tuple(index)

    def less(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.make(SSAOp.ILT, (a, b), bool_)

    def at_least(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.make(SSAOp.IGE, (a, b), bool_)

    def both(self, a: SSAValue | None, b: SSAValue | None) -> SSAValue | None:
        """The conjunction of two conditions; None stands for one that always holds."""
        if a is None or b is None or a is b:
            return b if a is None else a
        return self.make(CONJUNCTION, (a, b), bool_)

    def select(self, c: SSAValue, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.make(SSAOp.ISEL, (c, a, b), int64)

    def loops_of(self, v: SSAValue) -> frozenset[int]:
        """The loops that a value depends on."""
        found = self._loops.get(v)
        if found is None:
            own = [v.attr] if v.op is SSAOp.LOOP else []
            found = self._loops[v] = frozenset(own).union(*map(self.loops_of, v.args))
        return found

    def guarded(self, index: Index, shape: Sequence[int | Dim], guard: SSAValue) -> SSAValue:
        """The position of an element that exists where a condition holds; elsewhere the position of
        one that does, as near as what the condition has no say in: in the same row, say."""
        loops = self.loops_of(guard)
        near = [self.size(0) if self.loops_of(i) & loops else i for i in index]
        if any(d == 0 for d in shape):
            near = [self.size(0)] * len(index)
        return self.select(guard, self.offset(index, shape), self.offset(tuple(near), shape))

    def offset(self, index: Index, shape: Sequence[int | Dim]) -> SSAValue:
        """The position of an element in row-major order. Outer loops' shares are added first, so
        that they are hoisted out of the inner loops."""
        key = ("offset", *map(id, index), tuple(shape))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._offset(index, shape)
        return found

    def _offset(self, index: Index, shape: Sequence[int | Dim]) -> SSAValue:
        shares = []
        for axis, i in enumerate(index):
            stride = product(shape[axis + 1 :])
            shares.append(self.mul(i, self.size(stride)))
        total = self.size(0)
        for share in sorted(shares, key=lambda v: v.depth):
            total = self.add(total, share)
        return total


def is_number(v: SSAValue, n: int) -> bool:
    """Whether an index is this number, known at compile time."""
    return v.op is SSAOp.SIZE and not isinstance(v.attr, Dim) and v.attr == n
