"""Blocks without the collector of garbage."""

import gc

import pytest

from retrograd.gc_paused import gc_paused


@pytest.fixture(autouse=True)
def as_it_was():
    before = gc.isenabled()
    yield
    (gc.enable if before else gc.disable)()


def test_the_collector_is_off_inside_and_on_again_after_an_error():
    gc.enable()

    def fails():
        with gc_paused():
            inside.append(gc.isenabled())
            raise KeyError

    inside: list[bool] = []
    with pytest.raises(KeyError):
        fails()
    assert inside == [False]
    assert gc.isenabled()


def test_a_collector_that_the_user_has_switched_off_stays_off():
    gc.disable()
    with gc_paused():
        pass
    assert not gc.isenabled()


def test_a_block_that_was_never_left_is_made_good_by_the_next():
    gc.enable()
    block = gc_paused()  # which would end with its last reference
    block.__enter__()
    assert not gc.isenabled()
    with gc_paused():
        pass
    assert gc.isenabled()
    del block
