"""erf and erfc where their formulas change, and where results vanish."""

import mpmath
import numpy as np
import pytest

from retrograd.ir import DType, float32, float64
from tests.codegen.math.edges import around, assert_ulps, values


@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
def test_where_formulas_change(dtype: DType) -> None:
    top = (4.0, 10.3) if dtype is float32 else (6.0, 27.2)
    x = around(0.47, -0.47, 1.0, -1.0, 0.95, *top, dtype=dtype)
    x = np.concatenate([x, np.linspace(-1.5, 1.5, 31).astype(dtype.dtype)])
    erf, erfc = values(["erf", "erfc"], x, dtype=dtype)
    assert_ulps(erf, mpmath.erf, 1.3, x)
    normal = erfc >= np.finfo(dtype.dtype).tiny
    assert_ulps(erfc[normal], mpmath.erfc, 4.0, x[normal])


def test_the_tail_ends_in_subnormal_numbers() -> None:
    x = np.array([26.5, 26.6, 26.8, 27.0, 27.2, 27.3, 28.0, 100.0, np.inf])
    (y,) = values(["erfc"], x)
    with mpmath.mp.workdps(30):
        right = [float(mpmath.erfc(v)) for v in x]
    np.testing.assert_allclose(y, right, rtol=1e-14, atol=4 * 5e-324)
    assert (y[5] > 0) == (right[5] > 0)


def test_symmetries_and_tiny_arguments() -> None:
    x = np.geomspace(5e-324, 30, 300)
    (y,), (z,) = values(["erf"], x), values(["erf"], -x)
    assert (-z).tobytes() == y.tobytes()
    tiny = x < 1e-20
    assert_ulps(y[tiny], mpmath.erf, 1.3, x[tiny])
    erfc, other = values(["erfc"], x)[0], values(["erfc"], -x)[0]
    np.testing.assert_allclose(erfc + other, 2, rtol=2**-51)
