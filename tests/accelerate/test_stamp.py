"""Modules that were built from other C sources are refused, and Python does their work."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from retrograd import accelerate
from retrograd.accelerate import stamp

FOLDER = Path(stamp.__file__).parent


def test_the_stamp_is_that_of_the_sources():
    assert stamp.stamp_of_sources(FOLDER) == stamp.STAMP, (
        "the C sources have changed: run python src/retrograd/accelerate/stamp.py, then "
        "python setup.py build_ext --inplace"
    )


@pytest.mark.parametrize("name", accelerate.NAMES)
def test_a_built_module_has_the_stamp(name):
    if not accelerate.is_compiled(name):
        pytest.skip("no C compiler was found at installation")
    assert import_module(f"retrograd.accelerate._{name}").STAMP == stamp.STAMP


def test_a_line_of_the_sources_changes_the_stamp(tmp_path):
    (tmp_path / "a.c").write_bytes(b"int x;\n")
    before = stamp.stamp_of_sources(tmp_path)
    (tmp_path / "a.c").write_bytes(b"int x;\r\n")
    assert stamp.stamp_of_sources(tmp_path) == before
    (tmp_path / "b.h").write_bytes(b"int y;\n")
    assert stamp.stamp_of_sources(tmp_path) != before


@pytest.mark.slow
def test_modules_of_an_older_revision_are_left_alone():
    """They have other classes: here none at all."""
    code = f"""
import sys, types, warnings
for name in {accelerate.NAMES!r}:
    name = "retrograd.accelerate._" + name
    sys.modules[name] = types.ModuleType(name)
with warnings.catch_warnings(record=True) as found:
    warnings.simplefilter("always")
    import retrograd as rg
assert len(found) == 1 and found[0].category is RuntimeWarning, found
assert "setup.py build_ext --inplace" in str(found[0].message)
x = rg.tensor([1.0, 2.0], requires_grad=True)
(x * x + 1).sum().backward()
f = rg.jit(lambda x: x * 3)
print(x.grad.tolist(), f(f(x)).tolist(), (rg.Value(2.0) * 3).data, rg.info()["accelerators"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("[2.0, 4.0] [9.0, 18.0] 6.0 ")
    assert "compiled" not in done.stdout
