"""NumPy's functions on random tensors give what they give for the arrays, or both refuse."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.coming_from.hints import table
from tests.functions.tensor.numpy_samples import SAMPLES, Draw

UFUNCS = sorted({f.__name__ for f in vars(np).values() if isinstance(f, np.ufunc)})
_PRODUCTS = """power pow float_power multiply vecdot dot vdot outer kron einsum matvec vecmat matmul
    inner cross convolve correlate divide true_divide square reciprocal prod nanprod cumprod
    nancumprod cumulative_prod expm1 log1p log2 log10 exp2 exp sinh cosh tan tanh asinh arcsinh
    acosh arccosh atanh arctanh sqrt sign tensordot fft.* linalg.*"""
# What differs on purpose: functions, what is said then, and why.
DIFFERENCES: list[tuple[str, str, str]] = [
    (".*", r"real numbers|inputs?, not c(64|128)|complex num", "complex numbers have no order"),
    (".*", r"inputs, not b1|numbers, not booleans|not (of )?bool(eans)?\b|booleans have",
     "booleans are no numbers, as the array API has it"),
    (r"linalg\..*", r"NumPy: .*float16 is unsupported", "half precision is computed, too"),
    (".*", "would drop the imaginary part", "complex numbers become real ones by real(x)"),
    (r"(nan)?(median|quantile|percentile)", "over no elements", "is an error, and no NaN"),
    (r"nan(quantile|percentile|median)", "shape", "NumPy drops axes where there are no elements"),
    (r"(nan)?(quantile|percentile)", "kind", "integers are averaged as floats by every method"),
    (r"reciprocal|rint|conjugate", "kind", "stay integers, or become floats"),
    (r"remainder|mod|floor_divide|divmod|fmod", r"value (?!.*\.)", "integers by 0 are 0 in NumPy"),
    (r"power|pow", "NumPy: .*negative integer powers", "powers that are arrays are not looked at"),
    ("|".join(_PRODUCTS.split()), r"value .*(nan|inf).*j", "complex infinities have many parts"),
    (r"deg2rad|rad2deg|radians|degrees|fabs|cbrt", "NumPy: .*not supported", "takes complex ones"),
    (r"gradient", "NumPy: .*boolean subtract", "booleans are taken as floats"),
    (r"linalg\.cond", "NumPy: .*not defined on empty|value", "0 of no elements, singular is inf"),
    (r"fft\..*", r"NumPy: ", "NumPy refuses some of what has a value"),
    ("unwrap", "NumPy: .*'remainder'", "of no complex numbers there is nothing to unwrap"),
    ("diff", "of an array with 0 axes", "there has to be an axis, also for n=0"),
    (r"diff", "kind", "what is joined takes the dtype of x"),
    (r"cumulative_(sum|prod)", r"shape \(\) needs", "of no axes the standard does not say"),
    (".*", "kind int64 uint64", "sums of unsigned numbers are unsigned"),
    (r"linalg\.matrix_power", "kind bool", "booleans are no numbers"),
    (r"linalg\.pinv", "kind (int64|bool) float64", "NumPy converts no array without elements"),
    (r"unique|.*1d", "value .*nan", "complex NaN are one"),
]  # fmt: skip


def functions(name: str, space: Any = np) -> Any:
    found = space
    for part in name.split("."):
        found = getattr(found, part)
    return found


def mapped(x: Any) -> Any:
    """A call's arguments with tensors in place of arrays."""
    if isinstance(x, np.ndarray):
        return rg.asarray(x)
    return type(x)(map(mapped, x)) if type(x) in (list, tuple) else x


def flat(x: Any) -> list[Any]:
    return [p for y in x for p in flat(y)] if isinstance(x, list | tuple) else [x]


def outcome(f: Any, args: Any, named: Any) -> tuple[list[Any] | None, str]:
    try:
        return [np.asarray(y) for y in flat(f(*args, **named))], ""
    except Exception as error:  # what is said is compared
        kind = type(error)
        ours = issubclass(kind, rg.RetrogradError)
        return None, f"{'' if ours else kind.__name__ + ' '}{error}"


def difference(found: list[Any], right: list[Any]) -> str:
    """How results differ, in words; nothing where they are the same."""
    if len(found) != len(right):
        return f"count {len(right)} {len(found)}"
    for y, r in zip(found, right, strict=True):
        if y.shape != r.shape:
            return f"shape {r.shape} {y.shape}"
        kinds = {"u": "i"} if r.dtype.itemsize < 8 else {}
        if kinds.get(y.dtype.kind, y.dtype.kind) != kinds.get(r.dtype.kind, r.dtype.kind):
            return f"kind {r.dtype} {y.dtype}"
        size = min(y.real.dtype.itemsize, r.real.dtype.itemsize)
        close = {2: 2e-2, 4: 2e-4}.get(size, 1e-8) if r.dtype.kind in "fc" else 0
        if not np.allclose(y, r, close, close, equal_nan=True):
            return f"value {r.tolist()} {y.tolist()}"
    return ""


def told(name: str, args: Any, named: Any, space: Any = np) -> str:
    """What is wrong with a call of NumPy's function, or of that of its name, with tensors."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        right, refused = outcome(functions(name), args, named)
        tensors = {k: mapped(v) for k, v in named.items()}
        found, said = outcome(functions(name, space), mapped(args), tensors)
    if right is None:
        return f"NumPy: {refused}" if found is not None else ""
    return said if found is None else difference(found, right)


def check(name: str, calls: Any, space: Any = np) -> None:
    seen = 0
    for args, named in calls:
        seen += 1
        problem = told(name, args, named, space)
        excused = any(
            re.fullmatch(of, name) and re.search(what, problem, re.DOTALL)
            for of, what, _ in DIFFERENCES
        )
        assert not problem or excused, f"{space.__name__}.{name}{args}{named}: {problem}"
    assert seen


@pytest.fixture(autouse=True)
def doubles() -> Any:
    """NumPy's dtype of Python's floats."""
    before = rg.get_default_dtype()
    rg.set_default_dtype(rg.float64)
    yield
    rg.set_default_dtype(before)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_functions(name: str) -> None:
    check(name, (SAMPLES[name](Draw([i, sum(map(ord, name))]), name) for i in range(16)))


def operands(name: str, seed: int) -> Any:
    d, f = Draw([seed, sum(map(ord, name))]), functions(name)
    x = d.array()
    if f.nin == 1:
        return (x,), {}
    y = d.any_of([2, 0.5, -1, True]) if d.chance(0.2) else d.array(x.shape if d.flag() else None)
    return ((x, y) if d.chance(0.7) else (y, x)), {}


@pytest.mark.slow
@pytest.mark.parametrize("name", UFUNCS)
def test_universal_functions(name: str) -> None:
    check(name, (operands(name, i) for i in range(16)))


SAME = {
    f"{room}.{name}".lstrip(".")
    for library, room in (("numpy", ""), ("numpy.linalg", "linalg"), ("numpy.fft", "fft"))
    for name, entry in table("numpy")[library].items()
    if entry.kind == "same"
} | {name for name, entry in table("jax")["jax.numpy"].items() if entry.kind == "same"}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SAME & SAMPLES.keys()))
def test_functions_that_the_tables_call_the_same(name: str) -> None:
    """Of this library, with the arguments of NumPy and `jax.numpy`."""
    calls = (SAMPLES[name](Draw([100 + i, sum(map(ord, name))]), name) for i in range(8))
    check(name, calls, rg)


def test_a_difference_is_seen() -> None:
    """Of values, kinds, shapes and refusals."""
    one = [np.ones(2)]
    assert difference([np.ones(2) + 1e-6], one).startswith("value")
    assert difference([np.ones(2, int)], one).startswith("kind")
    assert difference([np.ones(3)], one).startswith("shape")
    assert difference([], one).startswith("count")
    assert difference(one, one) == ""
    assert told("sort", (np.ones(2, complex),), {}) == ""
    assert "real numbers" in told("argmax", (np.ones(2, complex),), {})
