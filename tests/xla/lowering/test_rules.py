"""The registry, and the trace that rules write to."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("jax", reason="the extra xla is not installed")
from retrograd.ir import Graph, float64, spec
from retrograd.ops import elementwise as el
from retrograd.ops.leaf import input_node
from retrograd.xla.graph_function import GraphFunction, x64
from retrograd.xla.lowering.rules import RULES, JaxTrace, lowers


def test_the_rule_of_a_class_is_entered_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    own = lambda t, node, x: x * 3
    with pytest.raises(ValueError, match="there is a rule for 'sinh' already"):
        lowers(el.sinh)(own)
    monkeypatch.delitem(RULES, "sinh")
    assert lowers(el.sinh)(own) is RULES["sinh"]
    x = input_node(spec((2,), float64))
    with x64():
        y, _ = GraphFunction(Graph([x], [el.sinh(x)]))(np.array([1.0, 2.0]))
    np.testing.assert_array_equal(np.asarray(y), [3.0, 6.0])


def test_products_that_are_rounded_are_not_contracted() -> None:
    """`a b - c` with `c` the rounded product is 0, and with a fused multiply-add is not."""
    import jax

    a = np.float64(1 + 2.0**-30)
    with x64():
        t = JaxTrace()
        exact = jax.jit(lambda a, c: t.rounded(a * a) - c)(a, a * a)
    assert float(exact) == 0.0


def test_the_first_check_that_fails_is_remembered() -> None:
    """Of two checks that fail the first, with the first value that it refuses and its place."""
    t = JaxTrace()
    node = input_node(spec((3,), float64))
    with x64():
        values = t.jnp.asarray([4, 9, 8])
        t.refuse(node, lambda value, at: ValueError(f"one {value} at {at}"), values > 5, values)
        t.refuse(node, lambda value, at: ValueError(f"two {value} at {at}"), values > 3, values)
        number, value, at = (int(x) for x in t.failures())
    assert (number, value, at) == (1, 9, 1)
    assert str(t.checks[number - 1].error(value, at)) == "one 9 at 1"


def test_no_check_of_no_values() -> None:
    t = JaxTrace()
    none = t.jnp.zeros((0,), bool)
    t.refuse(input_node(spec((0,), float64)), lambda *_: ValueError(), none, none)
    assert t.checks == []
