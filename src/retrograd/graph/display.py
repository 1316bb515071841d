"""Showing a page: written to a file and opened in a browser, or put into a notebook."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from retrograd import viz
from retrograd.files import write_atomically
from retrograd.gc_paused import gc_paused
from retrograd.notebook.cell import Shown, in_notebook

if TYPE_CHECKING:
    from retrograd.viz import Document


def show_page(doc: Document, path: str | os.PathLike[str] | None, open_it: bool) -> Path:
    """Write the page of a document, and show it. Returns where it is.

    Without a path it goes into a fresh directory for temporary files. In a notebook it appears
    below the cell, elsewhere in a browser.
    """
    with gc_paused():
        html = viz.page(doc)
    if path is None:
        import tempfile

        path = Path(tempfile.mkdtemp(prefix="retrograd-")) / "graph.html"
    target = Path(path)
    write_atomically(target, html.encode(), "page")
    if not open_it:
        return target
    if in_notebook():
        Shown(viz.frame(html), f"the explorer of {doc['name'] or 'a graph'}")
    else:
        import webbrowser

        webbrowser.open(target.absolute().as_uri())
    return target
