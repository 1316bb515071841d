"""What the pages for those who read the source say is true of the source: READMEs, the page of
architecture, the glossary, the tour."""

import functools
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

from retrograd.ir import Op
from tests import test_architecture as house

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
GLOSSARY = DOCS / "glossary.md"
FOLDERS = sorted(
    {path.parent for path in house.FILES}
    | {ROOT / name for name in ("benchmarks", "docs", "scripts", "tests")}
)
MOST = 600  # words of a README
ARCHITECTURE_WORDS = 1_100
# Files and folders in backticks, such as `ir/node.py`, `prebuilt/`, `runtime/native/launch.c`.
FILE = re.compile(r"[\w./-]+(?:\.(?:py|c|h|md|toml|js|json|txt|svg)|/)")
CLASS = re.compile(r"[A-Z]\w*[a-z]\w*")
LEVEL = {name: i for i, name in enumerate(house.LEVELS)}
# Single files, which nobody has to say he imports: errors, files and the like.
LEAVES = {name for name, path in house.MODULES.items() if path.parent == house.SOURCE}


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def pages() -> list[Path]:
    """The pages that name files: READMEs of folders, and what is written for contributors."""
    found = [folder / "README.md" for folder in FOLDERS]
    return [p for p in (*found, *DOCS.glob("*.md"), ROOT / "CONTRIBUTING.md") if p.exists()]


def quoted(path: Path) -> list[str]:
    """What stands in backticks on a page, outside of blocks of code."""
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.M)
    return re.findall(r"`([^`\n]+)`", text)


def words(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").split())


def test_every_folder_has_a_readme():
    """What lives there, what it may import, the ideas, where to start; no page without modules."""
    found = {path.parent for path in house.SOURCE.rglob("README.md")}
    expected = {folder for folder in FOLDERS if folder.is_relative_to(house.SOURCE)}
    assert sorted(map(name_of, found ^ expected)) == []
    assert all((folder / "README.md").exists() for folder in FOLDERS)
    assert {
        name_of(p): n for p in pages() if p.name == "README.md" and (n := words(p)) > MOST
    } == {}


def test_the_page_of_architecture_is_short():
    assert words(DOCS / "architecture.md") <= ARCHITECTURE_WORDS


def test_files_that_a_page_names_exist():
    """Beside the page, or under the root, `src/retrograd` or `src`."""
    missing = [
        f"{name_of(page)}: {x}"
        for page in pages()
        for x in quoted(page)
        if FILE.fullmatch(x)
        and not any((p / x).exists() for p in (page.parent, ROOT, house.SOURCE, ROOT / "src"))
    ]
    assert missing == []


@functools.cache
def class_names() -> frozenset[str]:
    """The names of all classes, and of functions and variables that are written like one."""
    defined = re.compile(r"^ *(?:class|def|type) (\w+)|^([A-Z]\w*)[^=\n]* = ", re.MULTILINE)
    texts = [p.read_text(encoding="utf-8") for p in (*house.FILES, *house.BENCH_FILES)]
    return frozenset(name for text in texts for pair in defined.findall(text) for name in pair)


def test_classes_that_a_page_names_exist():
    pages = [*(folder / "README.md" for folder in FOLDERS), DOCS / "architecture.md", GLOSSARY]
    missing = [
        f"{name_of(page)}: {name}"
        for page in pages
        for name in [x.split(".")[0] for x in quoted(page)]
        if CLASS.fullmatch(name) and name not in class_names()
    ]
    assert missing == []


def tops(rooms: set[str]) -> set[str]:
    """The folders of `src/retrograd` that rooms lie in."""
    return {room.partition(".")[0] for room in rooms} - LEAVES


def test_a_readme_says_what_its_folder_may_import():
    """The line of a README allows nothing that the levels forbid, and all that is imported."""
    wrong = []
    for folder in FOLDERS:
        if house.SOURCE not in folder.parents:
            continue
        text = (folder / "README.md").read_text(encoding="utf-8")
        line = re.search(r"^May import: (.*?)\.$", text, re.DOTALL | re.MULTILINE)
        allowed = set(re.findall(r"`(\w+)`", line[1])) if line else set()
        above, imported = may_import(folder), does_import(folder)
        if line is None or not imported <= allowed <= above:
            wrong.append(f"{name_of(folder)} may import {above}, imports {imported}")
    assert wrong == []


def modules_in(folder: Path) -> list[str]:
    return [name for name, path in house.MODULES.items() if path.parent == folder]


def level_of(folder: Path) -> int:
    return max(LEVEL[house.room(name)] for name in modules_in(folder))


def may_import(folder: Path) -> set[str]:
    return tops(set(house.LEVELS[: level_of(folder)]))


def does_import(folder: Path) -> set[str]:
    """Not itself, nor what is around it."""
    targets = {(a, b) for a in modules_in(folder) for b in house.imported(a)}
    rooms = {house.room(b) for _, b in targets}
    own = folder.relative_to(house.SOURCE).parts[0]
    return tops({room for room in rooms if LEVEL[room] <= level_of(folder)}) - {own}


def class_by_name() -> dict[str, list[type]]:
    """The public classes of the levels below `functions` that another level imports, but for
    errors and operations, by the word in their name."""
    below = house.LEVELS[: house.LEVELS.index("functions")]
    imported = {
        (target.removeprefix("retrograd."), house.room(name))
        for name, path in house.MODULES.items()
        for target, _, _ in house.imports(path)
    }
    found: dict[str, list[type]] = {}
    for name, path in house.MODULES.items():
        if house.room(name) not in below:
            continue
        for word in re.findall(r"^class ([A-Za-z]\w*)", path.read_text("utf-8"), re.MULTILINE):
            # Also by way of the package: `from retrograd.ir import Node`.
            ways = {f"{name}.{word}", f"{name.rpartition('.')[0]}.{word}"}
            if any(way in ways and room != house.room(name) for way, room in imported):
                cls = getattr(importlib.import_module(f"retrograd.{name}"), word)
                if not issubclass(cls, (Op, Exception)) or cls is Op:
                    found.setdefault(word, []).append(cls)
    return found


def spelled_out(name: str) -> str:
    """`TileGroup` as "tile group"."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()


def test_the_glossary_explains_the_classes_that_rooms_share():
    text = GLOSSARY.read_text(encoding="utf-8")
    terms = {term.lower() for term in re.findall(r"\*\*(.+?)\*\*", text)}
    named = {x.split(".")[0] for x in quoted(GLOSSARY)}
    classes = class_by_name()
    assert len(classes) > 50
    unexplained = [x for x in classes if x not in named and spelled_out(x) not in terms]
    assert not unexplained, "a term in bold, or a class that an entry of docs/glossary.md names"


def test_the_tour_runs_and_shows_each_stage():
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, str(DOCS / "tour.py")],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    stages = re.findall(r"^=== (\d+)\. (\S+)", done.stdout, re.MULTILINE)
    assert [int(number) for number, _ in stages] == [*range(1, 11)]
    # What each stage is there to show.
    for shown in (
        "dot_general(%0, %1)",  # the graph
        "cotangent",  # the walk of the pullback
        "after lowering:",  # rewriting
        "stored: an output",  # fusion
        "a row nest",  # loop nests
        "define internal i64 @k0(",  # LLVM
        "op by op:   loss",  # executors
        "'compilations': 1",  # jit
        "arrays in slots",  # the trace buffer
        "the gradient of tanh",  # provenance
    ):
        assert shown in done.stdout, shown
    assert done.stdout.count("the same bits") == 2
