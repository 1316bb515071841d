"""`Tensor` for annotations below the class: nothing when a program runs, the class to a checker."""

from __future__ import annotations

import ast
import subprocess
import sys
import typing
from pathlib import Path

import retrograd as rg
from retrograd import tensor_type
from retrograd.functions import sorting
from retrograd.functions.tensor.tensor import Tensor

STUB = Path(tensor_type.__file__).with_suffix(".pyi")


def test_it_imports_nothing() -> None:
    code = (
        "import sys, typing, importlib.util as u\n"
        f"spec = u.spec_from_file_location('tensor_type', {tensor_type.__file__!r})\n"
        "module = u.module_from_spec(spec); spec.loader.exec_module(module)\n"
        "assert module.Tensor is typing.Any\n"
        "assert not [m for m in sys.modules if m.startswith(('retrograd', 'numpy'))]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_checker_reads_the_class_that_users_have() -> None:
    tree = ast.walk(ast.parse(STUB.read_text(encoding="utf-8")))
    imports = [x for x in tree if isinstance(x, ast.ImportFrom)]
    (found,) = [x for x in imports if x.module != "typing"]
    names = [(x.name, x.asname) for x in found.names]
    assert names == [("Tensor", "Tensor")], "exported, as it is named twice"
    assert found.module == Tensor.__module__
    assert rg.Tensor is Tensor


def test_annotations_can_be_read_when_a_program_runs() -> None:
    assert typing.get_type_hints(sorting.TopK)["values"] is typing.Any
    assert typing.get_type_hints(rg.topk)["return"] is sorting.TopK


def test_the_stub_is_installed() -> None:
    assert STUB.exists()
    assert (STUB.parent / "py.typed").exists()
