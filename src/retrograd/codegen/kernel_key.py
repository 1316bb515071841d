"""Which kernels are written alike: a key that equals that of another kernel exactly where the two
differ in nothing but the buffers they touch.

Writing a kernel takes several times as long as making its key, and most kernels of a deep model are
like others.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from retrograd.ir import Dim, DType
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.kernel import Kernel
from retrograd.schedule.loop_nest import LoopNest, live, own_fields
from retrograd.schedule.ssa import SSAValue

# What an attribute or a piece of information may be, beside values, buffers and sequences of these.
PLAIN = (int, float, str, bool, type(None), Dim, DType)


class UnknownMeaning(Exception):
    """Something whose meaning for the text is not known here."""


class KernelKey:
    """The key of a kernel and its buffers in the order of the key, which is None for a kernel that
    holds something unknown. `context` is what else its text depends on, as the rows of its tile
    group."""

    def __init__(self, kernel: Kernel, *context: Hashable) -> None:
        self.buffers: dict[Buffer, int] = {}
        self._numbers: dict[SSAValue, int] = {}
        parts: list[Any] = [*context]
        try:
            parts += [self._nest(nest) for nest in kernel.nests]
            self.key: tuple[Any, ...] | None = tuple(parts)
        except UnknownMeaning:
            self.key = None

    def _nest(self, nest: LoopNest) -> tuple[Any, ...]:
        numbers: dict[SSAValue, int] = {}
        self._numbers = numbers
        values = []
        for v in live(nest):
            args = tuple([numbers[a] for a in v.args])
            values.append((v.op, args, v.dtype.code, v.depth, self._of(v.attr)))
            numbers[v] = len(numbers)
        stores = self._of([(s.buffer, s.offset, s.value) for s in nest.stores])
        loops = type(nest).__name__, nest.op, tuple(nest.loops), nest.kept, nest.vec, nest.tile
        rest = self._of([nest.accumulator, *(getattr(nest, name) for name in own_fields(nest))])
        return *loops, tuple(values), stores, rest

    def _of(self, x: Any) -> Any:
        """What stands for something in the key."""
        if x is None:
            return None
        if isinstance(x, SSAValue):
            return "value", self._numbers[x]
        if isinstance(x, Buffer):
            return "buffer", self.buffers.setdefault(x, len(self.buffers)), x.type.dtype.code
        if isinstance(x, tuple | list):
            return tuple([self._of(y) for y in x])
        if isinstance(x, np.generic):
            return "const", x.dtype.str, x.tobytes()
        if isinstance(x, PLAIN):
            return type(x).__name__, x  # 1, 1.0 and True are equal, and are not written alike
        raise UnknownMeaning
