"""The compiled kernels that bytecode calls: one function for each kind of operation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from retrograd.codegen.emit.kernel import KernelEmitter
from retrograd.codegen.emit.nest_emitters import NESTS
from retrograd.codegen.program.launch_table import DRIVE
from retrograd.codegen.program.module import ARGUMENTS, ATTRIBUTES, heads_of, symbols_of
from retrograd.ir import Graph, Node
from retrograd.ops.leaf import input_node
from retrograd.runtime.denormals import exactly
from retrograd.runtime.executors.op_kinds import Kind, Step
from retrograd.schedule.control_regions import RegionNest
from retrograd.schedule.loop_nest import CallNest
from retrograd.schedule.planning.plan import KernelPlan
from retrograd.shared import IMPORTING

if TYPE_CHECKING:
    from retrograd.runtime.compiler import Compiler, LoadedCode


class Steps:
    """The functions of all kinds that one kernel computes without memory of its own. `of` lists
    these kinds."""

    def __init__(self, kinds: Iterable[tuple[Kind, Node]]) -> None:
        self.of: dict[Kind, Step] = {}
        self._declarations: dict[str, None] = {}
        self._functions: dict[str, int] = {}
        # llvmlite is loaded when first needed, see `runtime/compiler.py`.
        with IMPORTING:
            from retrograd.runtime.compiler import engine

        self._compiler: Compiler = engine()
        with exactly():
            for kind, node in kinds:
                self._add(kind, node)
            self.code: LoadedCode | None = self._compiled() if self.of else None

    def _add(self, kind: Kind, node: Node) -> None:
        inputs = [input_node(x.type) for x in node.inputs]
        plan = KernelPlan(Graph(inputs, [node.prim(*inputs)]), light=True)
        if len(plan.kernels) != 1 or plan.temporaries or plan.constants or plan.checks:
            return
        (kernel,) = plan.kernels
        if any(isinstance(nest, RegionNest | CallNest) for nest in kernel.nests):
            return
        w = KernelEmitter(self._declare, self._compiler.machine, light=True)
        for nest in kernel.nests:
            NESTS[type(nest)](w, nest)
        w.line("ret i64 0")
        w.find_parameters(False)
        number = self._functions.setdefault(w.text(), len(self._functions))
        places = {b: k for k, b in enumerate(plan.inputs)} | dict.fromkeys(plan.outputs, -1)
        self.of[kind] = number, [places[p] for p in w.parameters]  # type: ignore[index]

    def _declare(self, function: str) -> None:
        self._declarations[function] = None

    def _compiled(self) -> LoadedCode:
        self._declare(DRIVE)
        parts = heads_of(self._declarations)
        for text, number in self._functions.items():
            parts.append(f"define internal i64 @k{number}({ARGUMENTS}) #0 {{\n{text}\n}}")
        listed = ", ".join([f"ptr @k{n}" for n in self._functions.values()])
        given = "ptr %block, i64 1, ptr null, ptr %table, ptr @kernels"
        parts += [
            f"@kernels = internal constant [{len(self._functions)} x ptr] [{listed}]",
            "define i64 @run(ptr %block, i64 %thread, i64 %threads, ptr %table) nounwind {",
            f"  %result = tail call i64 @rg_drive({given})\n  ret i64 %result\n}}",
            ATTRIBUTES,
        ]
        return self._compiler.compile("\n".join(parts) + "\n", symbols_of(self._declarations))
