"""What holds of a graph after every walk of the rewriting driver, whatever test it runs in."""

from __future__ import annotations

from retrograd.errors import FormatError
from retrograd.ir import Graph, verify


def well_formed(name: str, graph: Graph) -> None:
    """Verify the graph that rules of this name left.

    Lowered graphs of named sizes hold types in terms that inference cannot see, see `typed` in
    `passes/lowering/windows.py`: of these only the others are verified.
    """
    if name in ("lower", "lowered", "parts") and graph.dim_names:
        return
    try:
        verify(graph)
    except FormatError as error:
        raise AssertionError(f"after {name}: {error}\n{graph}") from error
