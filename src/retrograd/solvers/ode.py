"""Initial value problems of ordinary differential equations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from retrograd.errors import OptionError, ShapeError
from retrograd.frontend import tree
from retrograd.frontend.control import scan, while_loop
from retrograd.frontend.creation import tensor
from retrograd.frontend.elementwise import astype, stop_gradient, where
from retrograd.frontend.manipulation import broadcast_to, concat
from retrograd.frontend.tensor import Tensor
from retrograd.frontend.transforms import vmap
from retrograd.solvers.dormand_prince import (
    at,
    attempt,
    continuous,
    error_of,
    first_step,
    next_step,
)
from retrograd.solvers.flat import flat


def odeint(
    f: Callable[[Any, Any], Any],
    y0: Any,
    ts: Any,
    *,
    rtol: float = 1e-6,
    atol: float = 1e-9,
    max_steps: int = 10_000,
) -> Any:
    """The solution of `dy/dt = f(t, y)`, `y(ts[0]) = y0`, at the times `ts`.

    `y0` is a tree of floating arrays, and f returns one like it. The result is such a tree with a
    new first axis for the times, which rise or fall; the first entry is y0.

    Steps are those of Dormand and Prince's method of order 5 (see `dormand_prince`), chosen so that
    the estimated error of each, as a root mean square, is within `atol + rtol * |y|`; values
    between steps come from a polynomial of order 4. The whole integration is one compiled loop. It
    can be batched by `vmap`, in which each sample has steps of its own.

    Gradients, of any order, of reverse or forward mode, in y0, ts, and all that f uses, are those
    of the steps that were made, with their sizes taken as constants: exact for the numbers that are
    returned. Reverse mode records the state at every step.

    More than `max_steps` steps, rejected ones too, between two times raise a `LoopLimitError`; the
    problem is then stiff, the tolerance too small for the dtype, or f gives NaN.

    >>> import retrograd as rg
    >>> y = rg.odeint(lambda t, y: -2.0 * y, rg.tensor(1.0, rg.float64), [0.0, 1.0])
    >>> round(y[-1].item(), 7)  # exp(-2)
    0.1353353
    """
    if not (rtol >= 0 and atol >= 0 and rtol + atol > 0):
        raise OptionError(f"tolerances are not negative, and not both 0: rtol={rtol}, atol={atol}")
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

    if y.shape == (0,):  # there is nothing to solve, and no error to measure
        return vmap(back)(broadcast_to(y, (times.shape[0], 0)))
    direction = stop_gradient(where(times[-1] >= times[0], 1.0, -1.0))
    direction = astype(direction, y.dtype)
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
    every = concat([broadcast_to(y, (1, *y.shape)), rows])
    return vmap(back)(every)


def _check_order(times: Tensor) -> None:
    """The times rise or fall, as far as that can be seen: what is traced has no values yet."""
    if not times.is_computed:
        return
    steps = np.diff(times.numpy())
    if np.any(steps > 0) and np.any(steps < 0):
        first = steps[steps != 0][0]
        k = int(np.argmax(steps * first < 0)) + 1
        raise OptionError(
            f"odeint: the times ts rise or fall throughout, but number {k} of them turns back: "
            f"{times.numpy().tolist()!s:.80}; sort them, or integrate twice"
        )


def _check_like(found: Any, y0: Any) -> None:
    """What f returns has the structure and shapes of y0."""
    leaves, structure = tree.flatten(found)
    expected, other = tree.flatten(y0)
    if structure != other:
        raise ShapeError(f"odeint: f returns a tree like y0, {other}, not {structure}")
    for x, y in zip(leaves, expected, strict=True):
        a, b = (v.shape if isinstance(v, Tensor) else tensor(v).shape for v in (x, y))
        if a != b:
            raise ShapeError(f"odeint: f returns shapes like those of y0, {b}, not {a}")
