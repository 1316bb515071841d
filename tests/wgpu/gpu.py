"""Graphs on the GPU for tests, on a device that has less than it has if that is asked for."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from retrograd.ir import Graph, Node, Op, TensorType, as_dtype
from retrograd.ops.leaf import input_node
from retrograd.runtime.backend import Program

Array = np.ndarray[Any, Any]


def _reason() -> str:
    from retrograd.wgpu import missing

    return missing() or ""


needs_gpu = pytest.mark.skipif(bool(_reason()), reason=_reason() or "there is a GPU")


@contextmanager
def device_with(**facts: Any) -> Iterator[None]:
    """A device of which other things are true."""
    from retrograd.wgpu.device import device

    own = device()
    before = own.facts
    own.facts = dataclasses.replace(before, **facts)
    try:
        yield
    finally:
        own.facts = before


def graph_of(op: Op, *arrays: Array) -> Graph:
    nodes = [input_node(TensorType(as_dtype(a.dtype), a.shape)) for a in arrays]
    return Graph(nodes, [op(*nodes)])


def program(graph: Graph) -> Program:
    from retrograd.wgpu import program as made

    return made(graph)


def run(op: Op, *arrays: Array) -> Array:
    """The result of an op."""
    (y,) = program(graph_of(op, *arrays))(arrays)
    return np.asarray(y)


def run_all(graph_inputs: Sequence[Node], outputs: Sequence[Node], arrays: Sequence[Array]) -> Any:
    """The results of a graph."""
    return program(Graph(list(graph_inputs), list(outputs)))(arrays)
