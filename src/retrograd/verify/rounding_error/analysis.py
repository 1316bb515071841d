"""`rounding`: how far rounding errors may put off what a graph computes."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from retrograd import ir, pytree
from retrograd.errors import ArgumentError, BackendError, OptionError
from retrograd.graph.explorer import with_backward
from retrograd.graph.graph import Graph, trace
from retrograd.ir import Node, full, substitute
from retrograd.passes.lowering.complex import has_complex, real_graph
from retrograd.passes.lowering.fft import PRODUCTS
from retrograd.passes.rewrite import rewrite
from retrograd.runtime.backend import Array, bind
from retrograd.runtime.paired_program import real_arrays
from retrograd.tracing.arguments import argument
from retrograd.tuning import TUNING
from retrograd.verify.rounding_error import exact
from retrograd.verify.rounding_error.first_order import FirstOrder, first_order
from retrograd.verify.rounding_error.formats import format_of
from retrograd.verify.rounding_error.local_error import LocalError, local_error
from retrograd.verify.rounding_error.nodes import node_errors
from retrograd.verify.rounding_error.report import OutputError, Rounding
from retrograd.verify.rounding_error.stochastic import Spread, beyond_overflow, sampled
from retrograd.verify.rounding_error.straight_line import StraightLine, straight_line

REFERENCES = ("auto", "mpmath", "float64", None)


def rounding(
    f: Any,
    /,
    *inputs: Any,
    gradient: bool = False,
    wrt: Any = None,
    reference: str | None = "auto",
    digits: int = 50,
    samples: int | None = None,
    elements: int | None = None,
    seed: int = 0,
) -> Rounding:
    """The rounding errors of what a graph, a function or a module computes from these inputs.

    The program is run once, and every operation's own rounding error is bounded: by `u |y|` where
    IEEE 754 rounds once, by a few ulp for functions, by `d u sum |x|` for sums of which no term
    goes through more than d additions. With `d[v]` that of node v, an output y is off by at most

        sum over v of |dy / dv| . |d[v]|        to first order,

    which is its `bound`, from one backward pass over the graph, exact about errors that cancel. If
    roundings are independent, it has the standard deviation `sqrt(sum (dy/dv . s[v])^2)`, its
    `std`. An independent estimate of that is the spread of runs with random last bits
    (`samples`; stochastic arithmetic), which has terms of every order. Where the *exact* values
    are known, the true `error` stands beside these.

    `inputs` are those of a call; also one list or tuple of them. `gradient=True` adds the gradient
    of the first output, if that is a real scalar, else of the sum of all outputs, with respect to
    `wrt`, names or nodes of inputs, by default all floating ones: the gradient is a graph as well.
    `elements` is how many elements of a larger output get a bound, those that the samples find
    worst and others spread evenly; `samples` covers all of them, with random numbers from `seed`.

    `reference` says where exact values come from: "mpmath" computes the run in `digits` decimal
    digits (`pip install 'retrograd[verify]'`), "float64" in double precision, None not at all;
    "auto" takes mpmath where that is quick, else float64 for programs in fewer digits.

    Loops are written out: what is said holds for these inputs. Inputs and constants count as
    exact; what is lost by rounding them is told as `inputs` of an output. A comparison or an
    integer that rounding changes is no matter of derivatives, and told as "unstable". Sources:
    Bauer (1974); Vignes (1993); Higham, "Accuracy and Stability of Numerical Algorithms" (2002).

    Raises `ArgumentError` for what is no graph, function or module, `OptionError` for options that
    do not exist, `BackendError` for graphs with functions of Python's, and where mpmath is missing.

    >>> import retrograd as rg
    >>> r = rg.verify.rounding(lambda x: (1 - rg.cos(x)) / (x * x), 1e-3)
    >>> r.worst.kind, r.worst.op, 3 < r.worst.lost < 7
    ('cancellation', 'sub', True)
    >>> bool(r.outputs[0].error <= r.outputs[0].bound)
    True
    >>> print(r.suggest()[0].formula)
    1 - cos(x) -> 2 sin(x / 2)^2
    """
    _check(reference, digits, samples, elements)
    graph, values = _program(f, inputs)
    arrays = [argument(x, v) for x, v in zip(graph.inputs, values, strict=True)]
    settings = _Settings(
        gradient, wrt, reference, digits,
        samples,
        TUNING.rounding_elements if elements is None else elements, seed,
    )  # fmt: skip
    return _analysed(graph, arrays, settings)


class _Settings:
    """The options of an analysis."""

    def __init__(
        self, gradient: bool, wrt: Any, reference: str | None, digits: int, samples: int | None,
        elements: int, seed: int,
    ) -> None:  # fmt: skip
        self.gradient = gradient
        self.wrt = wrt
        self.reference = reference
        self.digits = digits
        self.samples = samples
        self.elements = elements
        self.seed = seed


def _check(reference: str | None, digits: int, samples: int | None, elements: int | None) -> None:
    if reference not in REFERENCES:
        raise OptionError(
            f"reference is one of {', '.join(map(repr, REFERENCES))}, not {reference!r}"
        )
    for name, value, least in (
        ("digits", digits, 1), ("samples", samples, 0), ("elements", elements, 1)
    ):  # fmt: skip
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise OptionError(f"{name} is a whole number of at least {least}, not {value!r}")


def _program(f: Any, inputs: tuple[Any, ...]) -> tuple[Graph, list[Any]]:
    """The graph, and a value for each of its inputs."""
    if isinstance(f, ir.Graph):
        graph = f if isinstance(f, Graph) else Graph(f.inputs, f.outputs, f.name)
        values = graph._given(inputs, {})
        if values is None:
            if graph.inputs:
                names = ", ".join(x.name or "?" for x in graph.inputs)
                raise ArgumentError(f"rounding needs values for the inputs of the graph: {names}")
            values = []
        return graph, values
    if not callable(f):
        raise ArgumentError(
            f"rounding takes a graph, a function or a module, not {type(f).__name__} {f!r:.60}; "
            "give rg.verify.rounding(f, *inputs)"
        )
    args = _spread(f, inputs)
    if pytree.flatten(f)[0] != [f]:  # a module, whose parameters are inputs, too

        def called(model: Any, *args: Any) -> Any:
            return model(*args)

        called.__name__ = type(f).__name__
        graph = trace(called, f, *args)
        return graph, graph._given((f, *args), {}) or []
    graph = trace(f, *args)
    return graph, (graph._given(args, {}) or []) if args else []


def _spread(f: Callable[..., Any], inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of a function, where a list or tuple may stand for all of them."""
    if len(inputs) != 1 or not isinstance(inputs[0], list | tuple):
        return inputs
    try:
        signature = inspect.signature(f)
    except (TypeError, ValueError):  # of what is written in C
        return inputs
    try:
        signature.bind(*inputs[0])
    except TypeError:
        return inputs
    return tuple(inputs[0])


def _joint(graph: Graph, settings: _Settings) -> tuple[Graph, int, list[str]]:
    """The graph with its gradient beside it; how many outputs are its own; names of the others."""
    own = len(graph.outputs)
    if not settings.gradient:
        return graph, own, []
    if settings.wrt is None:
        both = with_backward(graph)
        if both.forward is not None and both.outputs is not None:
            return Graph(graph.inputs, both.graph.outputs, graph.name), own, both.outputs[own:]
    made = graph.gradient(wrt=settings.wrt)
    seeds = made.inputs[len(graph.inputs) :]
    ends = substitute(made.outputs, {s: full(1, s.type) for s in seeds})
    wanted = made._made_of[2] if made._made_of is not None else []
    names = [f"∂{x.name or f'%{x.id}'}" for x in wanted]
    return Graph(graph.inputs, [*graph.outputs, *ends], graph.name), own, names


def _analysed(graph: Graph, arrays: Sequence[Array], settings: _Settings) -> Rounding:
    joint, own, names = _joint(graph, settings)
    run, lowered = _run(joint, arrays)
    local = _local(run)
    samples = _samples(run) if settings.samples is None else settings.samples
    spread = sampled(run, local, samples, settings.seed)
    truth, source = _exact(run, settings)
    beyond = beyond_overflow(run)
    found = []
    felt = _Felt()
    for k, y in enumerate(run.graph.outputs):
        if not y.dtype.is_inexact:
            continue
        name = names[k - own] if k >= own else joint.outputs[k].name or f"output {k}"
        places = _places(run.values[y], spread[y], settings.elements)
        errors = first_order(run, local, y, places, spread)
        known = _Known(truth and truth[k], beyond and beyond[k])
        found.append(_output(name, k >= own, run.values[y], y, places, errors, spread[y], known))
        felt.add(errors)
    nodes = node_errors(lowered, run, spread, felt.shares, felt.through, felt.relative())

    def error_of(changed: ir.Graph) -> float:
        return _error(Graph(changed.inputs, changed.outputs, graph.name), arrays, settings, truth)

    def again(other: Graph) -> Rounding:
        return _analysed(other, arrays, settings)

    return Rounding(graph, joint, list(arrays), found, nodes, source, samples,
                    error_of, again, lambda dtype: _error_in(run, dtype, truth))  # fmt: skip


def _run(graph: Graph, arrays: Sequence[Array]) -> tuple[StraightLine, Graph]:
    """The run of a graph, of complex numbers by their parts, and the graph that it is of."""
    if not has_complex(graph):
        return straight_line(graph, arrays), graph
    known = graph.bind(bind(graph.inputs, arrays)) if graph.dim_names else graph
    # Fourier transforms as products of small matrices: fewer numbers are added in a row by the
    # stages that are run, so that bounds of the products hold for them.
    lowered = rewrite(real_graph(known), PRODUCTS)
    paired = Graph(lowered.inputs, lowered.outputs, graph.name)
    return straight_line(paired, real_arrays(list(arrays))), paired


def _samples(run: StraightLine) -> int:
    """Of short programs more runs: few roundings say little."""
    many = TUNING.rounding_sampled_nodes // max(1, len(run.graph.body))
    return min(8 * TUNING.rounding_samples, max(TUNING.rounding_samples, many))


def _local(run: StraightLine) -> dict[Node, LocalError]:
    values = run.values
    return {n: local_error(n, values[n], [values[x] for x in n.inputs]) for n in run.graph.nodes}


def _exact(run: StraightLine, settings: _Settings) -> tuple[list[Any] | None, str]:
    """The exact outputs and where they are from."""
    want = settings.reference
    if want is None:
        return None, ""
    if want == "mpmath":
        return exact.in_mpmath(run, settings.digits), f"mpmath, {settings.digits} digits"
    if want == "auto" and _is_quick(run):
        try:
            found = exact.in_mpmath(run, settings.digits)
        except BackendError:  # not installed: the next best
            pass
        else:
            return found, f"mpmath, {settings.digits} digits"
    narrow = all(x.dtype.name != "float64" for x in run.graph.nodes if x.dtype.is_float)
    if want == "float64" or narrow:
        return exact.in_dtype(run, np.float64), "float64"
    return None, ""


def _is_quick(run: StraightLine) -> bool:
    known = exact.unknown_to_mpmath(run) is None
    return known and exact.operations(run) <= TUNING.rounding_exact_operations


def _places(value: Any, spread: Spread, most: int) -> list[int]:
    """Elements whose bounds are computed: all of a few, else the worst, the largest, and others
    evenly."""
    n = int(value.size)
    if n <= most:
        return list(range(n))
    size = np.abs(np.asarray(value, np.float64)).reshape(-1)
    with np.errstate(all="ignore"):
        relative = np.nan_to_num(spread.std.reshape(-1) / size, nan=0.0, posinf=0.0)
    worst = np.argsort(-relative, kind="stable")[: most // 2]
    largest = np.argsort(-np.nan_to_num(size), kind="stable")[: most // 8]
    even = np.linspace(0, n - 1, most).astype(int)
    chosen = dict.fromkeys([*map(int, worst), *map(int, largest), *map(int, even)])
    return sorted(list(chosen)[:most])


class _Known(NamedTuple):
    """Of an output: its exact values, and those with the largest number for what overflowed."""

    truth: Any
    beyond: Any


def _output(
    name: str, is_gradient: bool, value: Any, y: Node, places: list[int], errors: FirstOrder,
    spread: Spread, known: _Known,
) -> OutputError:  # fmt: skip
    truth, beyond = known
    flat = np.asarray(value, np.float64).reshape(-1)[places]
    true = None if truth is None else exact.difference(value, truth)
    bound = np.where(np.isfinite(flat), errors.bound, np.inf)
    if beyond is not None:  # no matter of slopes: what lies between is taken instead
        other = np.asarray(beyond, np.float64).reshape(-1)[places]
        with np.errstate(all="ignore"):
            bound = bound + np.where(other == flat, 0.0, np.abs(other - flat))
        bound = np.where(np.isnan(bound), np.inf, bound)
    return OutputError(
        name, is_gradient, y.dtype.name, np.asarray(value), tuple(places), bound, errors.std,
        errors.inputs, spread.std, true, format_of(y.dtype).u, _size(truth),
    )  # fmt: skip


def _size(truth: Any) -> float:
    """The largest of the exact values that are finite."""
    sizes = np.zeros(0) if truth is None else np.abs(exact.floats(truth))
    return float(np.max(np.where(np.isfinite(sizes), sizes, 0.0), initial=0.0))


class _Felt:
    """What outputs feel of the errors of nodes."""

    def __init__(self) -> None:
        self.shares: dict[Node, float] = {}
        self.through: dict[Node, float] = {}
        self._off: dict[Node, float] = {}
        self._size: dict[Node, float] = {}

    def add(self, errors: FirstOrder) -> None:
        """Take in those of one output."""
        for node, bound in errors.by_node.items():
            _at_least(self.shares, node, _part(bound, errors.bound))
        for node, passed in errors.through.items():
            _at_least(self.through, node, np.minimum(_part(passed, errors.std), 1.0))
            for sums, part in ((self._off, passed), (self._size, errors.sizes[node])):
                squares = np.square(_part(part, errors.std))
                sums[node] = sums.get(node, 0.0) + float(squares[np.isfinite(squares)].sum())

    def relative(self) -> dict[Node, float]:
        """The relative error of nodes, elements in the norm in which outputs feel them."""
        return {
            node: min(1.0, math.sqrt(off / self._size[node]))
            for node, off in self._off.items()
            if self._size[node] > 0
        }


def _part(x: Array, of: Array) -> Array:
    """Quotients; 1 where an infinity is a part of an infinity."""
    with np.errstate(all="ignore"):
        found = np.where(x == 0, 0.0, x / of)
    return np.where(np.isnan(found), 1.0, found)


def _at_least(found: dict[Node, float], node: Node, parts: Array) -> None:
    finite = parts[np.isfinite(parts)]
    found[node] = max(found.get(node, 0.0), float(finite.max(initial=0.0)))


# -- errors of changed programs -------------------------------------------------------------------


def _error(
    graph: Graph, arrays: Sequence[Array], settings: _Settings, truth: Sequence[Any] | None
) -> float:
    """The largest error of any output, relative to its largest element: measured where exact
    values are known, else bounded."""
    joint, _, _ = _joint(graph, settings)
    run, _ = _run(joint, arrays)
    if truth is not None:
        return _worst([run.values[y] for y in run.graph.outputs], truth)
    local = _local(run)
    most = 0.0
    for y in run.graph.outputs:
        if not y.dtype.is_inexact or not math.prod(map(int, y.shape)):
            continue
        value = np.asarray(run.values[y], np.float64)
        even = np.linspace(0, value.size - 1, min(value.size, settings.elements)).astype(int)
        errors = first_order(run, local, y, sorted(set(map(int, even))))
        most = max(most, _relative(errors.bound, value))
    return most


def _error_in(run: StraightLine, dtype: Any, truth: Sequence[Any] | None) -> float | None:
    """The same of the run as it is, in another dtype throughout."""
    return None if truth is None else _worst(exact.in_dtype(run, dtype), truth)


def _worst(values: Sequence[Any], truth: Sequence[Any]) -> float:
    pairs = [
        _relative(exact.difference(value, true), exact.floats(true))
        for value, true in zip(values, truth, strict=True)
        if np.asarray(value).dtype.kind not in "biu"
    ]
    return max(pairs, default=0.0)


def _relative(error: Any, value: Any) -> float:
    """The largest error relative to the largest value."""
    worst = float(np.max(error, initial=0.0))
    if not math.isfinite(worst):
        return math.inf
    size = float(np.max(np.abs(value), initial=0.0))
    return worst / size if size else (math.inf if worst else 0.0)
