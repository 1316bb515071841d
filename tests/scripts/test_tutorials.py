"""The tutorials: what they show is what they print, the pictures are what they draw."""

import re

import pytest

from scripts import pages
from scripts.tutorials import FOLDER, PICTURES, path_of, pictures, tutorials

BRIEF = ("micrograd",)  # which takes little time, and runs with the others' tests
NEEDS = {"from-jax": ("jax",), "deploy": ("onnxruntime", "onnx")}
MARKS = {"from-pytorch": [pytest.mark.torch]}
LONGEST, SHORTEST = 1500, 600  # words


def check(name, tmp_path):
    for package in NEEDS.get(name, ()):
        pytest.importorskip(package)
    assert pages.differences(path_of(name), tmp_path) == []
    for picture in pictures(name):
        drawn = (tmp_path / picture).read_text(encoding="utf-8")
        assert drawn == (PICTURES / picture).read_text(encoding="utf-8"), picture


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=MARKS.get(n, ())) for n in tutorials() if n not in BRIEF]
)
def test_a_tutorial_shows_what_it_prints(name, tmp_path):
    """If this fails: `python -m scripts.tutorials NAME`."""
    check(name, tmp_path)


@pytest.mark.parametrize("name", BRIEF)
def test_a_short_tutorial_shows_what_it_prints(name, tmp_path):
    check(name, tmp_path)


def test_the_index_lists_all_of_them():
    assert {p.stem for p in FOLDER.glob("*.md")} == {"index", *tutorials()}
    assert {p.name for p in PICTURES.iterdir()} == {x for n in tutorials() for x in pictures(n)}


@pytest.mark.parametrize("name", tutorials())
def test_a_tutorial_is_one_sitting_and_says_for_whom(name):
    text = path_of(name).read_text(encoding="utf-8")
    assert SHORTEST <= len(text.split()) <= LONGEST
    assert re.search(r"^\*\*For you if\*\*", text, re.MULTILINE)
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert (FOLDER / target).exists(), target
