"""Arguments of the wrong kind: an error of ours that says what to give instead."""

from typing import Any

import numpy as np
import pytest

import retrograd

rg: Any = retrograd  # what is wrong here is wrong for the type checker, too
X = rg.tensor([1.0, 2.0])
PRED = rg.tensor(True)


def square(x):
    return (x * x).sum()


NO_FUNCTION = {
    "grad": lambda f: rg.grad(f),
    "value_and_grad": lambda f: rg.value_and_grad(f),
    "vjp": lambda f: rg.vjp(f, X),
    "jvp": lambda f: rg.jvp(f, (X,), (X,)),
    "linearize": lambda f: rg.linearize(f, X),
    "jacrev": lambda f: rg.jacrev(f),
    "jacfwd": lambda f: rg.jacfwd(f),
    "jacobian": lambda f: rg.jacobian(f),
    "hessian": lambda f: rg.hessian(f),
    "hvp": lambda f: rg.hvp(f, (X,), (X,)),
    "vmap": lambda f: rg.vmap(f),
    "jit": lambda f: rg.jit(f),
    "checkpoint": lambda f: rg.checkpoint(f),
    "custom_vjp": lambda f: rg.custom_vjp(f),
    "custom_jvp": lambda f: rg.custom_jvp(f),
    "cond": lambda f: rg.cond(PRED, f, f),
    "scan": lambda f: rg.scan(f, X, X),
    "while_loop": lambda f: rg.while_loop(f, f, X),
    "fori_loop": lambda f: rg.fori_loop(0, 3, f, 1.0),
    "root": lambda f: rg.root(f, X),
    "fixed_point": lambda f: rg.fixed_point(f, X),
    "odeint": lambda f: rg.odeint(f, X, [0.0, 1.0]),
    "minimize": lambda f: rg.minimize(f, X),
    "trace": lambda f: rg.trace(f, X),
    "gradcheck": lambda f: rg.gradcheck(f, np.ones(2)),
    "numerical_gradient": lambda f: rg.numerical_gradient(f, np.ones(2)),
}


@pytest.mark.parametrize("wrong", [3, "f", X], ids=["number", "text", "tensor"])
@pytest.mark.parametrize("name", NO_FUNCTION)
def test_what_is_no_function(name, wrong):
    with pytest.raises(rg.ArgumentError, match=f"{name} .*a function, not .* of type"):
        NO_FUNCTION[name](wrong)


def test_branches_that_are_values():
    for pred in (PRED, True):
        with pytest.raises(rg.ArgumentError, match=r"rg.where\(pred, a, b\)"):
            rg.cond(pred, 1, 2)


def test_a_result_in_place_of_the_function():
    with pytest.raises(rg.ArgumentError, match=r"f instead of f\(x\)"):
        rg.grad(square(X))


# What is called with another number of arguments than it takes.
MISCALLED = {
    "vjp calls .* 0 arguments.*missing a required argument: 'x'": lambda: rg.vjp(square),
    "linearize calls .* 2 arguments.*too many": lambda: rg.linearize(square, X, X),
    "jvp calls .* 2 arguments": lambda: rg.jvp(square, (X, X), (X, X)),
    "hvp calls .* 2 arguments": lambda: rg.hvp(square, (X, X), (X, X)),
    r"scan calls .* 2 arguments by position, which square\(x\)": lambda: rg.scan(square, X, X),
    "cond calls .* 1 arguments": lambda: rg.cond(PRED, square, lambda: 1.0, X),
    "cond calls .* 0 arguments": lambda: rg.cond(True, square, square),
    "while_loop calls": lambda: rg.while_loop(lambda: True, square, X),
    "fori_loop calls": lambda: rg.fori_loop(0, 3, lambda i: i, 1.0),
    "odeint calls": lambda: rg.odeint(square, X, [0.0, 1.0]),
    "gradcheck calls": lambda: rg.gradcheck(square),
}


@pytest.mark.parametrize("words", MISCALLED)
def test_functions_of_other_arguments(words):
    with pytest.raises(rg.ArgumentError, match=words):
        MISCALLED[words]()


def test_vectors_of_hvp():
    with pytest.raises(rg.ArgumentError, match=r"rg.hvp\(f, \(x,\), \(v,\)\)"):
        rg.hvp(square, (X,), X)


@pytest.mark.parametrize(
    "options",
    [{"donate": 1.5}, {"static_argnames": 1.5}, {"static_argnums": None}, {"donate": [True]}],
    ids=str,
)
def test_parameters_of_jit_are_names_or_numbers(options):
    with pytest.raises(rg.ArgumentError, match="by name or position"):
        rg.jit(square, **options)


def test_errors_name_the_transform_that_was_called():
    with pytest.raises(rg.GradientError, match=r"^hessian with respect to a int64"):
        rg.hessian(square)(rg.tensor([1, 2]))
    with pytest.raises(rg.ShapeError, match="length says 5 steps, but xs, f32"):
        rg.scan(lambda c, x: (c, x), X, X, length=5)
    with pytest.raises(rg.OptionError, match="sizes is a dict"):
        rg.checkpoint(square, policy=1000, sizes={"N": "a"})
    with pytest.raises(TypeError):  # as it is for any function of Python
        rg.grad(3)
