"""Programs inside of `with mesh:`: one call on all devices of a mesh."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from retrograd.ir import Graph
from retrograd.lazy_import import need
from retrograd.xla.agreement import agree, awaited, collective
from retrograd.xla.graph_function import GraphFunction, x64
from retrograd.xla.memory import check_program
from retrograd.xla.sharding import (
    Mesh,
    Spec,
    gathered,
    on_mesh,
    resident,
    spec_of,
    standing_for,
    used_spec,
)

# Of those who want to see it: functions that give the text of each program that is run.
_RECORDED: ContextVar[list[Callable[[], str]] | None] = ContextVar("recorded", default=None)


@contextmanager
def recorded() -> Iterator[list[Callable[[], str]]]:
    """Inside the block, functions are gathered that give the compiled text (HLO) of the programs
    that are run on a mesh."""
    found: list[Callable[[], str]] = []
    before = _RECORDED.set(found)
    try:
        yield found
    finally:
        _RECORDED.reset(before)


class MeshProgram:
    """A function of JAX's arrays, compiled for the meshes and specs it is called with: XLA divides
    what it computes as its arguments are, and adds the communication (GSPMD).

    A result of the type of the argument in the same place is divided as that is: what a step of
    training moves stays where it was. How others are divided is for XLA to say.
    """

    def __init__(
        self, graph: Graph, function: GraphFunction, options: Mapping[str, Any] | None = None
    ) -> None:
        self.graph = graph
        self.function = function
        self.options = dict(options or {})
        self._compiled: dict[Any, Any] = {}  # by the mesh, and two specs of each argument

    def __call__(self, mesh: Mesh, arrays: Any, donate: Collection[int] = ()) -> list[Any]:
        """Its results, which stay on the devices; those that take the place of arguments are used
        alike. The arguments that are not on the mesh are put there, whole. Those of `donate` that
        nobody else has give their memory, and then `arrays` is emptied."""
        used, kept = [used_spec(a) for a in arrays], self._kept
        with x64(), collective(mesh.is_multi_process):
            given = [on_mesh(a, mesh) for a in arrays]
            own = bool(donate) and all(_is_own(arrays, given, i) for i in donate)
            if own:
                arrays.clear()
            run = self.jitted(mesh, given, used, tuple(donate) if own else ())
            if (found := _RECORDED.get()) is not None:
                text = run.lower(*given).compile().as_text
                found.append(text)
            *outputs, failure = run(*given)
            if mesh.is_multi_process:
                awaited(failure)
            if self.function.has_checks:
                self.function.check(gathered(failure).tolist())
        return [standing_for(y, used[i] if i in kept else None) for i, y in enumerate(outputs)]

    @property
    def _kept(self) -> set[int]:
        """The results of the type of the argument in the same place."""
        pairs = zip(self.graph.inputs, self.graph.outputs, strict=False)
        return {i for i, (x, y) in enumerate(pairs) if x.type == y.type}

    def jitted(
        self,
        mesh: Mesh,
        given: Sequence[Any],
        used: Sequence[Spec | None],
        donate: tuple[int, ...] = (),
    ) -> Any:
        """The function for arguments that are divided as these: what `jax.jit` makes."""
        key = mesh, tuple([spec_of(x) for x in given]), tuple(used), donate
        found = self._compiled.get(key)
        if found is None:
            if mesh.is_multi_process:  # before its first run: that all do the same
                name = self.graph.name or "a program"
                agree(f"runs {name} on {mesh}", f"{mesh} {key[1:]}\n{self.graph}")
            found = self._jit(*key)
            if own := mesh.local_devices:
                check_program(found.lower(*given).compile(), self.function.graph, own)
            self._compiled[key] = found
        return found

    def _jit(
        self,
        mesh: Mesh,
        specs: tuple[Spec, ...],
        used: tuple[Spec | None, ...],
        donate: tuple[int, ...],
    ) -> Any:
        jax = need("jax", "a mesh")
        kept = {i: mesh.sharding(specs[i]) for i in self._kept}
        parted = {
            i: (mesh.sharding(s), mesh.sharding(specs[i]))
            for i, s in enumerate(used)
            if s is not None and s != specs[i]
        }

        def run(*arrays: Any) -> Any:
            constrain = jax.lax.with_sharding_constraint
            results = self.function.of_parted(arrays, parted)
            return [constrain(y, kept[i]) if i in kept else y for i, y in enumerate(results)]

        run.__name__ = self.graph.name or "program"
        return jax.jit(run, donate_argnums=donate, compiler_options=self.options)


def _is_own(arrays: Sequence[Any], given: Sequence[Any], i: int) -> bool:
    """Whether nothing but this call has an argument: `arrays` and `given` have one reference each,
    its copy has another, and so has what counts them."""
    if resident(arrays[i]) is not given[i]:
        return False
    mine = sys.getrefcount(arrays[i]) <= 2 and sys.getrefcount(given[i]) <= 3
    return mine and sum(x is given[i] for x in given) == 1
