"""The stages of compilation as text, from the traced graph to the LLVM module."""

from __future__ import annotations

from typing import TYPE_CHECKING

from retrograd.codegen import program
from retrograd.errors import OptionError
from retrograd.ir import Graph
from retrograd.passes.lowering.complex import real_graph
from retrograd.passes.pipeline import STAGES, prepared, stages
from retrograd.schedule import planning
from retrograd.shared import IMPORTING

if TYPE_CHECKING:
    from retrograd.schedule.planning.plan import KernelPlan

NAMES = (*(stage.name for stage in STAGES), "kernels", "llvm")


def check_stage(name: str) -> None:
    """`OptionError` for a name that is none of a stage."""
    if name not in NAMES:
        raise OptionError(f"there is no stage {name!r}; in order they are {', '.join(NAMES)}")


def stage_text(graph: Graph, name: str) -> str:
    """What a stage makes of a graph."""
    if name in ("kernels", "llvm"):
        plan = planning.KernelPlan(prepared(real_graph(graph), simplify=True))
        return plan.explain() if name == "kernels" else _module(plan)
    return next(str(found).rstrip() for stage, found in stages(graph) if stage.name == name)


def _module(plan: KernelPlan) -> str:
    # llvmlite is loaded when first needed, see `runtime/compiler.py`.
    with IMPORTING:
        from retrograd.runtime.compiler import engine

    return program.ModuleEmitter(plan, engine().machine).text()
