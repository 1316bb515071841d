"""What threads share. Forks and interrupts at any moment are in `tests/stress/`."""

import sys
import threading
import weakref
from contextvars import ContextVar
from typing import Any

import pytest

from retrograd import shared


def test_attributes_change_together_or_not_at_all():
    class Slotted:
        __slots__ = ("a",)

    class Freed:
        def __del__(self):
            seen.append((x.a, y.b))  # runs when both are set

    seen: list[tuple[object, object]] = []
    x: Any = Slotted()
    y: Any = type("Plain", (), {})()
    shared.assign([(x, "a", Freed()), (y, "b", 1)])
    shared.assign([(x, "a", 2), (y, "b", 3)])
    assert seen == [(2, 3)]
    with pytest.raises(ValueError, match="not enough values"):
        shared.assign([(x, "a", 4), (y, "b")])  # type: ignore[list-item]
    assert (x.a, y.b) == (2, 3)
    shared.assign([])


@pytest.mark.parametrize(("size", "left"), [(16, 16), (17, 14), (40, 14)])
def test_the_oldest_entries_are_forgotten_some_at_a_time(size, left):
    table = dict.fromkeys(range(size))
    shared.trim(table, 16)
    assert list(table) == list(range(size - left, size))


def test_keys_are_equal_by_value_and_hashed_once():
    class Value:
        hashed = 0

        def __init__(self, number):
            self.number = number

        def __hash__(self):
            Value.hashed += 1
            return hash(self.number)

        def __eq__(self, other):
            return self.number == other.number

    key = shared.Key(Value(1))
    table = {key: "one"}
    assert table[key] == table[shared.Key(Value(1))] == "one"
    assert shared.Key(Value(2)) not in table
    assert key != Value(1)
    assert Value.hashed == 3


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 100])
def test_several_locks_are_held_at_once_and_free_afterwards(count):
    locks: list[Any] = [threading.RLock() for _ in range(count)]

    def taken() -> list[bool]:
        return [one._is_owned() for one in locks]

    assert shared.holding(locks, taken) == [True] * count
    assert not any(taken())
    with pytest.raises(ZeroDivisionError):
        shared.holding(locks, lambda: 1 / 0)
    assert not any(taken())


def test_what_is_completed_is_done_again_and_the_interrupt_goes_on():
    done = []

    def f():
        done.append(1)
        if len(done) == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        shared.completed(f)
    assert len(done) == 2
    shared.completed(f)
    assert len(done) == 3


def test_context_variables_of_what_is_contained_end_with_it():
    variable: ContextVar[int] = ContextVar("variable", default=0)

    @shared.contained
    def f(x, raises=False):
        """Named."""
        variable.set(x)
        if raises:
            raise KeyError
        return variable.get()

    assert f(3) == 3
    with pytest.raises(KeyError):
        f(3, raises=True)
    assert variable.get() == 0
    assert (f.__name__, f.__doc__) == ("f", "Named.")


def test_only_what_other_threads_hold_is_freed():
    """As in a child of fork, where those threads are not."""
    mine, theirs = shared.own_lock(), shared.own_lock()
    thread = threading.Thread(target=theirs.acquire)
    thread.start()
    thread.join()
    assert not theirs.acquire(blocking=False)
    with mine:
        for one in (mine, theirs):
            shared.free(one)
        assert mine._is_owned()
        assert theirs.acquire(blocking=False)


def test_members_of_a_weak_set_that_others_change():
    class Thing:
        pass

    found: weakref.WeakSet[Thing] = weakref.WeakSet()
    kept = [Thing() for _ in range(50)]
    found.update(kept)
    ended = threading.Event()

    def change() -> None:
        while not ended.is_set():
            found.add(Thing())

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    other = threading.Thread(target=change)
    other.start()
    try:
        assert all(set(shared.members(found)) >= set(kept) for _ in range(2000))
    finally:
        ended.set()
        other.join()
        sys.setswitchinterval(before)
