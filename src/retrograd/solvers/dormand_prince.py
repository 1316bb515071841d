"""One step of the Runge-Kutta method of Dormand and Prince, of order 5 with an error of order 4.

Coefficients: Dormand and Prince, A family of embedded Runge-Kutta formulae, J. Comp. Appl. Math. 6,
1980; continuous output and control of steps: Hairer, Norsett and Wanner, Solving ordinary
differential equations I, section II.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from retrograd.functions.elementwise import abs as magnitude
from retrograd.functions.elementwise import isnan, maximum, minimum, sqrt, stop_gradient, where
from retrograd.functions.manipulation import stack
from retrograd.functions.reductions import max as largest
from retrograd.functions.reductions import mean
from retrograd.functions.tensor.tensor import Tensor

C = (0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1)
A = (
    (),
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
# The difference of the results of order 5 and 4.
E = (71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)
# Of the fourth coefficient of the continuous output.
D = (
    -12715105075 / 11282082432,
    0,
    87487479700 / 32700410799,
    -10690763975 / 1880347072,
    701980252875 / 199316789632,
    -1453857185 / 822651844,
    69997945 / 29380423,
)
SAFETY, SHRINK, GROW, ORDER = 0.9, 0.2, 10.0, 5

Slope = Callable[[Tensor, Tensor], Tensor]  # (t, y) to dy/dt, of a vector


def combined(weights: Sequence[float], slopes: Sequence[Tensor]) -> Any:
    """The sum of slopes, each with its weight; zero weights cost nothing."""
    total: Any = None
    for w, k in zip(weights, slopes, strict=False):
        if w:
            total = w * k if total is None else total + w * k
    return total


def attempt(f: Slope, t: Tensor, y: Tensor, h: Tensor, k1: Tensor) -> tuple[Tensor, list[Tensor]]:
    """The result of a step of size h, and the slopes of its stages, the last at its end."""
    slopes, new = [k1], y
    for c, row in zip(C[1:], A[1:], strict=True):
        new = y + h * combined(row, slopes)
        slopes.append(f(t + c * h, new))
    return new, slopes


def error_of(
    h: Tensor, slopes: Sequence[Tensor], y: Tensor, new: Tensor, rtol: float, atol: float
) -> Tensor:
    """The estimated error of a step relative to the tolerance: 1 is just right. A constant: steps
    are chosen by it, and not differentiated."""
    scale = atol + rtol * maximum(magnitude(y), magnitude(new))
    ratio = h * combined(E, slopes) / scale
    return stop_gradient(sqrt(mean(ratio * ratio)))


def next_step(h: Tensor, error: Tensor) -> Tensor:
    """The step to try next: smaller after an error that is too large, or no number."""
    factor = SAFETY * maximum(error, 1e-10) ** (-1 / ORDER)
    factor = where(isnan(error), SHRINK, minimum(maximum(factor, SHRINK), GROW))
    return h * where(error > 1, minimum(factor, 1.0), factor)


def continuous(h: Tensor, slopes: Sequence[Tensor], y: Tensor, new: Tensor) -> Tensor:
    """Coefficients of the polynomial that runs through a step, stacked."""
    rise = new - y
    bend = h * slopes[0] - rise
    return stack([y, rise, bend, rise - h * slopes[-1] - bend, h * combined(D, slopes)])


def at(theta: Tensor, c: Tensor) -> Tensor:
    """The value of that polynomial at a fraction of the step, of order 4."""
    rest = 1 - theta
    return c[0] + theta * (c[1] + rest * (c[2] + theta * (c[3] + rest * c[4])))


def first_step(
    f: Slope, t: Tensor, y: Tensor, k1: Tensor, sign: Any, rtol: float, atol: float
) -> Tensor:
    """A first step of about the right size (Hairer, Norsett and Wanner, II.4)."""
    scale = atol + rtol * magnitude(y)
    size, slope = _norm(y / scale), _norm(k1 / scale)
    small = where((size < 1e-5) | (slope < 1e-5), 1e-6, 0.01 * size / maximum(slope, 1e-30))
    bend = _norm((f(t + sign * small, y + sign * small * k1) - k1) / scale) / small
    most = maximum(slope, bend)
    found = where(most <= 1e-15, maximum(small * 1e-3, 1e-6), (0.01 / maximum(most, 1e-30)) ** 0.2)
    return stop_gradient(sign * minimum(100 * small, found))


def _norm(x: Tensor) -> Tensor:
    """The root of the mean square, without overflow on the way."""
    top = maximum(largest(magnitude(x)), 1e-30)
    return top * sqrt(mean((x / top) * (x / top)))
