"""Worker processes: the same batches as without, and what happens where one ends."""

import gc
import itertools
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import retrograd as rg
from retrograd.data import (
    ArrayDataset,
    DataLoader,
    IterableDataset,
    MapDataset,
    MapIterableDataset,
    ShuffleBuffer,
    get_worker_info,
    sample_generator,
)
from retrograd.data.workers import stream_shards
from tests.data.loaders import LOADERS, N, X, Y, everything, noisy, plain

if sys.platform == "win32":
    pytest.skip("processes are not forked", allow_module_level=True)


@pytest.fixture(autouse=True)
def _nothing_is_left():
    """Neither processes nor shared memory."""
    yield
    gc.collect()
    assert multiprocessing.active_children() == []
    maps = Path("/proc/self/maps")
    if maps.exists():
        assert "retrograd-batch" not in maps.read_text()


def check_resumed_by_workers(make, positions):
    reference = make()
    first, second = everything(reference), everything(reference)
    for position in positions:
        saved = make(num_workers=2)
        iterator = iter(saved)
        assert [plain(b) for b in itertools.islice(iterator, position)] == first[:position]
        state = json.loads(json.dumps(saved.state_dict()))
        del iterator
        resumed = make(num_workers=2, persistent_workers=True)
        resumed.load_state_dict(state)
        assert everything(resumed) == first[position:]
        assert everything(resumed) == second


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", LOADERS)
def test_loaders_with_workers_resumed_at_every_position(name):
    check_resumed_by_workers(LOADERS[name], range(len(everything(LOADERS[name]())) + 1))


def test_large_batches_come_in_shared_memory_and_are_kept():
    x = np.random.default_rng(0).random((40, 5000)).astype(np.float32)
    loader = DataLoader(ArrayDataset(x, np.arange(40)), 4, num_workers=2)
    batches = list(loader)  # all at once, so that no segment can be used again
    assert rg.concat([b for b, _ in batches]).numpy().tobytes() == x.tobytes()
    assert "retrograd-batch" in Path("/proc/self/maps").read_text()
    for (b, _), rows in zip(loader, x.reshape(10, 4, 5000), strict=True):
        assert b.numpy().tobytes() == rows.tobytes()
        del b


def test_batches_of_any_kind():
    def odd(samples):
        big = np.asfortranarray(np.ones((100, 200)))
        return {"n": len(samples), "f": big, "s": big[:, ::2], "t": rg.tensor(big), "o": {4}}

    (a,) = DataLoader(range(3), 3, collate_fn=odd, num_workers=1)
    (b,) = DataLoader(range(3), 3, collate_fn=odd)
    assert (a["n"], a["o"]) == (3, {4})
    assert type(a["f"]) is type(b["f"]) is np.ndarray
    assert isinstance(a["t"], rg.Tensor)
    assert all((np.asarray(a[k]) == np.asarray(b[k])).all() for k in "fst")


class Parts(IterableDataset):
    """A stream that can be divided."""

    def __init__(self, parts=None):
        self.parts = [range(5), range(10, 13), range(20, 27)] if parts is None else parts
        self.num_shards = len(self.parts)

    def shard(self, num_shards, index):
        return Parts(self.parts[index::num_shards])

    def __iter__(self):
        for i in itertools.chain(*self.parts):
            yield i, int(sample_generator().integers(1000))


@pytest.mark.parametrize(
    "wrap", [lambda d: d, lambda d: MapIterableDataset(ShuffleBuffer(d, 3), tuple)]
)
@pytest.mark.slow
def test_streams_in_parts(wrap):
    make = lambda: DataLoader(wrap(Parts()), 2, num_workers=2)
    expected = everything(make())
    assert sorted(i for b in expected for i in b[0]) == [*range(5), 10, 11, 12, *range(20, 27)]
    for position in (1, 4, len(expected)):
        saved = make()
        iterator = iter(saved)
        list(itertools.islice(iterator, position))
        state = saved.state_dict()
        del iterator
        resumed = make()
        resumed.load_state_dict(state)
        assert everything(resumed) == expected[position:]
    one = DataLoader(wrap(Parts()), 2)
    one.load_state_dict(state)
    with pytest.raises(rg.FormatError, match="a stream in 2 parts, but here it is in 1"):
        iter(one)


def test_streams_that_ask_which_worker_they_are_in():
    """PyTorch's habit: of one worker, that is all."""

    class Habit(IterableDataset):
        def __iter__(self):
            info = get_worker_info()
            return iter(range(info.id, N, info.num_workers) if info else range(N))

    assert everything(DataLoader(Habit(), 4, num_workers=3)) == everything(DataLoader(Habit(), 4))


def test_how_many_parts():
    assert stream_shards(Parts(), 8) == 3
    assert stream_shards(ShuffleBuffer(Parts(), 2), 2) == 2
    assert stream_shards(ShuffleBuffer(range(3), 2), 2) == 1
    assert stream_shards(iter([1]), 2) == 1


def test_what_a_worker_knows():
    mark: list[int] = []

    def told(i):
        info = get_worker_info()
        return info.id, info.num_workers, info.seed, mark[0], len(info.dataset)

    ids, counts, seeds, marks, sizes = next(
        iter(DataLoader(MapDataset(range(4), told), 4, num_workers=2, worker_init_fn=mark.append))
    )
    assert {*ids.tolist()} <= {0, 1}
    assert {*counts.tolist(), *sizes.tolist()} == {2, 4}
    assert len({*seeds.tolist()}) == 1
    assert marks.tolist() == ids.tolist()
    assert mark == []
    assert get_worker_info() is None


@pytest.mark.slow
def test_generators_that_belong_to_nobody_are_seeded_for_each_batch():
    """So that a dataset of a user's, which draws from them, can be resumed too."""

    def careless(i):
        return i, random.random(), np.random.rand()  # noqa: NPY002

    make = lambda **k: DataLoader(MapDataset(range(N), careless), 3, shuffle=True, **k)
    loader = make(num_workers=1)
    first, second = everything(loader), everything(loader)
    assert len({r for b in first + second for r in b[1] + b[2]}) == 4 * N
    saved = make(num_workers=2)
    iterator = iter(saved)
    next(iterator)
    state = saved.state_dict()
    del iterator
    resumed = make(num_workers=2)
    resumed.load_state_dict(state)
    assert everything(resumed) == first[1:]
    assert everything(resumed) == second


@pytest.mark.torch
def test_datasets_of_pytorch():
    import torch
    from torch.utils import data

    class Noisy(data.Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, i):
            return torch.full((3,), float(i)), torch.rand(())

    class Flow(data.IterableDataset):
        def __iter__(self):
            info = data.get_worker_info()
            assert info is None
            return iter(torch.arange(7))

    loader = DataLoader(Noisy(), 4, num_workers=2)
    batches = [*loader, *loader]
    assert rg.concat([x for x, _ in batches])[:, 0].tolist() == [*range(8)] * 2
    assert len({v for _, r in batches for v in r.tolist()}) == 16
    assert everything(DataLoader(Flow(), 4, num_workers=2)) == [[0, 1, 2, 3], [4, 5, 6]]


def test_datasets_of_hugging_face():
    datasets = pytest.importorskip("datasets")
    theirs = datasets.Dataset.from_dict({"ids": [[i, i + 1] for i in range(N)]})
    expected = everything(DataLoader(theirs, 4))
    assert everything(DataLoader(theirs, 4, num_workers=2)) == expected
    flow = theirs.to_iterable_dataset(num_shards=2)
    found = everything(DataLoader(flow, 4, num_workers=3))
    rows = sorted(tuple(r) for b in found for r in b["ids"])
    assert rows == [(i, i + 1) for i in range(N)]
    assert len(found) == 4
    shuffled = DataLoader(flow.shuffle(seed=1, buffer_size=5), 2, num_workers=2)
    assert everything(shuffled) != everything(shuffled)


@pytest.mark.slow
def test_two_at_once_and_workers_that_stay():
    make = lambda **k: DataLoader(MapDataset(range(N), noisy), 3, shuffle=True, **k)
    for k in ({}, {"persistent_workers": True}):
        loader, alone = make(num_workers=1, **k), make()
        pairs = [(plain(a), plain(b)) for a, b in zip(loader, loader, strict=True)]
        assert [a for a, _ in pairs] == everything(alone)
        assert [b for _, b in pairs] == everything(alone)
        assert everything(loader) == everything(alone)


@pytest.mark.slow
def test_workers_that_stay_are_those_of_the_epoch_before():
    pids = DataLoader(
        MapDataset(range(4), lambda i: os.getpid()), 1, num_workers=1, persistent_workers=True
    )
    first = everything(pids)
    assert first == everything(pids)
    for _ in pids:
        break  # what is on its way is not given to the next
    assert everything(pids) == first
    other = DataLoader(MapDataset(range(4), lambda i: os.getpid()), 1, num_workers=1)
    assert everything(other) != everything(other)


def test_batches_of_an_epoch_that_was_left_are_not_given_to_the_next():
    make = lambda **k: DataLoader(MapDataset(range(N), noisy), 2, shuffle=True, **k)
    loader, alone = make(num_workers=1, persistent_workers=True), make()
    for _ in loader:
        time.sleep(0.1)  # until those that were asked for ahead are in the pipe
        break
    everything(alone)
    assert everything(loader) == everything(alone)


# -- what goes wrong ------------------------------------------------------------------------------
def at_five(f):
    return MapDataset(range(N), lambda i: f() if i == 5 else i)


class Odd(Exception):
    def __init__(self, a, b):
        super().__init__(f"odd {a}")


def test_errors_come_with_their_traceback_and_in_order():
    def broken():
        raise KeyError("broken")

    iterator = iter(DataLoader(at_five(broken), 2, num_workers=2))
    assert [plain(next(iterator)) for _ in range(2)] == [[0, 1], [2, 3]]
    with pytest.raises(KeyError, match="broken") as caught:
        next(iterator)
    first, second = caught.value.__notes__
    assert first == "raised while sample 5 of MapDataset was made"
    assert "raised in worker process" in second
    assert "in broken" in second
    assert list(iterator) == []

    def odd():
        raise Odd(1, 2)

    with pytest.raises(rg.WorkerError, match=r"(?s)cannot be pickled.*in odd.*Odd: odd 1"):
        everything(DataLoader(at_five(odd), 2, num_workers=1))


def test_shapes_are_named_from_afar():
    loader = DataLoader([np.ones(2)] * 5 + [np.ones(3)], 2, num_workers=1)
    with pytest.raises(rg.ShapeError, match=r"sample 5 has \(3,\) and sample 4 has \(2,\).*pad=0"):
        everything(loader)


def test_a_start_that_fails():
    def started(number):
        raise ValueError(f"no start of {number}")

    with pytest.raises(ValueError, match="no start of 0") as caught:
        everything(DataLoader(X, num_workers=1, worker_init_fn=started))
    assert "raised by worker_init_fn" in caught.value.__notes__


def test_a_stream_whose_beginning_fails_may_begin_again():
    class Flaky(IterableDataset):
        def __iter__(self):
            if sample_generator().random() < 0.5:
                raise ValueError("no beginning")
            return iter(range(3))

    loader = DataLoader(Flaky(), 3, num_workers=1, persistent_workers=True)
    outcomes = []
    for _ in range(8):
        try:
            outcomes += everything(loader)
        except ValueError:
            outcomes.append(None)
    assert {str(o) for o in outcomes} == {"None", "[0, 1, 2]"}
    assert outcomes == outcomes_without_workers(Flaky())


def outcomes_without_workers(dataset):
    loader, found = DataLoader(dataset, 3), []
    for _ in range(8):
        try:
            found += everything(loader)
        except ValueError:
            found.append(None)
    return found


def test_batches_that_cannot_be_sent():
    loader = DataLoader(X, num_workers=1, collate_fn=lambda s: lambda: s)
    with pytest.raises((AttributeError, TypeError, Exception), match="pickle") as caught:
        everything(loader)
    assert any("goes to the process of the loader pickled" in n for n in caught.value.__notes__)


@pytest.mark.parametrize(
    ("end", "message"),
    [
        (
            lambda: os.kill(os.getpid(), signal.SIGKILL),
            r"was ended by SIGKILL \(as the",
        ),
        (lambda: os._exit(3), "ended with exit code 3"),
        (lambda: os.kill(os.getpid(), signal.SIGTERM), "was ended by SIGTERM"),
    ],
)
def test_a_worker_that_dies(end, message):
    iterator = iter(DataLoader(at_five(end), 2, num_workers=2))
    assert [plain(next(iterator)) for _ in range(2)] == [[0, 1], [2, 3]]
    with pytest.raises(rg.WorkerError, match=message + r".*samples \[4, 5\]"):
        next(iterator)


@pytest.mark.slow
def test_a_worker_that_dies_while_nobody_looks():
    loader = DataLoader(range(N), 1, num_workers=1, persistent_workers=True)
    everything(loader)
    (worker,) = multiprocessing.active_children()
    assert worker.pid is not None
    os.kill(worker.pid, signal.SIGKILL)
    worker.join()
    with pytest.raises(rg.WorkerError, match="SIGKILL"):
        everything(loader)
    assert everything(loader) == [[i] for i in range(N)]  # by new ones


@pytest.mark.slow
def test_a_worker_that_takes_too_long():
    iterator = iter(DataLoader(at_five(lambda: time.sleep(60)), 5, num_workers=1, timeout=0.5))
    assert plain(next(iterator)) == [0, 1, 2, 3, 4]
    start = time.monotonic()
    with pytest.raises(rg.WorkerTimeoutError, match=r"not made the samples \[5, 6, .*0.5 seconds"):
        next(iterator)
    assert time.monotonic() - start < 10
    assert issubclass(rg.WorkerTimeoutError, TimeoutError)


@pytest.mark.slow
def test_abandoned_iterators_take_their_workers_along():
    x = np.ones((64, 4000))
    for _ in DataLoader(ArrayDataset(x), 4, num_workers=2):
        break
    gc.collect()
    assert multiprocessing.active_children() == []

    def leave():
        for _ in DataLoader(ArrayDataset(x), 4, num_workers=2):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        leave()


def test_a_fork_of_the_parent_ends_no_workers():
    iterator = iter(DataLoader(range(N), 2, num_workers=1))
    next(iterator)
    child = multiprocessing.get_context("fork").Process(target=iterator.close)  # type: ignore[attr-defined]
    child.start()
    child.join()
    assert child.exitcode == 0
    assert len(list(iterator)) == 5


@pytest.mark.slow
def test_workers_compute_beside_threads_of_the_runtime():
    """What is forked while other threads compute can compute itself."""
    x = rg.ones((300, 300))
    stop = threading.Event()

    def busy():
        f = rg.jit(lambda a: (a @ a).sum())
        while not stop.is_set():
            f(x).item()

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        loader = DataLoader(
            MapDataset(range(6), lambda i: (x * float(i)).sum(axis=0) + 1.0), 2, num_workers=2
        )
        batches = list(loader)
    finally:
        stop.set()
        thread.join()
    assert rg.concat(batches)[:, 0].tolist() == [300.0 * i + 1 for i in range(6)]


def test_without_fork_what_cannot_be_pickled_is_refused():
    loader = DataLoader(at_five(len), num_workers=1, multiprocessing_context="spawn")
    with pytest.raises(rg.ArgumentError, match=r"sent the dataset .* pickled.*context='fork'"):
        next(iter(loader))
    with pytest.raises(rg.OptionError, match="multiprocessing_context is one of"):
        next(iter(DataLoader(X, num_workers=1, multiprocessing_context="fast")))


PROGRAM = """
import os, sys, time
import numpy as np
from retrograd.data import ArrayDataset, DataLoader, MapDataset

def slow(sample, rng):
    if {slow} and sample[1] == 40:
        time.sleep(60)
    return sample[0] + rng.random(), sample[1]

if __name__ == "__main__":
    data = MapDataset(ArrayDataset(np.ones((64, 3000)), np.arange(64)), slow)
    loader = DataLoader(data, 8, num_workers=2, multiprocessing_context={context!r})
    iterator = iter(loader)
    print(next(iterator)[1].tolist(), flush=True)
    {then}
"""


def run(tmp_path, then, slow=False, context="fork", **options):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.format(then=then, slow=slow, context=context))
    source = Path(rg.__file__).parents[1]
    return subprocess.Popen(
        [sys.executable, str(path)],
        env={**os.environ, "PYTHONPATH": str(source)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **options,
    )


def members(session):
    """The processes of a session that are alive."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def gone(session, seconds=15.0):
    end = time.monotonic() + seconds
    while members(session):
        if time.monotonic() > end:
            os.killpg(session, signal.SIGKILL)
            return False
        time.sleep(0.05)
    return True


needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc")


@needs_proc
@pytest.mark.slow
@pytest.mark.parametrize("context", ["fork", "spawn", "forkserver"])
def test_a_program_that_ends_with_an_iterator_in_use(tmp_path, context):
    process = run(tmp_path, "pass", context=context)
    out, err = process.communicate(timeout=60)
    assert (out, err, process.returncode) == ("[0, 1, 2, 3, 4, 5, 6, 7]\n", "", 0)
    assert gone(process.pid)


@needs_proc
@pytest.mark.slow
def test_ctrl_c_ends_workers_without_a_word(tmp_path):
    process = run(tmp_path, "list(iterator)", slow=True)
    assert process.stdout.readline() == "[0, 1, 2, 3, 4, 5, 6, 7]\n"
    time.sleep(1)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all
    _, err = process.communicate(timeout=30)
    assert err.rstrip().endswith("KeyboardInterrupt")
    assert err.count("Traceback") == 1
    assert gone(process.pid)


@needs_proc
@pytest.mark.slow
@pytest.mark.parametrize("context", ["fork", "spawn", "forkserver"])
def test_workers_of_a_killed_process_end(tmp_path, context):
    process = run(tmp_path, "list(iterator)", slow=True, context=context)
    assert process.stdout.readline() == "[0, 1, 2, 3, 4, 5, 6, 7]\n"
    process.kill()
    process.communicate(timeout=30)
    assert gone(process.pid)


@pytest.mark.slow
def test_other_ways_to_start_processes(tmp_path):
    outs = [
        run(tmp_path, "print(sum(float(b[0].sum()) for b in iterator))", context=c).communicate(
            timeout=120
        )
        for c in ("fork", "spawn", "forkserver")
    ]
    assert len({*outs}) == 1
    assert outs[0][1] == ""


@pytest.mark.slow
def test_arrays_by_workers_are_the_arrays(tmp_path):
    loader = DataLoader(ArrayDataset(X, Y), 3, shuffle=True, num_workers=2)
    assert everything(loader) == everything(DataLoader(ArrayDataset(X, Y), 3, shuffle=True))
