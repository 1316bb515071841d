"""Even functions of magnitudes: smooth where the magnitude itself has a kink.

The derivative of `|x|` at 0 counts as 0, that of `sqrt(s)` at 0 may count as 0 by a `select`; by
the rule of products all derivatives of `|x|**2` and of `sqrt(s)**2` would be 0 there. So those of
products and powers are taken past a magnitude, of the function that its square is. What is known
here as a magnitude is `abs`, `hypot`, which that of a complex number is, a root that is guarded
against 0, as in norms and standard deviations, and these scaled, negated or moved.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from itertools import chain
from operator import mul, truediv
from typing import NamedTuple

from retrograd.ir import Node, Op, Trait, entering, full
from retrograd.ops.leaf import Constant
from retrograd.ops.shape import Expand, Permute, Reshape

DEEP = 8  # no magnitude that anyone writes has more operations


class Smooth(NamedTuple):
    """What a node is equal to, the nodes that this is a function of, and those on the way to them
    that are passed by."""

    node: Node
    ends: tuple[Node, ...]
    passed: tuple[Node, ...]

    def after(self, node: Node, passed: Node) -> Smooth:
        return Smooth(node, self.ends, (passed, *self.passed))


Square = Callable[[Node, int], Smooth | None]
# The square of a node that is a magnitude, without it, by the name of its op; with how deep to look
# on. `elementwise.py` enters its own.
SQUARES: dict[str, Square] = {}
squared = entering(SQUARES)


def product(a: Node, b: Node) -> Smooth | None:
    """Of two that have a magnitude as a factor each."""
    if _same(a, b) and (whole := square(a)):
        return whole.after(whole.node, b)
    if not (_may_hold(a) and _may_hold(b) and a.dtype.is_float):
        return None
    one, two = factors(a), factors(b)
    left, right, squares = [], [*two.over], list[Smooth]()
    for x in one.over:
        same = next((y for y in right if _same(x, y)), None) if x.op in SQUARES else None
        if same is None or (found := square(x)) is None:
            left.append(x)
        else:
            right.remove(same)
            squares.append(found.after(found.node, same))
    if not squares:
        return None
    under = (*one.under, *two.under)
    node = reduce(mul, (*(s.node for s in squares), *left, *right))
    node = reduce(truediv, under, -node if (one.turns + two.turns) % 2 else node)
    ends = chain(chain.from_iterable(s.ends for s in squares), left, right, under)
    passed = chain(one.made_by, two.made_by, chain.from_iterable(s.passed for s in squares))
    return Smooth(node, tuple(ends), tuple(passed))


class Factors(NamedTuple):
    """`(-1)**turns prod(over) / prod(under)`, and the nodes that compute it."""

    over: list[Node]
    under: list[Node]
    made_by: list[Node]
    turns: int


def factors(x: Node) -> Factors:
    """What a node is a product of. Where that is many they are left together."""
    over, under, made_by, todo, turns = list[Node](), list[Node](), list[Node](), [x], 0
    while todo:
        y = todo.pop()
        rule = SQUARES.get(y.op)
        if len(made_by) == DEEP or (rule is not of_scaled and rule is not of_negated):
            over.append(y)
            continue
        made_by.append(y)
        turns += rule is of_negated
        todo.append(y.inputs[0])
        if rule is of_scaled:
            (todo if Trait.PRODUCT in y.prim.traits else under).append(y.inputs[1])
    return Factors(over, under, made_by, turns)


def _may_hold(x: Node) -> bool:
    """Whether a magnitude may be a factor, found out in no time: every product is asked."""
    todo = [x]
    for y in todo:  # which grows
        rule = SQUARES.get(y.prim.name)
        if rule is of_scaled or rule is of_negated:
            if len(todo) < DEEP:
                todo += y.inputs
        elif rule is not None:
            return True
    return False


def power(of: Op, a: Node, b: Node) -> Smooth | None:
    """An even power of a magnitude."""
    n = b.prim.value if isinstance(b.prim, Constant) else None
    if n is None or n.ndim or n <= 0 or n % 2 or (found := square(a)) is None:
        return None
    y = found.node
    return found._replace(node=y if n == 2 else of(y, full(float(n) / 2, y.type)))


def of_abs(f: Op, size: Node) -> Smooth | None:
    """An even function of `|x|`."""
    if SQUARES.get(size.op) is not of_size:
        return None
    return Smooth(f(*size.inputs), size.inputs, (size,))


def square(x: Node, deep: int = DEEP) -> Smooth | None:
    """The square of a magnitude, without it."""
    if not deep or not x.dtype.is_float:
        return None
    rule = SQUARES.get(x.op)
    return rule(x, deep - 1) if rule else None


def of_size(x: Node, deep: int) -> Smooth | None:
    """`|x|`."""
    inner = square(x.inputs[0], deep)
    if inner:
        return inner.after(inner.node, x)
    return Smooth(x.inputs[0] * x.inputs[0], x.inputs, (x,))


def of_hypot(x: Node, deep: int) -> Smooth | None:
    a, b = x.inputs
    return Smooth(a * a + b * b, x.inputs, (x,))


def of_negated(x: Node, deep: int) -> Smooth | None:
    inner = square(x.inputs[0], deep)
    return inner and inner.after(inner.node, x)


@squared(Expand, Permute, Reshape)
def of_moved(x: Node, deep: int) -> Smooth | None:
    inner = square(x.inputs[0], deep)
    return inner and inner.after(x.prim(inner.node), x)


def of_scaled(x: Node, deep: int) -> Smooth | None:
    """A product or a quotient."""
    found = [square(part, deep) for part in x.inputs]
    if not any(found):
        return None
    parts = [f or Smooth(p * p, (p,), ()) for f, p in zip(found, x.inputs, strict=True)]
    one, two = parts
    return Smooth(x.prim(one.node, two.node), one.ends + two.ends, (x, *one.passed, *two.passed))


def of_guarded(root: Op, equal: Op) -> Square:
    """`select(s == 0, 0, sqrt(select(s == 0, 1, s)))`: a root whose slope at 0 counts as 0."""

    def guarded(x: Node, deep: int) -> Smooth | None:
        at, zero, y = x.inputs
        if y.prim is not root or at.prim is not equal or not _is_zero(zero):
            return None
        chosen, s = y.inputs[0], at.inputs[0]
        if chosen.prim is not x.prim or chosen.inputs[0] is not at or chosen.inputs[2] is not s:
            return None
        return Smooth(s, (s,), (x, y, chosen)) if _is_zero(at.inputs[1]) else None

    return guarded


def _is_zero(x: Node) -> bool:
    return isinstance(x.prim, Constant) and not x.prim.value.ndim and not x.prim.value


def _same(a: Node, b: Node) -> bool:
    """Whether two nodes are one, or a few same operations on the same nodes and numbers."""
    todo, seen = [(a, b)], set[tuple[Node, Node]]()
    while todo and len(seen) < 5 * DEEP:
        x, y = pair = todo.pop()
        if x is y or pair in seen:
            continue
        seen.add(pair)
        if x.prim != y.prim or len(x.inputs) != len(y.inputs):  # joins of more or fewer
            return False
        if not (x.inputs or isinstance(x.prim, Constant)):
            return False
        todo += zip(x.inputs, y.inputs, strict=True)
    return not todo
