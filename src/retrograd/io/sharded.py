"""A safetensors file that several processes write together, each the parts that it has.

The file is the one that a single process would write, byte for byte, so it can be read anywhere:
whoever reads a part of a tensor maps the file into memory. The folder has to be one that all hosts
see. Nothing is gathered: what is exchanged are checksums.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from retrograd.files import StrPath, move
from retrograd.io.safetensors import _DTYPES
from retrograd.runtime.backend import Array
from retrograd.runtime.device_array import host
from retrograd.xla.agreement import RUN, any_of, exchanged, is_main
from retrograd.xla.sharding import resident

# In which order the library of the format writes tensors; within one dtype it is that of names.
ORDER = [
    *("U64", "I64", "F64", "C64", "F32", "U32", "I32"),
    *("BF16", "F16", "U16", "I16", "I8", "U8", "BOOL"),
]
_CODES = {dtype: code for code, dtype in _DTYPES.items()}
PIECE = 1 << 22  # bytes that a checksum is computed of at a time
# The parts of an array that this process writes: where they are, and what is there.
Parts = list[tuple[tuple[slice, ...], Array]]


def write_together(
    path: StrPath,
    arrays: Mapping[str, Any],
    metadata: Callable[[dict[str, int]], Mapping[str, str]],
    what: str = "checkpoint",
) -> None:
    """Write arrays by name; `metadata` makes the texts of the header of the checksums of all.

    All processes call it, with the same names, shapes and dtypes. The file appears whole or not at
    all. An `OSError` in one of them is one in all: it says where the file could not be written.
    """
    target = Path(path)
    partial = target.with_name(f".{target.name}.0.part")
    mine = {name: _parts(a) for name, a in arrays.items()}
    header, places = _header(arrays, metadata(_checksums(arrays, mine)))
    size = len(header) + sum(a.dtype.itemsize * _size(a) for a in arrays.values())

    def create() -> None:
        if is_main():
            with partial.open("wb") as file:
                file.write(header)
                file.truncate(size)

    def fill() -> None:
        for name, parts in mine.items():
            a = arrays[name]
            if parts and _size(a):
                shape = tuple(a.shape) or (1,)
                whole: Any = np.memmap(partial, a.dtype, "r+", places[name], shape)
                for index, part in parts:
                    whole[index or ...] = part
                whole.flush()

    def publish() -> None:
        if is_main():
            move(partial, target)

    try:
        for phase in (create, fill, publish):
            _in_all(phase, target, what)
    finally:
        if is_main():
            partial.unlink(missing_ok=True)


def _in_all(phase: Callable[[], None], target: Path, what: str) -> None:
    """Do something in all processes, and go on when all have done it, or none."""
    failure: OSError | None = None
    try:
        phase()
    except OSError as error:
        failure = error
    if any_of(failure is not None):
        reason = f"process {RUN.index}: {failure}" if failure else "another process could not do it"
        raise OSError(
            getattr(failure, "errno", None) or 5,
            f"cannot write the {what}: {reason}. It has to be on a file system that all hosts see",
            str(target),
        ) from failure


def _parts(array: Any) -> Parts:
    """What this process writes of an array: of one that all have, process 0 all of it; of one that
    is divided, each the parts of which it has the first copy."""
    there = resident(array)
    if there is None or there.is_fully_replicated or there.is_fully_addressable:
        return [((), host(array))] if is_main() else []
    return [(s.index, np.asarray(s.data)) for s in there.addressable_shards if s.replica_id == 0]


def _size(array: Any) -> int:
    return int(np.prod(array.shape, dtype=np.int64))


def _checksums(arrays: Mapping[str, Any], mine: Mapping[str, Parts]) -> dict[str, int]:
    """The CRC-32 of each array. It is affine over GF(2): of arrays `a_i` that are zero where others
    are not, `crc(sum a_i) = crc(0) ^ xor_i (crc(a_i) ^ crc(0))`."""
    own, zeros = [], []
    for name, a in arrays.items():
        zero = _crc(a, [])
        zeros.append(zero)
        own.append(_crc(a, mine[name]) ^ zero if mine[name] else 0)
    all_of_them = exchanged(np.array(own, np.uint32).view(np.int32)).view(np.uint32)
    found = np.bitwise_xor.reduce(all_of_them, axis=0) ^ np.array(zeros, np.uint32)
    return {name: int(crc) for name, crc in zip(arrays, found, strict=True)}


def _crc(array: Any, parts: Parts) -> int:
    """The CRC-32 of an array that has these parts and is zero elsewhere, some rows at a time."""
    shape = tuple(array.shape) or (1,)
    row = array.dtype.itemsize * (_size(array) // shape[0] if shape[0] else 0)
    step, crc = max(PIECE // max(row, 1), 1), 0
    for start in range(0, shape[0] if row else 0, step):
        stop = min(start + step, shape[0])
        piece: Array = np.zeros((stop - start, *shape[1:]), array.dtype)
        for index, part in parts:
            first, last, _ = (index[0] if index else slice(None)).indices(shape[0])
            low, high = max(first, start), min(last, stop)
            if low < high:
                rows = part.reshape((1,)) if not array.shape else part
                piece[(slice(low - start, high - start), *index[1:])] = rows[
                    low - first : high - first
                ]
        crc = zlib.crc32(piece.reshape(-1).view(np.uint8).data, crc)
    return crc


def _header(arrays: Mapping[str, Any], metadata: Mapping[str, str]) -> tuple[bytes, dict[str, int]]:
    """The beginning of the file, as the library of the format writes it, and where each array
    begins."""
    entries: dict[str, Any] = {"__metadata__": dict(metadata)}
    at, offsets = 0, {}
    for name in sorted(arrays, key=lambda n: (ORDER.index(_CODES[arrays[n].dtype]), n)):
        a = arrays[name]
        end = at + a.dtype.itemsize * _size(a)
        entries[name] = {
            "dtype": _CODES[a.dtype],
            "shape": list(a.shape),
            "data_offsets": [at, end],
        }
        offsets[name], at = at, end
    text = json.dumps(entries, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    start = 8 + len(text)
    return len(text).to_bytes(8, "little") + text, {k: start + v for k, v in offsets.items()}
