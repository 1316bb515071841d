"""Names in place of sizes: the operands for which code of one operation is compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograd.errors import ShapeError
from retrograd.ir import Dim, Node, TensorType, bool_, evaluate, spec
from retrograd.ops.index import Scatter
from retrograd.ops.linalg import Inv, LeastFactors, LeastSquares, Solve
from retrograd.ops.matmul import DotGeneral
from retrograd.ops.scan import AxisScan
from retrograd.ops.sort import SearchSorted
from retrograd.passes.lowering.complex_linalg import Paired
from retrograd.runtime.backend import Array


def named(node: Node) -> str:
    """The kind of a program for all sizes that are equal to one another where these are; "" where
    the operation depends on more than that. Of matrices that are not square, ">" and "<" tell that
    an operation depends on whether they have more rows, or more columns."""
    kind = "named"
    parts = isinstance(node.prim, Paired) and node.prim.given  # the last axis; no size equals it
    known = [[*x.shape[:-1], -1] if parts else x.shape for x in node.inputs]
    listed = [n for sizes in known for n in sizes]
    kind += "".join([f" {listed.index(n)}" for n in listed])
    for ending in ("", " >", " <"):
        try:
            node.prim.infer(*types_of(node, kind + ending)[: len(node.inputs)])
        except ShapeError:
            continue
        if ending and (_excess(node) > 0) != (ending == " >"):
            continue
        return kind + ending
    return ""


def _excess(node: Node) -> int:
    """How many more rows than columns the matrices of the first operand have."""
    pairs = isinstance(node.prim, Paired) and node.prim.given
    rows, columns = node.inputs[0].shape[-3:-1] if pairs else node.inputs[0].shape[-2:]
    return evaluate(rows - columns, {})


def difference(node: Node, kind: str) -> list[Array]:
    """An array that gives a name to the difference of two sizes, where that has one."""
    return [np.empty(abs(_excess(node)), np.bool_)] if kind[-1:] in ("<", ">") else []


def types_of(node: Node, kind: str) -> list[TensorType]:
    """The types of the operands of a node with names in place of sizes."""
    types = [x.type for x in node.inputs]
    if kind == "flat":
        return [t.with_shape((Dim("N"),)) for t in types]
    if kind in ("", "graph", "length", "batch"):
        return types
    if kind.startswith("named"):
        ending = kind[-1]
        names = iter([Dim(f"n{i}") for i in kind.rstrip(" <>").split()[1:]])
        operands: list[list[Any]] = [[next(names) for _ in t.shape] for t in types]
        prim, rows = node.prim, -2
        if isinstance(prim, Paired):
            if prim.given:
                rows = -3
                for own in operands:
                    own[-1] = 2  # the parts of complex numbers
            prim = prim.inner
        if ending in "<>":
            more, less = (rows, rows + 1) if ending == ">" else (rows + 1, rows)
            old, new = operands[0][more], operands[0][less] + Dim("d")
            operands = [[new if n == old else n for n in own] for own in operands]
        if isinstance(prim, Solve | Inv):
            operands[1][rows] = operands[0][rows + 1] + 2
        if isinstance(prim, LeastSquares):
            operands[1][rows + 1] = operands[0][rows] + 1
        if isinstance(prim, LeastFactors):
            operands[1][rows], operands[1][rows + 1] = 1, 1
        found = [t.with_shape(tuple(s)) for t, s in zip(types, operands, strict=True)]
        return found if ending not in "<>" else [*found, spec((Dim("d"),), bool_)]
    sizes: list[list[Any]] = [
        [Dim(f"{'abc'[i]}{axis}") for axis in range(t.rank)] for i, t in enumerate(types)
    ]
    prim = node.prim
    if isinstance(prim, DotGeneral):
        pairs = (*zip(prim.a_contract, prim.b_contract, strict=True),
                 *zip(prim.a_batch, prim.b_batch, strict=True))  # fmt: skip
        for i, j in pairs:
            sizes[1][j] = sizes[0][i]
    if isinstance(prim, Scatter):
        x, index, _ = sizes
        index[: prim.shared] = x[: prim.shared]
        sizes[2] = [*x[: prim.axis], *index[prim.shared :], *x[prim.axis + 1 :]]
    if isinstance(prim, SearchSorted):
        sizes[1][: prim.shared] = sizes[0][: prim.shared]
    if isinstance(prim, AxisScan):
        sizes[1:] = [sizes[0]] * (len(sizes) - 1)
    return [t.with_shape(tuple(s)) for t, s in zip(types, sizes, strict=True)]
