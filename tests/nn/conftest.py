"""Many small programs: run on the reference backend, which compiles nothing."""

import pytest

import retrograd as rg


@pytest.fixture(autouse=True)
def reference():
    with rg.backend("reference"):
        yield
