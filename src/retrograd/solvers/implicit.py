"""Functions that equations define: roots and fixed points, differentiated by the implicit function
theorem and not through the iterations that found them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

import numpy as np

from retrograd import pytree
from retrograd.errors import DTypeError, OptionError, ShapeError
from retrograd.functions.creation import tensor
from retrograd.functions.dtypes import finfo
from retrograd.functions.elementwise import abs as magnitude
from retrograd.functions.elementwise import isfinite, logical_not, maximum, stop_gradient
from retrograd.functions.linalg import solve
from retrograd.functions.reductions import max as largest
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import substitute
from retrograd.solvers.flat import flat
from retrograd.tracing.scope import need_function, wanted
from retrograd.tracing.subgraph import TracedSubgraph, graph_of, results
from retrograd.transforms.control_flow import while_loop
from retrograd.transforms.custom_rules import implicit_vjp
from retrograd.transforms.grad import vjp
from retrograd.transforms.jacobian import jacfwd, jacrev

HALVINGS = 1e-6  # the shortest part of a Newton step that is tried


class ClosedFunction:
    """A function of a tree as one of a vector, with what it uses from around it as arguments."""

    def __init__(self, f: Callable[[Any], Any], x0: Any, what: str) -> None:
        body = self._traced(f, x0, what)
        if body.value.dtype is not self.dtype:  # Python's numbers take the dtype of what they meet
            leaves, structure = pytree.flatten(x0)
            kind = body.value.dtype
            new = [tensor(x, kind) if isinstance(x, int | float) else x for x in leaves]
            body = self._traced(f, pytree.unflatten(structure, new), what)
        start, ends = self.start, body.outputs([body.value], [self.dtype])
        if ends[0].dtype is not self.dtype:
            raise DTypeError(
                f"{what}: the function returns {ends[0].dtype} for {self.dtype}; start with "
                f"{ends[0].dtype}, as the solution will be"
            )
        if ends[0].shape != start.shape:
            raise ShapeError(
                f"{what}: the function has {start.shape[0]} unknowns and returns "
                f"{ends[0].shape[0]} numbers; there have to be as many"
            )
        captured = body.captured(ends)
        self._graph = graph_of(body.inputs, ends, captured, body.name)
        self.around = [Tensor(n, wanted(n)) for n in captured]

    def _traced(self, f: Callable[[Any], Any], x0: Any, what: str) -> TracedSubgraph:
        need_function(f, what)
        start, self.back = flat(x0, what)
        self.start = stop_gradient(start)
        self.dtype = start.dtype

        def of_vector(v: Tensor) -> Tensor:
            return flat(f(self.back(v)), f"{what}: what the function returns")[0]

        return TracedSubgraph(of_vector, [([start.node.type], pytree.flatten(start)[1])], what)

    def __call__(self, v: Tensor, *around: Tensor) -> Any:
        nodes = [*[a.node for a in around], v.node]
        known = dict(zip(self._graph.inputs, nodes, strict=True))
        return results(substitute(self._graph.outputs, known), nodes)[0]


@overload
def root(
    f: Callable[[Any], Any],
    x0: Tensor | np.ndarray[Any, Any] | float,
    *,
    tol: float | None = ...,
    max_steps: int = ...,
) -> Tensor: ...
@overload
def root(
    f: Callable[[Any], Any], x0: Any, *, tol: float | None = ..., max_steps: int = ...
) -> Any: ...
def root(f: Callable[[Any], Any], x0: Any, *, tol: float | None = None, max_steps: int = 50) -> Any:
    """A solution x of `f(x) = 0` near `x0`, a tree of floating arrays; f returns as many numbers.

    Newton's method with the exact Jacobian, of which shorter steps are taken while they make the
    largest residual smaller. Ends where that is within `tol`, by default `eps**(2/3)` of the dtype
    times the largest at x0, or of 1 if that is larger.

    Derivatives, of any order and mode, in everything that f uses from around it, are those of the
    implicit function theorem: `dx = -(df/dx)^-1 df`. They do not depend on x0 or the steps, and
    need no memory for them.

    Raises `LoopLimitError` if `max_steps` steps are not enough, `LinAlgError` where the Jacobian is
    singular, `ShapeError` if there are not as many equations as unknowns.

    The solution has the structure, shapes and dtypes of `x0`.

    >>> import retrograd as rg
    >>> sqrt = lambda a: rg.root(lambda x: x * x - a, 1.0)
    >>> sqrt(rg.tensor(2.0, rg.float64)).item()
    1.4142135...
    >>> rg.grad(sqrt)(rg.tensor(4.0, rg.float64)).item()
    0.25
    """
    g = ClosedFunction(f, x0, "root")
    limit = _tolerance(tol, g.dtype)

    def found(v0: Tensor, *around: Tensor) -> Tensor:
        def residual(v: Tensor) -> Tensor:
            return g(v, *around)

        def step(state: Any) -> Any:
            v, r, goal = state
            d = solve(jacfwd(residual)(v), -r)

            def worse(s: Any) -> Any:
                better = _size(s[1]) <= (1 - 1e-4 * s[0]) * _size(r)
                return logical_not(better) & (s[0] > HALVINGS)

            def halve(s: Any) -> Any:
                return s[0] / 2, residual(v + (s[0] / 2) * d)

            t, new = while_loop(worse, halve, (goal * 0 + 1, residual(v + d)))
            return v + t * d, new, goal

        r = residual(v0)
        goal = limit * maximum(_size(r), 1.0) if tol is None else _size(r) * 0 + limit
        state = while_loop(
            lambda s: logical_not((_size(s[1]) <= s[2]) & isfinite(_size(s[1]))),
            step,
            (v0, r, goal),
            max_steps,
        )
        return state[0]

    def fwd(v0: Tensor, *around: Tensor) -> Any:
        x = implicit(v0, *around)
        return x, (x, around)

    def bwd(kept: Any, cotangent: Tensor) -> Any:
        x, around = kept
        slope = jacrev(lambda v: g(v, *around))(x)
        back = vjp(lambda *a: g(x, *a), *around)[1] if around else lambda _: ()
        return (None, *back(solve(slope.T, -cotangent)))

    implicit = implicit_vjp(found, fwd, bwd)
    return g.back(implicit(g.start, *g.around))


@overload
def fixed_point(
    f: Callable[[Any], Any],
    x0: Tensor | np.ndarray[Any, Any] | float,
    *,
    tol: float | None = ...,
    max_steps: int = ...,
) -> Tensor: ...
@overload
def fixed_point(
    f: Callable[[Any], Any], x0: Any, *, tol: float | None = ..., max_steps: int = ...
) -> Any: ...
def fixed_point(
    f: Callable[[Any], Any], x0: Any, *, tol: float | None = None, max_steps: int = 1000
) -> Any:
    """The x with `x = f(x)` that `x0, f(x0), f(f(x0)), ...` comes to, a tree of floating arrays.

    Ends where the largest change of a step is within `tol`, by default `eps**(2/3)` of the dtype,
    times the largest element, or 1 if that is larger.

    Derivatives, of any order and mode, in everything that f uses from around it, are those of the
    implicit function theorem. The cotangent is a fixed point, too: `c = g + (df/dx)^T c`, and is
    found by as many steps; no matrix is made.

    Raises `LoopLimitError` if `max_steps` steps are not enough, as where they lead to infinity.

    The solution has the structure, shapes and dtypes of `x0`.

    >>> import retrograd as rg
    >>> x = rg.fixed_point(rg.cos, rg.tensor(1.0, rg.float64))
    >>> round(x.item(), 9)
    0.739085133
    """
    g = ClosedFunction(f, x0, "fixed_point")
    limit = _tolerance(tol, g.dtype)

    def found(v0: Tensor, *around: Tensor) -> Tensor:
        def moving(state: Any) -> Any:
            v, new = state
            size = _size(new)
            return logical_not((_size(new - v) <= limit * maximum(size, 1.0)) & isfinite(size))

        def step(state: Any) -> Any:
            return state[1], g(state[1], *around)

        return while_loop(moving, step, (v0, g(v0, *around)), max_steps)[1]

    def fwd(v0: Tensor, *around: Tensor) -> Any:
        x = implicit(v0, *around)
        return x, (x, around)

    def bwd(kept: Any, cotangent: Tensor) -> Any:
        x, around = kept
        in_x = vjp(lambda v: g(v, *around), x)[1]
        c = fixed_point(lambda c: cotangent + in_x(c)[0], cotangent, tol=tol, max_steps=max_steps)
        back = vjp(lambda *a: g(x, *a), *around)[1] if around else lambda _: ()
        return (None, *back(c))

    implicit = implicit_vjp(found, fwd, bwd)
    return g.back(implicit(g.start, *g.around))


def _size(x: Tensor) -> Any:
    return largest(magnitude(x))


def _tolerance(tol: float | None, dtype: Any) -> float:
    if tol is None:
        return float(finfo(dtype).eps) ** (2 / 3)
    if not tol > 0:
        raise OptionError(f"tol is positive, not {tol!r}")
    return float(tol)
