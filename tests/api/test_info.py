"""`rg.info()`."""

import os

import retrograd as rg
from retrograd.accelerate import NAMES


def test_a_mapping_that_is_shown_as_lines():
    found = rg.info()
    assert found["retrograd"] == f"{rg.__version__}, {os.path.dirname(rg.__file__)}"
    assert found["backends"].split(", ") == rg.backends()
    assert all(f"{name} (" in found["accelerators"] for name in NAMES)
    lines = str(found).splitlines()
    assert [line.split()[0] for line in lines] == list(found)
    assert all(line.endswith(text) for line, text in zip(lines, found.values(), strict=True))


def test_threads_are_those_of_this_moment():
    with rg.num_threads(3):
        assert rg.info()["threads"].startswith("3 of ")


def test_a_package_that_is_missing_is_said_to_be(monkeypatch):
    monkeypatch.setattr("retrograd.api.info.PACKAGES", ("numpy", "no-such-package"))
    assert rg.info()["packages"].endswith("no-such-package missing")
