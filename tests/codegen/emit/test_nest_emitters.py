"""Every kind of loop nest has one function that writes it."""

import re

import retrograd.codegen.program.module as module
from retrograd.codegen.emit.nest_emitters import NESTS, emits_nest
from retrograd.schedule.loop_nest import LoopNest


def test_every_kind_that_is_documented_is_entered():
    assert module.NESTS is NESTS
    rows = re.findall(r"^    \| ([a-z, ]+) \|", LoopNest.__doc__ or "", re.MULTILINE)
    kinds = {kind for row in rows[1:] for kind in row.split(", ")}
    assert {*NESTS} == kinds


def test_a_function_is_entered_for_each_of_its_kinds(monkeypatch):
    for kind in ("planted", "sown"):
        monkeypatch.setitem(NESTS, kind, None)

    @emits_nest("planted", "sown")
    def write(w, nest):
        raise NotImplementedError

    assert NESTS["planted"] is NESTS["sown"] is write
