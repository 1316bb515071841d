"""Attribute values as text: what stands to the right of `=` in the text of a graph.

`show` and `LiteralReader` are exact inverses on bools, ints, floats, strings, None, dtypes, types,
sizes (ints and `Dim`s), arrays (to the bit) and tuples of these. Nothing is ever evaluated as
Python.

    true  false  none  3  -1.5e-05  inf  "any \\"text\\""      plain values
    N     2*N + 1     (N + 1) // 2                           symbolic sizes
    f32   f32[N, 3]                                          a dtype, a type
    f32(0.1)   i64[2, 2](1, 2, 3, 4)   f64[9000]("AAAA...")   arrays; long ones in base64
    f32(0x7fc00001)                                          bits no decimal stands for
    (1, N, f32)   (1,)   ()                                  tuples

A size whose name would read as something else is put in backquotes: `` `f32` ``, `` `inf` ``.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from retrograd.errors import FormatError, RetrogradError
from retrograd.ir.dim import Dim, added, product
from retrograd.ir.dtype import BY_CODE, DType, as_dtype
from retrograd.ir.types import Shape, TensorType, TupleType

READABLE = 16  # arrays of at most this many elements are written as numbers
MOST_WORK = 100_000
DEEPEST = 60  # brackets within brackets, so that damaged text cannot exhaust the stack

_WORDS = {"true": True, "false": False, "none": None, "inf": math.inf, "nan": math.nan}
_RESERVED = frozenset(_WORDS) | frozenset(BY_CODE)
_ESCAPES = {"\n": "\\n", "\t": "\\t", '"': '\\"', "\\": "\\\\"}
_UNESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}

# -- printing -------------------------------------------------------------------------------------


def show(value: Any) -> str:
    """The text of an attribute value; raises `FormatError` for what has none."""
    if value is None or isinstance(value, bool | np.bool):
        return "none" if value is None else str(bool(value)).lower()
    if isinstance(value, int | np.integer):
        return str(int(value))
    if isinstance(value, float):
        return repr(float(value))
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, DType):
        return value.code
    if isinstance(value, Dim):
        return show_size(value)
    if isinstance(value, TensorType):
        return show_type(value)
    if isinstance(value, tuple):
        inner = ", ".join(map(show, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, np.ndarray):
        return _show_array(value)
    raise FormatError(f"graph text has no way to write {value!r}, a {type(value).__name__}")


def show_size(size: int | Dim) -> str:
    text = str(size)
    if isinstance(size, Dim) and size.names & _RESERVED:
        text = re.sub(r"\w+", lambda m: f"`{m[0]}`" if m[0] in _RESERVED else m[0], text)
    return text


def show_type(type: TensorType) -> str:
    if isinstance(type, TupleType):
        return show(type.items)
    return f"{type.dtype.code}[{', '.join(map(show_size, type.shape))}]"


def quote(text: str) -> str:
    """`text` in double quotes, on one line, whatever characters it holds."""
    return '"' + "".join(map(_escape, text)) + '"'


def _escape(c: str) -> str:
    return _ESCAPES.get(c) or (c if c.isprintable() else f"\\u{{{ord(c):x}}}")


def unquote(text: str) -> str:
    """The inverse of `quote`."""
    body = text[1:-1]
    return re.sub(r"\\(u\{([0-9a-f]+)\}|.)", _unescape, body) if "\\" in body else body


def _unescape(found: re.Match[str]) -> str:
    if found[2] and int(found[2][:8], 16) <= sys.maxunicode and len(found[2]) <= 8:
        return chr(int(found[2], 16))
    if found[1] not in _UNESCAPES:
        raise FormatError(f'expected one of \\n \\t \\" \\\\ \\u{{...}}, found {found[0]!r}')
    return _UNESCAPES[found[1]]


def _show_array(array: np.ndarray[Any, Any]) -> str:
    dtype = as_dtype(array.dtype)
    array = np.asarray(array, dtype.dtype)
    head = dtype.code + (str(list(array.shape)) if array.ndim else "")
    if array.size > READABLE:
        return f'{head}("{base64.b64encode(_little(array).tobytes()).decode()}")'
    return f"{head}({', '.join([_show_element(x, dtype) for x in array.reshape(-1)])})"


def _show_element(x: Any, dtype: DType) -> str:
    if dtype.is_complex:
        return f"{_show_element(x.real, dtype.real)} {_show_element(x.imag, dtype.real)}j"
    if not dtype.is_float:
        return str(x).lower()
    text = (
        str(float(x)) if dtype.itemsize == 8 else str(np.float32(x) if dtype.code[0] == "b" else x)
    )
    bits: str = x.tobytes()[:: -1 if sys.byteorder == "little" else 1].hex()
    same = dtype.dtype.type(float(text)).tobytes() == x.tobytes()
    return text if same else f"0x{bits}"


def _little(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The same values in little-endian memory, whatever the machine."""
    return array if sys.byteorder == "little" else array.byteswap()


# -- parsing --------------------------------------------------------------------------------------

_SPACE = re.compile(r"\s*")
_GRAPH = re.compile(r"&[0-9]+", re.ASCII)
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_NUMBER = re.compile(r"[0-9]{1,400}(\.[0-9]*)?(e[+-]?[0-9]+)?", re.ASCII)
_WORD = re.compile(r"[^\s0-9()\[\]{},=+\-*/\"`@#%:;.][^\s()\[\]{},=+\-*/\"`@#%:;.]*")
_ELEMENTS = re.compile(r'[^()"]*')
_DECIMAL = re.compile(r"-?([0-9]{1,400}(\.[0-9]*)?(e[+-]?[0-9]{1,9})?|inf|nan)", re.ASCII)
_INTEGER = re.compile(r"-?[0-9]{1,20}", re.ASCII)


class LiteralReader:
    """Reads values from `text` from the position `at` on; `FormatError` says what was expected."""

    def __init__(self, text: str, at: int = 0, graphs: Mapping[str, Any] | None = None) -> None:
        self.text = text
        self.at = at
        self.graphs = graphs or {}  # by what stands for them, such as &0
        self.depth = 0
        self.work = 0

    def skip(self) -> None:
        self.at = _SPACE.match(self.text, self.at).end()  # type: ignore[union-attr]

    @property
    def rest(self) -> str:
        """What has not been read."""
        return self.text[self.at :]

    def fail(self, expected: str) -> FormatError:
        found = repr(self.rest[:24]) if self.rest.strip() else "the end of the line"
        return FormatError(f"expected {expected}, found {found}")

    def accept(self, literal: str) -> bool:
        """Read `literal` if it comes next."""
        self.skip()
        if not self.text.startswith(literal, self.at):
            return False
        self.at += len(literal)
        return True

    def expect(self, literal: str) -> None:
        if not self.accept(literal):
            raise self.fail(repr(literal))

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        self.skip()
        found = pattern.match(self.text, self.at)
        if found:
            self.at = found.end()
        return found

    def value(self) -> Any:
        """Any attribute value. A sum of products, where it is a size."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.fail(f"at most {DEEPEST} brackets within one another")
        first = self._product()
        summands: list[int | Dim] = []  # added up at once: that takes as long as adding the last
        while (plus := self.accept("+")) or self.accept("-"):
            size = self._size_of(self._product())
            summands.append(size if plus else -size)
        self.depth -= 1
        return added([self._size_of(first), *summands]) if summands else first

    def size(self) -> int | Dim:
        return self._size_of(self.value())

    def type(self) -> TensorType:
        value = self.value()
        if isinstance(value, tuple) and all(isinstance(t, TensorType) for t in value):
            return TupleType(value)
        if not isinstance(value, TensorType):
            raise FormatError(f"expected a type such as f32[N, 3], found {show(value)}")
        return value

    def _size_of(self, value: Any) -> int | Dim:
        if isinstance(value, bool) or not isinstance(value, int | Dim):
            raise FormatError(f"expected an integer or a symbolic size, found {show(value)}")
        return value

    def _product(self) -> Any:
        negative = self.accept("-")
        value = self._atom()
        if negative:
            value = -value if isinstance(value, float) else -self._size_of(value)
        factors = [value]  # multiplied at once
        try:
            while True:
                if self.accept("//"):
                    whole = product(map(self._size_of, factors))
                    factors = [whole // self._spent(self._size_of(self._atom()), whole)]
                elif self.accept("*"):
                    factors.append(self._size_of(self._atom()))
                elif len(factors) == 1:
                    return factors[0]
                else:
                    return product(map(self._size_of, factors))
        except (ZeroDivisionError, RetrogradError) as error:
            raise FormatError(f"expected a size: {error}") from error

    def _spent(self, size: int | Dim, *others: int | Dim) -> int | Dim:
        """A size that is divided by; how much work that makes is bounded for a text."""
        self.work += sum(len(s.terms) for s in (size, *others) if isinstance(s, Dim))
        if self.work > MOST_WORK:
            raise FormatError(f"sizes whose quotients have more than {MOST_WORK} terms in all")
        return size

    def _atom(self) -> Any:
        if found := self.match(_NUMBER):
            return float(found[0]) if found[1] or found[2] else int(found[0])
        if found := self.match(_STRING):
            return unquote(found[0])
        if self.accept("("):
            return self._parenthesis()
        if found := self.match(_GRAPH):
            if found[0] not in self.graphs:
                raise FormatError(f"expected the number of a graph above, found {found[0]}")
            return self.graphs[found[0]]
        if self.accept("`"):
            name = self.match(_WORD)
            self.expect("`")
            return self._named(name[0] if name else "")
        if found := self.match(_WORD):
            word = found[0]
            if word in BY_CODE:
                return self._typed(BY_CODE[word])
            return _WORDS[word] if word in _WORDS else self._named(word)
        raise self.fail("a value")

    def _named(self, name: str) -> Dim:
        if not name.isidentifier():
            raise FormatError(f"expected the name of a size, found {name!r}")
        return Dim(name)

    def _parenthesis(self) -> Any:
        """A tuple, or a value that stands alone between its parentheses."""
        items: list[Any] = []
        comma = True
        while not self.accept(")"):
            if not comma:
                raise self.fail("',' or ')'")
            items.append(self.value())
            comma = self.accept(",")
        return items[0] if len(items) == 1 and not comma else tuple(items)

    def _typed(self, dtype: DType) -> Any:
        """After a dtype: a shape makes it a type, elements make it an array."""
        shape: Shape | None = None
        if self.accept("["):
            sizes: list[int | Dim] = []
            while not self.accept("]"):
                if sizes:
                    self.expect(",")
                sizes.append(self.size())
            shape = tuple(sizes)
            if any(isinstance(d, int) and d < 0 for d in shape):
                raise FormatError(f"expected sizes that are not negative, found {list(shape)}")
        if self.accept("("):
            return self._array(dtype, shape or ())
        return dtype if shape is None else TensorType(dtype, shape)

    def _array(self, dtype: DType, shape: Shape) -> np.ndarray[Any, Any]:
        if any(isinstance(d, Dim) for d in shape):
            raise FormatError(f"expected an array of a definite shape, found {list(shape)}")
        count = math.prod(shape)
        if found := self.match(_STRING):
            try:
                data = base64.b64decode(found[0][1:-1], validate=True)
            except (binascii.Error, ValueError) as error:
                raise FormatError(f"expected base64: {error}") from error
            if len(data) != count * dtype.itemsize:
                wanted = f"{count * dtype.itemsize} bytes"
                raise FormatError(f"expected {wanted} of base64, found {len(data)}")
            array = _little(np.frombuffer(data, dtype.dtype))
        else:
            inner = self.match(_ELEMENTS)
            items = inner[0].split(",") if inner and inner[0].strip() else []
            if len(items) != count:
                raise FormatError(f"expected {count} elements, found {len(items)}")
            array = np.array([_element(item.strip(), dtype) for item in items], dtype.dtype)
        self.expect(")")
        try:
            return array.reshape(shape)
        except ValueError as error:  # more axes than there may be, or 0 elements along a huge one
            raise FormatError(f"expected the shape of an array: {error}") from error


def _element(text: str, dtype: DType) -> Any:
    """One element of an array: a decimal number, `true`, `false`, or hexadecimal bits; of a
    complex one both parts, the second followed by j."""
    if dtype.is_complex and text.endswith("j") and text.count(" ") == 1:
        parts = [_element(part, dtype.real) for part in text[:-1].split(" ")]
        return np.array(parts, dtype.real.dtype).view(dtype.dtype)[0]
    digits = 2 * dtype.itemsize
    if dtype.is_float and re.fullmatch(f"0x[0-9a-f]{{{digits}}}", text):
        data = bytes.fromhex(text[2:])[:: -1 if sys.byteorder == "little" else 1]
        return np.frombuffer(data, dtype.dtype)[0]
    if dtype.is_float and _DECIMAL.fullmatch(text):
        with np.errstate(over="ignore"):
            return dtype.dtype.type(float(text))
    if dtype.is_integer and _INTEGER.fullmatch(text):
        info = np.iinfo(dtype.dtype)
        if info.min <= int(text) <= info.max:
            return int(text)
    if dtype.kind == "bool" and text in ("true", "false"):
        return text == "true"
    raise FormatError(f"expected an element of {dtype.name}, found {text!r}")
