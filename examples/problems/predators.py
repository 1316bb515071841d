"""The parameters of a differential equation: predators and prey, observed with noise.

`dx/dt = a x - b x y`, `dy/dt = c x y - d y` (Lotka and Volterra); the loss is the squared distance
of the solution to the observations, differentiated in the parameters and the initial state.
"""

import numpy as np
from scipy.integrate import solve_ivp

import retrograd as rg
from examples.problems.problem import Problem

START = np.array([1.0, 0.5])


def make(count, rng):
    times = np.linspace(0, 8, count + 1)
    truth = np.array([1.5, 1.0, 1.0, 3.0])
    seen = _solution(truth, START, times) + 0.1 * rng.normal(size=(count + 1, 2))
    return truth * rng.uniform(0.9, 1.1, 4), START * 1.05, times, seen


def f(p, start, times, seen):
    def slope(t, y):
        prey, hunters = y[0], y[1]
        meetings = prey * hunters
        return rg.stack([p[0] * prey - p[1] * meetings, p[2] * meetings - p[3] * hunters])

    y = rg.odeint(slope, start, times, rtol=1e-9, atol=1e-11)
    return ((y - seen) ** 2).mean()


def _solution(p, start, times):
    a, b, c, d = p
    found = solve_ivp(
        lambda t, y: [a * y[0] - b * y[0] * y[1], c * y[0] * y[1] - d * y[1]],
        (times[0], times[-1]),
        start,
        t_eval=times,
        rtol=1e-11,
        atol=1e-13,
        method="DOP853",
    )
    return found.y.T


def reference(p, start, times, seen):
    return np.mean((_solution(p, start, times) - seen) ** 2)


PROBLEM = Problem("parameters of an ODE", (10, 100, 1000, 10_000), make, f, reference, wrt=(0, 1))
