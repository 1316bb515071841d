"""The text of graphs as a format: its versions, and files from strangers."""

import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir.text import VERSION
from tests.graph.fuzz import damaged, main

FIXTURES = Path(__file__).parents[1] / "fixtures" / "graphs"
FILES = sorted(FIXTURES.glob("v*/*.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_files_of_every_version_give_what_they_gave(path: Path) -> None:
    g = rg.load_graph(path)
    kept = np.load(path.with_suffix(".npz"))
    inputs = [kept[k] for k in kept.files if k.startswith("input")]
    with rg.backend("reference"):
        found = g(*inputs)
    several = found if isinstance(found, tuple) else (found,)
    expected = [kept[k] for k in kept.files if k.startswith("output")]
    for a, b in zip(several, expected, strict=True):
        assert a.numpy().dtype == b.dtype
        np.testing.assert_allclose(a.numpy(), b, rtol=1e-6, atol=1e-7)


def test_there_are_files_of_every_version() -> None:
    assert {p.parent.name for p in FILES} == {f"v{i}" for i in range(1, VERSION + 1)}


def test_a_file_says_its_version(tmp_path: Path) -> None:
    g = rg.trace(lambda x: x + 1, rg.spec((2,)))
    g.save(tmp_path / "g.txt")
    text = (tmp_path / "g.txt").read_text()
    assert text.startswith(f"# retrograd graph, version {VERSION}\n")
    assert "version" not in str(g)
    assert rg.load_graph(tmp_path / "g.txt") == g
    (tmp_path / "old.txt").write_text(str(g))  # as it was before there were versions
    assert rg.load_graph(tmp_path / "old.txt") == g
    (tmp_path / "new.txt").write_text(text.replace(f"version {VERSION}", f"version {VERSION + 1}"))
    with pytest.raises(rg.FormatError, match=r"version 2 of the format.*pip install -U retrograd"):
        rg.load_graph(tmp_path / "new.txt")
    (tmp_path / "none.txt").write_text(text.replace(f"version {VERSION}", "version 0"))
    with pytest.raises(rg.FormatError, match="version 0"):
        rg.load_graph(tmp_path / "none.txt")


def test_the_page_shows_a_graph_that_can_be_read(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "graph-format.md").read_text()
    text = page.split("```\n")[1]
    (tmp_path / "g.txt").write_text(text)
    g = rg.load_graph(tmp_path / "g.txt")
    assert g(np.ones((2, 3), np.float32)).item() == -0.5
    assert f"describes version {VERSION}" in page


@pytest.mark.slow
def test_damaged_texts_in_little_memory() -> None:
    """In a process of their own, which a crash would end."""
    files = [str(p) for p in FILES]
    command = [sys.executable, "-m", "tests.graph.fuzz", "0", "120", *files]
    root = Path(__file__).parents[2]
    ran = subprocess.run(
        command, cwd=root, capture_output=True, text=True, timeout=300, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "'run'" in ran.stdout
    assert "'FormatError'" in ran.stdout


def test_what_is_neither_is_noticed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The harness itself: an error that is none of this library's."""

    def fails(path: Path) -> None:
        raise KeyError(path.name)

    monkeypatch.setattr(rg, "load_graph", fails)
    monkeypatch.setattr(resource, "setrlimit", lambda *_: None)
    assert main(3, 2, [str(FILES[0])]) == 1
    assert "'WRONG': 2" in capsys.readouterr().out
    texts = [FILES[0].read_text()]
    rng = np.random.default_rng(0)
    assert damaged(texts[0], texts, rng) != texts[0]
