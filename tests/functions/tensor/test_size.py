"""`x.size`, which can be called."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import retrograd as rg

rng = np.random.default_rng(0)
A, B = rng.normal(size=(2, 3, 4))
C = rng.normal(size=(2, 3, 4))
I = np.array([[0, 2, 1], [3, 3, 0]])  # noqa: E741


@pytest.fixture(autouse=True)
def reference() -> Iterator[None]:
    with rg.backend("reference"):
        yield


def test_size_is_a_number_that_can_be_called() -> None:
    x = rg.zeros((2, 3))
    assert x.size == 6
    assert isinstance(x.size, int)
    assert x.size() == (2, 3)
    assert (x.size(0), x.size(-1), x.size(dim=1)) == (2, 3, 3)
    assert (x * x.size).tolist() == np.zeros((2, 3)).tolist()
    assert np.zeros(x.size).shape == (6,)
    assert (x.dim(), x.numel(), x.ndimension(), x.nbytes) == (2, 6, 2, 24)
    with pytest.raises(rg.AxisError):
        x.size(2)

    def scaled(x: Any) -> Any:
        assert x.size() == x.shape
        return x * x.size(0) + x.size

    f = rg.jit(scaled, shapes={"x": "N"})
    assert f(rg.ones(3)).tolist() == [6.0] * 3
    assert f(rg.ones(5)).tolist() == [10.0] * 5
