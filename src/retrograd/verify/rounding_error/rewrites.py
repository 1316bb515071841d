"""Rewriting of expressions that lose digits into equal ones that do not.

Each rule takes a node and gives a node of the same value in exact arithmetic, or None where the
pattern is another. Whether that pays is not asked here: `suggestions.py` evaluates both.
(Kahan; Goldberg, "What every computer scientist should know about floating-point arithmetic";
Hamming, "Numerical Methods", chapter 3; the rules of Herbie, Panchekha et al., PLDI 2015.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from retrograd.functions.linalg import slogdet
from retrograd.functions.special.classical import sinc
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import Node, full
from retrograd.ops import elementwise as el
from retrograd.ops.identity import IdentityOp
from retrograd.ops.leaf import Constant
from retrograd.ops.linalg import LU, Det, Inv, LogAbsDet, Solve
from retrograd.ops.matmul import DotGeneral
from retrograd.ops.reduce import LogSumExp, ReduceMax, ReduceProd, ReduceSum
from retrograd.ops.shape import Expand, Reshape, expand


@dataclass(frozen=True)
class Rewrite:
    """A rule with its formula, as text, and the name that users call it by."""

    name: str
    formula: str
    apply: Callable[[Node], Node | None]


REWRITES: list[Rewrite] = []


def rewrite(name: str, formula: str) -> Callable[..., Callable[[Node], Node | None]]:
    """Enters a rule."""

    def enter(f: Callable[[Node], Node | None]) -> Callable[[Node], Node | None]:
        REWRITES.append(Rewrite(name, formula, f))
        return f

    return enter


# -- patterns -------------------------------------------------------------------------------------


def plain(x: Node) -> Node:
    """A node without what only steers differentiation."""
    while isinstance(x.prim, IdentityOp):
        x = x.inputs[0]
    return x


def number(x: Node) -> float | None:
    """The number that all elements of a node are, where it is a constant."""
    x = plain(x)
    while isinstance(x.prim, Expand | Reshape):
        x = plain(x.inputs[0])
    if not isinstance(x.prim, Constant) or not x.prim.value.size or not x.dtype.is_float:
        return None
    flat = np.asarray(x.prim.value, np.float64).reshape(-1)
    return float(flat[0]) if (flat == flat[0]).all() else None


def same(a: Node, b: Node) -> bool:
    """Whether two nodes have one value by their form: equal operations on equal nodes."""
    todo, steps = [(a, b)], 0
    while todo:
        x, y = (plain(v) for v in todo.pop())
        if x is y:
            continue
        steps += 1
        if steps > 64 or x.prim != y.prim or not x.inputs or len(x.inputs) != len(y.inputs):
            if isinstance(x.prim, Constant) and x.prim == y.prim:
                continue
            return False
        todo += zip(x.inputs, y.inputs, strict=True)
    return True


def parts(x: Node, *names: str) -> tuple[Node, ...] | None:
    """The operands of a node, if it is one of these operations."""
    x = plain(x)
    return tuple(map(plain, x.inputs)) if x.op in names else None


def square_of(x: Node) -> Node | None:
    """`a` of `a * a`."""
    found = parts(x, "mul")
    if found is not None:
        return found[0] if same(*found) else None
    found = parts(x, "pow")
    return found[0] if found is not None and number(found[1]) == 2 else None


def terms(x: Node) -> list[tuple[float, Node]]:
    """A sum as terms with their signs."""
    found: list[tuple[float, Node]] = []
    todo = [(1.0, plain(x))]
    while todo:
        sign, term = todo.pop()
        if term.prim in (el.add, el.sub) and len(found) + len(todo) < 16:
            a, b = map(plain, term.inputs)
            todo += [(sign if term.prim is el.add else -sign, b), (sign, a)]
        elif term.prim is el.neg:
            todo.append((-sign, plain(term.inputs[0])))
        else:
            found.append((sign, term))
    return found


def sum_of_terms(found: list[tuple[float, Node]], like: Node) -> Node:
    """The sum of signed terms."""
    total: Node | None = None
    for sign, term in found:
        if total is None:
            total = term if sign > 0 else -term
        else:
            total = total + term if sign > 0 else total - term
    return full(0, like.type) if total is None else total


def difference(a: Node, b: Node) -> Node:
    """`a - b` without the terms that both have."""
    left, right = terms(a), [(-s, t) for s, t in terms(b)]
    for s, t in list(left):
        match = next((k for k, (s2, t2) in enumerate(right) if s2 == -s and same(t, t2)), None)
        if match is not None:
            left.remove((s, t))
            del right[match]
    return sum_of_terms([*left, *right], a)


def pair(x: Node) -> tuple[Node, Node] | None:
    """`a` and `b` of `a - b`, however it is written."""
    found = terms(x) if plain(x).prim in (el.add, el.sub) else []
    if len(found) != 2:
        return None
    (s, a), (t, b) = found
    return (a, b) if s > 0 > t else (b, a) if t > 0 > s else None


def shared_mean(x: Node) -> tuple[Node, tuple[int, ...], float] | None:
    """`a`, the axes and the number of terms of a mean of a."""
    found = parts(x, "div")
    n = None if found is None else number(found[1])
    if found is None or n is None:
        found = parts(x, "mul")
        share = None if found is None else number(found[1])
        n = 1 / share if share else None
    if found is None or n is None:
        return None
    total = plain(found[0])
    if not isinstance(total.prim, ReduceSum):
        return None
    (a,) = total.inputs
    axes = total.prim.axes
    count = float(np.prod([int(a.shape[i]) for i in axes]))
    return (plain(a), axes, n) if abs(count - n) < 0.5 else None


def _is(x: Node, value: float) -> bool:
    return number(x) == value


# -- exponentials and logarithms ------------------------------------------------------------------


@rewrite("log1p", "log(1 + x) -> log1p(x)")
def _log1p(node: Node) -> Node | None:
    found = parts(node, "log")
    inner = terms(found[0]) if found else []
    ones = [k for k, (s, t) in enumerate(inner) if s > 0 and _is(t, 1)]
    if len(inner) < 2 or not ones:
        return None
    rest = [t for k, t in enumerate(inner) if k != ones[0]]
    return el.log1p(sum_of_terms(rest, node))


@rewrite("expm1", "exp(x) - 1 -> expm1(x)")
def _expm1(node: Node) -> Node | None:
    found = terms(node) if node.prim in (el.add, el.sub) else []
    for k, (s, t) in enumerate(found):
        exponent = parts(t, "exp")
        for j, (s1, one) in enumerate(found):
            if exponent and j != k and s1 == -s and _is(one, 1):
                new = el.expm1(exponent[0])
                rest = [v for i, v in enumerate(found) if i not in (j, k)]
                return sum_of_terms([(s, new), *rest], node)
    return None


@rewrite("logsumexp", "log(sum(exp(x))) -> logsumexp(x)")
def _logsumexp(node: Node) -> Node | None:
    found = parts(node, "log")
    total = found[0] if found else None
    if total is None or not isinstance(total.prim, ReduceSum):
        return None
    inner = parts(total.inputs[0], "exp")
    return LogSumExp(total.prim.axes)(inner[0]) if inner else None


@rewrite("logaddexp", "log(exp(a) + exp(b)) -> logaddexp(a, b)")
def _logaddexp(node: Node) -> Node | None:
    found = parts(node, "log")
    both = parts(found[0], "add") if found else None
    if not both:
        return None
    a, b = (parts(x, "exp") for x in both)
    if a and b:
        return el.logaddexp(a[0], b[0])
    known = a or b
    other = both[1] if a else both[0]
    return el.softplus(known[0]) if known and _is(other, 1) else None


@rewrite("log_softmax", "log(exp(x) / sum(exp(x))) -> x - logsumexp(x)")
def _log_softmax(node: Node) -> Node | None:
    found = parts(node, "log")
    return _normalized(found[0], True) if found else None


@rewrite("softmax", "exp(x) / sum(exp(x)) -> softmax(x)")
def _softmax(node: Node) -> Node | None:
    return _normalized(node, False)


def _normalized(node: Node, log: bool) -> Node | None:
    found = parts(node, "div")
    if not found:
        return None
    top = parts(found[0], "exp")
    total = plain(found[1])
    while isinstance(total.prim, Expand | Reshape):
        total = plain(total.inputs[0])
    if not top or not isinstance(total.prim, ReduceSum):
        return None
    bottom = parts(total.inputs[0], "exp")
    if not bottom or not same(top[0], bottom[0]):
        return None
    (x,), axes = top, total.prim.axes
    if log:
        return x - expand(LogSumExp(axes)(x), x.shape, axes)
    if parts(x, "sub") is not None:
        return None  # of differences to the maximum already
    e = el.exp(x - expand(ReduceMax(axes)(x), x.shape, axes))
    return e / expand(ReduceSum(axes)(e), e.shape, axes)


@rewrite("log_sigmoid", "log(sigmoid(x)) -> -softplus(-x)")
def _log_sigmoid(node: Node) -> Node | None:
    found = parts(node, "log")
    inner = parts(found[0], "sigmoid") if found else None
    return -el.softplus(-inner[0]) if inner else None


@rewrite("sigmoid", "1 / (1 + exp(-x)) -> sigmoid(x)")
def _sigmoid(node: Node) -> Node | None:
    found = parts(node, "div")
    one = parts(node, "reciprocal")
    if one is not None:
        found = (full(1, node.type), one[0])
    both = parts(found[1], "add") if found else None
    if not found or not both:
        return None
    e = next((v for x, y in (both, both[::-1]) if _is(x, 1) and (v := parts(y, "exp"))), None)
    if e is None:
        return None
    if _is(found[0], 1):
        return el.sigmoid(-e[0])
    top = parts(found[0], "exp")
    return el.sigmoid(e[0]) if top and same(top[0], e[0]) else None


@rewrite("sigmoid", "1 - sigmoid(x) -> sigmoid(-x)")
def _one_minus_sigmoid(node: Node) -> Node | None:
    found = pair(node)
    inner = parts(found[1], "sigmoid") if found and _is(found[0], 1) else None
    return el.sigmoid(-inner[0]) if inner else None


@rewrite("erfc", "1 - erf(x) -> erfc(x)")
def _erfc(node: Node) -> Node | None:
    found = pair(node)
    inner = parts(found[1], "erf") if found and _is(found[0], 1) else None
    return el.erfc(inner[0]) if inner else None


@rewrite("sech2", "1 - tanh(x)^2 -> 1 / cosh(x)^2")
def _sech2(node: Node) -> Node | None:
    found = pair(node)
    root = square_of(found[1]) if found and _is(found[0], 1) else None
    inner = parts(root, "tanh") if root is not None else None
    return el.sech2(inner[0]) if inner else None


@rewrite("log of a quotient", "log(a) - log(b) -> log1p((a - b) / b)")
def _log_quotient(node: Node) -> Node | None:
    found = pair(node)
    a, b = (parts(x, "log") for x in found) if found else (None, None)
    return el.log1p(difference(a[0], b[0]) / b[0]) if a and b else None


@rewrite("power by log1p", "(1 + x)^n -> exp(n log1p(x))")
def _growth(node: Node) -> Node | None:
    found = parts(node, "pow")
    inner = terms(found[0]) if found else []
    ones = [k for k, (s, t) in enumerate(inner) if s > 0 and _is(t, 1)]
    if found is None or len(inner) < 2 or not ones:
        return None
    rest = [t for k, t in enumerate(inner) if k != ones[0]]
    return el.exp(found[1] * el.log1p(sum_of_terms(rest, node)))


@rewrite("sum of logarithms", "log(prod(x)) -> sum(log(x))")
def _log_product(node: Node) -> Node | None:
    found = parts(node, "log")
    if not found or not isinstance(found[0].prim, ReduceProd):
        return None
    return ReduceSum(found[0].prim.axes)(el.log(found[0].inputs[0]))


@rewrite("slogdet", "log(det(x)) -> log(abs(det(x))) by its factors")
def _log_det(node: Node) -> Node | None:
    found = parts(node, "log")
    inner = parts(found[0], "abs") or found if found else None
    if not inner or not isinstance(inner[0].prim, Det):
        return None
    y = slogdet(Tensor(inner[0].inputs[0]))[1]
    assert isinstance(y.node.prim, LogAbsDet)
    return y.node


@rewrite("sinh", "(exp(x) - exp(-x)) / 2 -> sinh(x)")
def _sinh(node: Node) -> Node | None:
    found = parts(node, "div") or parts(node, "mul")
    if not found:
        return None
    half = number(found[1])
    both = pair(found[0]) if half == (2.0 if node.prim is el.div else 0.5) else None
    a, b = (parts(x, "exp") for x in both) if both else (None, None)
    minus = parts(b[0], "neg") if b else None
    return el.sinh(a[0]) if a and minus and same(minus[0], a[0]) else None


# -- squares and roots ----------------------------------------------------------------------------


@rewrite("hypot", "sqrt(x^2 + y^2) -> hypot(x, y)")
def _hypot(node: Node) -> Node | None:
    found = parts(node, "sqrt")
    both = parts(found[0], "add") if found else None
    if not both:
        return None
    a, b = (square_of(x) for x in both)
    if a is not None and b is not None:
        return el.hypot(a, b)
    known = a if a is not None else b
    return el.hypot(known, full(1, known.type)) if known is not None and any(
        _is(x, 1) for x in both) else None  # fmt: skip


@rewrite("difference of squares", "x^2 - y^2 -> (x - y) (x + y)")
def _squares(node: Node) -> Node | None:
    found = pair(node)
    if not found:
        return None
    a, b = (full(1, x.type) if _is(x, 1) else square_of(x) for x in found)
    if a is None or b is None:
        return None
    return difference(a, b) * (a + b)


@rewrite("conjugate", "sqrt(a) - sqrt(b) -> (a - b) / (sqrt(a) + sqrt(b))")
def _roots(node: Node) -> Node | None:
    found = pair(node)
    a, b = (parts(x, "sqrt") for x in found) if found else (None, None)
    if not found or not a or not b:
        return None
    return difference(a[0], b[0]) / (found[0] + found[1])


@rewrite("conjugate", "sqrt(a^2 - c) - a -> -c / (sqrt(a^2 - c) + a)")
def _quadratic(node: Node) -> Node | None:
    found = pair(node)
    if not found:
        return None
    for k, (root, other) in enumerate((found, found[::-1])):
        inner = parts(root, "sqrt")
        if inner is None or parts(other, "sqrt") is not None:
            continue
        squares = [t for s, t in terms(inner[0]) if s > 0 and _is_square(t, other)]
        if not squares:
            continue
        rest = difference(inner[0], squares[0])
        y = rest / (root + other)
        return y if k == 0 else -y
    return None


def _is_square(term: Node, of: Node) -> bool:
    if _is(term, 1) and _is(of, 1):
        return True
    root = square_of(term)
    return root is not None and same(root, of)


@rewrite("Vieta's formula", "-b + sqrt(b^2 - c) -> -c / (b + sqrt(b^2 - c)), by the sign of b")
def _vieta(node: Node) -> Node | None:
    new = _quadratic(node)
    found = pair(node)
    if new is None or found is None:
        return None
    other = found[1] if parts(found[0], "sqrt") else found[0]
    return el.select(el.gt(other, full(0, other.type)), new, node)


@rewrite("difference of fractions", "a / b - a / d -> a (d - b) / (b d)")
def _fractions(node: Node) -> Node | None:
    found = pair(node)
    a, b = (parts(x, "div") for x in found) if found else (None, None)
    if not a or not b or not same(a[0], b[0]):
        return None
    return a[0] * difference(b[1], a[1]) / (a[1] * b[1])


# -- trigonometric functions ----------------------------------------------------------------------


@rewrite("half angle", "1 - cos(x) -> 2 sin(x / 2)^2")
def _half_angle(node: Node) -> Node | None:
    found = pair(node)
    for k in (0, 1):
        one, other = (found or (node, node))[:: 1 if k == 0 else -1]
        inner = parts(other, "cos")
        if found and _is(one, 1) and inner:
            s = el.sin(inner[0] * 0.5)
            return (2 if k == 0 else -2) * (s * s)
    return None


@rewrite("half angle", "cosh(x) - 1 -> 2 sinh(x / 2)^2")
def _half_angle_of_cosh(node: Node) -> Node | None:
    found = pair(node)
    inner = parts(found[0], "cosh") if found and _is(found[1], 1) else None
    if not inner:
        return None
    s = el.sinh(inner[0] * 0.5)
    return 2 * (s * s)


@rewrite("product of sines", "sin(a) - sin(b) -> 2 cos((a + b) / 2) sin((a - b) / 2)")
def _sines(node: Node) -> Node | None:
    found = pair(node)
    a, b = (parts(x, "sin") for x in found) if found else (None, None)
    if not a or not b:
        return None
    return 2 * el.cos((a[0] + b[0]) * 0.5) * el.sin(difference(a[0], b[0]) * 0.5)


@rewrite("product of sines", "cos(a) - cos(b) -> -2 sin((a + b) / 2) sin((a - b) / 2)")
def _cosines(node: Node) -> Node | None:
    found = pair(node)
    a, b = (parts(x, "cos") for x in found) if found else (None, None)
    if not a or not b:
        return None
    return -2 * el.sin((a[0] + b[0]) * 0.5) * el.sin(difference(a[0], b[0]) * 0.5)


@rewrite("difference of angles", "atan(a) - atan(b) -> atan2(a - b, 1 + a b)")
def _angles(node: Node) -> Node | None:
    found = pair(node)
    a, b = (parts(x, "atan") for x in found) if found else (None, None)
    return el.atan2(difference(a[0], b[0]), 1 + a[0] * b[0]) if a and b else None


@rewrite("sinc", "sin(x) / x -> sinc(x / pi)")
def _sinc(node: Node) -> Node | None:
    found = parts(node, "div")
    inner = parts(found[0], "sin") if found else None
    if not found or not inner or not same(inner[0], found[1]):
        return None
    y: Any = sinc(Tensor(inner[0] * (1 / np.pi)))
    scaled = parts(inner[0], "mul")
    if scaled and (c := number(scaled[1])) and abs(c / np.pi - 1) < 1e-3:
        y = sinc(Tensor(scaled[0]))
    return y.node


# -- sums and matrices ----------------------------------------------------------------------------


@rewrite("two-pass variance", "mean(x^2) - mean(x)^2 -> mean((x - mean(x))^2)")
def _variance(node: Node) -> Node | None:
    found = pair(node)
    if not found:
        return None
    squares, mean = shared_mean(found[0]), square_of(found[1])
    averaged = shared_mean(mean) if mean is not None else None
    if squares is None or averaged is None or mean is None:
        return None
    (a, axes, n), (x, other, _) = squares, averaged
    root = square_of(a)
    if root is None or not same(root, x) or axes != other:
        return None
    centred = x - expand(mean, x.shape, axes)
    return ReduceSum(axes)(centred * centred) / full(n, node.type)


@rewrite("differences first", "x^2 - 2 x y + y^2 -> (x - y)^2")
def _squared_difference(node: Node) -> Node | None:
    found = terms(node) if node.prim in (el.add, el.sub) else []
    roots = [(t, r) for s, t in found if s > 0 and (r := square_of(t)) is not None]
    mixed = [t for s, t in found if s < 0]
    if len(found) != 3 or len(roots) != 2 or len(mixed) != 1:
        return None
    factors = _factors(mixed[0])
    (_, x), (_, y) = roots
    rest = [f for f in factors if not _is(f, 2)]
    if len(factors) != 3 or len(rest) != 2:
        return None
    if (same(rest[0], x) and same(rest[1], y)) or (same(rest[0], y) and same(rest[1], x)):
        d = difference(x, y)
        return d * d
    return None


def _factors(x: Node) -> list[Node]:
    found: list[Node] = []
    todo = [plain(x)]
    while todo:
        f = todo.pop()
        if f.prim is el.mul and len(found) < 8:
            todo += map(plain, f.inputs)
        else:
            found.append(f)
    return found


@rewrite("solve", "inv(a) @ b -> solve(a, b)")
def _solve(node: Node) -> Node | None:
    if not isinstance(node.prim, DotGeneral):
        return None
    a, b = map(plain, node.inputs)
    if (
        not isinstance(a.prim, Inv)
        or node.attrs["a_contract"] != (a.type.rank - 1,)
        or a.type.rank != 2
    ):
        return None
    if node.attrs["b_contract"] != (0,) or b.type.rank > 2:
        return None
    matrix = a.inputs[0]
    right = b if b.type.rank == 2 else Reshape((*b.shape, 1))(b)
    return Reshape(node.shape)(Solve()(matrix, LU()(matrix), right))
