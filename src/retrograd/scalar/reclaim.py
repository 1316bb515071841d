"""What old pages hold on to without need.

A page keeps the pages that its rows read from, and those keep others. Where something crosses from
each page to the next, say because a page was full in the middle of an expression, they are a chain
that grows for ever, although nothing alive was computed from its far end. So when a chain has grown
by some measure, each of its pages but the newest is asked which of its foreign rows the rows with
handles, and those that other pages read, were computed from; it lets go of the others.
"""

from __future__ import annotations

from typing import Any

PAGE = 1 << 10  # what a page counts, in rows, beside its rows
LEAST = 1 << 17  # rows of a chain that is looked through for the first time


def sources(page: Any) -> set[Any]:
    """The pages that a page reads from."""
    return {source for source, _ in page.foreign.values()}


def measure(page: Any) -> None:
    """Note how much a page that was closed keeps, and whether that is worth a look; under the
    lock."""
    behind = sources(page)
    page.burden = page.size + PAGE + max([s.burden for s in behind], default=0)
    page.patience = max([s.patience for s in behind], default=LEAST)
    if page.burden > page.patience:
        release(page)


def release(newest: Any) -> None:
    """Let go of what no handle needs, in the pages that one reads from."""
    pages = [newest]
    known = {newest}
    for p in pages:
        for source in sources(p):
            if source not in known:
                known.add(source)
                pages.append(source)
    # To find handles can take a look at every object there is.
    held = newest.held(pages[1:]) if len(pages) > 1 else {}
    if held is None:
        return  # another thread is in the middle of something; next time
    for p in pages[1:]:
        if p.foreign:
            needed = _needed(p, held.get(p, set()) | p.exported)
            p.drop([r for r in p.foreign if r not in needed])
    for p in sorted(pages, key=lambda p: p.stamp):
        p.burden = p.size + PAGE + max([s.burden for s in sources(p)], default=0)
    newest.patience = 2 * newest.burden + LEAST


def _needed(page: Any, rows: set[int]) -> set[int]:
    """The given rows that some rows were computed from. Gradients stay as they are."""
    if not rows:
        return set()
    page.value(max(rows))
    with page.keeping_gradients():
        page.begin()
        for r in rows:
            page.seed(r, 0.0)
        start = max(rows)
        for i in sorted(page.customs, reverse=True):
            if i <= start and page.back(start, i + 1):
                if page.visited(i):
                    for r in page.customs[i].rows:
                        page.seed(r, 0.0)
                start = i - 1
        page.back(start, 0)
        return {r for r, _ in page.reached()}
