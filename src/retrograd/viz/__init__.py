"""Looking at graphs: as a document for other programs, as Graphviz text, as pictures and pages.

Depends on the IR alone; every function takes any `Graph`, a gradient graph just as well.
"""

from retrograd.viz.compare import compared
from retrograd.viz.dot import to_dot
from retrograd.viz.drawing import draw
from retrograd.viz.graph_document import VERSION, Document, completed, document, essence, shown
from retrograd.viz.html_page import EMBEDDED, frame, page, page_of, to_html
from retrograd.viz.measure import summary
from retrograd.viz.packed import dumps, loads, strict
from retrograd.viz.svg import to_svg

__all__ = [
    "EMBEDDED",
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
