"""Programs with named sizes, to be compared with those of the same sizes, known.

A case is a function with the shapes of its arguments, as `jit` has them declared: `"N 784"`. An
integer argument is written with the number of its values, `"N < V"`.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.named import arrays, models, steps
from benchmarks.named.case import Case, Values

__all__ = ["Case", "Values", "cases"]


def cases() -> Iterator[Case]:
    """All of them, by kind."""
    for topic in (arrays, models, steps):
        yield from topic.cases()
