"""Sequences of different lengths, under PyTorch's names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import retrograd as rg
from retrograd import pytree
from retrograd.eager.lazy_tensor import Array
from retrograd.errors import OptionError, ShapeError
from retrograd.functions.tensor.tensor import Tensor
from retrograd.nn.functional.conv_pool import filling


class PackedSequence:
    """Sequences in order of falling length, step by step: `data` holds the first elements of all,
    then the second elements of those that have one, and so on.

    `batch_sizes` counts the sequences that have each step. `sorted_indices` tells which of the
    given sequences stands where, `unsorted_indices` where each of them stands; both are None if
    they came in this order. These are integers that structures are made of, arrays of NumPy: a
    packed sequence is a pytree with `data` its one leaf.

    Made by `pack_padded_sequence` and `pack_sequence`, taken by `RNN`, `LSTM` and `GRU`.
    """

    __slots__ = ("batch_sizes", "data", "sorted_indices", "unsorted_indices")

    def __init__(
        self, data: Any, batch_sizes: Any, sorted_indices: Any = None, unsorted_indices: Any = None
    ) -> None:
        self.data = data
        self.batch_sizes: Array = np.asarray(batch_sizes, np.int64)
        order = sorted_indices if unsorted_indices is None else invert_permutation(unsorted_indices)
        self.sorted_indices = None if order is None else np.asarray(order, np.int64)
        self.unsorted_indices = None if order is None else invert_permutation(order)

    @property
    def lengths(self) -> Array:
        """The lengths, in the order of packing."""
        count = int(self.batch_sizes[0]) if len(self.batch_sizes) else 0
        return np.sum(self.batch_sizes[:, None] > np.arange(count), axis=0)

    def with_data(self, data: Any) -> PackedSequence:
        """Other elements in the same places."""
        return PackedSequence(data, self.batch_sizes, self.sorted_indices)

    def __iter__(self) -> Iterator[Any]:
        yield from (self.data, self.batch_sizes, self.sorted_indices, self.unsorted_indices)

    def __repr__(self) -> str:
        order = "" if self.sorted_indices is None else f", sorted_indices={self.sorted_indices}"
        return f"PackedSequence(data={self.data!r}, batch_sizes={self.batch_sizes}{order})"


def _split(packed: PackedSequence) -> tuple[list[Any], Any, list[str]]:
    order = packed.sorted_indices
    known = tuple(packed.batch_sizes.tolist()), None if order is None else tuple(order.tolist())
    return [packed.data], known, ["data"]


def _joined(known: Any, children: Any) -> PackedSequence:
    (data,) = children
    return PackedSequence(data, *known)


pytree.register(PackedSequence, _split, _joined)


def invert_permutation(permutation: Any) -> Array:
    """Where each number stands in a permutation."""
    p = np.asarray(permutation, np.int64)
    inverse = np.empty_like(p)
    inverse[p] = np.arange(len(p))
    return inverse


def pad_sequence(
    sequences: Sequence[Any],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Sequences `[L_i, ...]` as one array `[max L, N, ...]`, with `batch_first` `[N, max L, ...]`,
    filled up with `padding_value` behind their ends, or in front with `padding_side="left"`.

    >>> import retrograd as rg
    >>> a, b = rg.tensor([1.0, 2.0, 3.0]), rg.tensor([4.0])
    >>> rg.nn.utils.rnn.pad_sequence([a, b], batch_first=True).tolist()
    [[1.0, 2.0, 3.0], [4.0, 0.0, 0.0]]
    """
    if padding_side not in ("left", "right"):
        raise OptionError(f"pad_sequence: padding_side is 'left' or 'right', not {padding_side!r}")
    arrays = _alike("pad_sequence", sequences)
    value = filling(padding_value, arrays[0].dtype)
    longest = max(x.shape[0] for x in arrays)
    rows = []
    for x in arrays:
        missing = longest - x.shape[0]
        ends = (missing, 0) if padding_side == "left" else (0, missing)
        rows.append(rg.pad(x, [ends, *[(0, 0)] * (x.ndim - 1)], value=value))
    return rg.stack(rows, axis=0 if batch_first else 1)


def unpad_sequence(padded_sequences: Any, lengths: Any, batch_first: bool = False) -> list[Tensor]:
    """The sequences of these lengths in an array that `pad_sequence` padded on the right."""
    x = rg.asarray(padded_sequences)
    if not batch_first:
        x = rg.swapaxes(x, 0, 1)
    known = _lengths("unpad_sequence", lengths, x, 0)
    return [x[i, :n] for i, n in enumerate(known.tolist())]


def _alike(what: str, sequences: Sequence[Any]) -> list[Any]:
    """Sequences that may differ in length only."""
    arrays = [rg.asarray(x) for x in sequences]
    if not arrays or any(x.ndim < 1 or x.shape[1:] != arrays[0].shape[1:] for x in arrays):
        shapes = ", ".join(str(x.shape) for x in arrays) or "none"
        raise ShapeError(f"{what} takes sequences that differ in length only, not {shapes}")
    if any(x.dtype != arrays[0].dtype for x in arrays):
        raise ShapeError(f"{what} takes sequences of one dtype")
    return arrays


def _lengths(what: str, lengths: Any, x: Tensor, least: int) -> Array:
    """A length for each row of `[N, L, ...]`."""
    found = lengths.numpy() if isinstance(lengths, Tensor) else np.asarray(lengths)
    count, most = x.shape[:2]
    if found.shape != (count,) or found.dtype.kind not in "iu":
        raise ShapeError(f"{what} takes an integer length for each of {count} sequences: {lengths}")
    if count and not (least <= found.min() and found.max() <= most):
        raise ShapeError(
            f"{what}: lengths lie between {least} and {most}, that of {x.shape}, not {lengths}"
        )
    return np.asarray(found, np.int64)


def pack_padded_sequence(
    input: Any, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """The sequences of these lengths in `[L, N, ...]`, with `batch_first` `[N, L, ...]`, packed
    without what pads them; nothing flows back to that.

    Lengths are numbers, at least 1. With `enforce_sorted` they must not rise.

    >>> import retrograd as rg
    >>> x = rg.tensor([[1.0, 2.0, 3.0], [4.0, 0.0, 0.0]])
    >>> packed = rg.nn.utils.rnn.pack_padded_sequence(x, [3, 1], batch_first=True)
    >>> packed.data.tolist(), packed.batch_sizes.tolist()
    ([1.0, 4.0, 2.0, 3.0], [2, 1, 1])
    """
    x: Any = rg.asarray(input)
    if x.ndim < 2:
        raise ShapeError(f"pack_padded_sequence takes [L, N, ...], not the shape {x.shape}")
    if not batch_first:
        x = rg.swapaxes(x, 0, 1)
    known = _lengths("pack_padded_sequence", lengths, x, 1)
    if not len(known):
        raise ShapeError("pack_padded_sequence takes at least one sequence")
    order = np.argsort(-known, kind="stable")
    if enforce_sorted and (order != np.arange(len(order))).any():
        raise ShapeError(
            f"pack_padded_sequence: lengths fall, unlike {known.tolist()}; sort the sequences, or "
            "pass enforce_sorted=False"
        )
    here = known[order][None] > np.arange(known.max())[:, None]
    steps, ranks = np.nonzero(here)
    data = rg.reshape(x, (-1, *x.shape[2:]))
    data = rg.take(data, order[ranks] * x.shape[1] + steps, axis=0)
    return PackedSequence(data, here.sum(axis=1), None if enforce_sorted else order)


def pack_sequence(sequences: Sequence[Any], enforce_sorted: bool = True) -> PackedSequence:
    """Sequences `[L_i, ...]` packed; see `pack_padded_sequence`."""
    arrays = _alike("pack_sequence", sequences)
    lengths = [x.shape[0] for x in arrays]
    return pack_padded_sequence(pad_sequence(arrays, True), lengths, True, enforce_sorted)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """The sequences, in their own order, as `[L, N, ...]`, with `batch_first` `[N, L, ...]`, filled
    up with `padding_value`, and their lengths. L is the largest length, or `total_length`."""
    data, lengths = rg.asarray(sequence.data), sequence.lengths
    longest = len(sequence.batch_sizes)
    total = longest if total_length is None else total_length
    if total < longest:
        raise OptionError(f"pad_packed_sequence: total_length={total} is below {longest}")
    starts = np.cumsum(sequence.batch_sizes) - sequence.batch_sizes
    places = np.full((total, len(lengths)), data.shape[0])  # behind all, where the padding is
    for step, (start, count) in enumerate(zip(starts, sequence.batch_sizes, strict=True)):
        places[step, :count] = start + np.arange(count)
    if sequence.unsorted_indices is not None:
        places, lengths = places[:, sequence.unsorted_indices], lengths[sequence.unsorted_indices]
    padding = rg.full((1, *data.shape[1:]), padding_value, dtype=data.dtype)
    places = places.T if batch_first else places
    padded = rg.take(rg.concat([data, padding], axis=0), places.ravel(), axis=0)
    return rg.reshape(padded, (*places.shape, *data.shape[1:])), rg.asarray(lengths)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences, in their own order; the inverse of `pack_sequence`."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


# -- recurrences along packed sequences ------------------------------------------------------------
def padding(sizes: Sequence[int]) -> tuple[Array, Array, Array]:
    """What makes steps `[L, N]` of packed elements, and packs them again: which sequences have each
    step, the packed element there (any one where there is none), and the place in the steps, as one
    axis, of each packed element."""
    here = np.asarray(sizes)[:, None] > np.arange(sizes[0])
    starts = np.cumsum([0, *sizes[:-1]])
    places = np.where(here, starts[:, None] + np.arange(sizes[0]), 0)
    return here, places, np.flatnonzero(here)


__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]
