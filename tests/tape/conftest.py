from collections.abc import Iterator

import pytest

import retrograd as rg


@pytest.fixture
def reference() -> Iterator[None]:
    """Many small programs: run on the reference backend, which compiles nothing."""
    with rg.backend("reference"):
        yield
