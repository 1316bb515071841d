"""Samplers: in which order the samples of a dataset are visited."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from retrograd.data.arrays import host_array, is_array
from retrograd.data.randomness import ORDER, checked_seed, given_seed
from retrograd.data.randomness import generator as numbers
from retrograd.errors import ArgumentError, OptionError, ShapeError
from retrograd.xla.agreement import RUN, is_several

Array = np.ndarray[Any, Any]


class Sampler:
    """Indices of samples, in an order. Subclasses have `__iter__`, as in PyTorch; or `draw(rng)`,
    which gives the indices of an epoch as an array, drawn from `rng`, a `numpy.random.Generator`.
    The latter are reseeded for every epoch: by a loader from its seed and the number of the epoch,
    and else from their own seed and the number of times that they were iterated over. A loader can
    go on in the middle of what they draw without keeping it.

    >>> from retrograd.data import Sampler
    >>> class Evens(Sampler):
    ...     def draw(self, rng):
    ...         return rng.permutation(5) * 2
    >>> sorted(Evens())
    [0, 2, 4, 6, 8]
    """

    seed: int | None = None
    _passes = 0

    def __init__(self, data_source: Any = None) -> None:
        self.data_source = data_source

    def draw(self, rng: np.random.Generator) -> Any:
        """The indices of an epoch: an array, or a range."""
        raise NotImplementedError(f"{type(self).__name__} has neither __iter__ nor draw; write one")

    def order(self, epoch: int, seed: int = 0) -> Any:
        """The indices of an epoch, for a seed where the sampler has none of its own."""
        return self.draw(numbers(seed if self.seed is None else self.seed, ORDER, epoch))

    def __iter__(self) -> Iterator[int]:
        epoch, self._passes = self._passes, self._passes + 1
        found = self.order(epoch)
        return iter(found if isinstance(found, range) else np.asarray(found).tolist())


def draws_order(sampler: Any) -> bool:
    """Whether a sampler's order follows from a seed and an epoch."""
    return isinstance(sampler, Sampler) and type(sampler).__iter__ is Sampler.__iter__


class SequentialSampler(Sampler):
    """All samples in order.

    >>> from retrograd.data import SequentialSampler
    >>> list(SequentialSampler("abc"))
    [0, 1, 2]
    """

    def __init__(self, data_source: Any) -> None:
        self.data_source = data_source

    def __len__(self) -> int:
        return len(self.data_source)

    def draw(self, rng: np.random.Generator) -> range:
        return range(len(self))


class RandomSampler(Sampler):
    """All samples in random order; or `num_samples` of them, with or without `replacement`. Without
    it, more than there are go through all of them several times.

    `OptionError` for a number of samples that is not positive.

    >>> from retrograd.data import RandomSampler
    >>> sorted(RandomSampler("abc", num_samples=6))
    [0, 0, 1, 1, 2, 2]
    """

    def __init__(
        self,
        data_source: Any,
        replacement: bool = False,
        num_samples: int | None = None,
        seed: int | None = None,
        generator: Any = None,
    ) -> None:
        if num_samples is not None:
            positive(num_samples, "RandomSampler: num_samples")
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.seed = given_seed(seed, generator, "RandomSampler")

    @property
    def num_samples(self) -> int:
        """How many indices an epoch has."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __len__(self) -> int:
        return self.num_samples

    def draw(self, rng: np.random.Generator) -> Array:
        n, count = len(self.data_source), self.num_samples
        if n == 0:
            raise OptionError("RandomSampler: the dataset is empty, there is nothing to draw from")
        if self.replacement:
            return rng.integers(0, n, count)
        passes = [rng.permutation(n) for _ in range(math.ceil(count / n))]
        return np.concatenate(passes)[:count] if len(passes) > 1 else passes[0][:count]


class SubsetRandomSampler(Sampler):
    """The given indices in random order. `OptionError` for a seed that is negative.

    >>> from retrograd.data import SubsetRandomSampler
    >>> sorted(SubsetRandomSampler([5, 2, 9]))
    [2, 5, 9]
    """

    def __init__(
        self, indices: Sequence[int] | Array, seed: int | None = None, generator: Any = None
    ) -> None:
        self.indices = indices
        self._array = np.asarray(indices, np.int64)
        self.seed = given_seed(seed, generator, "SubsetRandomSampler")

    def __len__(self) -> int:
        return len(self._array)

    def draw(self, rng: np.random.Generator) -> Array:
        return self._array[rng.permutation(len(self))]


class WeightedRandomSampler(Sampler):
    """`num_samples` indices, drawn with probabilities proportional to the weights `[N]`; without
    `replacement` none twice, each next one from those that are left.

    `OptionError` for weights that are negative, not finite, or all 0, and for more samples without
    replacement than there are positive weights. `ShapeError` for weights that are no vector.

    >>> from retrograd.data import WeightedRandomSampler
    >>> list(WeightedRandomSampler([0.0, 1.0, 0.0], 3))
    [1, 1, 1]
    """

    def __init__(
        self,
        weights: Any,
        num_samples: int,
        replacement: bool = True,
        seed: int | None = None,
        generator: Any = None,
    ) -> None:
        given = host_array(weights) if is_array(weights) else np.asarray(list(weights))
        self.weights = given.astype(np.float64)
        if self.weights.ndim != 1:
            raise ShapeError(f"weights are a vector, not of shape {self.weights.shape}")
        wrong = np.flatnonzero(~(np.isfinite(self.weights) & (self.weights >= 0)))
        if wrong.size:
            raise OptionError(
                f"weights are not negative and finite, but number {wrong[0]} is "
                f"{self.weights[wrong[0]]}"
            )
        self.num_samples = positive(num_samples, "WeightedRandomSampler: num_samples")
        self.replacement = replacement
        self.seed = given_seed(seed, generator, "WeightedRandomSampler")
        there = int(np.count_nonzero(self.weights))
        if there == 0:
            raise OptionError("all weights are 0, so that no sample can be drawn")
        if not replacement and num_samples > there:
            raise OptionError(
                f"{num_samples} samples without replacement, but only {there} weights are positive"
            )

    def __len__(self) -> int:
        return self.num_samples

    def draw(self, rng: np.random.Generator) -> Array:
        if self.replacement:
            ends = np.cumsum(self.weights)
            last = int(np.flatnonzero(self.weights)[-1])
            at = np.searchsorted(ends, rng.random(self.num_samples) * ends[-1], side="right")
            return np.minimum(at, last)
        # Efraimidis and Spirakis, 2006: the smallest of exponential times of these rates.
        with np.errstate(divide="ignore"):
            times = rng.standard_exponential(len(self.weights)) / self.weights
        return np.argsort(times, kind="stable")[: self.num_samples]


class LengthGroupedSampler(Sampler):
    """All samples in an order in which each `batch_size` in a row have similar lengths, so that
    little is padded: a random order, sorted by length within pools of `batch_size * pool` samples,
    and the batches of all pools in random order. A short batch comes last.

    `lengths` are numbers `[N]`, one for each sample; `ShapeError` for other shapes.

    >>> from retrograd.data import LengthGroupedSampler
    >>> lengths = [1, 9, 1, 9, 1, 9, 1, 9]
    >>> order = list(LengthGroupedSampler(lengths, batch_size=4))
    >>> {lengths[i] for i in order[:4]} in ({1}, {9})
    True
    """

    def __init__(
        self,
        lengths: Sequence[int] | Array,
        batch_size: int,
        pool: int = 50,
        seed: int | None = None,
        generator: Any = None,
    ) -> None:
        self.lengths = np.asarray(lengths)
        if self.lengths.ndim != 1:
            raise ShapeError(f"lengths are a vector, not of shape {self.lengths.shape}")
        self.batch_size = positive(batch_size, "LengthGroupedSampler: batch_size")
        self.pool = positive(pool, "LengthGroupedSampler: pool")
        self.seed = None if seed is None else checked_seed(seed, "LengthGroupedSampler")

    def __len__(self) -> int:
        return len(self.lengths)

    def draw(self, rng: np.random.Generator) -> Array:
        order, n = rng.permutation(len(self)), self.batch_size
        size = n * self.pool
        pools = [order[i : i + size] for i in range(0, len(order), size)]
        ranked = [p[np.argsort(self.lengths[p], kind="stable")] for p in pools]
        joined = np.concatenate(ranked) if ranked else order
        whole = len(joined) // n * n
        batches = joined[:whole].reshape(-1, n)[rng.permutation(whole // n)]
        return np.concatenate([batches.reshape(-1), joined[whole:]])


class DistributedSampler(Sampler):
    """The part of process `rank` of `num_replicas`, each of which goes through its own: an order of
    all samples, that of the seed and the epoch, of which a process takes every `num_replicas`-th.
    So that all have as many, the order goes on with its first ones, or with `drop_last` ends early.

    After `rg.distributed.initialize` both are those of the run; the parts that the processes load
    are joined by `rg.distributed.from_local`. The batches of all together are those of one process
    with the same seed, but for the order of samples within a batch.

    In a loader each epoch has another order; `set_epoch(epoch)` says which one it is, from there
    on, as PyTorch has it. `OptionError` for a rank that there is not.

    >>> from retrograd.data import DistributedSampler
    >>> [list(DistributedSampler("abcde", 2, rank, shuffle=False)) for rank in (0, 1)]
    [[0, 2, 4], [1, 3, 0]]
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if is_several():
            num_replicas = RUN.count if num_replicas is None else num_replicas
            rank = RUN.index if rank is None else rank
        if num_replicas is None or rank is None:
            raise ArgumentError(
                "DistributedSampler: give num_replicas, how many processes there are, and rank, "
                "the number of this one; or call rg.distributed.initialize first, which knows them"
            )
        self.num_replicas = positive(num_replicas, "DistributedSampler: num_replicas")
        if isinstance(rank, bool) or not 0 <= rank < self.num_replicas:
            raise OptionError(
                f"DistributedSampler: rank is from 0 to {self.num_replicas - 1}, not {rank!r}"
            )
        self.data_source = self.dataset = dataset
        self.rank, self.shuffle, self.drop_last = int(rank), bool(shuffle), bool(drop_last)
        self.seed = checked_seed(seed, "DistributedSampler")
        self.epoch: int | None = None

    def __len__(self) -> int:
        n, parts = len(self.dataset), self.num_replicas
        return n // parts if self.drop_last else math.ceil(n / parts)

    @property
    def num_samples(self) -> int:
        """How many indices an epoch of this process has."""
        return len(self)

    @property
    def total_size(self) -> int:
        """How many those of all processes have."""
        return len(self) * self.num_replicas

    def set_epoch(self, epoch: int) -> None:
        """Have the order be that of this epoch."""
        self.epoch = checked_seed(epoch, "DistributedSampler: the epoch")

    def order(self, epoch: int, seed: int = 0) -> Any:
        return super().order(epoch if self.epoch is None else self.epoch, seed)

    def draw(self, rng: np.random.Generator) -> Array:
        n = len(self.dataset)
        every = rng.permutation(n) if self.shuffle else np.arange(n)
        whole = np.resize(every, self.total_size) if n else every
        return whole[self.rank :: self.num_replicas]


class BatchSampler(Sampler):
    """Lists of `batch_size` indices of a sampler; the last may be shorter, or is dropped.
    `OptionError` for a size that is not positive.

    >>> from retrograd.data import BatchSampler
    >>> list(BatchSampler(range(5), 2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Any, batch_size: int, drop_last: bool = False) -> None:
        self.sampler = sampler
        self.batch_size = positive(batch_size, "BatchSampler: batch_size")
        self.drop_last = bool(drop_last)

    def __len__(self) -> int:
        n = len(self.sampler)
        return n // self.batch_size if self.drop_last else math.ceil(n / self.batch_size)

    def __iter__(self) -> Iterator[Any]:
        batch: list[int] = []
        for index in self.sampler:
            batch.append(index)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch


def positive(value: Any, what: str) -> int:
    """A positive int. `OptionError` for another number, `ArgumentError` for what is none."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ArgumentError(f"{what} is a positive integer, not {value!r}")
    if int(value) <= 0:
        raise OptionError(f"{what} is a positive integer, not {value}")
    return int(value)
