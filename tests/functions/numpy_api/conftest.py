"""What is compared with NumPy runs on the reference backend, which compiles nothing."""

from collections.abc import Iterator

import pytest

import retrograd as rg


@pytest.fixture(autouse=True)
def reference() -> Iterator[None]:
    with rg.backend("reference"):
        yield
