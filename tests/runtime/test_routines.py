"""Routines that come with the package: made of the text of now, or not used."""

from pathlib import Path

import numpy as np
import pytest

import retrograd as rg
from retrograd.codegen.gemm import routine_text
from retrograd.codegen.target import LEVELS
from retrograd.passes import optimize
from retrograd.runtime import compiler, routines
from retrograd.runtime.executable import Executable
from retrograd.runtime.native import platform_name


@pytest.mark.parametrize("level", routines.LEVELS)
@pytest.mark.parametrize("name", routines.ROUTINES)
def test_they_are_current(level: str, name: str) -> None:
    text = routine_text(LEVELS[level][0], name)
    code = routines.prebuilt(routines.PLATFORM, level, name, text)
    assert code is not None, "run: make native"
    assert code.startswith(b"\x7fELF")


def test_others_are_not_there() -> None:
    level, name = routines.LEVELS[0], routines.ROUTINES[0]
    text = routine_text(LEVELS[level][0], name)
    assert routines.prebuilt(routines.PLATFORM, level, name, text + "\n") is None
    assert routines.prebuilt("x86_64-windows", level, name, text) is None
    assert routines.prebuilt(routines.PLATFORM, "", name, text) is None
    assert routines.prebuilt(routines.PLATFORM, level, "rg_gemm_float64", text) is None


def products(seed: int) -> list[np.ndarray]:
    """A product for each routine: a large one, many small ones, a convolution."""

    def f(x, y, image, kernel):
        return x @ y, rg.sin(x)[:, None, :5] @ y[:5, :4], rg.conv(image, kernel, padding=1)

    rng = np.random.default_rng(seed)
    shapes = (70, 90), (90, 110), (2, 8, 20, 20), (16, 8, 3, 3)
    arrays = [rng.normal(size=s).astype(np.float32) for s in shapes]
    return Executable(optimize(rg.trace(f, *arrays)))(arrays)


def test_bits_are_those_of_compiled_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETROGRAD_CACHE_DIR", "off")
    found = []
    for there in (True, False):
        made = compiler.Compiler()
        used: list[bool] = []

        def asked(*key: str, there: bool = there, noted: list[bool] = used) -> bytes | None:
            code = routines.prebuilt(*key) if there else None
            noted.append(code is not None)
            return code

        monkeypatch.setattr(compiler, "prebuilt", asked)
        monkeypatch.setattr(compiler, "_ENGINE", made)
        found.append(products(0))
        assert used
        here = platform_name(made._triple) == routines.PLATFORM and made._level in routines.LEVELS
        assert any(used) == (there and here)
    for x, y in zip(*found, strict=True):
        np.testing.assert_array_equal(x.view(np.int32), y.view(np.int32))


def test_damaged_files_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routines, "PREBUILT", tmp_path)
    level, name = routines.LEVELS[0], routines.ROUTINES[0]
    text = routine_text(LEVELS[level][0], name)
    assert routines.prebuilt(routines.PLATFORM, level, name, text) is None
    routines.place(level, name).write_bytes(b"anything else")
    assert routines.prebuilt(routines.PLATFORM, level, name, text) is None
