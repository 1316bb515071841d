"""Checkpoints: the whole state of a training run in one safetensors file.

A checkpoint is a dictionary of parts. Tensors and arrays in them, however deeply nested, become
the file's tensors, named after where they stand (`model/layers.0.weight`); everything else goes to
its metadata as JSON, which every tool that reads safetensors can show. Checksums over both find a
file that was changed after it was written.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from retrograd.eager.lazy_tensor import LazyTensor, evaluate
from retrograd.errors import DTypeError, FormatError, RetrogradError
from retrograd.files import StrPath, read_bytes, write_atomically
from retrograd.functions.tensor.tensor import Tensor
from retrograd.io.safetensors import Array, metadata_of, pack, read_metadata, unpack
from retrograd.io.sharded import write_together
from retrograd.xla.agreement import is_several

CHECKPOINT = "retrograd"  # the entry of the metadata that makes a file one
_VERSION = 1
_WHOLE = re.compile(r"-?[0-9]{1,18}")
DEEPEST = 100  # containers within containers


def save_checkpoint(path: StrPath, **parts: Any) -> None:
    """Write the parts to one file, which appears whole or not at all.

    A part is anything with a `state_dict()` (a model, an optimizer, a generator), or nested
    dictionaries, lists and tuples of tensors, arrays, numbers, texts and None.

    Of several processes (`rg.distributed`) all call it, in a folder that all of them see, and each
    writes the parts of tensors that it has; the file is the same as if there were one.

    >>> import retrograd as rg, tempfile
    >>> from retrograd.io import load_checkpoint, save_checkpoint
    >>> generator = rg.random.Generator(0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_checkpoint(folder + "/a.safetensors", generator=generator, step=3)
    ...     load_checkpoint(folder + "/a.safetensors", generator=rg.random.Generator(1))["step"]
    3
    """
    if is_several():
        _write_together(path, parts)
    else:
        write_atomically(path, _encode(parts), "checkpoint")


def load_checkpoint(path: StrPath, **objects: Any) -> dict[str, Any]:
    """The parts of a checkpoint; those named in `objects` are loaded into the object given.

    An object is loaded by its `load_state_dict()`. If one of them refuses, for instance because
    its shapes differ, those before it get their old state back. A file that is damaged, or is no
    checkpoint, is a `FormatError`.
    """
    parts = _decode(read_bytes(path, "checkpoint"), path)
    missing = [name for name in objects if name not in parts]
    if missing:
        raise FormatError(
            f"{os.fspath(path)} has no part {missing[0]!r}; it has {', '.join(sorted(parts))}"
        )
    before = {name: x.state_dict() for name, x in objects.items()}
    loaded: list[str] = []
    try:
        for name, x in objects.items():
            loaded.append(name)
            with structured(path, f"its part {name!r} is not what {type(x).__name__} saves"):
                x.load_state_dict(parts[name])
    except Exception as error:
        for name in loaded:
            objects[name].load_state_dict(before[name])
        error.add_note(f"while loading {loaded[-1]!r} from {os.fspath(path)}")
        raise
    return parts


@contextmanager
def structured(path: StrPath | None, what: str) -> Iterator[None]:
    """What is read inside of the block has another structure than it should where Python does not
    find or cannot use something of it: a `FormatError` that names the file and says `what`."""
    try:
        yield
    except RetrogradError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        file = "the checkpoint" if path is None else os.fspath(path)
        raise FormatError(f"{file}: {what} ({type(error).__name__}: {error})") from error


def read_checkpoint_header(path: StrPath) -> dict[str, Any]:
    """The parts of a checkpoint with None in place of tensors, which are not read."""
    parts, checksums = _content(read_metadata(path), path)
    return _Restoring(dict.fromkeys(checksums), path).all(parts)


def _flattened(parts: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What parts are made of as JSON, and their tensors by name, computed."""
    arrays: dict[str, Any] = {}
    content = {
        name: _flat(part.state_dict() if hasattr(part, "state_dict") else part, name, arrays)
        for name, part in parts.items()
    }
    evaluate([x for x in arrays.values() if isinstance(x, LazyTensor)])
    return content, arrays


def _encode(parts: Mapping[str, Any]) -> bytes:
    content, found = _flattened(parts)
    arrays = {
        k: np.asarray(x.value() if isinstance(x, LazyTensor) else x, order="C")
        for k, x in found.items()
    }
    return pack(arrays, _metadata(content, {k: _checksum_of(a) for k, a in arrays.items()}))


def _write_together(path: StrPath, parts: Mapping[str, Any]) -> None:
    """The same file, by several processes."""
    content, found = _flattened(parts)
    arrays = {
        k: x.value_there() if isinstance(x, LazyTensor) else np.asarray(x, order="C")
        for k, x in found.items()
    }
    write_together(path, arrays, lambda checksums: _metadata(content, checksums))


def _metadata(content: Any, checksums: Mapping[str, int]) -> dict[str, str]:
    header = {
        "kind": "checkpoint",
        "version": _VERSION,
        "checksum": _checksum(content),
        "checksums": dict(sorted(checksums.items())),
        "content": content,
    }
    return {CHECKPOINT: json.dumps(header)}  # one entry: the file is the same every time


def _decode(content: bytes, path: StrPath) -> dict[str, Any]:
    arrays = unpack(content, path)
    parts, checksums = _content(metadata_of(content, path), path)
    for name, array in arrays.items():
        if _checksum_of(array) != checksums.get(name):
            raise FormatError(
                f"{os.fspath(path)} is damaged: the numbers of {name!r} are not those that were "
                "saved (checksum). Use another copy, or an earlier checkpoint"
            )
    if missing := sorted(set(checksums) - set(arrays)):
        raise FormatError(f"{os.fspath(path)} is damaged: the tensor {missing[0]!r} is missing")
    return _Restoring(arrays, path).all(parts)


def _content(metadata: Mapping[str, str], path: StrPath) -> tuple[dict[str, Any], dict[str, int]]:
    """The parts as they stand in the metadata, and the checksums of the tensors."""
    file = os.fspath(path)
    text = metadata.get(CHECKPOINT)
    if not isinstance(text, str):
        raise FormatError(
            f"{file} is a safetensors file, but no checkpoint of retrograd: its metadata have no "
            f"entry {CHECKPOINT!r}. load_safetensors reads its tensors"
        )
    try:
        header = json.loads(text)
        version = header["version"]
        parts, checksum, checksums = header["content"], header["checksum"], header["checksums"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise FormatError(f"{file} is damaged: its metadata cannot be read ({error!r})") from None
    if version != _VERSION:
        raise FormatError(
            f"{file} is a checkpoint of format version {version}; this retrograd reads version "
            f"{_VERSION}"
        )
    if _checksum(parts) != checksum:
        raise FormatError(f"{file} is damaged: its metadata are not those that were saved")
    if not isinstance(parts, dict):
        raise FormatError(f"{file}: its content should be parts by name, not {parts!r:.80}")
    if not (isinstance(checksums, dict) and all(type(n) is int for n in checksums.values())):
        raise FormatError(f"{file}: its checksums should be numbers by the names of tensors")
    return parts, checksums


def _checksum(content: Any) -> int:
    return zlib.crc32(json.dumps(content).encode())


def _checksum_of(array: Array) -> int:
    return zlib.crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


def _flat(value: Any, where: str, arrays: dict[str, Any]) -> Any:
    """A value as JSON; tensors and arrays in it are put into `arrays` and referred to."""
    if isinstance(value, LazyTensor | np.ndarray | np.generic):
        arrays[where] = value
        return {"$tensor" if isinstance(value, LazyTensor) else "$array": where}
    if isinstance(value, Mapping):
        if value and all(type(k) is int for k in value):  # as the state of an optimizer has
            return {
                "$numbered": {str(k): _flat(v, f"{where}/{k}", arrays) for k, v in value.items()}
            }
        odd = [k for k in value if not isinstance(k, str) or k.startswith("$")]
        if odd:
            raise DTypeError(
                f"checkpoint: {where} has the key {odd[0]!r}; keys are strings without $ in front, "
                "or whole numbers all of them"
            )
        return {k: _flat(v, f"{where}/{k}", arrays) for k, v in value.items()}
    if isinstance(value, tuple | list):
        items = [_flat(v, f"{where}/{i}", arrays) for i, v in enumerate(value)]
        return {"$tuple": items} if isinstance(value, tuple) else items
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise DTypeError(
        f"checkpoint: {where} is a {type(value).__name__}, which cannot be saved; give tensors, "
        "arrays, numbers, texts, None, or lists, tuples and dictionaries of them"
    )


class _Restoring:
    """The inverse of `_flat`, for what may be anything that JSON can say."""

    def __init__(self, arrays: Mapping[str, Array | None], path: StrPath) -> None:
        self.arrays = arrays
        self.path = os.fspath(path)

    def all(self, parts: Mapping[str, Any]) -> dict[str, Any]:
        """The parts by name."""
        return {name: self.value(part, name, 0) for name, part in parts.items()}

    def value(self, value: Any, where: str, depth: int) -> Any:
        """One value, and where it stands."""
        if depth > DEEPEST:
            raise FormatError(f"{self.path}: {where[:80]} lies deeper than {DEEPEST} levels")
        if isinstance(value, list):
            return [self.value(v, f"{where}/{i}", depth + 1) for i, v in enumerate(value)]
        if not isinstance(value, dict):
            return value
        kind = next((k for k in value if k.startswith("$")), None)
        if kind is None:
            return {k: self.value(v, f"{where}/{k}", depth + 1) for k, v in value.items()}
        inner = value[kind]
        if len(value) == 1:
            if kind == "$tuple" and isinstance(inner, list):
                return tuple(self.value(inner, where, depth + 1))
            if kind == "$numbered" and isinstance(inner, dict):
                return self._numbered(inner, where, depth)
            if kind in ("$tensor", "$array") and isinstance(inner, str):
                return self._array(inner, where, kind)
        raise FormatError(
            f"{self.path}: {where} should be a tensor, an array, a tuple or a numbered dictionary, "
            f"but is {value!r:.80}"
        )

    def _numbered(self, inner: dict[str, Any], where: str, depth: int) -> dict[int, Any]:
        odd = [k for k in inner if not _WHOLE.fullmatch(k)]
        if odd:
            raise FormatError(f"{self.path}: {where} has the key {odd[0]!r} among whole numbers")
        return {int(k): self.value(v, f"{where}/{k}", depth + 1) for k, v in inner.items()}

    def _array(self, name: str, where: str, kind: str) -> Any:
        if name not in self.arrays:
            raise FormatError(
                f"{self.path}: {where} should be the tensor {name!r}, which the file does not have"
            )
        array = self.arrays[name]
        return array if array is None or kind == "$array" else Tensor.of(array)
