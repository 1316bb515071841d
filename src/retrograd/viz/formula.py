"""A node written as the formula it computes: `g * cos(x)`.

Names are given to nodes; what lies between them is written out. Sizes and axes are left out, so
that of `expand`, `permute` and their like the operand is all that shows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from retrograd.ir import Node, reachable

# Operators: sign and how tightly it binds. `zmul` and `zdiv` are product and quotient but where the
# left side is zero, which the page says once.
BINARY = {
    "add": (" + ", 1), "sub": (" - ", 1), "mul": (" * ", 2), "zmul": (" * ", 2),
    "div": (" / ", 2), "zdiv": (" / ", 2), "pow": ("^", 4),
    "eq": (" = ", 0), "lt": (" < ", 0), "le": (" <= ", 0), "gt": (" > ", 0), "ge": (" >= ", 0),
    "bitwise_and": (" and ", -1), "bitwise_or": (" or ", -2),
}  # fmt: skip
# Where a right operand of the same strength needs parentheses.
NOT_ASSOCIATIVE = {"sub", "div", "zdiv", "pow"}
NEGATIVE, POWER, ATOM = 3, 4, 9
NAMES = {"select": "where"}
CONSTANTS = {
    math.log(2): "log(2)",
    1 / math.log(2): "1 / log(2)",
    1 / math.log(10): "1 / log(10)",
    2 / math.sqrt(math.pi): "2 / sqrt(pi)",
    math.sqrt(math.pi) / 2: "sqrt(pi) / 2",
    1 / math.sqrt(2 * math.pi): "1 / sqrt(2 pi)",
}

Written = tuple[str, int]  # the text, and how tightly its outermost operator binds


def formula(node: Node, names: Mapping[Node, str]) -> str:
    """The node as a formula in the nodes that have names. See `terms` for how long it gets."""
    return _write(node, names)[0]


def terms(node: Node, names: Mapping[Node, str]) -> int:
    """How many operations the formula has: those used twice are written twice, so they may be
    exponentially more than the nodes."""
    below = [n for n in reachable([node], stop=names.keys()) if n not in names]
    count: dict[Node, int] = {}
    for n in below:
        count[n] = 1 + sum(count.get(x, 0) for x in n.inputs)
    return count.get(node, 0)


def _write(node: Node, names: Mapping[Node, str]) -> Written:
    if node in names:
        return names[node], ATOM
    if node.op == "constant":
        return _constant(node)
    parts = [_write(x, names) for x in node.inputs]
    if node.op == "neg":
        return _negated(parts[0])
    if node.op == "mul" and parts[0] == parts[1]:
        return f"{_within(parts[0], POWER + 1)}^2", POWER
    if node.op in ("mul", "zmul") and parts[0][0] == "-1":
        return _negated(parts[1])
    if node.op in BINARY:
        sign, strength = BINARY[node.op]
        left = _within(parts[0], strength + (node.op == "pow"))
        right = _right(parts[1], strength + (node.op in NOT_ASSOCIATIVE))
        return f"{left}{sign}{right}", strength
    flags = [k for k, v in node.prim.attrs.items() if v is True]
    listed = ", ".join([*(text for text, _ in parts), *flags])
    return f"{NAMES.get(node.op, node.op)}({listed})", ATOM


def _negated(part: Written) -> Written:
    """A minus in front of a product needs no parentheses."""
    return f"-{_within(part, 2)}", 2


def _within(part: Written, strength: int) -> str:
    text, own = part
    return text if own >= strength else f"({text})"


def _right(part: Written, strength: int) -> str:
    """The right side of an operator, where a sign in front needs parentheses."""
    text = _within(part, strength)
    return f"({text})" if text.startswith("-") and strength > 0 else text


def _constant(node: Node) -> Written:
    value = node.attrs["value"]
    if value.ndim:
        return "constant", ATOM
    number = value.item()
    if number in CONSTANTS:
        text = CONSTANTS[number]
        return text, 1 if "/" in text else ATOM
    if isinstance(number, float) and math.isnan(number):
        return "NaN", ATOM
    return f"{number:g}", ATOM if number >= 0 else NEGATIVE
