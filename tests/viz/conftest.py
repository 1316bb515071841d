"""Headless browsers for the tests of a module, and visits in them that must end without errors."""

import pytest

from tests.viz.browsing import Visit, browser


@pytest.fixture(scope="module")
def chromium():
    with browser() as found:
        yield found


@pytest.fixture(scope="module", params=["chromium", "firefox"])
def either(request):
    with browser(request.param) as found:
        yield found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("pages")


@pytest.fixture
def visit(either):
    open_visits = []

    def go(address, **options):
        found = Visit(either, str(address), **options)
        open_visits.append(found)
        return found

    yield go
    for v in open_visits:
        v.close()
