"""The notebooks in `examples/`: they are what the script makes, and they run."""

import base64
import contextlib
import getpass
import io
import json
import re
import socket
from pathlib import Path

import pytest

from scripts.notebooks.building import NAMES, ROOT, cells, executed, path_of
from tests.notebook.test_array import well_formed

# What differs from run to run and from machine to machine: places, addresses, times, speeds.
VOLATILE = re.compile(
    r"/tmp/|/home/|/root/|/Users/|ipykernel|0x[0-9a-f]{6,}|\d+ ?(?:ms|us|µs)\b|samples/s|\bETA\b"
)


def held(name):
    return json.loads(path_of(name).read_text(encoding="utf-8"))


def outputs(made):
    return [o for c in made["cells"] for o in c.get("outputs", [])]


def bundle(output):
    return {k: "".join(v) if isinstance(v, list) else v for k, v in output.get("data", {}).items()}


@pytest.mark.parametrize("name", NAMES)
def test_the_committed_notebook_is_current(name):
    """If this fails: `python -m scripts.notebooks`."""
    made = held(name)
    assert [(c["cell_type"], "".join(c["source"])) for c in made["cells"]] == cells(name)
    code = [c for c in made["cells"] if c["cell_type"] == "code"]
    assert [c["execution_count"] for c in code] == list(range(1, len(code) + 1))
    assert len(outputs(made)) >= len(code) / 2
    assert not any(o["output_type"] == "error" for o in outputs(made))
    assert len({c["id"] for c in made["cells"]}) == len(made["cells"])


@pytest.mark.parametrize("name", NAMES)
def test_its_outputs_are_small_and_say_nothing_of_the_machine(name):
    text = path_of(name).read_text(encoding="utf-8")
    assert len(text) < 150_000
    private = [str(Path.home()), str(ROOT), socket.gethostname(), getpass.getuser()]
    for output in outputs(held(name)):
        shown = {**bundle(output), "text": "".join(output.get("text", ""))}
        for kind, content in shown.items():
            if kind == "image/png":
                assert base64.b64decode(content).startswith(b"\x89PNG")
                continue
            words = re.sub(r"base64,[\w+/=]+", "", content)
            assert VOLATILE.search(words) is None
            assert not any(re.search(rf"\b{re.escape(p)}\b", words) for p in private if len(p) > 4)
            if kind == "text/html":
                well_formed(content)


def test_all_of_them_are_linked_and_none_is_left_over():
    page = (ROOT / "docs" / "examples.md").read_text(encoding="utf-8")
    assert all(f"../examples/{name}.ipynb" in page for name in NAMES)
    assert {p.stem for p in (ROOT / "examples").glob("*.ipynb")} == {*NAMES}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_it_runs_and_shows_the_same_kinds_of_things(name):
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    made = json.loads(json.dumps(executed(name)))  # an error of a cell is one here
    kinds = [(o["output_type"], sorted(bundle(o))) for o in outputs(made)]
    assert kinds == [(o["output_type"], sorted(bundle(o))) for o in outputs(held(name))]
    for output in outputs(made):
        if (html := bundle(output).get("text/html")) is not None:
            well_formed(html)


def printed(name, *changes):
    """What the cells of a notebook print, one after the other, with other texts in their code."""
    out, names = io.StringIO(), {"__name__": "__main__"}
    code = "\n".join(text for kind, text in cells(name) if kind == "code")
    for old, new in changes:
        assert code.count(old) == 1
        code = code.replace(old, new)
    with contextlib.redirect_stdout(out):
        exec(compile(code, name, "exec", dont_inherit=True), names)
    return out.getvalue()


IMPORT = "\nfrom retrograd import Value\n"


def test_the_lecture_runs_on_our_values_with_only_the_import_changed():
    """It prints what it prints with the class that the reader has written in it."""
    lecture = printed("micrograd_lecture")
    assert lecture == "".join(
        o["text"] if isinstance(o["text"], str) else "".join(o["text"])
        for o in outputs(held("micrograd_lecture"))
        if o["output_type"] == "stream"
    )
    assert printed("micrograd_lecture", (IMPORT, "\n")) == lecture


@pytest.mark.torch
def test_the_lecture_runs_on_pytorch_with_only_the_import_changed():
    lecture = printed("micrograd_lecture")
    assert printed("micrograd_lecture", ("import retrograd as torch", "import torch")) == lecture
