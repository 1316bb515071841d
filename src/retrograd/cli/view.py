"""`retrograd view`: a graph in the browser."""

from __future__ import annotations

import threading
import time
import webbrowser
from pathlib import Path
from typing import Annotated

import click

import retrograd as rg
from retrograd.cli.dashboard import dashboard as show_runs
from retrograd.cli.signature import Argument, Option
from retrograd.errors import FormatError, RetrogradError
from retrograd.files import read_bytes, write_atomically
from retrograd.viz import Document, compared, loads, of_summaries, page, paired, with_run
from retrograd.viz.run_numbers import LOG
from retrograd.viz.server import PageServer

PORT = 8642
PATIENCE = 0.4  # seconds between looks at a file


def view(
    file: Annotated[
        Path,
        Argument(
            help="A graph that was saved, an ONNX model, or a document in JSON that the explorer "
            "or Graph.to_document made; or the folder of a training run, as `retrograd dashboard`.",
            show_default=False,
        ),
    ],
    other: Annotated[
        Path | None,
        Argument(help="Another one: show what changed from FILE to it.", show_default=False),
    ] = None,
    compare: Annotated[
        Path | None,
        Option(help="The same as OTHER.", show_default="no"),
    ] = None,
    run: Annotated[
        Path | None,
        Option(
            help="The folder of a run whose log has the norms of the parameters.",
            show_default="no",
        ),
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
    if other is not None and compare is not None:
        raise click.UsageError("OTHER and --compare both name the second graph; give one of them")
    second = other if other is not None else compare
    if file.is_dir() and second is None:
        show_runs(file, port, html, browser)
        return
    doc = read_view(file, second, run)
    if html is not None:
        write_atomically(html, page(doc).encode(), "page")
        click.echo(f"The page is in {html}")
        return
    latest = _Latest(file, second, run, page(doc, live=True))
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


def read_view(file: Path, other: Path | None = None, run: Path | None = None) -> Document:
    """The document of a file, or of what changed between two, values included where both have some;
    `FormatError` or `OSError`."""
    doc = _document(file, gradient=other is None)
    if other is not None:
        before, doc = doc, _document(other, gradient=False)
        pairs = paired(before, doc)
        parted = of_summaries(before, doc, pairs)
        doc = compared(before, doc, pairs)
        if parted:
            doc["differences"] = parted
            doc["note"] = (
                "The values of large arrays are compared by their norms and ends, which documents "
                "hold; rg.compare(graph, inputs=(first, second)) compares every element."
            )
    return doc if run is None else with_run(doc, run)


def _document(file: Path, gradient: bool) -> Document:
    content = read_bytes(file, "graph")
    try:
        if content.lstrip()[:1] == b"{":
            return loads(content)
        if file.suffix.lower() == ".onnx":
            return rg.load_onnx(file).to_document(gradient=gradient)
        if b"\0" in content[:4096] or file.suffix.lower() in (".html", ".htm"):
            raise FormatError(
                "this is neither a saved graph, an ONNX model nor a document in JSON, which are "
                "what can be viewed"
            )
        return rg.Graph.parse(content.decode()).to_document(gradient=gradient)
    except UnicodeDecodeError:
        raise FormatError(f"{file} is not a graph: it is not UTF-8 text") from None
    except FormatError as error:
        raise FormatError(f"{file}: {error}") from None


class _Latest:
    """The page of a file as it is now; of one that is damaged, the last that was not."""

    def __init__(self, file: Path, other: Path | None, run: Path | None, text: str) -> None:
        self.text = text
        log = run / LOG if run is not None and run.is_dir() else run
        self._files = [f for f in (file, other, log) if f is not None]
        self._read = lambda: read_view(file, other, run)
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
