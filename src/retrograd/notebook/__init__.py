"""What notebooks show: HTML for the output of a cell."""

from typing import TYPE_CHECKING

from retrograd.lazy_import import attach

if TYPE_CHECKING:
    from retrograd.notebook.array import array_html, counts_html, described
    from retrograd.notebook.curves import curves_svg, thinned
    from retrograd.notebook.image import picture
    from retrograd.notebook.markup import bytes_text, details, headline, output, table, text

# Everything can be shown, and few programs are notebooks.
LATER_NAMES = {
    "array_html": "retrograd.notebook.array",
    "bytes_text": "retrograd.notebook.markup",
    "counts_html": "retrograd.notebook.array",
    "curves_svg": "retrograd.notebook.curves",
    "described": "retrograd.notebook.array",
    "details": "retrograd.notebook.markup",
    "headline": "retrograd.notebook.markup",
    "output": "retrograd.notebook.markup",
    "picture": "retrograd.notebook.image",
    "table": "retrograd.notebook.markup",
    "text": "retrograd.notebook.markup",
    "thinned": "retrograd.notebook.curves",
}
if not TYPE_CHECKING:
    __getattr__ = attach(__name__, {}, LATER_NAMES)

__all__ = [
    "array_html",
    "bytes_text",
    "counts_html",
    "curves_svg",
    "described",
    "details",
    "headline",
    "output",
    "picture",
    "table",
    "text",
    "thinned",
]
