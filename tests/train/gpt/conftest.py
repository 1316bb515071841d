from collections.abc import Iterator

import pytest

import retrograd as rg


@pytest.fixture
def reference() -> Iterator[None]:
    """Runs of a few steps need no compilation."""
    with rg.backend("reference"):
        yield
