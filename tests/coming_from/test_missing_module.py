"""Imports of what the package has not: errors that say what to write."""

from __future__ import annotations

import importlib
import importlib.util
import pickle
import sys

import pytest

import retrograd as rg
from retrograd.coming_from import missing_module


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("import retrograd.lax", "No module named 'retrograd.lax'; jax.lax: rg.scan, rg.cond"),
        ("from retrograd import lax", "cannot import name 'lax' from 'retrograd'; jax.lax: rg."),
        ("from retrograd import nnn", "did you mean 'nn'?"),
        ("from retrograd.nn import Linaer", "did you mean 'Linear'?"),
        ("from retrograd.optim import StepLR", "it is rg.optim.lr_scheduler.StepLR"),
        ("from retrograd.autograd import Variable", "rg.tensor(data, requires_grad=True)"),
        ("import retrograd.nn.functionals", "did you mean 'functional'?"),
        ("import retrograd.multiprocessing as mp", "rg.data.DataLoader"),
        ("importlib.import_module('retrograd.numpy')", "rg itself"),
        ("import retrograd.no_such_module", "No module named 'retrograd.no_such_module'"),
    ],
)
def test_an_import_that_fails_says_what_to_write(statement: str, said: str) -> None:
    with pytest.raises(ImportError) as error:
        exec(statement, {"importlib": importlib})
    assert said in str(error.value)
    assert isinstance(error.value, rg.RetrogradError)
    assert isinstance(error.value, ModuleNotFoundError) == statement.startswith("import")
    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)


@pytest.mark.parametrize("name", ["linalg", "fft", "special", "random", "tree", "cuda"])
def test_modules_are_imported_under_the_name_they_have_for_users(name: str) -> None:
    found = getattr(rg, name)
    own, spec = found.__name__, found.__spec__
    for _ in range(2):
        assert importlib.import_module(f"retrograd.{name}") is found
        assert (found.__name__, found.__spec__) == (own, spec)


def test_who_only_asks_is_told_that_there_is_none() -> None:
    assert importlib.util.find_spec("retrograd.no_such_module") is None
    assert importlib.util.find_spec("no_such_package") is None
    assert getattr(rg, "no_such_module", None) is None
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'no_such_package'$"):
        importlib.import_module("no_such_package")


def test_installing_it_again_changes_nothing() -> None:
    before = list(sys.meta_path)
    missing_module.install()
    assert sys.meta_path == before
