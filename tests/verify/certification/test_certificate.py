"""Certificates as objects: whether they passed, as text, as JSON, pickled."""

from __future__ import annotations

import json
import pickle

import pytest

from retrograd.verify import Certificate, CertificateError, Certificates, Evidence

GOOD = Certificate("f", "x", (Evidence("differences", "passed", 3, 1e-12, "relative"),))
BAD = Certificate(
    "g",
    "y",
    (Evidence("differences", "failed", 1, float("inf"), "2, not 1"), Evidence("forward", "passed")),
)
WEAK = Certificate(
    "h", "z", (Evidence("forward", "passed", 3), Evidence("symbolic", "not available"))
)


def test_a_certificate_needs_evidence_that_does_not_know_the_rule() -> None:
    assert (GOOD.passed, BAD.passed, WEAK.passed) == (True, False, False)
    assert BAD.failures == (BAD["differences"],)
    with pytest.raises(KeyError, match="no evidence of kind 'batch'"):
        GOOD["batch"]


def test_text_is_a_table_with_reasons() -> None:
    text = str(Certificates([GOOD, BAD, WEAK]))
    head = "name argument differences forward symbolic"
    assert text.splitlines()[0].split() == head.split()
    assert "g by y: differences: 2, not 1" in text
    assert "h by z: nothing independent" in text
    assert text.endswith("1 of 3 certified")
    assert "f by x: certified" in str(GOOD)
    assert "NOT certified" in str(BAD)
    assert Certificates([GOOD])._repr_markdown_().count("\n") == 2


def test_json_can_be_read_by_all() -> None:
    (entry,) = json.loads(Certificates([BAD]).to_json())
    assert entry["passed"] is False
    assert entry["evidence"][0]["error"] == "inf"
    assert json.loads(GOOD.to_json())["evidence"][0]["count"] == 3


def test_a_sequence() -> None:
    found = Certificates([GOOD, BAD])
    assert (len(found), found[0], found[-1:]) == (2, GOOD, Certificates([BAD]))
    assert found.failed == Certificates([BAD])
    assert not Certificates([]).passed
    assert pickle.loads(pickle.dumps(found)) == found
    assert hash(found) == hash(Certificates([GOOD, BAD]))


def test_failures_are_raised() -> None:
    Certificates([GOOD]).raise_for_failure()
    for bad, part in ((BAD, "2, not 1"), (WEAK, "no independent evidence")):
        with pytest.raises(CertificateError, match=part) as caught:
            Certificates([GOOD, bad]).raise_for_failure()
        again = pickle.loads(pickle.dumps(caught.value))
        assert again.certificates == Certificates([GOOD, bad])
    with pytest.raises(CertificateError, match="nothing to certify"):
        Certificates([]).raise_for_failure()
