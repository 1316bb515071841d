"""What makes two calls of a compiled function alike: the parts of a signature."""

from __future__ import annotations

import functools
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from retrograd import pytree
from retrograd.eager.conversion import as_array
from retrograd.eager.fast_path import FUNCTIONS
from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.errors import ArgumentError, DTypeError, FormatError, ShapeError
from retrograd.ir import Dim, TensorType, solve
from retrograd.ir.literal import LiteralReader

# What is part of the signature without being asked to. Functions are compared by identity.
CONSTANT = (
    bool,
    str,
    bytes,
    *FUNCTIONS,
    types.BuiltinFunctionType,
    types.MethodType,
    type,
    functools.partial,
    np.ufunc,
)


def by_identity(cls: Any) -> bool:
    """Whether instances of a class are equal only to themselves, whatever they hold."""
    return cls.__hash__ is object.__hash__


def is_large(x: Any) -> bool:
    """Whether it is an int beyond 64 bits with a sign. What it meets may hold it, as uint64 does:
    it is part of the signature."""
    return isinstance(x, int) and not -(2**63) <= x < 2**63


def refuse_large(leaves: Sequence[Any]) -> None:
    """Say that such an int does not fit, where nothing has another dtype that might hold it."""
    large = [x for x in leaves if is_large(x)]
    if large and not any(isinstance(x, LazyTensor | np.ndarray | np.generic) for x in leaves):
        as_array(large[0])


@dataclass(frozen=True)
class WeakArray:
    """The key of an array that Python numbers alone have made; that of a number, or of a scalar
    which is like one, is the name of its dtype."""

    wide: TensorType

    def __str__(self) -> str:
        return f"{self.wide} of Python numbers"


class StaticLeaf:
    """A leaf that is part of the signature: a new value is a new trace."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, StaticLeaf)
            and type(self.value) is type(other.value)
            and bool(self.value == other.value)
        )

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


Spec = Any  # a tuple of sizes (None: as given), a `TensorType`, or a dict or list of these


def parse_spec(given: Any) -> Spec:
    """What is declared of an argument: `"N 784"` is `(Dim("N"), 784)`, in which a size may be an
    expression such as `2*N` and `_` stands for the size the array has; `rg.spec(...)` is itself;
    dicts and lists hold this for the parts of an argument."""
    if isinstance(given, TensorType):
        return given
    if isinstance(given, Mapping):
        return {key: parse_spec(value) for key, value in given.items()}
    words = given.replace(",", " ").split() if isinstance(given, str) else given
    if not isinstance(words, list | tuple):
        raise ShapeError(f'jit: sizes are declared as in "N 784", not as {given!r}')
    if all(isinstance(w, int | Dim) or w is None or _is_word(w) for w in words):
        return tuple(_size(word) for word in words)
    return [parse_spec(w) for w in words]


def _is_word(word: Any) -> bool:
    return isinstance(word, str) and len(word.replace(",", " ").split()) == 1


def _size(word: Any) -> int | Dim | None:
    if not isinstance(word, str):
        return word
    if word == "_":
        return None
    reader = LiteralReader(word)
    try:
        size = reader.size()
        if reader.rest.strip():
            raise reader.fail("the end")
        if isinstance(size, int) and size < 0:
            raise FormatError(f"{size} is negative")
    except FormatError as error:
        raise ShapeError(
            f"jit: {word!r} is no size; sizes are numbers, names, and sums and products of these "
            f"without spaces, such as 2*N+1: {error}"
        ) from None
    return size


def sizes_in(spec: Spec) -> list[int | Dim]:
    """All sizes that a declaration names."""
    if isinstance(spec, Mapping):
        return [d for part in spec.values() for d in sizes_in(part)]
    if isinstance(spec, list):
        return [d for part in spec for d in sizes_in(part)]
    shape = spec.shape if isinstance(spec, TensorType) else spec
    return [d for d in shape if d is not None]


def need_names(specs: Sequence[Spec]) -> None:
    """The value of each name has to follow from the sizes of arrays."""
    sizes = sorted({d for spec in specs for d in sizes_in(spec) if isinstance(d, Dim)}, key=str)
    names = sorted({name for d in sizes for name in d.names})
    values = {name: 1009 + 7919 * i for i, name in enumerate(names)}  # of no special kind
    known = solve((d, d.evaluate(values)) for d in sizes)
    for d in sizes:
        for name in sorted(d.names - known.keys()):
            raise ShapeError(
                f"jit: the size {name} is declared only within {d}, from which its value does not "
                f"follow; declare an axis of the size {name} by itself, or give {d} a name of its "
                "own"
            )


def specs_of(spec: Spec, arg: Any, label: str) -> list[Any]:
    """For each leaf of an argument what is declared of it, None where nothing is."""
    if not isinstance(spec, Mapping | list):
        return [spec] * len(pytree.flatten(arg)[0])
    entries, children = pytree.children(arg)
    parts = spec if isinstance(spec, Mapping) else dict(enumerate(spec))
    for key in parts:
        if key not in entries:
            raise ShapeError(f"jit: sizes are declared for {label}[{key!r}], which is not there")
    found: list[Any] = []
    for key, child in zip(entries, children, strict=True):
        if key in parts:
            found += specs_of(parts[key], child, f"{label}[{key!r}]")
        else:
            found += [None] * len(pytree.flatten(child)[0])
    return found


def symbolic(given: TensorType, spec: Any, label: str) -> TensorType:
    """The type of an argument in which the declared sizes stand for those it has."""
    shape = spec
    if isinstance(spec, TensorType):
        shape = spec.shape
        if spec.dtype is not given.dtype:
            raise DTypeError(f"jit: {label} is declared as {spec}, but is {given}")
    if len(shape) != given.rank:
        raise ShapeError(f"jit: {label} is declared with {len(shape)} axes, but is {given}")
    sizes = tuple(n if d is None else d for d, n in zip(shape, given.shape, strict=True))
    for axis, (d, n) in enumerate(zip(sizes, given.shape, strict=True)):
        if not isinstance(d, Dim) and d != n:
            declared = " ".join("_" if d is None else str(d) for d in shape)
            raise ShapeError(
                f"jit: axis {axis} of {label} is declared to have the size {d}, but has {n}: it is "
                f'declared as "{declared}", and given as {given}'
            )
    return given.with_shape(sizes)


def undeclared(
    names: Sequence[str], keys: Sequence[Any], declared: Sequence[bool], sizes: Sequence[Any]
) -> str:
    """What to add to an error of sizes where some arguments have declared names: which others have
    an axis of the same size without a name; nothing if none has. `sizes` are the shapes, or None,
    of the leaves `keys`."""
    known = {
        n: d
        for key, told, shape in zip(keys, declared, sizes, strict=True)
        for d, n in (zip(key.shape, shape, strict=True) if told and shape is not None else ())
        if isinstance(d, Dim)
    }
    found = [
        f"axis {axis} of {name} has the size {n} of {known[n]} and no name"
        for name, told, shape in zip(names, declared, sizes, strict=True)
        for axis, n in (enumerate(shape) if not told and shape is not None else ())
        if n in known
    ]
    if not found:
        return ""
    return f"jit: {'; '.join(found)}. If it is the same size, declare it in shapes=, too"


def listed(given: str | int | Sequence[Any], what: str) -> list[Any]:
    """The parameters that an option of `jit` names, by name or position."""
    found = [given] if isinstance(given, str | int) else given
    if not isinstance(found, list | tuple | set | frozenset | range) or not all(
        isinstance(x, str | int) and not isinstance(x, bool) for x in found
    ):
        raise ArgumentError(
            f"jit: {what} lists parameters by name or position: (0, 'lr'), not {given!r:.60}"
        )
    return list(found)
