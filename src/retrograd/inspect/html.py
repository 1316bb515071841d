"""A graph as one HTML page: the picture, with search, details of nodes, and highlighting."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence

from retrograd.inspect.document import Document, document
from retrograd.inspect.scene import scene
from retrograd.inspect.svg import LARGE, STATIC, draw_boxes, escape
from retrograd.ir import Graph

LARGEST = 5000  # nodes; of a graph of more the page shows groups only


def to_html(
    graph: Graph,
    max_nodes: int = LARGE,
    *,
    forward: Graph | None = None,
    outputs: Sequence[str] | None = None,
) -> str:
    """A page that needs nothing but a browser: it loads nothing and sends nothing.

    A graph of more than `max_nodes` nodes opens grouped by scopes; up to `LARGEST` nodes, all of
    them can be shown. `forward` and `outputs` as in `document`.
    """
    doc = document(graph, forward, outputs)
    boxes = scene(doc, max_nodes)
    grouped = len(doc["nodes"]) > max_nodes and any(box.key[0] == "s" for box in boxes)
    detail = ""
    if grouped and len(doc["nodes"]) <= LARGEST:
        full = draw_boxes(doc, scene(doc, LARGEST))
        detail = f'<template id="detail">{full}</template>'
    script = _static("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    parts = {
        "title": escape(doc["name"] or "graph"),
        "stats": escape(_stats(doc)),
        "style": _static("page.css"),
        "kind": "groups" if grouped else "nodes",
        "picture": draw_boxes(doc, boxes),
        "detail": detail,
        "graph": _json(doc, {box.key: box.members for box in boxes} if grouped else {}),
        "hash": f"sha256-{digest}",
        "script": script,
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda m: parts[m[1]], _static("page.html"))


def _static(name: str) -> str:
    return (STATIC / name).read_text(encoding="utf-8")


def _json(doc: Document, groups: dict[str, list[int]]) -> str:
    """The document as JSON that cannot end the element it stands in. Edges follow from inputs."""
    kept = {key: value for key, value in doc.items() if key not in ("edges", "scopes")}
    text = json.dumps(kept | {"groups": groups}, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _stats(doc: Document) -> str:
    computed = sum(r["computed"] for r in doc["nodes"])
    ops = [f"{n} {op}" for op, n in list(doc["ops"].items())[:5]]
    most = ", ".join(ops) + (", …" if len(doc["ops"]) > 5 else "")
    counts = f"{computed} nodes, {len(doc['edges'])} edges, {len(doc['outputs'])} outputs"
    return f"{counts} · {most}"
