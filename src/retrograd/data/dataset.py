"""Datasets: samples by number, and views of them."""

from __future__ import annotations

import bisect
import inspect
import operator
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from retrograd import pytree
from retrograd.data.arrays import as_samples, column, is_array
from retrograd.data.randomness import CURRENT, SPLIT, SampleContext, given_seed
from retrograd.data.randomness import generator as numbers
from retrograd.errors import ArgumentError, IndexRangeError, OptionError, ShapeError
from retrograd.tuning import TUNING

Array = np.ndarray[Any, Any]


class Dataset:
    """Samples by number. Subclasses have `__len__` and `__getitem__(i)`, which gives a sample: an
    array, a number, a tuple or a dict of them. With `__getitems__(indices)`, which gives a list of
    samples, a loader asks for a batch at once. `IndexError` for an index that there is not.

    >>> from retrograd.data import DataLoader, Dataset
    >>> class Squares(Dataset):
    ...     def __len__(self):
    ...         return 4
    ...
    ...     def __getitem__(self, i):
    ...         return i, i * i
    >>> next(iter(DataLoader(Squares(), batch_size=4)))[1].tolist()
    [0, 1, 4, 9]
    """

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no __getitem__; write one")

    def __len__(self) -> int:
        raise ArgumentError(f"{type(self).__name__} has no __len__; write one")

    def __iter__(self) -> Iterator[Any]:
        for i in range(len(self)):
            yield self[i]

    def __add__(self, other: Any) -> ConcatDataset:
        return ConcatDataset([self, other])


def checked_index(index: Any, count: int, what: str) -> int:
    """An index from 0 on, of one that may count from the end. `IndexRangeError` outside."""
    at = operator.index(index)
    if not -count <= at < count:
        raise IndexRangeError(f"index {at} of {what}, which has {count} samples")
    return at + count if at < 0 else at


class ArrayDataset(Dataset):
    """Samples that are the rows of arrays, all of the same length: sample i is the tuple of their
    rows i, or, of arrays with names or of one dict, a dict. An array may also be a tree of arrays.

    Memory is shared with the arrays where they are arrays of NumPy, of PyTorch, or tensors. A batch
    is one `take` of each array. `ShapeError` for arrays of different lengths.

    Arrays `[N, ...]`; samples are NumPy arrays `[...]`.

    >>> import numpy as np
    >>> from retrograd.data import ArrayDataset
    >>> ArrayDataset(np.eye(3), [5, 6, 7])[1]
    (array([0., 1., 0.]), np.int64(6))
    >>> sorted(ArrayDataset(x=np.eye(3), y=[5, 6, 7])[1])
    ['x', 'y']
    """

    def __init__(self, *arrays: Any, **named: Any) -> None:
        if bool(arrays) == bool(named):
            raise ArgumentError("ArrayDataset takes arrays, ArrayDataset(x, y), or names for them")
        is_mapping = len(arrays) == 1 and isinstance(arrays[0], Mapping)
        given = named or (arrays[0] if is_mapping else arrays)
        keyed = given.items() if isinstance(given, Mapping) else enumerate(given)
        found = {k: as_samples(v) for k, v in keyed}
        self._hold(found if isinstance(given, Mapping) else tuple(found.values()))

    @classmethod
    def from_tree(cls, tree: Any) -> ArrayDataset:
        """Samples with the structure of a tree of arrays; of a single array, its rows.

        >>> import numpy as np
        >>> from retrograd.data import ArrayDataset
        >>> ArrayDataset.from_tree(np.eye(2))[0]
        array([1., 0.])
        """
        made = cls.__new__(cls)
        is_leaf = is_array(tree) or isinstance(tree, list)
        made._hold(as_samples(tree) if is_leaf else pytree.map(as_samples, tree))
        return made

    def _hold(self, tree: Any) -> None:
        self.tree = tree
        self.arrays, self._structure = pytree.flatten(tree)
        names = pytree.paths(tree)
        self._is_flat = type(tree) is tuple and len(self.arrays) == len(tree)
        lengths = [len(a) for a in self.arrays]
        if not lengths:
            raise ArgumentError("ArrayDataset has no arrays")
        if len({*lengths}) > 1:
            found = ", ".join(f"{n}: {k}" for n, k in zip(names, lengths, strict=True))
            raise ShapeError(f"the arrays of a dataset have equally many rows, not {found}")
        self._length = lengths[0]

    @property
    def tensors(self) -> Any:
        """The arrays, under PyTorch's name."""
        return self.tree

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice | list | np.ndarray):
            return pytree.unflatten(self._structure, [a[index] for a in self.arrays])
        at = checked_index(index, self._length, "an ArrayDataset")
        return pytree.unflatten(self._structure, [a[at] for a in self.arrays])

    def gather(self, indices: Array) -> Any:
        """The samples at these indices, stacked."""
        if self._is_flat:
            return tuple([column(a, indices) for a in self.arrays])
        return pytree.unflatten(self._structure, [column(a, indices) for a in self.arrays])

    def fingerprint(self) -> str:
        """What tells these arrays from others: names, shapes, dtypes, and some of their rows."""
        parts = []
        count = min(TUNING.fingerprint_rows, self._length)
        some = np.linspace(0, max(self._length - 1, 0), count).astype(np.int64)
        for name, a in zip(pytree.paths(self.tree), self.arrays, strict=True):
            rows = a[some]
            content = rows.tobytes() if a.dtype.kind != "O" else repr(rows.tolist()).encode()
            parts.append(f"{name} {a.dtype}{list(a.shape)} {zlib.crc32(content):08x}")
        return "; ".join(parts)

    def __repr__(self) -> str:
        shapes = ", ".join(f"{a.dtype}{list(a.shape)}" for a in self.arrays)
        return f"ArrayDataset({shapes})"


TensorDataset = ArrayDataset


class Subset(Dataset):
    """The samples of a dataset at some indices, in their order. `IndexRangeError` for one that the
    dataset does not have.

    >>> from retrograd.data import Subset
    >>> list(Subset("abcd", [3, 0]))
    ['d', 'a']
    """

    def __init__(self, dataset: Any, indices: Sequence[int] | Array) -> None:
        self.dataset = dataset
        self.indices = indices
        self._array = np.asarray(indices)
        if self._array.dtype.kind == "b":
            raise ArgumentError("Subset takes indices; of a mask they are mask.nonzero()[0]")
        if self._array.size == 0:
            self._array = self._array.astype(np.int64)
        if self._array.ndim != 1 or self._array.dtype.kind not in "iu":
            raise ArgumentError(
                f"Subset takes a list of indices, not {self._array.dtype} of shape "
                f"{self._array.shape}"
            )
        count = len(dataset)
        wrong = self._array[(self._array < -count) | (self._array >= count)]
        if wrong.size:
            raise IndexRangeError(f"index {wrong[0]} of a dataset that has {count} samples")

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, index: Any) -> Any:
        return self.dataset[int(self._array[checked_index(index, len(self), "a Subset")])]

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        return samples_at(self.dataset, self._array[list(indices)].tolist())


class ConcatDataset(Dataset):
    """Datasets one after another. `ArgumentError` for those that have no samples by number,
    `IndexRangeError` for an index that there is not.

    >>> from retrograd.data import ConcatDataset
    >>> ConcatDataset(["ab", "cd"])[-1]
    'd'
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise ArgumentError("ConcatDataset takes at least one dataset")
        for i, d in enumerate(self.datasets):
            if not hasattr(d, "__len__") or not hasattr(d, "__getitem__"):
                raise ArgumentError(
                    f"ConcatDataset: dataset {i}, {type(d).__name__}, has no samples by number; "
                    "datasets that are iterated over are joined by ChainDataset"
                )

    @property
    def cumulative_sizes(self) -> list[int]:
        """Where each dataset ends."""
        return np.cumsum([len(d) for d in self.datasets]).tolist()

    def __len__(self) -> int:
        return sum(len(d) for d in self.datasets)

    def __getitem__(self, index: Any) -> Any:
        ends = self.cumulative_sizes
        at = checked_index(index, ends[-1], "a ConcatDataset")
        which = bisect.bisect_right(ends, at)
        return self.datasets[which][at - (ends[which - 1] if which else 0)]


class StackDataset(Dataset):
    """Datasets of the same length side by side: sample i is the tuple of their samples i, or, of
    datasets with names, a dict. `ShapeError` for different lengths.

    >>> from retrograd.data import StackDataset
    >>> StackDataset("ab", [3, 4])[1]
    ('b', 4)
    """

    def __init__(self, *datasets: Any, **named: Any) -> None:
        if bool(datasets) == bool(named):
            raise ArgumentError("StackDataset takes datasets, StackDataset(a, b), or named ones")
        self.datasets: Any = named or datasets
        lengths = [len(d) for d in (named.values() or datasets)]
        if len({*lengths}) > 1:
            raise ShapeError(f"StackDataset: datasets have one length, not {lengths}")
        self._length = lengths[0]

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: Any) -> Any:
        at = checked_index(index, self._length, "a StackDataset")
        if isinstance(self.datasets, dict):
            return {k: d[at] for k, d in self.datasets.items()}
        return tuple(d[at] for d in self.datasets)


class MapDataset(Dataset):
    """The samples of a dataset with a function applied, each time that one is asked for; with
    `key`, to the part of the sample with this position, or under this name, alone.

    A function with a parameter `rng` is given the random numbers of the sample, a
    `numpy.random.Generator`, under this name: in a `DataLoader` a function of its seed, the epoch,
    and the index. Random transforms of `rg.data.transforms` have it. `ArgumentError` for a key
    that a sample does not have.

    >>> from retrograd.data import MapDataset
    >>> MapDataset([1, 2], lambda x: x * 10)[1]
    20
    >>> MapDataset([(1, 2), (3, 4)], lambda x: x * 10, key=0)[1]
    (30, 4)
    """

    def __init__(self, dataset: Any, f: Callable[..., Any], key: Any = None) -> None:
        if not callable(f):
            raise ArgumentError(f"MapDataset(dataset, f): f is a function, not {f!r}")
        self.dataset = dataset
        self.f = f
        self.key = key
        self._draws = draws(f)

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: Any) -> Any:
        context = CURRENT.get()
        if context is not None:
            return mapped(self, self.dataset[index], context)
        at = operator.index(index)
        context = SampleContext(0, 0, at + len(self) if at < 0 else at)
        token = CURRENT.set(context)
        try:
            return mapped(self, self.dataset[index], context)
        finally:
            CURRENT.reset(token)


def draws(f: Callable[..., Any]) -> bool:
    """Whether a function has a parameter `rng`."""
    try:
        return "rng" in inspect.signature(f).parameters
    except (TypeError, ValueError):  # some functions in C have no signature
        return False


def mapped(self: Any, sample: Any, context: SampleContext) -> Any:
    """A sample, or its part `key`, as the function `f` makes it."""
    given = sample if self.key is None else part(sample, self.key)
    made = self.f(given, rng=context.generator()) if self._draws else self.f(given)
    return made if self.key is None else replaced(sample, self.key, made)


def part(sample: Any, key: Any) -> Any:
    """What a sample has under a key. `ArgumentError` where there is nothing."""
    try:
        return sample[key]
    except (KeyError, IndexError, TypeError) as error:
        there = sorted(map(str, sample)) if isinstance(sample, Mapping) else type(sample).__name__
        raise ArgumentError(f"key={key!r} is no part of a sample, {there}") from error


def replaced(sample: Any, key: Any, made: Any) -> Any:
    """A sample with another part."""
    if isinstance(sample, Mapping):
        return {**sample, key: made}
    parts = list(sample)
    parts[key] = made
    if hasattr(sample, "_replace"):
        return type(sample)(*parts)
    return tuple(parts) if isinstance(sample, tuple) else parts


def random_split(
    dataset: Any, lengths: Sequence[float], seed: int = 0, *, generator: Any = None
) -> list[Subset]:
    """A dataset in parts of these lengths, drawn without replacement; or of fractions that sum up
    to 1, of which what is left over by rounding down goes to the first parts, one each. With a
    `generator` the seed is drawn from it.

    `OptionError` for lengths that do not sum up to the length of the dataset.

    >>> from retrograd.data import random_split
    >>> [len(part) for part in random_split(range(10), [0.75, 0.25])]
    [8, 2]
    """
    total, parts = len(dataset), list(lengths)
    if any(x < 0 for x in parts):
        raise OptionError(f"random_split: lengths are not negative, but they are {parts}")
    if any(isinstance(x, float) for x in parts) and abs(sum(parts) - 1) < 1e-9:
        sizes = [int(total * x) for x in parts]
        for i in range(total - sum(sizes)):
            sizes[i % len(sizes)] += 1
    else:
        sizes = [int(x) for x in parts]
        if sum(sizes) != total or sizes != parts:
            raise OptionError(
                f"random_split: the lengths {parts} sum up to {sum(parts)}, but the dataset has "
                f"{total} samples; fractions sum up to 1"
            )
    chosen = given_seed(seed, generator, "random_split")
    order = numbers(chosen, SPLIT).permutation(total)
    ends = np.cumsum(sizes)
    return [Subset(dataset, order[e - n : e]) for e, n in zip(ends, sizes, strict=True)]


def samples_at(dataset: Any, indices: Sequence[int]) -> list[Any]:
    """The samples of any dataset at some indices, in one call where it takes that."""
    many = getattr(dataset, "__getitems__", None)
    if many is not None:
        return list(many(indices))
    context = CURRENT.get()
    if context is None:
        return [dataset[i] for i in indices]
    found = []
    for i in indices:
        context.index = i
        found.append(dataset[i])
    return found


def length(dataset: Any) -> int | None:
    """How many samples a dataset has, where it knows."""
    try:
        return len(dataset)
    except TypeError:
        return None


def gather_of(dataset: Any) -> Callable[[Array], Any] | None:
    """What gives samples at some indices stacked, at once; None where samples have to be made one
    by one."""
    if isinstance(dataset, ArrayDataset):
        return dataset.gather if type(dataset).__getitem__ is ArrayDataset.__getitem__ else None
    if type(dataset) is Subset:
        inner, rows = gather_of(dataset.dataset), dataset._array
        return None if inner is None else lambda indices: inner(rows[indices])
    if type(dataset) is ConcatDataset:
        parts = [gather_of(d) for d in dataset.datasets]
        known = [p for p in parts if p is not None]
        if len(known) == len(parts):
            return lambda indices: _gathered(known, dataset.cumulative_sizes, indices)
    return None


def _gathered(parts: Sequence[Callable[[Array], Any]], ends: Sequence[int], indices: Array) -> Any:
    """The samples of datasets one after another, stacked: those of each gathered, and put where
    they belong. `ShapeError` where they have other shapes than those of another."""
    outside = indices[(indices < -ends[-1]) | (indices >= ends[-1])]
    if outside.size:
        raise IndexRangeError(f"index {outside[0]} of a ConcatDataset of {ends[-1]} samples")
    at = np.where(indices < 0, indices + ends[-1], indices)
    which = np.searchsorted(ends, at, side="right")
    starts, found, rows = [0, *ends], [], []
    for k in np.unique(which).tolist():
        rows.append(np.flatnonzero(which == k))
        found.append(parts[k](at[rows[-1]] - starts[k]))
    if len(found) == 1:
        return found[0]
    order = np.argsort(np.concatenate(rows), kind="stable")
    return merged(found, order)


def merged(parts: Sequence[Any], order: Array) -> Any:
    """Batches of the same structure as one, whose samples are put in an order."""
    first = parts[0]
    if isinstance(first, dict):
        return {k: merged([p[k] for p in parts], order) for k in first}
    if isinstance(first, tuple):
        columns = [merged(list(c), order) for c in zip(*parts, strict=True)]
        return type(first)(*columns) if hasattr(first, "_fields") else tuple(columns)
    if isinstance(first, list):  # of text
        joined = [x for p in parts for x in p]
        return [joined[i] for i in order.tolist()]
    if len({p.shape[1:] for p in parts}) > 1:
        raise ShapeError(
            f"the samples of a batch have one shape, but those of the datasets that it has samples "
            f"of have {[p.shape[1:] for p in parts]}; fill them up: DataLoader(..., pad=0)"
        )
    return np.concatenate(parts)[order]


def fingerprint(dataset: Any) -> dict[str, Any]:
    """What tells a dataset from another, as far as that is known without making samples."""
    found: dict[str, Any] = {"kind": type(dataset).__name__}
    if (count := length(dataset)) is not None:
        found["length"] = count
    if isinstance(dataset, ArrayDataset):
        found["content"] = dataset.fingerprint()
    elif isinstance(dataset, Subset):
        found["content"] = f"{zlib.crc32(dataset._array.astype(np.int64).tobytes()):08x}"
    if isinstance(dataset, Subset | MapDataset):
        found["of"] = fingerprint(dataset.dataset)
    elif isinstance(dataset, ConcatDataset | StackDataset):
        parts = dataset.datasets
        found["of"] = [fingerprint(d) for d in (parts.values() if type(parts) is dict else parts)]
    return found
