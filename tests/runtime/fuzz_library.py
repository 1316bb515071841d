"""Makers of what becomes calls of routines, and of complex numbers, which become real ones.

Matrices are near a diagonal of 1, 2, ..., so that no result depends much on their elements.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from retrograd.functions import linalg
from retrograd.functions.broadcasting import as_node
from retrograd.ir import Node, evaluate, float32, float64, lookup
from retrograd.ops import complex as parts
from retrograd.ops.elementwise import cast
from retrograd.ops.fft import Fft
from retrograd.ops.leaf import constant
from retrograd.ops.linalg.eigen import eigen_sum, turned
from retrograd.ops.linalg.matrix import transpose
from retrograd.ops.linalg.polar import lyapunov, polar
from retrograd.ops.linalg.svd import singular_sum
from retrograd.ops.reduce import ReduceSum
from retrograd.ops.shape import expand, reshape

if TYPE_CHECKING:
    from tests.runtime.fuzz_graphs import Fuzz

Made = tuple[Node, bool] | None
UNARY = ("inv", "pinv", "det", "cofactor", "expm", "lu", "qr", "svd", "svdvals")
OTHERS = ("solve", "triangular_solve", "logabsdet", "complement", "cofactor_slope", "eig",
          "eigvals", "least_squares")  # fmt: skip
SYMMETRIC = ("cholesky", "eigh", "eigvalsh")
# Values that are computed elsewhere, with derivatives of their own.
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "polar": polar,
    "lyapunov": lambda a: lyapunov(as_node(linalg.expm(a + transpose(a))), a),
    "nuclear_norm": lambda a: linalg.matrix_norm(a, ord="nuc"),
    "spectral_norm": lambda a: linalg.matrix_norm(a, ord=2),
    "turn": lambda a: turned(diagonal_of(a), a),
    "eigen_sum": lambda a: eigen_sum(a + transpose(a), diagonal_of(a)),
    "singular_sum": lambda a: singular_sum(a, diagonal_of(a)),
    "matrix_function": lambda a: linalg.sqrtmh(linalg.expm(a + transpose(a))),
}
PLANE = ("exp", "sin", "tanh", "sqrt", "mul", "fft")


def diagonal_of(a: Node) -> Node:
    return lookup("reduce_max")((1,))(a)


def calm_part(f: Fuzz) -> Node | None:
    """A scalar between -1 and 1 of some node."""
    x = f.pick(lambda x: x.dtype in (float32, float64))
    if x is None:
        return None
    total = ReduceSum(tuple(range(x.type.rank)))(f.calm(x)) if x.type.rank else f.calm(x)
    return f.do("sin", total)


def matrix(f: Fuzz, x: Node, n: int) -> Node:
    rng = np.random.default_rng(f.r.randrange(1 << 30))
    kind = x.dtype.dtype
    base = np.diag(np.arange(1.0, n + 1)) + rng.uniform(-0.05, 0.05, (n, n))
    tilt = rng.uniform(-0.05, 0.05, (n, n))
    return constant(base.astype(kind)) + constant(tilt.astype(kind)) * expand(x, (n, n), (0, 1))


def library(f: Fuzz) -> Made:
    x = calm_part(f)
    if x is None:
        return None
    a = matrix(f, x, f.r.choice((1, 2, 3, 5)))
    name = f.r.choice((*UNARY, *SYMMETRIC, *OTHERS, *FUNCTIONS))
    if name in FUNCTIONS:
        y: Any = FUNCTIONS[name](a)
    elif name in SYMMETRIC:
        y = lookup(name)()(a + lookup("permute")((1, 0))(a))
    elif name == "solve":
        y = linalg.solve(a, a * a)
    elif name == "triangular_solve":
        y = linalg.solve_triangular(a, a * a)
    elif name == "logabsdet":
        y = linalg.slogdet(a)[1]
    elif name == "complement":
        tall = lookup("concat")(0)(a, a)
        y = linalg.qr(tall, mode="complete")[0]
        return ReduceSum((0, 1))(y * y), False
    elif name == "least_squares":
        join = lookup("concat")(0)
        y = linalg.lstsq(join(a, a), join(a * a, a)).solution
    elif name == "cofactor_slope":
        y = lookup(name)()(a, a * a)
    elif name in ("eig", "eigvals"):
        w = lookup(name)()(a)  # in an order that rounding may decide
        y = f.do("hypot", parts.real(w), parts.imag(w))
    elif name == "inv":
        y = linalg.inv(a)
    elif name == "det":
        y = linalg.det(a)
    elif name == "pinv":
        y = linalg.pinv(a)
    else:
        y = lookup(name)()(a)
    y = y if y.dtype.is_float else cast(y, x.dtype)
    # Elements of factors may be large, or have signs that rounding decides: in all they are calm.
    return f.do("tanh", ReduceSum(tuple(range(y.type.rank)))(y * y) * 0.01), False


def plane(f: Fuzz) -> Made:
    x = f.pick(lambda x: x.dtype in (float32, float64))
    y = x and f.pick(lambda y: y.type == x.type)
    if x is None or y is None:
        return None
    z = parts.complex_(f.do("tanh", x) + 1.5, f.do("tanh", y))
    name = f.r.choice(PLANE)
    if name == "fft":
        n = evaluate(x.type.size, {}) if x.type.is_static else 0
        if not 0 < n <= 300:
            return None
        w = reshape(Fft(0, f.r.random() < 0.5)(reshape(z, (n,))), z.shape)
        w = w * lookup("constant")(np.asarray(1 / n, w.dtype.dtype), w.shape)()
    elif name == "mul":
        w = z * z
    else:
        w = f.do(name, z)
    return (parts.real(w) if f.r.random() < 0.5 else parts.imag(w)), False
