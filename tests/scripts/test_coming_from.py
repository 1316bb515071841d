"""The pages docs/coming-from-*.md, and the names that other libraries have."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

import pytest

from retrograd.coming_from.hints import LIBRARIES, table
from scripts import coming_from


@pytest.mark.parametrize("library", LIBRARIES)
def test_pages_are_up_to_date(library: str) -> None:
    text = coming_from.path(library).read_text("utf-8")
    assert text == coming_from.page(library), "run: make docs"


def public(owner: Any, modules: bool) -> list[str]:
    names = [n for n in dir(owner) if not n.startswith("_")]
    return [n for n in names if modules or not isinstance(getattr(owner, n), ModuleType)]


# In each library, the attributes that are listed, modules among them or not.
LISTED = [
    ("pytorch", "torch.Tensor", True), ("pytorch", "torch", True), ("numpy", "numpy", False),
    ("numpy", "numpy.ndarray", True), ("numpy", "numpy.linalg", False),
    ("numpy", "numpy.fft", False), ("jax", "jax.numpy", False), ("jax", "jax.Array", True),
    ("jax", "jax", False), ("jax", "jax.lax", False), ("jax", "jax.nn", False),
    ("jax", "jax.random", False), ("jax", "jax.tree_util", False),
]  # fmt: skip


@pytest.mark.torch
@pytest.mark.parametrize(("library", "room", "modules"), LISTED)
def test_every_name_of_the_installed_library_is_listed(
    library: str, room: str, modules: bool
) -> None:
    """Of PyTorch 2.13, JAX 0.10 and NumPy 2.4: a name that comes with another version is not."""
    head = importlib.import_module("torch" if library == "pytorch" else library)
    wanted = {"torch": "2.13", "jax": "0.10", "numpy": "2.4"}[head.__name__]
    if not head.__version__.startswith(wanted):
        pytest.skip(f"the tables list the names of {head.__name__} {wanted}")
    owner: Any = head
    for part in room.split(".")[1:]:
        found = getattr(owner, part, None)
        owner = importlib.import_module(room) if found is None else found
    assert sorted(table(library)[room]) == sorted(set(public(owner, modules)))
