"""Datasets that are iterated over."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from retrograd.data.dataset import ArrayDataset, draws, mapped
from retrograd.data.randomness import CURRENT, STREAM, SampleContext, checked_seed, generator
from retrograd.data.samplers import positive
from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.errors import ArgumentError


class IterableDataset:
    """Samples one after another, of a source that has no numbers for them. Subclasses have
    `__iter__`, which gives the same samples each time, apart from what it draws from
    `sample_generator()`, and a `__len__` where that is known.

    In a loader with worker processes one of them goes through it; all of them where it has
    `shard(num_shards, index)`, which gives the dataset of a part of the samples.

    >>> from retrograd.data import DataLoader, IterableDataset
    >>> class Countdown(IterableDataset):
    ...     def __iter__(self):
    ...         yield from (3, 2, 1)
    >>> [b.tolist() for b in DataLoader(Countdown(), batch_size=2)]
    [[3, 2], [1]]
    """

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} has no __iter__; write one")

    def __add__(self, other: Any) -> ChainDataset:
        return ChainDataset([self, other])


def set_epoch(thing: Any, epoch: int) -> None:
    """Tell what has its own order, as samplers and streams of other packages do, which epoch it is;
    and what such a stream is wrapped in."""
    if callable(tell := getattr(thing, "set_epoch", None)):
        tell(epoch)
    elif isinstance(thing, IterableDataset):
        for name in ("dataset", "datasets", "documents"):
            inner = getattr(thing, name, None)
            for each in inner if isinstance(inner, list) else [inner]:
                set_epoch(each, epoch)


class ChainDataset(IterableDataset):
    """Datasets that are iterated over, one after another.

    >>> from retrograd.data import ChainDataset
    >>> list(ChainDataset([[1, 2], [3]]))
    [1, 2, 3]
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)

    def __iter__(self) -> Iterator[Any]:
        for d in self.datasets:
            yield from d

    def __len__(self) -> int:
        return sum(len(d) for d in self.datasets)


class MapIterableDataset(IterableDataset):
    """The samples of a dataset that is iterated over with a function applied, or of their parts
    `key`, as in `MapDataset`. `ArgumentError` for a key that a sample does not have.

    >>> from retrograd.data import MapIterableDataset
    >>> list(MapIterableDataset(iter([1, 2]), lambda x: x * 10))
    [10, 20]
    """

    def __init__(self, dataset: Any, f: Callable[..., Any], key: Any = None) -> None:
        if not callable(f):
            raise ArgumentError(f"MapIterableDataset(dataset, f): f is a function, not {f!r}")
        self.dataset = dataset
        self.f = f
        self.key = key
        self._draws = draws(f)

    def __iter__(self) -> Iterator[Any]:
        for i, sample in enumerate(self.dataset):
            context = CURRENT.get()
            if context is not None:
                yield mapped(self, sample, context)
                continue
            token = CURRENT.set(context := SampleContext(0, 0, i))
            try:
                made = mapped(self, sample, context)
            finally:
                CURRENT.reset(token)
            yield made

    def shard(self, num_shards: int, index: int) -> MapIterableDataset:
        """The part `index` of `num_shards`, where the dataset has parts."""
        return MapIterableDataset(self.dataset.shard(num_shards, index), self.f, self.key)

    def __len__(self) -> int:
        return len(self.dataset)


class ShuffleBuffer(IterableDataset):
    """The samples of a dataset that is iterated over in an order that is random within a window:
    each is drawn from the next `buffer_size` that have not been. Another order at every epoch of a
    loader; without one always that of the `seed`. `OptionError` for a size that is not positive.

    >>> from retrograd.data import ShuffleBuffer
    >>> sorted(ShuffleBuffer(range(5), buffer_size=3))
    [0, 1, 2, 3, 4]
    """

    def __init__(self, dataset: Any, buffer_size: int, seed: int | None = None) -> None:
        self.dataset = dataset
        self.buffer_size = positive(buffer_size, "ShuffleBuffer: buffer_size")
        self.seed = None if seed is None else checked_seed(seed, "ShuffleBuffer")

    def __iter__(self) -> Iterator[Any]:
        context = CURRENT.get()
        seed, epoch = (0, 0) if context is None else (context.seed, context.epoch)
        offset = 0 if context is None else context.index  # that of a shard
        rng = generator(seed if self.seed is None else self.seed, STREAM, epoch, offset)
        held: list[Any] = []
        for sample in self.dataset:
            if len(held) < self.buffer_size:
                held.append(sample)
                continue
            at = int(rng.integers(self.buffer_size))
            out, held[at] = held[at], sample
            yield out
        yield from (held[i] for i in rng.permutation(len(held)))

    def shard(self, num_shards: int, index: int) -> ShuffleBuffer:
        """The part `index` of `num_shards`, where the dataset has parts."""
        return ShuffleBuffer(self.dataset.shard(num_shards, index), self.buffer_size, self.seed)

    def __len__(self) -> int:
        return len(self.dataset)


def is_iterable_style(dataset: Any) -> bool:
    """Whether a dataset is iterated over, and has no samples by number: also one of PyTorch, which
    has a `__getitem__` that raises, and one of Hugging Face."""
    if any(c.__name__ == "IterableDataset" for c in type(dataset).__mro__):
        return True
    return not hasattr(dataset, "__getitem__") and hasattr(dataset, "__iter__")


def adapted(dataset: Any) -> Any:
    """A dataset as a loader takes it: arrays and PyTorch's `TensorDataset` share their memory with
    one of arrays. `ArgumentError` for what is no dataset, with the remedy."""
    kind = type(dataset)
    name = f"{kind.__module__}.{kind.__qualname__}"
    if name == "torch.utils.data.dataset.TensorDataset":
        return ArrayDataset(*dataset.tensors)
    if isinstance(dataset, np.ndarray | LazyTensor) or name == "torch.Tensor":
        return ArrayDataset.from_tree(dataset)
    if isinstance(dataset, Mapping):
        raise ArgumentError(
            f"a dict {sorted(map(str, dataset))} is no dataset; one with these arrays is "
            "ArrayDataset(**arrays)"
        )
    if name.startswith("pandas."):
        raise ArgumentError(
            f"{kind.__name__} of pandas is no dataset; one of its rows is "
            "ArrayDataset(**{name: frame[name].to_numpy() for name in frame})"
        )
    if not hasattr(dataset, "__getitem__") and not hasattr(dataset, "__iter__"):
        raise ArgumentError(
            f"a dataset has __getitem__ and __len__, or __iter__; {kind.__name__} has neither"
        )
    return dataset
