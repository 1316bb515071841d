"""Thread pool and launcher under the sanitizers of a C compiler: `stress.c`, whose callers launch
random programs on one pool, with every way for threads to sleep."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from scripts.native import FOLDER, compiler

STRESS = Path(__file__).with_name("stress.c")
FLAGS = ["-std=gnu11", "-O1", "-g", "-fno-strict-aliasing", "-fwrapv", "-pthread", "-w"]
WAYS = ["futex", "condition", "windows"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="stress.c is written for Linux"),
]


def compiled(command: list[str], sanitizer: str, sources: Path, to: Path) -> str:
    """Compile the stress program; what the compiler complains about, nothing if it does not."""
    flags = [*FLAGS, f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all", f"-I{sources}"]
    done = subprocess.run(
        [*command, *flags, str(STRESS), "-o", str(to)], capture_output=True, text=True, check=False
    )
    return "" if done.returncode == 0 else done.stderr[-500:] or "it failed"


def stressed(program: Path, way: str, rounds: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(program), way, str(rounds)],
        env={**os.environ, "TSAN_OPTIONS": "halt_on_error=1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@functools.cache
def command_for(sanitizer: str) -> tuple[list[str], str]:
    """A compiler whose sanitizer works here; if there is none, why."""
    found = [[path] for name in ("cc", "gcc", "clang") if (path := shutil.which(name))]
    if compiler() is not None:
        found.append([sys.executable, "-m", "ziglang", "cc"])
    why = "no C compiler"
    for command in found:
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "stress"
            why = compiled(command, sanitizer, FOLDER, program)
            if not why:
                done = stressed(program, "futex", 0)
                why = done.stderr[-500:] if done.returncode else ""
        if not why:
            return command, ""
    return [], why


def program_of(sanitizer: str, sources: Path, folder: Path) -> Path:
    """The stress program of these sources; skips where the sanitizer cannot be had."""
    command, why = command_for(sanitizer)
    if why:
        pytest.skip(f"-fsanitize={sanitizer} does not work here: {why}")
    assert compiled(command, sanitizer, sources, folder / "stress") == ""
    return folder / "stress"


@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_nothing_is_found(sanitizer, tmp_path):
    program = program_of(sanitizer, FOLDER, tmp_path)
    for way in WAYS:
        done = stressed(program, way, 400)
        assert done.returncode == 0, f"{way}: {done.stderr[-5000:]}"
        assert done.stdout.startswith("good: ")


@pytest.mark.parametrize(("sanitizer", "name", "right", "wrong"), [
    ("thread", "thread_pool.c", "| OPEN, SEQ_CST)", "| OPEN, RELAXED)"),
    ("thread", "thread_pool.c", "&idle, 1, ACQUIRE)", "&idle, 1, RELAXED)"),
    ("thread", "launch.c", "if (age < 0 || first >= end)", "if (first > end)"),
    ("address,undefined", "launch.c", "i < count; i++", "i < count + 300; i++"),
], ids=["gate", "launch", "claim", "frame"])  # fmt: skip
def test_what_is_planted_is_found(sanitizer, name, right, wrong, tmp_path):
    sources = tmp_path / "native"
    shutil.copytree(FOLDER, sources, ignore=shutil.ignore_patterns("prebuilt", "__pycache__"))
    text = (sources / name).read_text(encoding="utf-8")
    assert text.count(right) == 1
    (sources / name).write_text(text.replace(right, wrong), encoding="utf-8")
    done = stressed(program_of(sanitizer, sources, tmp_path), "condition", 2000)
    assert done.returncode != 0
    assert "Sanitizer" in done.stderr
