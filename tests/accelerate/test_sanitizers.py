"""The extension modules under the sanitizers of a C compiler, every variable of theirs that is not
initialized filled with a pattern: their own tests find nothing more."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest

import retrograd
from retrograd.accelerate import STAMP, is_compiled

PACKAGE = Path(retrograd.__file__).parent
FLAGS = ["-std=gnu11", "-O1", "-g", "-fPIC", "-shared", "-w", "-fno-sanitize-recover=all"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="the sanitizers are loaded as on Linux"),
    pytest.mark.skipif(not is_compiled("immediate"), reason="no C compiler was found"),
]


def compiler() -> tuple[str, str] | None:
    """A compiler that fills what is not initialized, and the sanitizers' library to load first."""
    for name in ("gcc", "clang"):
        path = shutil.which(name)
        library = "libasan.so" if name == "gcc" else "libclang_rt.asan-x86_64.so"
        if path is None:
            continue
        asked = [path, f"-print-file-name={library}"]
        found = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
        taken = subprocess.run(
            [path, "-ftrivial-auto-var-init=pattern", "-x", "c", "-c", os.devnull,
             "-o", os.devnull], capture_output=True, check=False,
        )  # fmt: skip
        if Path(found).is_absolute() and taken.returncode == 0:
            return path, found
    return None


@pytest.fixture(scope="module")
def compiled():
    found = compiler()
    if found is None:
        pytest.skip("no compiler that has sanitizers and fills what is not initialized")
    return found


def built(path: str, to: Path, right: str = "", wrong: str = "") -> Path:
    """A copy of the package whose extension modules are compiled anew, after a replacement in the
    C of operations that run at once."""
    shutil.copytree(
        PACKAGE, to / "retrograd", ignore=shutil.ignore_patterns("__pycache__", "*.so", "*.pyd")
    )
    sources = to / "retrograd" / "accelerate"
    if right:
        text = (sources / "immediate.c").read_text(encoding="utf-8")
        assert text.count(right) == 1
        (sources / "immediate.c").write_text(text.replace(right, wrong), encoding="utf-8")
    for source in sorted(sources.glob("*.c")):
        subprocess.run(
            [path, *FLAGS, "-fsanitize=address,undefined", "-ftrivial-auto-var-init=pattern",
             f"-I{np.get_include()}", f"-I{sysconfig.get_path('include')}",
             "-DPy_LIMITED_API=0x030B0000", f'-DRETROGRAD_STAMP="{STAMP}"', str(source),
             "-o", str(sources / f"_{source.stem}.abi3.so")],
            check=True,
        )  # fmt: skip
    return to


def run_tests(packages: Path, library: str, chosen: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
         "-s", "-o", f"pythonpath={packages} .", "-k", chosen,
         "tests/accelerate/test_immediate.py"],
        env={
            **os.environ,
            "LD_PRELOAD": library,
            "ASAN_OPTIONS": "detect_leaks=0:exitcode=77",
            "UBSAN_OPTIONS": "exitcode=77",
            "PYTHONMALLOC": "malloc",
        },
        capture_output=True, text=True, check=False, timeout=400,
    )  # fmt: skip


def test_nothing_is_found(compiled, tmp_path):
    path, library = compiled
    done = run_tests(built(path, tmp_path), library)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert " passed" in done.stdout


def test_what_is_planted_is_found(compiled, tmp_path):
    path, library = compiled
    planted = built(path, tmp_path, "p->arrays[p->operand + k] = NULL;", ";")
    done = run_tests(planted, library, "sizes")
    assert done.returncode == 77, done.stdout[-3000:]
    assert "Sanitizer" in done.stderr or "runtime error" in done.stderr
