"""Buffers: where stored values live, and how many bytes they take."""

from __future__ import annotations

from dataclasses import dataclass

from retrograd.ir import Dim, Node, TensorType

ALIGNMENT = 64  # bytes; also the least that is reserved, so that element 0 can always be read


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """Contiguous memory in row-major order. Compared by identity.

    `kind` says who owns it: "input" and "output" the caller, "constant" the program, "temporary"
    the arena. `number` counts within the kind.
    """

    kind: str
    number: int
    type: TensorType
    node: Node

    @property
    def bytes(self) -> int | Dim:
        return self.type.size * self.type.dtype.itemsize
