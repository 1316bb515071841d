"""A tape as the output of a notebook's cell: a table of its entries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd import notebook
from retrograd.errors import RetrogradError
from retrograd.tape.entry import Entry

LISTED = 50  # entries of a table; of more the first and the last
WRITTEN = 6  # elements of a value that is written out


def tape_html(entries: Sequence[Entry], count: int, finished: bool) -> str:
    """The output that shows a tape of `count` entries, of which these are the first and last."""
    rows: list[Sequence[str]] = []
    for before, e in zip([None, *entries], entries, strict=False):
        if before is not None and e.id != before.id + 1:
            rows.append(("…", f"{e.id - before.id - 1:,} more", *[""] * 6))
        rows.append(_row(e))
    head = ("", "name", "op", "parents", "type", "value", "requires_grad", "source")
    body = notebook.table(head, rows) if rows else ""
    return notebook.output(
        notebook.headline("Tape", f"{count:,} entries", "finished" if finished else ""), body
    )


def _row(e: Entry) -> tuple[str, ...]:
    parents = ", ".join(f"%{p}" for p in e.parents[:6]) + (", …" if len(e.parents) > 6 else "")
    kind = notebook.text(e.about.type, 60) if e.several else notebook.described(e.shape, e.dtype)
    wants = "yes" if e.requires_grad else "frozen"
    source = notebook.text(e.source.text, 60) if e.source is not None and e.parents else ""
    code = f"<code>{source}</code>"
    return (
        f"%{e.id}",
        notebook.text(e.name, 40),
        notebook.text(e.op),
        parents,
        kind,
        _value(e),
        wants,
        code,
    )


def _value(e: Entry) -> str:
    """The numbers of a small value, the range of a larger one."""
    if e.several:
        return f"{len(e.about.type.items)} results"  # type: ignore[attr-defined]
    try:
        value = e.value
    except RetrogradError as error:
        return notebook.text(f"{type(error).__name__}: {error}", 60)
    if value.size <= WRITTEN:
        shown: Any = np.array2string(value, separator=", ", precision=4)
        return f"<code>{notebook.text(' '.join(shown.split()))}</code>"
    if value.dtype.kind not in "iuf" or not np.isfinite(value).any():
        return ""
    finite = value[np.isfinite(value)]
    odd = value.size - finite.size
    shown = f"{finite.min():.4g} to {finite.max():.4g}"
    return f"{shown}{f', {odd:,} not finite' if odd else ''}"
