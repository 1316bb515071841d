"""Programs on complex numbers, run by ones that know pairs of real numbers: the same memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from retrograd.ir import Graph
from retrograd.passes.lowering.complex import has_complex, lower_complex
from retrograd.runtime.backend import Array, Program, WrappedProgram, bind


def real_arrays(arrays: Sequence[Array]) -> list[Array]:
    """Arguments for such a graph, in the same memory where that is contiguous."""
    return [_as_pairs(a) if a.dtype.kind == "c" else a for a in arrays]


def on_real(graph: Graph, make: Callable[[Graph], Program]) -> Program:
    """A program made by `make`, which knows real numbers only: where the graph has complex ones, it
    is called on their memory, in pairs."""
    if not has_complex(graph):
        return make(graph)
    inner = make(lower_complex(graph))

    def program(arrays: Sequence[Array]) -> list[Array]:
        bind(graph.inputs, arrays)
        return [
            y.view(node.dtype.dtype)[..., 0] if node.dtype.is_complex else y
            for y, node in zip(inner(real_arrays(arrays)), graph.outputs, strict=True)
        ]

    return WrappedProgram(graph, program)


def _as_pairs(z: Array) -> Array:
    whole = np.ascontiguousarray(z).reshape(*z.shape, 1)
    return whole.view(whole.real.dtype)
