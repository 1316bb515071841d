"""`rg.info()`."""

import json
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


def test_what_a_report_of_an_error_needs(monkeypatch, tmp_path):
    monkeypatch.setenv("RETROGRAD_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("retrograd.api.info.lacking", lambda name: f"no {name}")
    monkeypatch.setattr("retrograd.api.info.version_of", {"scipy": "1.2"}.get)
    found = rg.info()
    assert found["unavailable"].split("; ")[0] == "wgpu: no wgpu"
    assert "scipy (scipy 1.2)" in found["extras"]
    assert "data (no pyarrow and pillow)" in found["extras"]
    assert found["cache"].startswith(f"{tmp_path / 'compiled'}: ")
    assert f"RETROGRAD_CACHE_DIR={tmp_path}" in found["environment"]
    assert "OpenBLAS" in found["blas"]
    assert "loaded" in found["native"]
    assert json.loads(found.to_json()) == found
    monkeypatch.setenv("RETROGRAD_CACHE_DIR", "off")
    assert rg.info()["cache"] == "none: RETROGRAD_CACHE_DIR=off"
