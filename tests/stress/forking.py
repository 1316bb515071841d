"""A process whose threads are at work while it forks: `forking.py KIND FORKS SEED`.

Each child computes whatever there is to compute, eagerly, compiled anew, on several threads, and
ends; a child that takes longer than `LIMIT` seconds is one that waits for a thread that it does not
have.
"""

import faulthandler
import logging  # noqa: F401 (Python fails where a thread imports it while the process forks)
import multiprocessing
import os
import random
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

import retrograd as rg

LIMIT = 60.0
X = np.linspace(0.0, 1.0, 5)
LARGE = np.ones((300, 300), np.float32)

w = rg.tensor([1.0, 2.0], requires_grad=True)
waiting: list[Any] = [w * 3.0]  # recorded by one thread, looked at by others and by children
product = rg.jit(lambda a: (a @ a).sum())
fresh = iter(range(1, 1 << 30))


def compiled() -> None:
    k = next(fresh)
    rg.jit(lambda a: rg.tanh(a * k) * k + rg.exp(a + k))(X)


def differentiated() -> None:
    (rg.exp(w) * 2).sum().backward()
    waiting[0] = w * 3.0


def several() -> None:
    with rg.num_threads(2):
        product(LARGE).numpy()


def eager() -> None:
    rg.softmax(rg.ones((1 + next(fresh) % 50, 3)), axis=0).numpy()


def scalar() -> None:
    v = rg.Value(2.0)
    (v * v + v).backward()


def special() -> None:
    with rg.backend("reference"):
        rg.special.zeta(2.0 + rg.ones(3), 1.0).numpy()


KINDS: dict[str, list[Callable[[], None]]] = {
    "compile": [compiled],
    "backward": [differentiated],
    "team": [several],
    "eager": [eager],
    "value": [scalar],
    "all": [compiled, differentiated, several, eager, scalar, special],
}


def at_work(kind: str, seed: int, stop: threading.Event) -> None:
    choose = random.Random(seed)
    try:
        while not stop.is_set():
            choose.choice(KINDS[kind])()
    except BaseException:
        traceback.print_exc()
        os._exit(9)


def everything() -> None:
    """What a child does."""
    with rg.num_threads(2):
        assert product(LARGE).item() == 300.0**3
    y = rg.jit(lambda a: rg.sin(a) * 7 + a)(X)
    np.testing.assert_allclose(y.numpy(), np.sin(X) * 7 + X)
    u = rg.tensor([1.0, 2.0], requires_grad=True)
    (u * u).sum().backward()
    assert u.grad.tolist() == [2, 4]
    assert waiting[0].numpy().shape == (2,)
    w.grad = None
    (w * 2).sum().backward()
    assert w.grad.tolist() == [2, 2]  # type: ignore[attr-defined]
    v = rg.Value(2.0)
    (v * v).backward()
    assert v.grad == 4
    special()
    other = threading.Thread(target=lambda: rg.jit(lambda a: a * 3.25)(X).numpy(), daemon=True)
    other.start()
    other.join(LIMIT / 2)
    assert not other.is_alive()


def child() -> None:
    faulthandler.dump_traceback_later(LIMIT, exit=True)
    everything()
    faulthandler.cancel_dump_traceback_later()


def forked() -> int:
    """How a child ends."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    try:
        child()
    except BaseException:
        traceback.print_exc()
        os._exit(3)
    os._exit(0)


def main(kind: str, forks: int, seed: int) -> None:
    choose = random.Random(seed)
    stop = threading.Event()
    threads = [
        threading.Thread(target=at_work, args=(kind, seed + i, stop), daemon=True) for i in range(3)
    ]
    for t in threads:
        t.start()
    ends = []
    for _ in range(forks):
        time.sleep(choose.random() * 0.03)
        ends.append(forked())
    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join()
    stop.set()
    for t in threads:
        t.join(LIMIT)
    alive = [t for t in threads if t.is_alive()]
    sys.stdout.write(f"{[*ends, process.exitcode]} {alive}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
