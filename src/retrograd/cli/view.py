"""`retrograd view`: a graph in the browser."""

from __future__ import annotations

import threading
import time
import webbrowser
from pathlib import Path
from typing import Annotated

import click

import retrograd as rg
from retrograd.cli.signature import Argument, Option
from retrograd.errors import FormatError, RetrogradError
from retrograd.files import read_bytes, write_atomically
from retrograd.viz import Document, compared, loads, page
from retrograd.viz.server import PageServer

PORT = 8642
PATIENCE = 0.4  # seconds between looks at a file


def view(
    file: Annotated[
        Path,
        Argument(
            help="A graph that was saved, or a document in JSON that the explorer or "
            "Graph.to_document made.",
            show_default=False,
        ),
    ],
    compare: Annotated[
        Path | None,
        Option(help="Another one: show what changed from FILE to it.", show_default="no"),
    ] = None,
    port: Annotated[
        int, Option(min=0, max=65535, help="To serve on; another one if it is taken.")
    ] = PORT,
    html: Annotated[
        Path | None,
        Option(help="Write the page here instead of serving it.", show_default="no"),
    ] = None,
    browser: Annotated[
        bool, Option("--browser/--no-browser", help="Open it in the browser.")
    ] = True,
) -> None:
    """Show a graph in the browser; a graph with a scalar output together with its gradient.

    The page is served on this machine only, at an address with a secret, and follows the file: when
    that changes, so does the page. Ctrl-C ends it.
    """
    doc = read_view(file, compare)
    if html is not None:
        write_atomically(html, page(doc).encode(), "page")
        click.echo(f"The page is in {html}")
        return
    latest = _Latest(file, compare, page(doc, live=True))
    server = PageServer(lambda: latest.text, port)
    try:
        click.echo(f"{file} at {server.url}\nCtrl-C ends it.")
        if browser:
            threading.Thread(target=webbrowser.open, args=(server.url,), daemon=True).start()
        while True:
            time.sleep(PATIENCE)
            if latest.look():
                server.stream.publish("changed")
    except KeyboardInterrupt:
        click.echo()
    finally:
        server.close()


def read_view(file: Path, other: Path | None = None) -> Document:
    """The document of a file, or of what changed between two; `FormatError` or `OSError`."""
    if other is None:
        return _document(file, gradient=True)
    return compared(_document(file, gradient=False), _document(other, gradient=False))


def _document(file: Path, gradient: bool) -> Document:
    content = read_bytes(file, "graph")
    try:
        if content.lstrip()[:1] == b"{":
            return loads(content)
        if b"\0" in content[:4096] or file.suffix.lower() in (".onnx", ".html", ".htm"):
            raise FormatError(
                "this is neither a saved graph nor a document in JSON, which are what can be viewed"
            )
        return rg.Graph.parse(content.decode()).to_document(gradient=gradient)
    except UnicodeDecodeError:
        raise FormatError(f"{file} is not a graph: it is not UTF-8 text") from None
    except FormatError as error:
        raise FormatError(f"{file}: {error}") from None


class _Latest:
    """The page of a file as it is now; of one that is damaged, the last that was not."""

    def __init__(self, file: Path, compare: Path | None, text: str) -> None:
        self.text = text
        self._files = [f for f in (file, compare) if f is not None]
        self._read = lambda: read_view(file, compare)
        self._seen = self._stamps()

    def _stamps(self) -> list[tuple[int, int] | None]:
        found: list[tuple[int, int] | None] = []
        for f in self._files:
            try:
                at = f.stat()
                found.append((at.st_mtime_ns, at.st_size))
            except OSError:
                found.append(None)
        return found

    def look(self) -> bool:
        """Whether there is a new page."""
        now = self._stamps()
        if now == self._seen:
            return False
        self._seen = now
        try:
            self.text = page(self._read(), live=True)
        except (OSError, RetrogradError) as error:
            click.echo(f"not shown: {error}", err=True)
            return False
        return True
