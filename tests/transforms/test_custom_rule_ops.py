"""Rules of the user's on nodes: when two are the same, and what they return that does not fit."""

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import pytree
from retrograd.transforms.custom_rule_ops import ByValue, RuleStructure

X, Y = np.array([0.3, 0.7]), np.array([1.0, 2.0])


def broken(bwd: Any) -> Any:
    """The gradient of a function named `model`, by a rule that is wrong."""

    def model(p, y):
        return p["w"] * y

    f = rg.custom_vjp(model)
    f.defvjp(lambda p, y: (f(p, y), None), bwd)
    return rg.grad(lambda w, y: f({"w": w}, y).sum(), (0, 1))(X, Y)


@pytest.mark.parametrize(
    ("bwd", "words"),
    [
        (lambda r, g: (g,), r"bwd of model returns a tuple of 2.*not 1"),
        (lambda r, g: g, "tuple of 2"),
        (lambda r, g: (g, g), "rule of model gave a cotangent of the structure"),
        (lambda r, g: ({"w": g[:1]}, g), r"rule of model.*f64\[1\] for argument \[0\]\['w'\]"),
        (lambda r, g: ({"w": g}, rg.astype(g, rg.float32)), r"f32\[2\] for argument \[1\]"),
        (lambda r, g: ({"w": "no"}, g), r"'no'.*argument \[0\]"),
    ],
)
def test_cotangents_that_do_not_fit(bwd, words):
    with pytest.raises(rg.GradientError, match=words):
        broken(bwd)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (lambda p, t: p[0], r"returns \(out, tangent_out\)"),
        (lambda p, t: (p[0], (t[0], t[0])), "tangent of the structure"),
        (lambda p, t: (p[0], t[0].sum()), r"tangent of type f64\[\] for the output"),
    ],
)
def test_tangents_that_do_not_fit(rule, words):
    f = rg.custom_jvp(lambda x: x * 2, rule)
    with pytest.raises(rg.GradientError, match=words):
        rg.jvp(f, (X,), (Y,))


def test_numbers_are_compared_by_value_and_objects_by_identity():
    array = np.ones(2)
    assert ByValue(1.5) == ByValue(1.5)
    assert hash(ByValue("a")) == hash(ByValue("a"))
    assert ByValue(array) == ByValue(array)
    different: list[tuple[Any, Any]] = [(0.0, -0.0), (1, 1.0), (1, True), (array, np.ones(2))]
    for a, b in different:
        assert ByValue(a) != ByValue(b)
    assert ByValue(float("nan")) == ByValue(float("nan"))


def test_the_structure_of_a_call_has_what_is_no_tensor_and_zeros_for_its_tangent():
    value = {"x": rg.ones(2), "n": 3, "s": "text", "a": np.ones(1)}
    form = RuleStructure.of(value)
    leaves = pytree.flatten(value)[0]
    assert [leaves[i] is value["x"] for i in form.at] == [True]
    node = value["x"].node  # type: ignore[attr-defined]
    again = form.filled([None], [node])
    assert again["x"].tolist() == [0, 0]
    assert (again["n"], again["s"], again["a"].tolist()) == (3, "text", [1])
    still = form.still().filled([node], [node])
    assert (still["n"], still["s"], still["a"].tolist()) == (0, "text", [0])
    assert form.namer("argument ", form.at[0])() == "argument ['x']"


def test_rules_of_equal_numbers_are_one_program():
    """`fixed` and what is no tensor are part of the rule."""

    def bwd(n, x, g):
        return (n * g * x ** (n - 1),)

    f = rg.custom_vjp(lambda n, x: x**n, lambda n, x: (x**n, x), bwd, nondiff_argnums=(0,))
    graphs = [rg.trace(lambda x, n=n: f(n, x), rg.spec((2,))) for n in (2, 2, 3)]
    rules: Any = [next(n.prim for n in g.nodes if n.op == "custom") for g in graphs]
    first, same, other = rules
    assert first.rule == same.rule
    assert first.rule != other.rule


def test_a_rule_of_one_mode_serves_the_other_by_transposition():
    """Not symmetric, so that the transpose is another matrix."""
    a = np.array([[1.0, 2.0], [3.0, 4.0]])
    reverse = rg.custom_vjp(lambda x: a @ x, lambda x: (a @ x, None), lambda _, g: (a.T @ g,))
    forward = rg.custom_jvp(lambda x: a @ x, lambda p, t: (a @ p[0], a @ t[0]))
    with rg.backend("reference"):
        for f in (reverse, forward):
            np.testing.assert_allclose(rg.jvp(f, (X,), (Y,))[1].numpy(), a @ Y)
            np.testing.assert_allclose(rg.vjp(f, X)[1](Y)[0].numpy(), a.T @ Y)
