"""Ops by name, and rules entered for ops."""

from typing import Any

import pytest

from retrograd.errors import FormatError
from retrograd.ir import entering, lookup, register
from retrograd.ops import elementwise as el
from retrograd.ops.shape import Permute, Reshape


def test_an_op_is_found_by_its_name():
    assert lookup("reshape") is Reshape
    assert lookup("exp")() is el.exp
    with pytest.raises(FormatError, match="no op named 'planted'"):
        lookup("planted")
    with pytest.raises(ValueError, match="'reshape' exists already"):
        register("reshape", Reshape)


def test_rules_and_values_are_entered_for_classes_and_for_elementwise_ops():
    table: dict[str, Any] = {}
    enters = entering(table)

    @enters(Reshape, el.exp)
    def rule() -> None: ...

    enters(Permute)(3)
    assert table == {"reshape": rule, "exp": rule, "permute": 3}
    with pytest.raises(ValueError, match="a rule for 'exp' already"):
        enters(el.exp)(rule)
