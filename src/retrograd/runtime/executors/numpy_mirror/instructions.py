"""Instructions of LLVM in NumPy: those of formulas, by their names."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from retrograd.ir import DType
from retrograd.runtime.executable import start_compiler

Do = Callable[..., Any]


class Unknown(Exception):
    """An instruction that is not known here."""


def refuse(*given: Any) -> Any:
    raise Unknown


_OPERATIONS: dict[str, Do] = {
    **dict.fromkeys(("fadd", "add"), np.add),
    **dict.fromkeys(("fsub", "sub"), np.subtract),
    **dict.fromkeys(("fmul", "mul"), np.multiply),
    "fdiv": np.divide,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "shl": np.left_shift,
    "ashr": np.right_shift,
    "fneg": np.negative,
}
_FLOATS: dict[str, Do] = {
    "oeq": np.equal,
    "une": np.not_equal,
    "olt": np.less,
    "ole": np.less_equal,
    "ogt": np.greater,
    "oge": np.greater_equal,
    "ugt": lambda a, b: ~np.less_equal(a, b),
    "one": lambda a, b: np.less(a, b) | np.greater(a, b),
    "uno": lambda a, b: np.isnan(a) | np.isnan(b),
}
_INTEGERS: dict[str, Do] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "slt": np.less,
    "sle": np.less_equal,
    "sgt": np.greater,
    "sge": np.greater_equal,
}
_FUNCTIONS: dict[str, Do] = {
    "fabs": np.abs,
    "sqrt": np.sqrt,
    "copysign": np.copysign,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "roundeven": np.rint,
    "smax": np.maximum,
    "fmod": np.fmod,  # of the C library
}


@functools.cache
def fused() -> Do | None:
    """`a * b + c` of arrays, rounded once, where there is such a function."""
    found: Do | None = start_compiler().fused
    return found


def operation(name: str, dtype: DType) -> Do:
    """Arithmetic on numbers, or bits, of a dtype."""
    return _shift(dtype) if name == "lshr" else _OPERATIONS.get(name, refuse)


def comparison(name: str, floats: bool) -> Do:
    return (_FLOATS if floats else _INTEGERS).get(name, refuse)


def function(name: str) -> Do:
    """An intrinsic, or a function of the C library."""
    return fused() or refuse if name == "fma" else _FUNCTIONS.get(name, refuse)


def conversion(how: str, dtype: DType) -> Do:
    if how == "bitcast":
        return operator.methodcaller("view", dtype.dtype)
    known = how in ("fpext", "fptrunc", "sitofp")
    return operator.methodcaller("astype", dtype.dtype) if known else refuse


def _shift(dtype: DType) -> Do:
    """To the right; zeros come in."""
    own, unsigned = dtype.dtype, np.dtype(f"u{dtype.itemsize}")
    return lambda a, b: np.right_shift(a.view(unsigned), b.view(unsigned)).view(own)
