"""What the docstrings of the public names say: shapes, errors, and an example that runs."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from doctest import DocTestFinder
from typing import Any

import pytest

import retrograd as rg

ROOMS: dict[str, Any] = {
    "rg": rg,
    "nn": rg.nn,
    "nn.functional": rg.nn.functional,
    "nn.init": rg.nn.init,
    "optim": rg.optim,
    "gnn": rg.gnn,
    "metrics": rg.metrics,
    "linalg": rg.linalg,
    "fft": rg.fft,
    "special": rg.special,
    "random.Generator": rg.random.Generator,
}

# What a docstring is to have, and how it is recognized: the name of an exception; the word, or
# sizes of an array in brackets such as `[..., n]`; a line that is run with the tests.
PARTS = {
    "error": re.compile(r"\b[A-Z]\w*(Error|Warning)\b"),
    "shape": re.compile(r"\bshapes?\b|\belementwise\b|`\(?\[[\w.,* +\-/|()]*\]", re.I),
    "example": re.compile(r"^\s*>>> ", re.M),
}

# Names that take or give no arrays, so that there is no shape to tell of.
NO_ARRAYS = {
    "rg": {
        "__array_namespace_info__", "Dim", "Tape", "Value", "backend", "backends", "cache_stats",
        "can_cast", "compile", "dashboard", "debug", "device", "finfo",
        "flush_subnormals", "gradcheck", "iinfo", "info", "isdtype",
        "load", "load_graph", "no_grad", "num_threads", "profile", "enable_grad",
        "get_num_threads", "inference_mode", "initial_seed", "is_complex", "is_floating_point",
        "is_grad_enabled", "is_nonzero", "is_signed", "is_tensor", "manual_seed", "promote_types",
        "get_default_dtype", "seed", "save", "set_default_dtype", "set_grad_enabled",
        "set_num_threads", "set_rng_state",
    },
    "nn": {"LoadResult", "ModelSummary", "Module", "ModuleDict", "ModuleInfo", "ModuleList"},
    "nn.init": {"calculate_gain", "fans", "seed"},
    "optim": {"Optimizer"},
    "gnn": {"Edge", "Names", "from_edge_list", "from_networkx", "from_table", "to_networkx"},
    "random.Generator": {"jump"},
}  # fmt: skip
# Names that nothing refuses: records of results, and what takes no arguments.
NO_ERRORS = {
    "rg": {
        "__array_namespace_info__",
        "backends",
        "cache_stats",
        "info",
        "profile",
        "get_default_dtype",
        "get_rng_state",
        "initial_seed",
        "is_tensor",
    },
    "nn": {"LoadResult", "ModelSummary", "ModuleInfo"},
    "gnn": {"Edge", "Names", "NodeGradients", "Route", "Routing"},
    "random.Generator": {"jump", "state_dict"},
}
NO_EXAMPLES = {"nn": {"LoadResult", "ModelSummary", "ModuleInfo"}}
EXEMPT = {"shape": NO_ARRAYS, "error": NO_ERRORS, "example": NO_EXAMPLES}

# How many names of a room lack a part, where that is not 0: these numbers only fall.
MISSING: dict[str, dict[str, int]] = {}


def public(room: str) -> Iterator[tuple[str, Any]]:
    """The functions and classes of a room, but for exceptions, dtypes and other data."""
    module = ROOMS[room]
    names = getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]
    for name in names:
        value = getattr(module, name)
        if inspect.isclass(value) and issubclass(value, BaseException):
            continue
        if not callable(value) or inspect.ismodule(value):
            continue
        own = getattr(value, "__module__", "").startswith("retrograd")
        if own and (room != "nn.init" or value.__module__ == module.__name__):
            yield name, value


def lacking(room: str, part: str) -> list[str]:
    exempt = EXEMPT[part].get(room, set())
    return [
        name
        for name, value in public(room)
        if name not in exempt and not PARTS[part].search(inspect.getdoc(value) or "")
    ]


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("room", ROOMS)
def test_docstrings_tell(room: str, part: str) -> None:
    found = lacking(room, part)
    allowed = MISSING.get(room, {}).get(part, 0)
    assert len(found) <= allowed, f"no {part} in the docstrings of {room}: {', '.join(found)}"
    assert len(found) >= allowed, f"{room}, {part}: only {len(found)} lack it now, not {allowed}"


@pytest.mark.parametrize("room", ROOMS)
def test_there_is_a_docstring(room: str) -> None:
    without = [name for name, value in public(room) if not (value.__doc__ or "").strip()]
    assert not without


@pytest.mark.parametrize("room", EXEMPT["shape"])
def test_exempt_names_exist(room: str) -> None:
    names = {name for name, _ in public(room)}
    for part in EXEMPT:
        assert EXEMPT[part].get(room, set()) <= names


@pytest.mark.parametrize("name", ["exp", "add", "isnan", "floor", "logical_and"])
def test_examples_of_the_elementwise_table_are_run(name: str) -> None:
    """Functions made by a factory have their docstrings from one place, and doctest finds them."""
    from retrograd.functions import elementwise

    found = {test.name: test.examples for test in DocTestFinder().find(elementwise)}
    assert len(found[f"retrograd.functions.elementwise.{name}"]) == 2


@pytest.mark.parametrize(
    ("part", "good", "bad"),
    [
        ("error", "`ShapeError` for others.", "An error for others."),
        ("shape", "`[..., n]` to `[...]`.", "A list [1] of [things]."),
        ("example", "Adds.\n\n>>> rg.add(1, 2)", "Adds, as in rg.add(1, 2)."),
    ],
)
def test_the_patterns_find_what_they_are_for(part: str, good: str, bad: str) -> None:
    assert PARTS[part].search(good)
    assert not PARTS[part].search(bad)
