"""Functions of hermitian matrices, and their derivatives of every order.

For `x = V diag(w) V^H`, `f(x) = V diag(f(w)) V^H`. The derivative of order k along e_1, ..., e_k
has the components

    sum over orders of the e, and over j_1, ..., j_(k-1), of
    f[w_i, w_(j_1), ..., w_j] (e_1)_(i j_1) ... (e_k)_(j_(k-1) j)

in the basis V, with the divided differences of f (Daleckii, Krein; Bhatia: "Matrix Analysis", V.3).
Nothing in it asks which vectors belong to equal eigenvalues. It is symmetric in the directions, and
in these and what it is contracted with: so the derivative of order k, as an operation of x and the
directions, has itself, and the one of order k + 1, for rules in both modes.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.autodiff import batched, pushforward
from retrograd.errors import ShapeError
from retrograd.ir import Graph, Node, TensorType, declare, full, product
from retrograd.ops.complex import conj, real
from retrograd.ops.control.body import fresh
from retrograd.ops.elementwise import abs, cast, eq, le, max, min, select
from retrograd.ops.leaf import constant
from retrograd.ops.linalg import Eigh
from retrograd.ops.linalg.determinant import inner
from retrograd.ops.linalg.eigen import unpacked
from retrograd.ops.linalg.matrix import (
    Given,
    adjoint,
    along,
    check_matrices,
    diagonal,
    epsilon,
    symmetric,
    tolerance,
)
from retrograd.ops.linalg.matrix import product as times
from retrograd.ops.reduce import ReduceSum
from retrograd.ops.shape import expand, reshape

NODES = {1: 16, 2: 8, 3: 6}  # of Gauss's rule in each dimension, by order
FEWEST = 4
MARGIN = 4  # times its error bound that a quotient may be off what an integral says


@declare
class MatrixFunction(Given):
    """`y`, which is the derivative of order `order` of a function of the hermitian part of
    `x[..., n, n]` along as many directions `[..., n, n]`, of which the hermitian parts count; for
    order 0 the function itself.

    `f` is a graph of numbers: of an eigenvalue, and of further numbers, of which there is one for
    each matrix. The inputs are x, the directions, these numbers `[...]`, and y. With `clipped`,
    eigenvalues that are negative by rounding count as zero.
    """

    name = "matrix_function"
    f: Graph
    order: int = 0
    clipped: bool = False

    def infer(self, *types: TensorType) -> TensorType:
        several = 1 + self.order
        count = several + len(self.f.inputs)
        if len(types) != count:
            listed = ", ".join(map(str, types))
            raise ShapeError(f"{self.name} takes {count} inputs here, not {len(types)}: {listed}")
        x, y = types[0], types[-1]
        check_matrices(self, *types[:several], y, square=True)
        number = TensorType(x.dtype.real if x.dtype.is_complex else x.dtype, x.shape[:-2])
        for t in (*types[1:several], y):
            if t != x:
                raise ShapeError(f"{self.name} of {x} along {t}: the two types are the same")
        for t in types[several:-1]:
            if t != number:
                raise ShapeError(f"{self.name} of {x}: {t} should be {number}, one for each matrix")
        return y

    def _parts(self, values: Sequence[Any]) -> tuple[Any, list[Any], list[Any]]:
        several = 1 + self.order
        return values[0], list(values[1:several]), list(values[several:-1])

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        """The same operation along g in the place of a direction, and along one direction more."""
        x, along_, numbers = self._parts(inputs)
        g = conj(g)
        found: list[Node | None] = [conj(self._of(x, [*along_, g], numbers))]
        for k in range(self.order):
            others = [g if i == k else e for i, e in enumerate(along_)]
            found.append(conj(self._of(x, others, numbers)))
        for k in range(len(numbers)):
            slope = self._of(x, along_, numbers, _slope(self.f, 1 + k))
            found.append(real(inner(conj(g), slope)))
        return [*found, None]

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        """Along one direction more, and along tangents in the place of directions."""
        x, along_, numbers = self._parts(inputs)
        t, moving, changing = self._parts(tangents)
        parts = [] if t is None else [self._of(x, [*along_, t], numbers)]
        for k, e in enumerate(moving):
            if e is not None:
                others = [e if i == k else d for i, d in enumerate(along_)]
                parts.append(self._of(x, others, numbers))
        for k, c in enumerate(changing):
            if c is not None:
                part = self._of(x, along_, numbers, _slope(self.f, 1 + k))
                parts.append(part * along(cast(c, part.dtype), part))
        return sum(parts[1:], parts[0]) if parts else None

    def _of(
        self, x: Node, directions: Sequence[Node], numbers: Sequence[Node], f: Graph | None = None
    ) -> Node:
        return matrix_function(f or self.f, x, directions, numbers, self.clipped)


def matrix_function(
    f: Graph, x: Node, directions: Sequence[Node] = (), numbers: Sequence[Node] = (),
    clipped: bool = False,
) -> Node:  # fmt: skip
    """The derivative of `f(x)` along directions, as a function of all its operands."""
    w, v = unpacked(Eigh()(x))
    w = real(w)
    if clipped:
        w = select(le(w, full(0, w.type)) & le(-w, along(tolerance(w), w)), full(0, w.type), w)
    inside = [times(adjoint(v), symmetric(e), v) for e in directions]
    middle = cast(_components(f, w, inside, numbers), v.dtype)
    y = symmetric(times(v, middle, adjoint(v)))
    op = MatrixFunction(f, len(directions), clipped)
    return op(x, *directions, *numbers, y)


def _components(f: Graph, w: Node, directions: Sequence[Node], numbers: Sequence[Node]) -> Node:
    """The derivative in the basis of the eigenvectors."""
    k, lead = len(directions), w.type.rank - 1
    if not k:
        return diagonal(evaluated(f, w, numbers))
    shape = (*w.shape[:-1], *[w.shape[-1]] * (k + 1))
    axes = range(lead, lead + k + 1)
    points = [expand(w, shape, [a for a in axes if a != own]) for own in axes]
    table = divided_differences(f, points, numbers)
    table = cast(table, directions[0].dtype)
    total: Node | None = None
    for order in itertools.permutations(range(k)):
        if order > order[::-1]:
            continue  # the adjoint of another, whose hermitian part is the same
        term = table
        for place, number in enumerate(order):
            other = [a for a in axes if a not in (lead + place, lead + place + 1)]
            term = term * expand(directions[number], shape, other)
        term = ReduceSum(tuple(axes)[1:-1])(term) if k > 1 else term
        term = 2 * term if k > 1 else term
        total = term if total is None else total + term
    assert total is not None
    return total


# -- functions of numbers -------------------------------------------------------------------------
def _slope(f: Graph, position: int) -> Graph:
    """The derivative by one of the numbers that a graph takes."""
    inputs, outputs = fresh(f)
    x = inputs[position]
    (found,) = pushforward(outputs, [x], [full(1, x.type)])
    return Graph(inputs, [full(0, x.type) if found is None else found], f.name)


def evaluated(f: Graph, x: Node, numbers: Sequence[Node]) -> Node:
    """A function of numbers at every element of x; the numbers belong to its first axes."""
    n = product(x.shape)
    samples = {f.inputs[0]: reshape(x, (n,))}
    for own, c in zip(f.inputs[1:], numbers, strict=True):
        samples[own] = reshape(along(c, x), (n,))
    ((y, is_stack),) = batched(f.outputs, samples, n)
    return reshape(y if is_stack else expand(y, (n,), (0,)), x.shape)


def divided_differences(f: Graph, points: Sequence[Node], numbers: Sequence[Node]) -> Node:
    """`f[x_0, ..., x_k]`, element by element, also where points are close to one another or equal.

    With the points in order, it is the quotient `(f[x_1, ..., x_k] - f[x_0, ..., x_(k-1)]) / (x_k -
    x_0)`, and the mean of the k-th derivative over the simplex of the points, over k! (Hermite,
    Genocchi). The first is known to within its rounding errors; where the second, by Gauss's rule,
    lies within these, it is the better one, as it divides by nothing. So a function need not be
    smooth where points are far apart.
    """
    s, eps = _in_order(points), epsilon(points[0])
    values = [evaluated(f, x, numbers) for x in s]
    errors: list[Node] = [2 * eps * abs(y) for y in values]
    for k in range(1, len(s)):
        f = _slope(f, 0)
        for i in range(len(s) - k):
            span = s[i + k] - s[i]
            none = eq(span, full(0, span.type))
            safe = select(none, full(1, span.type), span)
            quotient = (values[i + 1] - values[i]) / safe
            bound = (errors[i + 1] + errors[i]) / safe
            mean, magnitude = _mean(f, s[i : i + k + 1], numbers)
            near = none | le(abs(mean - quotient), MARGIN * bound)
            values[i] = select(near, mean, quotient)
            errors[i] = select(near, 4 * eps * magnitude, bound + 2 * eps * abs(quotient))
    return values[0]


def _in_order(points: Sequence[Node]) -> list[Node]:
    """The points, sorted element by element."""
    s = list(points)
    for last in range(len(s) - 1, 0, -1):
        for i in range(last):
            s[i], s[i + 1] = min(s[i], s[i + 1]), max(s[i], s[i + 1])
    return s


def _mean(f: Graph, points: Sequence[Node], numbers: Sequence[Node]) -> tuple[Node, Node]:
    """The integral of f over the simplex of the points, of volume 1 / k!, and that of `|f|`."""
    k, rank = len(points) - 1, points[0].type.rank
    steps, weights = _rule(k)
    dtype = points[0].dtype.dtype
    shape = (*points[0].shape, len(weights))
    first = [expand(x, shape, (rank,)) for x in points]
    x = first[0]
    for i in range(k):
        part = expand(constant(steps[i].astype(dtype)), shape, tuple(range(rank)))
        x = x + part * (first[i + 1] - first[i])
    y = evaluated(f, x, numbers)
    y = y * expand(constant(weights.astype(dtype)), shape, tuple(range(rank)))
    total = ReduceSum((rank,))
    return total(y), total(abs(y))


@functools.cache
def _rule(k: int) -> tuple[Any, Any]:
    """Gauss's rule for `sum_i t_i (x_i - x_(i-1))`, `1 >= t_1 >= ... >= t_k >= 0`, a product of
    rules for the ratios of neighbouring t: the t of each point, and the weights."""
    u, w = np.polynomial.legendre.leggauss(NODES.get(k, FEWEST))
    u, w = (u + 1) / 2, w / 2
    ratios = np.array(list(itertools.product(u, repeat=k)))
    weights = np.array([math.prod(p) for p in itertools.product(w, repeat=k)])
    weights = weights * np.prod(ratios ** np.arange(k - 1, -1, -1), axis=1)
    return np.cumprod(ratios, axis=1).T, weights / (weights.sum() * math.factorial(k))
