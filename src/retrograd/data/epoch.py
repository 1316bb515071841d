"""One pass over a dataset: its batches in order, made here or by worker processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

from retrograd.data.batches import Batches
from retrograd.data.fetch import END, Fetcher, StreamFetcher
from retrograd.data.iterable import set_epoch
from retrograd.data.randomness import SampleContext
from retrograd.data.workers import LoaderOptions, WorkerPool
from retrograd.errors import FormatError, OptionError

State = dict[str, Any] | None
Pool = AbstractContextManager[WorkerPool]


class Epoch:
    """A pass, and how far it has come: `position` counts the batches that were handed out."""

    def __init__(
        self, options: LoaderOptions, seed: int, number: int, begin: dict[str, Any] | None
    ) -> None:
        self.options = options
        self.seed = seed
        self.number = number
        self.position: int = begin["batch"] if begin else 0
        self.is_done = False

    def state(self) -> dict[str, Any]:
        """What says what is left of it, beside the number of the batch."""
        raise NotImplementedError

    def run(self) -> Iterator[Any]:
        """The batches from the position on."""
        raise NotImplementedError

    def run_with(self, workers: Pool, prefetch: int) -> Iterator[Any]:
        """The same batches, of which each worker makes so many ahead."""
        raise NotImplementedError


class SampleEpoch(Epoch):
    """A pass over samples by number."""

    def __init__(
        self,
        options: LoaderOptions,
        seed: int,
        number: int,
        begin: dict[str, Any] | None,
        batches: Batches,
    ) -> None:
        super().__init__(options, seed, number, begin)
        if begin:
            batches.resume(begin)
        self.batches = batches

    def state(self) -> dict[str, Any]:
        return self.batches.state()

    def run(self) -> Iterator[Any]:
        options, batches, context = (
            self.options,
            self.batches,
            SampleContext(self.seed, self.number),
        )
        fetch = Fetcher(options.dataset, options.collate, options.is_batched)
        while (indices := batches.get(self.position)) is not None:
            batch = fetch(indices, context)
            batches.delivered(self.position)
            self.position += 1
            yield batch
        self.is_done = True

    def run_with(self, workers: Pool, prefetch: int) -> Iterator[Any]:
        batches = self.batches
        with workers as pool:
            pool.begin(self.seed, self.number)
            asked, ahead = self.position, len(pool.workers) * prefetch
            while True:
                while asked < self.position + ahead:
                    if (indices := batches.get(asked)) is None:
                        break
                    pool.ask(asked, indices)
                    asked += 1
                if asked == self.position:
                    break
                batch = pool.get(self.position)
                batches.delivered(self.position)
                self.position += 1
                if (indices := batches.get(asked)) is not None:  # before somebody trains with it
                    pool.ask(asked, indices)
                    asked += 1
                yield batch
        self.is_done = True


class StreamEpoch(Epoch):
    """A pass over a dataset that is iterated over: in one part, or in one for each worker, of which
    batches are taken in turn."""

    def __init__(
        self, options: LoaderOptions, seed: int, number: int, begin: dict[str, Any] | None
    ) -> None:
        super().__init__(options, seed, number, begin)
        set_epoch(options.dataset, number)
        parts = max(options.num_workers, 1)
        self.taken: list[int] = list(begin["streams"]) if begin else [0] * parts
        self.turn: int = begin["turn"] if begin else 0
        if len(self.taken) != parts:
            raise FormatError(
                f"the state of the loader is of a stream in {len(self.taken)} parts, but here it "
                f"is in {parts}, as num_workers or the dataset is another; make the loader as it "
                "was"
            )

    def state(self) -> dict[str, Any]:
        return {"streams": list(self.taken), "turn": self.turn}

    def run(self) -> Iterator[Any]:
        options, context = self.options, SampleContext(self.seed, self.number)
        fetch = StreamFetcher(
            options.dataset,
            options.collate,
            options.batch_size,
            options.drop_last,
            context,
            self.position,
        )
        while (batch := fetch()) is not END:
            self._took(0)
            yield batch
        if self.number and not self.position and isinstance(options.dataset, Iterator):
            raise OptionError(
                f"the dataset, {type(options.dataset).__name__}, gives its samples once, which "
                "was in an epoch before; pass an IterableDataset, whose __iter__ begins anew"
            )
        self.is_done = True

    def _took(self, part: int) -> None:
        self.taken[part] += 1
        self.position += 1
        self.turn = part + 1

    def run_with(self, workers: Pool, prefetch: int) -> Iterator[Any]:
        with workers as pool:
            left = list(range(len(pool.workers)))
            pool.begin(self.seed, self.number, self.taken)
            for part in left:
                for i in range(prefetch):
                    pool.ask((part, self.taken[part] + i), None, part)
            while left:
                part = min((p for p in left if p >= self.turn), default=left[0])
                at = self.taken[part]
                batch = pool.get((part, at))
                if batch is END:
                    left.remove(part)
                    continue
                self._took(part)
                pool.ask((part, at + prefetch), None, part)
                yield batch
        self.is_done = True
