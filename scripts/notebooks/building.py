"""From text with cells (`# %%`, `# %% [markdown]`) to an executed notebook."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
NAMES = (
    "first_gradient", "training_digits", "graphs_to_hold", "learning_on_graphs",
    "micrograd_lecture",
)  # fmt: skip
SECONDS = 300  # a cell may take


def path_of(name: str) -> Path:
    """Where the notebook of a name is."""
    return ROOT / "examples" / f"{name}.ipynb"


def cells(name: str) -> list[tuple[str, str]]:
    """The kind and text of each cell, in order."""
    text = (Path(__file__).parent / f"{name}.py").read_text(encoding="utf-8")
    found = []
    for part in re.split(r"^# %%", text, flags=re.MULTILINE)[1:]:
        mark, _, body = part.partition("\n")
        body = body.strip("\n")
        if mark.strip() == "[markdown]":
            found.append(("markdown", re.sub(r"^# ?", "", body, flags=re.MULTILINE)))
        else:
            found.append(("code", body))
    return found


def notebook(name: str) -> Any:
    """The notebook without outputs."""
    import nbformat

    make = {"markdown": nbformat.v4.new_markdown_cell, "code": nbformat.v4.new_code_cell}
    made = [
        make[kind](text, id=f"{name.replace('_', '-')}-{i}")
        for i, (kind, text) in enumerate(cells(name))
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return nbformat.v4.new_notebook(cells=made, metadata={"kernelspec": kernel})


def executed(name: str) -> Any:
    """The notebook with its outputs, made by a kernel of its own that imports this source."""
    from nbclient import NotebookClient

    paths = [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    made = notebook(name)
    client = NotebookClient(
        made,
        timeout=SECONDS,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,  # how print() arrives in parts differs from run to run
    )
    client.execute(cwd=str(ROOT), env=environment)
    made.metadata.pop("language_info", None)
    for cell in made.cells:
        cell.metadata.clear()
        for output in cell.get("outputs", ()):
            output.get("metadata", {}).clear()
    return made


def written(made: Any) -> str:
    """A notebook as the text of its file."""
    import nbformat

    return str(nbformat.writes(made)).rstrip("\n") + "\n"
