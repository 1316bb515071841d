"""Operations of linear algebra on complex numbers that lie in memory as pairs, and the Fourier
transform of an axis whose size has a name."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.ir import Dim, Node, Op, TensorType
from retrograd.ops.complex import complex_, imag, real
from retrograd.ops.elementwise import cast
from retrograd.ops.fft import Fft
from retrograd.ops.linalg.matrix import MatrixOp
from retrograd.ops.shape import Concat, reshape, slice_axis
from retrograd.passes.lowering.complex_math import parts_of

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
    """`fft` of complex numbers that are given by their parts, along one more axis at the end, or of
    real ones, as they are. Of the result there are the first elements only if so many are `kept`.
    Exists only in graphs on pairs. `fft.py` says how it is computed."""

    axis: int
    inverse: bool
    of_real: bool = False
    kept: int | None = None
    name = "paired_fft"

    @property
    def attrs(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}

    def infer(self, *types: TensorType) -> TensorType:
        (x,) = types
        shape = list(x.shape if self.of_real else x.shape[:-1])
        shape[self.axis] = shape[self.axis] if self.kept is None else self.kept
        return TensorType(x.dtype, (*shape, 2))

    def needs_sizes(self, result: TensorType, *types: TensorType) -> bool:
        return isinstance(types[0].shape[self.axis], Dim)

    def reference(self, *arrays: Any) -> Any:
        (x,) = arrays
        z = x.astype(np.result_type(x.dtype, np.complex64)) if self.of_real else _complex(x)
        y = Fft(self.axis, self.inverse).reference(z)
        return _parts(np.moveaxis(np.moveaxis(y, self.axis, 0)[: self.kept], 0, self.axis))

    def on_parts(self, x: Node) -> Node:
        """The same as a graph of ops that have names."""
        z = cast(x, x.dtype.complex) if self.of_real else complex_(*parts_of(x))
        y = Fft(self.axis, self.inverse)(z)
        if self.kept is not None:
            y = slice_axis(y, self.axis, 0, self.kept)
        ends = (reshape(part, (*y.shape, 1)) for part in (real(y), imag(y)))
        return Concat(y.type.rank)(*ends)


class NumpyFft(PairedFft):
    """The same along an axis whose size has a name: there are no factors to split it into, so the
    transform is a call of NumPy's."""

    name = "numpy_fft"


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
