"""PyTorch's public names are here, or on the page that says why not."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import retrograd as rg

PAGE = Path(__file__).parents[2] / "docs" / "pytorch-names.md"
# What modules import, and what of theirs is not for users.
OTHERS = {
    "DType", "NamedTuple", "PackedSequence_", "ParamSpec", "Tensor", "TypeVar", "bind",
    "assert_int_or_pair", "boolean_dispatch", "common_notes", "copy_method_params",
    "factory_kwargs", "handle_torch_function", "has_torch_function", "has_torch_function_unary",
    "has_torch_function_variadic",
}  # fmt: skip


def public(module: ModuleType) -> list[str]:
    """Classes and functions of PyTorch in one of its modules."""

    def own(x: Any) -> bool:
        home = getattr(x, "__module__", None) or ""
        return inspect.isroutine(x) or (inspect.isclass(x) and home.startswith("torch"))

    names = [n for n in dir(module) if not n.startswith("_") and own(getattr(module, n))]
    return [n for n in names if n not in OTHERS]


@pytest.mark.parametrize("path", ["nn", "nn.functional", "nn.init", "nn.utils.rnn", "linalg"])
def test_names(path: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    theirs, ours = torch, rg
    for part in path.split("."):
        theirs, ours = getattr(theirs, part), getattr(ours, part)
    listed = set(re.findall(r"`(\w+)`", PAGE.read_text("utf-8")))
    missing = [n for n in public(theirs) if not hasattr(ours, n) and n not in listed]
    assert not missing
    if path in ("nn", "nn.functional"):
        absent = [n for n in listed if hasattr(theirs, n) and n.endswith("_") and hasattr(ours, n)]
        assert not absent, "the page says that these are absent"
