"""From a list of samples to a batch."""

from __future__ import annotations

import dataclasses
import difflib
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from retrograd.data.arrays import TEXT, host_array, is_array, refused
from retrograd.data.randomness import CURRENT
from retrograd.eager.conversion import as_array, promote
from retrograd.errors import ArgumentError, DTypeError, ShapeError
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import as_dtype

Array = np.ndarray[Any, Any]
Join = Callable[[list[Array], str, Any], Any]
NUMBERS: dict[type, Any] = {
    bool: np.bool_, int: np.int64, float: np.float32,
    **{t: t for t in (np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16,
                      np.uint32, np.uint64, np.float16, np.float32, np.float64)},
}  # fmt: skip


def default_collate(samples: Sequence[Any]) -> Any:
    """A batch of samples of the same structure: arrays, and lists of numbers, of the same shape
    `[...]` become one tensor `[B, ...]`, numbers one `[B]` (Python's floats float32, ints int64);
    text becomes a list; tuples, lists, dicts and dataclasses of these one of batches.

    `ShapeError` for samples of different shapes, `ArgumentError` for different structures,
    `DTypeError` for what no batch can be made of. The message names the sample.

    >>> from retrograd.data import default_collate
    >>> default_collate([{"x": [1.0, 2.0], "y": "a"}, {"x": [3.0, 4.0], "y": "b"}])["x"].shape
    (2, 2)
    """
    return _collate(list(samples), _stack, "", None)


def pad(samples: Sequence[Any], value: Any = 0, multiple_of: int = 1) -> Any:
    """`default_collate` of samples whose arrays have different shapes: at the end of each axis as
    much of `value` is added as makes them equal, and more until the length of the first axis is a
    multiple of `multiple_of`, so that there are fewer shapes to compile for. `value` may also be a
    tuple or dict that says it for the parts of a sample: `pad=(0, -100)`.

    `ShapeError` for arrays of different numbers of axes.

    >>> from retrograd.data import pad
    >>> pad([[1, 2, 3], [4]], value=-1).tolist()
    [[1, 2, 3], [4, -1, -1]]
    """
    join = functools.partial(_padded, multiple_of=multiple_of)
    return _collate(list(samples), join, "", value)


def ragged(samples: Sequence[Any]) -> Any:
    """`default_collate` of samples whose arrays may have different shapes: they become a list of
    tensors; numbers still become one tensor. Errors are those of `default_collate`, but for shapes.

    >>> from retrograd.data import ragged
    >>> [x.shape for x in ragged([[1, 2, 3], [4]])]
    [(3,), (1,)]
    """
    return _collate(list(samples), _listed, "", None)


def default_convert(sample: Any) -> Any:
    """A single sample, with tensors `[...]` in the place of arrays, and of lists of numbers.
    `DTypeError` for arrays of what are no numbers.

    >>> import numpy as np
    >>> from retrograd.data import default_convert
    >>> default_convert((np.float32(1.5), 2, "a"))
    (Tensor(1.5, dtype=float32), 2, 'a')
    """
    if is_array(sample) and not isinstance(sample, np.str_ | np.bytes_):
        return Tensor.of(_array(sample, 0, "").copy())
    if isinstance(sample, list) and sample and _is_numeric(sample):
        return Tensor.of(as_array(sample))
    if isinstance(sample, Mapping):
        return _like(sample, {k: default_convert(v) for k, v in sample.items()})
    if isinstance(sample, tuple | list):
        made = [default_convert(x) for x in sample]
        if hasattr(sample, "_fields"):
            return type(sample)(*made)
        return tuple(made) if isinstance(sample, tuple) else made
    return sample


def _collate(samples: list[Any], join: Join, path: str, option: Any) -> Any:
    """The batch of what the samples have at a path. `option` is that of `join` there."""
    if not samples:
        raise ArgumentError("a batch is made of at least one sample")
    first = samples[0]
    kind = type(first)
    if (kind in NUMBERS or kind is np.ndarray) and {*map(type, samples)} == {kind}:
        if kind is not np.ndarray:
            return _like_numbers(samples, kind)
        if _is_plain(samples):
            return join(samples, path, option)
    if is_array(first) and not isinstance(first, np.generic):
        return join([_array(x, i, path) for i, x in enumerate(samples)], path, option)
    if isinstance(first, str | bytes | np.str_ | np.bytes_):
        return _same(samples, str | bytes, path)
    if isinstance(first, bool | int | float | complex | np.generic):
        return _numbers(samples, join, path, option)
    if isinstance(first, list) and _is_numeric(first):
        return join([_array(x, i, path) for i, x in enumerate(samples)], path, option)
    if isinstance(first, Mapping):
        _same_keys(samples, path)
        return _like(first, {
            k: _collate([s[k] for s in samples], join, f"{path}[{k!r}]", _part(option, k))
            for k in first
        })  # fmt: skip
    if isinstance(first, tuple | list):
        return _sequences(samples, join, path, option)
    if dataclasses.is_dataclass(first) and not isinstance(first, type):
        names = [f.name for f in dataclasses.fields(first)]
        parts = {n: _collate([getattr(s, n) for s in samples], join, f"{path}.{n}", option)
                 for n in names}  # fmt: skip
        return type(first)(**parts)
    raise refused(first, _place(0, path))


def _is_plain(arrays: list[Array]) -> bool:
    """Whether all arrays have one dtype, which is one that tensors have."""
    dtype = arrays[0].dtype
    return dtype.kind in "biufc" and dtype.isnative and {a.dtype for a in arrays} == {dtype}


def _like_numbers(samples: list[Any], kind: type) -> Tensor:
    """Numbers of one type."""
    try:
        return Tensor.of(np.array(samples, NUMBERS[kind]))
    except OverflowError:
        return Tensor.of(as_array(samples))


def _sequences(samples: list[Any], join: Join, path: str, option: Any) -> Any:
    first = samples[0]
    for i, s in enumerate(samples):
        if not isinstance(s, tuple | list) or len(s) != len(first):
            given = f"{len(s)} parts" if isinstance(s, tuple | list) else type(s).__name__
            raise ArgumentError(
                f"samples have as many parts as each other, but {_place(i, path)} has {given}, "
                f"{_place(0, path)} has {len(first)}"
            )
    made = [
        _collate(list(column), join, f"{path}[{k}]", _part(option, k))
        for k, column in enumerate(zip(*samples, strict=True))
    ]
    if hasattr(first, "_fields"):
        return type(first)(*made)
    return tuple(made) if isinstance(first, tuple) else made


def _like(first: Mapping[Any, Any], made: dict[Any, Any]) -> Any:
    """A dict of the class of the samples, where that can be made of one."""
    if type(first) is dict:
        return made
    make: Any = type(first)
    try:
        return make(made)
    except TypeError:
        return made


def _part(option: Any, key: Any) -> Any:
    """The option for a part of a sample."""
    if not isinstance(option, tuple | list | dict):
        return option
    try:
        return option[key]
    except (KeyError, IndexError):
        raise ArgumentError(
            f"pad: there is no value for the part {key!r} of a sample in {option!r}"
        ) from None


def _place(i: int, path: str) -> str:
    context = CURRENT.get()
    name = f"sample {i} of the batch" if context is None else context.named(i)
    return f"{name}{', at ' + path + ',' if path else ''}"


def _is_numeric(x: list[Any]) -> bool:
    """Whether a list holds numbers, or lists of numbers, only: then it is an array."""
    if not x:
        return True
    if isinstance(x[0], list):
        return all(isinstance(v, list) and _is_numeric(v) for v in x)
    return all(isinstance(v, bool | int | float | complex | np.generic) for v in x)


def _array(x: Any, i: int, path: str) -> Array:
    try:
        found = host_array(x) if is_array(x) else as_array(x)
    except DTypeError:
        raise refused(x, _place(i, path)) from None
    except ShapeError as error:
        raise ShapeError(f"{_place(i, path)} is {error}") from None
    if found.dtype.kind in TEXT:
        raise refused(found, _place(i, path))
    return found


def _numbers(samples: list[Any], join: Join, path: str, option: Any) -> Any:
    """Numbers, of Python or of NumPy; among them there may be arrays without axes."""
    for i, x in enumerate(samples):
        if not isinstance(x, bool | int | float | complex | np.generic):
            if is_array(x) or (isinstance(x, list) and _is_numeric(x)):
                arrays = [_array(x, i, path) for i, x in enumerate(samples)]
                return join(arrays, path, option)
            raise refused(x, _place(i, path))
    return Tensor.of(as_array(samples))


def _same(samples: list[Any], kind: Any, path: str) -> list[Any]:
    for i, x in enumerate(samples):
        if not isinstance(x, kind):
            raise refused(x, _place(i, path))
    return [x.item() if isinstance(x, np.generic) else x for x in samples]


def _same_keys(samples: list[Any], path: str) -> None:
    keys = samples[0].keys()
    for i, s in enumerate(samples):
        if not isinstance(s, Mapping):
            raise refused(s, _place(i, path))
        if s.keys() == keys:
            continue
        missing, extra = [k for k in keys if k not in s], [k for k in s if k not in keys]
        found = f"{_place(i, path)} has other keys than {_place(0, path)}"
        found += f": {missing} are missing" if missing else ""
        for k in extra:
            near = difflib.get_close_matches(str(k), [str(m) for m in keys], 1)
            found += f"; {k!r} is new" + (f" (near: {near[0]!r})" if near else "")
        raise ArgumentError(f"{found}. All samples of a batch have the same keys")


def _joined_dtype(arrays: list[Array]) -> Any:
    kinds = {a.dtype for a in arrays if a.size} or {a.dtype for a in arrays}  # [] has no dtype
    if len(kinds) == 1:
        return kinds.pop()
    return functools.reduce(promote, map(as_dtype, kinds)).dtype


def _stack(arrays: list[Array], path: str, option: Any) -> Tensor:
    shape = arrays[0].shape
    if len({a.shape for a in arrays}) > 1:
        i = next(i for i, a in enumerate(arrays) if a.shape != shape)
        raise ShapeError(
            f"the samples of a batch have one shape, but {_place(i, path)} has {arrays[i].shape} "
            f"and {_place(0, path)} has {shape}; fill them up: DataLoader(..., pad=0), or have "
            "lists: collate_fn=rg.data.ragged"
        )
    if not shape:
        return Tensor.of(np.array(arrays, _joined_dtype(arrays)))
    joined = np.concatenate(arrays, dtype=_joined_dtype(arrays), casting="unsafe")
    return Tensor.of(joined.reshape(len(arrays), *shape))


def _padded(arrays: list[Array], path: str, option: Any, multiple_of: int) -> Tensor:
    ndim = arrays[0].ndim
    for i, a in enumerate(arrays):
        if a.ndim != ndim:
            raise ShapeError(
                f"samples that are filled up have as many axes as each other, but "
                f"{_place(i, path)} has the shape {a.shape}, {_place(0, path)} {arrays[0].shape}"
            )
    shape = [max(sizes) for sizes in zip(*[a.shape for a in arrays], strict=True)]
    if shape:
        shape[0] = -(-shape[0] // multiple_of) * multiple_of
    dtype = _joined_dtype(arrays)
    out = np.full((len(arrays), *shape), as_array(option, dtype), dtype)
    for i, a in enumerate(arrays):
        out[i][tuple(slice(n) for n in a.shape)] = a
    return Tensor.of(out)


def _listed(arrays: list[Array], path: str, option: Any) -> Any:
    if all(a.ndim == 0 for a in arrays):
        return _stack(arrays, path, option)
    return [Tensor.of(a.copy()) for a in arrays]
