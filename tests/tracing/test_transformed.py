"""What transforms return: plain functions that are methods in a class, whatever checkers see."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.tracing.transformed import Transformed

TRANSFORMS: list[tuple[Callable[..., Any], Callable[[Any], Any]]] = [
    (rg.grad, lambda x: 2 * x),
    (lambda f: rg.value_and_grad(f), lambda x: (x**2, 2 * x)),
    (rg.vmap, lambda x: x**2),
    (rg.checkpoint, lambda x: x**2),
    (rg.jacrev, lambda x: 2 * x),
    (rg.jacfwd, lambda x: 2 * x),
]


def square(x: Any) -> Any:
    """The square."""
    return x * x


@pytest.mark.parametrize("i", range(len(TRANSFORMS)))
def test_a_plain_function_with_the_name_of_what_it_was_made_of(i: int) -> None:
    transform, _ = TRANSFORMS[i]
    made = transform(square)
    assert not isinstance(made, Transformed)
    assert isinstance(made, types.FunctionType)
    assert (made.__name__, made.__doc__) == ("square", "The square.")
    assert inspect.unwrap(made) is square
    assert inspect.signature(made) == inspect.signature(square)


@pytest.mark.parametrize("i", range(len(TRANSFORMS)))
def test_in_a_class_it_is_a_method(i: int) -> None:
    transform, expected = TRANSFORMS[i]

    class Model:
        def __init__(self, factor: float) -> None:
            self.f = transform(lambda x: x * x)
            self.factor = factor

        @property
        def own(self) -> Any:
            return transform(lambda x: x * x * self.factor)

        g = staticmethod(transform(lambda x: x * x))

    x = rg.tensor([3.0]) if transform is rg.vmap else rg.tensor(3.0)
    with rg.backend("reference"):
        wanted = expected(np.float32(3.0))
        for found, k in ((Model(2.0).f(x), 1), (Model.g(x), 1), (Model(2.0).own(x), 2)):
            np.testing.assert_allclose(np.ravel(found), np.ravel(wanted) * k, rtol=1e-6)


def test_self_is_passed_as_a_method_gets_it() -> None:
    class Model:
        factor = 3.0

        @rg.checkpoint
        def scaled(self, x: Any) -> Any:
            return x * self.factor

    with rg.backend("reference"):
        assert Model().scaled(rg.tensor(2.0)).item() == 6.0
        assert rg.grad(Model().scaled)(rg.tensor(2.0)).item() == 3.0


def test_the_class_itself_is_for_checkers_alone() -> None:
    made: Transformed[..., Any] = Transformed()
    with pytest.raises(NotImplementedError):
        made(1.0)
    with pytest.raises(NotImplementedError):
        made.__get__(None)
