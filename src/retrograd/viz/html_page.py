"""The explorer: a graph as one page that needs nothing but a browser.

The program in it is `static/explorer.js`, built from the TypeScript of `ui/` (`make ui`).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from pathlib import Path

from retrograd.files import sha256
from retrograd.ir import Graph
from retrograd.viz.graph_document import Document, document
from retrograd.viz.markup import escape
from retrograd.viz.packed import dumps

STATIC = Path(__file__).parent / "static"
LISTED = 500  # nodes that are listed for who reads without scripts


def to_html(
    graph: Graph,
    *,
    forward: Graph | None = None,
    outputs: Sequence[str] | None = None,
) -> str:
    """The page of a graph, as nothing but its structure. `forward` and `outputs` as in `document`.

    It loads nothing and sends nothing.
    """
    return page(document(graph, forward, outputs))


def page(doc: Document, live: bool = False) -> str:
    """The page that shows a document. A page that is `live` is fed by the server it came from."""
    return page_of(dumps(doc), doc["name"] or "graph", live, _words(doc))


def _words(doc: Document) -> str:
    """The nodes as a list, for who reads without scripts."""
    lines = []
    for r in doc["nodes"][:LISTED]:
        inputs = ", ".join(f"%{x}" for x in r["inputs"])
        told = f"%{r['id']} {r['name']} = {r['op']}({inputs}) {r['attrs']}: {r['type']}"
        lines.append(f"<li>{escape(told + (' in ' + r['scope'] if r['scope'] else ''))}</li>")
    rest = len(doc["nodes"]) - LISTED
    more = f"<p>and {rest:,} more nodes.</p>" if rest > 0 else ""
    return f"<ul>{''.join(lines)}</ul>{more}" if lines else ""


def page_of(data: str, title: str, live: bool = False, words: str = "") -> str:
    """The page around data that is JSON text: of a graph, or of a dashboard. `words` are elements
    that say without scripts what the page is about."""
    script, style = _static("explorer.js"), _static("explorer.css")
    connect = "; connect-src 'self'" if live else ""
    parts = {
        "title": escape(title),
        "policy": (
            f"default-src 'none'; script-src '{_digest(script)}' 'wasm-unsafe-eval'; "
            "style-src 'unsafe-inline'; "
            f"img-src blob: data:; worker-src blob:{connect}"
        ),
        "style": style,
        "words": words,
        "data": embedded(data),
        "script": script,
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda m: parts[m[1]], _static("explorer.html"))


def frame(html: str, height: int = 640) -> str:
    """A page as an element of another page, such as a notebook, from which it is isolated."""
    text = html.replace("&", "&amp;").replace('"', "&quot;")
    return (
        f'<iframe srcdoc="{text}" sandbox="allow-scripts allow-downloads" '
        f'style="width:100%;height:{height}px;border:1px solid #8884;border-radius:6px" '
        'title="graph explorer"></iframe>'
    )


def embedded(text: str) -> str:
    """JSON text that cannot end the element it stands in."""
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _digest(script: str) -> str:
    return "sha256-" + base64.b64encode(sha256(script.encode()).digest()).decode()


def _static(name: str) -> str:
    return (STATIC / name).read_text(encoding="utf-8")
