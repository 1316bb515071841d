"""Modules that are a function with options."""

from typing import Any

import pytest

from retrograd.nn.module.functional_module import FunctionalModule, InPlace


class Scaled(FunctionalModule):
    hidden = ("shift",)

    @staticmethod
    def function(x: Any, factor: float, shift: float) -> Any:
        return x * factor + shift

    def __init__(self, factor: float, shift: float = 0.0) -> None:
        super().__init__(factor=factor, shift=shift)


def test_options_are_attributes_and_go_to_the_function() -> None:
    module = Scaled(3.0, shift=1.0)
    assert module(2.0) == 7.0
    module.factor = 5.0
    assert module(2.0) == 11.0
    assert repr(module) == "Scaled(factor=5.0)"


def test_an_option_that_is_no_parameter_is_refused() -> None:
    class Wrong(Scaled):
        def __init__(self, factor: float) -> None:
            FunctionalModule.__init__(self, faktor=factor)

    with pytest.raises(TypeError, match="Wrong has no option 'faktor'"):
        Wrong(2.0)


def test_inplace_is_not_shown_and_changes_nothing() -> None:
    class Doubled(InPlace):
        @staticmethod
        def function(x: Any, inplace: bool) -> Any:
            return [2 * y for y in x]

    given = [1, 2]
    assert Doubled(inplace=True)(given) == [2, 4]
    assert given == [1, 2]
    assert repr(Doubled(True)) == "Doubled()"
