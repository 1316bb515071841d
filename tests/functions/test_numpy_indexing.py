"""NumPy's own tests of indexing, which come with it, driven with tensors.

Their module is run with a `np` that makes tensors of numbers. What does not apply is listed with
the reason.
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


def raises(error: Any, call: Any, *args: Any) -> None:
    """That a call fails, at the latest when the values are looked at."""
    with pytest.raises(error):
        looked_at(call(*args), getattr(call, "__self__", None))


def looked_at(*given: Any) -> None:
    for x in given:
        if isinstance(x, rg.Tensor):
            x.numpy()


def gathered() -> dict[str, Any]:
    """The tests, class by class, without arguments, of the module run with tensors."""
    text = inspect.getsource(suite).replace("import numpy as np", "")
    space: dict[str, Any] = {"__name__": "numpy_indexing_of_tensors", "np": Tensors("np")}
    exec(compile(text, suite.__file__ or "", "exec"), space)
    space["assert_raises"] = raises
    space["assert_equal"] = equal  # NumPy's compares by `==` what is no array of its own
    found = {}
    for name, kind in space.items():
        if not name.startswith("Test") or name == "TestMultiIndexingAutomated":
            continue
        for key, test in vars(kind).items():
            if key.startswith("test_") and len(inspect.signature(test).parameters) == 1:
                found[f"{name}.{key}"] = (kind, key)
    return found


FOUND = gathered()


# What does not apply, and why.
COPIES = "a tensor has no views, flags, strides or base: what is taken from it is a value"
ARRAYS = "about classes of arrays, raw memory, strings or NumPy's C interface"
FLAT = "a tensor has no iterator .flat; x.reshape(-1) is a vector"
WORDS = "about the words of NumPy's message"
SAFE = "values of a dtype that loses a part of them are refused"
KIND = "a size or axis that is no integer is a ShapeError, which is a ValueError"
ONE = "a tensor with one element counts as an index whatever its shape, as in PyTorch"
NOT_APPLICABLE = {
    "TestIndexing": {
        "test_index_no_array_to_index": ONE,
        "test_empty_tuple_index": COPIES,
        "test_ellipsis_index": COPIES,
        "test_gh_26844": COPIES,
        "test_gh_26844_segfault": COPIES,
        "test_boolean_assignment_value_mismatch": SAFE,
        "test_boolean_assignment_needs_api": ARRAYS,
        "test_reversed_strides_result_allocation": COPIES,
        "test_uncontiguous_subspace_assignment": "x.T is for matrices, as in the standard",
        "test_too_many_fancy_indices_special_case": "there is no limit of 64 axes",
        "test_nonbaseclass_values": ARRAYS,
        "test_array_like_values": ARRAYS,
        "test_memory_order": COPIES,
        "test_scalar_return_type": "an element is a tensor, not a scalar",
        "test_small_regressions": "counts references",
        "test_unaligned": ARRAYS,
        "test_indexing_array_weird_strides": COPIES,
    },
    "TestSubclasses": dict.fromkeys(
        ("test_basic", "test_fancy_on_read_only", "test_finalize_gets_full_info"), ARRAYS
    ),
    "TestFancyIndexingCast": {"test_boolean_index_cast_assign": SAFE},
    "TestFancyIndexingEquivalence": {"test_cast_equivalence": SAFE},
    "TestFloatNonIntegerArgument": {
        "test_non_integer_argument_errors": KIND,
        "test_reduce_axis_float_index": KIND,
    },
    "TestBooleanIndexing": {
        "test_bool_as_int_argument_errors": ONE,
        "test_boolean_indexing_fast_path": WORDS,
    },
    "TestArrayToIndexDeprecation": {"test_array_to_index_error": ONE},
    "TestCApiAccess": {"test_getitem": ARRAYS, "test_setitem": ARRAYS},
}


def assigns() -> bool:
    """Whether `x[i] = v` is there."""
    x: Any = rg.zeros(1)
    try:
        x[0] = 1.0
    except TypeError:
        return False
    return True


@pytest.mark.parametrize("name", FOUND)
def test_of_numpy(name: str) -> None:
    kind, key = FOUND[name]
    reason = FLAT if kind.__name__ == "TestFlatiterIndexing" else None
    reason = reason or NOT_APPLICABLE.get(kind.__name__, {}).get(key)
    if reason:
        pytest.skip(reason)
    if not assigns() and "] = " in inspect.getsource(getattr(kind, key)) + WRITERS.get(key, ""):
        pytest.skip("assigns to elements")
    with rg.backend("reference"):
        getattr(kind(), key)()


# Tests that assign to elements in functions which they call.
WRITERS = dict.fromkeys(
    ("test_broaderrors_indexing", "test_prepend_not_one", "test_simple_broadcasting_errors"), "] = "
)


def test_what_does_not_apply_exists() -> None:
    listed = {f"{kind}.{key}" for kind, keys in NOT_APPLICABLE.items() for key in keys}
    assert listed <= set(FOUND)


class Reads(suite.TestMultiIndexingAutomated):  # type: ignore[name-defined]
    """All combinations of 17 kinds of keys with six others on the axes of an array: NumPy's model
    of indexing, which is Python, says what is read."""

    __test__ = False

    def _check_multi_index(self, arr: Any, index: Any) -> None:
        self.compare(arr, index, index)

    def _check_single_index(self, arr: Any, index: Any) -> None:
        self.compare(arr, (index,), index)

    def compare(self, arr: Any, model: Any, index: Any) -> None:
        x = rg.asarray(arr)
        try:
            expected = self._get_multi_index(arr, model)[0]
        except Exception as error:
            with pytest.raises(type(error)):
                x[index].numpy()
        else:
            np.testing.assert_array_equal(x[index].numpy(), expected, strict=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["test_boolean", "test_multidim", "test_1d"])
def test_all_kinds_of_keys(name: str) -> None:
    with rg.backend("reference"):
        getattr(Reads(), name)()
