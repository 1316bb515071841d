"""Requests to stop: noted inside the block, and nothing else changes."""

import os
import signal
import threading

import pytest

from retrograd.train.interrupt import stop_requests


def test_a_signal_is_noted_and_the_second_interrupts() -> None:
    before = signal.getsignal(signal.SIGINT)
    with stop_requests() as stop:
        assert not stop
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.signal == signal.SIGTERM
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_other_threads_have_no_signals() -> None:
    found = []

    def work() -> None:
        with stop_requests() as stop:
            found.append(bool(stop))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [False]
