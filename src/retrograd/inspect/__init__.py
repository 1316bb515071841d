"""Looking at graphs: as a document for other programs, as Graphviz text, as pictures and pages.

Depends on the IR alone; every function takes any `Graph`, a gradient graph just as well.
"""

from retrograd.inspect.document import document
from retrograd.inspect.dot import to_dot
from retrograd.inspect.draw import draw
from retrograd.inspect.html import to_html
from retrograd.inspect.svg import to_svg

__all__ = ["document", "draw", "to_dot", "to_html", "to_svg"]
