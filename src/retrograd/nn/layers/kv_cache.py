"""Keys and values of the positions so far, so that attention to them costs no second computation.

A cache is a value and a tree of tensors: `update` returns another one, and functions under
`rg.jit`, and the loops of `rg.scan`, take and return caches.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import retrograd as rg
from retrograd.errors import ShapeError
from retrograd.functions.tensor.tensor import Tensor


class Attended(NamedTuple):
    """What queries at new positions look at."""

    cache: Any  # with the new positions
    keys: Tensor  # [..., S, E]
    values: Tensor  # [..., S, V]
    mask: Tensor  # [L, S]: whether query i may look at key j


class _Cache(ABC):
    """`keys` `[..., S, E]`, `values` `[..., S, V]` and the number of positions so far, `length`."""

    keys: Tensor
    values: Tensor
    length: Tensor

    @abstractmethod
    def update(self, key: Any, value: Any, window_size: int | None = None) -> Attended:
        """With the keys `[..., L, E]` and values `[..., L, V]` of the next L positions, of which
        each looks at those up to itself, `window_size` of them before it."""

    def positions(self, count: Any) -> Tensor:
        """The numbers of the next positions, `[count]`, for rotary embeddings."""
        return self.length + rg.arange(count)

    @classmethod
    def zeros(
        cls,
        batch: int,
        heads: int,
        size: int,
        width: int,
        dtype: Any = None,
        value_width: int | None = None,
    ) -> Self:
        """Room for `size` positions: `[batch, heads, size, width]`, of values `value_width`."""
        if min(batch, heads, width) < 1 or size < 0:
            raise ShapeError(
                f"{cls.__name__}.zeros({batch}, {heads}, {size}, {width}): sizes are at least 1"
            )
        shape = (batch, heads, size)
        keys = rg.zeros((*shape, width), dtype=dtype)
        values = rg.zeros((*shape, width if value_width is None else value_width), dtype=dtype)
        return cls(keys, values, rg.asarray(0, dtype=rg.int64))  # type: ignore[call-arg]


def _checked(cache: Any, key: Any, value: Any) -> tuple[Tensor, Tensor]:
    """Keys and values that fit a cache, in its dtypes."""
    k, v = rg.asarray(key), rg.asarray(value)
    for name, new, old in (("keys", k, cache.keys), ("values", v, cache.values)):
        if new.ndim != old.ndim or any(
            new.shape[i] != old.shape[i] for i in range(old.ndim) if i != old.ndim - 2
        ):
            raise ShapeError(
                f"{type(cache).__name__}: {name} of the shape {new.shape} do not fit {old.shape}; "
                "all axes but the last but one, the positions, agree"
            )
    if k.shape[-2] != v.shape[-2]:
        raise ShapeError(
            f"{type(cache).__name__}: keys {k.shape} and values {v.shape} are of as many positions"
        )
    return k.astype(cache.keys.dtype), v.astype(cache.values.dtype)


def _looked_at(queries: Tensor, keys: Tensor, first: Any, window_size: Any) -> Tensor:
    """For queries and keys at these positions whether the key is there, from `first` on, not after
    the query, and at most `window_size` before it."""
    q, k = rg.expand_dims(queries, axis=1), rg.expand_dims(keys, axis=0)
    seen = (k <= q) & (k >= first)
    return seen if window_size is None else seen & (q - k <= window_size)


@dataclass(frozen=True, eq=False)
class KVCache(_Cache):
    """A cache of a fixed size, whose new positions are written behind the ones before: shapes stay,
    so that decoding under `jit` compiles once, and with `donate` it writes in place:

        cache = nn.KVCache.zeros(batch, heads, size, width)
        step = rg.jit(step, donate="cache")
        logits, cache = step(model, token, cache)

    `update(key, value)` of `[..., L, E]` and `[..., L, V]` gives the new cache, all keys and
    values `[..., size, E]`, `[..., size, V]`, and the mask `[L, size]` that is true where a query
    may look. Keys and values take the dtypes of the cache. `IndexRangeError` where it is full,
    `ShapeError` where shapes do not fit.

    >>> import retrograd as rg
    >>> cache = rg.nn.KVCache.zeros(1, 1, 3, 2)
    >>> new = cache.update(rg.ones((1, 1, 1, 2)), rg.ones((1, 1, 1, 2)))
    >>> new.mask.tolist(), new.cache.length.item()
    ([[True, False, False]], 1)
    """

    keys: Tensor
    values: Tensor
    length: Tensor

    def update(self, key: Any, value: Any, window_size: int | None = None) -> Attended:
        k, v = _checked(self, key, value)
        at = self.positions(k.shape[-2])
        keys = self.keys.at[..., at, :].set(k)
        values = self.values.at[..., at, :].set(v)
        cache = KVCache(keys, values, self.length + k.shape[-2])
        mask = _looked_at(at, rg.arange(keys.shape[-2]), 0, window_size)
        return Attended(cache, keys, values, mask)


@dataclass(frozen=True, eq=False)
class GrowingKVCache(_Cache):
    """A cache that is as long as what is in it, for eager code: `zeros(batch, heads, 0, width)`.
    Under `jit` each length is a program of its own; use `KVCache` there.

    `update(key, value)` of `[..., L, E]` and `[..., L, V]` gives the new cache, all keys and
    values `[..., S + L, E]`, `[..., S + L, V]`, and the mask `[L, S + L]` that is true where a
    query may look. `ShapeError` where shapes do not fit.

    >>> import retrograd as rg
    >>> cache = rg.nn.GrowingKVCache.zeros(1, 1, 0, 2)
    >>> cache.update(rg.ones((1, 1, 3, 2)), rg.ones((1, 1, 3, 2))).cache.keys.shape
    (1, 1, 3, 2)
    """

    keys: Tensor
    values: Tensor
    length: Tensor

    def update(self, key: Any, value: Any, window_size: int | None = None) -> Attended:
        k, v = _checked(self, key, value)
        at = self.positions(k.shape[-2])
        keys = rg.concat([self.keys, k], axis=-2)
        values = rg.concat([self.values, v], axis=-2)
        cache = GrowingKVCache(keys, values, self.length + k.shape[-2])
        first = self.length - self.keys.shape[-2]
        mask = _looked_at(at, first + rg.arange(keys.shape[-2]), first, window_size)
        return Attended(cache, keys, values, mask)


@dataclass(frozen=True, eq=False)
class SlidingKVCache(_Cache):
    """A cache of the last `size` positions, for attention in a window of that size, the position
    itself included (Beltagy et al., arXiv:2004.05150): position p stands in row `p % size`, so that
    decoding takes as much memory and time at any length.

    `update(key, value)` of `[..., L, E]` and `[..., L, V]` gives the new cache, the keys and values
    to look at, `[..., size, E]` and `[..., size, V]` (of several positions at once, the new ones
    follow the old ones: `size + L`), and the mask that is true where a query may look.
    `ShapeError` where shapes do not fit.

    >>> import retrograd as rg
    >>> cache = rg.nn.SlidingKVCache.zeros(1, 1, 2, 1)
    >>> for x in (1.0, 2.0, 3.0):
    ...     cache = cache.update(rg.full((1, 1, 1, 1), x), rg.full((1, 1, 1, 1), x)).cache
    >>> cache.keys.reshape(-1).tolist()
    [3.0, 2.0]
    """

    keys: Tensor
    values: Tensor
    length: Tensor

    def update(self, key: Any, value: Any, window_size: int | None = None) -> Attended:
        k, v = _checked(self, key, value)
        size: Any = self.keys.shape[-2]
        count: Any = k.shape[-2]
        at = self.positions(count)
        kept = min(count, size) if isinstance(count, int) and isinstance(size, int) else count
        rows = at[count - kept :] % size
        keys = self.keys.at[..., rows, :].set(k[..., count - kept :, :])
        values = self.values.at[..., rows, :].set(v[..., count - kept :, :])
        after = self.length + count
        cache = SlidingKVCache(keys, values, after)
        window = size - 1 if window_size is None else min(size - 1, window_size)
        if count == 1:  # what it takes the place of is out of the window
            mask = _looked_at(at, _held(after, size), 0, window)
            return Attended(cache, keys, values, mask)
        held = rg.concat([_held(self.length, size), at], axis=0)
        k, v = rg.concat([self.keys, k], axis=-2), rg.concat([self.values, v], axis=-2)
        return Attended(cache, k, v, _looked_at(at, held, 0, window))


def _held(length: Tensor, size: Any) -> Tensor:
    """The position that stands in each row; negative where there is none yet."""
    row = rg.arange(size)
    return length - 1 - (length - 1 - row) % size
