"""Data types: one flyweight object per dtype, compared by identity inside retrograd."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from retrograd.errors import DTypeError


class DType:
    """A scalar data type, such as `float32`.

    There is exactly one object per data type, so `is` compares them. `==` also accepts NumPy's: a
    dtype, a type of its scalars, and names (`x.dtype == np.float32`, `x.dtype == "float32"`); it is
    False for anything else, and never an error. The hash is that of NumPy's dtype, which therefore
    finds the same entry of a dict; as for NumPy's dtypes, names and types of scalars have others.
    NumPy accepts a `DType` wherever it accepts a dtype.
    """

    __slots__ = ("code", "dtype", "itemsize", "kind", "name")

    def __init__(self, name: str, code: str, kind: str, dtype: Any) -> None:
        self.name = name
        self.code = code  # short form used in graph text: f32, i64, ...
        self.kind = kind  # "bool", "int", "uint", "float" or "complex"
        self.dtype = np.dtype(dtype)  # NumPy looks for an attribute of this name
        self.itemsize: int = self.dtype.itemsize

    @property
    def char(self) -> str:
        """NumPy's letter for it, which code asks for that joins dtypes; see `numpy.dtype.char`."""
        return str(self.dtype.char)

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_complex(self) -> bool:
        return self.kind == "complex"

    @property
    def is_inexact(self) -> bool:
        """Whether it is a floating or complex dtype: one whose values have derivatives."""
        return self.kind in ("float", "complex")

    @property
    def real(self) -> DType:
        """The dtype of the real and of the imaginary part; of any other dtype, itself."""
        return _PARTS.get(self.name, self)

    @property
    def complex(self) -> DType:
        """The complex dtype whose parts are of this one; float32's where they would be halves."""
        return self if self.is_complex else complex128 if self is float64 else complex64

    @property
    def is_half(self) -> bool:
        """Whether it is float16 or bfloat16."""
        return self.kind == "float" and self.itemsize == 2

    @property
    def is_integer(self) -> bool:
        return self.kind in ("int", "uint")

    def __repr__(self) -> str:
        return self.name

    __array_ufunc__ = None  # so that an array leaves `==` to this class

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            return _NAMES.get(other) is self
        if isinstance(other, np.dtype):
            return bool(self.dtype == other)
        return self is other or any(other is t for t in _TYPES[self.name])

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __reduce__(self) -> tuple[Any, ...]:
        return as_dtype, (self.name,)


bool_ = DType("bool", "b1", "bool", np.bool_)
int8 = DType("int8", "i8", "int", np.int8)
int16 = DType("int16", "i16", "int", np.int16)
int32 = DType("int32", "i32", "int", np.int32)
int64 = DType("int64", "i64", "int", np.int64)
uint8 = DType("uint8", "u8", "uint", np.uint8)
uint16 = DType("uint16", "u16", "uint", np.uint16)
uint32 = DType("uint32", "u32", "uint", np.uint32)
uint64 = DType("uint64", "u64", "uint", np.uint64)
float16 = DType("float16", "f16", "float", np.float16)
bfloat16 = DType("bfloat16", "bf16", "float", ml_dtypes.bfloat16)
float32 = DType("float32", "f32", "float", np.float32)
float64 = DType("float64", "f64", "float", np.float64)
complex64 = DType("complex64", "c64", "complex", np.complex64)
complex128 = DType("complex128", "c128", "complex", np.complex128)
# What the type of a node of several results has in place of a dtype; no array is of it.
NOTHING = DType("nothing", "", "nothing", np.dtype([]))
_PARTS = {"complex64": float32, "complex128": float64}

DTYPES = (
    bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64,
    float16, bfloat16, float32, float64, complex64, complex128,
)  # fmt: skip
_BY_NUMPY = {d.dtype: d for d in DTYPES}
# What else a dtype is equal to: the types of scalars that NumPy takes for it, and its names.
_PYTHON = {"bool": bool, "int64": int, "float64": float, "complex128": complex}
_TYPES = {d.name: (d.dtype.type, _PYTHON.get(d.name, d.dtype.type)) for d in DTYPES}
_TYPES[NOTHING.name] = ()  # type: ignore[assignment]
_ALIASES = (
    "half", "single", "double", "float", "csingle", "cdouble", "complex", "byte", "ubyte", "short",
    "ushort", "intc", "uintc", "long", "ulong", "longlong", "ulonglong", "int", "uint", "intp",
    "uintp",
)  # fmt: skip
_NAMES = {name: _BY_NUMPY[np.dtype(name)] for name in _ALIASES} | {d.name: d for d in DTYPES}
for _d in DTYPES:
    if _d.dtype.isbuiltin == 1:  # others have no letter of their own
        _code = _d.dtype.str[1:]
        _NAMES |= dict.fromkeys((_code, _d.dtype.str, f"={_code}", _d.dtype.char), _d)
_NUMPY_CLASSES = frozenset(type(d) for d in _BY_NUMPY)
BY_CODE = {d.code: d for d in DTYPES}


# What NumPy raises for what is no dtype depends on what it is given.
_NO_DTYPE = TypeError, ValueError, KeyError, SyntaxError, OverflowError, DeprecationWarning


class _Default:
    """What Python numbers are where no array says otherwise, in the whole program; set by
    `set_default_dtype`."""

    real: DType = float32
    complex: DType = complex64


DEFAULT = _Default()


def as_dtype(value: Any) -> DType:
    """The `DType` meant by `value`: a `DType`, a NumPy dtype or type, a name, `float`, `int`.

    The Python type `float` means what Python floats are (float32, unless `set_default_dtype` was
    called), `complex` the complex numbers of that precision, `int` int64 and `bool` bool. Raises
    `DTypeError` for anything retrograd cannot compute with, objects included.
    """
    if isinstance(value, DType):
        return value
    if value.__class__ in _NUMPY_CLASSES and value in _BY_NUMPY:
        return _BY_NUMPY[value]
    if value is float:
        return DEFAULT.real
    if value is complex:
        return DEFAULT.complex
    try:
        found = None if value is None else _BY_NUMPY.get(np.dtype(value).newbyteorder("="))
    except _NO_DTYPE:
        found = None
    if found is None:
        names = ", ".join(d.name for d in DTYPES)
        raise DTypeError(f"{value!r:.80} is not a dtype retrograd computes with; it knows {names}")
    return found
