"""A function traced for one signature: its graph, and what of its results that computes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from retrograd import pytree
from retrograd.backend_registry import compile_graph
from retrograd.eager.lazy_tensor import LazyTensor, clone_graph, leaf_handle
from retrograd.eager.leaf import LEAKED, live
from retrograd.eager.modes import current_backend, tracing
from retrograd.eager.weak_types import weak
from retrograd.functions.broadcasting import as_node
from retrograd.functions.tensor.tensor import Tensor
from retrograd.graph.graph import captured_nodes, captures
from retrograd.ir import Dim, Graph, Node, TensorType, Trait, as_dtype, float64, reachable
from retrograd.ir.node import nested
from retrograd.ops.assume import ExampleGuards, ShapeGuards
from retrograd.ops.fft import Fft
from retrograd.ops.leaf import SizeOf, input_node
from retrograd.shared import contained
from retrograd.tracing.module_state import StateWatch
from retrograd.tracing.scope import asking, is_tracked
from retrograd.transforms.jit.fast_call import COMPUTED, CompiledFunction
from retrograd.transforms.jit.signature import StaticLeaf, WeakArray

ARRAYS = LazyTensor, np.ndarray, np.generic, Dim  # results that are computed


class DependsOnTransform(Exception):
    """A function closes over what a transform around the call differentiates, or maps: it has to
    become part of what that transform sees, and the value of that is no constant of a program."""


class TracedFunction:
    """What calling `f` on stand-ins for arguments of these keys gives. Of sizes that have names and
    an example, `guards` are told. Arguments that are `donated` are its own to change. Where it is
    called for somebody who `asks` for gradients, `tracked` tells through which results there are
    some, as far as that is for `f` to say."""

    @contained
    def __init__(
        self,
        f: Callable[..., Any],
        structure: Any,
        keys: Sequence[Any],
        names: Sequence[str],
        guards: ExampleGuards | None = None,
        asks: bool = False,
        donated: Sequence[bool] = (),
    ) -> None:
        inputs, new = _stand_ins(keys, names, asks)
        asked = [x for x in inputs if asks and x.dtype.is_inexact]
        args, kwargs = pytree.unflatten(structure, new)
        try:
            with tracing(), nullcontext() if guards is None else guards.watching():
                assumed = ShapeGuards(inputs)
                for x, gone in zip(new, donated, strict=False):
                    if gone and isinstance(x, LazyTensor):
                        x.own()
                with assumed.watching(), asking(asked):
                    given = args, kwargs
                    holds = pytree.may_hold_state(given)
                    watch = StateWatch(given, structure, new) if holds else None
                    result = f(*args, **kwargs)
                    # Whether something has changed in modules that would be lost.
                    self.loses_state = watch is not None and bool(watch.lost_in_trace(result))
        finally:
            LEAKED.update(inputs)
        results, self.structure = pytree.flatten(result)
        self.sizes = [y for y in results if isinstance(y, Dim)]  # among the results
        computed = [y for y in results if isinstance(y, ARRAYS)]
        nodes = [as_node(y.node if isinstance(y, LazyTensor) else y) for y in computed]
        outputs = assumed.on(nodes)
        if _depends_on_a_transform(outputs, inputs):
            raise DependsOnTransform
        taken = captures(outputs, inputs)
        # Arrays, or handles on leaves, whose value may be replaced.
        self.captured = [
            h if (h := leaf_handle(n)) is not None else live(n, a) for n, a in taken.items()
        ]
        self.graph = clone_graph([*inputs, *taken], outputs, name=getattr(f, "__name__", ""))
        self.tracked = [getattr(y, "_requires_grad", False) for y in computed] if asks else None
        self.fixed = [COMPUTED if isinstance(y, ARRAYS) else y for y in results]

    @property
    def _graphs(self) -> list[Graph]:
        return [self.graph, *nested(self.graph)]

    @property
    def inner_sizes(self) -> list[Dim]:
        """All that have names, of what is computed."""
        return sorted({d for g in self._graphs for x in g.nodes for d in _dims(x)}, key=str)

    @property
    def exact_sizes(self) -> list[Dim]:
        """Sizes of which programs have other bits where they are numbers."""
        nodes = [x for g in self._graphs for x in g.nodes if isinstance(x.prim, Fft)]
        sizes = [x.shape[x.prim.axis] for x in nodes]  # type: ignore[attr-defined]
        return [d for d in sizes if isinstance(d, Dim)]

    def compiled(self, donors: Collection[int], named: bool = False) -> CompiledFunction:
        """Its program. Inputs that are donors may be overwritten."""
        program = compile_graph(self.graph, current_backend(), donors)
        made = program, self.captured, self.structure, self.fixed, self.graph, self.tracked
        return CompiledFunction(*made, named)

    def is_like(self, other: CompiledFunction) -> bool:
        """Whether results are of the same structure, types and constants, but for sizes."""
        if self.structure != other.structure or len(self.fixed) != len(other.fixed):
            return False
        types = [[(y.dtype, y.type.rank) for y in g.outputs] for g in (self.graph, other.graph)]
        return types[0] == types[1] and all(map(_is_same, self.fixed, other.fixed))


def _depends_on_a_transform(outputs: Sequence[Node], inputs: Sequence[Node]) -> bool:
    """Whether a gradient is asked for through something that was computed around a function, or
    that stands for many values."""
    taken = [n for n in captured_nodes(outputs, inputs) if n.inputs]
    if taken and is_tracked(taken):
        return True
    own = set(inputs)
    around = reachable([*outputs, *taken])
    return any(
        Trait.PLACEHOLDER in n.prim.traits and n not in own
        and n not in LEAKED  # of a trace that has ended, whose values nobody has: an error
        for n in around
    )  # fmt: skip


def _stand_ins(
    keys: Sequence[Any], names: Sequence[str], asks: bool
) -> tuple[list[Node], list[Any]]:
    """Inputs of a graph, and leaves of arguments: stand-ins, or what is part of the keys."""
    inputs: list[Node] = []
    leaves: list[Any] = []
    for key, name in zip(keys, names, strict=True):
        if isinstance(key, StaticLeaf):
            leaves.append(key.value)
            continue
        is_weak = isinstance(key, str | WeakArray)
        node = input_node(_type_of(key), name)
        inputs.append(node)
        shown = weak(node) if is_weak else node
        leaves.append(Tensor(shown, asks and node.dtype.is_inexact))
    return inputs, leaves


def _type_of(key: Any) -> Any:
    if isinstance(key, str):
        return TensorType(as_dtype(key), ())
    return key.wide if isinstance(key, WeakArray) else key


def as_number(size: Dim) -> Tensor:
    """A size as what Python makes of it next to floating-point numbers."""
    return Tensor(weak(SizeOf(size, float64)()))


def _dims(x: Node) -> list[Dim]:
    return [d for d in x.shape if isinstance(d, Dim)] if isinstance(x.type, TensorType) else []


def _is_same(a: Any, b: Any) -> bool:
    return a is b or (type(a) is type(b) and isinstance(a, int | float | complex | str) and a == b)
