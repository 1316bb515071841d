"""Patterns of sizes: which sizes of operands change, and which of these are the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.ir import Dim, TensorType, as_dtype

Shapes = tuple[tuple[int, ...], ...]


class SizePattern:
    """Shapes of operands, with a number in place of each size that changes."""

    __slots__ = ("entries", "names")
    ANY = -(1 << 62)  # in place of a size that is made of others: see accelerate/immediate.c

    def __init__(self, entries: list[list[int]], names: int) -> None:
        self.entries = entries  # a size, or -1 - the number of a name, or ANY
        self.names = names

    @classmethod
    def of(cls, shapes: Shapes, vary: Sequence[Sequence[bool]]) -> SizePattern:
        """The pattern of shapes of which some sizes change: equal sizes have the same number, in
        the order of their first use. 0 and 1 have none: axes of size 1 are broadcast."""
        ids: dict[int, int] = {}
        entries = [
            [
                -1 - ids.setdefault(n, len(ids)) if yes and n > 1 else n
                for n, yes in zip(shape, changes, strict=True)
            ]
            for shape, changes in zip(shapes, vary, strict=True)
        ]
        return cls(entries, len(ids))

    def then(self, types: Sequence[TensorType], at: int) -> SizePattern:
        """The same with the shapes of types, in the names of this one, before operand `at`."""
        names = {Dim(f"n{i}"): -1 - i for i in range(self.names)}
        new = [
            [names.get(d, self.ANY) if isinstance(d, Dim) else int(d) for d in t.shape]
            for t in types
        ]
        return SizePattern([*self.entries[:at], *new, *self.entries[at:]], self.names)

    def fits(self, shapes: Shapes) -> bool:
        """Whether shapes of these ranks follow it."""
        sizes = [0] * self.names
        for shape, entries in zip(shapes, self.entries, strict=True):
            for n, e in zip(shape, entries, strict=True):
                if e >= 0:
                    if n != e:
                        return False
                elif e == self.ANY:
                    continue
                elif sizes[-1 - e] == 0:
                    if n < 2:
                        return False
                    sizes[-1 - e] = n
                elif sizes[-1 - e] != n:
                    return False
        return True

    def sizes(self, shapes: Shapes) -> dict[str, int]:
        """What the names stand for in shapes that follow it."""
        return {
            f"n{-1 - e}": n
            for shape, entries in zip(shapes, self.entries, strict=True)
            for n, e in zip(shape, entries, strict=True)
            if self.ANY < e < 0
        }

    def types(self, dtypes: Sequence[Any]) -> list[TensorType]:
        """The types of operands that follow it, those without a dtype of bools."""
        dims = [Dim(f"n{i}") for i in range(self.names)]
        missing = len(self.entries) - len(dtypes)
        return [
            TensorType(as_dtype(dtype), tuple([e if e >= 0 else dims[-1 - e] for e in entries]))
            for dtype, entries in zip([*dtypes, *[np.bool_] * missing], self.entries, strict=True)
        ]
