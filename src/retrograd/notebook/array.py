"""An array as the output of a cell: type, numbers, distribution, picture."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.notebook.image import Image, picture
from retrograd.notebook.markup import (
    ACCENT,
    INFINITE,
    NAN,
    bytes_text,
    escape,
    headline,
    output,
    table,
    text,
)
from retrograd.viz.measure import Summary, summary

Array = np.ndarray[Any, Any]

WHOLE = 1 << 20  # elements of an array that is measured whole
SAMPLED = 1 << 18  # elements that are measured of a larger one
WRITTEN = 200  # elements of an array that is written out
CLASSES = 24  # of a matrix of counts that is a table
GOLDEN = (5**0.5 - 1) / 2


def array_html(kind: str, array: Array, facts: Sequence[str] = ()) -> str:
    """The output that shows an array; `facts` are HTML, for the first line."""
    about = [described(array.shape, array.dtype), bytes_text(array.nbytes), *facts]
    if array.size == 0:
        return output(headline(kind, *about, "no elements"))
    if array.size == 1:
        return output(headline(kind, *about), values(array))
    seen, note = sampled(array)
    found = summary(plain(seen))
    parts = [histogram(found), _shown(picture(array))]
    row = '<div class="row">' + "".join(f"<div>{p}</div>" for p in parts if p) + "</div>"
    return output(headline(kind, *about), _statistics(seen, found, note), row, values(array))


def described(shape: Sequence[Any], dtype: Any) -> str:
    """The type: `float32 [3, 4]`."""
    return f"<code>{text(dtype)} [{', '.join(text(n) for n in shape)}]</code>"


def sampled(array: Array) -> tuple[Array, str]:
    """What is measured of an array: all of it, or of a very large one elements at places that the
    golden ratio spreads evenly, always the same, and a note that says so."""
    if array.size <= WHOLE:
        return array, ""
    places = (np.arange(SAMPLED) * GOLDEN % 1.0 * array.size).astype(np.int64)
    found = array[np.unravel_index(places, array.shape)]
    return found, f"measured on a sample of {SAMPLED:,} of {array.size:,} elements"


def plain(a: Array) -> Array:
    """An array of NumPy's own types; of others, such as bfloat16, in float32."""
    return a if a.dtype.kind in "biufc" else a.astype(np.float32)


def _statistics(seen: Array, found: Summary, note: str) -> str:
    """Extremes, mean and so on, and what is not finite."""
    parts = []
    if seen.dtype.kind == "b":
        parts.append(f"{int(seen.sum()):,} True, {int(seen.size - seen.sum()):,} False")
    elif "min" in found:
        of = "|x|: " if seen.dtype.kind == "c" else ""
        low, high = _extremes(seen, found)
        parts.append(f"{of}min {low}, max {high}, mean {found['mean']:.4g}")
        if found["zeros"]:
            parts.append(f"{found['zeros']:,} zeros")
    if found.get("nan"):
        parts.append(f'<span class="nan">{found["nan"]:,} NaN</span>')
    if found.get("inf"):
        parts.append(f'<span class="inf">{found["inf"]:,} infinite</span>')
    if found.get("nan") or found.get("inf"):
        parts.append("" if note else f"first at {found['bad']}")
    parts.append(f"<i>{note}</i>" if note else "")
    return f"<div>{' · '.join(filter(None, parts))}</div>"


def _extremes(seen: Array, found: Summary) -> tuple[str, str]:
    if seen.dtype.kind in "iu":  # whose numbers may be beyond those of float64
        return f"{int(seen.min())}", f"{int(seen.max())}"
    return f"{found['min']:.4g}", f"{found['max']:.4g}"


def histogram(found: Summary) -> str:
    """The counts as bars, with bars of their own for NaN and infinities. Nothing where there is one
    value alone."""
    counts = list(found.get("hist", ()))
    odd = [(found.get("nan", 0), NAN, "NaN"), (found.get("inf", 0), INFINITE, "infinite")]
    odd = [x for x in odd if x[0]]
    if len(counts) < 2 and not odd:
        return ""
    low, high = found.get("min", 0.0), found.get("max", 0.0)
    step = (high / len(counts) - low / len(counts)) if counts else 0.0
    bars = [
        (n, ACCENT, f"{low + i * step:.3g} to {low + (i + 1) * step:.3g}")
        for i, n in enumerate(counts)
    ]
    top = max(n for n, _, _ in (*bars, *odd))
    out, x = [], 0.0
    for n, colour, label in (*bars, *odd):
        x += 6 if colour != ACCENT else 0
        height = 40 * n / top
        height = max(height, 1.0) if n else 0.0
        out.append(
            f'<rect x="{x:g}" y="{40 - height:.1f}" width="6.4" height="{height:.1f}" '
            f'fill="{colour}"><title>{label}: {n:,}</title></rect>'
        )
        x += 7
    axis = max(7 * len(bars), 60)
    width = max(x, axis) + 2
    ends = (
        f'<text x="0" y="53">{low:.3g}</text>'
        f'<text x="{axis}" y="53" text-anchor="end">{high:.3g}</text>'
        if counts
        else ""
    )
    return (
        f'<svg role="img" aria-label="histogram" width="{width:g}" height="56" '
        f'viewBox="0 0 {width:g} 56" font-size="10" fill="currentColor">'
        f'<path d="M0 40.5H{axis}" stroke="currentColor" stroke-opacity=".4"/>'
        f"{''.join(out)}{ends}</svg>"
    )


def _shown(found: Image | None) -> str:
    if found is None:
        return ""
    return f'{found.img()}<div class="soft">{found.note}</div>'


def values(array: Array) -> str:
    """The numbers, shortened as NumPy does, those of the first matrix of a large stack; NaN and
    infinities in colour."""
    first = ""
    if array.size > WRITTEN and array.ndim > 2:
        lead = ", ".join("0" for _ in array.shape[:-2])
        first = f'<div class="soft">[{lead}, :, :]</div>'
        array = array[(0,) * (array.ndim - 2)]
    if array.ndim == 0:
        written = str(array[()])
    else:
        written = np.array2string(
            array, separator=", ", threshold=WRITTEN, edgeitems=3, precision=4, max_line_width=100
        )
    shown = re.sub(r"-?(?<![a-z])(nan|inf)(?![a-ik-z])", _marked, escape(written))
    return f"{first}<pre>{shown}</pre>"


def _marked(found: re.Match[str]) -> str:
    return f'<span class="{found[1]}">{found[0]}</span>'


def counts_html(kind: str, counts: Array, facts: Sequence[str] = ()) -> str:
    """A matrix of counts, such as of a confusion: rows true, columns predicted, the fuller the
    darker. A large one as other arrays."""
    n = len(counts)
    if n > CLASSES:
        return array_html(kind, counts, facts)
    with np.errstate(invalid="ignore"):
        share = counts / np.maximum(counts.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    rows = [
        [f"<b>{i}</b>", *[_count(counts[i, j], share[i, j], i == j) for j in range(n)]]
        for i in range(n)
    ]
    head = ("true \\ predicted", *[str(j) for j in range(n)])
    return output(headline(kind, *facts), table(head, rows, range(1, n + 1)))


def _count(count: Any, share: float, is_right: bool) -> str:
    colour = "59,130,246" if is_right else "214,36,159"
    shown = f"{count:g}" if float(count).is_integer() else f"{count:.3f}"
    fill = f' style="background:rgba({colour},{0.5 * share:.2f})"' if count else ""
    return f"<span{fill}>&#160;{shown}&#160;</span>"
