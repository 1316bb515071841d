"""Processes meet, here as threads: who is missing or differs is said to all, in time."""

import socket
import threading
import time

import pytest

from retrograd.distributed.cluster import Place
from retrograd.distributed.rendezvous import meet
from retrograd.errors import DistributedError, DistributedTimeoutError


def met(facts, count=None, timeout_s=10.0):
    """What each of several processes with these facts is told."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    count = count or len(facts)
    said: dict[int, Exception | None] = {}

    def one(i):
        try:
            meet(Place(address, count, i, "test"), facts[i], timeout_s)
            said[i] = None
        except Exception as error:
            said[i] = error

    threads = [threading.Thread(target=one, args=(i,)) for i in facts]
    for t in reversed(threads):  # process 0 last
        t.start()
        time.sleep(0.02)
    for t in threads:
        t.join()
    return said


def test_all_come_and_fit():
    assert met({i: {"version": "1", "mesh": {"data": 3}} for i in range(3)}) == dict.fromkeys(
        range(3)
    )


def test_one_differs_and_all_are_told():
    said = met({0: {"version": "1"}, 1: {"version": "2"}, 2: {"version": "1"}})
    assert {type(e) for e in said.values()} == {DistributedError}
    assert {str(e) for e in said.values()} == {
        (
            "the processes of this run do not fit together: version is '2' in process 1 and '1' in "
            "process 0"
        )
    }


@pytest.mark.parametrize("here", [(0, 2), (1,), (0,)])
def test_one_does_not_come(here):
    began = time.monotonic()
    said = met({i: {} for i in here}, count=3, timeout_s=0.4)
    assert time.monotonic() - began < 3
    assert {type(e) for e in said.values()} == {DistributedTimeoutError}
    missing = {(0, 2): "process 1 of 3", (0,): "processes 1, 2 of 3", (1,): "process 0 at"}[here]
    assert all(missing in str(e) for e in said.values()), said


def test_somebody_else_at_the_port_is_ignored():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    done: list[str] = []

    def zero():
        meet(Place(f"127.0.0.1:{port}", 2, 0, ""), {}, 5)
        done.append("0")

    first = threading.Thread(target=zero)
    first.start()
    time.sleep(0.1)
    with socket.create_connection(("127.0.0.1", port)) as link:
        link.sendall(b"GET / HTTP/1.1\r\n\r\n")
    meet(Place(f"127.0.0.1:{port}", 2, 1, ""), {}, 5)
    first.join()
    assert done == ["0"]
