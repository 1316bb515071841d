"""What is done where IPython runs, with a shell that stands for its own (`test_kernel.py` has the
real one)."""

import io
import sys
import types

import pytest

import retrograd as rg
from retrograd.notebook.cell import Shown, in_notebook, shell
from retrograd.train.progress import CellBar, Lines, reporter


class Handle:
    """IPython's handle of what is displayed."""

    def __init__(self, seen):
        self.seen = seen

    def display(self, bundle, raw):
        self.seen.append(("new", bundle))

    def update(self, bundle, raw):
        self.seen.append(("again", bundle))


@pytest.fixture
def kernel(monkeypatch):
    """What was displayed in a shell whose third cell is this file."""
    seen: list[tuple[str, dict[str, str]]] = []
    compile = types.SimpleNamespace(
        format_code_name=lambda file: ("Cell", "In[3]") if file == __file__ else None
    )
    shell = types.SimpleNamespace(kernel=object(), compile=compile)
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: shell  # type: ignore[attr-defined]
    display = types.ModuleType("IPython.display")
    display.DisplayHandle = lambda: Handle(seen)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr("webbrowser.open", None)  # whoever calls it fails
    return seen


def test_elsewhere_there_is_no_cell():
    assert shell() is None
    assert not in_notebook()
    assert isinstance(reporter(io.StringIO()), Lines)


def test_an_output_is_replaced(kernel):
    assert in_notebook()
    shown = Shown("<b>1</b>", "1")
    shown.replace("<b>2</b>", "2")
    assert kernel == [
        ("new", {"text/html": "<b>1</b>", "text/plain": "1"}),
        ("again", {"text/html": "<b>2</b>", "text/plain": "2"}),
    ]


def test_a_bar_of_training(kernel):
    bar = reporter(io.StringIO())
    assert isinstance(bar, CellBar)
    bar.start(0, 10)
    bar.update(10, 0.5, 100)
    bar.message("<saved>")
    bar.close()
    assert [kind for kind, _ in kernel] == ["new", *["again"] * (len(kernel) - 1)]
    last = kernel[-1][1]
    assert last["text/plain"] == "step 10/10  loss 0.5000\n<saved>"
    assert '<progress value="10" max="10">' in last["text/html"]
    assert "&lt;saved&gt;" in last["text/html"]


def test_a_bar_where_nobody_knows_how_many_steps_there_will_be(kernel):
    bar = CellBar()
    bar.start(5, None)
    bar.close()
    assert "progress" not in kernel[-1][1]["text/html"]
    assert kernel[-1][1]["text/plain"].startswith("step 5  ")


def test_the_explorer_and_the_dashboard(kernel, tmp_path):
    rg.trace(lambda x: x * x, rg.spec(())).show(2.0, path=tmp_path / "g.html")
    assert kernel[-1][1]["text/html"].startswith("<iframe srcdoc=")
    with rg.dashboard() as d:
        d.log(1, loss=2.0)
        d.log(2, loss=1.0)
    assert "step 2" in kernel[-1][1]["text/html"]
    assert kernel[-1][1]["text/plain"] == "<Dashboard 'training', 2 events, closed>"


def test_lines_are_those_of_cells(kernel):
    with pytest.raises(rg.ShapeError, match=r"Cell In\[3\], line \d+ in test_lines_are"):
        rg.ones((2, 3)) @ rg.ones((2, 3))
    doc = rg.trace(lambda x: x * x, rg.spec(())).to_document()
    assert {s["file"] for s in doc["sources"]} == {"Cell In[3]"}
