"""Rules of operators: each is one that ONNX has, and what a rule may ask of a node."""

from __future__ import annotations

import math
from typing import Any

import pytest

import retrograd as rg
from retrograd.interop.onnx import registry
from retrograd.interop.onnx.registry import RULES, NodeCall, rule, same
from tests.interop.onnx.suite import onnx

call_of = lambda *outputs, **attributes: NodeCall("Op", attributes, 21, outputs, list, list)


@pytest.fixture
def rules(monkeypatch: pytest.MonkeyPatch) -> dict[Any, Any]:
    """An empty table in the place of that of all operators."""
    found: dict[Any, Any] = {}
    monkeypatch.setattr(registry, "RULES", found)
    return found


@pytest.mark.skipif(onnx.defs.onnx_opset_version() < 28, reason="of an older ONNX")
def test_every_operator_is_one_of_onnx() -> None:
    known = {(s.domain, s.name) for s in onnx.defs.get_all_schemas()}
    ours = {key for key in RULES if key[0] in ("", "ai.onnx.ml")}
    assert len(ours) > 150
    assert ours <= known, ours - known


def test_a_rule_is_entered_for_each_of_its_operators(rules: dict[Any, Any]) -> None:
    @rule("A", "B", domain="d", moves=True)
    def f(call: NodeCall) -> int:
        return 1

    assert f(call_of()) == 1
    assert set(rules) == {("d", "A"), ("d", "B")}
    found = rules["d", "B"]
    assert (found.function, found.sizes, found.moves, found.narrow) == (f, False, True, False)


def test_functions_of_their_inputs_stay_apart(rules: dict[Any, Any]) -> None:
    same({"Sin": math.sin, "Hypot": math.hypot})
    assert rules["", "Sin"].function(call_of(), 2.0) == math.sin(2.0)
    assert rules["", "Hypot"].function(call_of(), 3.0, 4.0) == 5.0


def test_attributes_and_outputs_of_a_call() -> None:
    call = call_of("y", "", "z", axis=0)
    assert call.get("axis") == call.get("axis", 5) == 0
    assert call.get("other", None) is None
    with pytest.raises(rg.FormatError, match="Op has no attribute 'other', which it needs"):
        call.get("other")
    assert [call.wants(i) for i in range(4)] == [True, False, True, False]
