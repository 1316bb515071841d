"""Norms of parameters, gradients and updates against NumPy."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.train.parameter_norms import by_name, parameter_norms


def test_against_numpy() -> None:
    rng = np.random.default_rng(0)
    kinds = [np.float32, np.float64, np.float16, np.complex64]
    before, slopes, after = (
        [(rng.normal(size=(3, 4)) + 0.5j * rng.normal(size=(3, 4))).astype(k) if k == np.complex64
         else rng.normal(size=(3, 4)).astype(k) for k in kinds] for _ in range(3)
    )  # fmt: skip
    with rg.backend("reference"):
        found = parameter_norms(*([rg.tensor(x) for x in xs] for xs in (before, slopes, after)))
    moved = [(a - b).astype(np.complex128) for a, b in zip(after, before, strict=True)]
    wanted = [[np.linalg.norm(np.asarray(x, np.complex128)) for x in xs]
              for xs in (before, slopes, moved)]  # fmt: skip
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-6)
    named = by_name(["a", "b", "c", "d"], found.numpy())
    assert [*named] == ["a", "b", "c", "d"]
    assert named["b"]["gradient"] == pytest.approx(float(wanted[1][1]), rel=1e-5)


def test_squares_that_float32_has_not() -> None:
    tiny, huge = (rg.tensor(np.full(4, x, np.float32)) for x in (1e-30, 1e30))
    with rg.backend("reference"):
        found = parameter_norms([tiny], [huge], [tiny]).numpy()
    np.testing.assert_allclose(found, [[2e-30], [2e30], [0.0]], rtol=1e-6)
