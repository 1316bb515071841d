"""Loops and choices as operations: scan, fori_loop, while_loop, cond."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from retrograd import pytree
from retrograd.coming_from.keywords import respells
from retrograd.eager.conversion import promote
from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.errors import DTypeError, OptionError, ShapeError
from retrograd.functions.broadcasting import integer
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import Dim, DType, Node, TensorType, bool_, full, int64
from retrograd.ops.control import Cond, Scan, WhileLoop
from retrograd.ops.control.nested_scan import Policy, nested_scan, segments_of
from retrograd.ops.elementwise import add, cast
from retrograd.ops.identity import items
from retrograd.ops.leaf import Iota
from retrograd.tracing.scope import need_arguments, need_function, to_node
from retrograd.tracing.subgraph import (
    ArgumentNodes,
    TracedSubgraph,
    at,
    graph_of,
    placed,
    results,
    same_structure,
    together,
)

ATTEMPTS = 4  # until the dtypes of Python's numbers among the carries have settled
# What errors tell those who give no function.
COND_USAGE = (
    "give functions of the values, rg.cond(pred, lambda x: x + 1, lambda x: x, x), or "
    "choose between values with rg.where(pred, a, b)"
)
SCAN_USAGE = (
    "give a function of a carry and a slice that returns both, "
    "rg.scan(lambda c, x: (c + x, c), init, xs)"
)
LOOP_USAGE = "give two functions of the state, rg.while_loop(lambda s: s < 9, lambda s: s * 2, 1)"


S = TypeVar("S")
Y = TypeVar("Y")


@respells
def scan(
    f: Callable[[Any, Any], tuple[S, Y]],
    carry: Any,
    xs: Any = None,
    length: int | Dim | None = None,
    reverse: bool = False,
    checkpoint: Policy = None,
) -> tuple[S, Y]:
    """A loop as one operation: `carry, ys[t] = f(carry, xs[t])` for t = 0, ..., length - 1.

    Returns the last carry and the ys stacked along a new first axis. `carry`, `xs` and what f
    returns are trees; the leaves of xs are gone through along their first axis, and the carry keeps
    its structure, shapes and dtypes. Without `xs`, `length` says how often f is called, with None.
    With `reverse` the positions are gone through from the last to the first.

    f is traced once, however long the loop; it is compiled to a native loop. The gradient is a loop
    in the other direction, of what each step has left behind. With `checkpoint=k` only every k-th
    carry is kept, and the steps between are computed again; `checkpoint="log"` keeps a number of
    carries that grows with the logarithm of the length, and computes each step a few times.

    Raises `ShapeError` where lengths differ, where the carry changes, or f returns no pair.

    >>> import retrograd as rg
    >>> total, sums = rg.scan(lambda c, x: (c + x, c + x), 0.0, rg.tensor([1.0, 2.0, 3.0]))
    >>> total.item(), sums.tolist()
    (6.0, [1.0, 3.0, 6.0])
    """
    return _scanned("scan", f, carry, xs, length, reverse, checkpoint, SCAN_USAGE)


def _scanned(
    what: str, f: Callable[[Any, Any], tuple[Any, Any]], carry: Any, xs: Any,
    length: int | Dim | None, reverse: bool, checkpoint: Policy, usage: str = "",
) -> tuple[Any, Any]:  # fmt: skip
    """A `scan`, for the function whose name errors begin with."""
    with placed():
        state, moving = ArgumentNodes(carry, what), ArgumentNodes(xs, what)
        size = _length(moving, length)
        slices = [x.type.with_shape(x.shape[1:]) for x in moving.nodes]
        for _ in range(ATTEMPTS):
            types = [x.type for x in state.nodes]
            body = TracedSubgraph(
                f, [(types, state.structure), (slices, moving.structure)], what, usage
            )
            ends, outs, structure = _pair(body, state, what)
            changed = settle(state, ends, what)
            if not changed:
                break
            state.cast(changed)
        nodes = [*ends, *outs]
        captured = body.captured(nodes)
        graph = graph_of(body.inputs, nodes, captured, body.name)
        op = Scan(graph, len(ends), len(slices), size, bool(reverse))
        given = [*captured, *state.nodes, *moving.nodes]
        segments = segments_of(checkpoint, size, what)
        found = results(nested_scan(op, given, segments), given)
    return (
        pytree.unflatten(state.structure, found[: len(ends)]),
        pytree.unflatten(structure, found[len(ends) :]),
    )


def _length(xs: ArgumentNodes, length: int | Dim | None) -> int | Dim:
    """How many steps there are."""
    size = length if length is None or isinstance(length, Dim) else integer(length, "scan: length")
    if isinstance(size, int) and size < 0:
        raise ShapeError(f"scan: the length is {size}; it is not negative {at()}")
    where = "length"
    for i, x in enumerate(xs.nodes):
        if not x.shape:
            raise ShapeError(
                f"scan goes through xs along the first axis, but {xs.label(i, 'xs')} is a scalar; "
                f"a value that is the same in every step f uses without being given it {at()}"
            )
        if size is not None and x.shape[0] != size:
            raise ShapeError(
                f"scan: {where} says {size} steps, but {xs.label(i, 'xs')}, {x.type}, has "
                f"{x.shape[0]} {at()}"
            )
        size, where = x.shape[0], xs.label(i, "xs")
    if size is None:
        raise ShapeError(f"scan: how many steps? Give xs, or length {at()}")
    return size


def _pair(
    body: TracedSubgraph, state: ArgumentNodes, what: str
) -> tuple[list[Node], list[Node], Any]:
    """The carry and the results of a step, as nodes, and the structure of the latter."""
    value = body.value
    if not (isinstance(value, tuple | list) and len(value) == 2):
        raise ShapeError(
            f"scan: the function returns a pair, the carry of the next step and what to stack; "
            f"this one returned {type(value).__name__}; return (carry, None) if there is nothing "
            f"to stack {at()}"
        )
    leaves, structure = pytree.flatten(value[0])
    same_structure(what, "the carry that the function returned", structure, state.structure)
    outs, shape = pytree.flatten(value[1])
    ends = body.outputs(leaves, [x.dtype for x in state.nodes])
    return ends, body.outputs(outs, [None] * len(outs)), shape


def settle(state: ArgumentNodes, ends: Sequence[Node], what: str) -> dict[int, DType]:
    """Check that the carry keeps its types; the dtypes that Python's numbers must start with."""
    changed: dict[int, DType] = {}
    for i, (x, y) in enumerate(zip(state.nodes, ends, strict=True)):
        if x.type == y.type:
            continue
        if x.shape == y.shape and state.weak[i] and promote(x.dtype, y.dtype) is y.dtype:
            changed[i] = y.dtype
            continue
        raise (ShapeError if x.shape != y.shape else DTypeError)(
            f"{what}: what a step carries keeps its shape and dtype, but {state.label(i, '')} is "
            f"{x.type} before a step and {y.type} after it; start with a value of the type that "
            f"the step returns, or have the step return {x.type} (rg.astype, rg.reshape) {at()}"
        )
    return changed


def fori_loop(
    lower: Any,
    upper: Any,
    body: Callable[[Any, Any], S],
    init: Any,
    checkpoint: Policy = None,
) -> S:
    """`value = body(i, value)` for i = lower, ..., upper - 1, starting with `init`.

    i is an int64 tensor. Bounds that are Python's integers, or `Dim`s, make a `scan`, others a
    `while_loop`; both have gradients, for which `checkpoint` says how many values are kept.

    The value is a tree that keeps its structure, shapes and dtypes, else it is a `ShapeError` or a
    `DTypeError`.

    >>> import retrograd as rg
    >>> rg.fori_loop(0, 4, lambda i, x: x * 2 + i, 1).item()
    27
    """
    need_function(body, "fori_loop", "give body(i, value), which returns the next value")
    need_arguments(body, (lower, init), "fori_loop")
    if all(isinstance(b, int | Dim | np.integer) for b in (lower, upper)):
        count = upper - lower
        count = max(int(count), 0) if not isinstance(count, Dim) else count
        with placed():
            position = Iota((count,), 0, int64)()
            if not isinstance(lower, Dim) and lower:
                position = add(position, full(int(lower), position.type))
        start = lower if isinstance(lower, Dim) else None

        def step(c: Any, i: Any) -> Any:
            return body(i if start is None else i + start, c), None

        return _scanned("fori_loop", step, init, Tensor(position), None, False, checkpoint)[0]
    first, last = _bound(lower, "lower"), _bound(upper, "upper")
    _, value = while_loop(
        lambda state: state[0] < last,
        lambda state: (state[0] + 1, body(state[0], state[1])),
        (first, init),
        checkpoint=checkpoint,
    )
    return value


def _bound(value: Any, name: str) -> Tensor:
    if isinstance(value, Dim):
        raise ShapeError("fori_loop: bounds are both sizes or integers, or both tensors")
    node = to_node(value, "fori_loop")
    if node.shape or not node.dtype.is_integer:
        raise ShapeError(f"fori_loop: the bound {name} is an integer, not {node.type} {at()}")
    return Tensor(cast(node, int64))


@respells
def while_loop(
    cond: Callable[[Any], Any],
    body: Callable[[Any], S],
    state: Any,
    max_steps: int | None = None,
    checkpoint: Policy = None,
) -> S:
    """`state = body(state)` for as long as `cond(state)` is true; returns the state at the end.

    The state is a tree that keeps its structure, shapes and dtypes; `cond` returns one boolean.
    Both functions are traced once and compiled to a native loop. Gradients, of any order, go back
    through as many steps as there were: states are recorded when the gradient is computed, so their
    memory grows with the number of steps. With `checkpoint=k` only that of every k-th step is kept,
    and those between are computed again, k at a time; with `checkpoint="log"` some 64 for each
    factor of 64 in the number of steps, at the price of as many more passes forward. Batched by
    `vmap` over samples that need different numbers of steps, the loop goes on until all are done;
    those that are done stay as they are. Gradients of the samples go back through as many steps as
    each made: all samples side by side if their numbers of steps are alike, otherwise one after the
    other, whichever is less work.

    A loop that still goes on after `max_steps` steps is a `LoopLimitError`. Raises `ShapeError` or
    `DTypeError` where the state changes its type or the condition is not a boolean.

    >>> import retrograd as rg
    >>> rg.while_loop(lambda x: x < 100.0, lambda x: x * x, rg.tensor(3.0)).item()
    6561.0
    """
    if max_steps is not None and integer(max_steps, "while_loop: max_steps") < 0:
        raise OptionError(f"while_loop: max_steps is {max_steps}; it is not negative")
    with placed():
        start = ArgumentNodes(state, "while_loop")
        for _ in range(ATTEMPTS):
            types = [x.type for x in start.nodes]
            test = TracedSubgraph(cond, [(types, start.structure)], "while_loop", LOOP_USAGE)
            step = TracedSubgraph(body, [(types, start.structure)], "while_loop", LOOP_USAGE)
            leaves, structure = pytree.flatten(step.value)
            same_structure("while_loop", "what body returned", structure, start.structure)
            ends = step.outputs(leaves, [x.dtype for x in start.nodes])
            changed = settle(start, ends, "while_loop")
            if not changed:
                break
            start.cast(changed)
        condition = _condition(test.value, "while_loop: the condition")
        captured = together([*test.captured([condition]), *step.captured(ends)])
        op = WhileLoop(
            graph_of(test.inputs, [condition], captured, test.name),
            graph_of(step.inputs, ends, captured, step.name),
            len(ends),
            None if max_steps is None else int(max_steps),
            segments_of(checkpoint, None, "while_loop"),
        )
        given = [*captured, *start.nodes]
        found = results(items(op(*given))[:-1], given)
    return pytree.unflatten(start.structure, found)


def _condition(value: Any, what: str) -> Node:
    node = to_node(value, "a condition")
    if node.type == TensorType(bool_, ()):
        return node
    if node.dtype is not bool_:
        raise DTypeError(
            f"{what} is a boolean, not {node.type}; compare with something, as in x > 0 {at()}"
        )
    raise ShapeError(
        f"{what} is one boolean, not {node.type}; say whether all or any have to hold "
        f"(rg.all, rg.any), or choose by element with rg.where {at()}"
    )


@respells
def cond(pred: Any, f: Callable[..., Y], g: Callable[..., Y], *args: Any) -> Y:
    """`f(*args)` if `pred` is true, otherwise `g(*args)`.

    `pred` is one boolean; both functions are traced and return trees of the same structure, shapes
    and dtypes. Only the branch that is chosen runs, forward and backward. Batched by `vmap` over
    `pred`, both run and each sample takes what is its own, as `rg.where` does. If `pred` is
    Python's True or False, the choice is made at once. Sizes that have names must make sense in
    both branches.

    Raises `ShapeError` or `DTypeError` where `pred` is no boolean, or the branches differ, naming
    the leaf that does.

    >>> import retrograd as rg
    >>> x = rg.tensor(-3.0)
    >>> rg.cond(x > 0, lambda x: x, lambda x: -2.0 * x, x).item()
    6.0
    """
    if isinstance(pred, bool | np.bool):
        for h in (f, g):
            need_function(h, "cond", COND_USAGE)
            need_arguments(h, args, "cond")
        return f(*args) if pred else g(*args)
    with placed():
        condition = _condition(pred, "cond: the predicate")
        given = ArgumentNodes(args, "cond")
        listed = [x.type for x in given.nodes]
        branches = [_Branch(h, (listed, given.structure)) for h in (f, g)]
        same_structure(
            "cond",
            "what the second function returned",
            branches[1].structure,
            branches[0].structure,
        )
        _agree(*branches)
        captured = together(c for b in branches for c in b.body.captured(b.nodes))
        graphs = [graph_of(b.body.inputs, b.nodes, captured, b.body.name) for b in branches]
        inputs = [condition, *captured, *given.nodes]
        found = results(items(Cond(graphs[0], graphs[1])(*inputs)), inputs)
    return pytree.unflatten(branches[0].structure, found)


class _Branch:
    """One of the two functions, called."""

    def __init__(self, f: Callable[..., Any], types: tuple[Any, Any]) -> None:
        leaves, structure = types
        rest = iter(leaves)
        parts = [([next(rest) for _ in range(s.num_leaves)], s) for s in structure.children()]
        self.body = TracedSubgraph(f, parts, "cond", COND_USAGE)
        self.leaves, self.structure = pytree.flatten(self.body.value)
        self.nodes = self.body.outputs(self.leaves, [None] * len(self.leaves))


def _agree(first: _Branch, second: _Branch) -> None:
    """Bring numbers to the dtype of what the other branch has in their place; then all types must
    be equal."""
    for i, (x, y) in enumerate(zip(first.nodes, second.nodes, strict=True)):
        if x.dtype is not y.dtype and not isinstance(first.leaves[i], LazyTensor | np.ndarray):
            first.nodes[i] = first.body.outputs([first.leaves[i]], [y.dtype])[0]
        elif x.dtype is not y.dtype and not isinstance(second.leaves[i], LazyTensor | np.ndarray):
            second.nodes[i] = second.body.outputs([second.leaves[i]], [x.dtype])[0]
        x, y = first.nodes[i], second.nodes[i]
        if x.type != y.type:
            path = pytree.paths(first.body.value)[i] or "the result"
            raise (ShapeError if x.shape != y.shape else DTypeError)(
                f"cond: both functions return values of the same types, but {path} is {x.type} "
                f"where the predicate is true and {y.type} where it is not {at()}"
            )
