"""Scopes of modules: where they stand, also after what is below a module has changed."""

import gc
import weakref
from typing import Any

import pytest

import retrograd as rg
from retrograd.nn.module import scopes
from retrograd.nn.module.scopes import paths_below


class Block(rg.nn.Module):
    def forward(self, x: Any) -> Any:
        return rg.relu(x)


class Model(rg.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = [Block(), Block()]
        self.named = {"a": Block()}
        self.head = rg.nn.Sequential(Block())

    def forward(self, x: Any) -> Any:
        for layer in (*self.layers, *self.named.values(), self.head):
            x = layer(x)
        return x


def scopes_of(model: Any) -> list[str]:
    graph = rg.trace(model.forward if not isinstance(model, rg.nn.Module) else model, rg.ones(3))
    return [n.scope for n in graph.nodes if n.op == "relu"]


def test_places_in_lists_dicts_and_containers():
    expected = ["Model.layers[0]", "Model.layers[1]", "Model.named['a']", "Model.head[0]"]
    model = Model()
    assert scopes_of(model) == expected
    assert scopes_of(model) == expected


def test_what_was_moved_or_added_is_found_where_it_is():
    model = Model()
    scopes_of(model)
    model.layers.reverse()
    model.layers.append(Block())
    model.named["b"] = model.named.pop("a")
    expected = [f"Model.layers[{i}]" for i in range(3)] + ["Model.named['b']", "Model.head[0]"]
    assert scopes_of(model) == expected


def test_a_module_that_is_not_below_has_a_scope_of_its_own():
    other = Block()

    class Outer(rg.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Block()

        def forward(self, x: Any) -> Any:
            return self.inner(other(self.inner(x)))

    assert scopes_of(Outer()) == ["Outer.inner", "Outer.Block", "Outer.inner"]


@pytest.mark.slow
def test_paths_keep_no_module_alive():
    model = Model()
    model(rg.ones(2))
    assert paths_below(model).get(model.layers[1]) == ".layers[1]"
    removed, below = weakref.ref(model.layers.pop()), weakref.ref(model.layers[0])
    gc.collect()
    assert removed() is None
    key = id(model)
    del model
    gc.collect()
    assert below() is None
    assert key not in scopes._PATHS
