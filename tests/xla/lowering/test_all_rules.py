"""The table is whole: every op is native, on the host, or named as missing."""

from __future__ import annotations

import pytest

pytest.importorskip("jax", reason="the extra xla is not installed")
from retrograd.ir import REGISTRY
from retrograd.verify.records import RECORDS
from retrograd.xla.lowering.all_rules import RULES, how
from retrograd.xla.lowering.host_call import host_call


def test_every_op_with_a_record_is_computed() -> None:
    assert [name for name in RECORDS if name in REGISTRY and not how(name)] == []


def test_what_is_said_is_what_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    assert how("exp") == "native"
    assert RULES["svd"] is host_call
    assert how("svd") == "host"
    monkeypatch.delitem(RULES, "exp")
    assert how("exp") == ""
    assert how("input") == "native"
