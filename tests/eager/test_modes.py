"""`rg.num_threads`: asked, set, and as a context."""

import threading

import pytest

import retrograd as rg


@pytest.fixture(autouse=True)
def unchanged():
    """Each test leaves the number as it was."""
    with rg.num_threads(rg.num_threads()):
        yield


def test_setting_it():
    rg.num_threads(4)
    assert rg.num_threads() == 4
    rg.num_threads(1)
    assert rg.num_threads() == 1


def test_as_a_context():
    rg.num_threads(3)
    with rg.num_threads(1):
        assert rg.num_threads() == 1
        with rg.num_threads(7):
            assert rg.num_threads() == 7
        assert rg.num_threads() == 1
    assert rg.num_threads() == 3


def test_a_context_is_left_by_an_error():
    rg.num_threads(3)
    with pytest.raises(ZeroDivisionError), rg.num_threads(1):
        raise ZeroDivisionError
    assert rg.num_threads() == 3


def test_setting_it_inside_a_context_ends_with_it():
    rg.num_threads(3)
    with rg.num_threads(1):
        rg.num_threads(2)
        assert rg.num_threads() == 2
    assert rg.num_threads() == 3


def test_a_context_entered_again():
    rg.num_threads(3)
    two = rg.num_threads(2)
    for _ in range(2):
        with two:
            with two:
                assert rg.num_threads() == 2
            assert rg.num_threads() == 2
        assert rg.num_threads() == 3


def test_as_a_decorator():
    rg.num_threads(3)

    @rg.num_threads(2)
    def f() -> int:
        return rg.num_threads()

    assert rg.num_threads() == 3
    assert (f(), f(), rg.num_threads()) == (2, 2, 3)


def test_it_concerns_the_thread_that_sets_it():
    default = rg.num_threads()
    two = rg.num_threads(default + 1)
    found = []

    def other() -> None:
        found.append(rg.num_threads())
        with two:
            found.append(rg.num_threads())
        found.append(rg.num_threads())

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert found[1] == default + 1
    assert found[0] == found[2]


@pytest.mark.parametrize("n", [0, -2, 1.5, "4", True, 100_000])
def test_numbers_that_make_no_sense(n):
    before = rg.num_threads()
    with pytest.raises(rg.OptionError, match="number of threads"):
        rg.num_threads(n)
    assert rg.num_threads() == before
