"""Where the boxes of a picture stand: a layered layout in linear time.

Forward boxes are laid out in layers from top to bottom, by the longest path. Each layer is a band
across the picture. Gradient boxes stand to the right, in the band of the forward box they belong
to, so the backward pass runs from bottom to top beside the forward pass it mirrors. In each column
boxes are ordered by barycentre sweeps, with an edge that passes a row taking a place in it. Edges
that would run long are not drawn: the box they lead to gets a stub that names where they come from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from retrograd.viz.pictures.bands import Column, assign_bands, assign_rows
from retrograd.viz.pictures.box import DrawnBox
from retrograd.viz.pictures.rows import align, order

REACH = 5  # rows an edge is drawn across; a longer one becomes a stub
CROSSING = 3  # bands an edge from column to column is drawn across
ROW_GAP, BAND_GAP, COLUMN_GAP = 24.0, 34.0, 90.0
LETTER, SMALL, TINY, NUMBER = 7.8, 6.8, 6.2, 6.6  # widths of a letter, in pixels
STUB = 17.0  # height of a stub


@dataclass
class BoxPlace:
    """A box in the picture: its centre and size, and the stubs at its left side."""

    x: float = 0.0
    y: float = 0.0
    width: float = 0.0
    height: float = 0.0
    stubs: list[tuple[int, str]] = field(default_factory=list)  # box, shape
    margin: float = 0.0  # width of the stubs

    @property
    def sides(self) -> tuple[float, float]:
        """How far it reaches to the left and to the right of its centre."""
        return self.width / 2 + self.margin, self.width / 2


@dataclass(frozen=True)
class Wire:
    """A drawn edge: the points it passes, and whether it crosses from column to column."""

    source: int
    target: int
    shape: str
    points: list[tuple[float, float]]
    crossing: bool = False


@dataclass(frozen=True)
class Picture:
    places: list[BoxPlace]
    wires: list[Wire]
    bands: list[tuple[float, float]]  # top and bottom
    columns: list[tuple[float, float]]  # left and right
    band_of: list[int]  # for each box


def layout(boxes: Sequence[DrawnBox]) -> Picture:
    """Place the boxes. They come in topological order; only origins may come later."""
    places = [BoxPlace() for _ in boxes]
    band_of = assign_bands(boxes)
    row_of, columns = assign_rows(boxes, band_of)
    crossings = _connect(boxes, places, band_of, row_of, columns)
    for column in columns:
        order(column.rows, column.before, column.after)
    drawn = _crossings(boxes, places, row_of, columns, crossings)
    for box, place in zip(boxes, places, strict=True):
        _measure(box, place, boxes)
    extents, x = _set_x(boxes, places, columns)
    bands, spans = _set_y(boxes, places, band_of, columns)
    wires = _chain_wires(boxes, places, columns, spans, x)
    wires += _crossing_wires(boxes, places, extents, drawn)
    return Picture(places, wires, bands, extents, band_of)


# -- edges that are drawn, and stubs ---------------------------------------------------------------


def _connect(
    boxes: Sequence[DrawnBox],
    places: list[BoxPlace],
    band_of: Sequence[int],
    row_of: Sequence[int],
    columns: Sequence[Column],
) -> dict[int, list[tuple[int, str]]]:
    """Give every edge its places in the rows it passes, or make it a stub. What is returned are the
    edges from column to column that may be drawn, by their target."""
    crossings: dict[int, list[tuple[int, str]]] = {}
    fresh = len(boxes)
    for i, box in enumerate(boxes):
        column = columns[box.column]
        for x, shape in box.inputs:
            distance = row_of[i] - row_of[x]
            if boxes[x].column == box.column and 0 < distance <= REACH:
                between = list(range(fresh, fresh + distance - 1))
                fresh += distance - 1
                for row, item in enumerate(between, row_of[x] + 1):
                    column.rows[row].append(item)
                column.connect([x, *between, i], shape)
            elif boxes[x].column == box.column - 1 and abs(band_of[x] - band_of[i]) <= CROSSING:
                crossings.setdefault(i, []).append((x, shape))
            else:
                places[i].stubs.append((x, shape))
    return crossings


def _crossings(
    boxes: Sequence[DrawnBox],
    places: list[BoxPlace],
    row_of: Sequence[int],
    columns: Sequence[Column],
    crossings: dict[int, list[tuple[int, str]]],
) -> dict[int, list[tuple[int, str]]]:
    """The edges from column to column that pass no box on their way; the others become stubs."""
    first, last = set(), set()
    for column in columns:
        for row in column.rows:
            real = [item for item in row if item < len(boxes)]
            if real:
                first.add(real[0])
                last.add(real[-1])
    drawn = {}
    for i, edges in crossings.items():
        if i in first and not places[i].stubs and all(x in last for x, _ in edges):
            drawn[i] = edges
        else:
            places[i].stubs += edges
    return drawn


# -- coordinates ----------------------------------------------------------------------------------


def _measure(box: DrawnBox, place: BoxPlace, boxes: Sequence[DrawnBox]) -> None:
    """The size of a box, of its texts and stubs."""
    longest = max([len(text) for text in (*box.formula, *box.lines)], default=0) * SMALL
    title = len(box.title) * LETTER + 2 * len(box.number) * NUMBER
    results = len(" ".join(box.results)) * SMALL
    place.width = max(title, longest, results, 34.0) + 22.0
    place.height = 26.0 + 15.0 * (len(box.formula) + len(box.lines) + bool(box.results))
    if place.stubs:
        place.margin = max(stub_width(boxes[x]) for x, _ in place.stubs) + 10.0
        place.height = max(place.height, STUB * len(place.stubs) + 3.0)


def stub_text(box: DrawnBox) -> str:
    """How a stub names the box it comes from."""
    return f"{box.short} {box.number}" if box.role not in ("input", "parameter") else box.short


def stub_width(box: DrawnBox) -> float:
    return len(stub_text(box)) * TINY + 14.0


def _set_x(
    boxes: Sequence[DrawnBox], places: Sequence[BoxPlace], columns: Sequence[Column]
) -> tuple[list[tuple[float, float]], dict[int, float]]:
    """Centres along the rows; left and right end of each column; and the place of every item."""
    extents, everything, left = [], {}, 0.0
    for column in columns:
        items = [item for row in column.rows for item in row]
        sides = {i: places[i].sides if i < len(boxes) else (3.0, 3.0) for i in items}
        x = align(column.rows, column.before, column.after, sides)
        start = min((x[i] - sides[i][0] for i in items), default=0.0)
        end = max((x[i] + sides[i][1] for i in items), default=0.0)
        for i in items:
            everything[i] = x[i] - start + left
            if i < len(boxes):
                places[i].x = everything[i]
        extents.append((left, left + end - start))
        left += end - start + COLUMN_GAP
    return extents, everything


Span = tuple[float, float]


def _set_y(
    boxes: Sequence[DrawnBox],
    places: Sequence[BoxPlace],
    band_of: Sequence[int],
    columns: Sequence[Column],
) -> tuple[list[Span], list[list[Span]]]:
    """Centres across the rows; top and bottom of each band, and of each row of each column."""
    heights: list[list[float]] = []
    stacks: list[dict[int, list[int]]] = []  # the rows of each band, from top to bottom
    for column in columns:
        stack: dict[int, list[int]] = {}
        height = []
        for k, row in enumerate(column.rows):
            real = [i for i in row if i < len(boxes)]
            height.append(max(places[i].height for i in real))
            stack.setdefault(band_of[real[0]], []).append(k)
        if column.index % 2:
            for rows in stack.values():
                rows.reverse()
        heights.append(height)
        stacks.append(stack)
    bands: list[Span] = []
    spans: list[list[Span]] = [[(0.0, 0.0)] * len(column.rows) for column in columns]
    top = 0.0
    for band in range(1 + max(band_of, default=0)):
        need = [
            sum(h[k] for k in s.get(band, ())) + ROW_GAP * max(0, len(s.get(band, ())) - 1)
            for h, s in zip(heights, stacks, strict=True)
        ]
        tallest = max(need, default=0.0)
        for c, (h, s) in enumerate(zip(heights, stacks, strict=True)):
            y = top + (tallest - need[c]) / 2
            for k in s.get(band, ()):
                spans[c][k] = y, y + h[k]
                y += h[k] + ROW_GAP
        bands.append((top, top + tallest))
        top += tallest + BAND_GAP
    for column, ends in zip(columns, spans, strict=True):
        for row, (a, b) in zip(column.rows, ends, strict=True):
            for i in row:
                if i < len(boxes):
                    places[i].y = (a + b) / 2
    return bands, spans


# -- edges ----------------------------------------------------------------------------------------


def _chain_wires(
    boxes: Sequence[DrawnBox],
    places: Sequence[BoxPlace],
    columns: Sequence[Column],
    spans: Sequence[Sequence[Span]],
    x: dict[int, float],
) -> list[Wire]:
    """The edges within columns, each passing through its places in the rows between."""
    wires = []
    for column, rows in zip(columns, spans, strict=True):
        up = column.index % 2 == 1
        entering: dict[int, list[int]] = {}
        for k, (chain, _) in enumerate(column.chains):
            entering.setdefault(chain[-1], []).append(k)
        port: dict[int, float] = {}
        for i, ks in entering.items():
            ks.sort(key=lambda k: x[column.chains[k][0][-2]])
            for n, k in enumerate(ks, 1):
                spread = min(places[i].width - 20.0, 26.0 * len(ks))
                port[k] = places[i].x + spread * (n / (len(ks) + 1) - 0.5)
        row_of = {item: k for k, row in enumerate(column.rows) for item in row}
        for k, (chain, shape) in enumerate(column.chains):
            a, b = places[chain[0]], places[chain[-1]]
            side = -0.5 if up else 0.5
            points = [(a.x, a.y + side * a.height)]
            for item in chain[1:-1]:
                start, end = rows[row_of[item]]
                points += [(x[item], y) for y in ((end, start) if up else (start, end))]
            points.append((port[k], b.y - side * b.height))
            wires.append(Wire(chain[0], chain[-1], shape, points))
    return wires


def _crossing_wires(
    boxes: Sequence[DrawnBox],
    places: Sequence[BoxPlace],
    extents: Sequence[Span],
    drawn: dict[int, list[tuple[int, str]]],
) -> list[Wire]:
    """The edges from column to column: out to the right, across the gap, in from the left."""
    wires = []
    for i, edges in drawn.items():
        target = places[i]
        gap = extents[boxes[i].column][0]
        for n, (x, shape) in enumerate(sorted(edges, key=lambda e: places[e[0]].y), 1):
            source = places[x]
            y = target.y + target.height * 0.6 * (n / (len(edges) + 1) - 0.5)
            points = [
                (source.x + source.width / 2, source.y),
                (gap - COLUMN_GAP, source.y),
                (gap, y),
                (target.x - target.width / 2, y),
            ]
            wires.append(Wire(x, i, shape, points, True))
    return wires
