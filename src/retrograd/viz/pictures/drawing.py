"""Drawings of graphs as files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from retrograd.errors import FormatError, OptionError
from retrograd.files import StrPath, write_atomically
from retrograd.ir import Graph
from retrograd.viz.html_page import to_html
from retrograd.viz.pictures.dot import to_dot
from retrograd.viz.pictures.rendered import to_pdf, to_png
from retrograd.viz.pictures.svg import to_svg


def draw(
    graph: Graph,
    path: StrPath,
    *,
    forward: Graph | None = None,
    outputs: Sequence[str] | None = None,
    closed: bool = True,
    words: bool = True,
    scale: float | None = None,
    dpi: float | None = None,
    dark: bool = False,
    transparent: bool = False,
) -> None:
    """Write a drawing of the graph in the format that the ending of the path names: `.svg`, `.png`,
    `.pdf`, `.html` or `.dot`. The file appears whole or not at all.

    `forward` is the graph this one is the gradient of, `outputs` names for the outputs; both only
    make the picture say more. `closed` and `words` as in `to_svg`: the page has buttons for both.
    `scale` or `dpi` say how large a PNG is; `dark` and `transparent` are for PNG and PDF, other
    formats follow the reader's theme. PNG and PDF need the extra `pictures`.
    """
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix in (".html", ".htm") and not (closed and words):
        raise OptionError("closed= and words= are for pictures; the page has buttons for both")
    if suffix not in (".png", ".pdf") and (dark or transparent):
        raise OptionError("dark= and transparent= are for PNG and PDF")
    if suffix != ".png" and (scale is not None or dpi is not None):
        raise OptionError("scale= and dpi= are for PNG; other formats are sharp at any size")
    if suffix in (".svg", ".png", ".pdf"):
        text = to_svg(graph, closed=closed, words=words, forward=forward, outputs=outputs)
        if suffix == ".png":
            to_png(text, target, scale=scale, dpi=dpi, dark=dark, transparent=transparent)
            return
        if suffix == ".pdf":
            to_pdf(text, target, dark=dark, transparent=transparent)
            return
    elif suffix in (".html", ".htm"):
        text = to_html(graph, forward=forward, outputs=outputs)
    elif suffix in (".dot", ".gv"):
        text = to_dot(graph, closed=closed, words=words, forward=forward, outputs=outputs)
    else:
        raise FormatError(
            f"cannot draw a graph as {os.fspath(path)!r}: the name must end in .svg, .png, .pdf, "
            ".html or .dot"
        )
    write_atomically(target, text.encode(), "drawing")
