"""Functions as graphs inside of operations: what `scan`, `cond` and `while_loop` do with theirs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from retrograd import pytree
from retrograd.eager.dispatch import wrap
from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.eager.leaf import LEAKED
from retrograd.eager.modes import grad_enabled, recording_grad, sought, traced
from retrograd.eager.weak_types import is_weak
from retrograd.errors import DTypeError, ShapeError
from retrograd.functions.broadcasting import as_node, number, rounded
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import (
    DType,
    Graph,
    Node,
    Provenance,
    TensorType,
    Trait,
    TupleType,
    bool_,
    made_by,
    provenance,
    substitute,
)
from retrograd.ir.source import user_source
from retrograd.ops.leaf import input_node
from retrograd.tracing.arguments import names_of_leaves
from retrograd.tracing.scope import is_tracked, need_arguments, need_function, to_node

WEAK = (bool, int, float, complex)  # a number that takes the dtype of what it meets


class ArgumentNodes:
    """A tree of arguments as nodes. `weak` are leaves that were Python's numbers."""

    def __init__(self, value: Any, what: str) -> None:
        self.value = value
        self.leaves, self.structure = pytree.flatten(value)
        self.weak = [isinstance(x, WEAK) or _is_number(x) for x in self.leaves]
        self.nodes = [as_node(to_node(x, what)) for x in self.leaves]

    def label(self, i: int, name: str) -> str:
        """How a leaf of the argument of this name is reached, for messages."""
        path = pytree.paths(self.value)[i]
        return f"its leaf {path}" if path and not name else name + path or "it"

    def cast(self, dtypes: Mapping[int, DType]) -> None:
        for i, dtype in dtypes.items():
            x = self.leaves[i]
            self.nodes[i] = (
                rounded(x.node, dtype) if isinstance(x, LazyTensor) else number(x, dtype)
            )


def _is_number(x: Any) -> bool:
    return isinstance(x, LazyTensor) and x._trace_node is None and is_weak(x.node)


class TracedSubgraph:
    """A function called on stand-ins: nodes from `inputs` to `results`, which are the leaves of the
    tree of `structure`. `captured` are values from around it that it uses. The error for what is no
    function tells the `usage`."""

    def __init__(
        self, f: Callable[..., Any], types: Sequence[Any], what: str, usage: str = ""
    ) -> None:
        need_function(f, what, usage)
        args = [pytree.unflatten(s, list(leaves)) for leaves, s in types]
        need_arguments(f, args, what)
        # Of the structures: what a module holds counts as its leaf only if it is a tensor.
        names = names_of_leaves(f, [pytree.names(s) for _, s in types])
        self.name = getattr(f, "__name__", "").strip("<>").replace("lambda", "")
        self.what = what
        flat = [t for leaves, _ in types for t in leaves]
        for x in sought():  # what is differentiated is from around the function, if it is used
            _ = x.node
        self.first = input_node(TensorType(bool_, ())).id
        self.inputs = [input_node(t, n) for t, n in zip(flat, names, strict=True)]
        rest = iter([Tensor(x, grad_enabled() and x.dtype.is_inexact) for x in self.inputs])
        given = [pytree.unflatten(s, [next(rest) for _ in leaves]) for leaves, s in types]
        try:
            self.value = traced(f, *given)
        finally:
            LEAKED.update(self.inputs)  # whoever looks at them from now on has kept them

    def outputs(self, leaves: Sequence[Any], dtypes: Sequence[DType | None]) -> list[Node]:
        """Results as nodes; numbers take the dtype given."""
        found = []
        for x, dtype in zip(leaves, dtypes, strict=True):
            try:
                found.append(as_node(x.node if isinstance(x, LazyTensor) else x, dtype))
            except DTypeError as error:
                name = self.name and f" {self.name}"
                raise DTypeError(
                    f"{self.what}: the function{name} returned {x!r:.60}, where tensors and "
                    f"numbers are expected: {error}"
                ) from None
        return found

    def captured(self, outputs: Sequence[Node]) -> list[Node]:
        """Nodes from around the function on which its outputs depend."""
        own = set(self.inputs)
        seen, todo = set(outputs), list(outputs)
        found = []
        for node in todo:  # which grows
            if node in own:
                continue
            before = node.id < self.first and not isinstance(node.type, TupleType)
            if Trait.INPUT in node.prim.traits or (before and node.inputs):
                found.append(node)
                continue
            for x in node.inputs:
                if x not in seen:
                    seen.add(x)
                    todo.append(x)
        return sorted(found, key=lambda n: n.id)


def graph_of(
    inputs: Sequence[Node], outputs: Sequence[Node], captured: Sequence[Node], name: str
) -> Graph:
    """A closed graph: first come inputs for what was captured."""
    extra = [input_node(x.type) for x in captured]
    outputs = substitute(outputs, dict(zip(captured, extra, strict=True)))
    return Graph([*extra, *inputs], outputs, name)


def together(captured: Iterable[Node]) -> list[Node]:
    """What several functions captured, each once, in order."""
    return sorted(set(captured), key=lambda n: n.id)


def placed() -> made_by:
    """Nodes made inside belong to the user's line."""
    here = provenance()
    return made_by(Provenance(here.scope, user_source(), here.origin))


def results(nodes: Sequence[Node], inputs: Sequence[Node]) -> list[Any]:
    """Results of an operation on these inputs, as tensors."""
    with recording_grad():
        tracked = is_tracked(inputs)
    return list(wrap(list(nodes), tracked))


def at() -> str:
    return f"(at {user_source()})"


def same_structure(what: str, which: str, found: Any, expected: Any) -> None:
    if found != expected:
        raise ShapeError(
            f"{what}: {which} has the structure {found}, not {expected}"
            f"{_difference(pytree.names(found), pytree.names(expected))} {at()}"
        )


def _difference(found: Sequence[str], expected: Sequence[str]) -> str:
    """Which leaves there are too many or too few, of those that have a name."""
    more = [p for p in found if p and p not in expected]
    less = [p for p in expected if p and p not in found]
    parts = [f"there is {more[0]}, which should not be"] if more else []
    parts += [f"there is no {less[0]}"] if less else []
    return f": {', and '.join(parts)}" if parts else ""
