"""The driver's interface: the bindings on a driver of our own, and what is said without one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import retrograd as rg
from retrograd.errors import BackendError
from retrograd.nvptx import driver, missing

ROOT = Path(__file__).parents[2]
needs_bindings = pytest.mark.skipif(
    find_spec("cuda") is None, reason="cuda-bindings is not installed: pip install cuda-bindings"
)


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retrograd.nvptx.is_installed", lambda name: False)
    assert missing() == "cuda is not installed: pip install 'retrograd[cuda]'"
    with pytest.raises(BackendError, match="'cuda' cannot run here: cuda is not installed: pip"):
        rg.backend("cuda").__enter__()


@needs_bindings
def test_without_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    class NoDriver:
        @staticmethod
        def cuInit(flags: int) -> None:
            raise RuntimeError("libcuda.so.1 is not there")

    monkeypatch.setattr(driver, "need", lambda name, what: NoDriver)
    assert "there is no driver here (libcuda): install" in str(missing())


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the driver of this test is built for Linux")
@needs_bindings
def test_the_bindings(tmp_path: Path) -> None:
    """Programs, graphs, what is missing and what is too large, by way of the real bindings."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler here")
    library = tmp_path / "libcuda.so.1"
    source = Path(__file__).with_name("driver_stub.c")
    build = [compiler, "-shared", "-fPIC", "-w", "-o", str(library), str(source), "-ldl"]
    subprocess.run(build, check=True)
    paths = {"LD_LIBRARY_PATH": str(tmp_path), "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    session = [sys.executable, str(Path(__file__).with_name("driver_session.py")), str(library)]
    done = subprocess.run(session, capture_output=True, text=True, env={**os.environ, **paths})
    assert done.stdout.strip().endswith("done"), done.stderr
