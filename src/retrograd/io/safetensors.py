"""Named tensors in a file, in the safetensors format (https://huggingface.co/docs/safetensors)."""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from safetensors import SafetensorError, deserialize, safe_open
from safetensors.numpy import save

from retrograd.eager.dispatch import as_array
from retrograd.eager.lazy_tensor import LazyTensor, evaluate
from retrograd.errors import DTypeError, FormatError, ShapeError
from retrograd.files import StrPath, read_bytes, write_atomically
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir.dtype import DTYPES, complex128

Array = np.ndarray[Any, Any]

_DTYPES = {d.code.upper().replace("B1", "BOOL"): d.dtype for d in DTYPES if d is not complex128}


def save_safetensors(
    path: StrPath, tensors: Mapping[str, Any], metadata: Mapping[str, str] | None = None
) -> None:
    """Write named tensors or arrays, such as a state dict, and texts that go with them.

    The file appears whole or not at all; other libraries can read it. Raises `DTypeError` for a
    value that is no tensor, and an `OSError` that names the file and the remedy.

    >>> import retrograd as rg, tempfile
    >>> from retrograd.io import load_safetensors, save_safetensors
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_safetensors(folder + "/w.safetensors", {"w": rg.arange(3)}, {"made by": "me"})
    ...     load_safetensors(folder + "/w.safetensors")
    {'w': Tensor([0, 1, 2], dtype=int64)}
    """
    write_atomically(path, pack(tensors, metadata), "safetensors file")


def load_safetensors(path: StrPath) -> dict[str, Tensor]:
    """The tensors of a file, by name, in the order of their names.

    A damaged, cut or foreign file is a `FormatError` saying what is wrong and where.
    """
    arrays = unpack(read_bytes(path, "safetensors file"), path)
    return {name: Tensor.of(array) for name, array in arrays.items()}


def map_safetensors(path: StrPath) -> dict[str, Array]:
    """The arrays of a file by name, as read-only views of a memory map: what nobody looks at is not
    read from the disk, and what was looked at need not stay in memory.

    Errors are those of `load_safetensors`. The file must not change while its arrays are in use.

    >>> import numpy as np, tempfile
    >>> from retrograd.io import map_safetensors, save_safetensors
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_safetensors(folder + "/w.safetensors", {"w": np.arange(3)})
    ...     map_safetensors(folder + "/w.safetensors")["w"].tolist()
    [0, 1, 2]
    """
    start = _header_end(read_bytes(path, "safetensors file", lambda _: 8))
    with open(path, "rb") as file:
        try:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError as error:  # of an empty file
            raise _damaged(b"", path, str(error)) from None
    try:
        safe_open(path, "numpy")  # checks the header: all of the file, nothing twice
    except SafetensorError as error:
        raise _damaged(content, path, str(error)) from None  # type: ignore[arg-type]
    arrays = {}
    header = json.loads(content[8:start])
    for name in sorted(header.keys() - {"__metadata__"}):
        at, end = header[name]["data_offsets"]
        view = memoryview(content)[start + at : start + end]
        arrays[name] = _array_of(name, {**header[name], "data": view}, path)
    return arrays


def read_metadata(path: StrPath) -> dict[str, str]:
    """The texts that were saved with the tensors; of the file only the header is read."""
    return metadata_of(read_bytes(path, "safetensors file", _header_end), path)


def pack(tensors: Mapping[str, Any], metadata: Mapping[str, str] | None = None) -> bytes:
    """The bytes of a safetensors file."""
    evaluate([x for x in tensors.values() if isinstance(x, LazyTensor)])
    arrays: dict[str, Array] = {}
    for name, value in tensors.items():
        if not isinstance(name, str):
            raise DTypeError(f"tensors are saved under names that are strings, not {name!r}")
        try:
            array = value.value() if isinstance(value, LazyTensor) else as_array(value)
        except (DTypeError, ShapeError) as error:
            raise type(error)(
                f"cannot save {name!r}: {error}. save_checkpoint takes states with lists, texts "
                "and dictionaries in them"
            ) from None
        if array.dtype == complex128.dtype:
            raise DTypeError(
                f"cannot save {name!r}: the format has no complex128; save complex64, or both parts"
            )
        arrays[name] = np.asarray(array, order="C")
    for key, text in (metadata or {}).items():
        if not isinstance(key, str) or not isinstance(text, str):
            raise DTypeError(f"metadata are texts by name, not {key!r}: {text!r}")
    return save(arrays, dict(metadata) if metadata else None)


def unpack(content: bytes, path: StrPath) -> dict[str, Array]:
    """The arrays in the bytes of a safetensors file; `path` is for messages."""
    try:
        found = sorted(deserialize(content), key=lambda item: item[0])
    except SafetensorError as error:
        raise _damaged(content, path, str(error)) from None
    arrays = {}
    for name, view in found:
        arrays[name] = _array_of(name, view, path)
    return arrays


def _array_of(name: str, view: Mapping[str, Any], path: StrPath) -> Array:
    """The array of what the header says of a tensor, and its bytes."""
    if view["dtype"] not in _DTYPES:
        raise FormatError(
            f"{os.fspath(path)}: tensor {name!r} is of type {view['dtype']}, which retrograd "
            f"does not compute with; it knows {', '.join(_DTYPES)}"
        )
    array = np.frombuffer(view["data"], _DTYPES[view["dtype"]])
    try:
        return array.reshape(view["shape"])
    except ValueError as error:  # more axes than there may be, or 0 elements along a huge one
        shape = repr(view["shape"])
        raise FormatError(
            f"{os.fspath(path)}: tensor {name!r} has the shape {shape:.60}: {error}"
        ) from None


def metadata_of(content: bytes, path: StrPath) -> dict[str, str]:
    """The texts in the header of a safetensors file."""
    start = _header_end(content)
    try:
        header = json.loads(content[8:start])
        metadata = header.get("__metadata__", {})
    except (ValueError, AttributeError, RecursionError) as error:
        raise _damaged(content, path, str(error)) from None
    if not (isinstance(metadata, dict) and all(isinstance(v, str) for v in metadata.values())):
        raise _damaged(content, path, "the metadata are no texts by name")
    return metadata


def _header_end(content: bytes) -> int:
    """Where the header ends, which begins with its length in 8 bytes."""
    return 8 + int.from_bytes(content[:8], "little")


def _damaged(content: bytes, path: StrPath, reason: str) -> FormatError:
    """What is wrong with a file the library refused, and at which byte."""
    size = len(content)
    reason = reason.removeprefix("Error while deserializing: ")
    end = _header_end(content)
    file = os.fspath(path)
    if size < 8:
        what = f"it has only {size} bytes; a safetensors file starts with a header length of 8"
    elif end > size and content[8:9] == b"{":
        what = f"its header should end at byte {end}, the file ends at byte {size}: it was cut"
    elif content[8:9] != b"{":
        what = f"no header starts at byte 8 ({reason}): it is no safetensors file"
    else:
        what = _damaged_body(content, end, reason)
    return FormatError(f"{file} cannot be read: {what}. Use another copy of the file")


def _damaged_body(content: bytes, start: int, reason: str) -> str:
    """What is wrong where the header has its full length."""
    try:
        header = json.loads(content[8:start])
        views = {k: v["data_offsets"] for k, v in header.items() if k != "__metadata__"}
        ends = {name: end for name, (_, end) in views.items()}
        last = max(ends, key=lambda name: ends[name], default="")
        end = ends.get(last, 0)
    except json.JSONDecodeError as error:
        return f"its header is damaged at byte {8 + error.pos} ({reason})"
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return f"its header, bytes 8 to {start}, is damaged ({reason})"
    size = len(content)
    if type(end) is not int:
        return f"its header, bytes 8 to {start}, is damaged ({reason})"
    if start + end > size:
        return (
            f"tensor {last!r} should end at byte {start + end}, the file ends at byte {size}: "
            "it was cut"
        )
    if start + end < size:
        return f"its tensors end at byte {start + end}, but the file goes on to byte {size}"
    return f"its header, bytes 8 to {start}, is damaged ({reason})"
