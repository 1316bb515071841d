"""Before the processes of a run begin: all of them come, in a stated time, and fit together.

JAX's own coordinator ends a process that waits in vain, without an exception. So process 0 first
listens at its address by itself. Each of the others sends one line of JSON with its number and what
has to be the same everywhere; process 0 compares them and sends all the same answer: to go on, or
an error that says who is missing or differs. Then the port is free for the coordinator.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Mapping
from typing import Any

from retrograd.distributed.cluster import Place
from retrograd.errors import DistributedError, DistributedTimeoutError

LONGEST = 1 << 16  # bytes of a message
PAUSE = 0.05  # seconds between attempts to reach process 0
PATIENCE = 5.0  # seconds for a message of a connection that was made


def meet(place: Place, facts: Mapping[str, Any], timeout_s: float) -> None:
    """Wait until all processes are there. `facts` have to be equal in all of them.

    `DistributedTimeoutError` names those that have not come in time, `DistributedError` those that
    differ, with what they say; in every process that came.
    """
    if place.num_processes == 1:
        return
    deadline = time.monotonic() + timeout_s
    host, _, port = place.coordinator_address.rpartition(":")
    if place.process_id == 0:
        answer = _gather(place, int(port), dict(facts), deadline, timeout_s)
    else:
        answer = _join(place, (host.strip("[]"), int(port)), dict(facts), deadline, timeout_s)
    if answer.get("late"):
        raise DistributedTimeoutError(answer["late"])
    if answer.get("error"):
        raise DistributedError(answer["error"])


def _gather(
    place: Place, port: int, facts: dict[str, Any], deadline: float, timeout_s: float
) -> dict[str, Any]:
    """Process 0: hear all others, then answer all of them."""
    came: dict[int, tuple[socket.socket, dict[str, Any]]] = {}
    try:
        server = socket.create_server(("", port), backlog=place.num_processes)
    except OSError as error:
        raise DistributedError(
            f"process 0 cannot listen at {place.coordinator_address}: {error.strerror or error}; "
            "is another run using this port? Give another coordinator_address"
        ) from None
    with server:
        while len(came) < place.num_processes - 1 and (left := deadline - time.monotonic()) > 0:
            server.settimeout(left)
            try:
                link, _ = server.accept()
            except OSError:
                continue  # the time is over
            message = _heard(link, deadline)
            number, said = message.get("process"), message.get("facts")
            if isinstance(number, int) and isinstance(said, dict):
                came[number] = link, message
            else:
                link.close()
    answer = _compared(place, facts, {i: m for i, (_, m) in came.items()}, timeout_s)
    for link, _ in came.values():
        try:
            link.sendall(json.dumps(answer).encode() + b"\n")
            link.settimeout(PAUSE * 20)
            link.recv(1)  # who closes first keeps the port; that should not be this side
        except OSError:
            pass  # it has ended meanwhile, which the coordinator will notice
        link.close()
    return answer


def _heard(link: socket.socket, deadline: float) -> dict[str, Any]:
    """What somebody says who has connected; nothing, where it is no process of a run."""
    link.settimeout(min(max(deadline - time.monotonic(), PAUSE), PATIENCE))
    try:
        return _receive(link)
    except (OSError, ValueError):
        return {}


def _compared(
    place: Place, facts: dict[str, Any], came: Mapping[int, dict[str, Any]], timeout_s: float
) -> dict[str, Any]:
    """What all are told: nothing, or what is wrong."""
    numbers = set(range(1, place.num_processes))
    wrong = [
        f"process {i} was started as one of {m.get('processes')}, process 0 as one of "
        f"{place.num_processes}"
        for i, m in sorted(came.items())
        if m.get("processes") != place.num_processes or i not in numbers
    ]
    wrong += [
        f"{name} is {m['facts'].get(name)!r} in process {i} and {facts[name]!r} in process 0"
        for i, m in sorted(came.items())
        for name in facts
        if m["facts"].get(name) != json.loads(json.dumps(facts[name]))
    ]
    if wrong:
        return {"error": "the processes of this run do not fit together: " + "; ".join(wrong[:4])}
    if missing := sorted(numbers - came.keys()):
        shown = ", ".join(map(str, missing[:8])) + (", ..." if len(missing) > 8 else "")
        noun = "process" if len(missing) == 1 else "processes"
        return {
            "late": f"{noun} {shown} of {place.num_processes} did not come to "
            f"{place.coordinator_address} within {timeout_s:g} s; see whether they were started, "
            "and reach this address, or give initialize a longer timeout_s"
        }
    return {}


def _join(
    place: Place, address: tuple[str, int], facts: dict[str, Any], deadline: float, timeout_s: float
) -> dict[str, Any]:
    """Another process: go to process 0, and hear its answer."""
    hello = {"process": place.process_id, "processes": place.num_processes, "facts": facts}
    last: Exception = TimeoutError("no connection")
    while (left := deadline - time.monotonic()) > 0:
        try:
            with socket.create_connection(address, timeout=left) as link:
                link.sendall(json.dumps(hello).encode() + b"\n")
                link.settimeout(max(deadline - time.monotonic(), PAUSE) + 2)  # its time, not ours
                return _receive(link)
        except (OSError, ValueError) as error:
            last = error
            time.sleep(PAUSE)
    raise DistributedTimeoutError(
        f"process {place.process_id} of {place.num_processes} did not reach process 0 at "
        f"{place.coordinator_address} within {timeout_s:g} s ({last}); see whether it was started "
        "and the address is right, or give initialize a longer timeout_s"
    )


def _receive(link: socket.socket) -> dict[str, Any]:
    """One line of JSON; `ValueError` for anything else."""
    content = b""
    while not content.endswith(b"\n"):
        piece = link.recv(4096)
        if not piece or len(content) > LONGEST:
            raise ValueError("the connection ended before the message did")
        content += piece
    found = json.loads(content)
    if not isinstance(found, dict):
        raise ValueError("no JSON object")
    return found
