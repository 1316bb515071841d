"""Patterns through loops, choices and rules for derivatives."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.transforms.sparse.covering import assert_covers, pattern_of

# Functions of a vector of six elements, and whether the pattern is exact.
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], bool]] = {
    "loop": (lambda x: rg.scan(lambda c, v: (c * v, c), x[0], x)[1], True),
    "elementwise loop": (lambda x: rg.scan(lambda c, _: (rg.sin(c), None), x, length=9)[0], True),
    "long loop": (lambda x: rg.scan(lambda c, _: (rg.sin(c), None), x, length=9000)[0], True),
    "long loop of a band": (
        lambda x: rg.scan(lambda c, v: (c + v, rg.sin(c[1:])), x, rg.ones((9000, 6)))[1][-1],
        True,
    ),
    "loop that mixes": (
        lambda x: rg.scan(lambda c, _: (rg.concat([c[:1], c[:-1] + c[1:]]), None), x, length=2)[0],
        True,
    ),
    "loop backwards": (lambda x: rg.scan(lambda c, v: (c + v, c), 0.0, x, reverse=True)[1], True),
    "loop with an end": (
        lambda x: rg.while_loop(lambda s: s[1] < 5, lambda s: (s[0] * 1.1, s[1] + 1), (x, 0))[0],
        True,
    ),
    "choice of branches": (lambda x: rg.cond(x[0] < 9, lambda x: x * 2, rg.sin, x), True),
    "choice of different branches": (
        lambda x: rg.cond(x[0] < 9, lambda x: x * 2, lambda x: x[::-1], x),
        False,
    ),
    "custom rule": (rg.custom_jvp(rg.sin, lambda p, t: (rg.sin(p[0]), t[0] * rg.cos(p[0]))), True),
    "custom rule in reverse": (
        lambda x: rg.custom_vjp(
            lambda x, y: (x**3 + y[::-1], x),
            lambda x, y: ((x**3 + y[::-1], x), x),
            lambda x, g: (3 * x**2 * g[0] + g[1], g[0][::-1]),
        )(x, rg.sin(x))[0],
        True,
    ),
    "custom rule, batched": (
        rg.vmap(rg.custom_vjp(lambda x: x**3, lambda x: (x**3, x), lambda x, g: (3 * x**2 * g,))),
        True,
    ),
    "custom rule that forgets": (
        rg.custom_vjp(lambda x: x * x.sum(), lambda x: (x * x.sum(), x), lambda x, g: (g * x,)),
        True,
    ),
    "checkpoint": (rg.checkpoint(lambda x: rg.sin(x) ** 2), True),
}


@pytest.mark.parametrize("backend", ["reference", "llvm"])
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.sample(5)
def test_what_is_left_out_is_zero(name, backend):
    f, exact = FUNCTIONS[name]
    assert_covers(f, exact, backend)


@pytest.mark.parametrize("steps", [3, 5000])
def test_a_step_that_shifts_settles_after_as_many_rounds_as_there_are_places(steps):
    """Gone through step by step, and as the least that a step does not add to."""

    def f(x):
        return rg.scan(lambda c, _: (rg.concat([c[:1], c[:-1]]), None), x, length=steps)[0]

    found = pattern_of(f, np.ones(6))
    exact = np.zeros((6, 6), bool)
    exact[np.arange(6), np.maximum(np.arange(6) - steps, 0)] = True
    assert (found >= exact).all()
    assert not np.triu(found, 1).any()


def test_a_loop_of_unknown_length_depends_on_what_any_step_may():
    """The condition reads the first element, of which no derivative knows."""

    def f(x):
        return rg.while_loop(lambda c: c[0] < 3, lambda c: rg.concat([c[:1] + 1, c[:-1]]), x)

    found = pattern_of(f, np.zeros(4))
    assert not np.triu(found, 1).any()


def test_a_branch_that_is_known_is_the_only_one():
    f = lambda x: rg.cond(rg.tensor(True), lambda x: x * 2, lambda x: x[::-1], x)
    np.testing.assert_array_equal(pattern_of(f, np.ones(4)), np.eye(4, dtype=bool))


def test_rows_of_a_reversed_loop_are_their_own():
    f = lambda x: rg.scan(lambda c, v: (c, c * v), x[0], x[1:], reverse=True)[1]
    found = pattern_of(f, np.full(4, 0.5))
    right = np.eye(3, 4, 1) != 0
    right[:, 0] = True
    np.testing.assert_array_equal(found, right)
