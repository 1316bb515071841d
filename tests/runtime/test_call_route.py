"""Which program serves a call: by structure, shapes and dtypes; what none serves is left alone."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.runtime import fast_call
from retrograd.runtime.fast_call import MISSED

pytestmark = pytest.mark.skipif(
    not fast_call.serves(LazyTensor.handle_class), reason="no C compiler was found at installation"
)
SCALE = np.array([2.0, 3.0, 4.0], np.float32)


def site_of(f: Any, *sizes: int) -> Any:
    """The place where calls arrive, after calls with vectors of these sizes."""
    for n in sizes:
        for _ in range(3):
            f(np.ones(n, np.float32), 1.0)
    (site, *_) = f._sites
    return site


def serve(site: Any, *args: Any) -> Any:
    return site.serve(args, {}, object())


def test_each_shape_has_its_program() -> None:
    site = site_of(rg.jit(lambda x, k: {"y": x * k, "all": x.sum()}), 3, 5)
    for n in (5, 3, 5):
        x = np.arange(n, dtype=np.float32)
        found = serve(site, x, 2.5)
        np.testing.assert_array_equal(found["y"].numpy(), x * np.float32(2.5))
        assert found["all"].item() == x.sum()
    assert len(site._route._records) == 2
    wrong: list[tuple[Any, ...]] = [
        (np.ones(4, np.float32), 1.0),  # a shape that no program has
        (np.ones((3, 1), np.float32), 1.0),
        (np.ones(3, np.float64), 1.0),
        (np.ones(6, np.float32)[::2], 1.0),  # with gaps in memory
        ([1.0, 1.0, 1.0], 1.0),
        (np.ones(3, np.float32), "1"),
        (np.ones(3, np.float32),),
        (np.ones(3, np.float32), 1.0, 1.0),
    ]
    for args in wrong:
        assert serve(site, *args) is MISSED


def test_what_is_offered_replaces_what_was() -> None:
    site = site_of(rg.jit(lambda x, k: x * k), 3, 5)
    three, five = np.ones(3, np.float32), np.ones(5, np.float32)
    records = site._route._records
    by_size = {len(serve(site, x, 1.0)): x for x in (three, five)}
    assert sorted(by_size) == [3, 5]
    site._route.offer(records[:1])
    assert sum(serve(site, x, 1.0) is MISSED for x in (three, five)) == 1
    site._route.offer([])
    assert serve(site, three, 1.0) is serve(site, five, 1.0) is MISSED
    site._route.offer(records)
    assert serve(site, five, 4.0).tolist() == [4.0] * 5


def test_the_order_of_looking_does_not_matter() -> None:
    f = rg.jit(lambda x, y, k: x + k * y.sum())
    x, y = np.ones(3, np.float32), np.arange(4, dtype=np.float32)
    for _ in range(3):
        f(x, y, 1.0)
    (site, *_) = f._sites
    (record,) = site._route._records
    for order in ([1, 0], [0], [], [1]):
        record.arrange(order)
        site._route.offer([record])
        assert serve(site, x, y, 2.0).tolist() == [13.0] * 3
        assert serve(site, x, x, 2.0) is MISSED
        assert serve(site, y, y, 2.0) is MISSED


def test_captured_arrays_live_as_long_as_the_record() -> None:
    held = [rg.asarray(SCALE.copy())]
    f = rg.jit(lambda x, k: x * held[0] * k)
    site = site_of(f, 3)
    held.clear()
    gc.collect()
    assert serve(site, np.ones(3, np.float32), 2.0).tolist() == [4.0, 6.0, 8.0]
    (record,) = site._route._records
    gone = weakref.ref(record)
    site._route.offer([])
    assert serve(site, np.ones(3, np.float32), 2.0) is MISSED
    assert gone() is record


def test_a_donated_tensor_is_gone_after_a_call_that_is_served_and_only_then() -> None:
    f = rg.jit(lambda state, k: state * k, donate=0)
    for _ in range(3):
        f(rg.tensor(np.ones(3, np.float32)), 1.0)
    (site, *_) = f._sites
    state = rg.tensor(np.ones(3, np.float32))
    assert serve(site, state, "k") is MISSED
    assert state.tolist() == [1.0] * 3
    assert f(state, 3.0).tolist() == [3.0] * 3
    with pytest.raises(rg.DonatedError):
        state.tolist()
