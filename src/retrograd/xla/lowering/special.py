"""Special functions: by the formulas that compiled programs have (`codegen/math/`), written with
JAX's operations in the place of registers; those that have none by their meaning on the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from retrograd.codegen.emit.elementwise import ELEMENTWISE as WRITERS
from retrograd.ir import DType, Node, float32
from retrograd.ops.control.pure_callback import PureCallback
from retrograd.ops.elementwise import ELEMENTWISE
from retrograd.ops.special.scipy_functions import FROM_SCIPY
from retrograd.xla.lowering.host_call import host_call
from retrograd.xla.lowering.rules import RULES, JaxTrace, lowers


class ArrayWriter:
    """What formulas ask of the function that they write to: loops and branches."""

    brief = False

    def __init__(self, t: JaxTrace) -> None:
        self.t = t

    def repeat(self, times: Any, carried: Sequence[tuple[Any, Any]], step: Any) -> list[Any]:
        """`state = step(state)` so many times; `carried` holds types, which arrays know, and the
        first state."""
        start = tuple(x for _, x in carried)
        like = [x.shape for x in start]
        widest = max(like, key=len)
        start = tuple(_wide(self.t, x, widest) for x in start)

        def body(_: Any, state: Any) -> Any:
            return tuple(_wide(self.t, x, widest) for x in step(list(state)))

        if getattr(times, "ndim", 0):  # a count for each element: the most, as steps are masked
            raise NotImplementedError("a loop of as many steps as an array says")
        return list(self.t.lax.fori_loop(0, times, body, start))

    def either_of(
        self, condition: Any, type: Any, yes: Callable[[], Any], no: Callable[[], Any]
    ) -> list[Any]:
        """What one of two writes."""
        return list(self.t.lax.cond(condition, lambda: tuple(yes()), lambda: tuple(no())))


def _wide(t: JaxTrace, x: Any, shape: Sequence[int]) -> Any:
    return x if x.shape == tuple(shape) else t.jnp.broadcast_to(x, shape)


class ArrayBuilder:
    """Where a formula is written, as `codegen/op_builder.py` has it, on arrays that JAX traces.

    Products are rounded before they are added to anything, unless by `fma`. JAX has no fused
    multiplication and addition, so that of float32 is computed in double precision, and that of
    double precision by the parts of the product (Dekker).
    """

    lanes = 1

    def __init__(self, t: JaxTrace, dtype: DType, shape: tuple[int, ...]) -> None:
        self.t = t
        self.w = ArrayWriter(t)
        self.dtype = dtype
        self.shape = shape
        self.float = dtype.is_float
        self.signed = dtype.kind == "int"
        self.type = self.scalar = dtype.name

    def with_dtype(self, dtype: DType, lanes: int | None = None) -> ArrayBuilder:
        return ArrayBuilder(self.t, dtype, () if lanes == 1 else self.shape)

    def number(self, value: float) -> Any:
        return self.t.lax.full(self.shape, value, self.dtype.dtype)

    def instruction(self, op: str, *args: Any) -> Any:
        return _INSTRUCTIONS[op](self.t, *self._same(args))

    def call(self, name: str, *args: Any, extra: str = "") -> Any:
        return _INTRINSICS[name](self.t, *self._same(args))

    def _same(self, args: Sequence[Any]) -> list[Any]:
        widest = max((a.shape for a in args), key=len)
        return [_wide(self.t, a, widest) for a in args]

    def cast(self, how: str, x: Any, dtype: DType) -> Any:
        lax = self.t.lax
        if how == "bitcast":
            return lax.bitcast_convert_type(x, dtype.dtype)
        return lax.convert_element_type(x, dtype.dtype)

    def anywhere(self, c: Any) -> Any:
        return self.t.jnp.any(c)

    def polynomial(self, x: Any, coefficients: Sequence[float]) -> Any:
        """By Horner's rule; a last bit here and there is not what these are about."""
        y = self.number(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            y = y * x + self.number(c)
        return y

    def integrals(self, rule: Any, half: Any, zero: Any, point: Any) -> None:
        """None: places one after the other."""

    def lane_by_lane(self, scalar: Any, each: Any, args: Sequence[Any]) -> Any:
        return scalar(self, *args)

    def function(self, name: str, body: Any, args: Sequence[Any]) -> Any:
        own = _OWN.get(name)
        return body(self, *args) if own is None else own(self.t, *self._same(args))

    def of_doubles(self, name: str, texts: Sequence[str], x: Any) -> Any:
        """What is left of a large argument; the texts are LLVM's."""
        return _FAR[name](self.t, x)

    def lesser(self, x: Any, bound: Any) -> Any:
        return self.select(self.compare("olt", "lt", bound, x), bound, x)

    def greater(self, x: Any, bound: Any) -> Any:
        return self.select(self.compare("ogt", "gt", bound, x), bound, x)

    def compare(self, floats: str, integers: str, a: Any, b: Any) -> Any:
        a, b = self._same((a, b))
        return _COMPARISONS[floats if self.float else integers](a, b)

    def logic(self, op: str, a: Any, b: Any) -> Any:
        return self.instruction(op, a, b)

    def select(self, c: Any, a: Any, b: Any) -> Any:
        return self.t.lax.select(*self._same((c, a, b)))


def _fma(t: JaxTrace, a: Any, b: Any, c: Any) -> Any:
    """`a b + c`, rounded once, or nearly."""
    lax = t.lax
    if a.dtype == np.float32:
        a, b, c = (lax.convert_element_type(x, np.float64) for x in (a, b, c))
        return lax.convert_element_type(t.rounded(a * b) + c, np.float32)
    product = t.rounded(a * b)
    (x, y), (u, v) = _halves(t, a), _halves(t, b)
    r = t.rounded
    rest = ((r(x * u) - product) + r(x * v) + r(y * u)) + r(y * v)
    total = product + c
    moved = total - product
    lost = (product - (total - moved)) + (c - moved)
    more = rest + lost
    return lax.select(lax.is_finite(more), total + more, total)


def _halves(t: JaxTrace, a: Any) -> tuple[Any, Any]:
    """Two numbers of half as many digits, of which a is the sum."""
    wide = t.rounded(a * 134217729.0)  # 2^27 + 1
    high = wide - (wide - a)
    return high, a - high


def _copysign(t: JaxTrace, x: Any, y: Any) -> Any:
    return t.jnp.copysign(x, y)


def _shift(name: str) -> Callable[..., Any]:
    return lambda t, a, b: getattr(t.lax, name)(a, b)


_INSTRUCTIONS: dict[str, Callable[..., Any]] = {
    "fadd": lambda t, a, b: a + b,
    "fsub": lambda t, a, b: a - b,
    "fmul": lambda t, a, b: t.rounded(a * b),
    "fdiv": lambda t, a, b: t.lax.div(a, b),
    "fneg": lambda t, a: -a,
    "add": lambda t, a, b: a + b,
    "sub": lambda t, a, b: a - b,
    "mul": lambda t, a, b: a * b,
    "sdiv": lambda t, a, b: t.lax.div(a, b),
    "and": lambda t, a, b: a & b,
    "or": lambda t, a, b: a | b,
    "xor": lambda t, a, b: a ^ b,
    "shl": _shift("shift_left"),
    "ashr": _shift("shift_right_arithmetic"),
    "lshr": _shift("shift_right_logical"),
}
_INTRINSICS: dict[str, Callable[..., Any]] = {
    "fma": _fma,
    "fabs": lambda t, x: t.lax.abs(x),
    "sqrt": lambda t, x: t.lax.sqrt(x),
    "copysign": _copysign,
    "floor": lambda t, x: t.lax.floor(x),
    "ceil": lambda t, x: t.lax.ceil(x),
    "trunc": lambda t, x: t.jnp.trunc(x),
    "roundeven": lambda t, x: t.lax.round(x, t.lax.RoundingMethod.TO_NEAREST_EVEN),
    "rint": lambda t, x: t.lax.round(x, t.lax.RoundingMethod.TO_NEAREST_EVEN),
    "minnum": lambda t, a, b: t.jnp.fmin(a, b),
    "maxnum": lambda t, a, b: t.jnp.fmax(a, b),
    "minimum": lambda t, a, b: t.lax.min(a, b),
    "maximum": lambda t, a, b: t.lax.max(a, b),
}


def _quadrant(t: JaxTrace, a: Any) -> tuple[Any, Any]:
    """`n mod 4` and `r` of `a = n pi/2 + r`, from the sine and the cosine."""
    s, c = t.lax.sin(a), t.lax.cos(a)
    flat = t.lax.abs(s) <= t.lax.abs(c)
    turns = t.jnp.where(flat, t.jnp.where(c > 0, 0.0, 2.0), t.jnp.where(s > 0, 1.0, 3.0))
    up = t.jnp.where(flat, t.jnp.where(c > 0, s, -s), t.jnp.where(s > 0, -c, c))
    along = t.lax.max(t.lax.abs(s), t.lax.abs(c))
    return turns.astype(a.dtype), t.lax.atan2(up, along)


_FAR: dict[str, Callable[..., Any]] = {
    "far_turns": lambda t, a: _quadrant(t, a)[0],
    "far_rest": lambda t, a: _quadrant(t, a)[1],
}
# What formulas call, and JAX has.
_OWN: dict[str, Callable[..., Any]] = {
    "called.exp": lambda t, x: t.lax.exp(x),
    "called.expm1": lambda t, x: t.lax.expm1(x),
    "called.log": lambda t, x: t.lax.log(x),
    "called.log1p": lambda t, x: t.lax.log1p(x),
    "called.pow": lambda t, x, y: t.lax.pow(x, y),
    "called.sin": lambda t, x: t.lax.sin(x),
}
_COMPARISONS: dict[str, Callable[..., Any]] = {
    "olt": lambda a, b: a < b,
    "ole": lambda a, b: a <= b,
    "ogt": lambda a, b: a > b,
    "oge": lambda a, b: a >= b,
    "oeq": lambda a, b: a == b,
    "une": lambda a, b: a != b,
    "one": lambda a, b: (a < b) | (a > b),
    "ugt": lambda a, b: ~(a <= b),
    "uge": lambda a, b: ~(a < b),
    "ult": lambda a, b: ~(a >= b),
    "ule": lambda a, b: ~(a > b),
    "uno": lambda a, b: (a != a) | (b != b),
    "ord": lambda a, b: (a == a) & (b == b),
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
}


def written(t: JaxTrace, node: Node, *xs: Any) -> Any:
    """The rule of an op that has a formula in registers; half precision by way of float32."""
    given = node.inputs[-1].dtype
    dtype = float32 if given.is_half else given
    cast = t.lax.convert_element_type
    at: Any = ArrayBuilder(t, dtype, tuple(map(int, node.shape)))
    y: Any = WRITERS[node.op](at, *[cast(x, dtype.dtype) for x in xs])
    return cast(y, node.dtype.dtype)


# Sums over hundreds of places, which XLA would compile for minutes.
ON_HOST = frozenset({
    "betainc", "betainc_da", "betainc_db", "betainc_daa", "betainc_dab", "betainc_dbb",
    "von_mises_slope",
})  # fmt: skip
for _name in ELEMENTWISE:
    if _name not in RULES and _name in WRITERS and ELEMENTWISE[_name] not in FROM_SCIPY:
        RULES[_name] = host_call if _name in ON_HOST else written
lowers(PureCallback, *FROM_SCIPY)(host_call)
