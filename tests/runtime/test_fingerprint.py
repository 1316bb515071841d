"""When two programs are the same, and when the compiler is."""

from __future__ import annotations

import os
import sys
import time

import numpy as np
import pytest

from retrograd.ir import Dim, Graph, float32, spec
from retrograd.ops.elementwise import mul
from retrograd.ops.leaf import constant, input_node
from retrograd.ops.shape import Flip, expand
from retrograd.runtime import disk_cache, fingerprint
from retrograd.runtime.fingerprint import program_key
from retrograd.tuning import TUNING


@pytest.fixture
def compiler(tmp_path, monkeypatch):
    """The folder of a compiler of two files that are an hour old, and how to write one anew."""
    root = tmp_path / "package"
    (root / "codegen").mkdir(parents=True)
    monkeypatch.setattr(fingerprint, "ROOT", str(root))
    monkeypatch.setattr(fingerprint, "ROOMS", ("codegen", "tuning.py"))
    # As if this process had begun in an hour: what is written here was there long before.
    monkeypatch.setattr(fingerprint, "STARTED", time.time() + 3600)
    monkeypatch.setenv(disk_cache.VARIABLE, str(tmp_path / "cache"))

    def write(name: str, content: str) -> None:
        path = root / name
        path.write_text(content, encoding="ascii")
        os.utime(path, (1e9, 1e9))

    write("codegen/loops.py", "vector = 16")
    write("tuning.py", "tile = 8")
    return write


@pytest.fixture
def read(monkeypatch):
    """The files that were read since."""
    paths = []
    opened = os.open

    def noted(path, *args):
        if str(path).startswith(fingerprint.ROOT):
            paths.append(path)
        return opened(path, *args)

    monkeypatch.setattr(os, "open", noted)
    return paths


whole = fingerprint.fingerprint.__wrapped__


def test_the_compiler_is_known_by_its_files(monkeypatch):
    monkeypatch.setattr(fingerprint, "STARTED", float("inf"))
    assert len(whole() or "") == 64
    monkeypatch.setattr(fingerprint, "ROOMS", ("errors",))
    assert whole() is None, "nothing to read, as in an archive"
    monkeypatch.undo()
    monkeypatch.setattr(fingerprint, "STARTED", 0.0)
    assert whole() is None, "what runs may be older than the files"


def test_files_that_are_known_are_not_read_again(compiler, read, monkeypatch):
    first = whole()
    assert len(read) == 2
    assert whole() == first
    assert len(read) == 2
    monkeypatch.setenv(disk_cache.VARIABLE, "off")
    assert whole() == first, "the same, known or read"
    assert len(read) == 4


@pytest.mark.parametrize("name", ["codegen/loops.py", "tuning.py", "codegen/more.py"])
@pytest.mark.skipif(sys.platform == "win32", reason="it has no time that nobody can set")
def test_a_changed_file_is_noticed_whatever_its_time_says(compiler, name):
    """Of the same length, with the time it had: another tool may have set that."""
    old = {"codegen/loops.py": "vector = 16", "tuning.py": "tile = 8", "codegen/more.py": ""}[name]
    first = whole()
    compiler(name, old.replace("16", "32").replace("8", "9"))
    assert whole() not in (first, None)


def test_names_count(compiler):
    first = whole()
    os.rename(f"{fingerprint.ROOT}/codegen/loops.py", f"{fingerprint.ROOT}/codegen/nests.py")
    assert whole() not in (first, None)


def test_files_that_may_change_within_the_same_tick_are_read_each_time(compiler, read, monkeypatch):
    """The times of files may be as coarse as two seconds."""
    monkeypatch.setattr(fingerprint, "STARTED", time.time() + 1)
    assert whole() == whole()
    assert len(read) == 4


def test_a_file_that_changes_while_it_is_read_leaves_nothing_to_rely_on(compiler, monkeypatch):
    listed = fingerprint._sources

    def slowly():
        found = listed()
        compiler("codegen/loops.py", "vector = 32")
        return found

    monkeypatch.setattr(fingerprint, "_sources", slowly)
    assert whole() is None


def test_a_damaged_entry_is_made_again(compiler, read, tmp_path):
    first = whole()
    (entry,) = (tmp_path / "cache" / "compiled").iterdir()
    entry.write_bytes(entry.read_bytes()[:-1] + b"?")
    assert whole() == first
    assert len(read) == 4


def graph(n: int | Dim = 3, value: float = 2.0) -> Graph:
    x = input_node(spec((n,), float32), "x")
    return Graph([x], [mul(x, expand(constant(np.float32(value)), (n,), (0,)))])


def test_programs_that_are_the_same_have_one_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprint, "fingerprint", lambda: "one compiler")
    own = program_key(graph(), ["cpu"], (), False)
    assert own == program_key(graph(), ["cpu"], (), False)
    others = [
        program_key(graph(4), ["cpu"], (), False),
        program_key(graph(Dim("N")), ["cpu"], (), False),
        program_key(graph(value=-2.0), ["cpu"], (), False),
        program_key(graph(value=2 + 2.0**-22), ["cpu"], (), False),
        program_key(graph(), ["another"], (), False),
        program_key(graph(), ["cpu"], (0,), False),
        program_key(graph(), ["cpu"], (), True),
    ]  # fmt: skip
    monkeypatch.setattr(fingerprint, "fingerprint", lambda: "another compiler")
    others.append(program_key(graph(), ["cpu"], (), False))
    assert None not in others
    assert len({own, *others}) == len(others) + 1


def test_what_has_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Operations from elsewhere, large constants, a compiler that is not known."""
    monkeypatch.setattr(fingerprint, "fingerprint", lambda: "one compiler")

    class Own(Flip):
        pass

    x = input_node(spec((3,), float32), "x")
    assert program_key(Graph([x], [Flip((0,))(x)]), []) is not None
    assert program_key(Graph([x], [Own((0,))(x)]), []) is None
    large = constant(np.zeros(TUNING.hashed_constant_bytes // 4 + 1, np.float32))
    assert program_key(Graph([x], [x, large]), []) is None
    monkeypatch.setattr(fingerprint, "fingerprint", lambda: None)
    assert program_key(graph(), []) is None
