"""The weights of an ONNX model: its initializers and constants."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from retrograd.errors import BackendError, FormatError
from retrograd.files import StrPath, read_bytes


def initializers(content: bytes, file: StrPath) -> dict[str, Any]:
    """The initializers in the bytes of a model, and the values of its `Constant` nodes, as arrays
    by name. What lies in other files is read from the folder of `file`, and from nowhere else.

    Raises `FormatError` for what is no model, or is damaged; `BackendError` without the package
    `onnx`.
    """
    try:
        import onnx
        from google.protobuf.message import DecodeError
    except ImportError:
        raise BackendError(
            "reading ONNX needs the package onnx: pip install 'retrograd[onnx]'"
        ) from None
    try:
        graph = onnx.load_model_from_string(content).graph
    except (DecodeError, ValueError, TypeError) as error:
        raise FormatError(f"{file} is no ONNX model, or was cut ({error!s:.120})") from None
    found: dict[str, Any] = {}
    for name, value in _values(graph):
        if not name or name in found:
            raise FormatError(f"{file}: two initializers are called {name!r:.80}")
        where = f"{os.fspath(file)}: {name!r:.80}"
        found[name] = array_of(value, where, file) if hasattr(value, "data_type") else value
    return found


def _values(graph: Any) -> Iterator[tuple[str, Any]]:
    """Names, and tensors of ONNX or arrays."""
    for tensor in graph.initializer:
        yield tensor.name, tensor
    for node in graph.node:
        if node.op_type != "Constant" or node.domain not in ("", "ai.onnx"):
            continue
        for a in node.attribute:
            match a.name:
                case "value":
                    yield node.output[0], a.t
                case "value_float" | "value_floats":
                    floats = a.f if a.name == "value_float" else list(a.floats)
                    yield node.output[0], np.asarray(floats, np.float32)
                case "value_int" | "value_ints":
                    ints = a.i if a.name == "value_int" else list(a.ints)
                    yield node.output[0], np.asarray(ints, np.int64)


def array_of(tensor: Any, where: str, file: StrPath) -> Any:
    import onnx
    import onnx.numpy_helper

    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        tensor = _with_data(tensor, where, file)
    try:
        array = np.asarray(onnx.numpy_helper.to_array(tensor))
    except (ValueError, TypeError, KeyError, OverflowError, MemoryError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise FormatError(f"{where} is damaged ({reason:.120})") from None
    if array.dtype.kind in "OSU":
        raise FormatError(f"{where} holds texts, which are no weights")
    return array


def _with_data(tensor: Any, where: str, file: StrPath) -> Any:
    """The tensor with the bytes that lie in another file beside the model."""
    import onnx

    said = {e.key: e.value for e in tensor.external_data}
    folder = Path(file).resolve().parent
    location = said.get("location", "").replace("\0", "")
    place = (folder / location).resolve()
    is_within = place.is_relative_to(folder) and not place.is_dir()
    if not location or Path(location).is_absolute() or not is_within:
        raise FormatError(
            f"{where} lies in {location!r:.80}, which is not in the folder of the model, "
            "or no file; nothing else is read"
        )
    try:
        start, size = int(said.get("offset", 0)), int(said.get("length", -1))
    except ValueError:
        raise FormatError(f"{where} lies at no place of {location!r:.80}: {said}") from None
    content = read_bytes(place, "file of weights")
    end = len(content) if size < 0 else start + size
    if not 0 <= start <= end <= len(content):
        raise FormatError(
            f"{where}: {location!r:.80} has {len(content)} bytes, not those from {start} to {end}; "
            "was it cut?"
        )
    copy = onnx.TensorProto()
    copy.CopyFrom(tensor)
    copy.ClearField("external_data")
    copy.data_location = onnx.TensorProto.DEFAULT
    copy.raw_data = content[start:end]
    return copy
