"""Norms of parameters over the steps of a run, from the log in its folder, for their page."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from retrograd.errors import FormatError
from retrograd.files import StrPath, read_bytes
from retrograd.viz.graph_document import Document
from retrograd.viz.packed import strict

LOG = "log.jsonl"
KINDS = ("weight", "gradient", "update")
MOST = 400  # steps of a page; of more, evenly spaced ones


def with_run(doc: Document, folder: StrPath) -> Document:
    """The document with the norms that the log of a run has of its parameters: `run`.

    Lines of the log hold `"parameters": {"0.weight": {"weight": ‖w‖, "gradient": ‖g‖, "update":
    ‖Δw‖}}`. An input has the numbers of the parameter whose name its own ends with, indices as
    words: `model[0].weight` those of `0.weight`. Raises `FormatError` where no numbers are found.
    """
    path = Path(folder)
    path = path / LOG if path.is_dir() else path
    lines = _lines(path)
    lines = lines[:: -(-len(lines) // MOST)] + lines[-1:] if len(lines) > MOST else lines
    names = {name for _, found in lines for name in found}
    parameters: dict[str, dict[str, list[Any]]] = {}
    for r in doc["nodes"]:
        if r["role"] in ("input", "parameter") and (name := _same(r["name"], names)):
            parameters[str(r["id"])] = {
                kind: [strict(found.get(name, {}).get(kind)) for _, found in lines]
                for kind in KINDS
            }
    if not parameters:
        given = sorted(r["name"] for r in doc["nodes"] if r["op"] == "input" and r["name"])
        raise FormatError(
            f"the log {path} has no norms of the parameters of this graph"
            + (
                f": it knows {', '.join(sorted(names)[:6])}, the graph {', '.join(given[:6])}"
                if names
                else "; rg.train.fit(..., log_norms=True) writes them"
            )
        )
    return {**doc, "run": {"steps": [step for step, _ in lines], "parameters": parameters}}


def _lines(path: Path) -> list[tuple[int, dict[str, dict[str, Any]]]]:
    """Steps and norms of the lines that have some; a last line may be cut short."""
    found = []
    for text in read_bytes(path, "log").decode(errors="replace").splitlines():
        if '"parameters"' not in text:
            continue
        try:
            line = json.loads(text)
        except (ValueError, RecursionError):
            continue
        norms = line.get("parameters") if isinstance(line, dict) else None
        if isinstance(norms, dict) and type(line.get("step")) is int:
            told = {k: v for k, v in norms.items() if isinstance(v, dict)}
            found.append((line["step"], told))
    return found


def _same(name: str, names: set[str]) -> str | None:
    """The longest of the names that a path ends with."""
    words = [w for w in re.split(r"[.\[\]'\"]+", name) if w]
    for k in range(len(words)):
        if (end := ".".join(words[k:])) in names:
            return end
    return None
