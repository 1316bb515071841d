"""NumPy's own tests of indexing, which come with it, driven with tensors.

Their module is run with a `np` that makes tensors of numbers. What does not apply is listed with the
reason, and must not pass: a line that has become wrong is noticed.
"""

from __future__ import annotations

import inspect
import types
from typing import Any

import numpy as np
import pytest

import retrograd as rg

suite = pytest.importorskip("numpy._core.tests.test_indexing")

MAKERS = ("arange", "array", "asarray", "empty", "eye", "ones", "zeros")
KINDS = "biufc"


class Tensors(types.ModuleType):
    """NumPy, whose arrays of numbers are tensors."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(np, name)
        if name not in MAKERS:
            return found

        def make(*args: Any, **options: Any) -> Any:
            array = found(*args, **options)
            return rg.asarray(array) if array.dtype.kind in KINDS else array

        return make


def equal(found: Any, right: Any) -> None:
    if isinstance(found, rg.Tensor) or isinstance(right, rg.Tensor):
        np.testing.assert_array_equal(found, right, strict=isinstance(right, rg.Tensor))
    else:
        np.testing.assert_equal(found, right)


def tests() -> dict[str, Any]:
    """The tests, class by class, without arguments, of the module run with tensors."""
    text = inspect.getsource(suite).replace("import numpy as np", "")
    space: dict[str, Any] = {"__name__": "numpy_indexing_of_tensors", "np": Tensors("np")}
    exec(compile(text, suite.__file__ or "", "exec"), space)
    space["assert_equal"] = equal  # NumPy's compares by `==` what is no array of its own
    found = {}
    for name, kind in space.items():
        if not name.startswith("Test") or name == "TestMultiIndexingAutomated":
            continue
        for key, test in vars(kind).items():
            if key.startswith("test_") and len(inspect.signature(test).parameters) == 1:
                found[f"{name}.{key}"] = (kind, key)
    return found


FOUND = tests()


if __name__ == "__main__":
    import traceback

    for name, (kind, key) in FOUND.items():
        try:
            getattr(kind(), key)()
            print("ok  ", name)
        except BaseException as e:
            tb = traceback.extract_tb(e.__traceback__)
            line = [t for t in tb if "test_indexing" in t.filename][-1]
            print("FAIL", name, type(e).__name__, str(e)[:110].replace("\n", " "), "|", line.lineno, line.line)
