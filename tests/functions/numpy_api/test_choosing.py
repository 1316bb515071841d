"""Choosing by conditions, order and positions: against NumPy, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.functions.numpy_api.sweeps import SHAPES, agree, numbers


def test_select_and_choose() -> None:
    x = numbers(0, (3, 4))
    t: Any = rg.asarray(x)
    y = rg.select([t > 1, t < 0], [t, t * 2], default=9)
    np.testing.assert_array_equal(y.numpy(), np.select([x > 1, x < 0], [x, x * 2], default=9))
    for mode in ("wrap", "clip"):
        agree("choose", np.array([[-3], [1], [5]]), [x[0], x[1]], mode=mode)
    agree("choose", np.array([0, 1]), [numbers(1, (2,)), numbers(2, (2,))])
    for index in ([2], [-1]):  # outside, and not from the back
        with pytest.raises(rg.IndexRangeError):
            rg.choose(index, [[1.0], [2.0]]).numpy()
    lists: Any
    for lists in (([True], []), ([], [])):
        with pytest.raises(rg.ArgumentError):
            rg.select(*lists)


def test_what_is_not_chosen_has_no_gradient() -> None:
    x = rg.tensor([0.0, 4.0], requires_grad=True)
    y = rg.piecewise(x, [x.detach() > 1], [rg.sqrt, 0.0])
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0.0, 0.25]
    z = rg.tensor([0.0, 4.0], requires_grad=True)
    rg.select([z.detach() > 1], [rg.log(z)]).sum().backward()
    assert z.grad is not None
    assert z.grad.tolist() == [0.0, 0.25]


@pytest.mark.parametrize("name", ["partition", "argpartition"])
def test_partitions(name: str) -> None:
    """That none in front is larger and none behind smaller."""
    x = numbers(5, (3, 6))
    for axis in (0, 1, -1, None):
        n = x.size if axis is None else x.shape[axis]
        for k in (0, 1, n - 1, -1, [0, 2]):
            found = getattr(rg, name)(rg.asarray(x), k, axis=axis).numpy()
            row = x.ravel() if axis is None else x
            at = -1 if axis is None else axis
            y = found if name == "partition" else np.take_along_axis(row, found, at)
            for i in np.atleast_1d(k) % n:
                order = np.moveaxis(y, at, -1)
                assert (order[..., : i + 1] <= order[..., i : i + 1]).all()
                assert (order[..., i:] >= order[..., i : i + 1]).all()
            np.testing.assert_array_equal(np.sort(y, at), np.sort(row, at))
    with pytest.raises(rg.IndexRangeError, match="place 6 of 6"):
        getattr(rg, name)(rg.asarray(x), 6)


def test_orders() -> None:
    for shape in ((5,), (2, 4), (0,), (1, 1)):
        keys = tuple(numbers(i, shape) for i in range(3))
        agree("sort_complex", numbers(7, shape, "complex128"))
        for axis in range(-len(shape), len(shape)):
            found = rg.lexsort([rg.asarray(k) for k in keys], axis=axis).numpy()
            np.testing.assert_array_equal(found, np.lexsort(keys, axis=axis))
    with pytest.raises(rg.ShapeError, match="one shape"):
        rg.lexsort([[1, 2], [1]])


def test_positions() -> None:
    shape = (3, 4, 2)
    flat = np.arange(24)
    for order in ("C", "F"):
        agree("unravel_index", flat, shape, order)
        parts = np.unravel_index(flat, shape, order)
        found = rg.ravel_multi_index([rg.asarray(p) for p in parts], shape, order=order)
        np.testing.assert_array_equal(found.numpy(), flat)
    wide = tuple(np.array([-5, 0, 7]) for _ in shape)
    for mode in ("wrap", "clip", ("clip", "wrap", "wrap")):
        found = rg.ravel_multi_index([rg.asarray(w) for w in wide], shape, mode=mode)
        np.testing.assert_array_equal(found.numpy(), np.ravel_multi_index(wide, shape, mode=mode))
    with pytest.raises(rg.OptionError, match="order"):
        rg.unravel_index(3, (2, 2), order="X")


def test_triangles_and_grids() -> None:
    for n, k, m in ((3, 0, None), (3, 1, 4), (4, -2, 2), (0, 0, 0)):
        agree("tril_indices", n, k, m)
        agree("triu_indices", n, k, m)
        agree("tril_indices_from", np.ones((n, n if m is None else m)), k)
        agree("triu_indices_from", np.ones((n, n if m is None else m)), k)
    agree("diag_indices", 3, 3)
    agree("diag_indices_from", np.ones((2, 2, 2)))
    x = rg.arange(12).reshape(3, 4)
    np.testing.assert_array_equal(x[rg.ix_([0, 2], [1, 3])].numpy(), [[1, 3], [9, 11]])
    with pytest.raises(rg.ShapeError, match="vectors"):
        rg.ix_([[1]])


def test_picks() -> None:
    for seed, shape in enumerate(SHAPES):
        x = numbers(seed, shape)
        agree("flatnonzero", x)
        agree("extract", x > 0, x)
    with pytest.raises(rg.TraceError, match="size="):
        rg.jit(rg.flatnonzero)(rg.ones(3))
    assert rg.jit(lambda x: rg.flatnonzero(x, size=2))(rg.tensor([0.0, 1.0])).tolist() == [1, 0]


def test_select_as_in_pytorch():
    x = np.arange(6.0).reshape(2, 3)
    assert rg.select(rg.asarray(x), 1, -1).tolist() == x[:, -1].tolist()
    with pytest.raises(IndexError):
        rg.select(rg.asarray(x), 1, 3)
