"""Pictures as PNG and PDF, made of their SVG by resvg, which brings a font: nothing of the system
is needed, and nothing is installed but the extra `pictures`."""

from __future__ import annotations

import math
import re
from types import ModuleType

from retrograd.errors import ArgumentError, OptionError
from retrograd.files import StrPath, write_atomically

UNIT = 72  # of a picture per inch, in PDF as in the size that a PNG says it has
SCALE = 2.0  # pixels per unit
LARGEST = 100_000_000  # pixels of a PNG, which take four bytes each while it is drawn
# The first is the font that comes along; one of the others where its letters are lacking.
FONT = '"Liberation Sans", "DejaVu Sans", Helvetica, Arial, sans-serif'
MONO = '"Liberation Mono", "DejaVu Sans Mono", Menlo, Consolas, "Liberation Sans"'


def to_png(
    svg: str,
    path: StrPath | None = None,
    *,
    scale: float | None = None,
    dpi: float | None = None,
    dark: bool = False,
    transparent: bool = False,
) -> bytes:
    """A picture of the house as PNG: `scale` pixels for each unit of the SVG, 2 unless said, or
    `dpi` pixels per inch, which are 72 units. Written to `path` where one is given, whole or not at
    all.

    `dark` takes the colours of a dark page, `transparent` leaves the paper out.
    """
    factor = _factor(scale, dpi)
    width, height = _size(svg)
    if width * height * factor * factor > LARGEST:
        most = math.sqrt(LARGEST / (width * height))
        raise ArgumentError(
            f"a PNG of {width * factor:.0f} by {height * factor:.0f} pixels is too large: take a "
            f"scale below {most:.2g}, fewer nodes (max_nodes=), or to_pdf() or to_svg(), which are "
            "sharp at any size"
        )
    plain = standalone(svg, dark, transparent)
    content: bytes = _renderer().svg_to_png(plain, scale=1.0, ppi=UNIT * factor)
    if path is not None:
        write_atomically(path, content, "picture")
    return content


def to_pdf(
    svg: str,
    path: StrPath | None = None,
    *,
    dark: bool = False,
    transparent: bool = False,
) -> bytes:
    """A picture of the house as a PDF page of its size, with lines and letters, not pixels; options
    as of `to_png`."""
    content: bytes = _renderer().svg_to_pdf(standalone(svg, dark, transparent))
    if path is not None:
        write_atomically(path, content, "picture")
    return content


def standalone(svg: str, dark: bool = False, transparent: bool = False) -> str:
    """The picture for programs that know neither variables nor media queries of CSS: with the
    colours of one theme written into it."""
    style = re.search(r"<style>(.*?)</style>", svg, re.DOTALL)
    if style is None:
        return svg
    themes = re.findall(r"\{([^{}]*--paper:[^{}]*)\}", style[1])
    light, night = (dict(re.findall(r"--([\w-]+): ([^;]+);", t)) for t in (themes[0], themes[1]))
    colours = light | night if dark else light
    rules = re.sub(r"@media[^{]*\{[^{}]*\{[^{}]*\}\s*\}", "", style[1])
    rules = re.sub(r"[^{}]*\{[^{}]*--paper:[^{}]*\}", "", rules)
    rules = re.sub(r"var\(--([\w-]+)\)", lambda m: colours[m[1]], rules)
    rules = re.sub(r"font-family:[^;]*monospace", f"font-family: {MONO}", rules)
    if transparent:
        rules = rules.replace(f".paper {{ fill: {colours['paper']}; }}", ".paper { fill: none; }")
    flat = f"<style>\n.rg {{ font-family: {FONT}; }}\n{rules.strip()}\n</style>"
    return svg[: style.start()] + flat + svg[style.end() :]


def _factor(scale: float | None, dpi: float | None) -> float:
    if scale is not None and dpi is not None:
        raise OptionError("scale= and dpi= both say how large a PNG is; give one of them")
    factor = dpi / UNIT if dpi is not None else SCALE if scale is None else scale
    if not (math.isfinite(factor) and factor > 0):
        name = "scale" if dpi is None else "dpi"
        raise ArgumentError(
            f"{name}= must be a positive number, not {scale if dpi is None else dpi}"
        )
    return float(factor)


def _size(svg: str) -> tuple[float, float]:
    """Width and height, as they stand in the first element."""
    found = re.search(r'<svg[^>]*? width="([\d.]+)" height="([\d.]+)"', svg)
    assert found is not None, "pictures say how large they are"
    return float(found[1]), float(found[2])


def _renderer() -> ModuleType:
    try:
        import vl_convert
    except ImportError:
        raise OptionError(
            "PNG and PDF need the package vl-convert-python: pip install 'retrograd[pictures]'; "
            "to_svg() and to_dot() need nothing"
        ) from None
    module: ModuleType = vl_convert
    return module
