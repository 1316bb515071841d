"""Objects made around arrays in native code."""

from __future__ import annotations

import gc
import sys
import weakref
from typing import Any

import numpy as np
import pytest

from retrograd.backends import wrapper
from retrograd.backends.llvm.engine import engine


class Base:
    __slots__ = ("__weakref__", "a", "held", "z")


class Holder(Base):
    __slots__ = ()

    def __init__(self, needed):
        raise AssertionError("it is not called")


def make(cls=Holder, slot="held"):
    address = engine().wrap
    if not address:
        pytest.skip("this Python lays out its objects in another way")
    return wrapper(address, cls, slot)


@pytest.mark.parametrize("count", [0, 1, 5, 3000])
def test_each_item_becomes_an_object_that_holds_it(count):
    wrap = make()
    arrays = [np.full(2, k) for k in range(count)]
    before = [sys.getrefcount(a) for a in arrays]
    items: list[Any] = list(arrays)
    wrap(items)
    assert [type(h) for h in items] == [Holder] * count
    assert all(h.held is a for h, a in zip(items, arrays, strict=True))
    assert not any(hasattr(h, name) for h in items for name in "az")
    del items
    gc.collect()
    assert [sys.getrefcount(a) for a in arrays] == before


def test_objects_are_like_others():
    wrap = make()
    items: list[Any] = [np.zeros(3)]
    wrap(items)
    (h,) = items
    gone = weakref.ref(h)
    h.a = h  # a cycle, which the collector has to find
    assert gc.is_tracked(h)
    classes = sys.getrefcount(Holder)
    del h, items
    gc.collect()
    assert gone() is None
    assert sys.getrefcount(Holder) == classes - 1


def test_a_slot_that_cannot_be_found():
    class Told:
        __slots__ = ("_own",)

        @property
        def held(self):
            return None

        @held.setter
        def held(self, value):
            pass

    assert make(Told) is None
