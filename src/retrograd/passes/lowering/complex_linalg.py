"""Operations of linear algebra on complex numbers that lie in memory as pairs, and the Fourier
transform of an axis whose size has a name."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.ir import Node, Op, TensorType
from retrograd.ops.complex import complex_, imag, real
from retrograd.ops.fft import Fft
from retrograd.ops.linalg.matrix import MatrixOp
from retrograd.ops.shape import Concat, reshape, slice_axis

Array = np.ndarray[Any, Any]


@dataclasses.dataclass(frozen=True, repr=False)
class Paired(Op):
    """An op of matrices of complex numbers on their parts, which lie along one more axis at the
    end. Exists only in graphs on pairs."""

    inner: MatrixOp
    given: bool  # whether its inputs are complex
    name = "paired"

    @property
    def attrs(self) -> dict[str, Any]:
        return {"inner": str(self.inner), "given": self.given}

    def inner_types(self, *types: TensorType) -> list[TensorType]:
        """The types of the complex numbers."""
        if not self.given:
            return list(types)
        return [TensorType(t.dtype.complex, t.shape[:-1]) for t in types]

    def infer(self, *types: TensorType) -> TensorType:
        y = self.inner.infer(*self.inner_types(*types))
        return TensorType(y.dtype.real, (*y.shape, 2)) if y.dtype.is_complex else y

    def bind(self, sizes: Any) -> Op:
        inner = self.inner.bind(sizes)
        assert isinstance(inner, MatrixOp)
        return Paired(inner, self.given)

    def reference(self, *arrays: Any) -> Any:
        y = self.inner.reference(*[_complex(a) if self.given else a for a in arrays])
        return _parts(y) if y.dtype.kind == "c" else y

    def refusal(self, item: int, batch: tuple[int, ...], code: int) -> Exception:
        return self.inner.refusal(item, batch, code)


@dataclasses.dataclass(frozen=True, repr=False)
class PairedFft(Op):
    """`fft` of complex numbers that are given by their parts, along one more axis at the end.
    Exists only in graphs on pairs, where a size is not known: there are no factors to split it
    into, so the transform is a call of NumPy's."""

    axis: int
    inverse: bool
    name = "paired_fft"

    @property
    def attrs(self) -> dict[str, Any]:
        return {"axis": self.axis, "inverse": self.inverse}

    def infer(self, *types: TensorType) -> TensorType:
        return types[0]

    def reference(self, *arrays: Any) -> Any:
        return _parts(Fft(self.axis, self.inverse).reference(_complex(arrays[0])))

    def on_parts(self, x: Node) -> Node:
        """The same as a graph of ops that have names."""
        first, second = (
            reshape(slice_axis(x, x.type.rank - 1, i, i + 1), x.shape[:-1]) for i in (0, 1)
        )
        y = Fft(self.axis, self.inverse)(complex_(first, second))
        ends = (reshape(part, (*y.shape, 1)) for part in (real(y), imag(y)))
        return Concat(y.type.rank)(*ends)


def _complex(x: Array) -> Array:
    z: Array = np.ascontiguousarray(x).view(np.result_type(x.dtype, np.complex64))[..., 0]
    return z


def _parts(z: Array) -> Array:
    whole = np.ascontiguousarray(z).reshape(*z.shape, 1)
    x: Array = whole.view(whole.real.dtype)
    return x


def on_pairs(node: Node, joined: Sequence[Node]) -> Node:
    """A node of linear algebra on pairs."""
    prim = node.prim
    assert isinstance(prim, MatrixOp)
    return Paired(prim, node.inputs[0].dtype.is_complex)(*joined)
