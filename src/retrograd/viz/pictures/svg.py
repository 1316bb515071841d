"""Pictures of graphs as SVG."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from retrograd.ir import Graph
from retrograd.viz.graph_document import Document, document
from retrograd.viz.markup import escape
from retrograd.viz.pictures.box import DrawnBox
from retrograd.viz.pictures.layout import (
    STUB,
    BoxPlace,
    Picture,
    Wire,
    layout,
    stub_text,
    stub_width,
)
from retrograd.viz.pictures.scene import scene
from retrograd.viz.roles import ROLES

STATIC = Path(__file__).parent.parent / "static"
LARGE = 400  # nodes; a graph of more is drawn by scopes

FAMILIES = {
    "input": "input",
    "parameter": "parameter",
    "elementwise": "elementwise",
    "reduce": "reduction",
    "matmul": "contraction",
    "conv": "convolution",
    "pool": "pooling",
    "windows": "windows",
    "linalg": "linear algebra",
    "shape": "shape",
    "index": "indexing",
    "segment": "segments",
    "random": "random",
    "control": "control",
    "leaf": "constant",
    "group": "group",
    "other": "other",
}


def to_svg(
    graph: Graph,
    max_nodes: int = LARGE,
    *,
    closed: bool = True,
    words: bool = True,
    forward: Graph | None = None,
    outputs: Sequence[str] | None = None,
) -> str:
    """A drawing of the graph that stands alone: forward nodes on the left, the gradient nodes that
    belong to them on the right. Scopes that the page closes at first, such as calls and layers, are
    one box each unless `closed` is False. Operations are called by `words`, or by their names. What
    would have more than `max_nodes` boxes is drawn by scopes or source lines.

    `forward` and `outputs` as in `document`.
    """
    return render(document(graph, forward, outputs), max_nodes, closed=closed, words=words)


def render(
    doc: Document, max_nodes: int = LARGE, *, closed: bool = True, words: bool = True
) -> str:
    """The drawing of a document."""
    return draw_boxes(doc, scene(doc, max_nodes, closed, words))


def draw_boxes(doc: Document, boxes: Sequence[DrawnBox]) -> str:
    """The drawing of boxes that `scene` made of a document."""
    return "\n".join(_Drawing(doc, boxes, layout(boxes)).lines()) + "\n"


class _Drawing:
    """The parts of the drawing, from back to front."""

    def __init__(self, doc: Document, boxes: Sequence[DrawnBox], picture: Picture) -> None:
        self.doc, self.boxes, self.picture = doc, boxes, picture
        self.captions = self._captions()
        widest = max((len(text) for _, text in self.captions), default=0)
        self.left = 28.0 + (min(widest, 30) * 6.2 + 14 if widest else 0)
        self.top = 116.0 if len(picture.columns) > 1 else 84.0
        right = max((b for _, b in picture.columns), default=0.0)
        bottom = max((b for _, b in picture.bands), default=0.0)
        self.width = max(self.left + right + 28.0, 420.0)
        self.height = self.top + bottom + 74.0
        self.inner = right
        self.tip = f"tip-{len(boxes)}-{self.width:.0f}-{self.height:.0f}"  # differs within a page

    def lines(self) -> Iterator[str]:
        name = escape(self.doc["name"] or "graph")
        style = (STATIC / "picture.css").read_text(encoding="utf-8").strip()
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="rg" role="img" aria-label="{name}" '
            f'width="{self.width:.0f}" height="{self.height:.0f}" '
            f'viewBox="0 0 {self.width:.0f} {self.height:.0f}">'
        )
        yield f"<style>\n{style}\n</style>"
        yield (
            f'<defs><marker id="{self.tip}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="10" '
            'markerHeight="10" markerUnits="userSpaceOnUse" orient="auto-start-reverse">'
            '<path d="M0 0.8 8 4 0 7.2z"/></marker></defs>'
        )
        yield '<rect class="paper" width="100%" height="100%"/>'
        yield from self._header(name)
        yield f'<g transform="translate({self.left:.1f} {self.top:.1f})">'
        yield '<g class="layer">'
        yield from self._bands()
        yield '</g><g class="layer">'
        for wire in self.picture.wires:
            yield self._wire(wire)
        yield '</g><g class="layer">'
        for box, place in zip(self.boxes, self.picture.places, strict=True):
            yield from self._box(box, place)
        yield "</g></g>"
        yield from self._legend()
        yield "</svg>"

    def _header(self, name: str) -> Iterator[str]:
        roles = Counter(r["role"] for r in self.doc["nodes"] if r["computed"])
        counts = " · ".join(f"{roles[r.name]} {r.name}" for r in ROLES if roles[r.name])
        counts = f"{sum(roles.values())} nodes: {counts}"
        yield f'<text class="name" x="28" y="34">{name}</text>'
        yield f'<text class="counts" x="28" y="53">{counts}</text>'
        if len(self.picture.columns) > 1:
            titles = ["forward ↓", "gradient ↑", "second order ↓", "third order ↑"]
            if "updates" in self.doc:
                last = len(self.picture.columns) - 1
                titles[last:] = ["update " + "↓↑"[last % 2]]
            for (a, b), title in zip(self.picture.columns, titles, strict=False):
                x = self.left + (a + b) / 2
                yield f'<text class="column" x="{x:.1f}" y="86">{title}</text>'

    def _captions(self) -> list[tuple[int, str]]:
        """The scope of each band where it differs from that of the band above."""
        found: dict[int, str] = {}
        for box, band in zip(self.boxes, self.picture.band_of, strict=True):
            if box.column == 0 and box.inputs:
                found.setdefault(band, box.scope)
        captions, current = [], ""
        for band in sorted(found):
            if found[band] != current:
                current = found[band]
                captions.append((band, current if len(current) <= 30 else "…" + current[-29:]))
        return captions

    def _bands(self) -> Iterator[str]:
        if len(self.picture.columns) > 1:
            for k, (a, b) in enumerate(self.picture.bands):
                if k % 2 == 0:
                    yield (
                        f'<rect class="band" x="-14" y="{a - 17:.1f}" '
                        f'width="{self.inner + 28:.1f}" height="{b - a + 34:.1f}"/>'
                    )
        for band, text in self.captions:
            a, b = self.picture.bands[band]
            y = (a + b) / 2 + 4
            yield f'<text class="scope" x="-24" y="{y:.1f}">{escape(text)}</text>'

    def _wire(self, wire: Wire) -> str:
        a, b = self.boxes[wire.source], self.boxes[wire.target]
        kind = "wire cross" if wire.crossing else f"wire {'back' if b.column else 'fore'}"
        shape = escape(f"{a.short} → {b.short}" + (f"  {wire.shape}" if wire.shape else ""))
        return (
            f'<path class="{kind}" data-from="{a.key}" data-to="{b.key}" '
            f'd="{_curve(wire)}" marker-end="url(#{self.tip})"><title>{shape}</title></path>'
        )

    def _box(self, box: DrawnBox, place: BoxPlace) -> Iterator[str]:
        kind = f"box f-{box.family} r-{box.role}" + ("" if box.computed else " absent")
        kind += " result" if box.results else ""
        w, h = place.width, place.height
        x, y = place.x - w / 2, place.y - h / 2
        yield f'<g class="{kind}" id="{box.key}" transform="translate({x:.1f} {y:.1f})">'
        yield f"<title>{escape(box.tooltip)}</title>"
        yield f'<rect width="{w:.1f}" height="{h:.1f}" rx="7"/>'
        yield from self._stubs(place)
        content = 26.0 + 15.0 * (len(box.formula) + len(box.lines) + bool(box.results))
        at = 18.0 + (h - content) / 2
        if box.number:
            yield f'<text class="number" x="{w - 7:.1f}" y="12">{box.number}</text>'
        yield f'<text class="op" x="{w / 2:.1f}" y="{at:.1f}">{escape(box.title)}</text>'
        kinds = [*(("formula", t) for t in box.formula), *(("type", t) for t in box.lines)]
        for of, text in kinds:
            at += 15.0
            yield f'<text class="{of}" x="{w / 2:.1f}" y="{at:.1f}">{escape(text)}</text>'
        if box.results:
            text = escape(", ".join(box.results))
            yield f'<text class="results" x="{w / 2:.1f}" y="{at + 15:.1f}">{text}</text>'
        yield "</g>"

    def _stubs(self, place: BoxPlace) -> Iterator[str]:
        """What comes from afar, named at the left side of the box."""
        y = place.height / 2 - STUB * len(place.stubs) / 2
        for source, shape in place.stubs:
            box = self.boxes[source]
            width = stub_width(box)
            tip = escape(f"from {box.title}" + (f"  {shape}" if shape else ""))
            yield (
                f'<g class="stub" data-from="{box.key}"><title>{tip}</title>'
                f'<rect x="{-width - 7:.1f}" y="{y + 1:.1f}" width="{width:.1f}" height="15" '
                f'rx="7.5"/><path d="M-7 {y + 8.5:.1f}h7"/>'
                f'<text x="{-7 - width / 2:.1f}" y="{y + 12:.1f}">{escape(stub_text(box))}</text>'
                "</g>"
            )
            y += STUB

    def _legend(self) -> Iterator[str]:
        present = [f for f in FAMILIES if any(box.family == f for box in self.boxes)]
        x, y = 28.0, self.height - 26.0
        yield '<g class="legend">'
        for family in present:
            label = FAMILIES[family]
            if x + len(label) * 6.6 + 30 > self.width:
                break
            yield (
                f'<rect class="f-{family}" x="{x:.1f}" y="{y - 10:.1f}" width="13" height="13" '
                f'rx="3.5"/><text x="{x + 19:.1f}" y="{y + 1:.1f}">{label}</text>'
            )
            x += len(label) * 6.6 + 40
        yield "</g>"


def _curve(wire: Wire) -> str:
    """A smooth line through the points, vertical at each, or horizontal where it crosses."""
    points = wire.points
    text = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in pairwise(points):
        if x0 == x1 or y0 == y1:
            text += f"L{x1:.1f} {y1:.1f}"
        elif wire.crossing:
            m = (x0 + x1) / 2
            text += f"C{m:.1f} {y0:.1f} {m:.1f} {y1:.1f} {x1:.1f} {y1:.1f}"
        else:
            m = (y0 + y1) / 2
            text += f"C{x0:.1f} {m:.1f} {x1:.1f} {m:.1f} {x1:.1f} {y1:.1f}"
    return text
