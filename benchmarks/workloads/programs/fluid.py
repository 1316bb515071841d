"""The fluid simulation of HIPS autograd's examples: the start that becomes a picture, by descent.

Advection looks up the four cells around where the flow came from, projection removes divergence by
Jacobi's method. `rg.grad` is used without `jit`, as `autograd` is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness.workload import Session, Workload, loop

SIDE, STEPS, SWEEPS, LR = 40, 10, 10, 1e-1
Array = Any


def target() -> Array:
    y, x = np.mgrid[:SIDE, :SIDE] / SIDE - 0.5
    return ((x**2 + y**2 < 0.1) & (x**2 + y**2 > 0.03)).astype(float)


def project(lib: Any, vx: Array, vy: Array) -> tuple[Array, Array]:
    """The velocity without its divergence."""
    h = 1.0 / SIDE
    across, down = lambda a, n: lib.roll(a, n, 0), lambda a, n: lib.roll(a, n, 1)
    divergence = -0.5 * h * (across(vx, -1) - across(vx, 1) + down(vy, -1) - down(vy, 1))
    p = divergence * 0.0
    for _ in range(SWEEPS):
        p = (divergence + across(p, 1) + across(p, -1) + down(p, 1) + down(p, -1)) / 4.0
    return (
        vx - 0.5 * (across(p, -1) - across(p, 1)) / h,
        vy - 0.5 * (down(p, -1) - down(p, 1)) / h,
    )


def grid() -> tuple[Array, Array, Array]:
    """Row and column of each cell, and the smoke at the start."""
    rows, columns = np.mgrid[:SIDE, :SIDE].astype(float)
    return rows, columns, rows / SIDE


def advect(lib: Any, whole: Callable[[Array], Array], f: Array, x: Array, y: Array) -> Array:
    """What comes to each cell from (x, y), between four others; `whole` makes indices."""
    left, top = lib.floor(x), lib.floor(y)
    right, bottom = x - left, y - top
    i, j = whole(left) % SIDE, whole(top) % SIDE
    i_next, j_next = (i + 1) % SIDE, (j + 1) % SIDE
    return (1 - right) * ((1 - bottom) * f[i, j] + bottom * f[i, j_next]) + right * (
        (1 - bottom) * f[i_next, j] + bottom * f[i_next, j_next]
    )


def loss_of(lib: Any, whole: Callable[[Array], Array], arrays: Any, start: Array) -> Array:
    """`arrays` are the picture and the grid."""
    wanted, rows, columns, smoke = arrays
    vx, vy = start[0], start[1]
    for _ in range(STEPS):
        x, y = rows - SIDE * vx, columns - SIDE * vy
        vx, vy = project(lib, *(advect(lib, whole, v, x, y) for v in (vx, vy)))
        x, y = rows - SIDE * vx, columns - SIDE * vy
        smoke = advect(lib, whole, smoke, x, y)
    return ((smoke - wanted) ** 2).mean()


def start() -> Array:
    return 0.02 * np.random.default_rng(0).normal(0, 1, (2, SIDE, SIDE))


def descent(value_and_grad: Callable[[Array], Any], given: Array, number: Any) -> Session:
    def step(x: Array) -> Any:
        value, slope = value_and_grad(x)
        return x - LR * slope, value

    return loop(step, given, [()], number)


def with_retrograd(compiled: bool = False) -> Session:
    import retrograd as rg

    arrays = [rg.tensor(a) for a in (target(), *grid())]

    def loss(x: Array) -> Array:
        return loss_of(rg, lambda a: rg.stop_gradient(a).astype(rg.int64), arrays, x)

    f = rg.value_and_grad(loss)
    return descent(rg.jit(f) if compiled else f, rg.tensor(start()), lambda v: v.item())


def with_autograd() -> Session:
    import autograd
    import autograd.numpy as anp

    def whole(a: Array) -> Array:
        return a.astype(int)

    arrays = (target(), *grid())
    f = autograd.value_and_grad(lambda x: loss_of(anp, whole, arrays, x))
    return descent(f, start(), float)


def with_torch() -> Session:
    import torch

    arrays = [torch.tensor(a) for a in (target(), *grid())]

    def step(x: Array) -> Any:
        x = x.detach().requires_grad_()
        value = loss_of(torch, lambda a: a.detach().to(torch.int64), arrays, x)
        (slope,) = torch.autograd.grad(value, x)
        return x - LR * slope, value

    return loop(step, torch.tensor(start()), [()], lambda v: v.item())


WORKLOAD = Workload(
    "program-fluid",
    "autograd's fluid simulation, 40 x 40, 10 steps, gradient by the start",
    {
        "retrograd": lambda: with_retrograd(compiled=True),
        "retrograd-eager": with_retrograd,
        "torch": with_torch,
        "autograd": with_autograd,
    },
    checks=3,
)
