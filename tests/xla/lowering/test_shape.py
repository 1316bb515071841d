"""Movement of elements is that of XLA, with no gather."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg

pytest.importorskip("jax", reason="the extra xla is not installed")
from tests.xla.lowering.programs import operations, value

X = np.arange(24.0).reshape(2, 3, 4)


@pytest.mark.parametrize(
    ("f", "expected", "own"),
    [
        (lambda x: x.transpose(2, 0, 1), X.transpose(2, 0, 1), "transpose"),
        (lambda x: x.reshape(4, 6), X.reshape(4, 6), "reshape"),
        (lambda x: x[:, ::-1], X[:, ::-1], "reverse"),
        (lambda x: x[1:, 2:0:-1, ::3], X[1:, 2:0:-1, ::3], "slice"),
        (lambda x: rg.concatenate([x, -x], axis=1), np.concatenate([X, -X], 1), "concatenate"),
        (lambda x: rg.broadcast_to(x[:, :1], (5, 2, 3, 4)),
         np.broadcast_to(X[:, :1], (5, 2, 3, 4)), "broadcast_in_dim"),
        (lambda x: rg.pad(x, ((0, 0), (2, 1), (0, 3)), constant_values=7.0),
         np.pad(X, ((0, 0), (2, 1), (0, 3)), constant_values=7.0), "concatenate"),
    ],
)  # fmt: skip
def test_movement(f, expected, own) -> None:
    found = operations(f, X)
    assert own in found
    assert "gather" not in found
    np.testing.assert_array_equal(value(f, X), expected)


def test_the_gradient_of_a_slice_with_steps_spreads_it_out() -> None:
    f = rg.grad(lambda x: (x[:, ::2, 1::2] ** 2).sum())
    want = np.zeros_like(X)
    want[:, ::2, 1::2] = 2 * X[:, ::2, 1::2]
    assert "scatter" not in operations(f, X)
    np.testing.assert_array_equal(value(f, X), want)


def test_a_part_that_is_set_is_written_in_place_where_it_has_no_steps() -> None:
    def put(x: rg.Tensor, part: slice) -> rg.Tensor:
        x = x + 0.0
        x[:, :, part] = -1.0
        return x

    whole, steps = (lambda x: put(x, slice(1, 3))), (lambda x: put(x, slice(0, 4, 2)))
    assert "dynamic_update_slice" in operations(whole, X)
    assert "select" in operations(steps, X)
    for f, part in ((whole, slice(1, 3)), (steps, slice(0, 4, 2))):
        want = X.copy()
        want[:, :, part] = -1
        np.testing.assert_array_equal(value(f, X), want)


def test_no_elements() -> None:
    none = np.zeros((0, 3))
    found = value(lambda x: rg.pad(x, ((1, 1), (0, 0)), constant_values=2.0), none)
    np.testing.assert_array_equal(found, np.full((2, 3), 2.0))
    assert value(lambda x: x[:, 3:], np.ones((2, 3))).shape == (2, 0)
