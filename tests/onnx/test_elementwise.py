"""Formulas for what ONNX has no operator for, at the points where a simpler one would be wrong."""

import numpy as np
import pytest
from scipy import special

import retrograd as rg

pytest.importorskip("onnx", reason="ONNX is not installed (extra: onnx)")

from tests.onnx.evaluator import agrees, run


def of(f, *arrays):
    graph = rg.trace(f, *[rg.spec(a.shape, a.dtype.name) for a in arrays])
    return run(graph, arrays)[0]


TINY = np.array([1e-18, -1e-10, 1e-7, -0.0, 0.5, 700.0])


@pytest.mark.parametrize(
    ("f", "reference"),
    [(rg.log1p, np.log1p), (rg.expm1, np.expm1), (lambda x: rg.special.entr(x), special.entr),
     (rg.special.logit, special.logit), (rg.cbrt, np.cbrt)],
    ids=["log1p", "expm1", "entr", "logit", "cbrt"],
)  # fmt: skip
def test_nothing_cancels_next_to_zero(f, reference):
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(of(f, TINY), reference(TINY), rtol=2e-15)


def test_large_sides_do_not_overflow_on_the_way():
    a, b = np.array([3e200, 0.0, np.inf, 3e-200]), np.array([4e200, 0.0, np.nan, 4e-200])
    np.testing.assert_allclose(of(rg.hypot, a, b), [5e200, 0, np.inf, 5e-200], rtol=1e-15)
    np.testing.assert_allclose(of(rg.logaddexp, a[:2], b[:2]), [4e200, np.log(2)], rtol=1e-15)


def test_angles_of_all_quadrants_and_signs_of_zero():
    points = np.array([0.0, -0.0, 1.0, -2.0, np.inf, -np.inf])
    a, b = (x.reshape(-1) for x in np.meshgrid(points, points))
    found = of(rg.atan2, a, b)
    np.testing.assert_allclose(found, np.arctan2(a, b), rtol=1e-15)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(a))


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8"])
def test_whole_quotients_of_integers_have_no_faults(dtype):
    ends = np.iinfo(dtype)
    some = np.array([ends.min, ends.min + 1, 0, 3, 7, ends.max] + [-7, -1] * (ends.min < 0), dtype)
    a, b = (x.reshape(-1) for x in np.meshgrid(some, some))
    apart = (b != 0) & ~((a == ends.min) & (b.astype(int) == -1))
    a, b = a[apart], b[apart]
    assert of(lambda a, b: a // b, a, b).tolist() == (a // b).tolist()
    assert of(lambda a, b: a % b, a, b).tolist() == (a % b).tolist()


def test_shifts_by_more_than_the_width_and_of_negative_numbers():
    a = np.array([1, -1, -128, 127, 5, -5], np.int8)
    b = np.array([9, 9, 7, 1, -1, 1], np.int8)
    assert "BitShift" in agrees(lambda a, b: (a << b, a >> b), a, b)
    assert of(lambda a, b: a << b, a[3:4], b[3:4]).tolist() == [-2]
    assert of(lambda a, b: a >> b, a[5:], b[5:]).tolist() == [-3]


def test_numbers_beyond_an_integer_dtype_become_its_ends():
    x = np.array([1e10, -1e10, np.nan, 2.9, -2.9, np.inf])
    assert of(lambda x: x.astype("int8"), x).tolist() == [127, -128, 0, 2, -2, 127]
