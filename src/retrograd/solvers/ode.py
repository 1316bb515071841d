"""Initial value problems of ordinary differential equations."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any, overload

import numpy as np

from retrograd import pytree
from retrograd.errors import OptionError, ShapeError
from retrograd.functions.creation import tensor
from retrograd.functions.elementwise import astype, stop_gradient, where
from retrograd.functions.manipulation import broadcast_to, concat, stack
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import substitute
from retrograd.solvers.dormand_prince import (
    Slope,
    at,
    attempt,
    continuous,
    error_of,
    first_step,
    next_step,
)
from retrograd.solvers.flat import flat
from retrograd.tracing.scope import need_arguments, need_function, wanted
from retrograd.tracing.subgraph import TracedSubgraph, graph_of, results
from retrograd.transforms.control_flow import scan, while_loop
from retrograd.transforms.custom_rules import implicit_vjp
from retrograd.transforms.grad import vjp
from retrograd.transforms.vmap import vmap

GRADIENTS = ("discrete", "adjoint")
TIMES = ("t", "time", "times", "tau")  # names of a time


@overload
def odeint(
    f: Callable[[Any, Any], Any],
    y0: Tensor | np.ndarray[Any, Any] | float,
    ts: Any,
    *,
    rtol: float = ...,
    atol: float = ...,
    max_steps: int = ...,
    gradient: str = ...,
    tfirst: bool | None = ...,
) -> Tensor: ...
@overload
def odeint(
    f: Callable[[Any, Any], Any],
    y0: Any,
    ts: Any,
    *,
    rtol: float = ...,
    atol: float = ...,
    max_steps: int = ...,
    gradient: str = ...,
    tfirst: bool | None = ...,
) -> Any: ...
def odeint(
    f: Callable[[Any, Any], Any],
    y0: Any,
    ts: Any,
    *,
    rtol: float = 1e-6,
    atol: float = 1e-9,
    max_steps: int = 10_000,
    gradient: str = "discrete",
    tfirst: bool | None = None,
) -> Any:
    """The solution of `dy/dt = f(t, y)`, `y(ts[0]) = y0`, at the times `ts`.

    f takes the time first, as in `scipy.integrate.solve_ivp` and torchdiffeq. For a function
    `f(y, t)`, as SciPy's and JAX's `odeint` have it, say `tfirst=False`; one whose second parameter
    is named `t` or `time` and the first is not is an `OptionError` unless `tfirst` is given.

    `y0` is a tree of floating arrays, and f returns one like it. The result is such a tree with a
    new first axis for the times, which rise or fall; the first entry is y0.

    Steps are those of Dormand and Prince's method of order 5 (see `dormand_prince`), chosen so that
    the estimated error of each, as a root mean square, is within `atol + rtol * |y|`; values
    between steps come from a polynomial of order 4. The whole integration is one compiled loop. It
    can be batched by `vmap`, in which each sample has steps of its own.

    Gradients are in y0, ts, and all that f uses from around it. With `gradient="discrete"` they
    are those of the steps that were made, with their sizes taken as constants: exact for the
    numbers that are returned, of any order, in reverse and forward mode; reverse mode records the
    state at every step. With `gradient="adjoint"` reverse mode solves the adjoint equation
    `da/dt = -(df/dy)^T a` backwards between the times instead, to the same tolerance: its memory
    does not grow with the number of steps, and the gradient is that of the exact solution, up to
    the tolerance. There is no forward mode, as the steps of that equation depend on the cotangent.

    More than `max_steps` steps, rejected ones too, between two times raise a `LoopLimitError`; the
    problem is then stiff, the tolerance too small for the dtype, or f gives NaN.

    `ts` is `[T]`, leaves `[...]` of y0 give `[T, ...]`.

    >>> import retrograd as rg
    >>> y = rg.odeint(lambda t, y: -2.0 * y, rg.tensor(1.0, rg.float64), [0.0, 1.0])
    >>> round(y[-1].item(), 7)  # exp(-2)
    0.1353353
    """
    if not (rtol >= 0 and atol >= 0 and rtol + atol > 0):
        raise OptionError(f"tolerances are not negative, and not both 0: rtol={rtol}, atol={atol}")
    if gradient not in GRADIENTS:
        raise OptionError(f"gradient is one of {GRADIENTS}, not {gradient!r}")
    need_function(f, "odeint")
    f = _time_first(f, tfirst)
    need_arguments(f, (ts, y0), "odeint")
    y, back = flat(y0, "odeint")
    times = ts if isinstance(ts, Tensor) else tensor(ts)
    if len(times.shape) != 1 or times.shape[0] == 0:
        raise ShapeError(f"odeint: ts is a row of one or more times, not of shape {times.shape}")
    _check_order(times)
    times = astype(times, y.dtype)

    def slope(t: Tensor, v: Tensor) -> Tensor:
        found = f(t, back(v))
        _check_like(found, y0)
        return astype(flat(found, "odeint: what f returns")[0], y.dtype)

    def solve(slope: Slope, y: Tensor, times: Tensor) -> Tensor:
        return _integrated(slope, y, times, rtol, atol, max_steps)

    if y.shape == (0,):  # there is nothing to solve, and no error to measure
        return vmap(back)(broadcast_to(y, (times.shape[0], 0)))
    if gradient == "discrete":
        return vmap(back)(solve(slope, y, times))
    return vmap(back)(_with_adjoint(slope, y, times, solve))


def _time_first(f: Callable[[Any, Any], Any], tfirst: bool | None) -> Callable[[Any, Any], Any]:
    """f with the time as its first argument."""
    if tfirst is None:
        names = [*signature(f).parameters][:2] if _has_signature(f) else []
        if len(names) == 2 and names[1] in TIMES and names[0] not in TIMES:
            raise OptionError(
                f"odeint calls f(t, y), and the parameters of this f are {names[0]!r} and "
                f"{names[1]!r}: give tfirst=False for a function f(y, t), tfirst=True to have it "
                "called as it is"
            )
    return f if tfirst is None or tfirst else lambda t, y: f(y, t)


def _has_signature(f: Any) -> bool:
    try:
        signature(f)
    except (TypeError, ValueError):  # written in C
        return False
    return True


def _integrated(
    slope: Slope, y: Tensor, times: Tensor, rtol: float, atol: float, max_steps: int
) -> Tensor:
    """The solution at all times, stacked."""
    direction = astype(stop_gradient(where(times[-1] >= times[0], 1.0, -1.0)), y.dtype)
    t0 = times[0]
    k1 = slope(t0, y)
    h = first_step(slope, t0, y, k1, direction, rtol, atol)
    start = (t0, y, h, k1, t0, h * 0 + 1, continuous(h * 0, [k1 * 0] * 7, y, y))

    def step(state: Any) -> Any:
        t, y, h, k1, before, length, poly = state
        new, slopes = attempt(slope, t, y, h, k1)
        error = error_of(h, slopes, y, new, rtol, atol)
        ok = error <= 1
        made = (t + h, new, next_step(h, error), slopes[-1], t, h, continuous(h, slopes, y, new))
        kept = (t, y, next_step(h, error), k1, before, length, poly)
        return tuple([where(ok, a, b) for a, b in zip(made, kept, strict=True)])

    def reach(state: Any, target: Tensor) -> tuple[Any, Tensor]:
        state = while_loop(lambda s: (target - s[0]) * direction > 0, step, state, max_steps)
        return state, at((target - state[4]) / state[5], state[6])

    _, rows = scan(reach, start, times[1:])
    return concat([broadcast_to(y, (1, *y.shape)), rows])


def _with_adjoint(
    slope: Slope, y: Tensor, times: Tensor, solve: Callable[[Slope, Tensor, Tensor], Tensor]
) -> Tensor:
    """The solution, with a reverse rule that solves the adjoint equation."""
    field = _Field(slope, times[0], y)

    def forward(y: Tensor, times: Tensor, *around: Tensor) -> Tensor:
        return solve(lambda t, v: field(t, v, *around), y, times)

    def fwd(y: Tensor, times: Tensor, *around: Tensor) -> Any:
        rows = forward(y, times, *around)
        return rows, (rows, times, around)

    def bwd(kept: Any, g: Tensor) -> Any:
        rows, times, around = kept
        moving = [w for w in around if w.dtype.is_inexact]
        n = rows.shape[1]
        sums, apart = flat(tuple([0 * w for w in moving]), "odeint") if moving else (None, None)

        def of(t: Tensor, v: Tensor, *new: Tensor) -> Tensor:
            rest = iter(new)
            return field(t, v, *[next(rest) if w.dtype.is_inexact else w for w in around])

        def augmented(t: Tensor, state: Tensor) -> Tensor:
            """Slopes of y, of its adjoint, and of the gradients in what f uses."""
            dy, back = vjp(lambda v, *new: of(t, v, *new), state[:n], *moving)
            found = back(state[n : 2 * n])
            parts = [dy, -found[0]]
            return concat([*parts, -flat(found[1:], "odeint")[0]] if moving else parts)

        def interval(carry: Any, x: Any) -> tuple[Any, Tensor]:
            a, q = carry
            end, begin, y_end, y_begin, g_begin = x
            state = concat([y_end, a] if q is None else [y_end, a, q])
            final = solve(augmented, state, stack([end, begin]))[1]
            a = final[n : 2 * n]
            slope_there = (a * of(begin, y_begin, *moving)).sum()
            return (a + g_begin, None if q is None else final[2 * n :]), slope_there

        xs = (times[1:], times[:-1], rows[1:], rows[:-1], g[:-1])
        (a, q), into = scan(interval, (g[-1], sums), xs, reverse=True)
        own = vmap(lambda t, v, c: (c * of(t, v, *moving)).sum())(times, rows, g)
        first = 0 * own[:1] - into[:1] if rows.shape[0] > 1 else 0 * own[:1]
        gradients = iter(apart(q) if apart is not None else ())
        found = [next(gradients) if w.dtype.is_inexact else None for w in around]
        return (a, concat([first, own[1:]]), *found)

    forward.__name__ = "odeint with gradient='adjoint'"
    return implicit_vjp(forward, fwd, bwd)(y, times, *field.around)


class _Field:
    """A slope, closed: what it uses from around it are arguments."""

    def __init__(self, slope: Slope, t: Tensor, y: Tensor) -> None:
        types = [([x.node.type], pytree.flatten(x)[1]) for x in (t, y)]
        body = TracedSubgraph(slope, types, "odeint")
        ends = body.outputs([body.value], [y.dtype])
        captured = body.captured(ends)
        self._graph = graph_of(body.inputs, ends, captured, "slope")
        self.around = [Tensor(n, wanted(n)) for n in captured]

    def __call__(self, t: Tensor, v: Tensor, *around: Tensor) -> Tensor:
        nodes = [*[a.node for a in around], t.node, v.node]
        known = dict(zip(self._graph.inputs, nodes, strict=True))
        found: Tensor = results(substitute(self._graph.outputs, known), nodes)[0]
        return found


def _check_order(times: Tensor) -> None:
    """The times rise or fall, as far as that can be seen: what is traced has no values yet."""
    if not times.is_computed:
        return
    steps = np.diff(times.detach().numpy())
    if np.any(steps > 0) and np.any(steps < 0):
        first = steps[steps != 0][0]
        k = int(np.argmax(steps * first < 0)) + 1
        raise OptionError(
            f"odeint: the times ts rise or fall throughout, but number {k} of them turns back: "
            f"{times.numpy().tolist()!s:.80}; sort them, or integrate twice"
        )


def _check_like(found: Any, y0: Any) -> None:
    """What f returns has the structure and shapes of y0."""
    leaves, structure = pytree.flatten(found)
    expected, other = pytree.flatten(y0)
    if structure != other:
        raise ShapeError(f"odeint: f returns a tree like y0, {other}, not {structure}")
    for x, y in zip(leaves, expected, strict=True):
        a, b = (v.shape if isinstance(v, Tensor) else tensor(v).shape for v in (x, y))
        if a != b:
            raise ShapeError(f"odeint: f returns shapes like those of y0, {b}, not {a}")
