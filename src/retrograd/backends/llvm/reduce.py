"""Reductions, extremum positions and running sums.

The innermost axis is handled in strips. The elements of a strip are computed into a small array on
the stack by a plain loop, which LLVM turns into vector instructions, then added up by vectors of
`LANES` partial results. So the order is the plan's, whatever the width of the machine's vectors.
"""

from __future__ import annotations

from retrograd.backends.kernel import LANES, STRIP, Nest
from retrograd.backends.llvm import types
from retrograd.backends.llvm.kernels import KernelWriter, close_all
from retrograd.backends.llvm.writer import Loop
from retrograd.ir import DType, bool_

_COMBINE = {
    "reduce_sum": ("fadd", "add", "add"),
    "reduce_prod": ("fmul", "mul", "mul"),
    "reduce_max": ("maximum", "smax", "umax"),
    "reduce_min": ("minimum", "smin", "umin"),
    "reduce_any": ("or", "or", "or"),
    "reduce_all": ("and", "and", "and"),
}


class Accumulation:
    """How values of one reduction are combined: scalars, and vectors of LANES."""

    def __init__(self, w: KernelWriter, op: str, dtype: DType) -> None:
        self.w = w
        self.op = op
        self.dtype = dtype
        # Booleans are combined as bytes: vectors of bits are not laid out as arrays in memory.
        self.type = "i8" if dtype is bool_ else types.register_type(dtype)
        self.vector = f"<{LANES} x {self.type}>"
        kind = 0 if dtype.is_float else 1 if dtype.kind == "int" else 2
        self.name = _COMBINE[op][kind]

    def combine(self, a: str, b: str, width: int = 1) -> str:
        kind = self.type if width == 1 else f"<{width} x {self.type}>"
        if self.name not in ("maximum", "minimum", "smax", "smin", "umax", "umin"):
            return self.w.new(f"{self.name} {kind} {a}, {b}")
        name = f"llvm.{self.name}.{'' if width == 1 else f'v{width}'}{types.suffix(self.type)}"
        self.w.declare(f"{kind} @{name}({kind}, {kind})")
        return self.w.new(f"call {kind} @{name}({kind} {a}, {kind} {b})")

    @property
    def neutral(self) -> str:
        """What changes nothing when combined. For a sum of floats that is -0.0."""
        if self.dtype is bool_:
            return {"reduce_all": "1", "reduce_min": "1"}.get(self.op, "0")
        return types.literal(self._neutral(), self.dtype)

    def _neutral(self) -> float:
        if self.op == "reduce_sum":
            return -0.0 if self.dtype.is_float else 0
        if self.op == "reduce_prod":
            return 1
        least = self.op == "reduce_max"
        if self.dtype.is_float:
            return float("-inf") if least else float("inf")
        bits = 8 * self.dtype.itemsize
        if self.dtype.kind == "uint":
            return 0 if least else 2**bits - 1
        return -(2 ** (bits - 1)) if least else 2 ** (bits - 1) - 1

    def raw(self, value: str) -> str:
        """A value in the type it is combined in."""
        return self.w.new(f"zext i1 {value} to i8") if self.dtype is bool_ else value

    def result(self, value: str, count: str) -> str:
        """The reduced value; the sum of no floats is 0.0, not -0.0."""
        if self.dtype is bool_:
            return self.w.new(f"icmp ne i8 {value}, 0")
        if self.dtype.is_float and self.op == "reduce_sum" and count == "0":
            return types.literal(0.0, self.dtype)
        if self.dtype.is_float and self.op == "reduce_sum" and not count.isdigit():
            none = self.w.new(f"icmp eq i64 {count}, 0")
            zero = types.literal(0.0, self.dtype)
            return self.w.new(f"select i1 {none}, {self.type} {zero}, {self.type} {value}")
        return value

    def tree(self, vector: str) -> str:
        """The partial results as one: upper half with lower half, until one is left."""
        width = LANES
        while width > 2:
            half = width // 2
            parts = []
            for start in (0, half):
                mask = ", ".join(f"i32 {start + i}" for i in range(half))
                kind = f"<{width} x {self.type}>"
                parts.append(
                    self.w.new(
                        f"shufflevector {kind} {vector}, {kind} poison, <{half} x i32> <{mask}>"
                    )
                )
            vector = self.combine(parts[0], parts[1], half)
            width = half
        a, b = (self.w.new(f"extractelement <2 x {self.type}> {vector}, i64 {i}") for i in (0, 1))
        return self.combine(a, b)


def _strip(w: KernelWriter, number: int, size: str) -> tuple[Loop, str]:
    """Open a loop over strips; gives the length of the strip at hand."""
    loop = w.open_loop(size, STRIP)
    w.counters[number] = loop.counter
    w.place(number + 1)
    left = w.new(f"sub nsw i64 {size}, {loop.counter}")
    w.declare("i64 @llvm.smin.i64(i64, i64)")
    return loop, w.new(f"call i64 @llvm.smin.i64(i64 {left}, i64 {STRIP})")


def row(w: KernelWriter, nest: Nest) -> None:
    """The reduced axis is the innermost."""
    (store,), lanes = nest.stores, nest.loops
    assert nest.accumulator is not None
    a = Accumulation(w, nest.op, nest.accumulator)
    w.begin(nest)
    array = w.reserve(f"[{STRIP} x {a.type}]")
    total = w.reserve(a.vector)
    kept = [w.loop(k, lanes[k]) for k in range(nest.kept)]
    splat = "<" + ", ".join([f"{a.type} {a.neutral}"] * LANES) + ">"
    w.line(f"store {a.vector} {splat}, ptr {total}, align 64")
    outer = [w.loop(k, lanes[k]) for k in range(nest.kept, len(lanes) - 2)]
    strip, length = _strip(w, len(lanes) - 2, w.size(lanes[-1]))
    inner = w.open_loop(length)
    w.counters[len(lanes) - 1] = inner.counter
    w.place(len(lanes))
    _put(w, a, array, inner.counter, a.raw(w.names[store.value]))
    w.close_loop(inner)
    _fill_up(w, a, array, length)
    chunk = w.open_loop(length, LANES)
    pointer = w.new(f"getelementptr inbounds {a.type}, ptr {array}, i64 {chunk.counter}")
    part = w.new(f"load {a.vector}, ptr {pointer}, align {LANES * a.dtype.itemsize}")
    before = w.new(f"load {a.vector}, ptr {total}, align 64")
    w.line(f"store {a.vector} {a.combine(before, part, LANES)}, ptr {total}, align 64")
    w.close_loop(chunk)
    w.close_loop(strip)
    close_all(w, outer)
    value = a.tree(w.new(f"load {a.vector}, ptr {total}, align 64"))
    value = a.result(value, w.names[nest.info["count"]])
    w.finish(value, store, w.names[store.offset], a.dtype)
    close_all(w, kept)


def _put(w: KernelWriter, a: Accumulation, array: str, at: str, value: str) -> None:
    pointer = w.new(f"getelementptr inbounds {a.type}, ptr {array}, i64 {at}")
    w.line(f"store {a.type} {value}, ptr {pointer}")


def _fill_up(w: KernelWriter, a: Accumulation, array: str, length: str) -> None:
    """Neutral values up to a whole number of vectors."""
    up = w.new(f"add nsw i64 {length}, {LANES - 1}")
    end = w.new(f"and i64 {up}, {-LANES}")
    missing = w.new(f"sub nsw i64 {end}, {length}")
    rest = w.open_loop(missing)
    _put(w, a, array, w.new(f"add nsw i64 {length}, {rest.counter}"), a.neutral)
    w.close_loop(rest)


def column(w: KernelWriter, nest: Nest) -> None:
    """The innermost axis is kept: a strip of results is summed side by side."""
    (store,), lanes, at = nest.stores, nest.loops, nest.kept - 1
    assert nest.accumulator is not None
    a = Accumulation(w, nest.op, nest.accumulator)
    w.begin(nest)
    array = w.reserve(f"[{STRIP} x {a.type}]")
    outer = [w.loop(k, lanes[k]) for k in range(at)]
    strip, length = _strip(w, at, w.size(lanes[at]))
    start = w.open_loop(length)
    _put(w, a, array, start.counter, a.neutral)
    w.close_loop(start)
    reduced = [w.loop(k, lanes[k]) for k in range(nest.kept, len(lanes) - 1)]
    inner = w.open_loop(length)
    w.counters[len(lanes) - 1] = inner.counter
    w.place(len(lanes))
    pointer = w.new(f"getelementptr inbounds {a.type}, ptr {array}, i64 {inner.counter}")
    before = w.new(f"load {a.type}, ptr {pointer}")
    after = a.combine(before, a.raw(w.names[store.value]))
    w.line(f"store {a.type} {after}, ptr {pointer}")
    w.close_loop(inner)
    close_all(w, reduced)
    end = w.open_loop(length)
    pointer = w.new(f"getelementptr inbounds {a.type}, ptr {array}, i64 {end.counter}")
    value = a.result(w.new(f"load {a.type}, ptr {pointer}"), w.names[nest.info["count"]])
    offset = w.new(f"add nsw i64 {w.names[store.offset]}, {end.counter}")
    w.finish(value, store, offset, a.dtype)
    w.close_loop(end)
    w.close_loop(strip)
    close_all(w, outer)


def argument(w: KernelWriter, nest: Nest) -> None:
    """The position of the first extremum; the first NaN counts as one."""
    (store,), last = nest.stores, len(nest.loops) - 1
    dtype = store.value.dtype
    kind = types.register_type(dtype)
    w.begin(nest)
    best, position = w.reserve(kind), w.reserve("i64")
    kept = [w.loop(k, nest.loops[k]) for k in range(last)]
    w.line(f"store i64 0, ptr {position}")
    loop = w.loop(last, nest.loops[last])
    value = w.names[store.value]
    old = w.new(f"load {kind}, ptr {best}")
    more = nest.op == "argmax"
    if dtype.is_float:
        better = w.new(f"fcmp {'ogt' if more else 'olt'} {kind} {value}, {old}")
        nan, had = (w.new(f"fcmp uno {kind} {x}, {x}") for x in (value, old))
        fresh = w.new(f"and i1 {nan}, {w.new(f'xor i1 {had}, true')}")
        better = w.new(f"or i1 {better}, {fresh}")
    else:
        letter = "s" if dtype.kind == "int" else "u"
        better = w.new(f"icmp {letter}{'gt' if more else 'lt'} {kind} {value}, {old}")
    first = w.new(f"icmp eq i64 {loop.counter}, 0")
    better = w.new(f"select i1 {first}, i1 true, i1 {better}")
    w.line(f"store {kind} {w.new(f'select i1 {better}, {kind} {value}, {kind} {old}')}, ptr {best}")
    at = w.new(f"load i64, ptr {position}")
    at = w.new(f"select i1 {better}, i64 {loop.counter}, i64 {at}")
    w.line(f"store i64 {at}, ptr {position}")
    w.close_loop(loop)
    at = w.new(f"load i64, ptr {position}")
    types.store(w, at, w.address(store.buffer, w.names[store.offset]), store.buffer.type.dtype)
    close_all(w, kept)


def scan(w: KernelWriter, nest: Nest) -> None:
    """Running sums along the innermost loop, one element after the other."""
    (store,), last = nest.stores, len(nest.loops) - 1
    assert nest.accumulator is not None
    a = Accumulation(w, "reduce_sum", nest.accumulator)
    w.begin(nest)
    total = w.reserve(a.type)
    others = [w.loop(k, nest.loops[k]) for k in range(last)]
    w.line(f"store {a.type} {a.neutral}, ptr {total}")
    loop = w.loop(last, nest.loops[last])
    value = a.combine(w.new(f"load {a.type}, ptr {total}"), w.names[store.value])
    w.line(f"store {a.type} {value}, ptr {total}")
    w.finish(value, store, w.names[store.offset], a.dtype)
    w.close_loop(loop)
    close_all(w, others)
