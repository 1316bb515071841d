"""What `op_function` reads off a function: which parameters take arrays, by their annotations."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.eager import dispatch
from retrograd.eager.dispatch import ArrayLike, op_function
from retrograd.functions.broadcasting import as_node

POSTPONED = """
from __future__ import annotations
from retrograd.eager.dispatch import ArrayLike{alias}
from retrograd.functions.broadcasting import as_node

def weighted(x: {name}, w: {name} | None, k: int, *rest: Sequence[{name}]) -> Any:
    return as_node(x) * as_node(w) * k
"""


def weighted(x: ArrayLike, w: ArrayLike | None, k: int, *rest: Sequence[ArrayLike]) -> Any:
    """Annotations are objects: nothing in this module is postponed."""
    return as_node(x) * as_node(w) * k


def postponed(alias: str = "") -> Any:
    """The same in a module that postpones annotations, where the marker has another name."""
    code = POSTPONED.format(name=alias or "ArrayLike", alias=alias and f" as {alias}")
    names: dict[str, Any] = {}
    exec(compile(code, __file__, "exec"), names)
    return names["weighted"]


@pytest.mark.parametrize("f", [weighted, postponed(), postponed("Array")])
def test_which_parameters_take_arrays(f):
    first, rest, arrays = dispatch._array_parameters(f)
    assert (first, rest, arrays) == ([True, True, False], True, frozenset(("x", "w", "rest")))
    given = np.array([1.0, 2.0], np.float32), [3.0, 4.0]
    assert op_function(f)(*given, 2).tolist() == [6.0, 16.0]
    x = rg.tensor([1.0, 2.0], requires_grad=True)
    op_function(f)(x, given[1], 2).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [6.0, 8.0]


def test_another_type_of_that_name_is_no_marker():
    names: dict[str, Any] = {"ArrayLike": float}
    exec("def f(x: 'ArrayLike', y: float): return x", names)
    assert dispatch._array_parameters(names["f"]) == ([False, False], False, frozenset())
