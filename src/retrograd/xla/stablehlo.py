"""A graph as StableHLO, the text that compilers such as XLA and IREE read."""

from __future__ import annotations

from collections.abc import Mapping

from retrograd.errors import BackendError, ShapeError
from retrograd.ir import Graph
from retrograd.lazy_import import need
from retrograd.xla.graph_function import GraphFunction, x64


def to_stablehlo(graph: Graph, sizes: Mapping[str, int] | None = None) -> str:
    """The module of a graph, whose function `main` takes its inputs and returns its outputs, in
    order. All sizes must be known: `sizes` gives those that have names. Checks, such as that of an
    index, are left out.

    Raises `ShapeError` where a size is not given, `BackendError` without JAX, or where the graph
    calls functions on the host.
    """
    jax = need("jax", "writing StableHLO")
    missing = sorted({n for x in graph.inputs for d in x.shape for n in getattr(d, "names", ())})
    if unknown := [name for name in missing if name not in (sizes or {})]:
        raise ShapeError(
            f"StableHLO is written for known sizes; give sizes={{{unknown[0]!r}: ...}}"
            + (f", and {', '.join(unknown[1:])}" if unknown[1:] else "")
        )
    whole = graph.bind(sizes or {}) if missing else graph
    function = GraphFunction(whole)
    with x64():
        given = [jax.ShapeDtypeStruct(x.shape, x.dtype.dtype) for x in whole.inputs]
        lowered = jax.jit(lambda *arrays: function(*arrays)[:-1]).lower(*given)
    if function.has_host_calls:
        raise BackendError("the graph calls functions on the host, which StableHLO has no text for")
    return str(lowered.as_text())
