"""Scatters are XLA's; of equal places the later update counts, or all are combined."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg

pytest.importorskip("jax", reason="the extra xla is not installed")
from tests.xla.lowering.programs import operations, value

X = np.zeros((4, 2))
AT = np.array([1, -1, 1])
NEW = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("add", [[0, 0], [6, 9], [0, 0], [3, 4]]),
        ("set", [[0, 0], [5, 7], [0, 0], [3, 4]]),
        ("max", [[0, 0], [5, 7], [0, 0], [3, 4]]),
        ("min", [[0, 0], [0, 0], [0, 0], [0, 0]]),
        ("multiply", [[0, 0], [0, 0], [0, 0], [0, 0]]),
    ],
)
def test_combined(name: str, expected: object) -> None:
    def f(x: rg.Tensor, i: rg.Tensor, v: rg.Tensor) -> rg.Tensor:
        return getattr(x.at[i], name)(v)

    found = operations(f, X, AT, NEW)
    assert found.count("scatter") == 1
    np.testing.assert_array_equal(value(f, X, AT, NEW), expected)


def test_the_gradient_of_indexing() -> None:
    f = rg.grad(lambda x, i: (x[i] ** 3).sum())
    x = np.random.default_rng(0).normal(size=(4, 2))
    want = np.zeros_like(x)
    np.add.at(want, AT, 3 * x[AT] ** 2)
    np.testing.assert_allclose(value(f, x, AT), want, rtol=1e-13)


def test_an_index_out_of_range_is_refused() -> None:
    with pytest.raises(rg.IndexRangeError, match="the index 4 on axis 0 of size 4"):
        value(lambda x, i: x.at[i].add(1.0), X, np.array([0, 4]))
