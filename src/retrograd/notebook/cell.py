"""The cell that runs: whether there is one, and what is shown below it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

Bundle = Mapping[str, str]  # what is shown, by its MIME type


def shell() -> Any:
    """IPython's shell, where this runs in one; None elsewhere. IPython is not imported."""
    ipython: Any = sys.modules.get("IPython")
    return None if ipython is None else ipython.get_ipython()


def in_notebook() -> bool:
    """Whether outputs can be more than text: the shell is the kernel of a notebook."""
    return hasattr(shell(), "kernel")


class Shown:
    """Something below the cell that can be replaced by something newer."""

    def __init__(self, html: str, text: str) -> None:
        display: Any = sys.modules["IPython.display"]
        self._handle = display.DisplayHandle()
        self._handle.display(_bundle(html, text), raw=True)

    def replace(self, html: str, text: str) -> None:
        """Show this in its place."""
        self._handle.update(_bundle(html, text), raw=True)


def _bundle(html: str, text: str) -> Bundle:
    return {"text/html": html, "text/plain": text}
