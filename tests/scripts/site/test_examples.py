"""What pages of the site show is what their blocks print; the cookbook is one of short tasks."""

import re

import pytest

from scripts import pages
from scripts.site.examples import ALONE, DOCS, WHOLE, executed, main, parts, recipes, written

# Packages that an example may want beside this one; without them it is skipped.
OTHERS = ("jax", "onnx", "scipy", "sklearn", "torch")
LONGEST = 20  # lines of a recipe
TASKS = list(recipes())


def needs(text):
    return [x for x in OTHERS if re.search(rf"^(import|from) {x}\b", text, re.MULTILINE)]


def parameter(name, text, where):
    marks = [pytest.mark.torch] if "torch" in needs(text) else []
    return pytest.param(text, id=where, marks=marks)


def check(text, tmp_path):
    for package in needs(text):
        pytest.importorskip(package)
    assert pages.differences(written(text, tmp_path), tmp_path) == []


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "text", [parameter(page, text, f"{page}: {heading}") for page, heading, text in TASKS]
)
def test_a_task_shows_what_it_prints(text, tmp_path):
    """If this fails: `python -m scripts.site.examples cookbook/PAGE`."""
    check(text, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", WHOLE)
def test_a_page_shows_what_it_prints(name, tmp_path):
    """If this fails: `python -m scripts.site.examples PAGE`."""
    (text,) = parts(name)
    check(text, tmp_path)


def test_every_task_is_a_question_with_code_and_a_reason():
    assert len(TASKS) >= 50
    for page, heading, text in TASKS:
        where = f"{page}: {heading}"
        assert heading.endswith("?"), where
        found = pages.shown(text)
        assert [block.language for block, _ in found] == ["python"], where
        ((code, output),) = found
        assert output is not None, f"{where} shows nothing"
        assert len([line for line in code.text.splitlines() if line.strip()]) <= LONGEST, where
        reason = text[output.end :].split()
        assert 10 <= len(reason) <= 80, f"{where}: {len(reason)} words of reason"


def test_the_index_of_the_cookbook_lists_its_pages():
    index = (DOCS / ALONE / "index.md").read_text(encoding="utf-8")
    linked = re.findall(r"\]\(([\w-]+)\.md\)", index)
    assert sorted(linked) == sorted(
        p.stem for p in (DOCS / ALONE).glob("*.md") if p.stem != "index"
    )


def test_pages_of_one_session_run_as_a_whole():
    assert len(parts("first-steps")) == 1
    assert "".join(parts("cookbook/gradients")) == (DOCS / "cookbook/gradients.md").read_text(
        "utf-8"
    )
    assert set(WHOLE) < set(executed())


def test_output_is_brought_up_to_date(tmp_path, monkeypatch):
    monkeypatch.setattr("scripts.site.examples.DOCS", tmp_path)
    (tmp_path / "cookbook").mkdir()
    page = tmp_path / "cookbook" / "sums.md"
    task = "## One?\n\n```python\nx = 1\nprint(x)\n```\n\n{}Why.\n\n"
    other = "## Two?\n\n```python\nprint('x' in dir())\n```\n\n```text\nFalse\n```\n"
    page.write_text(task.format("```text\n2\n```\n\n") + other)
    main(["cookbook/sums"])
    assert page.read_text() == task.format("```text\n1\n```\n\n") + other
