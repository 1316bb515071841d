"""`DataLoader`: a dataset in batches, epoch after epoch."""

from __future__ import annotations

import difflib
import functools
import math
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from retrograd.data.batches import Batches, ListedBatches, OrderedBatches
from retrograd.data.collate import default_collate, default_convert
from retrograd.data.collate import pad as padded
from retrograd.data.dataset import fingerprint, length
from retrograd.data.epoch import Epoch, SampleEpoch, StreamEpoch
from retrograd.data.iterable import adapted, is_iterable_style, set_epoch
from retrograd.data.randomness import checked_seed, given_seed
from retrograd.data.samplers import (
    BatchSampler,
    RandomSampler,
    SequentialSampler,
    draws_order,
    positive,
)
from retrograd.data.workers import LoaderOptions, WorkerPool, stream_shards
from retrograd.errors import ArgumentError, FormatError, OptionError

VERSION = 1


class DataLoader:
    """A dataset in batches. Iterating over it is an epoch; each has another order, which follows
    from `seed`, or from one drawn from a `generator`, and the number of the epoch alone. Batches
    have the structure of the samples, with `rg.Tensor`s `[B, ...]` in the place of arrays and
    numbers `[...]`.

    `dataset` has `__len__` and `__getitem__`, or is iterated over (`IterableDataset`); those of
    PyTorch and of Hugging Face are taken as they are, samplers of PyTorch too.

    - `batch_size`, `drop_last`: the last batch may be shorter, or is left out. With `None` samples
      come one by one.
    - `shuffle`, `sampler`, `batch_sampler`: the order, in which samples without one come as they
      are.
    - `collate_fn` joins samples; `pad=0` is `rg.data.pad` with this value; see `default_collate`.
    - `num_workers` processes make batches ahead of time, `prefetch_factor` each, and hand them over
      in shared memory; the batches are the same as without. `worker_init_fn(number)` is called in
      each; `timeout` in seconds bounds the wait for a batch; `persistent_workers` stay from epoch
      to epoch. Processes are forked where the system can, or started as `multiprocessing_context`
      says (`"spawn"`, `"forkserver"`), for which dataset and functions have to be picklable.
    - `pin_memory` is taken as in PyTorch, and changes nothing: there is no other memory.
    - The generators of Python, NumPy and PyTorch that belong to nobody are seeded for each batch in
      workers, and left alone without; `sample_generator()` is right in both.
    - `state_dict()` says where the epoch that was begun last stands; a loader that is given it by
      `load_state_dict` goes on with the batch after, to the bit.

    `OptionError` for options that contradict each other and for an empty dataset, `ArgumentError`
    for what is no dataset; `ShapeError` for samples of different shapes; `WorkerError` where a
    worker process ends.

    >>> import numpy as np
    >>> from retrograd.data import ArrayDataset, DataLoader
    >>> loader = DataLoader(ArrayDataset(np.arange(5.0), np.arange(5)), batch_size=2, shuffle=True)
    >>> [x.shape for x, y in loader]
    [(2,), (2,), (1,)]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        seed: int = 0,
        pad: Any = None,
    ) -> None:
        self.dataset = dataset
        self._source = adapted(dataset)
        self.is_iterable = is_iterable_style(dataset)
        self.seed: int = given_seed(seed, generator, "DataLoader")
        self.num_workers = _count(num_workers, "num_workers")
        self.timeout = _seconds(timeout)
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.prefetch_factor = positive(prefetch_factor or 2, "DataLoader: prefetch_factor")
        self.persistent_workers = bool(persistent_workers)
        self._check_workers(prefetch_factor)
        self.drop_last = bool(drop_last)
        self.batch_size = None if batch_size is None else positive(batch_size, "batch_size")
        self._choose_order(shuffle, sampler, batch_sampler)
        self.collate_fn = self._chosen_collate(collate_fn, pad)
        self.epoch = 0  # that of the next iterator
        self._begin: dict[str, Any] | None = None  # a state in the middle of it
        self._current: Epoch | None = None
        self._pool: WorkerPool | None = None

    def _check_workers(self, prefetch_factor: int | None) -> None:
        if self.num_workers:
            return
        for name, given in (
            ("prefetch_factor", prefetch_factor is not None),
            ("timeout", self.timeout),
            ("persistent_workers", self.persistent_workers),
        ):
            if given:
                raise OptionError(f"DataLoader: {name} is for workers: num_workers=1 or more")

    def _choose_order(self, shuffle: bool | None, sampler: Any, batch_sampler: Any) -> None:
        if sampler is not None and shuffle:
            raise OptionError("DataLoader: a sampler gives the order; leave shuffle out")
        if self.is_iterable and (shuffle or sampler is not None or batch_sampler is not None):
            raise OptionError(
                "DataLoader: a dataset that is iterated over has its own order; for a random one: "
                "ShuffleBuffer(dataset, buffer_size)"
            )
        if batch_sampler is not None:
            if self.batch_size != 1 or shuffle or sampler is not None or self.drop_last:
                raise OptionError(
                    "DataLoader: a batch_sampler gives whole batches; leave batch_size, shuffle, "
                    "sampler and drop_last out"
                )
            self.batch_size = getattr(batch_sampler, "batch_size", None)
        elif self.batch_size is None and self.drop_last:
            raise OptionError("DataLoader: drop_last needs a batch_size")
        if not self.is_iterable and length(self._source) == 0:
            raise OptionError(
                f"DataLoader: the dataset, {type(self.dataset).__name__}, is empty; check what it "
                "was made of"
            )
        if sampler is None and batch_sampler is None and not self.is_iterable:
            kind = RandomSampler if shuffle else SequentialSampler
            sampler = kind(self._source)
        self.sampler = sampler
        self.batch_sampler = batch_sampler

    def _chosen_collate(self, collate_fn: Any, pad: Any) -> Callable[[Any], Any]:
        if collate_fn is not None and pad is not None:
            raise OptionError("DataLoader: pad is a collate_fn; give one of both")
        if collate_fn is not None and not callable(collate_fn):
            raise ArgumentError(f"DataLoader: collate_fn is a function, not {collate_fn!r}")
        if pad is not None:
            return functools.partial(padded, value=pad)
        return collate_fn or (default_convert if not self._is_batched else default_collate)

    @property
    def _is_batched(self) -> bool:
        return self.batch_size is not None or self.batch_sampler is not None

    def __len__(self) -> int:
        """The number of batches of an epoch; `TypeError` where the dataset has no length."""
        if self.batch_sampler is not None:
            return len(self.batch_sampler)
        n = len(self._source if self.is_iterable else self.sampler)
        if self.batch_size is None:
            return n
        return n // self.batch_size if self.drop_last else math.ceil(n / self.batch_size)

    def __getstate__(self) -> dict[str, Any]:
        """A copy has the options and the number of the next epoch; what is under way stays here."""
        return {**self.__dict__, "_current": None, "_pool": None}

    # -- epochs -----------------------------------------------------------------------------------
    def __iter__(self) -> Iterator[Any]:
        options, begin = self._options(), self._begin
        epoch: Epoch
        if self.is_iterable:
            epoch = StreamEpoch(options, self.seed, self.epoch, begin)
        else:
            epoch = SampleEpoch(options, self.seed, self.epoch, begin, self._batches(self.epoch))
        self._begin = None
        self.epoch += 1
        self._current = epoch
        if not self.num_workers:
            return epoch.run()
        return epoch.run_with(self._workers(options), self.prefetch_factor)

    def _options(self) -> LoaderOptions:
        shards = stream_shards(self._source, self.num_workers) if self.is_iterable else None
        return LoaderOptions(
            dataset=self._source,
            collate=self.collate_fn,
            is_batched=self._is_batched,
            batch_size=self.batch_size,
            drop_last=self.drop_last,
            init=self.worker_init_fn,
            num_workers=self.num_workers if shards is None else shards,
            seed=self.seed,
        )

    @contextmanager
    def _workers(self, options: LoaderOptions) -> Iterator[WorkerPool]:
        """Worker processes for a pass: those that stay, unless another pass has them."""
        pool, self._pool = self._pool, None
        if pool is None:
            pool = WorkerPool(options, self.multiprocessing_context, self.timeout)
            if self.persistent_workers:
                weakref.finalize(self, pool.close)
        try:
            yield pool
        finally:
            if self.persistent_workers and self._pool is None and pool.is_whole():
                self._pool = pool
            else:
                pool.close()

    def set_epoch(self, epoch: int) -> None:
        """Have the next iterator be that of this epoch."""
        self.epoch, self._begin = _count(epoch, "epoch"), None
        self._current = None

    def _batches(self, epoch: int) -> Batches:
        """Which samples the batches of an epoch hold."""
        sampler, size, drop = self.sampler, self.batch_size or 1, self.drop_last
        batched = self.batch_sampler
        if type(batched) is BatchSampler:
            sampler, size, drop = batched.sampler, batched.batch_size, batched.drop_last
        elif batched is not None:
            set_epoch(batched, epoch)
            return ListedBatches(batched)
        if draws_order(sampler):
            return OrderedBatches(sampler.order(epoch, self.seed), size, drop)
        set_epoch(sampler, epoch)
        return ListedBatches(BatchSampler(sampler, size, drop))

    # -- state ------------------------------------------------------------------------------------
    def state_dict(self) -> dict[str, Any]:
        """Where the epoch that was begun last stands: behind the last batch that was handed out.
        Numbers, text, lists and dicts. Of a sampler that is not one of `rg.data`, it holds what is
        left of the epoch.

        >>> from retrograd.data import DataLoader
        >>> loader = DataLoader(range(6), batch_size=2, shuffle=True)
        >>> epoch = iter(loader)
        >>> first, state = next(epoch).tolist(), loader.state_dict()
        >>> again = DataLoader(range(6), batch_size=2, shuffle=True)
        >>> again.load_state_dict(state)
        >>> [b.tolist() for b in again] == [b.tolist() for b in epoch]
        True
        """
        state = {
            "version": VERSION,
            "seed": self.seed,
            "epoch": self.epoch,
            "batch": 0,
            "batch_size": self.batch_size,
            "drop_last": self.drop_last,
            "dataset": fingerprint(self._source),
        }
        if self._begin is not None:
            return {**state, **self._begin}
        current = self._current
        if current is None or current.is_done:
            return state
        return {**state, "epoch": current.number, "batch": current.position, **current.state()}

    def load_state_dict(self, state: dict[str, Any], strict: bool = True) -> None:
        """Go on where the loader whose `state_dict()` this is stood: the next iterator gives what
        was left of the epoch. The seed becomes that of the state.

        `FormatError` for what is no such state, for one of another dataset, and for one of batches
        of another size; without `strict` the dataset may be another of the same length.
        """
        expected = {"version", "seed", "epoch", "batch", "batch_size", "drop_last", "dataset"}
        _check_keys(state, expected)
        for name in ("batch_size", "drop_last"):
            mine = getattr(self, name)
            if state[name] != mine:
                raise FormatError(
                    f"the state of the loader was saved with {name}={state[name]}, but this one "
                    f"has {name}={mine}; make the loader as it was"
                )
        mine = fingerprint(self._source)
        for name in mine if strict else [k for k in mine if k == "length"]:
            if state["dataset"].get(name) != mine[name]:
                raise FormatError(
                    f"the state of the loader is of another dataset: its {name} was "
                    f"{state['dataset'].get(name)}, that of this one is {mine[name]}. Load it "
                    "into a loader of the dataset it was saved with"
                    + ("" if name == "length" else "; or, if you know it is, by strict=False")
                )
        self.seed = checked_seed(state["seed"], "the state of the loader")
        self.epoch = _count(state["epoch"], "the epoch of the state of a loader")
        batch = _count(state["batch"], "the batch of the state of a loader")
        extra = {k: v for k, v in state.items() if k not in expected}
        self._begin = {"batch": batch, **extra} if batch or extra else None
        self._current = None


def _count(value: Any, what: str) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__") or int(value) < 0:
        raise OptionError(f"{what} is an integer from 0 on, not {value!r}")
    return int(value)


def _seconds(timeout: Any) -> float:
    if not isinstance(timeout, int | float) or not timeout >= 0:
        raise OptionError(f"DataLoader: timeout is a number of seconds, or 0 for none: {timeout!r}")
    return float(timeout)


def _check_keys(state: Any, expected: set[str]) -> None:
    given = set(state) if isinstance(state, dict) else set()
    if missing := sorted(expected - given):
        near = {k: difflib.get_close_matches(k, [*map(str, given - expected)], 1) for k in missing}
        hint = "".join(f"; it has {v[0]!r}, near {k!r}" for k, v in near.items() if v)
        raise FormatError(
            f"this is no state of a DataLoader: {', '.join(missing)} missing{hint}; give what "
            "state_dict() returned"
        )
    if state["version"] != VERSION:
        raise FormatError(f"a state of a DataLoader of version {state['version']}, not {VERSION}")
