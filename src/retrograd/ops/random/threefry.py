"""Random bits by counting: the same key gives the same bits on every backend and thread count."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

from retrograd.errors import DTypeError, ShapeError
from retrograd.ir import Dim, Node, Op, Shape, TensorType, Trait, declare, uint32

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA
WORD = 0xFFFFFFFF
FEW = 8  # blocks that Python's integers make sooner than NumPy's arrays


def threefry(k0: Any, k1: Any, x0: Any, x1: Any) -> tuple[Any, Any]:
    """Threefry-2x32 with 20 rounds (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy
    as 1, 2, 3", SC 2011) on uint32 arrays: a keyed bijection of the counter `(x0, x1)`."""
    keys = (k0, k1, k0 ^ k1 ^ np.uint32(PARITY))
    x0, x1 = x0 + keys[0], x1 + keys[1]
    for i in range(5):
        for r in ROTATIONS[i % 2]:
            x0 = x0 + x1
            x1 = ((x1 << np.uint32(r)) | (x1 >> np.uint32(32 - r))) ^ x0
        x0 = x0 + keys[(i + 1) % 3]
        x1 = x1 + keys[(i + 2) % 3] + np.uint32(i + 1)
    return x0, x1


def threefry_of_numbers(k0: int, k1: int, x0: int, x1: int) -> tuple[int, int]:
    """`threefry` of integers below 2**32."""
    keys = (k0, k1, k0 ^ k1 ^ PARITY)
    x0, x1 = (x0 + k0) & WORD, (x1 + k1) & WORD
    for i in range(5):
        for r in ROTATIONS[i % 2]:
            x0 = (x0 + x1) & WORD
            x1 = ((x1 << r) & WORD | x1 >> (32 - r)) ^ x0
        x0 = (x0 + keys[(i + 1) % 3]) & WORD
        x1 = (x1 + keys[(i + 2) % 3] + i + 1) & WORD
    return x0, x1


@declare
class RandomBits(Op):
    """Uniform random uint32 of the given shape for each key of two uint32.

    Element `i` of one key's block, in row-major order, is the first word of Threefry-2x32-20 of the
    key on the counter `(i mod 2**32, i div 2**32)`. Keys `u32[K..., 2]` give `u32[K..., *shape]`.
    """

    name = "random_bits"
    traits = frozenset({Trait.ROUNDED_ONCE})
    arity = 1
    shape: Shape

    def infer(self, *types: TensorType) -> TensorType:
        (key,) = types
        if key.dtype is not uint32 or key.rank < 1 or key.shape[-1] != 2:
            error = DTypeError if key.dtype is not uint32 else ShapeError
            raise error(f"random_bits takes keys u32[..., 2], not {key}")
        if any(not isinstance(d, Dim) and d < 0 for d in self.shape):
            raise ShapeError(f"{self} of {key}: sizes are not negative")
        return TensorType(uint32, (*key.shape[:-1], *self.shape))

    def reference(self, *arrays: Any) -> Any:
        (key,) = arrays
        shape = tuple(map(index, self.shape))
        if key.ndim == 1 and math.prod(shape) <= FEW:
            k0, k1 = key.tolist()
            words = [threefry_of_numbers(k0, k1, i, 0)[0] for i in range(math.prod(shape))]
            return np.array(words, np.uint32).reshape(shape)
        count = np.arange(math.prod(shape), dtype=np.uint64).reshape(shape)
        low, high = count.astype(np.uint32), (count >> np.uint64(32)).astype(np.uint32)
        k0, k1 = (k.reshape(k.shape + (1,) * len(shape)) for k in (key[..., 0], key[..., 1]))
        with np.errstate(over="ignore"):
            return threefry(k0, k1, low, high)[0]

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        return (None,)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        return None

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Node:
        return self(*inputs)
