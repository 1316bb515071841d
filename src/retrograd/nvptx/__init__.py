"""Graphs on NVIDIA's GPUs."""

from __future__ import annotations

from retrograd.ir import DType, Graph
from retrograd.lazy_import import is_installed
from retrograd.nvptx import driver
from retrograd.nvptx.executable import DeviceProgram
from retrograd.passes.lowering.legalize import CPU_ONLY
from retrograd.runtime.backend import Program
from retrograd.runtime.paired_program import on_real

NOT_INSTALLED = "cuda is not installed: pip install 'retrograd[cuda]'"


def missing() -> str | None:
    """What this backend lacks here, and the remedy; None where it can run."""
    return driver.lacking() if is_installed("cuda.bindings") else NOT_INSTALLED


def program(graph: Graph) -> Program:
    """A program that runs the graph on the first GPU. Complex numbers are pairs of real ones."""
    opened = driver.device()
    return on_real(graph, lambda real: DeviceProgram(real, opened))


def program_with_fallback(graph: Graph) -> Program:
    """The same: what devices have no kernels for runs on the CPU in any case."""
    return program(graph)


def supports(op: str, dtype: DType) -> str:
    """How an op is computed: "native", or "host" where the CPU does it, with copies.

    >>> from retrograd.ir import float32
    >>> supports("exp", float32), supports("svd", float32)
    ('native', 'host')
    """
    return "host" if op in CPU_ONLY else "native"
