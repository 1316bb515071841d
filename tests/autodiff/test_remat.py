"""Regions that are computed again: what rules see of them, and what is left of the originals."""

import numpy as np
import pytest

from retrograd.autodiff import batched, pullback, pushforward
from retrograd.ir import Graph, Node, float64, full, reachable, spec
from retrograd.ops.elementwise import ELEMENTWISE
from retrograd.ops.leaf import input_node
from retrograd.ops.remat import After, Keep, RegionIn, RegionOut
from retrograd.passes import optimize
from retrograd.verify.rule_checks import run

sin, exp = ELEMENTWISE["sin"], ELEMENTWISE["exp"]
VECTOR = spec((3,), float64)
X, Y = np.array([0.1, 0.5, -0.3]), np.array([1.0, 2.0, 3.0])


def chain(x: Node, marked: bool = True) -> Node:
    inner = RegionIn()(x) if marked else x
    y = sin(exp(sin(inner)))
    return RegionOut()(y) if marked else y


def gradient(y: Node, inputs: list[Node]) -> list[Node]:
    found = pullback([y], [full(1, y.type)], inputs)
    return [g for g in found if g is not None]


def kept(y: Node, g: Node) -> set[str]:
    """Forward values that are read by the gradient."""
    forward = set(reachable([y]))
    return {x.op for n in reachable([g]) if n not in forward for x in n.inputs if x in forward}


def test_only_what_enters_is_kept():
    x = input_node(VECTOR)
    y = chain(x)
    (g,) = gradient(y, [x])
    assert kept(y, g) == {"input"}
    plain = chain(x, marked=False)
    (expected,) = gradient(plain, [x])
    assert kept(plain, expected) > {"input"}
    a, b = run(Graph([x], [g, expected]), [X])
    np.testing.assert_array_equal(a, b)


def test_copies_are_not_merged_with_the_originals():
    x = input_node(VECTOR)
    y = chain(x)
    (g,) = gradient(y, [x])
    graph = optimize(Graph([x], [y, g]))
    assert sum(n.op == "exp" for n in graph.nodes) == 2
    after = [n for n in graph.nodes if n.op == "after"]
    assert len(after) == 1


def test_a_value_that_is_kept_is_not_computed_again():
    x = input_node(VECTOR)
    y = RegionOut()(sin(Keep()(exp(sin(RegionIn()(x))))))
    (g,) = gradient(y, [x])
    assert kept(y, g) == {"input", "keep"}
    assert sum(n.op == "exp" for n in reachable([y, g])) == 1
    assert sum(n.op == "keep" for n in reachable([y, g])) == 1


def test_a_pass_that_stops_within_the_graph():
    """Where it stops nothing is known of regions before."""
    x = input_node(VECTOR)
    end = chain(x)
    y = chain(end)
    (g,) = pullback([y], [full(1, y.type)], [end], {end})
    assert g is not None
    plain = input_node(VECTOR)
    (expected,) = gradient(chain(plain, marked=False), [plain])
    (found,) = run(Graph([x], [g]), [X])
    (at,) = run(Graph([x], [chain(x, marked=False)]), [X])
    np.testing.assert_array_equal(found, run(Graph([plain], [expected]), [at])[0])


def test_regions_in_one_another():
    x = input_node(VECTOR)
    inner = RegionOut()(exp(sin(RegionIn()(sin(RegionIn()(x))))))
    y = RegionOut()(sin(inner))
    (g,) = gradient(y, [x])
    assert kept(y, g) == {"input"}
    # The inner one is computed forward, in the copy of the outer, and in a copy for itself.
    assert sum(n.op == "exp" for n in reachable([y, g])) == 3
    (expected,) = gradient(sin(exp(sin(sin(x)))), [x])
    a, b = run(Graph([x], [g, expected]), [X])
    np.testing.assert_array_equal(a, b)


def test_several_values_enter_and_leave():
    x, y = input_node(VECTOR), input_node(VECTOR)
    a, b = RegionIn()(x), RegionIn()(y)
    ends = [RegionOut()(sin(a * b)), RegionOut()(exp(a) * b)]
    found = pullback(ends, [x, y], [x, y])
    plain = pullback([sin(x * y), exp(x) * y], [x, y], [x, y])
    results = run(Graph([x, y], [g for g in (*found, *plain) if g]), [X, Y])
    for one, two in zip(results[:2], results[2:], strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-14)
    (after,) = {len(n.inputs) for n in reachable([g for g in found if g]) if n.op == "after"}
    assert after == 3  # behind both cotangents


def test_higher_orders_and_forward_mode():
    x = input_node(VECTOR)
    for order in (1, 2, 3):
        marked, plain = chain(x), chain(x, marked=False)
        for _ in range(order):
            (marked,), (plain,) = gradient(marked, [x]), gradient(plain, [x])
        a, b = run(Graph([x], [marked, plain]), [X])
        np.testing.assert_allclose(a, b, rtol=1e-12)
    (t,) = pushforward([chain(x)], [x], [x])
    assert t is not None
    assert t.op == "region_out"
    (g,) = gradient(t, [x])
    assert "exp" not in kept(chain(x), g)


def test_samples_of_a_batch_share_what_enters_for_all():
    x, w, stack = input_node(VECTOR), input_node(VECTOR), input_node(spec((2, 3), float64))
    y = RegionOut()(sin(RegionIn()(x) * exp(RegionIn()(w))))
    _, gw = gradient(y, [x, w])
    ((found, is_stack),) = batched([gw], {x: stack}, 2)
    assert is_stack
    sizes = [n.type.rank for n in reachable([found]) if n.op == "exp"]
    assert set(sizes) == {1}  # of w, which all samples share, once and not for each
    (result,) = run(Graph([stack, w], [found]), [np.stack([X, Y]), X])
    (expected,) = run(Graph([x, w], [gw]), [Y, X])
    np.testing.assert_array_equal(result[1], expected)


@pytest.mark.parametrize("ends", [1, 2])
def test_marks_without_counterpart_do_nothing(ends):
    x = input_node(VECTOR)
    y = x * 2.0
    for _ in range(ends):
        y = RegionOut()(sin(y))
    (g,) = gradient(y, [x])
    assert not any(n.op == "after" for n in reachable([g]))
    lost = sin(RegionIn()(x))
    (g,) = gradient(lost, [x])
    assert run(Graph([x], [g]), [X])[0] == pytest.approx(np.cos(X))


def test_after_reads_its_first_input_only():
    x, y = input_node(VECTOR), input_node(VECTOR)
    z = After()(x, y)
    assert pullback([z], [full(1, VECTOR)], [x, y])[1] is None
    assert pushforward([z], [y], [y]) == [None]
