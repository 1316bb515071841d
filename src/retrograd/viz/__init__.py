"""Looking at graphs: as a document for other programs, as Graphviz text, as pictures and pages.

Depends on the IR alone; every function takes any `Graph`, a gradient graph just as well.
"""

from typing import TYPE_CHECKING

from retrograd.lazy_import import attach

if TYPE_CHECKING:
    from retrograd.viz.bodies import body_numbers
    from retrograd.viz.compare import Pairs, compared, paired
    from retrograd.viz.differences import difference, largest_first, of_summaries
    from retrograd.viz.graph_document import VERSION, Document, completed, document, essence, shown
    from retrograd.viz.html_page import frame, page, page_of, to_html
    from retrograd.viz.measure import summary
    from retrograd.viz.packed import dumps, loads, strict
    from retrograd.viz.pictures.dot import to_dot
    from retrograd.viz.pictures.drawing import draw
    from retrograd.viz.pictures.rendered import to_pdf, to_png
    from retrograd.viz.pictures.svg import render, to_svg
    from retrograd.viz.run_numbers import with_run

# Every graph can be looked at, and few programs do.
LATER_NAMES = {
    "Document": "retrograd.viz.graph_document",
    "VERSION": "retrograd.viz.graph_document",
    "body_numbers": "retrograd.viz.bodies",
    "Pairs": "retrograd.viz.compare",
    "compared": "retrograd.viz.compare",
    "difference": "retrograd.viz.differences",
    "largest_first": "retrograd.viz.differences",
    "of_summaries": "retrograd.viz.differences",
    "paired": "retrograd.viz.compare",
    "render": "retrograd.viz.pictures.svg",
    "completed": "retrograd.viz.graph_document",
    "document": "retrograd.viz.graph_document",
    "draw": "retrograd.viz.pictures.drawing",
    "dumps": "retrograd.viz.packed",
    "essence": "retrograd.viz.graph_document",
    "frame": "retrograd.viz.html_page",
    "loads": "retrograd.viz.packed",
    "page": "retrograd.viz.html_page",
    "page_of": "retrograd.viz.html_page",
    "shown": "retrograd.viz.graph_document",
    "strict": "retrograd.viz.packed",
    "summary": "retrograd.viz.measure",
    "to_dot": "retrograd.viz.pictures.dot",
    "to_html": "retrograd.viz.html_page",
    "to_pdf": "retrograd.viz.pictures.rendered",
    "to_png": "retrograd.viz.pictures.rendered",
    "to_svg": "retrograd.viz.pictures.svg",
    "with_run": "retrograd.viz.run_numbers",
}
if not TYPE_CHECKING:
    __getattr__ = attach(__name__, {}, LATER_NAMES)

__all__ = [
    "VERSION",
    "Document",
    "Pairs",
    "body_numbers",
    "compared",
    "completed",
    "difference",
    "document",
    "draw",
    "dumps",
    "essence",
    "frame",
    "largest_first",
    "loads",
    "of_summaries",
    "page",
    "paired",
    "render",
    "page_of",
    "shown",
    "strict",
    "summary",
    "to_dot",
    "to_html",
    "to_pdf",
    "to_png",
    "to_svg",
    "with_run",
]
