"""Worker processes of a loader: what runs in them, and the pool that the loader has of them."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import queue
import random
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

import numpy as np

from retrograd.data.fetch import Fetcher, StreamFetcher
from retrograd.data.iterable import set_epoch
from retrograd.data.randomness import GLOBALS, SampleContext
from retrograd.data.shared_batches import BatchReceiver, BatchSender
from retrograd.eager.modes import num_threads
from retrograd.errors import ArgumentError, OptionError, WorkerError, WorkerTimeoutError
from retrograd.tuning import TUNING


@dataclass(frozen=True)
class WorkerInfo:
    """What a worker process is: its number, how many there are, its seed, the dataset it has."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


_INFO: list[WorkerInfo] = []


def get_worker_info() -> WorkerInfo | None:
    """Which worker process of a loader this is; None in the process of the loader itself.

    >>> from retrograd.data import get_worker_info
    >>> get_worker_info() is None
    True
    """
    return _INFO[0] if _INFO else None


@dataclass(frozen=True)
class LoaderOptions:
    """What a worker is made with."""

    dataset: Any
    collate: Callable[[Any], Any]
    is_batched: bool
    batch_size: int | None
    drop_last: bool
    init: Callable[[int], None] | None
    num_workers: int
    seed: int


# -- in the worker --------------------------------------------------------------------------------
def _run(
    number: int, connection: Connection, others: list[Connection], options: LoaderOptions
) -> None:
    """The life of a worker process."""
    for other in others:  # inherited from the parent by a fork
        other.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
    worker = _Worker(number, connection, options)
    listening = (connection, tasks, worker, os.getppid())
    threading.Thread(target=_listen, args=listening, daemon=True).start()
    # The parent has gone, or does not want what is being sent.
    with num_threads(1), contextlib.suppress(BrokenPipeError, ConnectionResetError):
        while (task := tasks.get()) is not None and not worker.is_stopping:
            worker.do(*task)


def _listen(connection: Connection, tasks: Any, worker: _Worker, parent: int) -> None:
    """Take tasks as they come, so that the parent never waits to get rid of one; and see to it that
    the worker ends when the parent has."""
    try:
        while True:
            if not connection.poll(TUNING.worker_poll_s):
                if os.getppid() != parent:
                    os._exit(1)
                continue
            task = connection.recv()
            if task is None:
                break
            if task[0] == "epoch":
                worker.newest = task[1]
            tasks.put(task)
    except (EOFError, OSError):
        pass
    worker.is_stopping = True
    tasks.put(None)
    # What is in a sample that takes long ends with the parent, whose pipes are closed before it is
    # gone. It may have been gone when this began: then the number is that of who came after it.
    program = multiprocessing.parent_process()
    while os.getppid() == parent and (program is None or program.is_alive()):
        time.sleep(TUNING.worker_poll_s)
    os._exit(1)


class _Worker:
    def __init__(self, number: int, connection: Connection, options: LoaderOptions) -> None:
        self.number = number
        self.options = options
        self.sender = BatchSender(connection)
        self.is_stopping = False
        self.newest = -1  # pass over the dataset that was asked for last
        self._pass = -1
        self._unstarted: Exception | None = None  # what worker_init_fn raised
        self._failed: Exception | None = None  # or the beginning of a pass
        self._fetch: Any = None
        self._context: SampleContext | None = None
        own = _seed_for(options.seed, number)
        _INFO[:] = [WorkerInfo(number, options.num_workers, own, options.dataset)]
        _seed_globals(own)
        if (torch := sys.modules.get("torch")) is not None:
            torch.set_num_threads(1)  # its threads are not there after a fork
        if options.init is not None:
            try:
                options.init(number)
            except Exception as error:
                error.add_note("raised by worker_init_fn")
                self._unstarted = error

    def do(self, kind: str, *arguments: Any) -> None:
        """One task."""
        if kind == "epoch":
            self._begin(*arguments)
        else:
            self._batch(*arguments)

    def _begin(self, number: int, seed: int, epoch: int, stream: Any) -> None:
        self._pass, self._failed = number, self._unstarted
        self._context = context = SampleContext(seed, epoch)
        options = self.options
        if self._failed is not None:
            return
        if stream is None:
            self._fetch = Fetcher(options.dataset, options.collate, options.is_batched)
            return
        skip, shards = stream
        try:
            part = options.dataset if shards == 1 else options.dataset.shard(shards, self.number)
            set_epoch(part, epoch)
            self._fetch = StreamFetcher(
                part, options.collate, options.batch_size, options.drop_last, context,
                skip=skip, step=shards, offset=self.number,
            )  # fmt: skip
        except Exception as error:
            self._failed = error

    def _batch(self, number: int, key: Any, indices: Any, freed: list[int]) -> None:
        self.sender.free(freed)
        if number != self.newest or number != self._pass:
            return  # nobody waits for it any more
        try:
            if self._failed is not None:
                raise self._failed
            assert self._context is not None
            place = key if isinstance(key, tuple) else (key,)
            _seed_globals(_seed_for(self._context.seed, self._context.epoch, *place))
            batch = self._fetch() if indices is None else self._fetch(indices, self._context)
        except Exception as error:
            self.sender.connection.send(("error", (number, key), *_portable(error)))
            return
        try:
            self.sender.send((number, key), batch)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            error.add_note("a batch goes to the process of the loader pickled; this one cannot be")
            self.sender.connection.send(("error", (number, key), *_portable(error)))


def _seed_for(seed: int, *what: int) -> int:
    """A seed of 32 bits that follows from another and from what it is for."""
    mixed = np.random.SeedSequence(seed, spawn_key=(GLOBALS, *what))
    return int(mixed.generate_state(1, np.uint32)[0])


def _seed_globals(seed: int) -> None:
    """Seed the generators that belong to nobody, of Python, NumPy, and PyTorch where that is used:
    what datasets of the user's may draw from."""
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    if (torch := sys.modules.get("torch")) is not None:
        torch.default_generator.manual_seed(seed)


def _portable(error: Exception) -> tuple[Exception | None, str]:
    """An exception that can be sent, if it can; and how it is printed."""
    text = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # whatever an exception's own class does then
        return None, text
    return error, text


# -- in the parent --------------------------------------------------------------------------------
class WorkerFailure:
    """What came in the place of a batch."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


class _Handle:
    """A worker, as the parent sees it."""

    def __init__(self, number: int, process: Any, connection: Connection) -> None:
        self.number = number
        self.process = process
        self.connection = connection
        self.receiver = BatchReceiver(connection)
        self.waiting: dict[Any, Any] = {}  # what it was asked for, by key
        self.is_dead = False


class WorkerPool:
    """Worker processes, which are asked for batches and give them in whatever order they can."""

    def __init__(self, options: LoaderOptions, context: Any, timeout: float) -> None:
        self.timeout = timeout
        self._owner = os.getpid()
        self._pass = -1
        self._batches: dict[Any, Any] = {}
        self.workers: list[_Handle] = []
        try:
            for number in range(options.num_workers):
                self._start(number, options, _chosen_context(context))
        except BaseException:
            self.close()
            raise

    def _start(self, number: int, options: LoaderOptions, context: Any) -> None:
        mine, theirs = context.Pipe(duplex=True)
        forked = context.get_start_method() == "fork"
        others = [*(w.connection for w in self.workers), mine] if forked else []
        process = context.Process(
            target=_run,
            args=(number, theirs, others, options),
            daemon=True,
            name=f"DataLoader worker {number}",
        )
        try:
            with warnings.catch_warnings():
                # Of threads in a process that forks: the library has a fork wait for its own, and
                # workers compute nothing with them.
                warnings.simplefilter("ignore", DeprecationWarning)
                process.start()
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            mine.close()
            raise ArgumentError(
                f"DataLoader: a worker that is not forked is sent the dataset and the functions "
                f"pickled, which failed: {error}. Define them at the top of a module, or fork: "
                "multiprocessing_context='fork'"
            ) from error
        finally:
            theirs.close()
        self.workers.append(_Handle(number, process, mine))

    def begin(self, seed: int, epoch: int, streams: list[int] | None = None) -> None:
        """Begin a pass over the dataset; of a stream, behind so many batches in each worker."""
        self._pass += 1
        self._batches.clear()
        for w in self.workers:
            w.waiting.clear()
            stream = None if streams is None else (streams[w.number], len(streams))
            self._send(w, ("epoch", self._pass, seed, epoch, stream))

    def ask(self, key: Any, indices: Any, number: int | None = None) -> None:
        """Ask a worker for a batch, or that which has least to do."""
        alive = [w for w in self.workers if not w.is_dead] or self.workers
        w = min(alive, key=lambda w: len(w.waiting)) if number is None else self.workers[number]
        w.waiting[key] = indices
        released, w.receiver.released[:] = list(w.receiver.released), []
        self._send(w, ("batch", self._pass, key, indices, released))

    def _send(self, w: _Handle, message: Any) -> None:
        if w.is_dead:
            self._bury(w)
            return
        try:
            w.connection.send(message)
        except OSError:
            self._bury(w)

    def get(self, key: Any) -> Any:
        """The batch of a key. Raises what came in its place."""
        end = time.monotonic() + self.timeout if self.timeout else None
        while key not in self._batches:
            left = TUNING.worker_poll_s
            if end is not None:
                left = min(left, end - time.monotonic())
                if left <= 0:
                    raise self._timeout(key)
            self._receive(left)
        found = self._batches.pop(key)
        if isinstance(found, WorkerFailure):
            raise found.error
        return found

    def _receive(self, seconds: float) -> None:
        by_connection: dict[Any, _Handle] = {w.connection: w for w in self.workers if not w.is_dead}
        there = wait(list(by_connection), seconds)
        for ready in there:
            w = by_connection[ready]
            try:
                self._take(w, *w.connection.recv())
            except (EOFError, OSError):
                self._bury(w)
        for w in by_connection.values() if not there else ():
            if not w.process.is_alive():  # and somebody else has the end of its pipe
                self._bury(w)

    def _take(self, w: _Handle, kind: str, name: Any, *rest: Any) -> None:
        number, key = name
        is_batch = kind == "batch"
        found = w.receiver.receive(*rest) if is_batch else WorkerFailure(_raised(w.number, *rest))
        if number == self._pass:
            w.waiting.pop(key, None)
            self._batches[key] = found

    def _bury(self, w: _Handle) -> None:
        """A worker has died: what it was asked for will not come."""
        w.is_dead = True
        w.process.join(TUNING.worker_exit_s)
        for key, indices in w.waiting.items():
            error = WorkerError(
                f"worker process {w.number} of the DataLoader (process {w.process.pid}) "
                f"{_end(w.process.exitcode)} while it was to make "
                f"{_asked(indices)}; num_workers=0 makes them in this process, and shows what "
                "goes wrong"
            )
            self._batches[key] = WorkerFailure(error)
        w.waiting.clear()

    def _timeout(self, key: Any) -> WorkerTimeoutError:
        (w, indices) = next((w, w.waiting[key]) for w in self.workers if key in w.waiting)
        return WorkerTimeoutError(
            f"worker process {w.number} of the DataLoader has not made {_asked(indices)} within "
            f"{self.timeout} seconds; set timeout=0 to wait for as long as it takes"
        )

    def is_whole(self) -> bool:
        """Whether all workers are there."""
        return bool(self.workers) and not any(w.is_dead for w in self.workers)

    def close(self) -> None:
        """End all workers: those that are making a sample may finish it, for some seconds."""
        if os.getpid() != self._owner:  # a fork of this process, whose workers they are not
            return
        for w in self.workers:
            with contextlib.suppress(OSError):
                w.connection.send(None)
            w.connection.close()
        end = time.monotonic() + TUNING.worker_exit_s
        for w in self.workers:
            w.process.join(max(end - time.monotonic(), 0.0))
        for ending in ("terminate", "kill"):
            for w in self.workers:
                if w.process.is_alive():
                    getattr(w.process, ending)()
                    w.process.join(TUNING.worker_exit_s)
        for w in self.workers:
            if not w.process.is_alive():
                w.process.close()
        self.workers = []


def _chosen_context(context: Any) -> Any:
    """How processes are started: forked where the system can, unless one says otherwise."""
    there = multiprocessing.get_all_start_methods()
    if context is None:
        return multiprocessing.get_context("fork" if "fork" in there else None)
    if not isinstance(context, str):
        return context
    if context not in there:
        raise OptionError(f"multiprocessing_context is one of {there}, not {context!r}")
    return multiprocessing.get_context(context)


def _raised(number: int, error: Exception | None, text: str) -> BaseException:
    """What a worker raised, to be raised again."""
    where = f"in worker process {number} of the DataLoader"
    if error is None:
        return WorkerError(f"an exception that cannot be pickled was raised {where}:\n{text}")
    error.add_note(f"raised {where}:\n{text}")
    return error


def _asked(indices: Any) -> str:
    """How a batch is called."""
    if indices is None:
        return "the next batch of a stream"
    listed = np.asarray(indices).tolist()
    return f"the samples {listed[:20]}" + (" and more" if len(listed) > 20 else "")


def _end(code: int | None) -> str:
    """How a process ended."""
    if code is None:
        return "closed its connection"
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"was ended by {name}" + (
        " (as the system does when memory is short)" if name == "SIGKILL" else ""
    )


def stream_shards(dataset: Any, num_workers: int) -> int:
    """How many workers a stream can be divided among."""
    inner = getattr(dataset, "dataset", None)
    if not callable(getattr(dataset, "shard", None)):
        return 1
    if inner is not None and type(dataset).__module__ == "retrograd.data.iterable":
        return stream_shards(inner, num_workers)
    count = getattr(dataset, "num_shards", getattr(dataset, "n_shards", num_workers))
    return max(min(num_workers, int(count)), 1)
