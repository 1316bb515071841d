"""Operations whose result has no choice of bits: NumPy's is that of every backend."""

from __future__ import annotations

from retrograd.ir import Node

# Operations whose NumPy meaning gives the bits of compiled code, in every dtype but half precision.
EXACT = frozenset((
    # arithmetic that is rounded correctly, comparisons, choice, bits
    "add", "sub", "mul", "neg", "abs", "sqrt", "zmul", "zzmul", "zdiv",
    "eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf", "isfinite", "select",
    "copysign", "signbit", "nextafter",
    "bitwise_not", "bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right",
    "div", "reciprocal", "floor", "ceil", "trunc", "round", "cast",
    # movement and counting
    "constant", "iota", "size_of", "expand", "reshape", "permute", "slice", "pad", "flip", "concat",
    "gather", "random_bits", "draw", "item", "stop_gradient", "alias", "reduce_any", "reduce_all",
    "region_in", "region_out", "keep", "after", "assume",
))  # fmt: skip
MOVING = frozenset((
    "constant", "iota", "expand", "reshape", "permute", "slice", "pad", "flip", "concat", "gather",
    "stop_gradient", "alias", "scatter_set", "item", "region_in", "region_out", "keep", "after",
    "windows", "store", "assume",
    # One result is right, and NumPy has it without compiling anything.
    "sort", "argsort", "dag_order",
))  # fmt: skip


def is_determined(node: Node) -> bool:
    """Whether the result of a node is the same to the bit however it is computed: nothing is
    rounded, or IEEE 754 says how."""
    if node.op in MOVING:
        return True
    types = [x.type for x in (node, *node.inputs)]
    if not any(t.is_inexact for t in types):
        return True
    rounded_once = not any(t.dtype.is_half or t.dtype.is_complex for t in types)
    return node.op in EXACT and rounded_once
