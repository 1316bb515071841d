"""Summaries of arrays, compared with NumPy."""

import base64
import json

import numpy as np
import pytest

from retrograd.viz import strict, summary


def test_a_number_is_itself():
    assert summary(np.asarray(1.5, np.float32)) == {"data": [1.5]}
    assert summary(np.array([[7]])) == {"data": [7]}
    assert summary(np.array(True)) == {"data": [True]}
    assert strict(summary(np.array(np.inf))) == {"data": ["inf"]}


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int32", "bool"])
def test_agrees_with_numpy(dtype):
    a = (np.random.default_rng(0).normal(size=(7, 11)) * 3).astype(dtype)
    found, flat = summary(a), np.asarray(a, np.float64)
    for name in ("min", "max", "mean", "std"):
        assert found[name] == pytest.approx(getattr(flat, name)())
    assert found["norm"] == pytest.approx(np.linalg.norm(flat))
    assert found["zeros"] == np.count_nonzero(a == 0)
    assert sum(found["hist"]) == found["size"] == a.size
    counts, _ = np.histogram(flat, len(found["hist"]))
    assert np.abs(np.cumsum(counts) - np.cumsum(found["hist"])).max() <= 1  # rounding at an edge
    assert json.loads(json.dumps(found)) == found


def test_what_is_not_finite_is_counted_and_placed():
    a = np.ones((4, 50))
    a[1, 2], a[3, 0], a[2, 7] = np.nan, np.inf, -np.inf
    found = summary(a)
    assert (found["nan"], found["inf"], found["bad"]) == (1, 2, [1, 2])
    assert (found["min"], found["max"]) == (1, 1)
    assert sum(found["hist"]) == 197


def test_extremes():
    assert summary(np.zeros((0, 3))) == {"size": 0}
    assert summary(np.full(20, np.nan))["nan"] == 20
    huge = summary(np.full(100, 1e308))
    assert huge["mean"] == pytest.approx(1e308)
    assert np.isfinite(huge["norm"])
    wide = summary(np.array([-1.7e308, 1.7e308] * 20))
    assert sum(wide["hist"]) == 40
    assert summary(np.full(30, 3 + 4j))["max"] == 5


def cells(array, most=1024):
    """The picture of an array, as numbers, and how it is laid out."""
    told = summary(array, most)["map"]
    numbers = np.frombuffer(base64.b64decode(told["f16"]), "<f2").reshape(told["cells"])
    return numbers.astype(np.float64) * told["scale"], told


@pytest.mark.parametrize("shape", [(3,), (40,), (5, 7), (2, 3, 4), (8, 3, 3, 3), (2, 1, 1)])
def test_a_heat_map_holds_every_element_where_there_is_room(shape):
    a = np.random.default_rng(0).normal(size=shape) * 1e5
    found, told = cells(a)
    assert told["shape"] == list(shape)
    assert found.shape[1:] == (shape[-2:] if len(shape) > 1 else (1, *shape))
    np.testing.assert_allclose(found.reshape(shape), a, rtol=2**-11, atol=1e5 * 2**-24)


def test_a_cell_of_a_large_array_is_its_largest_element():
    a = np.random.default_rng(0).normal(size=(100, 70))
    a[13, 5] = -50.0
    found, told = cells(a, 100)
    down, across = told["block"]
    _, rows, columns = told["cells"]
    assert rows * columns <= 100
    for r in range(rows):
        for c in range(columns):
            block = a[r * down : (r + 1) * down, c * across : (c + 1) * across].reshape(-1)
            assert found[0, r, c] == pytest.approx(block[np.abs(block).argmax()], rel=1e-3)
    assert found.min() == -50


def test_the_longer_axis_gives_way():
    assert cells(np.ones((1000, 4)), 400)[1]["block"] == [10, 1]
    assert cells(np.ones((4, 1000)), 400)[1]["block"] == [1, 10]
    assert cells(np.ones(1000), 100)[1]["cells"] == [1, 1, 100]


def test_of_too_many_tiles_the_first_are_shown():
    found, told = cells(np.arange(9000.0).reshape(1000, 3, 3), 90)
    assert told["cells"] == [10, 3, 3]
    np.testing.assert_allclose(found.reshape(-1), np.arange(90.0), atol=0.05)


def test_what_is_not_finite_is_seen_in_a_heat_map():
    a = np.ones((64, 64))
    a[3, 3], a[40, 40], a[41, 40] = np.nan, -np.inf, 7
    found, told = cells(a, 256)
    assert np.isnan(found[0, 0, 0])
    assert found[0, 10, 10] == -np.inf
    assert told["scale"] == 1.0
    assert np.isfinite(found).sum() == 254
    whole, _ = cells(np.array([1.0, np.nan, np.inf, 1e-300]))
    np.testing.assert_array_equal(whole.reshape(-1), [1, np.nan, np.inf, 0])


def test_odd_arrays_have_heat_maps_or_none():
    assert "map" not in summary(np.zeros((0, 3)), 100)
    assert "map" not in summary(np.array(3.0), 100)
    assert cells(np.full(20, np.nan))[1]["scale"] == 1.0
    assert cells(np.zeros(20))[1]["scale"] == 1.0
    assert cells(np.array([3 + 4j, 0]))[0].max() == 5
    assert cells(np.array([True, False]))[0].tolist() == [[[1.0, 0.0]]]
    assert cells(np.full((3, 3), 1.7e308))[0].max() == pytest.approx(1.7e308)
