"""The module of a plan for the device: a kernel for each nest, or several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from retrograd.codegen.program.module import heads_of
from retrograd.ir import Dim, evaluate, product
from retrograd.nvptx.emit.launch import Argument, Launch, Launches, Scratch, Sizes
from retrograd.nvptx.emit.remainder import REMAINDERS
from retrograd.nvptx.emit.thread_emitter import ThreadEmitter
from retrograd.tuning import TUNING

ATTRIBUTES = "attributes #1 = { nounwind willreturn memory(none) }"


class DeviceModule:
    """Collects declarations and kernels; equal kernels are one."""

    def __init__(self) -> None:
        self.declarations: dict[str, None] = {}
        self.functions: dict[str, str] = {}  # texts, with their names
        self.scratches: list[list[Scratch]] = []  # of each kernel of the plan

    def declare(self, function: str) -> None:
        name = function.partition("@")[2].partition("(")[0]
        known = (
            REMAINDERS.get(name, (function,)) if not function.startswith("define") else (function,)
        )
        self.declarations |= dict.fromkeys(known)

    def emitter(self) -> ThreadEmitter:
        return ThreadEmitter(self.declare)

    def kernel(
        self, w: ThreadEmitter, threads: int = TUNING.cuda_block_threads
    ) -> tuple[str, tuple[Argument, ...]]:
        """The name of the kernel that was written, for blocks of so many threads, and its
        arguments."""
        text = w.function(threads)
        name = self.functions.setdefault(text, f"k{len(self.functions)}")
        group = self.scratches[-1]
        group += [p for p in w.parameters if isinstance(p, Scratch) and p not in group]
        return name, tuple(w.parameters)

    def over(self, w: ThreadEmitter, domain: Sequence[int | Dim], team: int = 1) -> Launches:
        """The launch of the kernel that was written, with a thread for each element of a domain, or
        a team."""
        name, arguments = self.kernel(w)
        count = product(domain) * team

        def launches(sizes: Sizes) -> list[Launch]:
            threads = evaluate(count, sizes)
            return [Launch(name, arguments, threads)] if threads else []

        return launches

    def text(self) -> str:
        """The module in LLVM's language."""
        parts = heads_of(self.declarations)
        parts += [text.replace("{name}", f"@{name}", 1) for text, name in self.functions.items()]
        return "\n".join([*parts, ATTRIBUTES]) + "\n"


Emit = Callable[[DeviceModule, Any], list[Launches]]
