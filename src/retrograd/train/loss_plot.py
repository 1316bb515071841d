"""The losses of a run over its steps, drawn as SVG."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from retrograd.viz.svg import escape

WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 40, 44
COLOURS = {"loss": "#9db8d9", "validation": "#c0504d"}
Points = list[tuple[float, float]]


def loss_plot(entries: Sequence[Mapping[str, Any]], title: str) -> str:
    """A drawing of the lines of a log: the training loss, and validation losses with a mark each.

    >>> loss_plot([{"step": 1, "loss": 2.0}, {"step": 2, "loss": 1.5}], "a run").count("polyline")
    1
    """
    training = _points(entries, "loss")
    validation = _points(entries, "validation loss")
    every = training + validation
    xs, ys = [x for x, _ in every] or [0.0], [y for _, y in every] or [0.0]
    across = _Axis(min(xs), max(xs), LEFT, WIDTH - RIGHT)
    up = _Axis(min(ys), max(ys), HEIGHT - BOTTOM, TOP)
    marks = [
        f'<circle cx="{across(x):.1f}" cy="{up(y):.1f}" r="3" fill="{COLOURS["validation"]}"/>'
        for x, y in validation
    ]
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">',
        f"<title>{escape(title)}</title>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="20" font-size="14" fill="#222">{escape(title)}</text>',
        *_grid(across, up),
        *_curve(training, across, up, COLOURS["loss"]),
        *_curve(validation, across, up, COLOURS["validation"]),
        *marks,
        *_legend([n for n, p in (("loss", training), ("validation", validation)) if p]),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _points(entries: Sequence[Mapping[str, Any]], name: str) -> Points:
    found = [(e["step"], e[name]) for e in entries if isinstance(e.get(name), int | float)]
    return [(float(x), float(y)) for x, y in found if math.isfinite(y)]


class _Axis:
    """From numbers to places on the drawing."""

    def __init__(self, low: float, high: float, begin: float, end: float) -> None:
        self.low, self.high = (low, high) if high > low else (low - 0.5, high + 0.5)
        self.begin, self.end = begin, end

    def __call__(self, x: float) -> float:
        return self.begin + (x - self.low) / (self.high - self.low) * (self.end - self.begin)

    def ticks(self) -> list[float]:
        """About five round numbers: 1, 2 or 5 times a power of ten apart."""
        rough = (self.high - self.low) / 5
        power = 10 ** math.floor(math.log10(rough))
        step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough * (1 - 1e-9))
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [i * step for i in range(first, last + 1)]


def _grid(across: _Axis, up: _Axis) -> list[str]:
    lines = []
    for y in up.ticks():
        at = f"{up(y):.1f}"
        lines.append(f'<path d="M{LEFT} {at}H{WIDTH - RIGHT}" stroke="#e4e4e4"/>')
        lines.append(f'<text x="{LEFT - 8}" y="{at}" dy="4" text-anchor="end">{y:g}</text>')
    for x in across.ticks():
        place = f'x="{across(x):.1f}" y="{HEIGHT - BOTTOM + 18}"'
        lines.append(f'<text {place} text-anchor="middle">{x:,.10g}</text>')
    middle = f'x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}"'
    return [*lines, f'<text {middle} text-anchor="middle" fill="#555">step</text>']


def _curve(points: Points, across: _Axis, up: _Axis, colour: str) -> list[str]:
    if not points:
        return []
    places = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in points)
    return [f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="1.5"/>']


def _legend(names: Sequence[str]) -> list[str]:
    lines = []
    for i, name in enumerate(names):
        x = WIDTH - RIGHT - 90 * (len(names) - i)
        lines.append(f'<path d="M{x} 16h18" stroke="{COLOURS[name]}" stroke-width="3"/>')
        lines.append(f'<text x="{x + 24}" y="20">{name}</text>')
    return lines
