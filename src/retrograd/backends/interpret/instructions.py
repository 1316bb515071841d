"""Instructions of LLVM in NumPy: those of formulas, by their text."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from retrograd.backends.interpret.fused import are_few, fused, within_range

KINDS: dict[str, np.dtype[Any]] = {
    "float": np.dtype(np.float32),
    "double": np.dtype(np.float64),
    "i1": np.dtype(np.bool_),
    "i8": np.dtype(np.int8),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
}


class Unknown(Exception):
    """An instruction that is not known here, or not for such operands."""


def _once(a: Any, b: Any, c: Any) -> Any:
    """`a * b + c`, rounded once."""
    if c.dtype == np.float64 and not are_few(a, b, c) and not within_range(a, b):
        raise Unknown
    return fused(a, b, c)


def _unsigned(x: Any) -> Any:
    return x.view(f"u{x.dtype.itemsize}")


def _shifted(a: Any, b: Any) -> Any:
    """To the right; zeros come in."""
    return (_unsigned(a) >> _unsigned(b)).view(a.dtype)


_BINARY: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("fadd", "add"), np.add),
    **dict.fromkeys(("fsub", "sub"), np.subtract),
    **dict.fromkeys(("fmul", "mul"), np.multiply),
    "fdiv": np.divide,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "shl": np.left_shift,
    "ashr": np.right_shift,
    "lshr": _shifted,
    "fneg": np.negative,
}
_FLOATS: dict[str, Callable[..., Any]] = {
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
_INTEGERS: dict[str, Callable[..., Any]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "slt": np.less,
    "sle": np.less_equal,
    "sgt": np.greater,
    "sge": np.greater_equal,
}
_CALLS: dict[str, Callable[..., Any]] = {
    "llvm.fma": _once,
    "llvm.fabs": np.abs,
    "llvm.sqrt": np.sqrt,
    "llvm.copysign": np.copysign,
    "llvm.floor": np.floor,
    "llvm.ceil": np.ceil,
    "llvm.trunc": np.trunc,
    "llvm.roundeven": np.rint,
    "llvm.smax": np.maximum,
    "rg_fmod": np.fmod,
    "rg_fmodf": np.fmod,
}
_CALL = re.compile(r"call \w+ @([\w.]+)\((.*)\)")
_FLAGS = ("nuw", "nsw")

Operands = list[tuple[str, str]]


def instruction(text: str) -> tuple[str | Callable[..., Any], Operands]:
    """What computes the result, or the name of a function, and the types and names of operands.
    What is not known is an error if it is ever done."""
    words = [w.strip(",") for w in text.split(" ") if w not in _FLAGS]
    op = words[0]
    if any(w not in KINDS for w in _types(op, text, words)):
        return _refuse, []
    if op == "call":
        return _call(text)
    if op in _BINARY:
        return _BINARY[op], [(words[1], x) for x in words[2:]]
    if op in ("fcmp", "icmp"):
        table = _FLOATS if op == "fcmp" else _INTEGERS
        return table.get(words[1], _refuse), [(words[2], x) for x in words[3:]]
    if op == "select":
        return np.where, [(words[i], words[i + 1]) for i in (1, 3, 5)]
    if op == "bitcast":
        return functools.partial(_viewed, KINDS[words[4]]), [(words[1], words[2])]
    if op in ("fpext", "fptrunc", "sitofp", "zext"):
        return functools.partial(_cast, KINDS[words[4]]), [(words[1], words[2])]
    return _refuse, []


def _types(op: str, text: str, words: list[str]) -> list[str]:
    """The types that an instruction names."""
    if op == "call":
        found = _CALL.match(text)
        parts = found[2].split(", ") if found is not None and found[2] else []
        return [words[1], *[p.split(" ")[0] for p in parts]]
    if op in _BINARY:
        return [words[1]]
    if op in ("fcmp", "icmp"):
        return [words[2]]
    if op == "select":
        return [words[1], words[3], words[5]]
    return [words[1], words[-1]] if "to" in words else [""]


def _call(text: str) -> tuple[str | Callable[..., Any], Operands]:
    found = _CALL.match(text)
    assert found is not None
    symbol = found[1]
    operands = [(a.split(" ")[0], a.split(" ")[1]) for a in found[2].split(", ")]
    if symbol.startswith("math."):
        return symbol, operands
    name = symbol.rpartition(".")[0] if symbol.startswith("llvm.") else symbol
    return _CALLS.get(name, _refuse), operands


def _viewed(dtype: np.dtype[Any], x: Any) -> Any:
    return x.view(dtype)


def _cast(dtype: np.dtype[Any], x: Any) -> Any:
    return x.astype(dtype)


def _refuse(*given: Any) -> Any:
    raise Unknown
