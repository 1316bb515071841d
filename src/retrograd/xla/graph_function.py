"""A graph as a function of JAX's arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from retrograd.ir import Graph
from retrograd.lazy_import import need
from retrograd.passes import optimize
from retrograd.xla.lowering.all_rules import JaxTrace


def x64() -> Any:
    """A context in which JAX has 64 bits; the user's setting is as it was behind it. Functions of
    `to_jax` are traced, compiled and called in it."""
    return need("jax", "the backend 'xla'").enable_x64(True)


class GraphFunction:
    """A graph, all of whose sizes are known, as a function of JAX's arrays, for `jax.jit`,
    with `in_shardings` or without.

    Called with one array for each input it gives a tuple of one for each output and, behind these,
    the *failure*: an array of three int64, all 0 unless a check of the program failed, such as an
    index that is out of range. Whoever runs the program hands that, as a NumPy array, to `check`.
    """

    def __init__(self, graph: Graph, simplify: bool = True) -> None:
        self.graph = optimize(graph) if simplify else graph
        self.trace: JaxTrace | None = None  # what was found out when JAX traced the function

    def __call__(self, *arrays: Any) -> tuple[Any, ...]:
        return self.of_parted(arrays, {})

    def of_parted(
        self, arrays: Sequence[Any], parted: Mapping[int, tuple[Any, Any]]
    ) -> tuple[Any, ...]:
        """The same, where some of the arrays, by number, are computed with by another sharding than
        they are kept by: the pair of both."""
        with x64():
            trace = self.trace = JaxTrace()
            for i, (used, kept) in parted.items():
                trace.part(arrays[i], used, kept)
            outputs = trace.run(self.graph, arrays)
            return (*outputs, trace.lax.concatenate(
                [trace.lax.reshape(v, (1,)) for v in trace.failures()], 0))  # fmt: skip

    @property
    def has_checks(self) -> bool:
        """Whether the program may fail."""
        return self.trace is not None and bool(self.trace.checks or self.trace.has_host_calls)

    @property
    def has_host_calls(self) -> bool:
        """Whether the program calls functions on the host."""
        return self.trace is not None and self.trace.has_host_calls

    def check(self, failure: Any) -> None:
        """Raise what a program's failure says, if there is one."""
        assert self.trace is not None, "the function has not been called"
        if self.trace.host:
            error = self.trace.host[0]
            self.trace.host.clear()
            raise error
        number, value, place = map(int, failure)
        if number:
            raise self.trace.checks[number - 1].error(value, place)


def to_jax(graph: Graph) -> GraphFunction:
    """The graph as a function of JAX's arrays; see `GraphFunction`."""
    return GraphFunction(graph)
