"""Where the batches of a run come from, epoch by epoch, and how it goes on in the middle of one.

Batches of the same shapes that follow one another are a `Group`, which can be stacked: a program
that loops over them is given them in one call.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from itertools import islice
from typing import Any

import numpy as np

from retrograd import pytree
from retrograd.data.samplers import DistributedSampler
from retrograd.distributed.training import Placement
from retrograd.eager.conversion import as_array
from retrograd.errors import ArgumentError, DTypeError, FormatError, OptionError, ShapeError
from retrograd.functions.creation import asarray
from retrograd.functions.tensor.tensor import Tensor
from retrograd.train.loop.rows import RowReader, RowShare
from retrograd.tuning import TUNING
from retrograd.xla.agreement import is_several

Array = np.ndarray[Any, Any]
# The shapes and dtypes of the leaves of a batch, and its structure.
Signature = tuple[Any, ...]


class Group(ABC):
    """Batches of one structure, with the same shapes and dtypes, one after another. Each has so
    many `samples`, the size of its first axis, and takes so many `nbytes`."""

    structure: Any
    count: int
    samples: int
    nbytes: int

    @abstractmethod
    def batch(self, i: int) -> tuple[Tensor, ...]:
        """The leaves of one of them."""

    @abstractmethod
    def stacked(self, start: int, stop: int) -> tuple[Tensor, ...]:
        """The leaves of some of them along a new first axis."""


class Stacked(Group):
    """Batches that lie in memory one behind the other."""

    def __init__(self, leaves: list[Array], structure: Any) -> None:
        self.leaves, self.structure = leaves, structure
        self.count = len(leaves[0])
        self.samples = leaves[0].shape[1] if leaves[0].ndim > 1 else 1
        self.nbytes = sum(a.nbytes for a in leaves) // max(self.count, 1)

    def batch(self, i: int) -> tuple[Tensor, ...]:
        return tuple([_held(a[i]) for a in self.leaves])

    def stacked(self, start: int, stop: int) -> tuple[Tensor, ...]:
        return tuple([_held(a[start:stop]) for a in self.leaves])

    def part(self, start: int, stop: int) -> Stacked:
        """Some of them."""
        return Stacked([a[start:stop] for a in self.leaves], self.structure)


class OwnRows(Group):
    """Batches of which this process has its own rows, in memory one behind the other: what programs
    are given is on the mesh, and has those of all processes."""

    def __init__(self, leaves: list[Array], structure: Any, part: RowShare) -> None:
        self.leaves, self.structure, self.part = leaves, structure, part
        self.count, self.samples = len(leaves[0]), part.size
        # As many as a batch of all takes: by this all processes decide alike.
        own = self.count * len(part.rows)
        self.nbytes = sum(a.nbytes // max(own, 1) * part.size for a in leaves)

    def batch(self, i: int) -> tuple[Tensor, ...]:
        return self.part.joined([a[i] for a in self.leaves])

    def stacked(self, start: int, stop: int) -> tuple[Tensor, ...]:
        return self.part.joined([a[start:stop] for a in self.leaves], 1)


class Listed(Group):
    """Batches as they came."""

    def __init__(self, batches: list[tuple[Tensor, ...]], structure: Any) -> None:
        self.batches, self.structure = batches, structure
        self.samples, self.nbytes = samples_of(batches[0]), nbytes(batches[0])

    @property
    def count(self) -> int:  # type: ignore[override]
        return len(self.batches)

    def batch(self, i: int) -> tuple[Tensor, ...]:
        return self.batches[i]

    def stacked(self, start: int, stop: int) -> tuple[Tensor, ...]:
        columns = zip(*self.batches[start:stop], strict=True)
        return tuple([_held(np.stack([x.value() for x in column])) for column in columns])


class Repeated(Group):
    """The same batch again and again: all data that there is."""

    def __init__(self, leaves: tuple[Tensor, ...], structure: Any, count: int) -> None:
        self.leaves, self.structure, self.count = leaves, structure, count
        self.samples, self.nbytes = samples_of(leaves), nbytes(leaves)

    def batch(self, i: int) -> tuple[Tensor, ...]:
        return self.leaves

    def stacked(self, start: int, stop: int) -> tuple[Tensor, ...]:
        raise NotImplementedError("a loop over one batch is given it as it is")


def _held(array: Any) -> Tensor:
    """An array as an argument of a program, which reads it and is done with it."""
    return Tensor.dehydrated(np.asarray(array))


def samples_of(leaves: tuple[Tensor, ...]) -> int:
    """How many samples a batch has."""
    return len(leaves[0]) if leaves and leaves[0].shape else 1


def _signature(leaves: tuple[Tensor, ...], structure: Any) -> Signature:
    return (structure, *[(x.shape, x.dtype) for x in leaves])


def nbytes(leaves: tuple[Tensor, ...]) -> int:
    """The memory that a batch takes."""
    return sum(x.size * x.dtype.dtype.itemsize for x in leaves)


def grouped(batches: Iterable[tuple[tuple[Tensor, ...], Any]]) -> list[Group]:
    """Leaves and structures of batches, in groups of those alike that follow one another."""
    groups: list[Listed] = []
    last: Signature | None = None
    for leaves, structure in batches:
        signature = _signature(leaves, structure)
        if signature == last:
            groups[-1].batches.append(leaves)
        else:
            groups.append(Listed([leaves], structure))
        last = signature
    return list(groups)


class BatchSource(ABC):
    """Batches, epoch by epoch. `length` is how many an epoch has, None where nobody knows; `epoch`
    counts those that have ended, `at` the batches taken of the one that has not. `intact` says
    whether a `take` that failed has left this as it was."""

    length: int | None = None
    intact: bool = True

    def __init__(self) -> None:
        self.epoch = self.at = 0

    @abstractmethod
    def take(self, count: int) -> list[Group]:
        """The next batches of the epoch, so many at most; none where it is at its end."""

    def ready(self) -> None:  # noqa: B027 - most are
        """Raise if an epoch was to be begun, and there is none."""

    def need(self, epochs: int) -> None:  # noqa: B027 - most have any number
        """Raise if there are not so many epochs."""

    def end_epoch(self) -> None:
        """Begin another epoch."""
        if not self.at:
            raise ShapeError("fit: the data is empty: an epoch of it has no batch")
        self.epoch, self.at = self.epoch + 1, 0

    def state_dict(self) -> dict[str, Any]:
        """Where it stands."""
        return {"epoch": self.epoch, "at": self.at}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""
        self.epoch, self.at = int(state["epoch"]), int(state["at"])

    def fingerprint(self) -> Any:
        """What tells other data from this, as far as that is known."""
        return None


class ArrayRows(BatchSource):
    """Rows of arrays, `batch_size` at a time, in an order that the seed and the epoch give. Of
    several processes each takes the rows of its own devices out of them."""

    def __init__(
        self,
        data: Any,
        batch_size: int,
        shuffle: bool,
        seed: int = 0,
        drop_last: bool = False,
        placement: Placement | None = None,
    ) -> None:
        super().__init__()
        self.leaves, self.structure = _rows(data)
        self.rows = len(self.leaves[0])
        self.batch_size, self.shuffle, self.seed = batch_size, shuffle, seed
        whole, rest = divmod(self.rows, batch_size)
        self.whole = whole
        self.part = RowShare.of(placement, batch_size)
        self.last_part = RowShare.of(placement, rest) if rest else None
        self.length = whole if drop_last or not rest else whole + 1
        if not self.length:
            raise ShapeError(
                f"fit: drop_last leaves no batch: {self.rows} samples are fewer than "
                f"batch_size={batch_size}"
            )
        self._order: tuple[int, Array] | None = None

    def take(self, count: int) -> list[Group]:
        assert self.length is not None
        stop = min(self.at + count, self.length)
        groups: list[Group] = []
        size = self.batch_size
        if whole := max(min(stop, self.whole) - self.at, 0):
            chosen = self._chosen(self.at * size, (self.at + whole) * size)
            groups.append(self._group(chosen, whole, self.part))
        if stop > self.whole and stop > self.at:
            chosen = self._chosen(self.whole * size, self.rows)
            groups.append(self._group(chosen, 1, self.last_part))
        self.at = stop
        return groups

    def _group(self, chosen: Array | slice, count: int, part: RowShare | None) -> Group:
        """So many batches of these rows, of which this process may read a part."""
        if part is not None:
            every = np.arange(self.rows)[chosen] if isinstance(chosen, slice) else chosen
            chosen = every.reshape(count, -1)[:, part.rows].reshape(-1)
        found = [_taken(a, chosen) for a in self.leaves]
        shaped = [a.reshape(count, len(a) // count, *a.shape[1:]) for a in found]
        if part is not None:
            return OwnRows(shaped, self.structure, part)
        return Stacked(shaped, self.structure)

    def _chosen(self, start: int, stop: int) -> Array | slice:
        """The rows that are from one to another place in the order of the epoch."""
        if not self.shuffle:
            return slice(start, stop)
        if self._order is None or self._order[0] != self.epoch:
            rng = np.random.default_rng([self.seed, self.epoch])
            self._order = (self.epoch, rng.permutation(self.rows))
        return self._order[1][start:stop]

    def fingerprint(self) -> Any:
        return _fingerprint(self.leaves)


def _taken(a: Array | RowReader, rows: Array | slice) -> Array:
    """Some rows of what holds them."""
    if isinstance(rows, slice):
        return a[rows]
    return a.read(rows) if isinstance(a, RowReader) else np.take(a, rows, axis=0)


class WholeBatch(BatchSource):
    """All data as one batch, which is an epoch."""

    length = 1

    def __init__(self, data: Any) -> None:
        super().__init__()
        leaves, self.structure = _rows(data)
        leaves = [a[:] for a in leaves]  # all that is to be read, if something is
        self.arrays = leaves
        self.leaves = tuple(map(_held, leaves))

    def take(self, count: int) -> list[Group]:
        """The batch, as often as it is asked for: so epochs end in between, all but the last."""
        if self.at:
            return []
        self.epoch, self.at = self.epoch + count - 1, 1
        return [Repeated(self.leaves, self.structure, count)]

    def fingerprint(self) -> Any:
        return _fingerprint(self.arrays)


class BatchList(BatchSource):
    """A list of batches. Those of one shape are stacked once, where that takes little memory."""

    def __init__(self, data: list[Any]) -> None:
        super().__init__()
        self.data, self.length = data, len(data)
        groups: list[Group] = []
        first, _ = tensors_of(data[0])
        if nbytes(first) * len(data) <= TUNING.fit_stacked_bytes:
            groups = grouped(map(tensors_of, data))
        self.stack = None
        if groups and len(groups) <= 2:  # all, or all but a smaller one at the end
            leaves = [x.value() for x in groups[0].stacked(0, groups[0].count)]
            self.stack = Stacked(leaves, groups[0].structure)

    def take(self, count: int) -> list[Group]:
        start, self.at = self.at, min(self.at + count, len(self.data))
        have = self.stack.count if self.stack is not None else 0
        groups: list[Group] = []
        if self.stack is not None and start < have:
            groups.append(self.stack.part(start, min(self.at, have)))
        return groups + grouped(map(tensors_of, self.data[max(start, have) : self.at]))

    def fingerprint(self) -> Any:
        return _fingerprint([x.value() for b in self.data[:1] for x in tensors_of(b)[0]])


class BatchIterator(BatchSource):
    """What an iterable gives: a data loader, a function that returns an iterator, or an iterator,
    of which there is one epoch. A loader with a `state_dict` goes on by itself; of others the
    batches that were taken are passed over. Of one with a `DistributedSampler` the batches of all
    processes are joined."""

    def __init__(self, data: Any, placement: Placement | None = None) -> None:
        super().__init__()
        self.data = data
        self.placement = placement if _gives_parts(data) else None
        self.once = isinstance(data, Iterator)
        self.length = _length(data)
        self._iterator: Iterator[Any] | None = None
        self._failure: Exception | None = None  # of the batch behind those that were taken
        self._passed_over = 0
        self._saves = hasattr(data, "state_dict") and hasattr(data, "load_state_dict")
        if self.length == 0:
            raise ShapeError("fit: the data is empty: it has no batch")

    def need(self, epochs: int) -> None:
        if self.once and epochs > 1:
            raise ArgumentError(
                f"fit: {epochs} epochs of an iterator, which gives its batches once; give {REMEDY}"
            )

    def ready(self) -> None:
        if self._iterator is None:
            self._iterator = self._begin()

    def take(self, count: int) -> list[Group]:
        """The next batches of the epoch, so many at most. Where making one fails, those before it
        come first, so that they are learned from and saved."""
        self.ready()
        found = []
        for batch in self._made(count):
            self.intact = not self._saves  # a loader counts what it has given
            # Arrays are copied where they wait for others, lest the iterator fills them again.
            found.append(tensors_of(batch, copy=count > 1))
        if self.placement is not None:
            found = [(self.placement.batch_of_parts(x), structure) for x, structure in found]
        self.at += len(found)
        self.intact = True
        return grouped(found)

    def _made(self, count: int) -> Iterator[Any]:
        """What the iterator gives next. An error behind the first waits for the next time."""
        assert self._iterator is not None
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        for i in range(count):
            try:
                batch = next(self._iterator)
            except StopIteration:
                return
            except Exception as error:
                if not i:
                    raise
                self._failure = error
                return
            yield batch

    def _begin(self) -> Iterator[Any]:
        if self.once and self.epoch:
            raise ArgumentError(
                "fit: the data is an iterator, which gives its batches once, and more steps are "
                f"to be done than it gave; give {REMEDY}, or ask for fewer steps"
            )
        found = iter(self.data() if _is_function(self.data) else self.data)
        skip, self._passed_over = self._passed_over, 0
        if sum(1 for _ in islice(found, skip)) < skip:
            raise FormatError(
                f"fit: the run that is resumed had taken {skip} batches of its epoch, and the data "
                "has fewer now; give the same data, or start a new run"
            )
        return found

    def end_epoch(self) -> None:
        end = object()  # an iterator that is told so is done, which loaders take down
        more = self._iterator is not None and next(self._iterator, end) is not end
        if self.length is not None and (more or self.at < self.length):
            raise ArgumentError(
                f"fit: the len() of the data says that an epoch has {self.length} batches, and it "
                f"has {'more' if more else self.at}"
            )
        super().end_epoch()
        self._iterator = None

    def state_dict(self) -> dict[str, Any]:
        state = super().state_dict()
        return state | ({"loader": self.data.state_dict()} if self._saves else {})

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        if self._saves:
            self.data.load_state_dict(state["loader"])
        else:
            self._passed_over = self.at


REMEDY = (
    "a list, a data loader, or the function that makes the iterator: data=batches instead of "
    "data=batches()"
)


def batches_of(
    data: Any,
    batch_size: int | None = None,
    shuffle: bool | None = None,
    seed: int = 0,
    drop_last: bool = False,
    placement: Placement | None = None,
) -> BatchSource:
    """The batches that `fit` goes through: rows of arrays, or what an iterable gives. Where there
    is a placement, and it is over several processes, each reads its own samples."""
    if batch_size is not None and (isinstance(batch_size, bool) or batch_size < 1):
        raise OptionError(f"fit: batch_size is at least 1, not {batch_size}")
    if is_arrays(data):
        if batch_size is None:
            if shuffle or drop_last:
                raise OptionError(
                    "fit: without batch_size all samples are one batch, so that shuffle and "
                    "drop_last say nothing; give batch_size"
                )
            return WholeBatch(data)
        return ArrayRows(data, batch_size, shuffle is not False, seed, drop_last, placement)
    if batch_size is not None or shuffle is not None or drop_last:
        raise OptionError(
            "fit: batch_size, shuffle and drop_last are for data that is a tree of arrays; "
            f"{type(data).__name__} gives batches as it does. {_how_to_say(data)}"
        )
    if isinstance(data, tuple | Mapping):
        kinds = {type(x).__name__ for x in pytree.flatten(data)[0]}
        raise ArgumentError(
            f"fit: data that is a {type(data).__name__} holds arrays, samples along their first "
            f"axis, and this one holds {', '.join(sorted(kinds)) or 'nothing'}: make arrays of it. "
            "Batches stand in a list"
        )
    if isinstance(data, list) and data:
        return BatchList(data)
    if isinstance(data, Iterable) or _is_function(data):
        return BatchIterator(data, placement)
    raise ArgumentError(
        "fit: data is a tree of arrays (an array, a tuple or a dict of arrays), a data loader, a "
        f"list of batches or another iterable of them, not {type(data).__name__}; of a dataset "
        "that has samples by number, rg.data.DataLoader(dataset, batch_size=32) makes batches"
    )


def _how_to_say(data: Any) -> str:
    """What to write instead of data with options that are for arrays."""
    if isinstance(data, list) and data and all(map(_is_array, data)):
        return "Arrays that belong together stand in a tuple: data=(x, y)"
    if isinstance(data, tuple | list | Mapping):
        return "Make arrays of what it holds: data=(np.asarray(x), np.asarray(y))"
    return "Say it there, or give arrays"


def is_arrays(data: Any) -> bool:
    """Whether data is arrays, not batches of them: an array, or a tuple, dict or dataclass whose
    leaves are arrays."""
    if _is_array(data):
        return True
    if not isinstance(data, tuple | Mapping) and not (
        is_dataclass(data) and not isinstance(data, type) and not isinstance(data, Iterable)
    ):
        return False
    leaves, _ = pytree.flatten(data)
    return bool(leaves) and all(map(_is_array, leaves))


def _is_array(x: Any) -> bool:
    return isinstance(x, Tensor | np.ndarray | RowReader) or (
        hasattr(x, "shape")
        and hasattr(x, "__array__")
        and (hasattr(x, "dtype") or hasattr(x, "dtypes"))  # a table of pandas has one a column
    )


def _is_function(data: Any) -> bool:
    return callable(data) and not isinstance(data, Iterable | type)


def _gives_parts(data: Any) -> bool:
    """Whether a loader gives the part of each batch that is this process's, of several."""
    sampler = getattr(data, "sampler", None)
    return is_several() and isinstance(sampler, DistributedSampler) and sampler.num_replicas > 1


def _length(data: Any) -> int | None:
    try:
        return len(data)
    except (TypeError, NotImplementedError, AttributeError):
        return None


def _array(x: Any, name: str) -> Any:
    if isinstance(x, RowReader):
        return x
    try:
        return np.ascontiguousarray(as_array(x))
    except DTypeError as error:
        raise DTypeError(f"fit: {name} of the data: {error}") from None


def _rows(data: Any) -> tuple[list[Any], Any]:
    """The leaves of data as arrays, or what stands for them, of as many rows each."""
    leaves, structure = pytree.flatten(data)
    names = [p or "the array" for p in pytree.paths(data)]
    arrays = [_array(x, name) for x, name in zip(leaves, names, strict=True)]
    for a, name in zip(arrays, names, strict=True):
        if not a.ndim:
            raise ShapeError(f"fit: {name} of the data is a scalar; its first axis is the samples")
        if len(a) != len(arrays[0]):
            raise ShapeError(
                f"fit: the arrays of the data have as many samples each, but {names[0]} has "
                f"{len(arrays[0])} and {name} has {len(a)}"
            )
    if not len(arrays[0]):
        raise ShapeError(f"fit: the data is empty: {names[0]} has the shape {arrays[0].shape}")
    return arrays, structure


def tensors_of(batch: Any, copy: bool = False) -> tuple[tuple[Tensor, ...], Any]:
    """The leaves of a batch as tensors, and its structure."""
    leaves, structure = pytree.flatten(batch)
    for x, path in zip(leaves, pytree.paths(batch), strict=True) if _has_text(leaves) else ():
        if isinstance(x, str | bytes):
            raise DTypeError(
                f"fit: {path.lstrip('.') or 'a batch'} of the batches is text, {x!r:.40}, which no "
                "step can compute with; leave it out, or make numbers of it, as in "
                "rg.data.MapDataset(dataset, lambda sample: (sample['x'], sample['y']))"
            )
    try:
        found = tuple([x if isinstance(x, Tensor) else _tensor(x, copy) for x in leaves])
    except (DTypeError, TypeError) as error:
        error.add_note(f"fit: a batch is arrays or a tree of them; this one is {batch!r:.200}")
        raise
    if not found:
        raise ShapeError(f"fit: there is no array in the batch {batch!r:.200}")
    return found, structure


def _has_text(leaves: Iterable[Any]) -> bool:
    return any(isinstance(x, str | bytes) for x in leaves)


def _tensor(x: Any, copy: bool) -> Tensor:
    array = x if isinstance(x, np.ndarray) else asarray(x).value()
    array = as_array(array)
    return _held(array.copy() if copy else array)


def _fingerprint(arrays: list[Array]) -> Any:
    """Shapes, dtypes, and a checksum over a part of the numbers."""
    check = 0
    for a in arrays:
        rows = a[:: max(1, a.nbytes // TUNING.fit_checked_bytes)]
        check = zlib.crc32(np.ascontiguousarray(rows).view(np.uint8).reshape(-1).data, check)
    return {"shapes": [list(a.shape) for a in arrays], "dtypes": [str(a.dtype) for a in arrays],
            "checksum": check}  # fmt: skip


def held_out_batches(
    data: Any, batch_size: int | None, placement: Placement | None = None
) -> BatchSource:
    """The batches of validation data: in their order, of the size that training has."""
    if isinstance(data, Iterator):
        raise ArgumentError(
            "fit: validation data is gone through again and again, which an iterator cannot be; "
            f"give {REMEDY}"
        )
    if isinstance(data, int | float):
        raise ArgumentError(
            f"fit: validation is data that is held out, such as (x, y), not {data}; "
            "rg.data.random_split(dataset, [0.8, 0.2]) splits a dataset"
        )
    if is_arrays(data):
        shuffle = None if batch_size is None else False
        return batches_of(data, batch_size, shuffle, placement=placement)
    return batches_of(data, placement=placement)
