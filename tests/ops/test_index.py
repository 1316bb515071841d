"""Gather and scatter: ranges, repetitions, order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from retrograd.errors import IndexRangeError
from retrograd.ir import DTYPES, Graph, float32, int64, reachable
from retrograd.ops.index import Gather, ScatterAdd, gather_along, scatter_along
from retrograd.ops.leaf import constant
from retrograd.verify.rule_checks import check_result, placeholders, run
from tests.ops.derive import total, vector_gradient

INTEGERS = [d for d in DTYPES if d.is_integer]


def scatter(x: Any, index: Any, updates: Any) -> Any:
    return check_result(ScatterAdd(0), [np.array(v) for v in (x, index, updates)])


def test_repeated_and_negative_indices_add_up() -> None:
    y = scatter([1.0, 0.0, 0.0], [0, -3, 2, -1, 0], [1.0, 2.0, 4.0, 8.0, 16.0])
    np.testing.assert_array_equal(y, [20, 0, 12])


def test_the_gradient_of_a_gather_counts_repetitions() -> None:
    index = constant(np.array([1, 1, -1, 1]))
    _, gradient = vector_gradient(lambda x: total(Gather(0)(x, index)), [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(gradient, [0, 3, 1])


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_along_an_axis(axis: int) -> None:
    """Each row has an index of its own; what is put back adds up where it was read."""
    rng = np.random.default_rng(0)
    shape = (2, 3, 4)
    data = rng.standard_normal(shape)
    places = rng.integers(0, shape[axis], (*shape[:axis], 5, *shape[axis + 1 :]))
    x, index = placeholders([data, places])
    g = rng.standard_normal(places.shape)
    read = gather_along(x, index, axis)
    back = scatter_along(constant(g), index, axis, x.type)
    found, added = run(Graph([x, index], [read, back]), [data, places])
    np.testing.assert_array_equal(found, np.take_along_axis(data, places, axis))
    expected = np.zeros(shape)
    np.add.at(expected, _where(places, axis), g)
    np.testing.assert_allclose(added, expected, rtol=1e-15)


def test_a_table_that_many_read_is_not_copied() -> None:
    """Their indices are one more axis; and what one index reads of many tables is one more of x."""
    x, index = placeholders([np.zeros((4, 3)), np.zeros((5, 2), np.int64)])
    for batched, count in (((False, True), 5), ((True, False), 4)):
        nodes = reachable([Gather(0).batch(count, batched, x, index)])
        assert [n.prim.shared for n in nodes if isinstance(n.prim, Gather)] == [0]


def _where(places: Any, axis: int) -> tuple[Any, ...]:
    at: list[Any] = list(np.indices(places.shape))
    at[axis] = places
    return tuple(at)


@pytest.mark.parametrize("op", [Gather(0), ScatterAdd(0)], ids=lambda op: op.name)
@pytest.mark.parametrize("bad", [3, -4, 2**40, -(2**40)])
def test_an_index_out_of_range_is_an_error(op: Any, bad: int) -> None:
    inputs = [np.zeros(3), np.array([0, bad])] + ([np.zeros(2)] if op.arity == 3 else [])
    with pytest.raises(
        IndexRangeError, match=rf"{op.name} with the index {bad} on axis 0 of size 3"
    ):
        check_result(op, inputs)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_every_integer_dtype_indexes(dtype: Any) -> None:
    """Also where the axis is longer than the dtype counts."""
    top = min(np.iinfo(dtype.dtype).max, 299)
    x = np.arange(300.0)
    y = check_result(Gather(0), [x, np.array([0, top, 5], dtype.dtype)])
    np.testing.assert_array_equal(y, [0, top, 5])
    with pytest.raises(IndexRangeError):
        check_result(Gather(0), [x[:100], np.array([top], dtype.dtype)])


def test_no_index_fits_an_empty_axis() -> None:
    assert check_result(Gather(0), [np.zeros((0, 2)), np.zeros(0, np.int64)]).shape == (0, 2)
    with pytest.raises(IndexRangeError, match="size 0"):
        check_result(Gather(0), [np.zeros((0, 2)), np.zeros(1, np.int64)])


def test_scatter_adds_in_the_order_of_the_updates() -> None:
    """In floating point the order matters: here that of sixteen updates one after the other, and of
    the totals of such blocks in float64, to the bit."""
    rng = np.random.default_rng(0)
    updates = (rng.standard_normal(1000) * 10.0 ** rng.integers(-8, 8, 1000)).astype(np.float32)
    y = scatter(
        np.zeros((1, 2), np.float32), np.zeros(1000, np.int64), updates[:, None].repeat(2, 1)
    )
    expected = 0.0
    for k in range(0, 1000, 16):
        block = np.float32(0)
        for u in updates[k : k + 16]:
            block = block + u
        expected += float(block)
    assert (y == np.float32(expected)).all()
    assert (float32.dtype, int64.dtype) == (y.dtype, np.dtype(np.int64))


def test_numbers_are_scattered_one_after_the_other_in_twice_the_precision() -> None:
    rng = np.random.default_rng(0)
    updates = (rng.standard_normal(1000) * 10.0 ** rng.integers(-8, 8, 1000)).astype(np.float32)
    y = scatter(np.ones(1, np.float32), np.zeros(1000, np.int64), updates)
    expected = 1.0
    for u in updates:
        expected += float(u)
    assert y[0] == np.float32(expected)


def test_scatter_and_gather_are_transposes() -> None:
    """<gather(x, i), u> = <x, scatter_add(0, i, u)>."""
    rng = np.random.default_rng(1)
    x, u = rng.standard_normal((4, 5, 2)), rng.standard_normal((4, 3, 3, 2))
    index = rng.integers(-5, 5, (4, 3, 3))
    gathered = check_result(Gather(1, 1), [x, index])
    scattered = check_result(ScatterAdd(1, 1), [np.zeros_like(x), index, u])
    np.testing.assert_allclose(np.sum(gathered * u), np.sum(x * scattered), rtol=1e-14)
