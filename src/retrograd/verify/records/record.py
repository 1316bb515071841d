"""What the generic tests need to know of an op: one record."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from operator import index
from typing import Any

import numpy as np

from retrograd.errors import RetrogradError
from retrograd.ir import DTYPES, DType, Node, Op, TensorType, as_dtype
from retrograd.ops.leaf import input_node

Array = np.ndarray[Any, Any]
Rng = np.random.Generator
Draw = Callable[[Rng, tuple[int, ...]], Sequence[Array]]  # the inputs of an elementwise op

SHAPES: tuple[tuple[int, ...], ...] = ((), (0,), (1,), (7,), (2, 3), (3, 0, 2), (2, 1, 3, 2))
FLOATS = tuple(d for d in DTYPES if d.is_float)
INEXACT = tuple(d for d in DTYPES if d.is_inexact)
INTEGERS = tuple(d for d in DTYPES if d.is_integer)
BOOLS = tuple(d for d in DTYPES if d.kind == "bool")


@dataclasses.dataclass(frozen=True)
class Sample:
    """One use of an op. Derivatives may be tested at float64 and complex128 samples that are
    `smooth`."""

    op: Op
    inputs: tuple[Array, ...]
    smooth: bool = False

    def nodes(self) -> list[Node]:
        """Graph inputs of the types of the inputs."""
        return [input_node(type_of(x)) for x in self.inputs]

    @property
    def type(self) -> TensorType:
        """The type of the result."""
        return self.op(*self.nodes()).type

    def __str__(self) -> str:
        return f"{self.op}({', '.join(str(type_of(x)) for x in self.inputs)})"


@dataclasses.dataclass(frozen=True)
class Failure:
    """Input types that the op must refuse, and how."""

    op: Op
    types: tuple[TensorType, ...]
    error: type[RetrogradError]


@dataclasses.dataclass(frozen=True)
class Symbolic:
    """The op on types with named sizes, and values of these to try."""

    op: Op
    types: tuple[TensorType, ...]
    sizes: tuple[dict[str, int], ...]
    low: float = 0.5  # inputs are drawn between; integers below `below`
    high: float = 1.5
    below: int = 1
    make: Callable[[TensorType], Array] | None = None  # instead of drawing
    whole: Callable[[TensorType], Array] | None = None  # instead of drawing integers

    def draw(self, type: TensorType) -> Array:
        """An input of a type without symbolic sizes."""
        if self.make is not None and type.dtype.is_float:
            return self.make(type)
        if self.whole is not None and type.dtype.is_integer:
            return self.whole(type)
        shape = tuple(map(index, type.shape))
        rng = np.random.default_rng(len(shape))
        if type.dtype.kind == "bool":
            return np.asarray(rng.random(shape) < 0.5)
        if type.dtype.is_integer:
            return np.asarray(rng.integers(0, self.below, shape)).astype(type.dtype.dtype)
        x = np.asarray(rng.uniform(self.low, self.high, shape))
        if type.dtype.is_complex:
            x = x + 1j * rng.uniform(self.low, self.high, shape)
        return x.astype(type.dtype.dtype)


@dataclasses.dataclass(frozen=True)
class Record:
    """One op: sample uses, an independent meaning, what it refuses, where it is differentiable."""

    name: str
    samples: Callable[[], Iterator[Sample]]
    # independent(op, *arrays) computes the result, to compare with op.reference(*arrays).
    independent: Callable[..., Any] | None
    wrt: tuple[int, ...] = ()  # inputs that floating samples are differentiable in
    # Inputs with a derivative that is NaN, or has none itself: not compared with differences.
    unchecked: tuple[int, ...] = ()
    order: int = 2  # order to which derivatives are compared with finite differences
    # Error of the reference in units of the dtype's epsilon: relative, and absolute.
    ulps: float = 8
    absolute: float = 0
    failures: tuple[Failure, ...] = ()
    symbolic: tuple[Symbolic, ...] = ()
    # Why derivatives at zeros and ties are not compared with difference quotients.
    edges: str = ""
    # vary(x, k) makes sample k of a batch, where rolling the elements would leave the domain.
    vary: Callable[[Array, int], Array] | None = None

    def wrt_of(self, sample: Sample) -> list[int]:
        """The inputs of a sample that it is differentiable in."""
        floats = [i for i, x in enumerate(sample.inputs) if type_of(x).dtype.is_inexact]
        return [i for i in floats if i in self.wrt]

    def smooth_samples(self) -> list[Sample]:
        return [s for s in self.samples() if s.smooth]


def type_of(x: Any) -> TensorType:
    return TensorType(as_dtype(x.dtype), x.shape)


def rng_for(name: str) -> Rng:
    """The same numbers in every run, different ones for every op."""
    return np.random.default_rng(list(name.encode()))


def integers(rng: Rng, shape: tuple[int, ...], dtype: DType) -> Array:
    """Integers over the whole range, small ones and the ends more often."""
    ends = np.iinfo(dtype.dtype)
    wide = rng.integers(ends.min, ends.max, shape, dtype.dtype, endpoint=True)
    small = rng.integers(max(-3, ends.min), 4, shape, np.int64).astype(dtype.dtype)
    extreme = rng.choice(np.array([ends.min, ends.max], dtype.dtype), shape)
    chosen = np.select([rng.random(shape) < 0.5, rng.random(shape) < 0.5], [small, wide], extreme)
    return np.asarray(chosen, dtype.dtype)


def draw(rng: Rng, shape: tuple[int, ...], dtype: DType) -> Array:
    """Numbers of a dtype, with repeated values, away from overflow in every float dtype."""
    if dtype.kind == "bool":
        return np.asarray(rng.random(shape) < 0.5)
    if dtype.is_integer:
        return integers(rng, shape, dtype)
    if dtype.is_complex:
        parts = draw(rng, (*shape, 2), dtype.real)
        return np.asarray(parts[..., 0] + 1j * parts[..., 1], dtype.dtype)
    return np.asarray(np.round(rng.uniform(-3, 3, shape), 1)).astype(dtype.dtype)
