"""`max` and `min` of numbers that a trace does not know; the builtins are never replaced."""

import builtins
import types
from typing import Any

import pytest

import retrograd as rg
from retrograd.scalar import choices

REAL = builtins.max, builtins.min

HELPERS = """
def top(values):
    return max([v.data for v in values])

class Layer:
    def low(self, values):
        return [min(v.data, 0.5) for v in values]
"""


def module(text: str) -> Any:
    """A module of a user's."""
    made = types.ModuleType("helpers")
    exec(text, vars(made))
    return made


def watched() -> None:
    assert (builtins.max, builtins.min) == REAL


helpers = module(HELPERS)


def test_functions_of_other_modules_and_methods_choose():
    layer = helpers.Layer()
    x = [rg.Value(0.3), rg.Value(2.0), rg.Value(-1.0)]

    def f(scale: Any) -> Any:
        watched()
        z = [scale * v for v in x]
        return helpers.top(z), sum(layer.low(z)), max(3, 4), max([1, 5], key=lambda k: -k)

    g = rg.jit(f)
    for scale in (1.0, -2.0, 0.5):
        z = [scale * v for v in (0.3, 2.0, -1.0)]
        assert g(scale) == (max(z), pytest.approx(sum(min(v, 0.5) for v in z)), 4, 1)
    assert not {"max", "min"} & {*vars(helpers), *globals()}
    assert not choices._CHANGED


def test_a_name_of_the_modules_own_is_left_alone():
    own = module("max = 'mine'\ndef f(scale):\n    return max, scale * 2\n")
    assert rg.jit(own.f)(rg.Value(1.0))[0] == "mine"
    assert own.max == "mine"


def test_names_are_given_back_after_an_error():
    def f(v: Any) -> Any:
        raise ValueError(max(v.data, 0.0))

    with pytest.raises(ValueError, match="Value"):
        rg.jit(f)(rg.Value(1.0))
    assert "max" not in globals()
    assert not choices._CHANGED


def test_where_no_function_is_found_python_refuses():
    hidden = {"code": compile("max(v.data, 0.0)", "hidden", "eval")}

    def f(v: Any) -> Any:
        return eval(hidden["code"], {"v": v})

    with pytest.raises(rg.TraceError, match="not known while jit traces"):
        rg.jit(f)(rg.Value(1.0))
