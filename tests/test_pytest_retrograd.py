"""The plugin for pytest, in runs of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import pytest_retrograd

SOURCE = Path(pytest_retrograd.__file__).parent
TESTS = """
import numpy as np, pytest, sys

def test_of_something_else():
    assert "retrograd" not in sys.modules

def test_fixture(retrograd):
    import retrograd as rg
    found = retrograd.certify(lambda x: (x * x).sum(), np.ones(3), order=1, backends="reference")
    assert found.passed
    assert retrograd.allclose(rg.ones(2), [1.0, 1.0])

def wrong():
    import retrograd as rg
    f = rg.custom_vjp(lambda x: x * x)
    f.defvjp(lambda x: (x * x, x), lambda x, g: (g * x,))
    with rg.backend("reference"):
        rg.grad(lambda x: f(x).sum())(rg.ones(3)).numpy()

def test_wrong():
    wrong()

@pytest.mark.no_gradcheck
def test_marked():
    wrong()
"""


def run(folder: Path, *arguments: str) -> tuple[int, str]:
    (folder / "test_it.py").write_text(TESTS, encoding="utf-8")
    off = [f"-pno:{name}" for name in ("cacheprovider", "xdist", "hypothesispytest")]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-ppytest_retrograd", "--strict-markers", *off,
         *arguments, "test_it.py"],
        cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
def test_without_the_option_nothing_is_checked(tmp_path: Path) -> None:
    code, text = run(tmp_path)
    assert code == 0, text
    assert "4 passed" in text


@pytest.mark.slow
def test_with_the_option_a_wrong_gradient_fails_its_test(tmp_path: Path) -> None:
    code, text = run(tmp_path, "--gradcheck", "-k", "not something")
    assert code == 1, text
    assert "1 failed, 2 passed" in text
    assert "--gradcheck: the order 1 derivative by argument 0 differs from finite" in text
    assert "FAILED test_it.py::test_wrong" in text


def test_the_plugin_does_not_import_the_package() -> None:
    code = "import sys, pytest_retrograd; assert not {'retrograd', 'numpy'} & {*sys.modules}"
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
