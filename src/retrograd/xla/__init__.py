"""Graphs on XLA, through JAX."""

from __future__ import annotations

from collections.abc import Collection

from retrograd.ir import DType, Graph
from retrograd.lazy_import import is_installed
from retrograd.runtime.backend import Program
from retrograd.xla.executable import XlaProgram
from retrograd.xla.graph_function import GraphFunction, to_jax
from retrograd.xla.lowering.all_rules import how
from retrograd.xla.stablehlo import to_stablehlo

__all__ = [
    "COMPILES_EACH_SIZE",
    "GraphFunction",
    "missing",
    "program",
    "supports",
    "to_jax",
    "to_stablehlo",
]


COMPILES_EACH_SIZE = True  # a graph with named sizes is a program for each choice of them


def missing() -> str | None:
    """What this backend lacks here, and the remedy; None where it can run."""
    if not is_installed("jax"):
        return "jax is not installed: pip install 'retrograd[xla]'"
    return None


def program(graph: Graph, donate: Collection[int] = ()) -> Program:
    """A program that runs the graph; its `consume` may take the memory of donated inputs."""
    return XlaProgram(graph, donate)


def supports(op: str, dtype: DType) -> str:
    """How an op is computed: "native", "host" where NumPy does in the middle of a program, or ""
    where it is an error. Of all dtypes alike.

    >>> from retrograd.ir import float32
    >>> supports("exp", float32), supports("eig", float32)
    ('native', 'host')
    """
    return how(op)
