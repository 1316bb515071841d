"""Arithmetic of elements: of complex numbers against Python's, of large and small ones too."""

import numpy as np
import pytest

from retrograd.codegen.libcalls.builder import LibCallBuilder, helper
from retrograd.ir import DType, float32, float64
from tests.codegen.llvm_function import run

NUMBERS = [1 + 2j, -3.5 + 0.25j, 1e-3 - 7j, 2j, -4 + 0j, 0.7 - 0.7j]


def results(dtype: DType, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Of each pair the sum, the difference, the product, the quotient, and a double."""
    paired = a.dtype.kind == "c"
    out = np.zeros((a.size, 5), a.dtype)

    def emit(w: LibCallBuilder) -> None:
        with w.loop(w.sizes[0]) as i:
            x, y = w.get(w.data[0], i), w.get(w.data[1], i)
            found = w.plus(x, y), w.minus(x, y), w.times(x, y), w.over(x, y)
            for k, value in enumerate((*found, w.scaled(x, w.real_number(2)))):
                w.put(value, w.data[2], w.add(w.mul(i, 5), k))
        w.line("ret i64 0")

    def write(w, p):
        symbol = helper(w, f"test.{paired}", emit, dtype, 3, [None], paired=paired)
        pointers = ", ".join(f"ptr {x}" for x in p)
        return w.new(f"call i64 @{symbol}({pointers}, ptr null, i64 {a.size})")

    run(write, a, b, out)
    return out


@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
def test_against_python(dtype: DType) -> None:
    kind = np.result_type(dtype.dtype, np.complex64)
    a, b = (x.ravel() for x in np.meshgrid(np.array(NUMBERS, kind), np.array(NUMBERS, kind)))
    for x, y in ((a, b), (a.real.copy(), 1 + abs(b.real))):
        wide = x.astype(np.result_type(x.dtype, float)), y.astype(np.result_type(y.dtype, float))
        wanted = [wide[0] + wide[1], wide[0] - wide[1], wide[0] * wide[1], wide[0] / wide[1]]
        found = results(dtype, x, y).T
        for k, right in enumerate([*wanted, 2 * wide[0]]):
            rounded = 8 * np.finfo(kind).eps * (abs(right) + abs(wide[0]) * abs(wide[1]) + 1e-30)
            np.testing.assert_array_less(abs(found[k] - right), rounded)


def test_quotients_near_the_ends_of_the_range() -> None:
    """The square of the divisor would overflow, or vanish."""
    for size in (1e300, 1e-300):
        a, b = np.array([(1 + 1j) * size]), np.array([(1 - 1j) * size])
        np.testing.assert_allclose(results(float64, a, b)[0, 3], 1j, atol=1e-15)
