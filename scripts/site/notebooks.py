"""The executed notebooks in examples/ as pages, with the results that are kept in them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scripts.site.entries import ROOT

FOLDER = ROOT / "examples"


def pages() -> dict[str, str]:
    """The text of each page, by where it stands in the site."""
    found = sorted(FOLDER.glob("*.ipynb"))
    return {f"notebooks/{path.stem.replace('_', '-')}.md": text(path) for path in found}


def text(path: Path) -> str:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    parts = [part for cell in cells for part in _cell(cell)]
    parts.append(f"The notebook: [`{path.name}`](../../examples/{path.name})\n")
    return "\n".join(parts)


def _cell(cell: dict[str, Any]) -> Iterator[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield f"{source}\n"
        return
    yield f"```python\n{source}\n```\n"
    for output in cell["outputs"]:
        yield from _output(output)


def _output(output: dict[str, Any]) -> Iterator[str]:
    if output["output_type"] == "stream":
        yield _printed("".join(output["text"]))
        return
    data = output.get("data", {})
    if "text/html" in data:
        yield f'<div class="output">{_one_line(data["text/html"])}</div>\n'
    elif "image/svg+xml" in data:
        yield f'<div class="output">{_one_line(data["image/svg+xml"])}</div>\n'
    elif "image/png" in data:
        yield f'<img alt="" src="data:image/png;base64,{"".join(data["image/png"])}">\n'
    elif "text/plain" in data:
        yield _printed("".join(data["text/plain"]))


def _printed(text: str) -> str:
    return f"```text\n{text.rstrip()}\n```\n"


def _one_line(markup: list[str] | str) -> str:
    """Markup without empty lines, at which a block of HTML would end."""
    return "\n".join(line for line in "".join(markup).splitlines() if line.strip())
