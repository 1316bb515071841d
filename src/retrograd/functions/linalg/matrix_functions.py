"""Functions of symmetric and hermitian matrices, and the polar decomposition."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from retrograd import pytree
from retrograd.eager.dispatch import ArrayLike, op_function, op_function_of_several
from retrograd.errors import DTypeError, OptionError, ShapeError
from retrograd.functions.broadcasting import as_node, broadcast_to
from retrograd.functions.linalg.operands import matrices
from retrograd.ir import DType, Graph, Node, TensorType, at_least, float32, substitute
from retrograd.ops import elementwise as el
from retrograd.ops.control.matrix_function import matrix_function
from retrograd.ops.elementwise import cast
from retrograd.ops.leaf import input_node
from retrograd.ops.linalg import matrix
from retrograd.ops.linalg import polar as factors
from retrograd.tensor_type import Tensor
from retrograd.tracing.scope import to_node
from retrograd.tracing.subgraph import TracedSubgraph, placed, results

NUMBERS: dict[str, Callable[..., Node]] = {
    "sqrtmh": el.sqrt,
    "invsqrtmh": el.rsqrt,
    "logmh": el.log,
    "expmh": el.exp,
    "powmh": el.pow,
    "absmh": el.abs,
    "signmh": el.sign,
}


def _square(what: str, x: Any) -> Node:
    (node,) = matrices(what, x)
    if node.shape[-1] != node.shape[-2]:
        raise ShapeError(f"{what} takes square matrices, or stacks of them, not {node.type}")
    return node


def _number_of(x: Node) -> DType:
    return x.dtype.real if x.dtype.is_complex else x.dtype


@functools.cache
def _graph(name: str, dtype: DType, count: int) -> Graph:
    inputs = [input_node(TensorType(dtype, ())) for _ in range(count)]
    return Graph(inputs, [NUMBERS[name](*inputs)], name)


def _function(name: str, x: Node, *numbers: Node, clipped: bool = False) -> Node:
    """A function of a matrix by the name of that of numbers; half precision in float32."""
    x = _square(name, x)
    wide = cast(x, float32) if x.dtype.is_half else x
    dtype = _number_of(wide)
    given = [broadcast_to(cast(c, dtype), x.shape[:-2]) for c in numbers]
    graph = _graph(name, dtype, 1 + len(given))
    return cast(matrix_function(graph, wide, (), given, clipped), x.dtype)


def funmh(x: ArrayLike, f: Callable[[Any], Any]) -> Tensor:
    """A function f of symmetric or hermitian matrices `[..., n, n]`: `V diag(f(w)) V^H` for
    `x = V diag(w) V^H`.

    f takes a real number, a tensor of shape `()`, and returns one; it is made of functions of
    retrograd, and may use tensors of shape `()` from around it, in which the result is
    differentiable too. Of a matrix that is not hermitian, `(x + x^H) / 2` is meant.

    Derivatives are exact, to every order that f has, also where eigenvalues are close or equal,
    where those of `V * f(w) @ V^H` by `eigh` are NaN: they are made of divided differences
    `(f(a) - f(b)) / (a - b)`, which are `f'(a)` for equal numbers. That of order k takes `n^(k+1)`
    of them. A kink of f is one of the function of the matrix.

    Spaces that vectors of some eigenvalues span are functions, too: a projection on them is that
    which is 1 at these eigenvalues and 0 at others.

    Raises `ShapeError` where f returns, or uses, what is no single number, `DTypeError` where it
    returns a complex one.

    >>> import retrograd as rg
    >>> x = rg.tensor([[2.0, 1.0], [1.0, 2.0]])
    >>> rg.linalg.funmh(x, lambda w: w**2).tolist()
    [[5.0, 4.0], [4.0, 5.0]]
    >>> rg.linalg.funmh(x, lambda w: w > 2).tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """
    with placed():
        given = _square("funmh", to_node(x, "funmh"))
        wide = cast(given, float32) if given.dtype.is_half else given
        graph, captured = _traced(f, _number_of(wide))
        numbers = [broadcast_to(cast(c, _number_of(wide)), given.shape[:-2]) for c in captured]
        y = cast(matrix_function(graph, wide, (), numbers), given.dtype)
        (found,) = results([y], [given, *captured])
    return found


def _traced(f: Callable[[Any], Any], dtype: DType) -> tuple[Graph, Sequence[Node]]:
    """A function of one number as a graph, and what it uses from around it."""
    number = TensorType(dtype, ())
    body = TracedSubgraph(f, [([number], pytree.flatten(0.0)[1])], "funmh")
    (y,) = body.outputs([body.value], [dtype])
    if y.shape != ():
        raise ShapeError(f"funmh: the function returned {y.type} for a number, not a number")
    if y.dtype.is_complex:
        raise DTypeError(f"funmh: the function returned {y.dtype} for {dtype}, not a real number")
    y = cast(y, dtype)
    captured = body.captured([y])
    for c in captured:
        if c.shape != ():
            raise ShapeError(
                f"funmh: the function uses {c.type} from around it, where numbers are expected: "
                f"{c.describe()}"
            )
    extra = [input_node(number) for _ in captured]
    given = [cast(e, c.dtype) for e, c in zip(extra, captured, strict=True)]
    outputs = substitute([y], dict(zip(captured, given, strict=True)))
    return Graph([*body.inputs, *extra], outputs, body.name), captured


@op_function
def sqrtmh(x: ArrayLike, /) -> Any:
    """The square root of symmetric or hermitian matrices `[..., n, n]` without negative
    eigenvalues: the hermitian y without negative eigenvalues for which `y y = x`.

    Eigenvalues that are negative by rounding count as zero, for others the result is NaN. See
    `funmh`: derivatives are exact, also where eigenvalues are equal; infinite or NaN where x is
    singular. PyTorch calls it `matrix_sqrth`.

    `ShapeError` for matrices that are not square.

    >>> import retrograd as rg
    >>> rg.linalg.sqrtmh(rg.tensor([[5.0, 4.0], [4.0, 5.0]])).numpy().round(4).tolist()
    [[2.0, 1.0], [1.0, 2.0]]
    """
    return _function("sqrtmh", x, clipped=True)


matrix_sqrth = sqrtmh  # PyTorch's name


@op_function
def invsqrtmh(x: ArrayLike, /) -> Any:
    """The inverse of the square root of positive definite matrices: `y y x = I`. See `funmh`.

    `[..., n, n]` to the same. `ShapeError` for matrices that are not square.

    >>> import retrograd as rg
    >>> rg.linalg.invsqrtmh([[4.0, 0.0], [0.0, 0.25]]).tolist()
    [[0.5, 0.0], [0.0, 2.0]]
    """
    return _function("invsqrtmh", x)


@op_function
def logmh(x: ArrayLike, /) -> Any:
    """The logarithm of positive definite matrices: the hermitian y with `expm(y) = x`. See
    `funmh`.

    `[..., n, n]` to the same; NaN where an eigenvalue is negative. `ShapeError` for matrices that
    are not square.

    >>> import retrograd as rg
    >>> rg.linalg.logmh([[1.0, 0.0], [0.0, 2.0]]).tolist()
    [[0.0, 0.0], [0.0, 0.6931]]
    """
    return _function("logmh", x)


@op_function
def expmh(x: ArrayLike, /) -> Any:
    """The exponential of symmetric or hermitian matrices, as `expm`, by eigenvalues. See
    `funmh`.

    `[..., n, n]` to the same. `ShapeError` for matrices that are not square.

    >>> import retrograd as rg
    >>> rg.linalg.expmh([[0.0, 0.0], [0.0, 1.0]]).tolist()
    [[1.0, 0.0], [0.0, 2.7183]]
    """
    return _function("expmh", x)


@op_function
def powmh(x: ArrayLike, p: ArrayLike, /) -> Any:
    """The power `x^p` of positive definite matrices, for a real p, which may be one number for each
    matrix `[...]`; of others where the eigenvalues have such a power. See `funmh`.

    `[..., n, n]` to the same. `ShapeError` for matrices that are not square.

    >>> import retrograd as rg
    >>> rg.linalg.powmh(rg.tensor([[4.0, 0.0], [0.0, 9.0]]), 0.5).tolist()
    [[2.0, 0.0], [0.0, 3.0]]
    """
    (x,) = matrices("powmh", x)
    return _function("powmh", x, as_node(p, _number_of(x)))


@op_function
def absmh(x: ArrayLike, /) -> Any:
    """The absolute value of symmetric or hermitian matrices: the square root of `x x`. See
    `funmh`.

    `[..., n, n]` to the same. `ShapeError` for matrices that are not square.

    >>> import retrograd as rg
    >>> rg.linalg.absmh([[-2.0, 0.0], [0.0, 3.0]]).tolist()
    [[2.0, 0.0], [0.0, 3.0]]
    """
    return _function("absmh", x)


@op_function
def signmh(x: ArrayLike, /) -> Any:
    """The sign of symmetric or hermitian matrices: the difference of the projections on the spaces
    of positive and of negative eigenvalues. See `funmh`.

    `[..., n, n]` to the same. `ShapeError` for matrices that are not square.

    >>> import retrograd as rg
    >>> rg.linalg.signmh([[-2.0, 0.0], [0.0, 3.0]]).tolist()
    [[-1.0, 0.0], [0.0, 1.0]]
    """
    return _function("signmh", x)


class PolarResult(NamedTuple):
    """What `polar` returns."""

    U: Tensor
    P: Tensor


@op_function_of_several
def polar(x: ArrayLike, /, *, side: str = "right") -> PolarResult:
    """The polar decomposition `x = U P` of matrices `[..., m, n]`, with `side="left"` `x = P U`.

    U is `[..., m, n]` with orthonormal columns, or rows if it is wide; P is hermitian without
    negative eigenvalues, `[..., n, n]`, on the left `[..., m, m]`. U is the nearest such matrix to
    x; it is unique where x has full rank.

    Derivatives are exact, to every order, also where singular values are equal, where those of the
    product `U Vh` of factors of `svd` are NaN. They exist where x has full rank; NaN elsewhere.

    `OptionError` for another side, `ShapeError` for an array of less than two axes.

    >>> import retrograd as rg
    >>> u, p = rg.linalg.polar(rg.tensor([[0.0, -2.0], [3.0, 0.0]]))
    >>> u.tolist(), p.tolist()
    ([[0.0, -1.0], [1.0, 0.0]], [[3.0, 0.0], [0.0, 2.0]])
    """
    (x,) = matrices("polar", x)
    if side not in ("right", "left"):
        raise OptionError(f"polar's side is 'right' or 'left', not {side!r}")
    given = cast(x, float32) if x.dtype.is_half else x
    m, n = x.shape[-2:]
    u = factors.polar(given) if at_least(m, n) else _adjoint_of(factors.polar, given)
    turned = matrix.adjoint(u)
    p = matrix.product(turned, given) if side == "right" else matrix.product(given, turned)
    return PolarResult._make((cast(u, x.dtype), cast(matrix.symmetric(p), x.dtype)))


def _adjoint_of(f: Callable[[Node], Node], x: Node) -> Node:
    return matrix.adjoint(f(matrix.adjoint(x)))
