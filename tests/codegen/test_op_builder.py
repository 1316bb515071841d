"""Operations written for one lane or many, whole or as calls."""

import numpy as np
import pytest

from retrograd.codegen.builder import FunctionBuilder
from retrograd.codegen.op_builder import OpBuilder, bits_of, one_by_one, outlined
from retrograd.ir import DType, bool_, float32, float64, int64, uint8
from tests.codegen.llvm_function import run
from tests.codegen.math.lanes import Functions


def cube(at: OpBuilder, x: str) -> str:
    return at.instruction("fmul", x, at.instruction("fmul", x, x))


@pytest.mark.parametrize("lanes", [1, 4, 16])
@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
def test_inline_outlined_and_lane_by_lane_are_the_same(dtype: DType, lanes: int) -> None:
    x = np.linspace(-3, 3, 32).astype(dtype.dtype)
    ways = [cube, outlined("test.cube", cube), one_by_one("test.cube", cube)]
    functions = [(lambda at, x, f=f: f(at, *x), dtype) for f in ways]
    for y in Functions(dtype, [dtype], functions, lanes)(x):
        assert y.tobytes() == (x * (x * x)).tobytes()


def test_comparisons_know_the_sign_of_their_dtype() -> None:
    x, y = np.array([200, 1, 7, 7], "u1"), np.array([100, 255, 7, 8], "u1")

    def least(at: OpBuilder, a: list[str]) -> str:
        return at.select(at.compare("olt", "lt", *a), *a)

    (unsigned,) = Functions(uint8, [uint8, uint8], [(least, uint8)], 4)(x, y)
    np.testing.assert_array_equal(unsigned, np.minimum(x, y))
    a, b = np.array([-5, 3, 0, -1]), np.array([2, -9, 0, 1])
    (signed,) = Functions(int64, [int64, int64], [(least, int64)], 4)(a, b)
    np.testing.assert_array_equal(signed, np.minimum(a, b))


@pytest.mark.parametrize("brief", [False, True])
def test_brief_text_gives_the_same_bits(brief: bool) -> None:
    """Long polynomials as loops over a table, signs on bits."""
    c = [1.0, 0.5, -0.25, 0.125, 3.0, -7.0, 1e-3, 2e5]
    x = np.array([1.7, -0.3, -0.0, np.inf])
    y = np.empty((3, 4))

    def write(w: FunctionBuilder, p: list[str]) -> None:
        w.brief = brief
        at = OpBuilder(w, float64)
        for k in range(4):
            a = w.new(f"load double, ptr {w.new(f'getelementptr double, ptr {p[0]}, i64 {k}')}")
            found = at.polynomial(a, c), at.call("fabs", a), at.call("copysign", at.number(2), a)
            for j, value in enumerate(found):
                place = w.new(f"getelementptr double, ptr {p[1]}, i64 {4 * j + k}")
                w.line(f"store double {value}, ptr {place}")

    run(write, x, y)
    np.testing.assert_allclose(y[0, :3], np.polyval(c[::-1], x[:3]), 1e-14)
    assert y[1].tobytes() == np.abs(x).tobytes()
    assert y[2].tobytes() == np.copysign(2, x).tobytes()


def test_a_condition_that_holds_anywhere() -> None:
    def some(at: OpBuilder, x: list[str]) -> str:
        whole, bits = bits_of(at, x[0])
        negative = whole.compare("", "lt", bits, whole.number(0))
        found = at.with_dtype(bool_).anywhere(negative)
        return at.w.new(f"select i1 {found}, {at.type} {at.number(1)}, {at.type} {at.number(0)}")

    x = np.ones(16)
    x[[3, 9]] = -0.0
    (y,) = Functions(float64, [float64], [(some, float64)], 4)(x)
    np.testing.assert_array_equal(y.reshape(4, 4)[:, 0], [1, 0, 1, 0])
