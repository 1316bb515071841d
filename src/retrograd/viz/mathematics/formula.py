"""A node written as the formula it computes: `g * cos(x)`.

Names are given to nodes; what lies between them is written out. Sizes and axes are left out, so
that of `expand`, `permute` and their like the operand is all that shows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from retrograd.ir import Node, entering, reachable
from retrograd.ops import elementwise as el
from retrograd.ops.leaf import Constant
from retrograd.ops.matmul import DotGeneral
from retrograd.ops.reduce import ReduceAll, ReduceAny, ReduceMax, ReduceMin, ReduceProd, ReduceSum
from retrograd.ops.shape import Expand, Permute


class Infix(NamedTuple):
    """How an op is written between its operands: the sign, how tightly it binds, and whether a left
    or right operand that binds as tightly needs parentheses."""

    sign: str
    strength: int
    left: bool = False
    right: bool = False


# By the name of the op. `zmul` and `zdiv` are product and quotient but where the left side is zero,
# which the page says once.
INFIX: dict[str, Infix] = {}
_infix = entering(INFIX)
_infix(el.add)(Infix(" + ", 1))
_infix(el.sub)(Infix(" - ", 1, right=True))
_infix(el.mul, el.zmul)(Infix(" * ", 2))
_infix(el.div, el.zdiv)(Infix(" / ", 2, right=True))
_infix(el.pow)(Infix("^", 4, left=True, right=True))
_infix(el.eq)(Infix(" = ", 0))
_infix(el.lt)(Infix(" < ", 0))
_infix(el.le)(Infix(" <= ", 0))
_infix(el.gt)(Infix(" > ", 0))
_infix(el.ge)(Infix(" >= ", 0))
_infix(el.bitwise_and)(Infix(" and ", -1))
_infix(el.bitwise_or)(Infix(" or ", -2))
# Functions that have another name in mathematics, or for those who use the library.
NAMES: dict[str, str] = {}
_named = entering(NAMES)
_named(el.select)("where")
_named(el.bitwise_not)("not")
_named(ReduceSum)("sum")
_named(ReduceMax)("max")
_named(ReduceMin)("min")
_named(ReduceProd)("prod")
_named(Expand)("repeat")
_named(Permute)("transpose")
_named(ReduceAll)("all")
_named(ReduceAny)("any")
NEGATIVE, POWER, ATOM = 3, 4, 9
CONSTANTS = {
    math.log(2): "log(2)",
    1 / math.log(2): "1 / log(2)",
    1 / math.log(10): "1 / log(10)",
    2 / math.sqrt(math.pi): "2 / sqrt(pi)",
    math.sqrt(math.pi) / 2: "sqrt(pi) / 2",
    1 / math.sqrt(2 * math.pi): "1 / sqrt(2 pi)",
}

Written = tuple[str, int]  # the text, and how tightly its outermost operator binds


def formula(node: Node, names: Mapping[Node, str], plain: bool = False) -> str:
    """The node as a formula in the nodes that have names. See `terms` for how long it gets. With
    `plain`, operations have the names and signs that they have in mathematics: `sum(x)`, `x · w^T`.
    """
    return _write(node, names, plain)[0]


def terms(node: Node, names: Mapping[Node, str]) -> int:
    """How many operations the formula has: those used twice are written twice, so they may be
    exponentially more than the nodes."""
    below = [n for n in reachable([node], stop=names.keys()) if n not in names]
    count: dict[Node, int] = {}
    for n in below:
        count[n] = 1 + sum(count.get(x, 0) for x in n.inputs)
    return count.get(node, 0)


def _write(node: Node, names: Mapping[Node, str], plain: bool) -> Written:
    if node in names:
        return names[node], ATOM
    if isinstance(node.prim, Constant):
        return _constant(node)
    parts = [_write(x, names, plain) for x in node.inputs]
    if node.prim is el.neg:
        return _negated(parts[0])
    if node.prim is el.mul and parts[0] == parts[1]:
        return f"{_within(parts[0], POWER + 1)}^2", POWER
    if node.prim in (el.mul, el.zmul) and parts[0][0] == "-1":
        return _negated(parts[1])
    if node.op in INFIX:
        infix = INFIX[node.op]
        left = _within(parts[0], infix.strength + infix.left)
        right = _right(parts[1], infix.strength + infix.right)
        return f"{left}{infix.sign}{right}", infix.strength
    if plain and node.prim is el.sech2:
        return f"1 / cosh({parts[0][0]})^2", 1
    if plain and isinstance(node.prim, DotGeneral) and (product := _matrix_product(node, parts)):
        return product
    flags = [k for k, v in node.prim.attrs.items() if v is True]
    listed = ", ".join([*(text for text, _ in parts), *flags])
    name = NAMES.get(node.op, node.op) if plain or node.prim is el.select else node.op
    return f"{name}({listed})", ATOM


def _matrix_product(node: Node, parts: Sequence[Written]) -> Written | None:
    """`a · b` of matrices or stacks of them, one of which may be transposed; None of other sums
    over products."""
    prim, texts = node.prim, []
    for side, x in enumerate(node.inputs):
        contract, batch = (prim.attrs[f"{'ab'[side]}_{k}"] for k in ("contract", "batch"))
        rank = len(x.shape)
        if rank < 1 or batch != tuple(range(len(batch))) or len(contract) != 1:
            return None
        usual = rank - 1 if side == 0 else max(rank - 2, 0)
        text = _within(parts[side], 2 + side)
        if contract[0] != usual:
            if rank - len(batch) != 2:
                return None
            text = f"{_within(parts[side], POWER + 1)}^T"
        texts.append(text)
    return f"{texts[0]} · {texts[1]}", 2


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
