"""The object files in `prebuilt/` are those that the C sources give; `make native` makes them."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from retrograd.errors import BackendError
from retrograd.runtime.native import FUNCTIONS, HALF, object_code, platform_name
from scripts import native

RECORDED = json.loads(native.STAMP.read_text(encoding="utf-8"))
ROOT = Path(__file__).parents[3]


def test_the_header_is_that_of_the_layout():
    assert native.HEADER.read_text(encoding="utf-8") == native.header(), "run: make native"


def test_the_objects_are_current():
    assert RECORDED["sources"] == native.digest_of_sources(), "run: make native"
    found = {
        path.stem: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in native.PREBUILT.glob("*.o")
    }
    assert found == RECORDED["objects"], "run: make native"
    assert found.keys() == native.TARGETS.keys()


def test_the_compiler_is_the_one_that_developers_install():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extra = project["project"]["optional-dependencies"]["dev"]
    (pinned,) = (package for package in extra if package.startswith("ziglang"))
    assert RECORDED["compiler"].replace(" ", "==") == pinned


def test_the_sources_are_freestanding():
    """They include what every compiler brings itself, and nothing of a library."""
    for path in native.FOLDER.glob("*.[ch]"):
        included = re.findall(r"#include <(.*)>", path.read_text(encoding="utf-8"))
        assert set(included) <= {"stddef.h", "stdint.h"}, path.name


@pytest.mark.parametrize(("triple", "name"), [
    ("x86_64-unknown-linux-gnu", "x86_64-linux"), ("x86_64-alpine-linux-musl", "x86_64-linux"),
    ("aarch64-unknown-linux-gnu", "aarch64-linux"), ("arm64-apple-darwin24.1.0", "aarch64-macos"),
    ("x86_64-apple-macosx13.0", "x86_64-macos"), ("x86_64-pc-windows-msvc", "x86_64-windows"),
    ("aarch64-pc-windows-msvc", "aarch64-windows"), ("s390x-ibm-linux-gnu", "s390x-linux"),
])  # fmt: skip
def test_names_of_platforms(triple, name):
    assert platform_name(triple) == name


def test_a_platform_without_an_object():
    with pytest.raises(BackendError, match=r"not compiled for s390x-linux.*make native"):
        object_code("s390x-linux")


@pytest.mark.parametrize("platform", native.TARGETS)
def test_every_object_has_the_functions(platform):
    code = object_code(platform)
    for name in FUNCTIONS + (HALF if platform.startswith("x86_64") else ()):
        assert name.encode() in code


def need_the_compiler() -> None:
    if native.compiler() != RECORDED["compiler"]:
        found = native.compiler() or "no ziglang"
        pytest.skip(f"needs {RECORDED['compiler']}, here is {found}")


@pytest.mark.slow
@pytest.mark.parametrize("platform", native.TARGETS)
def test_compiled_anew_the_objects_are_the_same(platform):
    need_the_compiler()
    assert native.build(platform) == object_code(platform), "run: make native"


@pytest.mark.slow
@pytest.mark.parametrize("platform", native.TARGETS)
def test_objects_refer_to_nothing_outside(platform, tmp_path):
    """They can be linked with nothing else: any linker loads them, and no library is needed."""
    need_the_compiler()
    entry = ["-Wl,-e,rg_reset"] if platform.endswith("windows") else []
    done = subprocess.run(
        [sys.executable, "-m", "ziglang", "cc", "-target", native.TARGETS[platform], "-shared",
         "-nostdlib", "-Wl,-z,defs", *entry, str(native.PREBUILT / f"{platform}.o"), "-o",
         str(tmp_path / "linked")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
