"""The weights of an ONNX model: its initializers."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograd.errors import BackendError, FormatError


def initializers(content: bytes, file: str) -> dict[str, Any]:
    """The initializers in the bytes of a model, as arrays by name. Other files, in which a model
    may keep its weights, are not read.

    Raises `FormatError` for what is no model, or is damaged; `BackendError` without the package
    `onnx`. `file` is for messages.
    """
    try:
        import onnx
        import onnx.numpy_helper
        from google.protobuf.message import DecodeError
    except ImportError:
        raise BackendError(
            "reading ONNX needs the package onnx: pip install 'retrograd[onnx]'"
        ) from None
    try:
        graph = onnx.load_model_from_string(content).graph
    except (DecodeError, ValueError, TypeError) as error:
        raise FormatError(f"{file} is no ONNX model, or was cut ({error!s:.120})") from None
    found = {}
    for tensor in graph.initializer:
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            raise FormatError(
                f"{file}: {tensor.name!r:.80} lies in another file, which is not read; save the "
                "model with its weights in it"
            )
        if not tensor.name or tensor.name in found:
            raise FormatError(f"{file}: two initializers are called {tensor.name!r:.80}")
        try:
            array = onnx.numpy_helper.to_array(tensor)
        except (ValueError, TypeError, KeyError, OverflowError, MemoryError) as error:
            reason = f"{type(error).__name__}: {error}"
            raise FormatError(f"{file}: {tensor.name!r:.80} is damaged ({reason:.120})") from None
        if array.dtype.kind in "OSU":
            raise FormatError(f"{file}: {tensor.name!r:.80} holds texts, which are no weights")
        found[tensor.name] = np.asarray(array)
    return found
