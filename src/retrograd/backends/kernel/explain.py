"""Kernels as text: what was fused, bytes and operations."""

from __future__ import annotations

from collections.abc import Mapping

from retrograd.backends.kernel.kernel import Kernel
from retrograd.backends.kernel.nest import INDEXING, live
from retrograd.ir import Dim, evaluate, product


def describe(kernel: Kernel, sizes: Mapping[str, int] | None = None) -> str:
    """One line on a kernel."""
    nest = kernel.nests[-1]
    ops: dict[str, int] = {}
    work: int | Dim = 0
    for n in kernel.nests:
        own = [v for v in live(n) if v.op not in INDEXING]
        for v in own:
            ops[v.op] = ops.get(v.op, 0) + 1
        inner = sum(1 for v in own if v.depth == max(len(n.loops), 1))
        steps = product(n.loops)
        if n.kind == "gemm":
            steps, inner = product((*n.loops, *(n.info[s].attr for s in "mnk"))), 2
        work = work + steps * (inner + (n.kind not in ("map", "gemm")))
    traffic: int | Dim = 0
    for buffer in (*kernel.reads, *kernel.outs):
        traffic = traffic + buffer.bytes
    if sizes is not None:
        work, traffic = evaluate(work, sizes), evaluate(traffic, sizes)
    fused = " ".join(f"{op}*{n}" if n > 1 else op for op, n in ops.items())
    results = ", ".join(f"{n.name or f'%{n.id}'}: {n.type} = {n.op}" for n in kernel.nodes)
    domain = " x ".join(map(str, nest.loops)) or "1"
    inside = f" ({fused})" if fused else ""
    return f"{nest.kind:7} {results} [{domain}]{inside}; {traffic} bytes, {work} operations"
