"""Tapes are shown what is recorded while they listen."""

from __future__ import annotations

import gc
import weakref

import pytest

import retrograd as rg
from retrograd.eager import listeners
from retrograd.ir import Node, spec
from retrograd.ops.leaf import input_node


def test_a_tape_sees_what_came_before_as_an_input():
    x = rg.tensor(2.0, requires_grad=True)
    y = x * x
    with rg.Tape() as tape:
        z = y + 1.0
    assert [e.op for e in tape] == ["input", "constant", "add"]
    assert [e.value for e in tape] == [4, 1, 5]
    assert z.item() == 5


class Watch(listeners.Listener):
    """What a tape is to those that record."""

    def __init__(self) -> None:
        self.seen: list[Node] = []
        self.everything = False

    @property
    def sees_all(self) -> bool:
        return self.everything

    def record(self, node: Node) -> None:
        self.seen.append(node)

    def holds(self, node: Node) -> bool:
        return node in self.seen


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listeners, "LISTENERS", ())


def test_who_is_shown_a_node(alone: None) -> None:
    a, b = Watch(), Watch()
    nodes = [input_node(spec((2,))) for _ in range(4)]
    listeners.shown(nodes[0])
    for x in (a, b, a):
        listeners.add_listener(x)  # twice is once
    assert listeners.shown(nodes[1]) is nodes[1]
    listeners.drop_listener(a)
    listeners.shown(nodes[2])
    assert (a.seen, b.seen) == ([nodes[1]], nodes[1:3])
    assert listeners.is_held(nodes[2])
    assert not listeners.is_held(nodes[0])
    assert not listeners.sees_all()
    b.everything = True
    assert listeners.sees_all()


def test_those_that_are_gone_are_forgotten(alone: None) -> None:
    a, b = Watch(), Watch()
    listeners.add_listener(a)
    listeners.add_listener(b)
    del a
    gc.collect()
    assert listeners.registered() == [b]
    assert len(listeners.LISTENERS) == 1


def test_nobody_sees_what_is_traced(alone: None) -> None:
    a = Watch()
    listeners.add_listener(a)
    rg.trace(lambda x: rg.sin(x) * 2.5, spec((3,)))
    assert a.seen == []


def test_what_is_left_of_a_listener_that_is_gone_goes_when_somebody_looks(monkeypatch):
    """As where an exception came while it went: nothing else has to look for listeners then."""

    class Gone:
        pass

    monkeypatch.setattr(listeners, "LISTENERS", (weakref.ref(Gone()),))
    assert listeners.listening() == []
    assert listeners.LISTENERS == ()
