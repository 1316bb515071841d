"""Programs of the backend: a graph, compiled by XLA once for each choice of its named sizes."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from retrograd.errors import BackendError, MemoryLimitError
from retrograd.ir import Graph
from retrograd.lazy_import import need
from retrograd.ops.assume import check_assumed
from retrograd.runtime.backend import Array, bind
from retrograd.runtime.device_array import device_copy, host, pending, remember
from retrograd.tuning import TUNING
from retrograd.xla.graph_function import GraphFunction, x64
from retrograd.xla.mesh_program import MeshProgram
from retrograd.xla.sharding import Mesh, current_mesh

# Half precision is rounded where the graph says so, not only where a value is stored.
OPTIONS = {"xla_allow_excess_precision": False}
DEVICE = "xla"  # JAX itself knows on which of its devices an array is


class OnDevice:
    """The numbers of an array, as one of JAX's."""

    __slots__ = ("array",)
    device = DEVICE

    def __init__(self, array: Any) -> None:
        self.array = array

    def fetch(self) -> Array:
        """A copy, so that the array on the device is nobody else's."""
        try:
            return np.array(self.array)
        except need("jax", "the backend 'xla'").errors.JaxRuntimeError as error:
            raise _plain(error) from None


class Compiled:
    """The program for some sizes. `donate` are inputs whose memory it may take."""

    def __init__(self, graph: Graph, donate: Collection[int]) -> None:
        self.jax = need("jax", "the backend 'xla'")
        self.function = GraphFunction(graph)
        self.donate = tuple(donate)
        self.run = self.jax.jit(self.function, compiler_options=OPTIONS)
        self.on_mesh = MeshProgram(graph, self.function, OPTIONS)
        self.consume = self.run
        if donate:
            self.consume = self.jax.jit(
                self.function, donate_argnums=self.donate, compiler_options=OPTIONS
            )

    def __call__(self, arrays: Sequence[Any], run: Any) -> list[Any]:
        """The results, as arrays of JAX. A program without checks goes on by itself meanwhile."""
        with x64():
            try:
                *outputs, failure = run(*arrays)
                if not self.function.has_checks:
                    return outputs
                failed = np.asarray(failure)
            except self.jax.errors.JaxRuntimeError as error:
                raise _plain(error) from None
        if failed[0] or self.function.has_host_calls:
            if self.function.has_host_calls:
                self.jax.block_until_ready(outputs)
            self.function.check(failed.tolist())
        return outputs

    def spread(self, mesh: Mesh, arrays: Any, donate: Collection[int] = ()) -> list[Any]:
        """The results on a mesh; `arrays` is emptied where donated ones are nobody else's."""
        try:
            return self.on_mesh(mesh, arrays, donate)
        except self.jax.errors.JaxRuntimeError as error:
            raise _plain(error) from None


def _plain(error: Exception) -> Exception:
    """The error of the library for one of XLA."""
    text = str(error)
    if "RESOURCE_EXHAUSTED" in text or "ut of memory" in text:
        return MemoryLimitError(f"XLA has no memory for this program: {text}")
    return BackendError(f"XLA could not run this program: {text}")


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
        compiled = self._compiled(arrays)
        if (mesh := current_mesh()) is not None:
            return compiled.spread(mesh, arrays)
        return self._results(compiled([_given(a) for a in arrays], compiled.run))

    def consume(self, arrays: list[Any]) -> list[Any]:
        """The same; what is donated is gone, and not in `arrays` any more. An array that something
        else has, too, is kept."""
        compiled = self._compiled(arrays)
        if (mesh := current_mesh()) is not None:
            return compiled.spread(mesh, arrays, compiled.donate)
        given = [_given(a) for a in arrays]
        times = Counter(map(id, given))
        own = all(_is_own(arrays, times, i) for i in compiled.donate)
        if own:
            arrays.clear()
        return self._results(compiled(given, compiled.consume if own else compiled.run))

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

    def _results(self, outputs: Sequence[Any]) -> list[Any]:
        return [
            pending(tuple(y.shape), n.dtype.dtype, OnDevice(y))
            for y, n in zip(outputs, self.graph.outputs, strict=True)
        ]


def _given(array: Any) -> Any:
    """An array as JAX takes it: its copy there, which a tensor's array gets once it is used."""
    found = device_copy(array, DEVICE)
    if found is not None:
        return found.array
    numbers = host(array)
    if numbers is array:
        return numbers  # JAX takes it for the time of the call
    with x64():
        copy = need("jax", "the backend 'xla'").device_put(numbers, may_alias=False)
    remember(array, OnDevice(copy))
    return copy


def _is_own(arrays: Sequence[Any], times: Mapping[int, int], i: int) -> bool:
    """Whether nothing but a call has an array on the device: `arrays` and the copy have one
    reference each, and so has what counts them. `times` says how often the call is given it."""
    array, copy = arrays[i], device_copy(arrays[i], DEVICE)
    if copy is None or times[id(copy.array)] > 1:
        return False
    return sys.getrefcount(array) <= 3 and sys.getrefcount(copy.array) <= 3
