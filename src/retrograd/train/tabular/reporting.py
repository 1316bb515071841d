"""What came out of a run on a table, as text and as pictures."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from retrograd import metrics
from retrograd.files import write_atomically
from retrograd.train.tabular.recipe import TabularOutcome, measured

Array = np.ndarray[Any, Any]
CLASSES = 30  # shown
POINTS = 2000  # drawn
SIDE, EDGE = 420, 60


def report(outcome: TabularOutcome) -> str:
    """How good the predictions are, next to what one would say who knew no columns; and which
    columns were used, and which not."""
    target, table, encoder = outcome.target, outcome.table, outcome.encoder
    kind = f"{len(target.classes)} classes" if target.classes else "a number"
    values = ", ".join([f"{k} {v:.4g}" for k, v in measured(outcome).items()])
    lines = [
        f"{table.source}: {len(table):,} rows; {target.name!r} is {kind}",
        f"tested on {len(outcome.test):,} rows that were not learned from: {values}",
        f"without any column: {_baseline(outcome)}",
        "",
        *[
            f"{c.name}: {'a number' if c.kind == 'number' else f'{len(c.values)} values'}"
            + (", some missing" if c.missing else "")
            for c in encoder.columns
        ],
        *[f"{name}: left out, {reason}" for name, reason in encoder.left_out.items()],
    ]
    if outcome.unlabelled:
        lines.insert(1, f"{outcome.unlabelled:,} rows without {target.name!r} were left out")
    if target.classes is not None and len(target.classes) <= CLASSES:
        lines += ["", "class (rows) predicted to be (columns):", *_table(outcome)]
    return "\n".join(lines) + "\n"


def _baseline(outcome: TabularOutcome) -> str:
    """What the commonest class, or the mean, gets."""
    true = outcome.true
    if outcome.target.classes is None:
        return f"RMSE {np.sqrt(((true - outcome.target.mean) ** 2).mean()):.4g}"
    return f"accuracy {np.unique(true, return_counts=True)[1].max() / len(true):.4g}"


def _counts(outcome: TabularOutcome) -> Array:
    places = outcome.target.encode(outcome.true)
    labels = list(range(len(outcome.target.classes or ())))
    return np.asarray(metrics.confusion_matrix(outcome.scores.argmax(1), places, labels=labels))


def _table(outcome: TabularOutcome) -> list[str]:
    names = [n[:12] for n in outcome.target.classes or ()]
    width = max(*map(len, names), 5)
    rows = [" " * width + "".join([f" {n:>{width}}" for n in names])]
    for name, row in zip(names, _counts(outcome), strict=True):
        rows.append(f"{name:>{width}}" + "".join([f" {n:>{width}}" for n in row]))
    return rows


def write_pictures(outcome: TabularOutcome, out: Path) -> Path:
    """Draw the predictions beside what is true: `predictions.svg`, whose path is returned."""
    svg = _scatter(outcome) if outcome.target.classes is None else _heatmap(outcome)
    path = out / "predictions.svg"
    write_atomically(path, svg.encode(), "picture")
    return path


def _svg(body: Sequence[str], title: str) -> str:
    size = SIDE + 2 * EDGE
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size} {size}" width="{size}" '
        f'height="{size}" font-family="sans-serif" font-size="12">\n'
        f'<rect width="{size}" height="{size}" fill="#ffffff"/>\n'
        + _words(size / 2, 24, title)
        + _words(size / 2, size - 12, "predicted")
        + _words(16, size / 2, "true", turned=True)
        + "".join(body)
        + "</svg>\n"
    )


def _words(x: float, y: float, text: str, turned: bool = False, anchor: str = "middle") -> str:
    turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turned else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{turn}>{escape(text)}</text>\n'


def _scatter(outcome: TabularOutcome) -> str:
    """A point for each row, or for some of many; on the line both are the same."""
    true, found = outcome.true[:POINTS], outcome.predicted[:POINTS]
    low, high = float(min(true.min(), found.min())), float(max(true.max(), found.max()))
    spread = (high - low) or 1.0

    def place(x: Array | float) -> Any:
        return EDGE + SIDE * (x - low) / spread

    end = 2 * EDGE + SIDE
    body = [f'<line x1="{EDGE}" y1="{end - EDGE}" x2="{end - EDGE}" y2="{EDGE}" stroke="#999"/>\n']
    body += [
        f'<circle cx="{x:.1f}" cy="{end - y:.1f}" r="2" fill="#2563eb" fill-opacity="0.5"/>\n'
        for x, y in zip(place(found), place(true), strict=True)
    ]
    for value in (low, high):
        body.append(_words(place(value), end - EDGE + 18, f"{value:.4g}"))
        body.append(_words(EDGE - 6, end - place(value), f"{value:.4g}", anchor="end"))
    return _svg(body, outcome.target.name)


def _heatmap(outcome: TabularOutcome) -> str:
    """A square for each pair of classes, darker the more of the rows of the true one are there."""
    counts = _counts(outcome)
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    n = len(counts)
    side = SIDE / n
    body = []
    for i in range(n):
        for j in range(n):
            x, y = EDGE + j * side, EDGE + i * side
            body.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{side:.1f}" height="{side:.1f}" '
                f'fill="#2563eb" fill-opacity="{shares[i, j]:.3f}" stroke="#eee"/>\n'
            )
            if n <= CLASSES:
                body.append(_words(x + side / 2, y + side / 2 + 4, str(counts[i, j])))
    for i, name in enumerate(outcome.target.classes or ()):
        if n <= CLASSES:
            at = EDGE + (i + 0.5) * side
            body.append(_words(EDGE - 6, at + 4, name[:8], anchor="end"))
            body.append(_words(at, EDGE + SIDE + 16, name[:8]))
    return _svg(body, outcome.target.name)
