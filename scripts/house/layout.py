"""Folders, tests beside files, lines, and pages for those who read the source."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from scripts.house.row import Row, counted, percent
from scripts.house.tree import Tree

MOST_FILES = 20  # in a folder
MOST_WORDS = 600  # of a folder's README
C_FILES = (".c", ".h")
UNTESTED = ("__init__.py", "__main__.py")  # files that say what is elsewhere
SAMPLES = "verify/records/"  # what generic tests go through


def rows(tree: Tree) -> list[Row]:
    files = tree.python_files()
    folders = Counter(p.parent for p in files)
    large = [f"{within(tree, p)} {n}" for p, n in folders.items() if n > MOST_FILES]
    own = [p for p in files if p.name not in UNTESTED and not within(tree, p).startswith(SAMPLES)]
    missing = [within(tree, p) for p in own if not tested(tree, p)]
    pages = {p: words(p / "README.md") for p in folders if (p / "README.md").exists()}
    return [
        Row(
            "mirrored_tests",
            "percent of source files with the mirrored test",
            percent(len(own) - len(missing), len(own)),
            "90",
            [f"without: {path}" for path in missing],
        ),
        Row("most_files", "files in the fullest folder", max(folders.values()), str(MOST_FILES)),
        counted("full_folders", f"folders with more than {MOST_FILES} files", large, "0"),
        Row(
            "architecture_words",
            "words of docs/architecture.md",
            words(tree.root / "docs" / "architecture.md"),
            "1000",
        ),
        counted(
            "folders_without_readme",
            "folders without a README",
            [within(tree, p) for p in folders if p not in pages],
            "0",
        ),
        Row(
            "readme_words",
            "words of the longest README of a folder",
            max(pages.values(), default=0),
            str(MOST_WORDS),
            [f"{within(tree, p)} {n}" for p, n in sorted(pages.items())],
        ),
        Row("python_lines", "lines of Python in the package", lines(files), "75000"),
        Row("python_files", "files of Python in the package", len(files)),
        Row("c_lines", "lines of C", lines([p for p in tree.all_files() if p.suffix in C_FILES])),
    ]  # fmt: skip


def within(tree: Tree, path: Path) -> str:
    return path.relative_to(tree.package).as_posix()


def tested(tree: Tree, path: Path) -> bool:
    """Whether the test of `a/b/c.py` is at `tests/a/b/test_c.py`."""
    name = f"test_{path.stem.lstrip('_')}.py"
    return (tree.root / "tests" / path.relative_to(tree.package)).with_name(name).exists()


def lines(paths: list[Path]) -> int:
    return sum(p.read_bytes().count(b"\n") for p in paths)


def words(page: Path) -> int:
    return len(page.read_text(encoding="utf-8").split()) if page.exists() else 0
