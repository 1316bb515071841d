"""Places of extrema in compiled programs are NumPy's: the first one, NaN before all."""

import numpy as np
import pytest

import retrograd as rg

DTYPES = ["float16", "bfloat16", "float32", "float64", "int8", "uint16", "int32", "uint64", "bool"]


def values(dtype, rows, n, seed):
    """Few different numbers, with the special ones of the dtype."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 4, (rows, n)).astype(np.float64)
    if "float" in dtype:
        special = rng.choice([np.nan, np.inf, -np.inf, -0.0], (rows, n))
        x = np.where(rng.random((rows, n)) < seed / 8, special, x)
    return rg.tensor(x > 2) if dtype == "bool" else rg.tensor(x).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_places_are_those_of_numpy(dtype):
    both = rg.jit(lambda x: (rg.argmax(x, -1), rg.argmin(x, -1), rg.argmax(x * 1, 0)))
    for n in (1, 2, 37):
        for seed in range(3):
            x = values(dtype, 5, n, seed)
            a = np.asarray(x.numpy(), np.float64)
            found = [y.numpy() for y in both(x)]
            for y, expected in zip(found, (a.argmax(1), a.argmin(1), a.argmax(0)), strict=True):
                assert y.dtype == np.int64
                np.testing.assert_array_equal(y, expected)


def test_sizes_with_names():
    f = rg.jit(lambda x: rg.argmax(x + 1.0, -1), shapes={"x": "N M"})
    rng = np.random.default_rng(0)
    for shape in ((3, 4), (5, 1), (0, 3), (2, 130)):
        x = rng.standard_normal(shape).astype(np.float32)
        np.testing.assert_array_equal(f(rg.tensor(x)).numpy(), x.argmax(-1))
    with pytest.raises(rg.ShapeError, match="over no elements"):
        f(rg.zeros((3, 0)))
    assert f.cache_stats()["compilations"] == 1
