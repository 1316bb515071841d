"""`rg.verify.rules`: certificates of the operations, and what is refused."""

from __future__ import annotations

import json

import pytest

import retrograd as rg
from retrograd.errors import OptionError
from retrograd.ops.elementwise import ELEMENTWISE, zmul
from retrograd.ops.elementwise import cos as cosine
from retrograd.verify.certification import ops
from retrograd.verify.records import RECORDS

PLAIN = ("reference",)


@pytest.mark.parametrize("name", ["cumsum", "dot_general", "reduce_max"])
@pytest.mark.sample(1)
def test_operations_of_each_kind_are_certified(name: str) -> None:
    found = rg.verify.rules(name, order=2, backends=PLAIN)
    assert found.passed
    assert [c.argument for c in found] == (["input 0", "input 1"] if "dot" in name else ["input"])
    for c in found:
        for kind in ("differences", "forward", "order 2", "edges", "batch"):
            assert c[kind].status == "passed", c
        assert c["differences"].count > 0


@pytest.mark.slow  # imports SymPy
def test_an_elementary_function_has_all_evidence_there_is() -> None:
    pytest.importorskip("mpmath")
    (c,) = rg.verify.rules("cos", order=1, backends=PLAIN, whole_range=False)
    assert "mpmath" in c["differences"].detail
    assert c["conventions"].count == 4
    assert c["complex step"].status == "passed"


def test_a_wrong_rule_of_an_operation_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = (lambda g, y, x: zmul(g, cosine(x)) * (1 + 1e-9),)
    monkeypatch.setattr(ELEMENTWISE["sin"], "derivatives", wrong)
    pytest.importorskip("mpmath")
    monkeypatch.setattr("retrograd.verify.certification.symbolic.EXPRESSIONS", {})
    found = rg.verify.rules("sin", order=1, backends=PLAIN)
    assert not found.passed
    assert {"differences", "ulps"} <= {e.kind for e in found[0].failures}
    assert not json.loads(found.to_json())[0]["passed"]


def test_names_are_those_of_graphs_or_of_public_functions() -> None:
    for name in ("matmul", rg.matmul, ["dot_general"]):
        assert ops._named(name) == ["dot_general"]
    assert ops._named(rg.sin) == ["sin"]
    assert ops._named(ELEMENTWISE["tanh"]) == ["tanh"]
    assert len(ops._named(None)) > 150


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"ops": "sni"}, "did you mean sin"),
        ({"ops": "floor_div"}, "not differentiable"),
        ({"ops": "sin", "order": 0}, "order is a whole number"),
        ({"ops": "sin", "samples": True}, "samples is a whole number"),
        ({"ops": "sin", "backends": []}, "name a backend"),
    ],
)
def test_misuse(options: dict[str, object], part: str) -> None:
    with pytest.raises(OptionError, match=part):
        rg.verify.rules(**options)  # type: ignore[arg-type]


def test_a_third_derivative_that_is_not_offered_is_not_taken_for_wrong() -> None:
    record = RECORDS["gammainc"]
    assert ops._order(record, 0, 3) == 2
    assert ops._order(record, 1, 3) == 3
    assert ops._not_offered(record, 0, 3)[0].status == "does not apply"


def test_what_is_not_installed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("multiprecision", "symbolic", "complex_step", "edge_cases", "ops"):
        place = f"retrograd.verify.certification.{module}.is_installed"
        monkeypatch.setattr(place, lambda name: False)
    (c,) = rg.verify.rules("tan", order=1, backends=PLAIN)
    assert c.passed
    assert c["symbolic"].status == "not available"
    assert "retrograd[verify]" in c["symbolic"].detail
    assert c["differences"].status == "passed"  # in float64 and wider


@pytest.mark.slow
@pytest.mark.parametrize("name", ops.differentiable()[::9])
def test_a_sample_of_the_rules(name: str) -> None:
    found = rg.verify.rules(name)
    assert found.passed, found


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ops.differentiable())
def test_all_rules(name: str) -> None:
    found = rg.verify.rules(name, samples=4)
    assert found.passed, found
