"""Named tensors in files of any format: found out by what a file begins with, written by its
ending; renamed and cast on the way.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

import retrograd as rg
from retrograd.errors import DTypeError, FormatError, OptionError
from retrograd.files import StrPath, read_bytes
from retrograd.functions.tensor.tensor import Tensor
from retrograd.io import npz, pytorch
from retrograd.io.archive import Archive, is_archive
from retrograd.io.safetensors import load_safetensors, save_safetensors, unpack
from retrograd.onnx.weights import initializers

# The endings that are written.
WRITERS: dict[str, Callable[[StrPath, Mapping[str, Any]], None]] = {
    ".safetensors": save_safetensors,
    ".pt": pytorch.save_pytorch,
    ".pth": pytorch.save_pytorch,
    ".bin": pytorch.save_pytorch,
    ".npz": npz.save_npz,
}


def load_weights(path: StrPath) -> dict[str, Tensor]:
    """The tensors of a file by name: safetensors, PyTorch's, NPZ, or the initializers of ONNX,
    whatever the file is called.

    Tensors in nested dictionaries and lists of a PyTorch file are named by the way to them,
    `model.layers.0.weight`; what is no tensor is left out. Raises `FormatError` for a file that is
    damaged, of none of these formats, or holds two tensors of one name, `OSError` for one that
    cannot be read.

    >>> import retrograd as rg, tempfile
    >>> from retrograd.io import load_weights, save_weights
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_weights(folder + "/w.pth", {"w": rg.arange(3)})
    ...     load_weights(folder + "/w.pth")
    {'w': Tensor([0, 1, 2], dtype=int64)}
    """
    content = read_bytes(path, "file of weights")
    file = os.fspath(path)
    if is_archive(content):
        names = Archive(content, file).names()
        if any(n == "data.pkl" or n.endswith("/data.pkl") for n in names):
            return flattened(pytorch.unpickled(content, file), file)
        return {k: Tensor.of(a) for k, a in npz.unpacked(content, file).items()}
    if content[:1] == b"\x80" or content[257:262] == b"ustar":
        return flattened(pytorch.unpickled(content, file), file)
    if content[8:9] == b"{":
        return {k: Tensor.of(a) for k, a in unpack(content, path).items()}
    if Path(path).suffix == ".onnx":
        return {k: Tensor.of(a) for k, a in initializers(content, file).items()}
    if Path(path).suffix == ".safetensors":
        return load_safetensors(path)  # which says what is wrong
    raise FormatError(
        f"{file} is none of safetensors, PyTorch, NPZ and ONNX: it begins with {content[:8]!r}"
    )


def save_weights(path: StrPath, tensors: Mapping[str, Any]) -> None:
    """Write named tensors in the format that the ending of the name says: `.safetensors`, `.pt`,
    `.pth`, `.bin` (PyTorch) or `.npz`.

    The file appears whole or not at all. `OptionError` for another ending, `DTypeError` for what
    the format does not have, such as bfloat16 in NPZ.

    >>> import retrograd as rg, tempfile
    >>> from retrograd.io import load_npz, save_weights
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_weights(folder + "/w.npz", {"w": rg.arange(3)})
    ...     load_npz(folder + "/w.npz")
    {'w': Tensor([0, 1, 2], dtype=int64)}
    """
    check_ending(path)
    WRITERS[Path(path).suffix.lower()](path, tensors)


def check_ending(path: StrPath) -> None:
    """Raise for a name whose ending says no format."""
    ending = Path(path).suffix.lower()
    if ending == ".onnx":
        raise OptionError(
            f"{os.fspath(path)}: an ONNX file is a graph with its weights, which weights alone do "
            "not make; model.to_onnx writes one, and rg.trace(...).to_onnx"
        )
    if ending not in WRITERS:
        near = get_close_matches(ending, WRITERS, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise OptionError(
            f"{os.fspath(path)}: the ending {ending!r} says no format; it is one of "
            f"{', '.join(WRITERS)}{hint}"
        )


def flattened(value: Any, file: str) -> dict[str, Tensor]:
    """The tensors in nested dictionaries and lists, by the way to them."""
    found: dict[str, Tensor] = {}

    def walk(x: Any, name: str) -> None:
        if isinstance(x, Tensor):
            if name in found:
                raise FormatError(f"{file} holds two tensors that are called {name!r:.80}")
            found[name] = x
        elif isinstance(x, dict | list | tuple):
            items = x.items() if isinstance(x, dict) else enumerate(x)
            for key, inner in items:
                walk(inner, f"{name}.{key}" if name else str(key))

    walk(value, "")
    return found


def renamed(tensors: Mapping[str, Tensor], rules: Sequence[str]) -> dict[str, Tensor]:
    """Tensors under other names: each rule, `PATTERN=REPLACEMENT`, replaces in each name what the
    regular expression matches, one after the other; groups are `\\1` in the replacement.

    `OptionError` for a rule that is none, or where two tensors get one name.

    >>> from retrograd.io.weights import renamed
    >>> renamed({"h.0.w": 1, "h.1.w": 2}, [r"^h\\.(\\d+)=layers.\\1", "w$=weight"])
    {'layers.0.weight': 1, 'layers.1.weight': 2}
    """
    parsed = [_rule(rule) for rule in rules]
    found: dict[str, Tensor] = {}
    origin: dict[str, str] = {}
    for old, x in tensors.items():
        new = old
        for rule, pattern, replacement in parsed:
            try:
                new = pattern.sub(replacement, new)
            except (re.error, IndexError) as error:
                raise OptionError(f"the rule {rule!r}: {error}") from None
        if new in found:
            raise OptionError(
                f"{origin[new]!r} and {old!r} would both be called {new!r}; choose other rules"
            )
        if not new:
            raise OptionError(f"nothing would be left of the name {old!r}; choose other rules")
        found[new], origin[new] = x, old
    return found


def _rule(rule: str) -> tuple[str, re.Pattern[str], str]:
    pattern, mark, replacement = rule.partition("=")
    if not mark or not pattern:
        raise OptionError(f"a rule is PATTERN=REPLACEMENT, not {rule!r}")
    try:
        return rule, re.compile(pattern), replacement
    except re.error as error:
        raise OptionError(f"{pattern!r} is no regular expression: {error}") from None


FLOATS = ("float16", "bfloat16", "float32", "float64")


def cast(tensors: Mapping[str, Tensor], dtype: str) -> dict[str, Tensor]:
    """Floating tensors in another dtype; others stay as they are. `OptionError` for a dtype that is
    no float, `DTypeError` for a number that it cannot hold.

    >>> import retrograd as rg
    >>> from retrograd.io.weights import cast
    >>> cast({"w": rg.ones(1), "n": rg.arange(1)}, "float16")
    {'w': Tensor([1.], dtype=float16), 'n': Tensor([0], dtype=int64)}
    """
    if dtype not in FLOATS:
        raise OptionError(f"weights are cast to one of {', '.join(FLOATS)}, not to {dtype!r}")
    found = {}
    for name, x in tensors.items():
        if not x.dtype.is_float:
            found[name] = x
            continue
        y = x.astype(getattr(rg, dtype))
        lost = np.isinf(y.numpy()) & ~np.isinf(x.numpy())
        if lost.any():
            raise DTypeError(
                f"{name!r} holds {float(x.numpy()[lost].flat[0]):.6g}, which {dtype} cannot hold; "
                "choose bfloat16 or float32"
            )
        found[name] = y
    return found
