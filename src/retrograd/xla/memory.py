"""Whether a compiled program fits into the memory of its devices, before it runs.

XLA has planned all of a program's memory when it is compiled. Where that is the host's, a program
that takes too much would be ended by the system, without a word.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from retrograd.ir import Graph, TupleType, evaluate
from retrograd.memory_limit import available_memory, check_memory


def check_program(compiled: Any, graph: Graph, devices: Sequence[Any]) -> None:
    """`MemoryLimitError` where a program of `jax.jit`, compiled for these devices of this process,
    makes more than there is: its temporary arrays, and results that take no argument's memory."""
    plan = compiled.memory_analysis()
    if plan is None:
        return
    each = plan.temp_size_in_bytes + plan.output_size_in_bytes - plan.alias_size_in_bytes
    shared = devices[0].platform == "cpu"  # one memory for all of them

    def arrays() -> list[tuple[int, str]]:
        nodes = [n for n in graph.body if not isinstance(n.type, TupleType)]
        return [(evaluate(n.type.size, {}) * n.dtype.itemsize, n.describe()) for n in nodes]

    check_memory(
        each * (len(devices) if shared else 1),
        arrays,
        {},
        available_memory if shared else lambda: _left(devices),
        "here" if shared else f"on {devices[0]}",
    )


def _left(devices: Sequence[Any]) -> int | None:
    """The bytes that the fullest device has left; None where it does not tell."""
    stats = [d.memory_stats() or {} for d in devices]
    if not all("bytes_limit" in s for s in stats):
        return None
    return min(int(s["bytes_limit"]) - int(s.get("bytes_in_use", 0)) for s in stats)
