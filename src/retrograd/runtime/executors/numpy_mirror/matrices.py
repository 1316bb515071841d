"""Operations of linear algebra without compiled code: a plan's calls of routines, one matrix after
the other, and the nodes around them in NumPy.
"""

from __future__ import annotations

import math

import numpy as np

from retrograd.ir import Graph, Node, evaluate
from retrograd.ops.leaf import input_node
from retrograd.ops.linalg.matrix import MatrixOp
from retrograd.passes.lowering import linalg
from retrograd.passes.lowering.complex_linalg import Paired
from retrograd.passes.lowering.libcall import LibCall
from retrograd.runtime.backend import Array
from retrograd.runtime.denormals import may_flush
from retrograd.runtime.executors.numpy_mirror import least, routines, spectra
from retrograd.runtime.executors.numpy_mirror.ordered import WIDE, affords

ROUTINES = {**routines.ROUTINES, **spectra.ROUTINES, **least.ROUTINES}
# Elements in whose time Python calls a routine. What the routine does takes as long either way.
EACH = 1 << 17
GIVEN = frozenset(op for op, rule in linalg.RULES.items() if rule is linalg.given)


def factored(node: Node, arrays: list[Array]) -> Array | None:
    """The value of an operation on real matrices, if it has a routine here that shall compute it,
    and refuses none of them."""
    prim = node.prim
    if not isinstance(prim, MatrixOp | Paired) or node.dtype.name not in WIDE or may_flush():
        return None
    if node.op in GIVEN:
        return arrays[1]
    if isinstance(prim, Paired) and prim.given:
        return None
    inputs = [input_node(x.type) for x in node.inputs]
    end = linalg.RULES[node.op](node, inputs, {})
    values: dict[Node, Array] = dict(zip(inputs, arrays, strict=True))
    for x in Graph(inputs, [end]).body:
        given = [values[y] for y in x.inputs]
        if isinstance(x.prim, LibCall):
            found = _called(x.prim, given, node)
            if found is None:
                return None
            values[x] = found
        elif x.op == "store":
            values[x] = np.array(given[0], order="C")
        else:
            values[x] = x.prim.reference(*given)
    return values[end]


def _called(call: LibCall, given: list[Array], node: Node) -> Array | None:
    """The result of a call; None where a matrix is refused, or Python shall not do it."""
    routine = ROUTINES.get(call.routine)
    n = call.batch_rank
    shape = tuple([evaluate(d, {}) for d in call.result.shape])
    if routine is None or not affords(node, math.prod(shape[:n]) * EACH):
        return None
    first = given[: call.fills]
    y = np.array(first[0], order="C") if first else np.empty(shape, call.result.dtype.dtype)
    operands = [np.ascontiguousarray(x) for x in given[len(first) :]]
    sizes = [evaluate(s, {}) for s in call.sizes]
    for i in np.ndindex(shape[:n]):
        if routine([*[x[i] for x in operands], y[i]], sizes):
            return None
    return y
