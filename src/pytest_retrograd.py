"""The plugin for pytest: the fixture `retrograd`, and `--gradcheck`.

It stands beside the package, not in it, and imports it when a test asks: pytest loads plugins in
every run, whether their tests know of retrograd or not.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

MARKER = "no_gradcheck: with --gradcheck, gradients in this test are not checked"


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--gradcheck`."""
    parser.getgroup("retrograd").addoption(
        "--gradcheck",
        action="store_true",
        default=False,
        help="check every gradient that a test takes with retrograd against finite differences",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", MARKER)


@pytest.fixture
def retrograd() -> Any:
    """Checks of gradients and tensors: `certify`, `gradcheck`, `check_grads`, `rules`, `allclose`,
    `numerical_gradient`, `backend`."""
    return import_module("retrograd.testing.fixture").Checks()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Watch the gradients of a test."""
    watched = item.config.getoption("gradcheck") and item.get_closest_marker("no_gradcheck") is None
    if not watched:
        return (yield)
    with import_module("retrograd.testing.watch").watching():
        return (yield)
