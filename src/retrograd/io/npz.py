"""Named tensors in NumPy's archives, `.npz` (https://numpy.org/doc/stable/reference/generated/
numpy.lib.format.html). Python objects in them, which would be unpickled, are refused."""

from __future__ import annotations

import ast
import io
import math
import os
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from retrograd.eager.dispatch import as_array
from retrograd.eager.lazy_tensor import LazyTensor, evaluate
from retrograd.errors import DTypeError, FormatError
from retrograd.files import StrPath, read_bytes, write_atomically
from retrograd.functions.tensor.tensor import Tensor
from retrograd.io.archive import BROKEN, Archive, packed
from retrograd.io.safetensors import Array
from retrograd.ir.dtype import DTYPES

WHAT = "NPZ file"
LONGEST = 10_000  # bytes of a header, as NumPy has it
_DESCR = re.compile(r"[<>|=]?[?biufcOSUVMm]\d{0,9}(\[\w+\])?")
_KNOWN = {d.dtype for d in DTYPES if d.dtype.kind != "V" and d.name != "bfloat16"}


def load_npz(path: StrPath) -> dict[str, Tensor]:
    """The arrays of a file that `numpy.savez`, `numpy.savez_compressed` or `save_npz` wrote, by
    name.

    A damaged, cut or foreign file, one that holds Python objects or texts, and a bomb are a
    `FormatError` saying what is wrong and where.

    >>> import numpy as np, tempfile
    >>> from retrograd.io import load_npz
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(folder + "/w.npz", w=np.arange(3))
    ...     load_npz(folder + "/w.npz")
    {'w': Tensor([0, 1, 2], dtype=int64)}
    """
    arrays = unpacked(read_bytes(path, WHAT), os.fspath(path))
    return {name: Tensor.of(a) for name, a in arrays.items()}


def save_npz(path: StrPath, tensors: Mapping[str, Any], compress: bool = False) -> None:
    """Write named tensors or arrays to a file that `numpy.load` reads; with `compress`, smaller and
    more slowly.

    The file appears whole or not at all. Raises `DTypeError` for what is no tensor or a name that
    is no name of a file, and for bfloat16, which NumPy does not have.

    >>> import numpy as np, retrograd as rg, tempfile
    >>> from retrograd.io import save_npz
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_npz(folder + "/w.npz", {"w": rg.arange(3)})
    ...     np.load(folder + "/w.npz")["w"].tolist()
    [0, 1, 2]
    """
    write_atomically(path, pack(tensors, compress), WHAT)


def pack(tensors: Mapping[str, Any], compress: bool = False) -> bytes:
    """The bytes of a file."""
    evaluate([x for x in tensors.values() if isinstance(x, LazyTensor)])
    members = []
    for name, x in tensors.items():
        if not isinstance(name, str) or not name or "\\" in name or "\0" in name:
            raise DTypeError(f"arrays are saved under names that are texts, not {name!r:.60}")
        if name.startswith("/") or ".." in name.split("/"):
            raise DTypeError(f"{name!r:.60} leads out of a folder; choose another name")
        try:
            array = x.value() if isinstance(x, LazyTensor) else as_array(x)
        except DTypeError as error:
            raise DTypeError(f"cannot save {name!r}: {error}") from None
        if array.dtype not in _KNOWN:
            raise DTypeError(
                f"cannot save {name!r}: NumPy has no {array.dtype.name}; save it as float32, or "
                "all as safetensors"
            )
        stream = io.BytesIO()
        np.lib.format.write_array(stream, np.asarray(array, order="C"), allow_pickle=False)
        members.append((f"{name}.npy", stream.getvalue()))
    return packed(members, compress)


def unpacked(content: bytes, file: str) -> dict[str, Array]:
    """The arrays in the bytes of a file."""
    archive = Archive(content, file)
    found = {}
    for member in archive.names():
        if not member.endswith(".npy"):
            raise FormatError(f"{file} holds {member!r:.80}, which is no array of NumPy")
        name = member.removesuffix(".npy")
        found[name] = _array(archive.read(member), f"{file}: {name!r:.80}")
    return found


def _header(content: bytes) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """What an array claims to be: shape, whether columns come first, dtype; where its data begin.
    Raises one of `BROKEN` or `SyntaxError`."""
    if content[:6] != b"\x93NUMPY" or content[6] not in (1, 2, 3):
        raise ValueError("it is no array of NumPy")
    start = 10 if content[6] == 1 else 12
    end = start + int.from_bytes(content[8:start], "little")
    if end - start > LONGEST or end > len(content):
        raise ValueError("its length is wrong")
    found = ast.literal_eval(content[start:end].decode().strip())
    shape, descr, column_first = found["shape"], found["descr"], found["fortran_order"]
    if isinstance(descr, list):
        descr = "|V0"  # with fields
    if not isinstance(descr, str) or not _DESCR.fullmatch(descr):
        raise ValueError(f"a type is described by {descr!r:.40}")
    if not isinstance(shape, tuple) or any(type(n) is not int or n < 0 for n in shape):
        raise ValueError(f"a shape is {shape!r:.40}")
    return shape, bool(column_first), np.dtype(descr), end


def _array(content: bytes, where: str) -> Array:
    """One array; its claims are checked before anything is made of them."""
    try:
        shape, column_first, dtype, start = _header(content)
    except (*BROKEN, SyntaxError, MemoryError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise FormatError(f"{where} has a damaged header ({reason:.120})") from None
    if dtype.hasobject:
        raise FormatError(f"{where} holds Python objects, which would have to be unpickled")
    native = dtype.newbyteorder("=")
    if native not in _KNOWN:
        raise FormatError(
            f"{where} is of type {dtype}, which retrograd does not compute with; it knows "
            f"{', '.join(sorted(d.name for d in _KNOWN))}"
        )
    size = math.prod(shape) * dtype.itemsize
    if size != len(content) - start:
        raise FormatError(
            f"{where} should have {size} bytes after its header, but has "
            f"{len(content) - start}: it is damaged, or was cut"
        )
    flat = np.frombuffer(content, dtype, offset=start)
    if dtype == np.bool_:  # bytes that may be more than 1
        flat = flat.view(np.uint8) != 0
    try:
        found = flat.reshape(shape[::-1]).T if column_first else flat.reshape(shape)
    except (ValueError, OverflowError) as error:  # no elements along a huge axis, or 65 axes
        raise FormatError(f"{where} has the shape {shape!r:.60}: {error}") from None
    return np.ascontiguousarray(found).reshape(shape).astype(native, copy=False)
