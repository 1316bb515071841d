"""Forks at any moment: a child finds no lock taken by a thread that it does not have."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from retrograd import shared

SCRIPT = Path(__file__).with_name("forking.py")
SOURCE = Path(shared.__file__).parents[1]
KINDS = ("compile", "backward", "team", "eager", "value")  # of work
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")


def ends_of(kind: str, forks: int, seed: int, **environment: str) -> str:
    env = {**os.environ, "PYTHONPATH": str(SOURCE), **environment}
    arguments = [str(SCRIPT), kind, str(forks), str(seed)]
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", *arguments],
        env=env, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.slow
def test_children_of_a_process_at_work():
    """The first fork comes while the compiler is being imported."""
    assert ends_of("all", 5, 1, RETROGRAD_BACKGROUND="1") == f"{[0] * 6} []\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", ["all", *[pytest.param(k, marks=pytest.mark.exhaustive) for k in KINDS]]
)
@pytest.mark.parametrize("background", ["0", "1"])
def test_many_children(kind, background, tmp_path):
    said = ends_of(kind, 25, 7, RETROGRAD_BACKGROUND=background, RETROGRAD_CACHE_DIR=str(tmp_path))
    assert said == f"{[0] * 26} []\n"


@pytest.mark.slow
def test_every_lock_is_free_in_a_child():
    """All that there are, taken by another thread when the process forks."""
    code = """
import os, threading, time
import retrograd as rg
from retrograd import shared
shared.WAIT = 0.1
rg.jit(lambda x: x + 1)(rg.ones(3))
held = rg.ones(2) * 3
buffer = held._buffer
locks = [one for _, one in shared._LOCKS] + list(shared._OWN) + [buffer.lock]
taken, done = threading.Event(), threading.Event()
def hold():
    for one in locks:
        one.acquire()
    taken.set()
    done.wait(60)
threading.Thread(target=hold, daemon=True).start()
taken.wait(60)
if pid := os.fork():
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), len(locks) > 12)
    os._exit(0)
free = [one.acquire(blocking=False) for one in locks]
for one in locks:
    one.release()
assert all(free)
assert held.tolist() == [3, 3]
assert rg.jit(lambda x: x * 5)(rg.ones(3)).tolist() == [5, 5, 5]
os._exit(7)
"""
    env = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-u", "-c", code],
        env=env, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("7 True\n", "")


@pytest.mark.slow
def test_locks_that_the_forking_thread_has_stay_its_own():
    code = """
import os
from retrograd import shared
from retrograd.eager.program_cache import LOCK
own = shared.own_lock()
with LOCK, own:
    pid = os.fork()
    assert LOCK._is_owned() and own._is_owned()
assert not LOCK._is_owned() and not own._is_owned()
if not pid:
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
print("good")
"""
    env = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code],
        env=env, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("good\n", "")
