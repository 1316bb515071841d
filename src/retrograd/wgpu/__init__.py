"""Graphs on GPUs, through WebGPU."""

from __future__ import annotations

import functools
from collections.abc import Collection

from retrograd.ir import DType, Graph
from retrograd.lazy_import import is_installed
from retrograd.passes.lowering.legalize import CPU_ONLY
from retrograd.runtime.backend import Program
from retrograd.runtime.paired_program import on_real
from retrograd.wgpu import vulkan
from retrograd.wgpu.device import adapter
from retrograd.wgpu.executable import WgpuProgram
from retrograd.wgpu.fallback import StagedProgram, lacking


@functools.cache
def missing() -> str | None:
    """What this backend lacks here, and the remedy; None where it can run."""
    if not is_installed("wgpu"):
        return "wgpu is not installed: pip install 'retrograd[wgpu]'"
    found = vulkan.devices()
    if (adapter() is None) if found is None else (found == 0):
        return (
            "there is no GPU, or no driver for it: install one that has Vulkan, Metal or DX12; "
            "Debian's and Ubuntu's mesa-vulkan-drivers run on any processor"
        )
    return None


def program(graph: Graph, donate: Collection[int] = ()) -> Program:
    """A program that runs the graph; its `consume` may write over donated inputs."""
    return on_real(graph, lambda g: WgpuProgram(g, donate if g is graph else ()))


def program_with_fallback(graph: Graph) -> Program:
    """A program of which the CPU runs what the GPU has no shader for."""
    return on_real(graph, lambda g: WgpuProgram(g) if lacking(g) is None else StagedProgram(g))


def supports(op: str, dtype: DType) -> str:
    """How an op is computed: "native", or "asked" where the CPU does it if that is asked for, by
    `fallback=True`. Numbers of 64 bits need a GPU that has them.

    >>> from retrograd.ir import float32
    >>> supports("exp", float32), supports("svd", float32)
    ('native', 'asked')
    """
    return "asked" if op in CPU_ONLY else "native"
