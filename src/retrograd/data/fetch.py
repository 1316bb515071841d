"""Making the batches: of samples by number, or of a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from retrograd.data.arrays import as_tensors
from retrograd.data.collate import default_collate
from retrograd.data.dataset import gather_of, length, samples_at
from retrograd.data.randomness import CURRENT, SampleContext
from retrograd.errors import IndexRangeError

Array = np.ndarray[Any, Any]
Collate = Callable[[list[Any]], Any]


class Fetcher:
    """Batches of a dataset whose samples have numbers."""

    def __init__(self, dataset: Any, collate: Collate, is_batched: bool) -> None:
        self.dataset = dataset
        self.collate = collate
        self.is_batched = is_batched
        self.length = length(dataset)
        is_default = is_batched and collate is default_collate
        self.gather = gather_of(dataset) if is_default else None

    def __call__(self, indices: Any, context: SampleContext) -> Any:
        """The batch of the samples at some indices."""
        if self.gather is not None:
            try:
                return as_tensors(self.gather(np.asarray(indices)))
            except IndexError as error:
                raise self._outside(indices) from error
        asked = indices.tolist() if isinstance(indices, np.ndarray) else indices
        context.indices = asked
        context.index = asked[0] if asked else 0
        token = CURRENT.set(context)
        try:
            samples = self._samples(asked, context)
            return self.collate(samples if self.is_batched else samples[0])
        finally:
            CURRENT.reset(token)

    def _samples(self, asked: list[Any], context: SampleContext) -> list[Any]:
        try:
            return samples_at(self.dataset, asked)
        except Exception as error:
            many = hasattr(self.dataset, "__getitems__")
            which = f"one of the samples {asked}" if many else f"sample {context.index}"
            error.add_note(f"raised while {which} of {type(self.dataset).__name__} was made")
            changed = length(self.dataset) != self.length
            if changed and isinstance(error, IndexError):
                raise self._outside(asked) from error
            if isinstance(error, StopIteration):  # which would end the epoch without a word
                raise RuntimeError(f"{which} raised StopIteration") from error
            raise

    def _outside(self, asked: Any) -> IndexRangeError:
        now = length(self.dataset) or 0
        wrong = [i for i in asked if not -now <= i < now] or list(asked)
        text = f"the dataset has {now} samples, and none with the index {wrong[0]}"
        if now != self.length:
            text += (
                f"; it had {self.length} when the epoch began. A dataset keeps its length during "
                "an epoch"
            )
        return IndexRangeError(text)


class StreamFetcher:
    """Batches of a dataset that is iterated over: the samples from number `first` on, of which
    sample i of the stream counts as the sample `i * step + offset` of the epoch."""

    def __init__(
        self,
        dataset: Any,
        collate: Collate,
        batch_size: int | None,
        drop_last: bool,
        context: SampleContext,
        skip: int = 0,
        step: int = 1,
        offset: int = 0,
    ) -> None:
        self.collate = collate
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.context = context
        self._step, self._next = step, offset
        context.index = offset
        self._stream: Iterator[Any] = self._within(lambda: iter(dataset))
        self._name = type(dataset).__name__
        for _ in range(skip * (batch_size or 1)):
            if self._sample() is _END:
                break

    def _within(self, f: Callable[[], Any]) -> Any:
        token = CURRENT.set(self.context)
        try:
            return f()
        finally:
            CURRENT.reset(token)

    def _sample(self) -> Any:
        self.context.index = self._next
        token = CURRENT.set(self.context)
        try:
            found = next(self._stream, _END)
        except Exception as error:
            error.add_note(f"raised while sample {self._next} of {self._name} was made")
            raise
        finally:
            CURRENT.reset(token)
        self._next += self._step
        return found

    def __call__(self) -> Any:
        """The next batch, or `END` where there is none."""
        first, samples = self._next, []
        for _ in range(self.batch_size or 1):
            found = self._sample()
            if found is _END:
                break
            samples.append(found)
        if not samples or (self.batch_size and self.drop_last and len(samples) < self.batch_size):
            return END
        self.context.indices = range(first, first + self._step * len(samples), self._step)
        given = samples if self.batch_size else samples[0]
        return self._within(lambda: self.collate(given))


class End:
    """What stands behind the last batch of a stream; also where it went through a pipe."""

    def __reduce__(self) -> str:
        return "END"


END = End()
_END = object()
