"""Few rows times a large matrix: the bits of the routine for matrix products, which adds up in the
same order in other loops, and the numbers of NumPy in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.codegen.emit import streamed_product
from retrograd.passes.lowering import strided_views

# Rows, terms, columns: whole blocks of terms and not, ends of vectors, several pieces of columns.
SHAPES = [
    (1, 300, 700),
    (1, 128, 4096),
    (2, 77, 2049),
    (3, 1000, 131),
    (1, 8, 40000),
    (1, 11, 9001),
]


def compiled(f: Any, *args: Any) -> np.ndarray[Any, Any]:
    graph = rg.trace(f, *[rg.spec(x.shape, x.dtype) for x in args])
    found: np.ndarray[Any, Any] = graph.compile()(*args).numpy()
    return found


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many nests were written in this way."""
    found: list[int] = []
    write = streamed_product.StreamedSums.write

    def counted(self: Any, *args: Any) -> None:
        found.append(self.length)
        write(self, *args)

    monkeypatch.setattr(streamed_product.StreamedSums, "write", counted)
    return found


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES)
def test_bits_of_the_routine(
    shape: tuple[int, int, int], dtype: Any, written: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    m, k, n = shape
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(m, k)).astype(dtype), rng.normal(size=(k, n)).astype(dtype)
    scale = float(rng.uniform(0.5, 2))  # a program that is not on disk for another test

    def f(x: Any, w: Any) -> Any:
        return (x @ w) * scale

    found = compiled(f, x, w)
    assert k in written
    for name in strided_views.LIMITS:
        monkeypatch.setattr(strided_views, name, 0)
    count = len(written)
    by_routine = compiled(lambda x, w: (x @ w) * (scale + 0.0), x, w)
    assert len(written) == count
    np.testing.assert_array_equal(found, by_routine)
    true = x.astype(np.float64) @ w.astype(np.float64) * scale
    size = np.abs(x).astype(np.float64) @ np.abs(w).astype(np.float64) * scale
    assert (np.abs(found - true) <= 8 * np.finfo(dtype).eps * size).all()


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_and_what_is_fused(threads: int, written: list[int]) -> None:
    """A bias and an activation behind, a conversion before, weights of half precision."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(2, 200)).astype(np.float32)
    w, b = rng.normal(size=(200, 3001)).astype(np.float16), rng.normal(size=3001).astype("f4")

    def f(x: Any, w: Any, b: Any) -> Any:
        return rg.relu((x * 2) @ w.astype(rg.float32) + b)

    with rg.num_threads(threads):
        found = compiled(f, x, w, b)
        alone = compiled(lambda x, w: x @ w, x * 2, w.astype(np.float32))
    np.testing.assert_array_equal(found, np.maximum(alone + b, 0))
    expected = np.maximum(2 * x.astype(np.float64) @ w.astype(np.float64) + b, 0)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)


def test_zeros_and_what_is_not_finite() -> None:
    """The sum of products that are all -0.0 is -0.0; infinities and NaN stay in their column."""
    x = np.full((1, 256), -1.0, np.float32)
    w = np.zeros((256, 1024), np.float32)
    w[3, 5], w[200, 6] = np.inf, np.nan
    found = compiled(lambda x, w: x @ w, x, w)
    assert found[0, 5] == -np.inf
    assert np.isnan(found[0, 6])
    rest = np.delete(found, [5, 6])
    assert (rest == 0).all()
    assert np.signbit(rest).all()
