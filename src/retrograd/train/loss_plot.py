"""Losses and metrics over the steps, as a picture (SVG) or as a page to look closer (HTML)."""

from __future__ import annotations

from pathlib import Path

from retrograd import notebook, viz
from retrograd.api.dashboard import run_page
from retrograd.errors import OptionError
from retrograd.files import StrPath, write_atomically
from retrograd.train.history import History


def write_plot(history: History, path: StrPath) -> None:
    """Draw a history, in the format that the name ends with: `.svg`, `.html`, `.png` or `.pdf`, of
    which the last two need the extra `pictures`. `OptionError` for any other."""
    kind = Path(path).suffix.lower()
    if kind == ".png":
        viz.to_png(to_svg(history), path)
        return
    if kind == ".pdf":
        viz.to_pdf(to_svg(history), path)
        return
    if kind not in (".svg", ".html"):
        raise OptionError(f"a plot is an .svg, .html, .png or .pdf, not {path}")
    text = to_svg(history) if kind == ".svg" else to_html(history)
    write_atomically(path, text.encode(), "plot", durable=False)


def to_html(history: History, title: str = "training") -> str:
    """The page of the dashboard, with the curves of a run that has ended."""
    found: dict[int, dict[str, float]] = {}
    for name in history:
        for step, value in zip(*notebook.thinned(history.steps(name), history[name]), strict=True):
            found.setdefault(round(step), {})[name] = value
    events = [{"step": s, "time": 0.0, "scalars": found[s]} for s in sorted(found)]
    return run_page(title, {title: events})


def to_svg(history: History, title: str = "") -> str:
    """A chart for each unit: `loss` and `val_loss` share one, `val_accuracy` has its own."""
    return notebook.curves_svg(curves(history), title)


def curves(history: History) -> dict[str, tuple[list[int], list[float]]]:
    """Steps and values by name."""
    return {name: (history.steps(name), history[name]) for name in history}
