"""PyTorch's public names, and those of arguments, are here, or on the page that says why not."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import retrograd as rg
from retrograd.coming_from.hints import table

PAGE = Path(__file__).parents[2] / "scripts" / "introductions" / "pytorch-nn.md"
PLACES = [
    "nn", "nn.functional", "nn.init", "nn.utils", "nn.utils.parametrizations",
    "nn.utils.parametrize", "nn.utils.prune", "nn.utils.rnn", "linalg",
]  # fmt: skip
# What modules import, and what of theirs is not for users.
OTHERS = {
    "DType", "NamedTuple", "PackedSequence_", "ParamSpec", "Tensor", "TypeVar", "bind",
    "assert_int_or_pair", "boolean_dispatch", "common_notes", "copy_method_params",
    "Module", "ModuleDict", "ModuleList", "OpaqueBase", "Parameter", "abstractmethod",
    "contextmanager", "deepcopy", "factory_kwargs", "get_swap_module_params_on_conversion",
    "is_opaque_reference_type", "is_traceable_wrapper_subclass",
    "handle_torch_function", "has_torch_function", "has_torch_function_unary",
    "has_torch_function_variadic",
}  # fmt: skip


def public(module: ModuleType) -> list[str]:
    """Classes and functions of PyTorch in one of its modules."""

    def own(x: Any) -> bool:
        home = getattr(x, "__module__", None) or ""
        return inspect.isroutine(x) or (inspect.isclass(x) and home.startswith("torch"))

    names = [n for n in dir(module) if not n.startswith("_") and own(getattr(module, n))]
    others = OTHERS if module.__name__ != "torch.nn" else OTHERS - {"ModuleDict", "ModuleList"}
    return [n for n in names if n not in others]


@pytest.mark.torch
@pytest.mark.parametrize("path", PLACES)
def test_names(path: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    theirs, ours = torch, rg
    theirs = importlib.import_module(f"torch.{path}")
    for part in path.split("."):
        ours = getattr(ours, part)
    listed = set(re.findall(r"`(\w+)`", PAGE.read_text("utf-8")))
    said = table("pytorch").get(f"torch.{path}", {})
    listed |= {name for name, entry in said.items() if entry.kind in ("other", "absent")}
    missing = [n for n in public(theirs) if not hasattr(ours, n) and n not in listed]
    assert not missing
    if path in ("nn", "nn.functional"):
        absent = [n for n in listed if hasattr(theirs, n) and n.endswith("_") and hasattr(ours, n)]
        assert not absent, "the page says that these are absent"


def arguments(f: Any) -> list[str]:
    """Names of the arguments of a function of PyTorch; of some only the documentation tells."""
    try:
        found = list(inspect.signature(f).parameters)
    except ValueError:
        found = ["args", "kwargs"]
    if found != ["args", "kwargs"] or inspect.isclass(f):
        return [n for n in found if n not in ("args", "kwargs")]
    told = re.search(r"\w+\(([^)]*)", inspect.getdoc(f) or "")
    names = re.split(r",\s*", told[1]) if told else []
    return [name.split("=")[0].strip() for name in names if name.strip() not in ("", "*")]


@pytest.mark.torch
@pytest.mark.parametrize("path", ["nn", "nn.functional"])
def test_arguments(path: str) -> None:
    """In the order in which PyTorch takes them, but those on the page."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    theirs, ours = torch, rg
    for part in path.split("."):
        theirs, ours = getattr(theirs, part), getattr(ours, part)
    section = PAGE.read_text("utf-8").split("## Arguments that are absent")[1].split("##")[0]
    rows = [row.split("|")[1].split(" of ") for row in section.splitlines() if "`" in row]
    checked = 0
    for name in public(theirs):
        f, g = getattr(theirs, name), getattr(ours, name, None)
        if g is None or name in ("Identity", "Module", "Parameter") or "Lazy" in name:
            continue
        mine = [names for names, *owner in rows if not owner or f"`{name}`" in owner[0]]
        absent = re.findall(r"`(\w+)`", " ".join(mine))
        wanted = [n for n in arguments(f) if n not in absent]
        given = inspect.signature(g).parameters
        found = [n for n in given if n in wanted]
        assert set(found) == set(wanted), (name, found, wanted)
        by_place = [n for n in found if given[n].kind is not inspect.Parameter.KEYWORD_ONLY]
        assert by_place == wanted[: len(by_place)], (name, by_place, wanted)
        checked += 1
    assert checked > 15


def test_inplace_is_taken_and_unknown_options_are_not() -> None:
    x = rg.tensor([-1.0, 2.0])
    for layer in (
        rg.nn.ReLU(inplace=True),
        rg.nn.LeakyReLU(0.0, True),
        rg.nn.Threshold(0, 0, True),
    ):
        assert layer(x).tolist() == [0, 2]
    assert repr(rg.nn.LeakyReLU(0.1, inplace=True)) == repr(rg.nn.LeakyReLU(0.1))
    assert rg.nn.functional.relu(x, inplace=True).tolist() == [0, 2]
    assert rg.nn.Dropout(0.0, True)(x).tolist() == [-1, 2]
    assert x.tolist() == [-1, 2]
    kinds: tuple[Any, ...] = (rg.nn.ReLU, rg.nn.Tanh)
    for kind in kinds:
        with pytest.raises(TypeError, match="slope"):
            kind(slope=1)
