"""Drawings of graphs as files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from retrograd.errors import FormatError
from retrograd.files import StrPath, write_atomically
from retrograd.ir import Graph
from retrograd.viz.dot import to_dot
from retrograd.viz.html_page import to_html
from retrograd.viz.svg import to_svg


def draw(
    graph: Graph,
    path: StrPath,
    *,
    forward: Graph | None = None,
    outputs: Sequence[str] | None = None,
) -> None:
    """Write a drawing of the graph in the format that the ending of the path names: `.svg`, `.html`
    or `.dot`. The file appears whole or not at all.

    `forward` is the graph this one is the gradient of, `outputs` names for the outputs; both only
    make the picture say more.
    """
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix == ".svg":
        text = to_svg(graph, forward=forward, outputs=outputs)
    elif suffix in (".html", ".htm"):
        text = to_html(graph, forward=forward, outputs=outputs)
    elif suffix in (".dot", ".gv"):
        text = to_dot(graph, forward=forward, outputs=outputs)
    else:
        raise FormatError(
            f"cannot draw a graph as {os.fspath(path)!r}: the name must end in .svg, .html or .dot"
        )
    write_atomically(target, text.encode(), "drawing")
