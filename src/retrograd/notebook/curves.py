"""Numbers over steps as charts (SVG)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from retrograd.viz.markup import escape

WIDTH, HEIGHT, GAP, LEFT = 720, 220, 46, 64
COLOURS = ("#2563eb", "#dc2626", "#059669", "#d97706", "#7c3aed", "#0891b2")
POINTS = 1000  # of a curve: more are averaged
LOGARITHMIC = 50.0  # a ratio of the largest value to the smallest from which on the axis is

Curve = tuple[Sequence[float], Sequence[float]]  # steps and values


def curves_svg(curves: Mapping[str, Curve], title: str = "", paper: bool = True) -> str:
    """A chart for each unit: `loss` and `val_loss` share one, `val_accuracy` has its
    own. Without `paper` it is for a page whose colours it takes."""
    charts: dict[str, list[str]] = {}
    for name in curves:
        charts.setdefault(name.removeprefix("val_").removeprefix("epoch_"), []).append(name)
    height = GAP + len(charts) * (HEIGHT + GAP)
    body = [
        _chart({name: thinned(*curves[name]) for name in names}, GAP + i * (HEIGHT + GAP))
        for i, names in enumerate(charts.values())
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" font-family="sans-serif" font-size="12" '
        f'role="img" fill="{"#444" if paper else "currentColor"}">\n'
        + (f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>\n' if paper else "")
        + _text(WIDTH / 2, 18, "middle", title)
        + f"{''.join(body)}</svg>\n"
    )


def thinned(at: Sequence[float], numbers: Sequence[float]) -> tuple[list[float], list[float]]:
    """Steps and values; of many the means of as many neighbours."""
    steps, values = np.array(at, float), np.array(numbers, float)
    if len(values) > POINTS:
        starts = np.linspace(0, len(values), POINTS, endpoint=False).astype(int)
        counts = np.diff([*starts, len(values)])
        steps = steps[starts + counts - 1]
        values = np.add.reduceat(values, starts) / counts
    return steps.tolist(), values.tolist()


def _chart(curves: Mapping[str, tuple[list[float], list[float]]], top: float) -> str:
    finite = [v for _, values in curves.values() for v in values if math.isfinite(v)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    logarithmic = low > 0 and high / low > LOGARITHMIC
    scale = math.log10 if logarithmic else float
    bottom, span = scale(low), (scale(high) - scale(low)) or 1.0
    last = max((s for steps, _ in curves.values() for s in steps), default=1.0)
    first = min((s for steps, _ in curves.values() for s in steps), default=0.0)
    width, right = WIDTH - LEFT - 16, (last - first) or 1.0
    out = [
        f'<path d="M{LEFT} {top}V{top + HEIGHT}H{WIDTH - 16}" fill="none" stroke="#888"/>\n',
        _text(LEFT, top + HEIGHT + 16, "middle", f"{first:g}"),
        _text(WIDTH - 16, top + HEIGHT + 16, "end", f"step {last:g}"),
        _text(LEFT - 6, top + HEIGHT, "end", f"{low:.4g}"),
        _text(LEFT - 6, top + 10, "end", f"{high:.4g}"),
    ]
    for i, (name, (steps, values)) in enumerate(curves.items()):
        colour = COLOURS[i % len(COLOURS)]
        places = [
            f"{LEFT + width * (s - first) / right:.1f} "
            f"{top + HEIGHT - HEIGHT * (scale(v) - bottom) / span:.1f}"
            for s, v in zip(steps, values, strict=True)
            if math.isfinite(v) and (v > 0 or not logarithmic)
        ]
        if len(places) == 1:
            x, y = places[0].split()
            out.append(f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>\n')
        elif places:
            line = "L".join(places)
            out.append(f'<path d="M{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>\n')
        out.append(_text(LEFT + 8 + 130 * i, top - 8, "start", name, colour))
    return "".join(out)


def _text(x: float, y: float, anchor: str, text: str, colour: str = "") -> str:
    fill = f' fill="{colour}"' if colour else ""
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}"{fill}>{escape(text)}</text>\n'
