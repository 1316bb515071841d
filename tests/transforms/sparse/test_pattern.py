"""Patterns of dependence: everything that is not zero, and for known operations nothing else."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.transforms.sparse import pattern
from tests.transforms.sparse.covering import assert_covers

RNG = np.random.default_rng(0)
BAND = np.triu(np.tril(np.ones((6, 6)), 1), -1)

# Functions of a vector of six elements, and whether the pattern is exact.
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], bool]] = {
    "elementwise": (lambda x: rg.sin(x) * x + 1, True),
    "a mask": (lambda x: x * np.array([1.0, 0, 1, 0, 0, 1]), True),
    "a choice": (lambda x: rg.where(np.arange(6) < 2, x, x[::-1]), True),
    "differences": (lambda x: x[1:] - x[:-1], True),
    "broadcast": (lambda x: x[:, None] * x[None, :3], True),
    "reshape and transpose": (lambda x: (x.reshape(2, 3).T ** 2).reshape(-1), True),
    "pad, roll, concat": (lambda x: rg.concat([rg.pad(x, 1), rg.roll(x, 2)]), True),
    "sums": (lambda x: x.reshape(2, 3).sum(axis=0), True),
    "logsumexp": (lambda x: rg.logsumexp(x.reshape(2, 3), axis=1), True),
    "a band": (lambda x: BAND @ x, True),
    "a product of two": (lambda x: x.reshape(2, 3) @ x.reshape(3, 2), True),
    "batched product": (lambda x: rg.einsum("bi,bj->bij", x.reshape(2, 3), x.reshape(2, 3)), True),
    "running sum": (lambda x: rg.cumsum(x, axis=0), True),
    "running products of rows": (lambda x: rg.cumprod(x.reshape(2, 3) + 3, axis=1), True),
    "running sum backwards": (lambda x: rg.flip(rg.cumsum(rg.flip(x))) ** 2, True),
    "sorted rows": (lambda x: rg.sort(x.reshape(2, 3), axis=1), False),
    "windows": (lambda x: rg.avg_pool(x[None, None], 2, stride=1).reshape(-1), True),
    "convolution": (lambda x: rg.conv(x[None, None], np.ones((1, 1, 3))).reshape(-1), True),
    "strided convolution of zeros": (
        lambda x: rg.conv(
            x.reshape(1, 1, 2, 3), np.array([[[[1.0, 0], [0, 2]]]] * 2), stride=2, padding=1
        ).reshape(-1),
        True,
    ),
    "kernels": (lambda x: rg.conv(np.eye(3)[None], x.reshape(2, 3, 1)).reshape(-1), True),
    "grouped convolution": (
        lambda x: rg.conv(x.reshape(1, 2, 3), np.ones((4, 1, 2)), groups=2).reshape(-1),
        True,
    ),
    "convolution of both": (
        lambda x: rg.conv(x[None, None], x[:3][None, None]).reshape(-1),
        True,
    ),
    "matrices": (lambda x: rg.linalg.inv(x[:4].reshape(2, 2) + 3 * np.eye(2)).reshape(-1), False),
    "a stack of matrices": (
        lambda x: rg.linalg.inv(x[:, None, None] * np.ones((6, 2, 2)) + 3 * np.eye(2)).sum((1, 2)),
        True,
    ),
    "a stack of systems": (
        lambda x: rg.linalg.solve(np.eye(2) * 2 + np.ones((3, 2, 2)), x.reshape(3, 2, 1))[..., 0],
        True,
    ),
    "constant": (lambda x: rg.stop_gradient(x) * 2 + 0 * x, True),
    "comparison": (lambda x: rg.where(x > 0, x, 2 * x[::-1]), False),
}


@pytest.mark.parametrize("backend", ["reference", "llvm"])
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.sample(12)
def test_what_is_left_out_is_zero(name, backend):
    f, exact = FUNCTIONS[name]
    assert_covers(f, exact, backend)


def test_large_contractions_are_looked_at_by_rows(monkeypatch):
    f = lambda x: rg.einsum("bik,bkj->bij", x.reshape(3, 4, 2), np.ones((3, 2, 5)))
    x = RNG.normal(size=24)
    small = rg.jacobian(f, sparse=True)(x)
    monkeypatch.setattr(pattern, "MOST_PRODUCTS", 1)
    large = rg.jacobian(f, sparse=True)(x)
    assert small.nnz == large.nnz == 3 * 4 * 2 * 5
    np.testing.assert_allclose(small.toarray(), large.toarray())
