"""Looking at graphs: as a document for other programs, as Graphviz text, as pictures and pages.

Depends on the IR alone; every function takes any `Graph`, a gradient graph just as well.
"""

from retrograd.inspect.compare import compared
from retrograd.inspect.document import VERSION, Document, completed, document, essence, shown
from retrograd.inspect.dot import to_dot
from retrograd.inspect.draw import draw
from retrograd.inspect.measure import summary
from retrograd.inspect.packed import dumps, loads, strict
from retrograd.inspect.page import EMBEDDED, frame, page, page_of, to_html
from retrograd.inspect.svg import to_svg

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
