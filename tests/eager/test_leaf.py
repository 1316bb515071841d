"""Leaves: arrays at hand, which others may edit."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import retrograd as rg
from retrograd.eager.leaf import is_freed, known, known_as, leaf, leaf_handle, live, snapshot


def test_leaves_that_share_memory_get_gradients():
    data = np.ones(3, np.float32)
    x = rg.asarray(data).requires_grad_()
    loss = (x * x).sum()
    data[0] = 7
    ((x * x).sum() + loss).backward()  # what it was and what it is are the same leaf
    assert x.grad.tolist() == [16, 4, 4]
    x.grad = None
    with rg.debug():  # on nodes
        ((x * x).sum() + x.sum()).backward()
    assert x.grad.tolist() == [15, 3, 3]  # type: ignore[attr-defined]


def test_leaves_that_were_replaced():
    data = np.ones(3, np.float32)
    x = rg.asarray(data).requires_grad_()
    loss = (x * x).sum()
    data[0] = 7
    x.sum().backward()
    rg.optim.SGD([x], lr=1.0).step()
    with pytest.raises(rg.GradientError, match="optimizer"):
        loss.backward()


def test_a_snapshot_is_the_same_until_somebody_edits_the_array() -> None:
    array = np.array([1.0, np.nan, -0.0])
    node = leaf(array, "x")
    first = snapshot(node)
    assert snapshot(node) is first
    array[2] = 0.0  # equal, but other bits
    second = snapshot(node)
    assert second is not first
    found = [known(n) for n in (first, second)]
    assert [np.signbit(a[2]) for a in found if a is not None] == [True, False]
    assert (first.type, first.name) == (node.type, "x")
    assert live(second, np.zeros(3)) is array
    assert live(node, array) is array


def test_snapshots_that_nobody_needs_are_let_go() -> None:
    node = leaf(np.ones(3))
    ref = weakref.ref(snapshot(node))
    gc.collect()
    assert ref() is None
    np.testing.assert_array_equal(known(snapshot(node)), np.ones(3))


def test_a_leaf_takes_the_place_of_a_node() -> None:
    x = leaf(np.ones(2), "x")
    y = (x + x).renamed("y")
    assert known(y) is None
    place = known_as(np.full(2, 2.0), y, freed=True)
    assert (place.name, place.type) == ("y", y.type)
    np.testing.assert_array_equal(known(place), [2, 2])
    assert is_freed(place)
    assert not is_freed(x)
    assert leaf_handle(x) is None
