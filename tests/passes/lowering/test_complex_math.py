"""Functions of complex numbers by their parts: special values, branch cuts, accuracy, overflow."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import mpmath
import numpy as np
import pytest

from retrograd.backend_registry import compile_graph
from retrograd.ir import Graph, complex64, complex128, lookup, spec
from retrograd.ops.elementwise import ELEMENTWISE
from retrograd.ops.leaf import input_node
from retrograd.runtime.backend import Array

UNARY = [
    n for n, op in ELEMENTWISE.items() if "complex" in op.kinds and op.arity == 1 and n != "neg"
]


ODD = (0.0, -0.0, 1.0, -1.0, 0.5, -3.0, math.inf, -math.inf, math.nan)
GRID = np.array([complex(x, y) for x, y in itertools.product(ODD, ODD)])


def compiled(name: str, *arrays: Array) -> Array:
    inputs = [input_node(spec(a.shape, a.dtype)) for a in arrays]
    graph = Graph(inputs, [lookup(name)()(*inputs)])
    return compile_graph(graph, "llvm")(list(arrays))[0]


def expected(name: str, z: Array) -> Array:
    with np.errstate(all="ignore"):
        return ELEMENTWISE[name].reference(z)


@pytest.mark.parametrize("name", UNARY)
def test_finite_special_points(name: str) -> None:
    """Zeros of both signs, points on branch cuts and on their ends, as C99 and NumPy have them."""
    finite = GRID[np.isfinite(GRID)]
    found, right = compiled(name, finite), expected(name, finite)
    for z, a, b in zip(finite, found, right, strict=True):
        for p, q in ((a.real, b.real), (a.imag, b.imag)):
            if math.isnan(q) or math.isinf(b.real) or math.isinf(b.imag):
                continue  # poles: which infinity or NaN is tested below
            assert math.isclose(p, q, rel_tol=1e-14, abs_tol=2e-16 * max(1, abs(b))), (z, a, b)


def value(text: str) -> float:
    """A number, or a multiple of pi."""
    if "p" not in text:
        return float(text)
    factor, _, below = text.partition("p")
    return float(factor.removesuffix("*") or 1) * math.pi / float(below.removeprefix("/") or 1)


# What the array API standard says of zeros, infinities and NaN: the point, then the real and the
# imaginary part of the result. pi is written as p; `-x` and `conj(x)` follow.
TABLE = {
    "acos": ["0 0 p/2 -0", "0 nan p/2 nan", "1 inf p/2 -inf", "1 nan nan nan", "-inf 1 p -inf",
             "inf 1 0 -inf", "-inf inf 3*p/4 -inf", "inf inf p/4 -inf", "inf nan nan ~inf",
             "-inf nan nan ~inf", "nan 1 nan nan", "nan inf nan -inf", "nan nan nan nan"],
    "acosh": ["0 0 0 p/2", "1 inf inf p/2", "0 nan nan ~p/2", "1 nan nan nan", "-inf 1 inf p",
              "inf 1 inf 0", "-inf inf inf 3*p/4", "inf inf inf p/4", "inf nan inf nan",
              "-inf nan inf nan", "nan 1 nan nan", "nan inf inf nan", "nan nan nan nan"],
    "asinh": ["0 0 0 0", "1 inf inf p/2", "1 nan nan nan", "inf 1 inf 0", "inf inf inf p/4",
              "inf nan inf nan", "nan 0 nan 0", "nan 1 nan nan", "nan inf ~inf nan",
              "nan nan nan nan"],
    "atanh": ["0 0 0 0", "0 nan 0 nan", "1 0 inf 0", "1 inf 0 p/2", "1 nan nan nan", "inf 1 0 p/2",
              "inf inf 0 p/2", "inf nan 0 nan", "nan 1 nan nan", "nan inf ~0 p/2",
              "nan nan nan nan"],
    "cosh": ["0 0 1 0", "0 inf nan ~0", "0 nan nan ~0", "1 inf nan nan", "1 nan nan nan",
             "inf 0 inf 0", "inf 2 -inf inf", "inf inf inf nan", "inf nan inf nan", "nan 0 nan ~0",
             "nan 1 nan nan", "nan inf nan nan", "nan nan nan nan"],
    "sinh": ["0 0 0 0", "0 inf ~0 nan", "0 nan ~0 nan", "1 inf nan nan", "1 nan nan nan",
             "inf 0 inf 0", "inf 2 -inf inf", "inf inf ~inf nan", "inf nan ~inf nan", "nan 0 nan 0",
             "nan 1 nan nan", "nan inf nan nan", "nan nan nan nan"],
    "tanh": ["0 0 0 0", "1 inf nan nan", "0 inf 0 nan", "1 nan nan nan", "0 nan 0 nan",
             "inf 1 1 0", "inf inf 1 ~0", "inf nan 1 ~0", "nan 0 nan 0", "nan 1 nan nan",
             "nan nan nan nan"],
    "exp": ["0 0 1 0", "1 inf nan nan", "1 nan nan nan", "inf 0 inf 0", "-inf 2 -0 0",
            "inf 2 -inf inf", "-inf inf ~0 ~0", "inf inf ~inf nan", "-inf nan ~0 ~0",
            "inf nan ~inf nan", "nan 0 nan 0", "nan 1 nan nan", "nan nan nan nan"],
    "expm1": ["0 0 0 0", "1 inf nan nan", "1 nan nan nan", "inf 0 inf 0", "-inf 2 -1 0",
              "inf 2 -inf inf", "-inf inf -1 ~0", "inf inf ~inf nan", "-inf nan -1 ~0",
              "inf nan ~inf nan", "nan 0 nan 0", "nan 1 nan nan", "nan nan nan nan"],
    "log": ["-0 0 -inf p", "0 0 -inf 0", "1 inf inf p/2", "1 nan nan nan", "-inf 1 inf p",
            "inf 1 inf 0", "-inf inf inf 3*p/4", "inf inf inf p/4", "inf nan inf nan",
            "-inf nan inf nan", "nan 1 nan nan", "nan inf inf nan", "nan nan nan nan"],
    "log1p": ["-1 0 -inf 0", "1 inf inf p/2", "1 nan nan nan", "-inf 1 inf p", "inf 1 inf 0",
              "-inf inf inf 3*p/4", "inf inf inf p/4", "inf nan inf nan", "-inf nan inf nan",
              "nan 1 nan nan", "nan inf inf nan", "nan nan nan nan"],
    "sqrt": ["0 0 0 0", "-0 0 0 0", "1 inf inf inf", "nan inf inf inf", "1 nan nan nan",
             "-inf 1 0 inf", "inf 1 inf 0", "-inf nan nan ~inf", "inf nan inf nan", "nan 1 nan nan",
             "nan nan nan nan"],
}  # fmt: skip
ODD_FUNCTIONS = ("asinh", "atanh", "sinh", "tanh")


# Functions the standard gives by others: f(z) = a * g(i z).
TURNED = {"asin": (-1j, "asinh"), "atan": (-1j, "atanh"), "sin": (-1j, "sinh"),
          "tan": (-1j, "tanh"), "cos": (1, "cosh")}  # fmt: skip


def fits(found: float, text: str, sign: int = 1) -> bool:
    """Whether a part is what a table says; after `~` its sign is open."""
    wanted = sign * value(text.removeprefix("~"))
    if math.isnan(wanted):
        return math.isnan(found)
    if text.startswith("~"):
        found = math.copysign(found, wanted)
    if wanted == 0:
        return found == 0 and math.copysign(1, found) == math.copysign(1, wanted)
    return math.isclose(found, wanted, rel_tol=1e-15)


def at(name: str, points: Sequence[complex], backend: str) -> list[complex]:
    array = np.array(points)
    found = compiled(name, array) if backend == "llvm" else expected(name, array)
    return [complex(w) for w in found]


@pytest.mark.parametrize("backend", ["reference", "llvm"])
@pytest.mark.parametrize("name", TABLE)
def test_special_values_of_the_standard(name: str, backend: str) -> None:
    cases = []
    for row in TABLE[name]:
        x, y, re, im = row.split()
        z = complex(value(x), value(y))
        cases += [(z, re, im, 1, 1), (z.conjugate(), re, im, 1, -1)]
        if name in ODD_FUNCTIONS:
            cases += [(-z, re, im, -1, -1), (-z.conjugate(), re, im, -1, 1)]
    results = at(name, [case[0] for case in cases], backend)
    for (w, re, im, s, t), found in zip(cases, results, strict=True):
        good = fits(found.real, re, s) and fits(found.imag, im, t)
        assert good, f"{name}({w}) = {found}, not {s} * {re} + {t} * {im} i"


@pytest.mark.parametrize("backend", ["reference", "llvm"])
@pytest.mark.parametrize("name", TURNED)
def test_functions_that_are_others_of_a_turned_number(name: str, backend: str) -> None:
    factor, other = TURNED[name]
    results = at(name, [complex(z) for z in GRID], backend)
    others = at(other, [complex(-z.imag, z.real) for z in GRID], backend)
    for z, found, turned in zip(GRID, results, others, strict=True):
        right = turned if factor == 1 else complex(turned.imag, -turned.real)
        for p, q in ((found.real, right.real), (found.imag, right.imag)):
            open_sign = math.isnan(right.real) or math.isnan(right.imag) or q == 0
            p, q = (abs(p), abs(q)) if open_sign else (p, q)
            assert (math.isnan(p) and math.isnan(q)) or math.isclose(p, q, rel_tol=1e-14), (
                z,
                found,
            )


@pytest.mark.parametrize("dtype", [complex64, complex128], ids=str)
@pytest.mark.parametrize("name", UNARY)
@pytest.mark.sample(5)
def test_accuracy(name: str, dtype) -> None:
    """Each result, as a number, within some units of rounding of the true value, over wide ranges
    of both parts; near zeros and branch points of a function too."""
    rng = np.random.default_rng(len(name))
    size = 250
    wide = 10.0 ** rng.uniform(-6, 1.3, (2, size)) * rng.choice([-1, 1], (2, size))
    turn = np.exp(2j * np.pi * rng.uniform(0, 1, size))
    near = 10.0 ** rng.uniform(-7, -1, (2, size)) * rng.choice([-1, 1], (2, size))
    z = np.concatenate([wide[0] + 1j * wide[1], turn, near[0] + 1j * near[1],
                        1 + near[0] + 1j * near[1], -1 + near[0] + 1j * near[1]])  # fmt: skip
    z = z.astype(dtype.dtype)
    found = compiled(name, z)
    f = {"reciprocal": lambda w: 1 / w, "exp2": lambda w: mpmath.power(2, w),
         "log2": lambda w: mpmath.log(w) / mpmath.log(2),
         "log1p": lambda w: mpmath.log(1 + w)}.get(name) or getattr(mpmath, name)  # fmt: skip
    eps = float(np.finfo(dtype.dtype).eps)
    with mpmath.mp.workdps(40):
        for w, y in zip(z, found, strict=True):
            right = f(mpmath.mpc(complex(w)))
            error = abs(mpmath.mpc(complex(y)) - right) / abs(right) if right else abs(y)
            assert error <= 24 * eps, (name, complex(w), complex(y), complex(right))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [complex64, complex128], ids=str)
def test_no_overflow_on_the_way(dtype) -> None:
    big = float(np.finfo(dtype.dtype).max) / 4
    z = np.array([big + 1j * big, big, 1j * big, -big - 1j * big, 4 / big * (1 + 1j)], dtype.dtype)
    for name in ("sqrt", "log", "asinh", "acosh", "asin", "acos", "atan", "atanh", "reciprocal"):
        found = compiled(name, z)
        right = expected(name, z.astype(np.complex128))
        if dtype is complex64:
            np.testing.assert_allclose(found, right, rtol=2e-6, err_msg=name)
        assert np.isfinite(found).all(), name
    np.testing.assert_allclose(compiled("div", z, z), np.ones(5), rtol=1e-6)


@pytest.mark.parametrize("dtype", [complex64, complex128], ids=str)
def test_hyperbolic_functions_next_to_overflow(dtype) -> None:
    """`cosh(x)` overflows where the product with the sine or cosine of the height need not."""
    edge = math.log(float(np.finfo(dtype.dtype).max))
    z = np.array([edge + 0.9 + 1.5j, -edge - 0.9 + 1.5j, edge - 5 + 1j, 10 - 2j], dtype.dtype)
    for name, f in {"sinh": mpmath.sinh, "cosh": mpmath.cosh, "exp": mpmath.exp}.items():
        for w, y in zip(z, compiled(name, z), strict=True):
            right = complex(f(mpmath.mpc(complex(w))))
            for a, b in ((y.real, right.real), (y.imag, right.imag)):
                limit = float(np.finfo(dtype.dtype).max)
                wanted = math.copysign(math.inf, b) if abs(b) > limit else b
                assert math.isclose(a, wanted, rel_tol=1e-4 if dtype is complex64 else 1e-12)
    flat = np.array([2 * edge, -2 * edge + 0j, complex(2 * edge, -0.0)], dtype.dtype)
    found = compiled("cosh", flat)
    assert np.isinf(found.real).all()
    np.testing.assert_array_equal(found.imag, 0)
    np.testing.assert_array_equal(np.signbit(found.imag), [False, True, True])


def test_division_by_a_number_of_unknown_height() -> None:
    z = np.array([1 + 2j, 1j, 0])
    found = compiled("div", z, np.array([complex(0, np.nan)] * 3))
    assert np.isnan(found.real).all()
    assert np.isnan(found.imag).all()


def test_division_by_zero() -> None:
    z = np.array([1 + 2j, 0, -1j])
    with np.errstate(all="ignore"):
        right = z / np.zeros(3)
    np.testing.assert_array_equal(compiled("div", z, np.zeros(3, complex)), right)
