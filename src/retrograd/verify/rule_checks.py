"""Is an op's declaration right? Each check compares two ways of getting one answer.

    result     the reference meaning against the inferred type
    gradient   the reverse rule against finite differences, first and second order
    tangent    the forward rule against finite differences, and against the reverse rule
    batch      the batching rule against a loop over the samples
    symbolic   a graph with named sizes against the same graph with numbers

A check returns nothing, or raises `RuleError` saying what differs, and by how much. Derivatives are
compared at float64 inputs away from kinks and poles.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from operator import index
from typing import Any

import numpy as np

from retrograd.autodiff import batched, depends, pullback, pushforward
from retrograd.errors import RetrogradError
from retrograd.ir import (
    Graph,
    Node,
    Op,
    TensorType,
    TupleType,
    apply,
    as_dtype,
    full,
    interpret,
    verify,
)
from retrograd.ops.complex import conj, real
from retrograd.ops.control.body import wide
from retrograd.ops.elementwise import mul
from retrograd.ops.identity import items
from retrograd.ops.leaf import constant, input_node
from retrograd.ops.reduce import ReduceSum

Array = np.ndarray[Any, Any]
Vary = Callable[[Array, int], Array]
Given = Callable[..., Array]  # the last input of an op that passes it on, from the others
STEP = 1e-3  # of the finite differences; their error is of the order STEP**4 and eps / STEP
TOLERANCE = 1e-7


class RuleError(RetrogradError, AssertionError):
    """An op's rule that contradicts another of its rules, or its meaning."""


def run(graph: Graph, arrays: Sequence[Array], sizes: Mapping[str, int] | None = None) -> list[Any]:
    """Evaluate by the reference meaning; every value must have the dtype and shape of its node."""
    sizes = sizes or {}
    verify(graph)
    given = [_typed(x, array, sizes) for x, array in zip(graph.inputs, arrays, strict=True)]
    return interpret(graph, given, lambda node, xs: _typed(node, apply(node, xs, sizes), sizes))


def _typed(node: Node, value: Any, sizes: Mapping[str, int]) -> Any:
    if isinstance(node.type, TupleType):
        return [_typed(item, x, sizes) for item, x in zip(items(node), value, strict=True)]
    found, expected = TensorType(as_dtype(value.dtype), value.shape), node.type.bind(sizes)
    if found != expected:
        raise RuleError(f"a value of type {found} where {expected} was inferred: {node.describe()}")
    return np.asarray(value)


def placeholders(arrays: Sequence[Array]) -> list[Node]:
    """A graph input for each array."""
    return [input_node(TensorType(as_dtype(a.dtype), a.shape)) for a in arrays]


def check_result(op: Op, arrays: Sequence[Array]) -> Array:
    """The value of the op, whose dtype and shape must be the inferred ones."""
    inputs = placeholders(arrays)
    value: Array = run(Graph(inputs, [op(*inputs)]), arrays)[0]
    return value


def check_gradient(
    op: Op,
    arrays: Sequence[Array],
    wrt: Sequence[int],
    order: int = 1,
    unchecked: Sequence[int] = (),
    given: Given | None = None,
) -> None:
    """The reverse rule, applied `order` times, against finite differences of one order less.

    `wrt` lists the inputs that the op is differentiable in, `unchecked` those in which it has a
    derivative that is not to be compared; for the others the rule must give None. Of an op that
    passes on its last input, and knows its derivative, `given` computes that from the others.
    """
    rng = np.random.default_rng(0)
    inputs = placeholders(arrays)
    y = op(*inputs)
    if depends([y], inputs) != [i in wrt or i in unchecked for i in range(len(inputs))]:
        raise RuleError(f"{op} depends differentiably on other inputs than {list(wrt)}")
    if not wrt:
        return
    s, wanted = contract([y], rng), [inputs[i] for i in wrt]
    for _ in range(order - 1):
        s = contract(gradients(s, wanted), rng)
    gradient = Graph(inputs, gradients(s, wanted))
    found = run(gradient, arrays)
    for i, g in zip(wrt, found, strict=True):
        for t in _directions(arrays[i], rng):
            expected = difference(Graph(inputs, [s]), arrays, {i: t}, given)[0]
            compare(f"order {order} derivative of {op} by input {i}", inner(g, t), expected)


def check_tangent(
    op: Op, arrays: Sequence[Array], wrt: Sequence[int], given: Given | None = None
) -> None:
    """The forward rule against finite differences and against the reverse rule, and the forward
    rule applied to the reverse rule's result against finite differences of that."""
    rng = np.random.default_rng(0)
    inputs = placeholders(arrays)
    y = op(*inputs)
    subsets = [[i] for i in wrt] + ([list(wrt)] if len(wrt) > 1 else [])
    v = _random_like(y, rng)
    for subset in subsets:
        wanted = [inputs[i] for i in subset]
        ts = {i: _normal_like(arrays[i], rng) for i in subset}
        tangents = [constant(ts[i].astype(arrays[i].dtype)) for i in subset]
        pulled = pullback([y], [v], wanted, set(inputs))
        back = [g for g in pulled if g is not None]
        forward = pushforward([y, *back], wanted, tangents, set(inputs))
        if len(back) < len(pulled) or forward[0] is None:
            raise RuleError(f"{op} has no tangent, or no cotangent, for the inputs {subset}")
        for end, t in zip([y, *back], forward, strict=True):
            if t is not None:
                value = run(Graph(inputs, [t]), arrays)[0]
                expected = difference(Graph(inputs, [end]), arrays, ts, given)[0]
                compare(f"tangent of {end.op} in the rules of {op}", value, expected)
            elif np.any(difference(Graph(inputs, [end]), arrays, ts, given)[0]):
                raise RuleError(f"the tangent of {end.op} in the rules of {op} is missing")
        jt, *jv = run(Graph(inputs, [forward[0], *back]), arrays)
        dual = sum(inner(g, ts[i]) for i, g in zip(subset, jv, strict=True))
        compare(f"<v, J t> and <J' v, t> of {op}", inner(v.prim.reference(), jt), dual, 1e-10)


def check_batch(op: Op, arrays: Sequence[Array], size: int = 3, vary: Vary | None = None) -> None:
    """The batching rule against a loop, for every subset of batched inputs, and a batch of them.

    `vary(x, k)` makes sample k of an input; by default its elements, rolled by k.
    """
    vary = vary or np.roll
    for subset in _subsets(len(arrays)):
        _check_batch(op, arrays, size, subset, vary)
        for outer in (subset, tuple(not s for s in subset)):
            if any(outer):
                _check_nested(op, arrays, size, subset, outer, vary)


def _check_batch(
    op: Op, arrays: Sequence[Array], size: int, stacked: Sequence[bool], vary: Vary
) -> None:
    inputs = placeholders(arrays)
    y = op(*inputs)
    stacks = [_stack(a, size, vary) if s else a for a, s in zip(arrays, stacked, strict=True)]
    nodes = placeholders(stacks)
    result = op.batch(size, stacked, *nodes)
    if result.type != y.type.with_shape((size, *y.shape)):
        raise RuleError(f"the batching rule of {op} gives {result.type} from {stacked} of {y.type}")
    (found,) = run(Graph(nodes, [result]), stacks)
    for k in range(size):
        sample = [a[k] if s else a for a, s in zip(stacks, stacked, strict=True)]
        (expected,) = run(Graph(inputs, [y]), sample)
        compare(f"sample {k} of {op} batched over {stacked}", found[k], expected, 1e-12)


def _check_nested(
    op: Op, arrays: Sequence[Array], size: int, inner: Sequence[bool], outer: Sequence[bool],
    vary: Vary,
) -> None:  # fmt: skip
    """A batch of batches: `inner` inputs are stacks, and `outer` inputs stacks of what they are."""
    once = [_stack(a, size, vary) if s else a for a, s in zip(arrays, inner, strict=True)]
    twice = [_stack(a, 2, vary) if s else a for a, s in zip(once, outer, strict=True)]
    nodes, lifted = placeholders(once), placeholders(twice)
    y = op.batch(size, inner, *nodes)
    samples = {x: new for x, new, s in zip(nodes, lifted, outer, strict=True) if s}
    ((result, is_stack),) = batched([y], samples, 2)
    result = wide(result, is_stack, 2)
    graph = Graph([samples.get(x, x) for x in nodes], [result])
    (found,) = run(graph, twice)
    for k in range(2):
        sample = [a[k] if s else a for a, s in zip(twice, outer, strict=True)]
        (expected,) = run(Graph(nodes, [y]), sample)
        compare(f"{op} batched over {inner}, then {outer}", found[k], expected, 1e-12)


def check_symbolic(
    op: Op,
    types: Sequence[TensorType],
    sizes: Mapping[str, int],
    draw: Callable[[TensorType], Array],
    wrt: Sequence[int],
) -> None:
    """The op on named sizes, and its derivatives to second order, against the op on numbers."""
    arrays = [draw(t.bind(sizes)) for t in types]
    results = []
    for prim, inputs in (
        (op, [input_node(t) for t in types]),
        (op.bind(sizes), [input_node(t.bind(sizes)) for t in types]),
    ):
        y = prim(*inputs)
        wanted = [inputs[i] for i in wrt]
        first = gradients(_total([y]), wanted) if wrt else []
        second = gradients(_total(first), wanted) if wrt else []
        ends = [g for g in (y, *first, *second) if g is not None]
        results.append(run(Graph(inputs, ends), arrays, sizes))
    for found, expected in zip(*results, strict=True):
        compare(f"{op} on {list(types)} with {dict(sizes)}", found, expected, 1e-12)


def contract(nodes: Sequence[Node], rng: np.random.Generator) -> Node:
    """The real scalar `sum_k <c_k, node_k>` with random constants `c_k`."""
    total: Node | None = None
    for x in nodes:
        part = ReduceSum(tuple(range(x.type.rank)))(real(mul(x, _random_like(x, rng))))
        total = part if total is None else total + part
    if total is None:
        raise RuleError("nothing to differentiate")
    return total


def _total(nodes: Sequence[Node]) -> Node:
    """The sum of the squares of all elements: a scalar that works for symbolic sizes."""
    parts = [ReduceSum(tuple(range(x.type.rank)))(real(mul(x, conj(x)))) for x in nodes]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def gradients(s: Node, wrt: Sequence[Node]) -> list[Node]:
    """The gradient of a scalar by each node; zeros where it does not depend on one."""
    one = constant(np.ones((), s.dtype.dtype))
    found = pullback([s], [one], wrt, set(wrt))
    return [full(0, x.type) if g is None else g for g, x in zip(found, wrt, strict=True)]


def _random_like(x: Node, rng: np.random.Generator) -> Node:
    shape = tuple(map(index, x.shape))
    values: Array = rng.uniform(0.5, 1.5, shape)
    if x.dtype.is_complex:
        values = values + 1j * rng.uniform(0.5, 1.5, shape)
    return constant(values.astype(x.dtype.dtype))


def _normal_like(x: Array, rng: np.random.Generator) -> Array:
    values = np.asarray(rng.standard_normal(x.shape))
    return values + 1j * rng.standard_normal(x.shape) if x.dtype.kind == "c" else values


def inner(a: Array, b: Array) -> Any:
    """`Re sum(conj(a) b)`: the change of a real value whose gradient is `a`, along `b`."""
    return np.sum(np.conj(a) * b).real


def difference(
    graph: Graph,
    arrays: Sequence[Array],
    tangents: Mapping[int, Array],
    given: Given | None = None,
) -> list[Array]:
    """The derivative of the outputs along the tangents, by central differences of fourth order."""

    def at(h: float) -> list[Any]:
        moved = [a + h * tangents[i] if i in tangents else a for i, a in enumerate(arrays)]
        if given is not None:
            moved[-1] = given(*moved[:-1])
        return run(graph, moved)

    near = [p - m for p, m in zip(at(STEP), at(-STEP), strict=True)]
    far = [p - m for p, m in zip(at(2 * STEP), at(-2 * STEP), strict=True)]
    return [(8 * n - f) / (12 * STEP) for n, f in zip(near, far, strict=True)]


def compare(what: str, found: Any, expected: Any, tolerance: float = TOLERANCE) -> None:
    """Raise `RuleError` unless the two agree to the tolerance, relative to the larger of 1 and the
    largest finite magnitude expected; NaN agrees with NaN, an infinity with itself."""
    found, expected = np.asarray(found), np.asarray(expected)
    if found.shape != expected.shape:
        raise RuleError(f"{what}: the shape {found.shape} where {expected.shape} is expected")
    if found.dtype.kind in "iub":
        same = bool(np.array_equal(found, expected))
    else:
        tolerance = max(tolerance, 4 * float(_eps(found)))
        wide = np.complex128 if found.dtype.kind == "c" else np.float64
        found, expected = found.astype(wide), expected.astype(wide)
        finite = expected[np.isfinite(expected)]
        scale = max(1.0, float(np.max(np.abs(finite), initial=0)))
        same = np.allclose(found, expected, rtol=0, atol=tolerance * scale, equal_nan=True)
    if not same:
        raise RuleError(f"{what}: found {found}, expected {expected}")


def _eps(x: Array) -> float:
    return {2: 2.0**-7, 4: 2.0**-23, 8: 2.0**-52}[x.real.dtype.itemsize]


def _directions(x: Array, rng: np.random.Generator) -> list[Array]:
    def one() -> Array:
        return rng.uniform(0.5, 1.5, x.shape) * rng.choice([-1.0, 1.0], x.shape)

    return [one() + 1j * one() if x.dtype.kind == "c" else one() for _ in range(2)]


def _subsets(n: int) -> list[tuple[bool, ...]]:
    return [s for s in itertools.product([False, True], repeat=n) if any(s)]


def _stack(x: Array, size: int, vary: Vary) -> Array:
    """Different samples that stay in the op's domain."""
    samples = [vary(x, k).astype(x.dtype) for k in range(size)]
    return np.stack(samples) if size else np.empty((0, *x.shape), x.dtype)
