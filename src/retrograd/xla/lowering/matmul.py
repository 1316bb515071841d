"""`dot_general`, which XLA has under the same name."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograd.ir import Node
from retrograd.ops.matmul import DotGeneral
from retrograd.xla.lowering.rules import JaxTrace, lowers


@lowers(DotGeneral)
def dot_general(t: JaxTrace, node: Node, a: Any, b: Any) -> Any:
    """Half precision is accumulated in float32."""
    prim: Any = node.prim
    pairs = ((prim.a_contract, prim.b_contract), (prim.a_batch, prim.b_batch))
    wide = np.float32 if node.dtype.is_half else node.dtype.dtype
    y = t.lax.dot_general(a, b, pairs, precision=t.precision, preferred_element_type=wide)
    return t.lax.convert_element_type(y, node.dtype.dtype)
