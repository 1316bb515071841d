"""Looking at graphs: as a document for other programs, as Graphviz text, as pictures and pages.

Depends on the IR alone; every function takes any `Graph`, a gradient graph just as well.
"""

from typing import TYPE_CHECKING

from retrograd.lazy_import import attach

if TYPE_CHECKING:
    from retrograd.viz.compare import compared
    from retrograd.viz.dot import to_dot
    from retrograd.viz.drawing import draw
    from retrograd.viz.graph_document import VERSION, Document, completed, document, essence, shown
    from retrograd.viz.html_page import frame, page, page_of, to_html
    from retrograd.viz.measure import summary
    from retrograd.viz.packed import dumps, loads, strict
    from retrograd.viz.svg import to_svg

# Every graph can be looked at, and few programs do.
LATER_NAMES = {
    "Document": "retrograd.viz.graph_document",
    "VERSION": "retrograd.viz.graph_document",
    "compared": "retrograd.viz.compare",
    "completed": "retrograd.viz.graph_document",
    "document": "retrograd.viz.graph_document",
    "draw": "retrograd.viz.drawing",
    "dumps": "retrograd.viz.packed",
    "essence": "retrograd.viz.graph_document",
    "frame": "retrograd.viz.html_page",
    "loads": "retrograd.viz.packed",
    "page": "retrograd.viz.html_page",
    "page_of": "retrograd.viz.html_page",
    "shown": "retrograd.viz.graph_document",
    "strict": "retrograd.viz.packed",
    "summary": "retrograd.viz.measure",
    "to_dot": "retrograd.viz.dot",
    "to_html": "retrograd.viz.html_page",
    "to_svg": "retrograd.viz.svg",
}
if not TYPE_CHECKING:
    __getattr__ = attach(__name__, {}, LATER_NAMES)

__all__ = [
    "VERSION",
    "Document",
    "compared",
    "completed",
    "document",
    "draw",
    "dumps",
    "essence",
    "frame",
    "loads",
    "page",
    "page_of",
    "shown",
    "strict",
    "summary",
    "to_dot",
    "to_html",
    "to_svg",
]
