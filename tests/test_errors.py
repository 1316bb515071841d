"""Errors that retrograd raises: what a program that knows nothing of retrograd catches them by."""

import inspect

import numpy as np
import pytest

import retrograd as rg
from retrograd import errors

ERRORS = [c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, Exception)]
OWN = [c for c in ERRORS if not issubclass(c, Warning) and c is not errors.RetrogradError]


@pytest.mark.parametrize("error", OWN, ids=lambda c: c.__name__)
def test_each_is_an_error_of_retrograd_and_one_of_python(error):
    with pytest.raises(errors.RetrogradError):
        raise error("text")
    builtin = [b for b in error.__mro__ if b.__module__ == "builtins"]
    assert builtin[0] not in (Exception, BaseException)
    assert str(error("text")) == "text"


@pytest.mark.parametrize(
    ("call", "caught"),
    [
        (lambda x: x @ rg.ones(3), ValueError),
        (lambda x: rg.sum(x, 5), IndexError),
        (lambda x: x[7], IndexError),
        (lambda x: x["a"], TypeError),
        (lambda x: rg.linalg.inv(rg.zeros((2, 2))).tolist(), np.linalg.LinAlgError),
        (lambda x: rg.linalg.cholesky(-rg.eye(2)).tolist(), ValueError),
    ],
    ids=["shape", "axis", "index", "kind", "singular", "indefinite"],
)
def test_what_python_and_numpy_raise_catches_them(call, caught):
    with pytest.raises(caught):
        call(rg.ones(2))


def test_the_reason_is_the_message_unless_it_is_given():
    for error in (errors.IndexRangeError, errors.LinAlgError):
        assert error("here: bad").reason == "here: bad"
        assert error("here: bad", "bad").reason == "bad"


def test_an_error_of_numbers_names_the_element():
    with pytest.raises(errors.NonFiniteError) as caught, rg.debug():
        rg.log(rg.tensor([[1.0, 2.0], [-1.0, 4.0]])).tolist()
    assert caught.value.index == (1, 0)
    assert caught.value.node.op == "log"
