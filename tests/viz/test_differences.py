"""Differences of arrays and of what summaries tell of them."""

import numpy as np
import pytest

from retrograd.viz import difference, largest_first, of_summaries, summary

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128, np.int64])
def test_relative_differences_against_numpy(dtype):
    a, b = ((10 * RNG.standard_normal((4, 5))).astype(dtype) for _ in range(2))
    relative, largest = difference(a, b)
    wide = np.complex128 if dtype == np.complex128 else np.float64
    x, y = a.astype(wide), b.astype(wide)
    wanted = np.linalg.norm(x - y) / max(np.linalg.norm(x), np.linalg.norm(y))
    assert relative == pytest.approx(wanted, rel=1e-12)
    assert largest == abs(x - y).max()
    assert difference(a, a) == (0.0, 0.0)
    assert difference(b, a) == difference(a, b)


@pytest.mark.parametrize(
    ("a", "b", "wanted"),
    [
        ([], [], (0, 0)),
        ([0.0], [-0.0], (0, 0)),
        ([np.nan, 1], [np.nan, 1], (0, 0)),
        ([np.inf, 1], [np.inf, 2], (0.5, 1)),
        ([np.nan], [1], (np.inf, np.inf)),
        ([np.inf], [-np.inf], (np.inf, np.inf)),
        ([1e300], [2e300], (0.5, 1e300)),
        ([1e-300], [2e-300], (0.5, 1e-300)),
        ([True], [False], (1, 1)),
    ],
)
def test_ends_of_the_range(a, b, wanted):
    assert difference(np.array(a), np.array(b)) == wanted


def parted(first, second):
    before, after = (
        {"nodes": [{"id": 0, "shape": "4"}], "values": {"0": summary(np.asarray(v))}}
        for v in (first, second)
    )
    return of_summaries(before, after, {0: (0, True)})


def test_summaries():
    small = parted([1.0, 2, 3, 4], [1.0, 2, 3, 5])
    assert small[0]["relative"] == pytest.approx(1 / np.sqrt(39))
    x = RNG.standard_normal(1000)
    (large,) = parted(x, 1.1 * x)
    exact = difference(x, 1.1 * x)
    assert 0 < large["relative"] <= exact[0] * (1 + 1e-9)
    assert large["relative"] == pytest.approx(exact[0])  # of arrays that are parallel, all of it
    bad = x.copy()
    bad[0] = np.nan
    (broken,) = parted(x, bad)
    assert broken["relative"] == np.inf
    assert of_summaries({"nodes": []}, {"nodes": []}, {}) == []


def test_the_largest_comes_first():
    rows = [{"node": i, "relative": r} for i, r in enumerate([0.1, np.inf, 0.1, 2.0])]
    assert [r["node"] for r in largest_first(rows)] == [1, 3, 0, 2]
