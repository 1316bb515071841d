"""Operations of linear algebra on complex numbers that lie in memory as pairs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.ir import Node, Op, TensorType
from retrograd.ops.linalg.matrix import MatrixOp

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
        if y.dtype.kind != "c":
            return y
        whole = np.ascontiguousarray(y).reshape(*y.shape, 1)
        return whole.view(whole.real.dtype)

    def refusal(self, item: int, batch: tuple[int, ...], code: int) -> Exception:
        return self.inner.refusal(item, batch, code)


def _complex(x: Array) -> Array:
    z: Array = np.ascontiguousarray(x).view(np.result_type(x.dtype, np.complex64))[..., 0]
    return z


def on_pairs(node: Node, joined: Sequence[Node]) -> Node:
    """A node of linear algebra on pairs."""
    prim = node.prim
    assert isinstance(prim, MatrixOp)
    return Paired(prim, node.inputs[0].dtype.is_complex)(*joined)
