"""Random bits: Threefry in 32-bit integers, which are the same everywhere."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from retrograd.ir import Node
from retrograd.ops.random.threefry import RandomBits, threefry
from retrograd.xla.lowering.rules import JaxTrace, lowers


@lowers(RandomBits)
def random_bits(t: JaxTrace, node: Node, key: Any) -> Any:
    prim: Any = node.prim
    lax, shape, stack = t.lax, tuple(prim.shape), key.shape[:-1]
    count = lax.reshape(lax.iota(np.uint64, math.prod(shape)), shape)
    low = lax.convert_element_type(count, np.uint32)
    high = lax.convert_element_type(count >> np.uint64(32), np.uint32)
    own = list(range(len(stack)))
    words = [
        lax.broadcast_in_dim(lax.index_in_dim(key, i, -1, keepdims=False), node.shape, own)
        for i in (0, 1)
    ]
    places = list(range(len(stack), len(node.shape)))
    counters = [lax.broadcast_in_dim(c, node.shape, places) for c in (low, high)]
    return threefry(*words, *counters)[0]
