"""The discrete Fourier transform."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.errors import DTypeError
from retrograd.ir import Dim, Node, TensorType, declare
from retrograd.ops.shape import LinearOp, fail


@declare
class Fft(LinearOp):
    """`y_k = sum_j exp(-2 pi i j k / n) x_j` along an axis of n; `inverse` turns the sign of the
    exponent and does not divide by n.

    The matrix is symmetric, so the transform is its own transpose.
    """

    name = "fft"
    traits = frozenset()  # linear over the complex numbers, which it mixes
    axis: int
    inverse: bool = False

    def infer(self, *types: TensorType) -> TensorType:
        (x,) = types
        if not x.dtype.is_complex:
            raise DTypeError(f"fft takes complex numbers, not {x}; cast first")
        if not 0 <= self.axis < x.rank:
            raise fail(self, x, f"the axis must lie within its {x.rank}")
        if x.shape[self.axis] == 0:
            raise fail(self, x, "of no elements there is no transform")
        return x

    def needs_sizes(self, result: TensorType, *types: TensorType) -> bool:
        return isinstance(result.shape[self.axis], Dim)

    def reference(self, *arrays: Any) -> Any:
        (x,) = arrays
        if self.inverse:
            return np.fft.ifft(x, axis=self.axis, norm="forward").astype(x.dtype)
        return np.fft.fft(x, axis=self.axis).astype(x.dtype)

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        return (self(g),)

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Node:
        return Fft(self.axis + 1, self.inverse)(*inputs)
