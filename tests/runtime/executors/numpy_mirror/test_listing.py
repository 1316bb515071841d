"""Formulas as lists of NumPy's functions, and what is found out about nodes once."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

from retrograd.codegen.math.double_precision import loop
from retrograd.codegen.math.term import Term, choose, either, formula
from retrograd.codegen.op_builder import Emit, OpBuilder
from retrograd.ir import Node, bool_, float32, float64, int64, spec
from retrograd.ops.elementwise import exp
from retrograd.ops.leaf import input_node
from retrograd.ops.special.incomplete.quadrature import PANELS, Panels, one_by_one
from retrograd.ops.special.reference import NumPyIncompleteMath
from retrograd.runtime.executors.numpy_mirror import facts
from retrograd.runtime.executors.numpy_mirror.instructions import Unknown
from retrograd.runtime.executors.numpy_mirror.listing import (
    Function,
    Lister,
    Listing,
    constant,
    run,
)
from retrograd.shared import Key

X = np.array([0.5, -1.0, 4.0])


def test_constants_are_kept_apart_by_sign_and_dtype() -> None:
    w = Lister(0)
    at = Listing(w, float64)
    assert at.number(0.0) == at.number(0) == w.constant(0.0, float64)
    assert at.number(-0.0) != at.number(0.0)
    assert at.of(float32).number(1.0) != at.number(1.0) == at.number(1)
    values = [w.values[at.number(c)] for c in (0.0, -0.0, 1.5)]
    assert [np.signbit(v) for v in values] == [False, True, False]
    assert constant(True, bool_).dtype == np.bool_
    assert constant(2.0**-30 + 1, float32) == np.float32(1)


def test_loops() -> None:
    @formula
    def power(x: Term) -> Term:
        _, y = loop(5, lambda k, y: (k + 1.0, y * x + k), x.like(0), x.like(1))
        return y

    f = Function(power, float64, 1)
    y = np.ones(3)
    for k in range(5):
        y = y * X + k
    np.testing.assert_array_equal(f(X), y)
    assert f.calls == 5 * 3 + 1


def test_loops_whose_state_changes_places() -> None:
    @formula
    def exchanged(x: Term) -> Term:
        a, b = loop(3, lambda a, b: (b, a + b), x, x * 2.0)
        return a - b

    a, b = X, X * 2
    for _ in range(3):
        a, b = b, a + b
    np.testing.assert_array_equal(Function(exchanged, float64, 1)(X), a - b)


def test_a_loop_of_a_number_that_is_computed() -> None:
    @formula
    def doubled(x: Term) -> Term:
        whole = x.at.of(int64, 1)
        often = whole.choose((x > 3.0).anywhere(), whole.number(4), whole.number(1))
        (y,) = loop(Term(whole, often), lambda y: (y + y,), x)
        return y

    f = Function(doubled, float64, 1)
    np.testing.assert_array_equal(f(X), 16 * X)
    np.testing.assert_array_equal(f(X[:2]), 2 * X[:2])


def test_only_the_way_that_is_taken_is_computed() -> None:
    def refused(x: Term) -> Term:
        return Term(x.at, x.at.call("unheard_of", x.name))

    @formula
    def chosen(x: Term) -> Term:
        negative = x < 0.0
        (y,) = either(x.at, negative.anywhere(), lambda: [refused(x)], lambda: [x.sqrt()])
        return choose(negative, y, y + 1.0)

    f = Function(chosen, float64, 1)
    np.testing.assert_array_equal(f(X[2:]), [3.0])
    with pytest.raises(Unknown):
        f(X)


def test_functions_are_listed_once_and_keep_nothing() -> None:
    asked = []

    def body(at: OpBuilder, x: str) -> str:
        asked.append(x)
        return at.do("fmul", x, x)

    square: Emit = lambda at, x: at.function("test.square", body, [x])
    f = Function(lambda at, x: at.do("fadd", square(at, x), square(at, x)), float64, 1)
    for x in (X, X + 1):
        np.testing.assert_array_equal(f(x), 2 * x * x)
    assert len(asked) == 1
    assert all(v is None for v in f._values)


def test_steps_are_done_in_order() -> None:
    values = [np.float64(3), None, None]
    run([(1, np.negative, 1, 0, 0, 0), (2, np.add, 2, 0, 1, 0)], values)
    assert values[1:] == [-3.0, 0.0]


@pytest.mark.parametrize("shape", [(5,), (1,), (2, 3), ()], ids=str)
def test_integrals_at_all_places_at_once(shape: tuple[int, ...]) -> None:
    half = np.random.default_rng(1).uniform(0.1, 1, shape) / PANELS
    zero = half * 0.0

    def point(w: Any) -> tuple[Any, ...]:
        return np.exp(-w), np.sin(w) / (w + half)

    panels = Panels()
    places = panels.places(half)
    assert places.shape == (panels.count, *shape)
    found = [panels.total(zero, v) for v in point(places)]
    for a, b in zip(found, one_by_one(NumPyIncompleteMath(), half, zero, point, 2), strict=True):
        np.testing.assert_array_equal(a, b)


def test_facts_go_with_their_node() -> None:
    found = []

    def find(node: Node) -> int:
        found.append(node.id)
        return len(found)

    before = len(facts._FACTS)
    node = exp(input_node(spec((3,), float32)))
    assert [facts.once(node, "a", find) for _ in range(3)] == [1, 1, 1]
    assert facts.once(node, "b", find) == 2
    del node
    gc.collect()
    assert len(facts._FACTS) <= before


def test_keys_are_equal_where_what_they_hold_is() -> None:
    one, same, other = Key((1, "a")), Key((1, "a")), Key((2, "a"))
    assert {one: 3}[same] == 3
    assert one != other
    assert one != (1, "a")
