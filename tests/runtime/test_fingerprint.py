"""When two programs are the same, and when the compiler is."""

from __future__ import annotations

import numpy as np
import pytest

from retrograd.ir import Dim, Graph, float32, spec
from retrograd.ops.elementwise import mul
from retrograd.ops.leaf import constant, input_node
from retrograd.ops.shape import Flip, expand
from retrograd.runtime import fingerprint
from retrograd.runtime.fingerprint import program_key
from retrograd.tuning import TUNING


def test_the_compiler_is_known_by_its_files(monkeypatch):
    whole = fingerprint.fingerprint.__wrapped__
    monkeypatch.setattr(fingerprint, "STARTED", float("inf"))
    assert len(whole() or "") == 64
    monkeypatch.setattr(fingerprint, "ROOMS", ("errors",))
    assert whole() is None, "nothing to read, as in an archive"
    monkeypatch.undo()
    monkeypatch.setattr(fingerprint, "STARTED", 0.0)
    assert whole() is None, "what runs may be older than the files"


def graph(n: int | Dim = 3, value: float = 2.0) -> Graph:
    x = input_node(spec((n,), float32), "x")
    return Graph([x], [mul(x, expand(constant(np.float32(value)), (n,), (0,)))])


def test_programs_that_are_the_same_have_one_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprint, "fingerprint", lambda: "one compiler")
    own = program_key(graph(), ["cpu"], (), False)
    assert own == program_key(graph(), ["cpu"], (), False)
    others = [
        program_key(graph(4), ["cpu"], (), False),
        program_key(graph(Dim("N")), ["cpu"], (), False),
        program_key(graph(value=-2.0), ["cpu"], (), False),
        program_key(graph(value=2 + 2.0**-22), ["cpu"], (), False),
        program_key(graph(), ["another"], (), False),
        program_key(graph(), ["cpu"], (0,), False),
        program_key(graph(), ["cpu"], (), True),
    ]  # fmt: skip
    monkeypatch.setattr(fingerprint, "fingerprint", lambda: "another compiler")
    others.append(program_key(graph(), ["cpu"], (), False))
    assert None not in others
    assert len({own, *others}) == len(others) + 1


def test_what_has_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Operations from elsewhere, large constants, a compiler that is not known."""
    monkeypatch.setattr(fingerprint, "fingerprint", lambda: "one compiler")

    class Own(Flip):
        pass

    x = input_node(spec((3,), float32), "x")
    assert program_key(Graph([x], [Flip((0,))(x)]), []) is not None
    assert program_key(Graph([x], [Own((0,))(x)]), []) is None
    large = constant(np.zeros(TUNING.hashed_constant_bytes // 4 + 1, np.float32))
    assert program_key(Graph([x], [x, large]), []) is None
    monkeypatch.setattr(fingerprint, "fingerprint", lambda: None)
    assert program_key(graph(), []) is None
