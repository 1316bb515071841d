"""Patterns of solutions of linear systems.

Which elements of the inverse of a matrix may be other than zero follows from where the matrix is
zero (Gilbert 1994): pair each equation with an unknown that it has, and draw an arrow from that
unknown to each other one of the equation. An unknown depends on the right side of an equation if
there is a way to the equation's unknown. So the inverse of a matrix of blocks is one of blocks,
that of a triangular matrix triangular, whatever the order of rows and columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.ir import Node
from retrograd.ops.linalg.triangular import TriangularSolve
from retrograd.runtime.backend import Array
from retrograd.transforms.sparse.known_values import KnownValues, shape_of
from retrograd.transforms.sparse.pattern import Pattern, joined, lines_of, matrices

MOST = 20_000_000  # elements of what takes patterns of right sides to those of solutions


def inverse(where: Array) -> Pattern | None:
    """Where the inverse of a matrix may be other than zero, given where the matrix may be; None if
    that is anywhere."""
    from scipy import sparse
    from scipy.sparse import csgraph

    n = where.shape[0]
    matrix = sparse.csr_array(where)
    unknown = csgraph.maximum_bipartite_matching(sparse.csr_matrix(matrix), perm_type="column")
    if np.any(unknown < 0):
        return None  # singular, whatever its elements are
    rows = np.empty(n, np.int64)
    rows[unknown] = np.arange(n)
    ways = matrix[rows].astype(bool)  # row i: the unknowns that i depends on at once
    while True:
        more = (ways @ ways).astype(bool)
        if more.nnz == ways.nnz:
            break
        ways = more
        if 4 * ways.nnz > 3 * n * n and n > 256:  # more than a triangle
            return None
    return sparse.csr_array(ways[:, unknown])


def _inverses(a: Node, values: KnownValues, half: Any = None) -> list[Pattern] | None:
    """The inverses of the matrices of a stack; None if one is full."""
    support = values.support(a)
    shape = shape_of(a)
    if support is None:
        if half is None:
            return None
        support = np.ones(shape, bool)
    flat = np.broadcast_to(support, shape).reshape(-1, *shape[-2:])
    if half is not None:
        flat = half(flat) | np.eye(shape[-1], dtype=bool)
    found = [inverse(m) for m in flat]
    ways = [m for m in found if m is not None]
    return ways if len(ways) == len(found) else None


def system(node: Node, operands: Sequence[Pattern | None], values: KnownValues) -> Pattern:
    """Of `a y = b`, `dy = a^-1 (db - da y)`."""
    from scipy import sparse

    prim: Any = node.prim
    a, b = node.inputs[0], node.inputs[-1]
    half = None
    if isinstance(prim, TriangularSolve):
        half = np.triu if prim.upper else np.tril
    ways = _inverses(a, values, half)
    columns = shape_of(b)[-1]
    if ways is None or sum(w.nnz for w in ways) * columns > MOST:
        return matrices(node, operands, values)
    if prim.transpose:
        ways = [w.T for w in ways]
    moved = operands[-1]
    if operands[0] is not None:
        axis = a.type.rank - (2 if prim.transpose else 1)
        line = lines_of(shape_of(a), (axis,))
        sums = joined(line, int(np.prod(shape_of(a)[:-1])), operands[0])
        sums = sums[np.repeat(np.arange(sums.shape[0]), columns)]
        moved = sums if moved is None else moved + sums
    eye = sparse.eye_array(columns, dtype=bool)
    link = sparse.block_diag([sparse.kron(w, eye) for w in ways], format="csr")
    return sparse.csr_array(link.astype(bool) @ moved)


def inverted(node: Node, operands: Sequence[Pattern | None], values: KnownValues) -> Pattern:
    """`d(a^-1) = -a^-1 da a^-1`."""
    from scipy import sparse

    ways = _inverses(node.inputs[0], values)
    if ways is None or sum(w.nnz**2 for w in ways) > MOST:
        return matrices(node, operands, values)
    link = sparse.block_diag([sparse.kron(w, w.T) for w in ways], format="csr")
    return sparse.csr_array(link.astype(bool) @ operands[0])
