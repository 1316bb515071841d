"""Arrays on a device, by a device that is no more than a list of arrays."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from retrograd.errors import BackendError
from retrograd.runtime.device_array import (
    DeviceArray,
    adopted,
    device_copy,
    host,
    kept_as,
    numbers_for,
    pending,
    remember,
    resident,
    resides,
)


class Copy:
    """Numbers of which it is counted how often they were fetched."""

    backend = "engine"

    def __init__(self, numbers: Any, device: str = "gpu") -> None:
        self.numbers, self.device, self.fetched = np.array(numbers, np.float32), device, 0

    def fetch(self) -> Any:
        self.fetched += 1
        return self.numbers.copy()


def test_numbers_are_fetched_once_and_only_if_read() -> None:
    copy = Copy([[1, 2], [3, 4]])
    y = pending((2, 2), np.dtype(np.float32), copy)
    assert (y.shape, y.ndim, y.size, y.nbytes, y.dtype) == ((2, 2), 2, 4, 16, np.float32)
    assert copy.fetched == 0
    assert not y.is_fetched
    np.testing.assert_array_equal(np.asarray(y), copy.numbers)
    np.testing.assert_array_equal(np.asarray(y, np.float64), copy.numbers)
    assert host(y) is host(y)
    assert copy.fetched == 1
    assert "(2, 2)" in repr(y)


def test_nobody_reads_memory_that_is_not_filled() -> None:
    copy = Copy([5, 6])
    y = pending((2,), np.dtype(np.float32), copy)
    assert not isinstance(y, np.ndarray)
    np.testing.assert_array_equal(np.add(y, 1), [6, 7])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(y)), copy.numbers)


def test_an_adopted_array_remembers_its_copy_on_one_device() -> None:
    array = np.ones(3, np.float32)
    y, copy = adopted(array), Copy([1, 1, 1])
    assert host(y) is array
    assert adopted(y) is y
    assert device_copy(y, "gpu") is None
    remember(y, copy)
    assert device_copy(y, "gpu") is copy
    assert device_copy(y, "another") is None
    remember(array, copy)  # somebody might edit it
    assert device_copy(array, "gpu") is None
    assert type(y) is DeviceArray


def test_programs_that_leave_results_on_a_device() -> None:
    class There:
        def resident(self) -> str:
            return "there"

    def here() -> str:
        return "here"

    assert resident(There())() == "there"
    assert resident(here)() == "here"
    assert resides(There())
    assert not resides(here)


def test_what_only_another_backend_has_is_not_fetched_for_one() -> None:
    copy = Copy([1, 2])
    y = pending((2,), np.dtype(np.float32), copy)
    with pytest.raises(BackendError, match=r"float32\[2\] .*'engine', .*'other'.*x\.cpu\(\)"):
        numbers_for(y, "other")
    assert copy.fetched == 0
    assert numbers_for(y, "engine") is numbers_for(y, "other")  # it has been fetched by now
    array = np.ones(3, np.float32)
    assert numbers_for(array, "other") is numbers_for(adopted(array), "other") is array


def test_what_takes_the_place_of_a_divided_array_is_divided_as_that() -> None:
    class Divided(Copy):
        def divide(self, array: Any, used: bool) -> Any:
            return "divided", array, used

    f = np.dtype(np.float32)
    before, array = pending((2,), f, Divided([1, 2])), pending((2,), f, Copy([3, 4]))
    assert kept_as(array, before, used=True) == ("divided", array, True)
    other, plain = pending((1,), f, Copy([3])), np.ones(2, np.float32)
    for x, y in ((other, before), (array, other), (array, plain), (plain, before)):
        assert kept_as(x, y) is x
