"""Arguments of functions and graphs: names for their leaves, and their values as arrays."""

import functools
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import pytree
from retrograd.errors import DTypeError
from retrograd.ir import int8, spec
from retrograd.ops.leaf import input_node
from retrograd.tracing.arguments import argument, argument_names, leaf_names, positional


def f(a, /, b, *more, c=1, **rest) -> Any: ...


class Model:
    def __call__(self, x, y=0) -> Any: ...

    def method(self, x) -> Any: ...


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (f, (["a", "b"], "more")),
        (Model(), (["x", "y"], "")),
        (Model().method, (["x"], "")),
        (functools.partial(f, 1), (["b"], "more")),
        (lambda *, key: key, ([], "")),
        (dict.fromkeys, (["iterable", "value"], "")),
        (max, ([], "")),  # of which nothing is known
    ],
)
def test_parameters_by_position(function, expected):
    assert positional(function) == expected


def test_names_are_the_parameter_and_the_path_inside_it():
    args = ({"w": [1.0, 2.0]}, 3.0, (4.0,), 5.0)
    names = ["a['w'][0]", "a['w'][1]", "b", "more[0][0]", "more[1]"]
    assert argument_names(f, args) == names
    assert argument_names(max, (1.0, [2.0])) == ["args[0]", "args[1][0]"]
    assert argument_names(f, ()) == []


def test_names_of_a_call_have_keywords_behind_in_order():
    call = ((1.0,), {"c": [2.0], "b": 3.0})
    leaves, structure = pytree.flatten(call)
    names = leaf_names(f, leaves, structure)
    assert names == ["a", "b", "c[0]"]
    assert len(names) == len(leaves)


def test_values_take_the_dtype_of_the_input_and_arrays_their_own():
    x = input_node(spec((), int8), "count")
    found = argument(x, 3)
    assert (found.dtype, found.item()) == (np.int8, 3)
    array = np.ones(2, np.float32)
    assert argument(x, array) is array
    assert argument(x, rg.tensor([1.5])).tolist() == [1.5]
    assert argument(input_node(spec(())), 3).dtype == np.float32
    for wrong in (1.5, [0.5]):
        with pytest.raises(DTypeError, match=r"input 'count' is i8\[\], but the value given is"):
            argument(x, wrong)
    with pytest.raises(DTypeError, match="300 does not fit into int8"):
        argument(x, 300)
