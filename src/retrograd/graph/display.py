"""Showing a page: written to a file and opened in a browser, or put into a notebook."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrograd import viz
from retrograd.files import write_atomically
from retrograd.gc_paused import gc_paused

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
    if open_it and not _shown_in_notebook(html):
        import webbrowser

        webbrowser.open(target.absolute().as_uri())
    return target


def _shown_in_notebook(html: str) -> bool:
    """Show a page below the cell of a notebook, if this runs in one."""
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None or not hasattr(shell, "kernel"):
        return False
    ipython.display.display(ipython.display.HTML(viz.frame(html)))
    return True
