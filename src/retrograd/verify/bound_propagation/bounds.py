"""`bounds(f, *regions)`: what a program can give for all inputs of a region."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from retrograd import ir, pytree
from retrograd.eager.conversion import as_array
from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.errors import ArgumentError, OptionError, ShapeError, nearest
from retrograd.graph.graph import Graph, trace
from retrograd.ir import Node, TensorType, as_dtype
from retrograd.runtime.backend import bind
from retrograd.verify.bound_propagation.box import Box
from retrograd.verify.bound_propagation.interval import Interval, Rectangle, RoundInterval, known
from retrograd.verify.bound_propagation.propagation import Value, outputs_of
from retrograd.verify.bound_propagation.rules.leaves import entered

Array = np.ndarray[Any, Any]
Method = Callable[..., Sequence[Value]]


class Bounds(NamedTuple):
    """The ends of intervals that hold every value: arrays in float64, in pytrees like the result.

    Where a value may be NaN, in which no interval has a part, they are -inf and inf.
    """

    lower: Any
    upper: Any


METHODS: dict[str, Method] = {}


def method(name: str) -> Callable[[Method], Method]:
    """Enter a way of finding bounds: a function of a graph whose sizes are numbers and of a value
    (`Interval`, `Rectangle`) for each of its inputs, with options, that gives one for each output.
    """

    def enter(f: Method) -> Method:
        METHODS[name] = f
        return f

    return enter


@method("ibp")
def ibp(graph: ir.Graph, regions: Sequence[Value]) -> Sequence[Value]:
    """Interval bound propagation."""
    return outputs_of(graph, regions)


def bounds(f: Any, /, *regions: Any, method: str = "ibp", **options: Any) -> Bounds:
    r"""Numbers that the results of `f` lie between, for all inputs of the regions.

    For every `x` in the regions and every element of the result, `lower <= f(x) <= upper`: of f in
    exact arithmetic, and as a backend computes it in the dtypes of the program. Sums are in the
    order of the library where the current backend keeps to it (llvm, reference, cuda), elsewhere
    (`with rg.backend("xla"):`) in any. Integers wrap as they do in programs.

    `f` is a function, a module or a `Graph`, a gradient for instance: `bounds(rg.grad(f), box)`
    bounds all slopes. Each argument is a `Box` or a point, an array or a number; it may be a
    pytree of these, a module for instance, whose parameters are points then.

    `method="ibp"` goes through the graph with one interval for each element (Gowal et al.,
    arXiv:1810.12715): a few times the cost of a run, and as wide as the same input in two places
    makes it. See `docs/bounds.md` for others, and which rules are tight.

    Gives `Bounds(lower, upper)`. A `Box` or array that does not fit is a `ShapeError` or
    `DTypeError`, an unknown method an `OptionError`.

    >>> import retrograd as rg
    >>> rg.verify.bounds(lambda x: x * x, rg.verify.Box([-1.0], [2.0]))
    Bounds(lower=array([0.]), upper=array([4.]))
    """
    find = METHODS.get(method)
    if find is None:
        raise OptionError(
            f"bounds with method={method!r}: there is no such method{nearest(method, METHODS)}; "
            f"those that there are: {', '.join(METHODS)}"
        )
    graph, values, result = problem(f, regions)
    found = find(graph, values, **options)
    ends = [_ends(value) for value in found]
    return Bounds(result([low for low, _ in ends]), result([high for _, high in ends]))


def problem(
    f: Any, regions: Sequence[Any]
) -> tuple[ir.Graph, list[Value], Callable[[Sequence[Any]], Any]]:
    """The graph of a function with sizes that are numbers, what each of its inputs can be, and how
    its outputs become the result."""
    if isinstance(f, ir.Graph):
        graph, leaves, result = _of_graph(f, regions)
    elif callable(f):
        flat, structure = pytree.flatten(tuple(regions))
        leaves = [x if isinstance(x, Box) else _point(x) for x in flat]
        graph = trace(f, *pytree.unflatten(structure, [_stand_in(x) for x in flat]))
        result = _result_of(graph)
    else:
        raise ArgumentError(
            f"bounds of {f!r:.60}, a {type(f).__name__}: give a function, a module or a Graph, and "
            "a region for each of its arguments"
        )
    sizes = bind(graph.inputs, [x.lower if isinstance(x, Box) else x for x in leaves])
    bound = graph.bind(sizes) if sizes else graph
    values = [region(x, v) for x, v in zip(bound.inputs, leaves, strict=True)]
    return bound, values, result


def region(node: Node, given: Any) -> Value:
    """What an input can be."""
    if not isinstance(given, Box):
        return entered(node, known(given))
    low, high = known(given.lower), known(given.upper)
    if node.dtype.is_inexact:
        found = entered(node, Interval(low.lower, high.upper))  # type: ignore[union-attr]
        return found if given.round is None else RoundInterval(found, given.round)
    return Interval(low.lower, high.upper)  # type: ignore[union-attr]


def _point(value: Any) -> Array:
    return value.value() if isinstance(value, LazyTensor) else as_array(value)


def _stand_in(x: Any) -> Any:
    return TensorType(as_dtype(x.dtype), x.shape) if isinstance(x, Box) else x


def _result_of(graph: ir.Graph) -> Callable[[Sequence[Any]], Any]:
    call = getattr(graph, "_call", None)
    if call is not None and call.result is not None:
        return call.result.of
    return lambda outputs: outputs[0] if len(outputs) == 1 else tuple(outputs)


def _of_graph(
    graph: ir.Graph, regions: Sequence[Any]
) -> tuple[ir.Graph, list[Any], Callable[[Sequence[Any]], Any]]:
    if isinstance(graph, Graph):
        values, as_traced = graph._matched(regions, {})
        result = _result_of(graph) if as_traced else _result_of(ir.Graph((), ()))
    else:
        if len(regions) != len(graph.inputs):
            raise ShapeError(
                f"the graph has {len(graph.inputs)} inputs, and {len(regions)} regions are given"
            )
        values, result = list(regions), _result_of(graph)
    leaves: list[Any] = []
    for x, v in zip(graph.inputs, values, strict=True):
        if isinstance(v, Box) or hasattr(v, "dtype"):
            leaves.append(v if isinstance(v, Box) else _point(v))
        else:
            leaves.append(as_array(v, x.dtype))
    return graph, leaves, result


def _ends(value: Value) -> tuple[Array, Array]:
    """The ends of what is returned: everything, where a value may be NaN."""
    if isinstance(value, Rectangle):
        (a, b), (c, d) = _ends(value.real), _ends(value.imag)
        return a + 1j * c, b + 1j * d
    low, high = value.lower, value.upper
    if value.nan is not False and np.any(value.nan):
        low, high = np.where(value.nan, -np.inf, low), np.where(value.nan, np.inf, high)
    return np.array(low), np.array(high)


__all__ = ["METHODS", "Bounds", "bounds", "method", "problem", "region"]
