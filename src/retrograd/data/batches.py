"""Which samples the batches of an epoch hold: by number of the batch, so that a loader can begin
anywhere."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Protocol

import numpy as np

from retrograd.data.arrays import host_array, is_array
from retrograd.errors import ArgumentError, FormatError, OptionError
from retrograd.tuning import TUNING

Array = np.ndarray[Any, Any]


class Batches(Protocol):
    """The batches of an epoch, of which those from some number on may be asked for, in order."""

    def get(self, number: int) -> Any:
        """The indices of a batch: an array or a list; None behind the last."""

    def delivered(self, number: int) -> None:
        """Batches up to this number will not be asked for again."""

    def state(self) -> dict[str, Any]:
        """What, with the numbers of epoch and batch, says what is left of the epoch."""

    def resume(self, state: dict[str, Any]) -> None:
        """Go on where a state was taken. `FormatError` for one of other batches."""


class OrderedBatches:
    """Those of an order that is known: slices of it."""

    def __init__(self, order: Any, batch_size: int, drop_last: bool) -> None:
        self.order = order if isinstance(order, range) else np.asarray(order)
        self.batch_size = batch_size
        n = len(self.order)
        self.count = n // batch_size if drop_last else -(-n // batch_size)
        self._checksum: int | None = None

    def get(self, number: int) -> Array | None:
        if number >= self.count:
            return None
        part = self.order[number * self.batch_size : (number + 1) * self.batch_size]
        return np.arange(part.start, part.stop, part.step) if isinstance(part, range) else part

    def delivered(self, number: int) -> None:
        pass

    def state(self) -> dict[str, Any]:
        return {"order": self.checksum()}

    def checksum(self) -> int:
        """A number that tells this order from others."""
        if self._checksum is None:
            order = self.order
            content = repr(order).encode() if isinstance(order, range) else order.tobytes()
            self._checksum = zlib.crc32(content)
        return self._checksum

    def resume(self, state: dict[str, Any]) -> None:
        if state.get("order") != self.checksum():
            raise FormatError(
                "the state of the loader is of an epoch in another order: the sampler, or its "
                "weights, are not those it was saved with. Make the loader as it was, or begin "
                "the epoch anew: state['batch'] = 0"
            )


class ListedBatches:
    """Those that an iterable gives, such as a sampler of one's own. What has been taken from it and
    not been delivered is kept; for a state, all that is left is taken."""

    def __init__(self, batches: Iterable[Any]) -> None:
        self._source: Iterator[Any] | None = iter(batches)
        self._taken: dict[int, list[int]] = {}
        self._next = 0

    def get(self, number: int) -> list[int] | None:
        while self._next <= number and self._take():
            pass
        return self._taken.get(number)

    def _take(self) -> bool:
        if self._source is None:
            return False
        for given in islice(self._source, 1):
            self._taken[self._next] = indices_of(given)
            self._next += 1
            return True
        self._source = None
        return False

    def delivered(self, number: int) -> None:
        self._taken.pop(number, None)

    def state(self) -> dict[str, Any]:
        count = 0
        while self._take():
            count += len(self._taken[self._next - 1])
            if count > TUNING.listed_indices:
                raise OptionError(
                    f"the sampler has given more than {TUNING.listed_indices} indices, and may "
                    "have no end, so that what is left of the epoch cannot be kept; make it "
                    "an rg.data.Sampler with draw(rng), whose order follows from a seed"
                )
        return {"rest": [self._taken[k] for k in sorted(self._taken)]}

    def resume(self, state: dict[str, Any]) -> None:
        if "rest" not in state:
            raise FormatError(
                "the state of the loader is of an epoch in an order of its own, but this loader "
                "has a sampler that gives one; make the loader as it was"
            )
        first = state["batch"]
        self._source = None
        self._taken = {first + i: list(indices) for i, indices in enumerate(state["rest"])}
        self._next = first + len(self._taken)


def indices_of(batch: Any) -> list[Any]:
    """What a batch sampler gives, as a list that a dataset is asked for, and that can be saved:
    integers are Python's."""
    if is_array(batch):
        return host_array(batch).tolist()
    if not isinstance(batch, Iterable) or isinstance(batch, str | bytes):
        raise ArgumentError(
            f"a batch sampler gives lists of indices, not {batch!r}; a sampler of single indices "
            "is passed as sampler="
        )
    return [i.__index__() if hasattr(i, "__index__") else i for i in batch]
