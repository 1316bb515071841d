"""Short loops over few operations, gone through step by step: nothing is compiled for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograd.ir import Node, evaluate
from retrograd.ops.control.scan import Scan
from retrograd.runtime.backend import Array, Program
from retrograd.runtime.executors.numpy_mirror.ordered import affords
from retrograd.schedule.fusion import LOOPS

NODE = 1 << 15  # elements in whose time a node is interpreted


def can_step(node: Node) -> bool:
    """Whether a loop shall be gone through step by step."""
    prim = node.prim
    if not isinstance(prim, Scan) or not isinstance(prim.length, int) or prim.body.dim_names:
        return False
    if any(x.op in LOOPS for x in prim.body.nodes):
        return False
    sizes = sum([evaluate(x.type.size, {}) for x in prim.body.body])
    return affords(node, prim.length * (len(prim.body.body) * NODE + sizes))


def stepped(node: Node, body: Program, arrays: list[Array]) -> list[Array]:
    """The results of a scan, whose body this program runs."""
    prim: Any = node.prim
    constants, carry, xs = prim.parts(arrays)
    outs = [y.type for y in prim.body.outputs[prim.carries :]]
    ys = [np.empty((prim.length, *t.shape), t.dtype.dtype) for t in outs]
    for t in range(prim.length)[:: -1 if prim.reverse else 1]:
        results = body([*constants, *carry, *[x[t] for x in xs]])
        carry = results[: prim.carries]
        for y, value in zip(ys, results[prim.carries :], strict=True):
            y[t] = value
    return [*carry, *ys]
