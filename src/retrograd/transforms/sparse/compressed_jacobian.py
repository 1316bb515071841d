"""Jacobians and Hessians of which most elements are zero, as SciPy matrices.

What may be nonzero is read off the graph (`pattern.py`), columns that do not meet are computed in
one product (`coloring.py`), and the products of all colours in one program.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from retrograd import pytree
from retrograd.autodiff import batched, pullback, pushforward, seeds
from retrograd.backend_registry import compile_graph
from retrograd.eager.conversion import as_array
from retrograd.eager.lazy_tensor import LazyTensor, leaf_handle
from retrograd.eager.leaf import LEAKED
from retrograd.eager.modes import current_backend, is_tracing, traced
from retrograd.errors import GradientError, OptionError, ShapeError, TraceError
from retrograd.functions.tensor.tensor import Tensor
from retrograd.graph.graph import captures
from retrograd.ir import Graph, Node, TensorType, as_dtype, full
from retrograd.lazy_import import need
from retrograd.ops.leaf import constant, input_node
from retrograd.ops.shape import expand
from retrograd.runtime.backend import Array, Program
from retrograd.tracing.arguments import argument_names
from retrograd.tracing.scope import ArgNums, need_function, select
from retrograd.transforms.grad import differentiable
from retrograd.transforms.jacobian import need_real, output_nodes
from retrograd.transforms.sparse.coloring import column_colours, star_colours, star_elements
from retrograd.transforms.sparse.control_flow import patterns
from retrograd.transforms.sparse.known_values import KnownValues

REMEMBERED = 16  # patterns of one function, by types of arguments and values of integer ones


class Compressed:
    """A compiled program for the products of a sparse matrix, and where its elements are there."""

    def __init__(
        self,
        shape: tuple[int, int],
        elements: tuple[Array, Array, Array, Array],
        program: Program | None,
        captured: Sequence[Any],
    ) -> None:
        self._shape = shape
        self._rows, self._columns, self._at, self._colour = elements
        self._program = program  # None: there is nothing to compute
        self._captured = captured  # arrays, or handles whose value may have changed

    def matrix(self, arrays: Sequence[Array]) -> Any:
        """The matrix for these values of the inputs, in SciPy's COO format."""
        from scipy import sparse

        if self._program is None:
            return sparse.coo_array(self._shape)
        given = [c.value() if isinstance(c, LazyTensor) else c for c in self._captured]
        blocks = [a.reshape(a.shape[0], -1) for a in self._program([*arrays, *given])]
        products = np.concatenate(blocks, axis=1)  # by colour, then by element
        values = products[self._colour, self._at]
        return sparse.coo_array((values, (self._rows, self._columns)), self._shape)


def sparse_jacobian(f: Callable[..., Any], argnums: ArgNums, form: str) -> Any:
    """See `jacobian`."""
    return _derivative(f, argnums, form, "jacobian", _compressed_jacobian)


def sparse_hessian(f: Callable[..., Any], argnums: ArgNums, form: str) -> Any:
    """See `hessian`."""
    return _derivative(f, argnums, form, "hessian", _compressed_hessian)


def sparse_form(sparse: bool | str, has_aux: bool, what: str) -> str:
    """The format that is asked for, of a matrix."""
    need("scipy.sparse", f"{what} with sparse=True")
    form = "csr" if sparse is True else sparse
    if form not in ("csr", "coo", "csc"):
        raise OptionError(f'{what}: sparse is True, "csr", "csc" or "coo", not {sparse!r}')
    if has_aux:
        raise OptionError(f"{what}: has_aux is not for sparse matrices; call the function again")
    return form


Make = Callable[[Sequence[Node], Sequence[Node], dict[Node, Array], Sequence[Node]], Compressed]


def _derivative(
    f: Callable[..., Any], argnums: ArgNums, form: str, what: str, make: Make
) -> Callable[..., Any]:
    need_function(f, what)
    known: dict[Any, Compressed] = {}

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        numbers = select(args, argnums, what)
        leaves, structure = pytree.flatten((args, kwargs))
        arrays = [_array(x, what) for x in leaves]
        chosen = _chosen(args, kwargs, numbers)
        # Integers decide where elements are, as indices do.
        fixed = [not c and a.dtype.kind in "iub" for c, a in zip(chosen, arrays, strict=True)]
        values = [a.tobytes() if s else b"" for a, s in zip(arrays, fixed, strict=True)]
        kinds = [(a.dtype, a.shape) for a in arrays]
        key = structure, numbers, current_backend(), *zip(kinds, values, strict=True)
        found = known.get(key)
        if found is None:
            wanted = [x for x, c in zip(leaves, chosen, strict=True) if c]
            differentiable(wanted, tuple(args[i] for i in sorted(numbers)), what)
            nodes = [
                constant(a) if s else input_node(TensorType(as_dtype(a.dtype), a.shape), name)
                for a, s, name in zip(arrays, fixed, _names(f, args, kwargs), strict=True)
            ]
            found = _traced(f, structure, nodes, chosen, fixed, what, make)
            if len(known) >= REMEMBERED:
                del known[next(iter(known))]
            known[key] = found
        given = [a for a, s in zip(arrays, fixed, strict=True) if not s]
        return found.matrix(given).asformat(form)

    return call


def _array(x: Any, what: str) -> Array:
    if is_tracing():
        raise TraceError(
            f"{what} with sparse=True gives a matrix of SciPy, which cannot be part of a function "
            "that is traced; call it outside of jit and trace, or leave sparse out"
        )
    return x.value() if isinstance(x, LazyTensor) else as_array(x)


def _chosen(args: Sequence[Any], kwargs: Any, numbers: Sequence[int]) -> list[bool]:
    """For each leaf whether the derivative is with respect to it."""
    found: list[bool] = []
    for i, a in enumerate(args):
        found += [i in numbers] * len(pytree.flatten(a)[0])
    return found + [False] * len(pytree.flatten(kwargs)[0])


def _names(f: Callable[..., Any], args: Sequence[Any], kwargs: Any) -> list[str]:
    return [*argument_names(f, args), *pytree.paths(kwargs)]


def _traced(
    f: Callable[..., Any], structure: Any, nodes: Sequence[Node], chosen: Sequence[bool],
    fixed: Sequence[bool], what: str, make: Make,
) -> Compressed:  # fmt: skip
    """Trace the function and find out all that does not depend on values."""
    try:
        args, kwargs = pytree.unflatten(structure, [Tensor(n) for n in nodes])
        result = traced(f, *args, **kwargs)
    finally:
        LEAKED.update(n for n, s in zip(nodes, fixed, strict=True) if not s)
    outputs = output_nodes(pytree.flatten(result)[0], what)
    inputs = [n for n, s in zip(nodes, fixed, strict=True) if not s]
    wrt = [n for n, c in zip(nodes, chosen, strict=True) if c]
    need_real([*wrt, *outputs], what)
    return make(outputs, wrt, captures(outputs, inputs), inputs)


def _compiled(
    results: Sequence[Node], inputs: Sequence[Node], taken: dict[Node, Array]
) -> tuple[Program, list[Any]]:
    graph = Graph([*inputs, *taken], results)
    captured = [h if (h := leaf_handle(n)) is not None else a for n, a in taken.items()]
    return compile_graph(graph, current_backend()), captured


def _compressed_jacobian(
    outputs: Sequence[Node], wrt: Sequence[Node], taken: dict[Node, Array], inputs: Sequence[Node]
) -> Compressed:
    from scipy import sparse

    found = patterns(outputs, wrt, KnownValues(taken))
    whole = sparse.csr_array(sparse.vstack(found, format="csr"))
    shape = (whole.shape[0], whole.shape[1])
    if whole.nnz == 0:
        return Compressed(shape, _nothing(), None, [])
    columns, rows = column_colours(whole), column_colours(sparse.csr_array(whole.T))
    at, over = sparse.coo_array(whole).coords
    products, forward = _products(outputs, wrt, columns, rows)
    elements = (at, over, at, columns[over]) if forward else (at, over, over, rows[at])
    program, captured = _compiled(products, inputs, taken)
    return Compressed(shape, elements, program, captured)


def _compressed_hessian(
    outputs: Sequence[Node], wrt: Sequence[Node], taken: dict[Node, Array], inputs: Sequence[Node]
) -> Compressed:
    from scipy import sparse

    if len(outputs) != 1:
        raise ShapeError(f"a sparse hessian is that of one scalar, not of {len(outputs)} outputs")
    gradient = pullback(outputs, seeds(outputs), wrt)
    ends = [g for g in gradient if g is not None]
    size = sum(_size(x) for x in wrt)
    found = iter(patterns(ends, wrt, KnownValues(taken)))
    rows = [
        sparse.csr_array((_size(x), size), dtype=bool) if g is None else next(found)
        for x, g in zip(wrt, gradient, strict=True)
    ]
    half = sparse.csr_array(sparse.vstack(rows, format="csr"))
    whole = half + half.T
    if whole.nnz == 0:
        return Compressed((size, size), _nothing(), None, [])
    colours = star_colours(whole)
    filled = _filled(gradient, wrt)
    program, captured = _compiled(_pushed(filled, wrt, colours), inputs, taken)
    return Compressed((size, size), star_elements(whole, colours), program, captured)


def _nothing() -> tuple[Array, Array, Array, Array]:
    none = np.zeros(0, np.int64)
    return none, none, none, none


def _size(node: Node) -> int:
    return int(np.prod([int(d) for d in node.shape], dtype=np.int64))


def _directions(nodes: Sequence[Node], colours: Array) -> list[Node]:
    """For each node the sums of its unit vectors of each colour, along a new axis 0."""
    found, start = [], 0
    count = int(colours.max()) + 1
    for x in nodes:
        size = _size(x)
        own = colours[start : start + size]
        start += size
        stack = np.zeros((count, size), x.dtype.dtype)
        stack[own, np.arange(size)] = 1
        found.append(constant(stack.reshape(count, *x.shape)))
    return found


def _products(
    outputs: Sequence[Node], wrt: Sequence[Node], columns: Array, rows: Array
) -> tuple[list[Node], bool]:
    """The products by forward mode, or by reverse mode if that takes fewer, and whether it is the
    former; by the other mode where a rule is for that only."""
    forward = bool(columns.max() <= rows.max())
    ways = [lambda: _pushed(outputs, wrt, columns), lambda: _pulled(outputs, wrt, rows)]
    try:
        return ways[not forward](), forward
    except GradientError:
        return ways[forward](), not forward


def _pushed(outputs: Sequence[Node], wrt: Sequence[Node], colours: Array) -> list[Node]:
    """Products of the Jacobian with sums of unit vectors of the inputs."""
    tangents = [input_node(x.type) for x in wrt]
    found = pushforward(outputs, wrt, tangents)
    return _stacked(found, outputs, dict(zip(tangents, _directions(wrt, colours), strict=True)))


def _pulled(outputs: Sequence[Node], wrt: Sequence[Node], colours: Array) -> list[Node]:
    """Products of the transposed Jacobian with sums of unit vectors of the outputs."""
    cotangents = [input_node(y.type) for y in outputs]
    found = pullback(outputs, cotangents, wrt)
    return _stacked(found, wrt, dict(zip(cotangents, _directions(outputs, colours), strict=True)))


def _stacked(
    found: Sequence[Node | None], like: Sequence[Node], stacks: dict[Node, Node]
) -> list[Node]:
    size = int(next(iter(stacks.values())).shape[0])
    return [
        n if is_stack else expand(n, (size, *n.shape), (0,))
        for n, is_stack in batched(_filled(found, like), stacks, size)
    ]


def _filled(found: Sequence[Node | None], like: Sequence[Node]) -> list[Node]:
    return [full(0, x.type) if n is None else n for n, x in zip(found, like, strict=True)]
