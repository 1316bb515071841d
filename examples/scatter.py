"""Points of the plane as an SVG picture, for the examples that draw samples."""

from pathlib import Path
from typing import Any

COLOURS = ("#c9c9c9", "#2460a7", "#c0392b")


def scatter(path: str, *clouds: Any, margin: float = 0.3) -> None:
    """Draw tensors `[n, 2]`, each in a colour of its own, the first one below the others."""
    rows = [cloud.tolist() for cloud in clouds]
    xs, ys = zip(*[point for cloud in rows for point in cloud], strict=True)
    left, top = min(xs) - margin, max(ys) + margin
    width, height = max(xs) + margin - left, top - min(ys) + margin
    drawn = [
        f'<circle cx="{x - left:.2f}" cy="{top - y:.2f}" r="0.025" fill="{colour}"/>'
        for cloud, colour in zip(rows, COLOURS, strict=False)
        for x, y in cloud
    ]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.2f} {height:.2f}">'
    Path(path).write_text("\n".join([head, *drawn, "</svg>\n"]), encoding="utf-8")
