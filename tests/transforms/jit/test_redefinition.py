"""Functions that are redefined where `jit` was told that this happens: in IPython."""

import functools
import types
from typing import Any

import pytest

import retrograd as rg
from retrograd.transforms.jit import jit as jit_module
from retrograd.transforms.jit.redefinition import Definitions


@pytest.fixture
def interactive(monkeypatch):
    monkeypatch.setattr(jit_module, "shell", lambda: object())


def cell(space, text):
    exec(compile(text, "<cell>", "exec"), space)


X = rg.tensor([1.0, 2.0])


def test_a_helper_that_is_defined_again_is_called_anew(interactive):
    space: dict[str, Any] = {"rg": rg, "__name__": "__main__"}
    cell(space, "def helper(x): return x * 2\nf = rg.jit(lambda x: helper(x) + 1)")
    f = space["f"]
    assert [f(X).tolist() for _ in range(3)] == [[3.0, 5.0]] * 3
    assert f.cache_stats()["compilations"] == 1
    cell(space, "def helper(x): return x * 3")
    assert [f(X).tolist() for _ in range(3)] == [[4.0, 7.0]] * 3
    assert f.cache_stats()["compilations"] == 2


def test_so_is_one_behind_transforms_modules_and_other_helpers(interactive):
    module = types.ModuleType("mine")
    module.__file__ = "mine.py"
    cell(vars(module), "def inner(x): return x * x")
    space: dict[str, Any] = {"rg": rg, "mine": module, "__name__": "__main__"}
    cell(space, "def loss(x): return mine.inner(x).sum()\nf = rg.jit(rg.grad(loss))")
    f = space["f"]
    assert f(X).tolist() == [2.0, 4.0]
    cell(vars(module), "def inner(x): return x * x * x")
    assert f(X).tolist() == [3.0, 12.0]


def test_code_that_is_put_into_an_old_function_counts(interactive):
    def helper(x):
        return x * 2

    def other(x):
        return x * 5

    f = rg.jit(functools.partial(lambda h, x: h(x), helper))
    g = rg.jit(lambda x: helper(x))
    assert f(X).tolist() == g(X).tolist() == [2.0, 4.0]
    helper.__code__ = other.__code__
    assert g(X).tolist() == [5.0, 10.0]
    assert f(X).tolist() == [5.0, 10.0]


def test_so_does_that_of_a_model(interactive):
    class Net(rg.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = rg.nn.Parameter(rg.tensor([1.0, 1.0]))

        def forward(self, x):
            return self.weight * x

    f = rg.jit(lambda model, x: model(x))
    with rg.no_grad():
        assert f(Net(), X).tolist() == [1.0, 2.0]

    def forward(self, x):
        return self.weight * x * 4

    Net.forward.__code__ = forward.__code__
    with rg.no_grad():
        assert f(Net(), X).tolist() == [4.0, 8.0]


def test_outside_of_ipython_nothing_is_looked_at():
    assert type(rg.jit(lambda x: x)) is jit_module.Jit


def test_installed_functions_are_not_looked_into():
    found = Definitions(lambda x: rg.nn.functional.relu(functools.reduce(max, x)))
    assert len(found._codes) == 1
    assert found.hold()
