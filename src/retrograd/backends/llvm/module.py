"""The text of the LLVM module of a plan: kernels, and the function that runs them in order.

`run(block)` gets one array of 8-byte slots: addresses of the buffers and values of the sizes, then
two slots of status. It returns 0, or the number of the index check that failed, counted from 1.
"""

from __future__ import annotations

from collections.abc import Callable

from retrograd.backends.kernel import Buffer, Kernel, Nest, Plan
from retrograd.backends.llvm import index, matmul, reduce
from retrograd.backends.llvm.kernels import KernelWriter
from retrograd.backends.llvm.machine import Machine
from retrograd.ir import Dim

NESTS: dict[str, Callable[[KernelWriter, Nest], None]] = {
    "map": reduce.mapping,
    "row": reduce.reduction,
    "column": reduce.reduction,
    "arg": reduce.argument,
    "scan": reduce.scan,
    "scatter": index.scatter,
    "check": index.check,
    "gemm": matmul.gemm,
}

CALLS_PER_FUNCTION = 200  # longer functions would take LLVM more than linear time


class Slots:
    """Which slot of the block holds what."""

    def __init__(self, plan: Plan) -> None:
        self.sizes: dict[Dim, int] = {}
        self._starts: dict[str, int] = {}  # by the kind of buffers
        self.first_size = 0
        for kind, buffers in (
            ("input", plan.inputs),
            ("output", plan.outputs),
            ("constant", plan.constants),
            ("temporary", plan.temporaries),
        ):
            self._starts[kind] = self.first_size
            self.first_size += len(buffers)

    def of(self, what: Buffer | Dim) -> int:
        if isinstance(what, Dim):
            return self.first_size + self.sizes.setdefault(what, len(self.sizes))
        return self._starts[what.kind] + what.number

    @property
    def status(self) -> int:
        return self.first_size + len(self.sizes)

    @property
    def count(self) -> int:
        return self.status + 2


class Module:
    """Collects declarations and functions; equal kernels become one function."""

    def __init__(self, plan: Plan, machine: Machine) -> None:
        self.plan = plan
        self.machine = machine
        self.slots = Slots(plan)
        self.declarations: dict[str, None] = {}
        self.functions: dict[str, str] = {}  # body to name
        self.calls: list[tuple[str, list[int], int]] = []  # name, slots, number of the check
        checks = 0
        for kernel in plan.kernels:
            checking = kernel.nests[0].kind == "check"
            checks += checking
            name, parameters = self._kernel(kernel, checking)
            slots = [self.slots.of(p) for p in parameters]
            self.calls.append((name, slots, checks if checking else 0))

    def declare(self, function: str) -> None:
        self.declarations[function] = None

    def _kernel(self, kernel: Kernel, checking: bool) -> tuple[str, list[Buffer | Dim]]:
        w = KernelWriter(self.declare, self.machine)
        for nest in kernel.nests:
            NESTS[nest.kind](w, nest)
        w.line("ret i64 0" if checking else "ret void")
        listed = [
            f"i64 {name}" if isinstance(p, Dim) else f"ptr noalias {name}"
            for p, name in w.parameters.items()
        ]
        if checking:
            listed.append("ptr %status")
        text = f"({', '.join(listed)}) #0 {{\n{w.text()}\n}}"
        name = self.functions.setdefault(text, f"k{len(self.functions)}")
        return name, list(w.parameters)

    @property
    def symbols(self) -> list[str]:
        """The functions under names of our own that must be found outside of the module."""
        names = map(_declared_name, self.declarations)
        return [n for n in names if n.startswith("rg_")]

    def text(self) -> str:
        # A helper function comes with its definition, anything else is found outside.
        parts = [d if d.startswith("define") else "declare " + d for d in self.declarations]
        for body, name in self.functions.items():
            kind = "i64" if "ptr %status)" in body[: body.index("{")] else "void"
            parts.append(f"define internal {kind} @{name}{body}")
        parts += self._run()
        parts.append("attributes #0 = { noinline nounwind }")
        parts.append("attributes #1 = { nounwind willreturn memory(none) }")
        return "\n".join(parts) + "\n"

    def _run(self) -> list[str]:
        pieces = [
            self.calls[i : i + CALLS_PER_FUNCTION]
            for i in range(0, len(self.calls), CALLS_PER_FUNCTION)
        ]
        found = [self._piece(f"part{i}", piece) for i, piece in enumerate(pieces)]
        lines = ["define i64 @run(ptr %block) {", "start:"]
        for i in range(len(pieces)):
            lines += _guarded(f"@part{i}(ptr %block)", f"r{i}", f"%r{i}")
        lines += ["  ret i64 0", "}"]
        return [*found, "\n".join(lines)]

    def _piece(self, name: str, calls: list[tuple[str, list[int], int]]) -> str:
        lines = [f"define internal i64 @{name}(ptr %block) #0 {{", "start:"]
        known: dict[int, str] = {}

        def slot(number: int, kind: str) -> str:
            if number not in known:
                known[number] = f"%b{number}"
                lines.append(f"  %a{number} = getelementptr i64, ptr %block, i64 {number}")
                lines.append(f"  %b{number} = load {kind}, ptr %a{number}, align 8")
            return known[number]

        if any(check for _, _, check in calls):
            status = self.slots.status
            lines.append(f"  %status = getelementptr i64, ptr %block, i64 {status}")
        first_size = self.slots.first_size
        for k, (function, slots, check) in enumerate(calls):
            kinds = ["i64" if s >= first_size else "ptr" for s in slots]
            listed = [f"{kind} {slot(s, kind)}" for kind, s in zip(kinds, slots, strict=True)]
            if check:
                listed.append("ptr %status")
                lines += _guarded(f"@{function}({', '.join(listed)})", f"c{k}", str(check))
            else:
                lines.append(f"  call void @{function}({', '.join(listed)})")
        lines += ["  ret i64 0", "}"]
        return "\n".join(lines)


def _declared_name(declaration: str) -> str:
    """`llvm.fabs.f32` of `float @llvm.fabs.f32(float)`."""
    return declaration[declaration.index("@") + 1 : declaration.index("(")]


def _guarded(call: str, name: str, result: str) -> list[str]:
    """Call, and leave with a result where the call failed."""
    return [
        f"  %{name} = call i64 {call}",
        f"  %{name}.ok = icmp eq i64 %{name}, 0",
        f"  br i1 %{name}.ok, label %{name}.on, label %{name}.off",
        f"{name}.off:",
        f"  ret i64 {result}",
        f"{name}.on:",
    ]
