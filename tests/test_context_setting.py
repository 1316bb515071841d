"""Context variables that have a value inside a block."""

import threading
from contextvars import ContextVar

import pytest

from retrograd.context_setting import Setting, restored

LEVEL: ContextVar[int] = ContextVar("level", default=0)


def test_a_value_holds_inside_and_the_one_before_comes_back():
    one, two = Setting(LEVEL, 1), Setting(LEVEL, 2)
    with one:
        with two, one:
            assert LEVEL.get() == 1
        assert LEVEL.get() == 1
        with two:
            assert LEVEL.get() == 2
        with pytest.raises(KeyError), two:
            raise KeyError
        assert LEVEL.get() == 1
    assert LEVEL.get() == 0


def test_it_decorates_functions():
    @Setting(LEVEL, 3)
    def f(n):
        return (LEVEL.get(), f(n - 1) if n else None)

    assert f(1) == (3, (3, None))
    assert LEVEL.get() == 0


def test_other_threads_do_not_notice():
    setting, seen = Setting(LEVEL, 1), []

    def look():
        seen.append(LEVEL.get())
        with setting:
            seen.append(LEVEL.get())
        seen.append(LEVEL.get())

    with setting:
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        assert LEVEL.get() == 1
    assert seen == [0, 1, 0]


def test_a_block_that_was_never_left_ends_with_the_one_around_it():
    """As where Ctrl-C comes between the end of a block and its `__exit__`."""
    with Setting(LEVEL, 1):
        Setting(LEVEL, 2).__enter__()
        assert LEVEL.get() == 2
    assert LEVEL.get() == 0
    with Setting(LEVEL, 1):
        with restored():
            Setting(LEVEL, 2).__enter__()
        assert LEVEL.get() == 1
    assert LEVEL.get() == 0


def test_leaving_twice_takes_back_once():
    inner = Setting(LEVEL, 2)
    with Setting(LEVEL, 1):
        inner.__enter__()
        inner.__exit__(None, None, None)
        inner.__exit__(None, None, None)
        assert LEVEL.get() == 1
