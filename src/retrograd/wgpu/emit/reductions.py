"""Reductions and positions of extrema.

Where there are many results, an invocation computes each; where there are few, a workgroup, whose
invocations each take a share of the elements and combine what they have as a tree; where there are
very few of very many elements, several workgroups compute parts, which a second dispatch combines.

Sums of floats are cut into blocks of `BLOCK` terms, whose totals are added up in turn, so that the
error grows with the logarithm of the number of terms, as on the CPU (`ops/numerics/summation.py`);
the order differs from the CPU's.
"""

from __future__ import annotations

from dataclasses import dataclass

from retrograd.ir import DType, TensorType, bool_, lookup
from retrograd.ops import elementwise as el
from retrograd.ops.elementwise import Elementwise
from retrograd.schedule.loop_nest import (
    ArgReduction,
    ColumnReduction,
    LoopNest,
    ReductionNest,
    RowReduction,
)
from retrograd.schedule.ssa import SSAOp, SSAValue
from retrograd.wgpu.dispatch import Dispatch, EmitContext, emits_nest
from retrograd.wgpu.emit import epilogues
from retrograd.wgpu.emit.maps import counters_of, number_of_points
from retrograd.wgpu.math.elementwise import maximum, minimum
from retrograd.wgpu.scalar import Body, OpWriter, converted, wrapped
from retrograd.wgpu.shader_writer import ShaderWriter
from retrograd.wgpu.types import literal, register_type

BLOCK = 64  # terms that are added one after the other, and totals of so many
SIDE_BY_SIDE = 64  # invocations of a workgroup that computes one result
LEAST_SHARE = 8  # elements that are worth an invocation of its own
ENOUGH = 1 << 14  # invocations that keep a device busy
MOST_SERIAL = 1 << 12  # elements that one invocation reduces at most, where it may share


def combined_by(nest: LoopNest) -> Elementwise:
    """The op by which a nest combines elements."""
    if nest.is_contraction:
        return el.add
    found: Elementwise = lookup(nest.op).combine  # type: ignore[attr-defined]
    return found


@dataclass(frozen=True)
class Combination:
    """How elements of a dtype are combined by an op."""

    w: ShaderWriter
    op: Elementwise
    dtype: DType

    @property
    def type(self) -> str:
        return register_type(self.dtype)

    @property
    def adds_floats(self) -> bool:
        return self.dtype.is_float and self.op is el.add

    @property
    def neutral(self) -> str:
        """What changes nothing when combined. For a sum of floats that is -0.0."""
        op, dtype = self.op, self.dtype
        if dtype is bool_:
            return literal(op in (el.bitwise_and, el.min), dtype)
        if op is el.add:
            return literal(-0.0 if dtype.is_float else 0, dtype)
        if op is el.mul:
            return literal(1, dtype)
        bits = 8 * dtype.itemsize
        if op in (el.bitwise_or, el.bitwise_and):
            return literal(
                0 if op is el.bitwise_or else -1 if dtype.kind == "int" else 2**bits - 1, dtype
            )
        least = op is el.max
        if dtype.is_float:
            return literal(float("-inf") if least else float("inf"), dtype)
        if dtype.kind == "uint":
            return literal(0 if least else 2**bits - 1, dtype)
        return literal(-(2 ** (bits - 1)) if least else 2 ** (bits - 1) - 1, dtype)

    def combine(self, a: str, b: str) -> str:
        at = OpWriter(self.w, self.dtype)
        if self.op is el.max:
            return maximum(at, a, b)
        if self.op is el.min:
            return minimum(at, a, b)
        sign = {el.add: "+", el.mul: "*", el.bitwise_or: "|", el.bitwise_and: "&"}[self.op]
        return wrapped(f"({a} {sign} {b})", self.dtype)

    def take(self, body: Body, total: str, value: SSAValue) -> str:
        """The total with one more element, or with one more product."""
        if value.op is not SSAOp.PRODUCT:
            return self.combine(total, body[value])
        x, y = (body[a] for a in value.args)
        if self.type == "f32":
            return f"fma({x}, {y}, {total})"
        return wrapped(f"({total} + {x} * {y})", self.dtype)


def serial(
    w: ShaderWriter, body: Body, nest: LoopNest, how: Combination, first: str, last: str, step: str
) -> str:
    """The variable that ends up with the elements from number `first` up to `last`, every
    `step`-th, of the reduced loops in row-major order. The kept loops are open."""
    total = w.variable(how.type, how.neutral)

    def take(position: str, into: str) -> None:
        reduced = nest.loops[nest.kept :]
        rest = position
        for k in range(len(reduced) - 1, 0, -1):
            size = w.size(reduced[k])
            body.counter(nest.kept + k, w.new(f"{rest} % {size}"))
            rest = w.new(f"{rest} / {size}")
        if reduced:
            body.counter(nest.kept, rest)
        body.place(len(nest.loops), nest.kept + 1)
        w.line(f"{into} = {how.take(body, into, nest.stores[0].value)};")

    if not how.adds_floats:
        with w.loop(last, first, step) as i:
            take(i, total)
        return total
    # Blocks, and blocks of blocks: three chains, none of which is long.
    outer = w.variable(how.type, how.neutral)
    with w.loop(last, first, f"{step} * {BLOCK * BLOCK}i") as i:
        w.line(f"{outer} = {how.neutral};")
        end = w.new(f"min({last}, {i} + {step} * {BLOCK * BLOCK}i)")
        with w.loop(end, i, f"{step} * {BLOCK}i") as j:
            inner = w.variable(how.type, how.neutral)
            stop = w.new(f"min({end}, {j} + {step} * {BLOCK}i)")
            with w.loop(stop, j, step) as k:
                take(k, inner)
            w.line(f"{outer} = {outer} + {inner};")
        w.line(f"{total} = {total} + {outer};")
    return total


def tree(w: ShaderWriter, how: Combination, value: str) -> str:
    """The values of all invocations of a workgroup as one, the first of `shared`, by halves."""
    kind = "u32" if how.dtype is bool_ else how.type
    w.declare(f"var<workgroup> shared_values: array<{kind}, {w.workgroup}>;")
    put = (lambda x: f"u32({x})") if how.dtype is bool_ else (lambda x: x)
    get = (lambda x: f"({x} != 0u)") if how.dtype is bool_ else (lambda x: x)
    w.line(f"shared_values[lane] = {put(value)};")
    w.line("workgroupBarrier();")
    half = w.workgroup // 2
    while half:
        with w.block(f"if (lane < {half}i)"):
            a, b = get("shared_values[lane]"), get(f"shared_values[lane + {half}i]")
            w.line(f"shared_values[lane] = {put(how.combine(a, b))};")
        w.line("workgroupBarrier();")
        half //= 2
    return get("shared_values[0]")


def _finish(w: ShaderWriter, body: Body, nest: ReductionNest, how: Combination, total: str) -> None:
    """Write a reduced value."""
    (store,) = nest.stores
    value = _reduced_value(w, body, nest, how, total)
    epilogues.finish(w, store.buffer, body.position(store.offset), value)


def _reduced_value(
    w: ShaderWriter, body: Body, nest: ReductionNest, how: Combination, total: str
) -> str:
    """A reduced value in the dtype of the buffer; the sum of no floats is 0.0."""
    if how.adds_floats:
        none = f"{body.position(nest.count)} == 0i"
        total = f"select({total}, {literal(0.0, how.dtype)}, {none})"
    return converted(w, total, how.dtype, nest.stores[0].buffer.type.dtype)


@emits_nest(RowReduction, ColumnReduction)
def reduction(nest: ReductionNest, context: EmitContext) -> list[Dispatch]:
    """Kept loops around reduced ones."""
    kept = number_of_points(nest.loops[: nest.kept], context)
    count = number_of_points(nest.loops[nest.kept :], context)
    if kept == 0:
        return []
    if count <= LEAST_SHARE or (kept >= ENOUGH and count <= MOST_SERIAL):
        return [_each(nest, context, kept)]
    row = isinstance(nest, RowReduction)
    shares = -(-count // (SIDE_BY_SIDE * MOST_SERIAL)) if row else -(-count // BLOCK)
    busy = ENOUGH // (kept * SIDE_BY_SIDE if row else kept)
    if row:
        most = count // (SIDE_BY_SIDE * LEAST_SHARE)
        shares = max(shares, min(busy, most))
    else:
        shares = max(-(-count // MOST_SERIAL), min(busy, shares))
    if shares <= 1:
        return [_together(nest, context, kept) if row else _each(nest, context, kept)]
    return _in_parts(nest, context, kept, count, shares)


def _kept(w: ShaderWriter, nest: LoopNest) -> str:
    return " * ".join(w.size(d) for d in nest.loops[: nest.kept]) or "1i"


def _reduced(w: ShaderWriter, nest: LoopNest) -> str:
    return " * ".join(w.size(d) for d in nest.loops[nest.kept :]) or "1i"


def _combination(w: ShaderWriter, nest: LoopNest) -> Combination:
    assert nest.accumulator is not None
    w.need(nest.accumulator)
    return Combination(w, combined_by(nest), nest.accumulator)


def _each(nest: ReductionNest, context: EmitContext, kept: int) -> Dispatch:
    """An invocation for each result."""
    w = ShaderWriter(context)
    w.line(f"if (at >= {_kept(w, nest)}) {{ return; }}")
    body, how = Body(w, nest), _combination(w, nest)
    counters_of(w, body, nest.loops[: nest.kept], "at")
    body.place(nest.kept, 0)
    total = serial(w, body, nest, how, "0i", w.new(_reduced(w, nest)), "1i")
    _finish(w, body, nest, how, total)
    return w.dispatch(-(-kept // w.workgroup), nest.kind)


def _together(nest: ReductionNest, context: EmitContext, kept: int) -> Dispatch:
    """A workgroup for each result, and for the row of the map that follows."""
    w = ShaderWriter(context, SIDE_BY_SIDE)
    body, how = Body(w, nest), _combination(w, nest)
    counters_of(w, body, nest.loops[: nest.kept], "group")
    body.place(nest.kept, 0)
    last = w.new(_reduced(w, nest))
    total = serial(w, body, nest, how, "lane", last, f"{SIDE_BY_SIDE}i")
    total = tree(w, how, total)
    rows = epilogues.of(context, nest.stores[0].buffer)
    if rows is None or rows.row == 1:
        with w.block("if (lane == 0i)"):
            _finish(w, body, nest, how, total)
        return w.dispatch(kept, nest.kind)
    value = w.new(_reduced_value(w, body, nest, how, total))
    if rows.keeps:
        with w.block("if (lane == 0i)"):
            w.store(rows.source, body.position(nest.stores[0].offset), value)
    with w.loop(f"{rows.row}i", "lane", f"{SIDE_BY_SIDE}i") as i:
        rows.call(w, f"group * {rows.row}i + {i}", value)
    return w.dispatch(kept, nest.kind)


def _in_parts(
    nest: ReductionNest, context: EmitContext, kept: int, count: int, shares: int
) -> list[Dispatch]:
    """Parts of the elements of each result, and then the parts."""
    assert nest.accumulator is not None
    length = -(-count // shares)
    shares = -(-count // length)
    parts = context.scratch(TensorType(nest.accumulator, (shares, kept)))
    row = isinstance(nest, RowReduction)
    w = ShaderWriter(context, SIDE_BY_SIDE)
    body, how = Body(w, nest), _combination(w, nest)
    here = "group" if row else "at"
    if not row:
        w.line(f"if (at >= {kept * shares}i) {{ return; }}")
    part, result = w.new(f"{here} / {kept}i"), w.new(f"{here} % {kept}i")
    counters_of(w, body, nest.loops[: nest.kept], result)
    body.place(nest.kept, 0)
    first = w.new(f"{part} * {length}i")
    last = w.new(f"min({first} + {length}i, {_reduced(w, nest)})")
    if row:
        begin = w.new(f"{first} + lane")
        total = tree(w, how, serial(w, body, nest, how, begin, last, f"{SIDE_BY_SIDE}i"))
        with w.block("if (lane == 0i)"):
            w.store(parts, "group", total)
        stage = w.dispatch(kept * shares, nest.kind)
    else:
        w.store(parts, "at", serial(w, body, nest, how, first, last, "1i"))
        stage = w.dispatch(-(-kept * shares // w.workgroup), nest.kind)
    return [stage, _combine_parts(nest, context, parts, kept, shares)]


def _combine_parts(
    nest: ReductionNest, context: EmitContext, parts: object, kept: int, shares: int
) -> Dispatch:
    """The parts of each result as one: by an invocation for each."""
    w = ShaderWriter(context)
    w.line(f"if (at >= {kept}i) {{ return; }}")
    body, how = Body(w, nest), _combination(w, nest)
    counters_of(w, body, nest.loops[: nest.kept], "at")
    body.place(nest.kept, 0)
    total = w.variable(how.type, how.neutral)
    outer = w.variable(how.type, how.neutral)
    with w.loop(f"{shares}i", step=f"{BLOCK}i") as i:
        w.line(f"{outer} = {how.neutral};")
        stop = w.new(f"min({shares}i, {i} + {BLOCK}i)")
        with w.loop(stop, i) as j:
            element = w.load(parts, f"{j} * {kept}i + at")  # type: ignore[arg-type]
            w.line(f"{outer} = {how.combine(outer, element)};")
        w.line(f"{total} = {how.combine(total, outer)};")
    _finish(w, body, nest, how, total)
    return w.dispatch(-(-kept // w.workgroup), nest.kind)


@emits_nest(ArgReduction)
def argument(nest: LoopNest, context: EmitContext) -> list[Dispatch]:
    """The position of the first extremum; the first NaN counts as one."""
    kept = number_of_points(nest.loops[: nest.kept], context)
    count = number_of_points(nest.loops[nest.kept :], context)
    if kept == 0:
        return []
    (store,), last = nest.stores, len(nest.loops) - 1
    together = count > LEAST_SHARE and kept < ENOUGH
    w = ShaderWriter(context, SIDE_BY_SIDE)
    if not together:
        w.line(f"if (at >= {_kept(w, nest)}) {{ return; }}")
    body, dtype = Body(w, nest), store.value.dtype
    w.need(dtype)
    counters_of(w, body, nest.loops[: nest.kept], "group" if together else "at")
    body.place(nest.kept, 0)
    start = "lane" if together else "0i"
    best = w.variable(register_type(dtype), literal(0, dtype))
    where = w.variable("i32", "-1i")
    with w.loop(w.size(nest.loops[last]), start, f"{SIDE_BY_SIDE if together else 1}i") as i:
        body.counter(last, i)
        body.place(last + 1)
        value = body[store.value]
        with w.block(f"if ({where} < 0i || {better(w, nest, dtype, value, best)})"):
            w.line(f"{best} = {value};")
            w.line(f"{where} = {i};")
    if together:
        _first_of_workgroup(w, nest, dtype, best, where)
        with w.block("if (lane == 0i)"):
            w.store(
                store.buffer,
                body.position(store.offset),
                _as(store.buffer.type.dtype, "shared_places[0]"),
            )
        return [w.dispatch(kept, nest.kind)]
    w.store(
        store.buffer, body.position(store.offset), _as(store.buffer.type.dtype, f"max({where}, 0i)")
    )
    return [w.dispatch(-(-kept // w.workgroup), nest.kind)]


def _as(dtype: DType, position: str) -> str:
    return f"{register_type(dtype)}({position})"


def _first_of_workgroup(
    w: ShaderWriter, nest: LoopNest, dtype: DType, best: str, where: str
) -> None:
    """The best of all invocations' elements, the first of equal ones, into `shared_places[0]`."""
    kind = "u32" if dtype is bool_ else register_type(dtype)
    w.declare(f"var<workgroup> shared_values: array<{kind}, {w.workgroup}>;")
    w.declare(f"var<workgroup> shared_places: array<i32, {w.workgroup}>;")
    w.line(f"shared_values[lane] = {f'u32({best})' if dtype is bool_ else best};")
    w.line(f"shared_places[lane] = {where};")
    w.line("workgroupBarrier();")
    half = w.workgroup // 2
    while half:
        with w.block(f"if (lane < {half}i)"):
            x, y = "shared_values[lane]", f"shared_values[lane + {half}i]"
            a, b = w.new("shared_places[lane]"), w.new(f"shared_places[lane + {half}i]")
            u, v = (f"({z} != 0u)" if dtype is bool_ else z for z in (x, y))
            wins = better(w, nest, dtype, v, u)
            loses = better(w, nest, dtype, u, v)
            first = f"(!{loses} && {b} < {a})"
            with w.block(f"if ({b} >= 0i && ({a} < 0i || {wins} || {first}))"):
                w.line(f"{x} = {y};")
                w.line(f"shared_places[lane] = {b};")
        w.line("workgroupBarrier();")
        half //= 2


def better(w: ShaderWriter, nest: LoopNest, dtype: DType, value: str, old: str) -> str:
    """Whether a value takes the place of the extremum so far: a NaN does, once."""
    more = combined_by(nest) is el.max
    if dtype is bool_:
        return f"({value} && !{old})" if more else f"(!{value} && {old})"
    wins = f"({value} {'>' if more else '<'} {old})"
    if not dtype.is_float:
        return wins
    at = OpWriter(w, dtype)
    return f"({wins} && !{at.is_nan(old)} || ({at.is_nan(value)} && !{at.is_nan(old)}))"
