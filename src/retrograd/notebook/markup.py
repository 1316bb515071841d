"""Pieces of HTML for the output of a cell: escaped, without scripts and without anything to load.

Text has the colour of the page it stands in, lines and fills are half transparent, so that one
output is readable on light and on dark pages. Without the style sheet, which some viewers take
away, it is plain tables. It is well-formed XML, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from retrograd.viz.markup import escape

NAN, INFINITE, ACCENT = "#d6249f", "#c46708", "#3b82f6"  # readable on white and on black
LONGEST = 120  # characters of a name or of a line of source

STYLE = f"""<style>
.rg-out {{ font-size: 13px; line-height: 1.45; overflow-x: auto; }}
.rg-out table {{ border-collapse: collapse; margin: 2px 0; width: auto; }}
.rg-out th, .rg-out td {{ text-align: left; padding: 1px 10px 1px 4px; white-space: nowrap;
  border: 0; border-bottom: 1px solid #8883; background: none; vertical-align: top; }}
.rg-out th {{ opacity: .75; font-weight: 600; }}
.rg-out td.n {{ text-align: right; font-variant-numeric: tabular-nums; }}
.rg-out code, .rg-out pre {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono",
  monospace; font-size: 12px; background: none; color: inherit; padding: 0; }}
.rg-out pre {{ margin: 4px 0; line-height: 1.3; }}
.rg-out details {{ margin-left: 12px; }}
.rg-out details.top {{ margin-left: 0; }}
.rg-out summary {{ cursor: pointer; }}
.rg-out .soft {{ opacity: .7; }}
.rg-out .nan {{ color: {NAN}; font-weight: 600; }}
.rg-out .inf {{ color: {INFINITE}; font-weight: 600; }}
.rg-out .row {{ display: flex; flex-wrap: wrap; gap: 18px; align-items: flex-end; }}
.rg-out img {{ image-rendering: pixelated; max-width: none; margin: 2px 0; }}
</style>"""


def output(*parts: str) -> str:
    """The whole output of a cell."""
    body = "\n".join(part for part in parts if part)
    return f'<div class="rg-out">{STYLE}\n{body}\n</div>'


def text(value: object, longest: int = LONGEST) -> str:
    """Text of any origin, shortened in its middle where it is long."""
    shown = str(value)
    if len(shown) > longest:
        half = (longest - 1) // 2
        shown = f"{shown[:half]}…{shown[-half:]}"
    return escape(shown)


def headline(kind: str, *facts: str) -> str:
    """What is shown, in bold, and facts about it; `facts` are HTML."""
    rest = " · ".join(fact for fact in facts if fact)
    return f'<div><b>{text(kind)}</b> <span class="soft">{rest}</span></div>'


def table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """A table; cells are HTML, and those of the columns `numbers` stand on the right."""
    kinds = ['class="n"' if i in numbers else "" for i in range(len(head))]
    lines = [
        "<tr>" + "".join(f"<td {k}>{c}</td>" if k else f"<td>{c}</td>" for k, c in cells) + "</tr>"
        for row in rows
        for cells in [list(zip(kinds, row, strict=True))]
    ]
    titles = "".join(f"<th>{text(h)}</th>" for h in head)
    top = f"<thead><tr>{titles}</tr></thead>" if any(head) else ""
    return f"<table>{top}<tbody>\n" + "\n".join(lines) + "\n</tbody></table>"


def details(summary: str, body: str, is_open: bool = False, top: bool = False) -> str:
    """Something that opens by a click; both are HTML."""
    kind = ' class="top"' if top else ""
    kind += ' open=""' if is_open else ""
    return f"<details{kind}><summary>{summary}</summary>{body}</details>"


def bytes_text(n: int) -> str:
    """A size in memory, in decimal units."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if n >= size:
            return f"{n / size:.3g} {unit}"
    return f"{n} B"
