"""Teams: programs on several threads. Scripts of their own where a process is forked or ends."""

import ctypes
import faulthandler
import os
import platform
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from retrograd.runtime.native.os_functions import parking
from retrograd.runtime.thread_pool import ThreadPool, current_team
from tests.runtime.thread_programs import FLUSH, PATIENCE, Programs, link, wait_for

ROOT = Path(__file__).parents[2]
WAYS = sorted({parking(), "condition"} - ({"condition"} if sys.platform == "win32" else set()))
COUNTS = [1, 2, 3, 4, 5, 8]


@pytest.fixture(autouse=True)
def no_test_hangs():
    """Threads that wait for each other for ever end the process, rather than wait."""
    faulthandler.dump_traceback_later(5 * PATIENCE, exit=True, file=sys.__stderr__ or sys.stderr)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture(scope="module", params=WAYS)
def made(request):
    """Programs for a team whose threads sleep in one of the ways there are here."""
    p = Programs(ThreadPool(request.param))
    p.gather(max(COUNTS))
    return p


def script(code: str, *options: str) -> str:
    """What Python prints that runs some code, which must not fail or hang."""
    prelude = (
        "import os, sys, threading, time\n"
        "from retrograd.runtime.native import layout\n"
        "from tests.runtime.thread_programs import *\n"
    )
    done = subprocess.run(
        [sys.executable, *options, "-c", prelude + textwrap.dedent(code)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"src{os.pathsep}."},
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("threads", COUNTS)
@pytest.mark.sample(3)
def test_threads_meet_thousands_of_times(made, threads):
    assert made.wrong("meet", 3000, threads) == 0


@pytest.mark.parametrize("threads", COUNTS)
def test_whoever_comes_takes_what_is_left(made, threads):
    """The caller sees what others have written."""
    assert made.wrong("bag", 10_000, threads) == 0


@pytest.mark.parametrize("threads", COUNTS)
@pytest.mark.sample(3)
def test_the_caller_learns_the_largest_result(made, threads):
    assert made.wrong("poll", 3000, threads) == 0


@pytest.mark.slow
def test_launches_of_varying_size(made):
    rng = np.random.default_rng(0)
    for threads in rng.choice(COUNTS, 500):
        assert made.wrong("meet", 2, int(threads)) == 0
        assert made.wrong("poll", 4, int(threads)) == 0
        assert made.wrong("bag", 4, int(threads)) == 0


def test_results_do_not_depend_on_the_number_of_threads(made):
    x = np.random.default_rng(1).normal(size=64 * 101) * 1e3
    results = [made.total(x, threads) for threads in COUNTS]
    assert [used for _, used in results] == COUNTS
    assert len({y for y, _ in results}) == 1


def test_launches_after_sleeping(made):
    for _ in range(20):
        time.sleep(0.003)  # far more than workers spin
        assert made.wrong("meet", 3, 3) == 0


def test_several_callers_at_once(made):
    xs = [np.random.default_rng(k).normal(size=6400) for k in range(6)]
    alone = [made.total(x, 1)[0] for x in xs]

    def often(k: int) -> set[float]:
        return {made.total(xs[k], 2 + k % 3)[0] for _ in range(300)}

    with ThreadPoolExecutor(len(xs)) as pool:
        assert list(pool.map(often, range(len(xs)))) == [{y} for y in alone]


def test_a_caller_who_finds_the_team_at_work_runs_alone(made):
    block = np.zeros(2, np.int64)
    holder = threading.Thread(target=made.run, args=("hold", block, 2))
    holder.start()
    try:
        wait_for(block, 0, 2)
        assert made.run("count", block, 2) == 1
    finally:
        block[1] = 1
        holder.join(PATIENCE)
    assert made.run("count", block, 2) == 2


def test_one_team_for_the_process():
    with ThreadPoolExecutor(4) as pool:
        assert len({id(t) for t in pool.map(lambda _: current_team(), range(8))}) == 1


@pytest.mark.skipif(platform.machine().lower() not in ("x86_64", "amd64"), reason="x86 only")
@pytest.mark.parametrize("bits", [0x1F80, 0x9FC0, 0x3F80], ids=["usual", "flushing", "downward"])
def test_workers_round_like_the_caller(made, bits):
    address = link(FLUSH, ["flush"], {})["flush"]
    flush = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_int32)(address)
    block = np.zeros(32, np.int64)
    block[0] = 3  # the third number above zero, whose half is none
    flush(bits)
    try:
        assert made.run("halve", block, 4) == 4
    finally:
        flush(0x1F80)
    halves = block[16:20].tolist()
    assert halves == [{0x1F80: 2, 0x9FC0: 0, 0x3F80: 1}[bits]] * 4


def test_fewer_threads_where_the_system_refuses(monkeypatch):
    start, allowed = threading.Thread.start, iter([True])

    def refuse(thread: threading.Thread) -> None:
        if not next(allowed, False):
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    p = Programs(ThreadPool())
    p.gather(2)
    assert p.run("count", np.zeros(1, np.int64), 8) == 2
    assert p.wrong("meet", 100, 2) == 0


def test_an_exception_while_workers_start_does_no_harm(monkeypatch):
    start = threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        start(thread)
        raise KeyboardInterrupt

    p = Programs(ThreadPool())
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", interrupted)
        with pytest.raises(KeyboardInterrupt):
            p.team.prepare(3)
    p.gather(3)
    assert p.wrong("meet", 100, 3) == 0


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="no affinity on this system")
def test_workers_keep_off_the_processor_of_the_caller():
    said = script("""
        p = programs()
        p.gather(2)
        cpus = os.sched_getaffinity(0)
        worker = next(t.native_id for t in threading.enumerate() if t.name == "retrograd-1")
        for cpu in sorted(cpus)[:2]:
            os.sched_setaffinity(0, {cpu})
            assert p.wrong("meet", 10, 2) == 0
            allowed = os.sched_getaffinity(worker)
            assert allowed == (cpus - {cpu} if len(cpus) > 1 else cpus), (cpu, allowed)
        print("good")
    """)
    assert said == "good\n"


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="no affinity on this system")
def test_a_caller_that_sleeps_stays_on_its_processor():
    """Not where the worker is that wakes it; and only while it sleeps."""
    said = script("""
        p = programs()
        p.gather(2)
        cpus = os.sched_getaffinity(0)
        block, after = np.zeros(2, np.int64), []
        def call():
            p.run("late", block, 2)
            after.append(os.sched_getaffinity(0))
        caller = threading.Thread(target=call)
        caller.start()
        wait_for(block, 0, 2)
        time.sleep(0.1)
        asleep = os.sched_getaffinity(caller.native_id)
        worker = next(t.native_id for t in threading.enumerate() if t.name == "retrograd-1")
        allowed = os.sched_getaffinity(worker)
        block[1] = 1
        caller.join(60)
        assert after == [cpus], after
        if len(cpus) > 1:
            assert len(asleep) == 1, asleep
            assert allowed == cpus - asleep, (allowed, asleep)
        print("good")
    """)
    assert said == "good\n"


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="no affinity on this system")
def test_placing_can_be_switched_off(monkeypatch):
    monkeypatch.setenv("RETROGRAD_PIN_THREADS", "0")
    before = {t.native_id for t in threading.enumerate()}
    p = Programs(ThreadPool())
    p.gather(2)
    assert p.wrong("meet", 10, 2) == 0
    [worker] = {t.native_id for t in threading.enumerate()} - before
    assert worker is not None
    assert os.sched_getaffinity(worker) == os.sched_getaffinity(0)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="no affinity on this system")
def test_workers_may_be_anywhere_while_others_need_processors():
    said = script("""
        p = programs()
        p.gather(2)
        cpus = os.sched_getaffinity(0)
        worker = next(t.native_id for t in threading.enumerate() if t.name == "retrograd-1")
        until = p.team.words(layout.CONTENDED_UNTIL)
        for when, free in [(2**62, True), (1, False), (2**62, True)]:
            os.sched_setaffinity(0, {min(cpus)})
            until[0] = when
            assert p.wrong("meet", 10, 2) == 0
            allowed = os.sched_getaffinity(worker)
            assert allowed == (cpus if free or len(cpus) == 1 else cpus - {min(cpus)}), allowed
            assert free or until[0] != when
        print("good")
    """)
    assert said == "good\n"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems place threads themselves")
def test_a_worker_that_loses_its_processor_says_so():
    """To a caller that has waited for it."""
    said = script("""
        import resource, subprocess
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        try:
            p = programs()
            p.gather(2)
            for _ in range(10):
                block = np.zeros(2, np.int64)
                caller = threading.Thread(target=p.run, args=("late", block, 2))
                caller.start()
                wait_for(block, 0, 2)
                time.sleep(0.2)
                block[1] = 1
                caller.join(60)
                if p.team.words(layout.CONTENDED_UNTIL)[0]:
                    break
            end = time.monotonic() + 0.5
            while time.monotonic() < end:
                pass  # does the system count what others take away?
            counts = resource.getrusage(resource.RUSAGE_THREAD).ru_nivcsw > 0
            print("good" if p.team.words(layout.CONTENDED_UNTIL)[0] or not counts else "never")
        finally:
            busy.kill()
            busy.wait()
    """)
    assert said == "good\n"


def test_beside_programs_that_keep_the_processors_busy(made):
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(3)]
    try:
        xs = [np.random.default_rng(k).normal(size=6400) for k in range(3)]
        alone = [made.total(x, 1)[0] for x in xs]

        def often(k: int) -> set[float]:
            return {made.total(xs[k], 2 + n % 7)[0] for n in range(100)}

        with ThreadPoolExecutor(len(xs)) as pool:
            assert list(pool.map(often, range(len(xs)))) == [{y} for y in alone]
        for threads in COUNTS:
            assert made.wrong("bag", 300, threads) == 0
            assert made.wrong("meet", 10, threads) == 0
    finally:
        for process in busy:
            process.kill()
            process.wait()


def test_idle_workers_use_no_processor_time(made):
    made.wrong("meet", 10, 4)
    time.sleep(0.05)
    start = time.process_time()
    time.sleep(0.5)
    assert time.process_time() - start < 0.25  # a worker that spun would need twice that


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("-X", "dev")], ids=["plain", "dev"])
@pytest.mark.parametrize("nap", [0, 0.01], ids=["spinning", "asleep"])
@pytest.mark.sample(1)
def test_a_process_ends_as_it_should(options, nap):
    said = script(
        f"""
        p = programs()
        p.gather(4)
        assert p.wrong("meet", 100, 4) == 0
        time.sleep({nap})
        print("good")
        """,
        *options,
    )
    assert said == "good\n"


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_child_of_fork_has_a_team_of_its_own():
    said = script(
        """
        p = programs()
        p.gather(4)
        x = np.random.default_rng(0).normal(size=6400)
        want = p.total(x, 4)
        child = os.fork()
        if child == 0:
            assert p.team is current_team()
            assert p.team.threads == 1
            p.gather(4)
            assert p.total(x, 4) == want
            assert p.wrong("meet", 1000, 4) == 0
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert p.total(x, 4) == want
        print("good")
        """,
        "-W", "ignore::DeprecationWarning",
    )  # fmt: skip
    assert said == "good\n"


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_fork_while_another_thread_runs_a_program():
    said = script(
        """
        p = programs()
        p.gather(3)
        block = np.zeros(2, np.int64)
        holder = threading.Thread(target=p.run, args=("hold", block, 3))
        holder.start()
        wait_for(block, 0, 3)
        child = os.fork()
        if child == 0:
            p.gather(3)
            assert p.wrong("meet", 1000, 3) == 0
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        block[1] = 1
        holder.join()
        assert p.wrong("meet", 1000, 3) == 0
        print("good")
        """,
        "-W", "ignore::DeprecationWarning",
    )  # fmt: skip
    assert said == "good\n"


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_multiprocessing_by_fork():
    said = script(
        """
        import multiprocessing

        def work(k):
            p = programs()
            p.gather(2)
            return p.wrong("meet", 500, 2)

        p = programs()
        p.gather(2)
        with multiprocessing.get_context("fork").Pool(3) as pool:
            assert pool.map(work, range(6)) == [0] * 6
        assert work(0) == 0
        print("good")
        """,
        "-W", "ignore::DeprecationWarning",
    )  # fmt: skip
    assert said == "good\n"
