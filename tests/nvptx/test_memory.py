"""Arrays that stay on the device, and their memory."""

from __future__ import annotations

import numpy as np

import retrograd as rg
from retrograd.runtime.device_array import DeviceArray, adopted
from tests.nvptx.test_executable import X, made


def test_results_stay_on_the_device() -> None:
    program, device, _ = made(lambda x: x * 2, X)
    uploads: list[int] = []
    upload = device.upload

    def noted(address: int, array: np.ndarray) -> None:
        uploads.append(array.nbytes)
        upload(address, array)

    device.upload = noted  # type: ignore[method-assign]
    given = adopted(X)
    (y,) = program.resident([given])
    assert isinstance(y, DeviceArray)
    assert not y.is_fetched
    (z,) = program.resident([y])
    program.resident([given])
    assert uploads == [X.nbytes]
    np.testing.assert_array_equal(np.asarray(z), X * 4)


def test_memory_is_given_back() -> None:
    program, device, _ = made(lambda x: rg.softmax(x) @ x.T, X)
    program([X])
    used = device.used
    for _ in range(5):
        program([X])
    assert device.used == used
    device.drop_free()
    assert device.used < used
