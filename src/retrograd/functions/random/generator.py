"""Random numbers: explicit, reproducible, the same bits on every backend and thread count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from retrograd import pytree, tree_plan
from retrograd.eager.conversion import integer_range
from retrograd.eager.dispatch import ArrayLike, op_function
from retrograd.eager.lazy_tensor import leaf
from retrograd.eager.modes import current_trace
from retrograd.errors import DTypeError, FormatError, OptionError, ShapeError, TraceError
from retrograd.functions.broadcasting import as_node, broadcast_to, integer, number
from retrograd.functions.creation import asarray
from retrograd.functions.indexing import take
from retrograd.functions.manipulation import broadcast_to as stretched
from retrograd.functions.manipulation import moveaxis
from retrograd.functions.random import continuous
from retrograd.functions.random.methods import Distributions
from retrograd.functions.reductions import argmax
from retrograd.functions.sorting import argsort
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import (
    Dim,
    Node,
    TensorType,
    as_dtype,
    as_shape,
    float32,
    float64,
    full,
    int64,
    uint64,
)
from retrograd.ir.dtype import DEFAULT
from retrograd.lazy_import import attach
from retrograd.ops import elementwise as el
from retrograd.ops.random.threefry import RandomBits
from retrograd.ops.shape import reshape, slice_axis

_FRESH = RandomBits((2,))

__all__ = ["Generator"]

if not TYPE_CHECKING:  # a type checker knows all names there are
    __getattr__ = attach(__name__)


class Generator(Distributions):
    """A stream of random numbers, given by a seed.

    Every call draws the next numbers of the stream. The bits come from Threefry-2x32 counters, and
    floating numbers are made of them with correctly rounded operations only, so a seed gives the
    same numbers everywhere. A generator is a pytree: pass it to a `jit` function as an argument
    and return it to carry its state on. One that is made inside of such a function draws the same
    numbers in every call, as its seed says.

    >>> import retrograd as rg
    >>> a = rg.random.Generator(7).uniform((3,))
    >>> b = rg.random.Generator(7).uniform((3,))
    >>> bool((a == b).all())
    True
    """

    def __init__(self, seed: int) -> None:
        try:
            valid = hasattr(seed, "__index__") and not isinstance(seed, bool) and int(seed) >= 0
        except TraceError:
            raise TraceError(
                "a seed is a number, which this one is not while the function is traced; make the "
                "generator outside and pass it, or a stack of them to vmap: Generator(0).split(n)"
            ) from None
        if not valid:
            kind = OptionError if isinstance(seed, int) else DTypeError
            raise kind(f"a seed is a non-negative integer, not {seed!r}")
        mixed = np.random.SeedSequence(int(seed)).generate_state(2, np.uint32)
        self._key: Any = Tensor.of(mixed)
        self._count: Any = Tensor.of(np.zeros((), np.uint32))
        self._trace = current_trace()  # in which it may draw though it has a definite state

    def state_dict(self) -> dict[str, Any]:
        """What `load_state_dict` needs to continue the stream: key and position.

        Two arrays of uint32, of the shapes `[2]` and `[]`.

        >>> import retrograd as rg
        >>> sorted(rg.random.Generator(0).state_dict())
        ['count', 'key']
        """
        return {"key": self._key.numpy().copy(), "count": self._count.numpy().copy()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue where the generator whose `state_dict()` this is stood.

        `FormatError` where a key or a count is missing, `ShapeError` for arrays of other shapes.

        >>> import retrograd as rg
        >>> a, b = rg.random.Generator(0), rg.random.Generator(1)
        >>> b.load_state_dict(a.state_dict())
        >>> bool(a.uniform() == b.uniform())
        True
        """
        if not {"key", "count"} <= set(state):
            raise FormatError(f"the state of a generator has a key and a count, not {list(state)}")
        key, count = (np.array(state[k], np.uint32) for k in ("key", "count"))
        if key.shape != (2,) or count.shape != ():
            raise ShapeError("the state of a generator is a key of two uint32 and a count")
        self._key, self._count = Tensor.of(key), Tensor.of(count)

    def _next(self) -> Node:
        """A fresh key: two words of the stream keyed by this generator's key and the number of
        the draw. The same whether it is computed here or in a program."""
        if self._count.shape:
            raise ShapeError(
                f"a stack of {self._count.shape[0]} random generators draws nothing itself: give "
                "each sample its own by vmap, or take one, stack[i]"
            )
        if self._key.is_computed and self._count.is_computed:
            if current_trace() not in (None, self._trace):
                raise TraceError(
                    "a random generator is used inside jit, or inside a loop, but was made "
                    "outside, so every call or step would draw the same numbers; pass it as an "
                    "argument and return it, or carry it along"
                )
            k, n = self._key.value(), self._count.value()
            with np.errstate(over="ignore"):
                self._count = Tensor.of(np.asarray(n + np.uint32(1)))
            return leaf(_FRESH.reference(k ^ n))
        k, n = self._key.node, self._count.node
        self._count = Tensor(n + full(1, n.type))
        return _FRESH(el.bitwise_xor(k, broadcast_to(reshape(n, (1,)), (2,))))

    def split(self, n: int | None = None) -> Generator:
        """A generator of its own, independent of what this one draws afterwards.

        With `n`, a stack of that many, of which `vmap` gives each sample one. It has no numbers
        itself; `stack[i]` is the i-th of them.

        `ShapeError` for a negative n.

        Every number of a stack has the shape that it would have of one generator.

        >>> import retrograd as rg
        >>> stack = rg.random.Generator(0).split(4)
        >>> every = rg.vmap(lambda g: g.uniform())(stack)
        >>> bool(every[2] == stack[2].uniform())
        True
        """
        if n is None:
            return Generator._restored(Tensor(self._next()), Tensor.of(np.zeros((), np.uint32)))
        count = integer(n, "split: a count")
        if count < 1:
            raise ShapeError(f"a generator is split into 1 or more, not {n}")
        keys = _bits(Tensor(self._next()), (count, 2))
        return Generator._restored(keys, Tensor.of(np.zeros(count, np.uint32)))

    def __getitem__(self, i: int) -> Generator:
        """One generator of a stack that `split` made."""
        if not self._count.shape:
            raise ShapeError("this is one random generator, not a stack of them (see split)")
        return Generator._restored(self._key[i], self._count[i])

    def jump(self) -> None:
        """Move on to another stream, which is given by the state of this one and independent of
        it: what follows differs although nothing was drawn.

        No numbers are drawn.

        >>> import retrograd as rg
        >>> a, b = rg.random.Generator(0), rg.random.Generator(0)
        >>> b.jump()
        >>> bool(a.uniform() == b.uniform())
        False
        """
        away = Generator._restored(self._key, self._count ^ 0xFFFFFFFF)
        away._trace = self._trace
        moved = away.split()
        self._key, self._count = moved._key, moved._count

    @staticmethod
    def _restored(key: Any, count: Any) -> Generator:
        new = object.__new__(Generator)
        new._key, new._count, new._trace = key, count, None
        return new

    def bits(self, shape: Any = ()) -> Tensor:
        """Uniform random uint32.

        The result is of the given shape. `ShapeError` for a negative size.

        >>> import retrograd as rg
        >>> rg.random.Generator(0).bits((2, 3)).dtype
        uint32
        """
        return _bits(Tensor(self._next()), as_shape(shape))

    def uniform(
        self, shape: Any = (), low: ArrayLike = 0.0, high: ArrayLike = 1.0, *, dtype: Any = None
    ) -> Tensor:
        """Uniform numbers in `[low, high)`, which have gradients in both.

        The result is of the given shape and dtype; limits that are arrays broadcast with it and
        promote it. `DTypeError` for a dtype that is not floating and for complex limits,
        `ShapeError` for a negative size and for limits that do not broadcast.

        >>> import retrograd as rg
        >>> bool((rg.random.Generator(0).uniform((9,), 2.0, 3.0) >= 2).all())
        True
        """
        u = _uniform(Tensor(self._next()), as_shape(shape), _floating(dtype))
        if _are(low, 0, high, 1):
            return u
        low, high = _parameter(low), _parameter(high)
        return u * (high - low) + low

    def normal(
        self, shape: Any = (), mean: ArrayLike = 0.0, std: ArrayLike = 1.0, *, dtype: Any = None
    ) -> Tensor:
        """Normal numbers, by inversion of the distribution function (Wichura, Algorithm AS 241).

        The result is of the given shape and dtype; a mean and a deviation that are arrays broadcast
        with it and promote it. `DTypeError` for a dtype that is not floating and for complex
        parameters, `ShapeError` for a negative size and for parameters that do not broadcast.

        >>> import retrograd as rg
        >>> rg.random.Generator(0).normal((2, 3)).shape
        (2, 3)
        """
        z = _normal(Tensor(self._next()), as_shape(shape), _floating(dtype))
        return z if _are(mean, 0, std, 1) else z * _parameter(std) + _parameter(mean)

    def randint(self, low: int, high: int | Dim, shape: Any = (), *, dtype: Any = int64) -> Tensor:
        """Integers from `low` to `high - 1`, all equally likely (to within 2**-32 of each other's
        probability).

        The result is of the given shape. `DTypeError` for a dtype that is no integer, `ShapeError`
        for limits that do not ascend within it.

        >>> import retrograd as rg
        >>> bool((rg.random.Generator(0).randint(0, 6, (9,)) < 6).all())
        True
        """
        kind = as_dtype(dtype)
        if not kind.is_integer:
            raise DTypeError(f"randint draws integers, not {kind}")
        low = integer(low, "randint: a bound")
        if isinstance(high, Dim):
            return Tensor(el.cast(_below(self._next(), high - low, as_shape(shape)) + low, kind))
        high = integer(high, "randint: a bound")
        first, last = integer_range(kind)
        if not (first <= low < high <= last + 1):
            raise ShapeError(
                f"randint from {low} to {high} in {kind}: the range is empty or too wide"
            )
        keys = [Tensor(self._next()) for _ in range(2 if high - low > 2**32 else 1)]
        return _integers(keys, low, high, as_shape(shape), kind)

    def bernoulli(self, p: ArrayLike = 0.5, shape: Any = None) -> Tensor:
        """True with probability p, which broadcasts to the shape.

        By default the shape is that of p; the result is boolean. `ShapeError` where p does not
        broadcast, `OptionError` for a number that is no probability.

        >>> import retrograd as rg
        >>> rg.random.Generator(0).bernoulli([0.0, 1.0]).tolist()
        [False, True]
        """
        if isinstance(p, int | float) and not 0 <= p <= 1:
            raise OptionError(f"bernoulli: a probability is from 0 to 1, not {p}")
        return _bernoulli(Tensor(self._next()), p, shape)

    def categorical(self, logits: ArrayLike, *, axis: int = -1, shape: Any = None) -> Tensor:
        """Indices drawn with probabilities `softmax(logits)` along an axis, by the Gumbel trick.

        By default the shape is that of the logits without the axis, which otherwise broadcasts to
        the shape: `shape=(1000,)` draws so often from one distribution. `AxisError` for an axis
        that the logits do not have, `ShapeError` where they do not broadcast.

        >>> import retrograd as rg
        >>> rg.random.Generator(0).categorical([-99.0, 0.0]).item()
        1
        """
        if shape is not None:
            last = moveaxis(logits, axis, -1)
            logits, axis = stretched(last, (*as_shape(shape), last.shape[-1])), -1
        return _categorical(Tensor(self._next()), logits, axis)

    def permutation(self, x: int | Dim | ArrayLike) -> Tensor:
        """The numbers below x in random order; or an array with its first axis shuffled.

        The shape is `[n]`, or that of the array. `ShapeError` for a negative number.

        >>> import retrograd as rg
        >>> sorted(rg.random.Generator(0).permutation(4).tolist())
        [0, 1, 2, 3]
        """
        given = x if isinstance(x, Dim) else asarray(x)
        if isinstance(given, Dim):
            return _order(Tensor(self._next()), given)
        if given.ndim:
            return take(given, _order(Tensor(self._next()), given.shape[0]), axis=0)
        count = integer(given.item(), "permutation: a count")
        if count < 0:
            raise ShapeError(f"permutation of {count} elements")
        return _order(Tensor(self._next()), count)


tree_plan.OBJECTS[Generator] = tree_plan.Attributes(("_key", "_count"), {"_trace": None})
pytree.register(
    Generator,
    lambda g: ((g._key, g._count), None, ("_key", "_count")),
    lambda _, children: Generator._restored(*children),
    holds_state=True,
)


def _floating(dtype: Any) -> Any:
    kind = DEFAULT.real if dtype is None else as_dtype(dtype)
    if not kind.is_float:
        raise DTypeError(f"floating random numbers cannot be {kind}")
    return kind


def _are(a: Any, at: float, b: Any, by: float) -> bool:
    """Whether two parameters are these numbers; tensors and arrays are not, whatever they hold."""
    return isinstance(a, int | float) and isinstance(b, int | float) and (a, b) == (at, by)


def _parameter(x: Any) -> Any:
    """A limit, mean or deviation: a Python number as it is, anything else as a tensor."""
    if isinstance(x, int | float):
        return x
    made = asarray(x)
    if made.dtype.is_complex:
        raise DTypeError("the limits, mean and deviation of real random numbers are real numbers")
    return made


def _below(key: Node, n: int | Dim, shape: Any) -> Node:
    """Integers below n, which is at most 2**32, in 64 bits."""
    bits = el.cast(RandomBits(shape)(key), uint64)
    return el.shift_right(bits * number(n, uint64, shape), full(32, bits.type))


def _unit(key: Node, shape: Any, kind: Any) -> Node:
    """Uniform on the multiples of 2**-24, or of 2**-53 for float64, in [0, 1)."""
    if kind is not float64:
        bits = RandomBits(shape)(key)
        return el.cast(el.shift_right(bits, full(8, bits.type)), float32) * 2.0**-24
    bits = RandomBits((2, *shape))(key)
    high, low = (reshape(slice_axis(bits, 0, i, i + 1), shape) for i in (0, 1))
    high = el.cast(el.shift_right(high, full(5, high.type)), float64)
    low = el.cast(el.shift_right(low, full(6, low.type)), float64)
    return (high * 2.0**26 + low) * 2.0**-53


@op_function
def _integers(keys: Sequence[ArrayLike], low: int, high: int, size: Any, kind: Any) -> Any:
    """Integers from low to high - 1; of two keys where that are more than 2**32."""
    wide = TensorType(uint64, size)
    if len(keys) == 2:
        a, b = (el.cast(RandomBits(size)(key), uint64) for key in keys)
        found = el.bitwise_or(el.shift_left(a, full(32, wide)), b)
        if high - low < 2**64:
            found = el.mod(found, full(high - low, wide))
    else:
        found = _below(as_node(keys[0]), high - low, size)
    offset = full(low, TensorType(int64, size)) if low < 2**63 else full(low, wide)
    return el.cast(el.cast(found, offset.dtype) + offset, kind)


@op_function
def _order(key: ArrayLike, n: int | Dim) -> Any:
    """The numbers below n, sorted by random words of 64 bits."""
    bits = el.cast(RandomBits((n, 2))(key), uint64)
    low, high = (reshape(slice_axis(bits, 1, i, i + 1), (n,)) for i in (0, 1))
    return argsort(el.bitwise_or(low, el.shift_left(high, full(32, high.type))))


@op_function
def _bits(key: ArrayLike, shape: Any) -> Any:
    return RandomBits(shape)(key)


@op_function
def _uniform(key: ArrayLike, shape: Any, kind: Any) -> Any:
    return el.cast(_unit(key, shape, kind), kind)


@op_function
def _normal(key: ArrayLike, shape: Any, kind: Any) -> Any:
    return continuous.normal(key, shape, kind)


@op_function
def _bernoulli(key: ArrayLike, p: ArrayLike, shape: Any) -> Any:
    p = as_node(p)
    p = p if p.dtype.is_float else el.cast(p, float32)
    size = p.shape if shape is None else as_shape(shape)
    return el.lt(_unit(key, size, float32), el.cast(broadcast_to(p, size), float32))


@op_function
def _categorical(key: ArrayLike, logits: ArrayLike, axis: int) -> Any:
    logits = as_node(logits)
    u = _unit(key, logits.shape, logits.dtype) + 2.0**-25
    gumbel = -el.log(-el.log(u))
    return argmax(logits + el.cast(gumbel, logits.dtype), axis=axis)
