"""Every function of one number against mpmath over all magnitudes, value and first derivative, in
units in the last place, on both backends and in both precisions."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest

import retrograd as rg
from retrograd.ops.elementwise import ELEMENTWISE, FLOAT
from tests.functions.accuracy.exact_functions import CASES, Exact, points

BOUND = 8.0
# Where more is allowed, of the value and of the derivative, and why.
ALLOWED: dict[str, tuple[float, float, str]] = {
    "gelu": (8, 60, "the derivative has a zero at -0.75"),
    "silu": (8, 60, "the derivative has a zero at -1.28"),
    "mish": (8, 60, "the derivative has a zero at -1.19"),
    "hardswish": (8, 60, "the derivative has a zero at -1.5"),
    "tanhshrink": (16, 16, "beyond 0.6 a tenth of x is left of the difference"),
    "erfcx": (8, 24, "below 2.5 the derivative is a difference"),
    "i0e": (8, 200, "the derivative is a difference of neighbouring orders below 20"),
    "i1e": (32, 200, "as i0e; SciPy's value loses 25 units near 0"),
    "k0e": (8, 200, "as i0e"),
    "k1e": (8, 200, "as i0e"),
    "i1": (8, 16, "from i1e, by a recurrence"),
    "j0": (8, 32, "SciPy's J1 loses 16 units near 0"),
    "j1": (32, 16, "SciPy's value loses 17 units near 0"),
    "y0": (24, 16, "near the zero at 0.89"),
    "y1": (16, 16, "the derivative is a difference"),
    "gamma": (12, 60, "the derivative has a zero at 1.46"),
    "entr": (8, 16, "the derivative has a zero at 1/e"),
    "sinc": (8, 1e9, "between zeros the derivative is a difference, near 0 a small one"),
}
ELSEWHERE = {
    "lgamma", "digamma", "trigamma", "ndtri", "erfcinv",  # codegen/math/test_special_functions.py
    "sech2",  # tests/ops/test_accuracy.py
    "portable_exp", "portable_log", "portable_atan", "portable_log_factorial",  # test_portable.py
    # SciPy's values: tests/functions/special/
    "spence", "ellipkm1", "ellipe", "exp1", "expi",
    "neg", "abs", "sign", "floor", "ceil", "trunc", "round", "relu",  # exact
}  # fmt: skip


def error(found: Any, exact: Exact, x: float, dtype: Any) -> float:
    """In units of the exact result, those of the least normal number below it."""
    info = np.finfo(dtype)
    right = mpmath.re(exact(mpmath.mpf(x)))
    if not mpmath.isfinite(right) or abs(right) > float(info.max):
        return 0.0
    size = max(abs(right), mpmath.mpf(float(info.tiny)))
    if not np.isfinite(found):
        return np.inf
    unit = mpmath.mpf(2) ** (mpmath.floor(mpmath.log(size, 2)) - info.nmant)
    return float(abs(mpmath.mpf(float(found)) - right) / unit)


def check(name: str, dtype: Any, count: int) -> None:
    case = CASES[name]
    x = points(case, count, dtype)
    v = rg.tensor(x)
    value = case.f(v).numpy()
    slope = rg.grad(lambda t: case.f(t).sum())(v).numpy()
    most = ALLOWED.get(name, (BOUND, BOUND))
    assert value.dtype == dtype
    with mpmath.workdps(120 if name == "tanhshrink" else 50):
        for what, found, exact, limit in (
            ("", value, case.value, most[0]),
            ("derivative of ", slope, case.slope, most[1]),
        ):
            for a, b in zip(x, found, strict=True):
                far = error(b, exact, float(a), dtype)
                assert far <= limit, f"{what}{name} at {a!r}: {b!r}, {far:.0f} units off"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.sample(10)
def test_functions(name: str, dtype: Any) -> None:
    check(name, dtype, 8)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("backend", ["llvm", "reference"])
@pytest.mark.parametrize("name", CASES)
def test_functions_everywhere(name: str, backend: str, dtype: Any) -> None:
    with rg.backend(backend):
        check(name, dtype, 100)


def test_no_operation_is_left_out() -> None:
    operations = {n for n, op in ELEMENTWISE.items() if op.arity == 1 and op.kinds[0] in FLOAT}
    numbers = {n for n in operations if ELEMENTWISE[n].result is None}
    assert numbers <= set(CASES) | ELSEWHERE
    assert all(max(most) > BOUND for *most, _ in ALLOWED.values())


@pytest.mark.parametrize("backend", ["llvm", "reference"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_and_small_arguments(backend: str, dtype: Any) -> None:
    """Beyond what mpmath has to say: infinities, and next to them."""
    big = float(np.finfo(dtype).max)
    with rg.backend(backend):
        x = rg.tensor(np.array([-np.inf, -big, big, np.inf], dtype))
        soft = rg.nn.functional.softsign
        np.testing.assert_array_equal(soft(x).numpy(), [-1, -1, 1, 1])
        np.testing.assert_array_equal(rg.grad(lambda t: soft(t).sum())(x).numpy(), np.zeros(4))
        for f in (rg.special.i0, rg.special.i0e):
            assert rg.grad(f)(rg.tensor(np.array(0, dtype))).item() == 0


@pytest.mark.parametrize("backend", ["llvm", "reference"])
@pytest.mark.parametrize("start", [0.0, 1e6, -1e6, 1e30])
def test_sums_of_exponentials_beside_large_numbers(backend: str, start: float) -> None:
    """Their gradients are those of softmax, which a shift does not change."""
    x = rg.tensor(np.float32(start) + np.array([0, 1, 0, 2], np.float32))
    same = x.numpy() - x.numpy().max()
    softmax = np.exp(same.astype(float)) / np.exp(same.astype(float)).sum()
    loss = rg.nn.functional.cross_entropy
    with rg.backend(backend):
        for f in (rg.logsumexp, lambda v: rg.logsumexp(v[None], axis=1)[0]):
            np.testing.assert_allclose(rg.grad(f)(x).numpy(), softmax, 1e-6)
            expected = np.diag(softmax) - np.outer(softmax, softmax)
            np.testing.assert_allclose(rg.hessian(f)(x).numpy(), expected, 1e-5, 1e-7)
        np.testing.assert_allclose(rg.log_softmax(x).numpy(), np.log(softmax), 1e-6, 1e-6)
        found = rg.grad(lambda v: loss(v[None], np.array([0])))(x).numpy()
        np.testing.assert_allclose(found, softmax - [1, 0, 0, 0], 1e-5, 1e-7)
        last = rg.grad(lambda v: rg.logcumsumexp(v)[-1])(x).numpy()
        assert abs(last.sum() - 1) < 1e-6


def test_sums_of_exponentials_of_infinities() -> None:
    inf = np.inf
    for f in (rg.logsumexp, lambda v: rg.logcumsumexp(v)[-1]):
        np.testing.assert_array_equal(rg.grad(f)(np.array([-inf, -inf])).numpy(), [0, 0])
        np.testing.assert_allclose(rg.grad(f)(np.array([-inf, 0.0, 0.0])).numpy(), [0, 0.5, 0.5])
        assert np.isnan(rg.grad(f)(np.array([inf, 0.0])).numpy()[0])
    half = rg.tensor(np.array([300.0, 300.0], np.float16))
    np.testing.assert_array_equal(rg.grad(rg.logsumexp)(half).numpy(), [0.5, 0.5])


FIELD = (
    "exp", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan",
    "asinh", "acosh", "atanh", "reciprocal",
)  # fmt: skip
ENDS = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 800.0, -800.0]


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize(
    "name",
    FIELD,
)
def test_complex_functions_at_infinities(name: str, dtype: Any) -> None:
    """As in C99, which NumPy follows; signs of infinities beside NaN are open."""
    z = np.array([complex(a, b) for a in ENDS for b in ENDS], dtype)
    names = {"acos": "arccos", "asin": "arcsin", "atan": "arctan"}
    names |= {f"{n}h": f"{n.replace('a', 'arc', 1)}h" for n in ("asin", "acos", "atan")}
    with rg.backend("llvm"), np.errstate(all="ignore"):
        found = getattr(rg, name)(rg.tensor(z)).numpy()
        right = 1 / z if name == "reciprocal" else getattr(np, names.get(name, name))(z)
    loose = np.isnan(right.real) | np.isnan(right.imag)
    for part in ("real", "imag"):
        a, b = getattr(found, part), getattr(right, part)
        a, b = np.where(loose, np.abs(a), a), np.where(loose, np.abs(b), b)
        np.testing.assert_allclose(a, b, 1e-5, 1e-30, err_msg=f"{name} {part}")
