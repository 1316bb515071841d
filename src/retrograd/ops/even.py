"""Even functions of magnitudes: smooth where the magnitude itself has a kink.

The derivative of `|x|` at 0 counts as 0, that of `sqrt(s)` at 0 may count as 0 by a `select`; by
the rule of products all derivatives of `|x|**2` and of `sqrt(s)**2` would be 0 there. So those of
products and powers are taken past a magnitude, of the function that its square is. What is known
here as a magnitude is `abs`, `hypot`, which that of a complex number is, a root that is guarded
against 0, as in norms and standard deviations, and these scaled or moved.
"""

from __future__ import annotations

from typing import NamedTuple

from retrograd.ir import Node, Op, full
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


def product(a: Node, b: Node) -> Smooth | None:
    """Of a magnitude with itself."""
    found = square(a) if _same(a, b) else None
    return found and found.after(found.node, b)


def power(of: Op, a: Node, b: Node) -> Smooth | None:
    """An even power of a magnitude."""
    n = b.prim.value if isinstance(b.prim, Constant) else None
    if n is None or n.ndim or n <= 0 or n % 2 or (found := square(a)) is None:
        return None
    y = found.node
    return found._replace(node=y if n == 2 else of(y, full(float(n) / 2, y.type)))


def of_abs(f: Op, size: Node) -> Smooth | None:
    """An even function of `|x|`."""
    return Smooth(f(*size.inputs), size.inputs, (size,)) if size.prim.name == "abs" else None


def square(x: Node, deep: int = DEEP) -> Smooth | None:
    """The square of a magnitude, without it."""
    name, inputs = x.prim.name, x.inputs
    if not deep or not x.dtype.is_float:
        return None
    if name == "abs":
        inner = square(inputs[0], deep - 1)
        return inner.after(inner.node, x) if inner else Smooth(inputs[0] * inputs[0], inputs, (x,))
    if name == "hypot":
        a, b = inputs
        return Smooth(a * a + b * b, inputs, (x,))
    if name == "select":
        return _guarded_root(x)
    if isinstance(x.prim, (Expand, Permute, Reshape)) and (inner := square(inputs[0], deep - 1)):
        return inner.after(x.prim(inner.node), x)
    if name in ("mul", "div"):
        found = [square(part, deep - 1) for part in inputs]
        if any(found):
            parts = [f or Smooth(p * p, (p,), ()) for f, p in zip(found, inputs, strict=True)]
            one, two = parts
            passed = (x, *one.passed, *two.passed)
            return Smooth(x.prim(one.node, two.node), one.ends + two.ends, passed)
    return None


def _guarded_root(x: Node) -> Smooth | None:
    """`select(s == 0, 0, sqrt(select(s == 0, 1, s)))`: a root whose slope at 0 counts as 0."""
    at, zero, y = x.inputs
    if y.prim.name != "sqrt" or at.prim.name != "eq" or not _is_zero(zero):
        return None
    chosen, s = y.inputs[0], at.inputs[0]
    if chosen.prim.name != "select" or chosen.inputs[0] is not at or chosen.inputs[2] is not s:
        return None
    return Smooth(s, (s,), (x, y, chosen)) if _is_zero(at.inputs[1]) else None


def _is_zero(x: Node) -> bool:
    return isinstance(x.prim, Constant) and not x.prim.value.ndim and not x.prim.value


def _same(a: Node, b: Node, deep: int = 3) -> bool:
    """Whether two nodes are one, or the same operations on the same nodes."""
    if a is b or not deep or a.prim != b.prim or not a.inputs:
        return a is b
    return all(_same(x, y, deep - 1) for x, y in zip(a.inputs, b.inputs, strict=True))
