"""Every kind of loop nest has one function that writes it."""

import retrograd.codegen.program.module as module
from retrograd.codegen.emit.nest_emitters import NESTS, emits_nest
from retrograd.schedule import loop_nest
from retrograd.schedule.loop_nest import LoopNest


def test_every_kind_is_entered():
    assert module.NESTS is NESTS
    kinds = {
        kind
        for kind in vars(loop_nest).values()
        if isinstance(kind, type) and issubclass(kind, LoopNest) and hasattr(kind, "kind")
    }
    assert {*NESTS} == kinds


def test_a_function_is_entered_for_each_of_its_kinds(monkeypatch):
    class Planted(LoopNest):
        kind = "planted"

    class Sown(LoopNest):
        kind = "sown"

    for kind in (Planted, Sown):
        monkeypatch.setitem(NESTS, kind, None)

    @emits_nest(Planted, Sown)
    def write(w, nest):
        raise NotImplementedError

    assert NESTS[Planted] is NESTS[Sown] is write
