"""Programs of the backend: a graph, compiled by XLA once for each choice of its named sizes."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from retrograd.ir import Graph
from retrograd.lazy_import import need
from retrograd.ops.assume import check_assumed
from retrograd.runtime.backend import Array, bind
from retrograd.runtime.device_array import device_copy, host, numbers_for, pending, remember
from retrograd.tuning import TUNING
from retrograd.xla.graph_function import GraphFunction, x64
from retrograd.xla.memory import check_program
from retrograd.xla.mesh_program import MeshProgram
from retrograd.xla.pending_check import PendingCheck, plain, read, unsettled
from retrograd.xla.sharding import Mesh, current_mesh

# Half precision is rounded where the graph says so, not only where a value is stored.
OPTIONS = {"xla_allow_excess_precision": False}
DEVICE = "xla"  # JAX itself knows on which of its devices an array is


class OnDevice:
    """The numbers of an array, as one of JAX's. `check` is that of the program that computes them,
    where it may still turn out to have failed."""

    __slots__ = ("array", "check")
    backend = device = DEVICE

    def __init__(self, array: Any, check: PendingCheck | None = None) -> None:
        self.array = array
        self.check = check

    def fetch(self) -> Array:
        """A copy, so that the array on the device is nobody else's."""
        if self.check is not None:
            self.check.settle()
            self.check = None
        return read(self.array)


class Compiled:
    """The program for some sizes. `donate` are inputs whose memory it may take."""

    def __init__(self, graph: Graph, donate: Collection[int]) -> None:
        self.jax = need("jax", "the backend 'xla'")
        self.function = GraphFunction(graph)
        self.donate = tuple(_taken(graph, donate))
        self.run = self.jax.jit(self.function, compiler_options=OPTIONS)
        self.on_mesh = MeshProgram(graph, self.function, OPTIONS)
        self.consume = self.run
        self._fits: list[Any] = []  # of these two, those whose memory has been looked at
        if self.donate:
            self.consume = self.jax.jit(
                self.function, donate_argnums=self.donate, compiler_options=OPTIONS
            )

    def __call__(
        self, run: Any, arrays: Sequence[Any], before: Sequence[PendingCheck] = ()
    ) -> tuple[list[Any], PendingCheck | None]:
        """The results, as arrays of JAX, and what may yet fail of them: they go on by themselves
        meanwhile. `before` are such checks of the arguments."""
        with x64():
            try:
                if run not in self._fits:  # compiled here; the call finds that
                    compiled = run.lower(*arrays).compile()
                    check_program(compiled, self.function.graph, self.jax.local_devices()[:1])
                    self._fits.append(run)
                *outputs, failure = run(*arrays)
                if self.function.has_host_calls:
                    self.jax.block_until_ready(outputs)
            except self.jax.errors.JaxRuntimeError as error:
                raise plain(error) from None
        if not self.function.has_checks and len(before) < 2:
            return outputs, before[0] if before else None
        check = PendingCheck(self.function, failure, before)
        if self.function.has_host_calls:
            check.settle()
        return outputs, check

    def copy(self, array: Any) -> Any:
        """An array of JAX's that nobody else has, of one that somebody has."""
        with x64():
            if isinstance(array, self.jax.Array):
                return self.jax.numpy.array(array, copy=True)
            return self.jax.device_put(array, may_alias=False)

    def spread(self, mesh: Mesh, arrays: Any, donate: Collection[int] = ()) -> list[Any]:
        """The results on a mesh; `arrays` is emptied where donated ones are nobody else's."""
        try:
            return self.on_mesh(mesh, arrays, donate)
        except self.jax.errors.JaxRuntimeError as error:
            raise plain(error) from None


class XlaProgram:
    """A graph on XLA. Calling it gives arrays of NumPy; `resident` gives arrays that stay where JAX
    has them, and `consume` may take the memory of donated ones for its results."""

    def __init__(self, graph: Graph, donate: Collection[int] = ()) -> None:
        self.graph = graph
        self.donate = donate
        self._by_sizes: dict[tuple[Any, ...], Compiled] = {}

    def __call__(self, arrays: Sequence[Any]) -> list[Array]:
        return [host(y) for y in self.resident(arrays)]

    def resident(self, arrays: Sequence[Any]) -> list[Any]:
        """Its results, after its checks."""
        compiled = self._compiled(arrays)
        if (mesh := current_mesh()) is not None:
            return compiled.spread(mesh, arrays)
        outputs, check = compiled(compiled.run, *_given(arrays))
        if compiled.function.has_checks and check is not None:
            check.settle()
            check = None
        return self._results(outputs, check)

    def consume(self, arrays: list[Any]) -> list[Any]:
        """The same; what is donated is gone, and not in `arrays` any more. An array that something
        else has, too, is kept. Steps of training are such calls, each of which goes on from the one
        before: their checks are not waited for, and stay with the results (`PendingCheck`)."""
        if not self.donate:
            return self.resident(arrays)
        compiled = self._compiled(arrays)
        if (mesh := current_mesh()) is not None:
            return compiled.spread(mesh, arrays, compiled.donate)
        given, before = _given(arrays)
        times = Counter(map(id, given))
        for i in compiled.donate:
            if not _is_own(arrays, times, i):
                given[i] = compiled.copy(given[i])
        try:
            results = self._results(*compiled(compiled.consume, given, before))
        except BaseException:
            if any(given[i].is_deleted() for i in compiled.donate):
                arrays.clear()
            raise
        arrays.clear()
        return results

    def _compiled(self, arrays: Sequence[Any]) -> Compiled:
        sizes = bind(self.graph.inputs, arrays)
        key = tuple(sorted(sizes.items()))
        compiled = self._by_sizes.get(key)
        if compiled is None:
            graph = self.graph
            if sizes:
                check_assumed(graph.nodes, sizes)
                graph = graph.bind(sizes)
            if len(self._by_sizes) >= TUNING.xla_sizes_kept:
                self._by_sizes.pop(next(iter(self._by_sizes)), None)
            compiled = self._by_sizes[key] = Compiled(graph, self.donate)
        return compiled

    def _results(self, outputs: Sequence[Any], check: PendingCheck | None) -> list[Any]:
        return [
            pending(y.shape, n.dtype.dtype, OnDevice(y, check))
            for y, n in zip(outputs, self.graph.outputs, strict=True)
        ]


def _taken(graph: Graph, donate: Collection[int]) -> list[int]:
    """The donated inputs whose memory a result can take: JAX warns of others."""
    left = Counter(y.type for y in graph.outputs)
    found = []
    for i in donate:
        kind = graph.inputs[i].type
        if left[kind] > 0:
            left[kind] -= 1
            found.append(i)
    return found


def _given(arrays: Sequence[Any]) -> tuple[list[Any], list[PendingCheck]]:
    """Arrays as JAX takes them, and what of them may still turn out to have failed."""
    given: list[Any] = []
    checks: dict[PendingCheck, None] = {}
    for a in arrays:
        copy = device_copy(a, DEVICE)
        if copy is None:
            given.append(_uploaded(a))
            continue
        if copy.check is not None:
            checks[copy.check] = None
        given.append(copy.array)
    return given, unsettled(checks)


def _uploaded(array: Any) -> Any:
    """An array that JAX does not have. A tensor's gets a copy there."""
    numbers = numbers_for(array, DEVICE)
    if numbers is array:
        return numbers  # JAX takes it for the time of the call
    with x64():
        copy = need("jax", "the backend 'xla'").device_put(numbers, may_alias=False)
    remember(array, OnDevice(copy))
    return copy


def _is_own(arrays: Sequence[Any], times: Mapping[int, int], i: int) -> bool:
    """Whether nothing but a call has an array on the device: `arrays` and the copy have one
    reference each, and so has what counts them. `times` says how often the call is given it. What
    is not its own is copied, so that there is one program, whoever has its arguments."""
    array, copy = arrays[i], device_copy(arrays[i], DEVICE)
    if copy is None or times[id(copy.array)] > 1:
        return False
    return sys.getrefcount(array) <= 3 and sys.getrefcount(copy.array) <= 3
