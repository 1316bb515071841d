"""Dtype functions of the array API: limits, promotion, kinds, and what the namespace can do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from retrograd.coming_from.keywords import respells
from retrograd.eager.conversion import promote
from retrograd.eager.immediate import call_kind
from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.eager.modes import is_tracing
from retrograd.eager.trace_buffer import BUFFERS, end_run, materialize
from retrograd.eager.trace_cache import SITES
from retrograd.eager.weak_types import CACHES
from retrograd.errors import DTypeError, OptionError, TraceError
from retrograd.functions.broadcasting import number_dtype
from retrograd.ir import (
    DTYPES,
    Dim,
    DType,
    Node,
    as_dtype,
    bool_,
    float32,
    float64,
    int64,
)
from retrograd.ir.dtype import DEFAULT
from retrograd.shared import members

VERSIONS = "2021.12", "2022.12", "2023.12", "2024.12", "2025.12"  # of the array API


def check_version(version: str | None) -> None:
    """Refuse a version of the array API that the namespace says nothing about."""
    if version is not None and version not in VERSIONS:
        raise OptionError(
            f"the version {version!r} of the array API is unknown here; there are "
            f"{', '.join(VERSIONS)}"
        )


def _dtype_of(x: Any) -> DType:
    """The dtype that is given, or that of an array."""
    return x.dtype if isinstance(x, LazyTensor | Node) else as_dtype(getattr(x, "dtype", x))


@dataclass(frozen=True)
class FloatInfo:
    """The limits of a floating dtype; numbers are Python floats."""

    bits: int
    eps: float  # the distance from 1 to the next number
    max: float
    min: float
    smallest_normal: float
    dtype: DType


@dataclass(frozen=True)
class IntegerInfo:
    """The limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: DType


def finfo(type: Any, /) -> FloatInfo:
    """The limits of a floating dtype, or of that of an array; of a complex one those of its parts.

    `DTypeError` for a dtype that is not floating.

    >>> import retrograd as rg
    >>> rg.finfo(rg.float32).bits
    32
    """
    dtype = _dtype_of(type)
    dtype = dtype.real if dtype.is_complex else dtype
    if not dtype.is_float:
        raise DTypeError(f"finfo is about floating dtypes, not {dtype}; see iinfo")
    info = ml_dtypes.finfo(dtype.dtype)
    eps, most, least, normal = map(float, (info.eps, info.max, info.min, info.smallest_normal))
    return FloatInfo(8 * dtype.itemsize, eps, most, least, normal, dtype)


def iinfo(type: Any, /) -> IntegerInfo:
    """The limits of an integer dtype, or of that of an array.

    `DTypeError` for a dtype that is not an integer.

    >>> import retrograd as rg
    >>> rg.iinfo(rg.uint8).max
    255
    """
    dtype = _dtype_of(type)
    if not dtype.is_integer:
        raise DTypeError(f"iinfo is about integer dtypes, not {dtype}; see finfo")
    info = np.iinfo(dtype.dtype)
    return IntegerInfo(info.bits, int(info.max), int(info.min), dtype)


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The dtype that arrays, dtypes and Python numbers make together; a number takes the dtype of
    the others where its kind fits.

    Shapes play no part. `DTypeError` without an array or a dtype.

    >>> import retrograd as rg
    >>> rg.result_type(rg.int8, rg.uint8)
    int16
    """
    if not arrays_and_dtypes:
        raise DTypeError("result_type needs at least one array or dtype")
    joined: DType | None = None
    numbers = []
    for x in arrays_and_dtypes:
        if isinstance(x, bool | int | float | complex | Dim) and not isinstance(x, np.generic):
            numbers.append(x)
            continue
        dtype = _dtype_of(x)
        joined = dtype if joined is None else promote(joined, dtype)
    for x in numbers:
        joined = number_dtype(x, joined)
    assert joined is not None
    return joined


@respells
def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether a dtype, or that of an array, is promoted to another when they meet: within a kind,
    and from floats to complex numbers whose parts hold them. No value is lost.

    `DTypeError` for what is no dtype.

    >>> import retrograd as rg
    >>> rg.can_cast(rg.int8, rg.int16), rg.can_cast(rg.int16, rg.int8)
    (True, False)
    """
    source, target = _dtype_of(from_), as_dtype(to)
    if source is target:
        return True
    if source.is_inexact is not target.is_inexact or bool_ in (source, target):
        return False
    try:
        return promote(source, target) is target
    except DTypeError:
        return False


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is of a kind: a dtype, a name as "real floating", or a tuple of these.

    `ValueError` for a name that is no kind, `DTypeError` for what is no dtype.

    >>> import retrograd as rg
    >>> rg.isdtype(rg.int8, ("unsigned integer", "signed integer"))
    True
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    found = as_dtype(dtype)
    if isinstance(kind, str) and kind in KINDS:
        return found in KINDS[kind]
    try:
        return found is as_dtype(kind)
    except DTypeError:
        raise ValueError(f"{kind!r} is not a kind of dtype; there are {', '.join(KINDS)}") from None


def get_default_dtype() -> DType:
    """The dtype of Python floats, and of what is made without a dtype; see `set_default_dtype`.

    >>> import retrograd as rg
    >>> rg.get_default_dtype()
    float32
    """
    return DEFAULT.real


def set_default_dtype(d: Any, /) -> None:
    """What Python floats, and arrays made without a dtype, are from here on in the whole program:
    float32, as at the start, or float64; of complex numbers complex64 or complex128.

    Integers that a function takes as floating, such as those of `sqrt` and `mean`, become of that
    dtype, too, and so do new parameters of `nn`. Next to arrays, Python numbers take the dtype of
    the arrays whatever the default. PyTorch's function of that name; call it at the start, before
    there are other threads: what is compiled is compiled again.

    `DTypeError` for another dtype, `TraceError` inside of a function that is traced.

    >>> import retrograd as rg
    >>> rg.set_default_dtype(rg.float64)
    >>> rg.zeros(2).dtype, rg.asarray(1j).dtype, (rg.arange(3) / 2).dtype
    (float64, complex128, float64)
    >>> rg.set_default_dtype(rg.float32)
    """
    dtype = as_dtype(d)
    if dtype not in (float32, float64):
        raise DTypeError(f"the default dtype is float32 or float64, not {dtype}")
    if is_tracing():
        raise TraceError(
            "set_default_dtype changes the whole program, and cannot be called in a function that "
            "is traced; call it before"
        )
    if dtype is DEFAULT.real:
        return
    end_run()
    materialize([b for ref in list(BUFFERS) if (b := ref()) is not None])
    DEFAULT.real, DEFAULT.complex = dtype, dtype.complex
    SITES.clear()
    call_kind.forget()
    for cache in members(CACHES):
        cache.forget()


KINDS: dict[str, tuple[DType, ...]] = {
    "bool": (bool_,),
    "signed integer": tuple(d for d in DTYPES if d.kind == "int"),
    "unsigned integer": tuple(d for d in DTYPES if d.kind == "uint"),
    "integral": tuple(d for d in DTYPES if d.is_integer),
    "real floating": tuple(d for d in DTYPES if d.is_float),
    "complex floating": tuple(d for d in DTYPES if d.kind == "complex"),
    "numeric": tuple(d for d in DTYPES if d is not bool_),
}


class NamespaceInfo:
    """What `__array_namespace_info__()` returns."""

    def capabilities(self) -> dict[str, Any]:
        """What of the standard is optional: masks, and results of sizes that depend on values. They
        work outside of traced functions, where this is asked for, too."""
        known = not is_tracing()
        return {"boolean indexing": known, "data-dependent shapes": known, "max dimensions": None}

    def default_device(self) -> str:
        """The device of arrays that are made without one."""
        return "cpu"

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        """The dtypes of arrays that are made of Python numbers."""
        _on_cpu(device)
        return {
            "real floating": DEFAULT.real,
            "complex floating": DEFAULT.complex,
            "integral": int64,
            "indexing": int64,
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, DType]:
        """The standard's dtypes by name, those of a kind if one is given."""
        _on_cpu(device)
        found = [d for d in DTYPES if kind is None or isdtype(d, kind)]
        return {d.name: d for d in found if not d.is_half}  # which the standard does not know

    def devices(self) -> list[str]:
        """The devices there are."""
        return ["cpu"]


def _on_cpu(device: Any) -> None:
    if device not in (None, "cpu"):
        raise OptionError(f"there is the device 'cpu', not {device!r}")


def __array_namespace_info__() -> NamespaceInfo:
    """What the array API asks of a namespace: dtypes, devices, capabilities.

    >>> import retrograd as rg
    >>> rg.__array_namespace_info__().default_dtypes()["integral"]
    int64
    """
    return NamespaceInfo()
