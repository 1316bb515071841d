"""Modules that are imported once another is."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from retrograd import post_import


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of modules to import, each forgotten after the test."""
    (tmp_path / "watched_one.py").write_text("value = 1\n")
    (tmp_path / "watched_two.py").write_text("value = 2\n")
    (tmp_path / "waiting_one.py").write_text("import watched_one\nseen = watched_one.value\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    for name in ("watched_one", "watched_two", "waiting_one", "broken"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


def test_a_module_is_imported_behind_the_one_it_waits_for(modules: Path) -> None:
    before = list(sys.meta_path)
    post_import.watch({"watched_one": "waiting_one"})
    importlib.import_module("watched_two")
    assert "waiting_one" not in sys.modules
    watched = importlib.import_module("watched_one")
    assert sys.modules["waiting_one"].seen == 1
    assert sys.meta_path == before  # nothing is left to watch for
    assert watched.__spec__ is not None
    assert "Told" not in repr(watched.__loader__) + repr(watched.__spec__.loader)
    assert importlib.reload(watched).value == 1


def test_what_is_there_already_is_not_waited_for(modules: Path) -> None:
    importlib.import_module("watched_one")
    before = list(sys.meta_path)
    post_import.watch({"watched_one": "waiting_one"})
    assert sys.modules["waiting_one"].seen == 1
    assert sys.meta_path == before


def test_an_import_that_fails_fails_as_ever_and_is_not_watched_again(modules: Path) -> None:
    (modules / "broken.py").write_text("raise RuntimeError('of its own')\n")
    post_import.watch({"broken": "waiting_one", "absent_module": "waiting_one"})
    with pytest.raises(RuntimeError, match="of its own"):
        importlib.import_module("broken")
    with pytest.raises(ModuleNotFoundError, match="absent_module"):
        importlib.import_module("absent_module")
    assert "waiting_one" not in sys.modules
