"""Sorting and searching: numbers become unsigned words of the same order, NaN last, and those are
sorted (`sort_order.py`)."""

from __future__ import annotations

from retrograd.ir import DType, TensorType, uint32
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.loop_nest import ArgSortNest, SearchNest, SortNest
from retrograd.wgpu.dispatch import Dispatch, EmitContext, emits_nest
from retrograd.wgpu.emit.maps import counters_of, number_of_points
from retrograd.wgpu.emit.sort_order import order_of
from retrograd.wgpu.scalar import Body
from retrograd.wgpu.shader_writer import ShaderWriter
from retrograd.wgpu.types import register_type

# One key for both zeros, one, the highest, for every NaN.
_FLOAT = """fn key_{f}(x: {f}) -> {u} {{
  let bits = bitcast<{u}>(x);
  let size = bits & ~{sign};
  if size > {infinity} {{ return ~{zero}; }}
  if size == {zero} {{ return {sign}; }}
  return select(bits | {sign}, ~bits, bits != size);
}}"""
_INTEGER = "fn key_{i}(x: {i}) -> {u} {{ return bitcast<{u}>(x) ^ {sign}; }}"
_NARROW = {"u": "u32", "sign": "0x80000000u", "infinity": "0x7f800000u", "zero": "0u"}
_WIDE = {
    "u": "u64", "sign": "(1lu << 63u)", "infinity": "0x7ff0000000000000lu", "zero": "0lu",
}  # fmt: skip
_KEYS = {
    "f32": _FLOAT.format(f="f32", **_NARROW),
    "f64": _FLOAT.format(f="f64", **_WIDE),
    "i32": _INTEGER.format(i="i32", **_NARROW),
    "i64": _INTEGER.format(i="i64", **_WIDE),
}
_HIGHEST = {"u32": "0xffffffffu", "u64": "0xfffffffffffffffflu"}


def key_of(w: ShaderWriter, x: str, dtype: DType, descending: bool = False) -> str:
    """A number as an unsigned one of the same order, or of the opposite one, NaN last in both."""
    kind = register_type(dtype)
    if kind == "bool":
        key, whole = f"u32({x})", "u32"
    elif kind in _KEYS:
        w.declare(_KEYS[kind])
        key, whole = f"key_{kind}({x})", "u64" if dtype.itemsize == 8 else "u32"
    else:
        key, whole = x, kind
    if not descending:
        return w.new(key)
    key = w.new(key)
    if not dtype.is_float:
        return w.new(f"~{key}")
    return w.new(f"select(~{key}, {key}, {key} == {_HIGHEST[whole]})")


def _keys(
    nest: SortNest, context: EmitContext, source: Buffer, rows: int, n: int
) -> tuple[Dispatch, list[Buffer]]:
    """What writes the words of the keys of all elements, and where they will be, the low ones
    first."""
    dtype = source.type.dtype
    wide = dtype.itemsize == 8
    words = [context.scratch(TensorType(uint32, (rows, n))) for _ in range(2 if wide else 1)]
    w = ShaderWriter(context)
    w.need(dtype)
    w.line(f"if (at >= {rows * n}i) {{ return; }}")
    body = Body(w, nest)
    counters_of(w, body, nest.loops, w.new(f"at / {n}i"))
    body.place(len(nest.loops), 0)
    (store,) = nest.stores
    start = store.value if isinstance(nest, ArgSortNest) else store.offset
    x = w.new(w.load(source, f"{body.position(start)} + at % {n}i"))
    key = key_of(w, x, dtype, nest.descending)
    if wide:
        w.store(words[1], "at", f"u32({key} >> 32u)")
        key = f"u32({key} & 0xfffffffflu)"
    w.store(words[0], "at", key)
    return w.dispatch(-(-rows * n // w.workgroup), "sort"), words


def _order(
    nest: SortNest, context: EmitContext, source: Buffer, rows: int, n: int
) -> tuple[list[Dispatch], Buffer]:
    made, keys = _keys(nest, context, source, rows, n)
    size = 8 * source.type.dtype.itemsize
    bits = [32, 32] if size == 64 else [1 if size == 8 and source.type.dtype.kind == "bool" else 32]
    found, order = order_of(context, keys, bits, rows, n)
    return [made, *found], order


@emits_nest(SortNest)
def sort(nest: SortNest, context: EmitContext) -> list[Dispatch]:
    """Rows of the result, each sorted in place."""
    (store,), n = nest.stores, context.value(nest.n.attr)
    rows = number_of_points(nest.loops, context)
    if rows * n == 0 or n == 1:
        return []
    out = store.buffer
    found, order = _order(nest, context, out, rows, n)
    copy = context.scratch(TensorType(out.type.dtype, (rows, n)))
    for source, into in ((out, copy), (copy, out)):
        w = ShaderWriter(context)
        w.line(f"if (at >= {rows * n}i) {{ return; }}")
        body = Body(w, nest)
        counters_of(w, body, nest.loops, w.new(f"at / {n}i"))
        body.place(len(nest.loops), 0)
        start = body.position(store.offset)
        if source is out:
            value = w.load(out, f"{start} + at % {n}i")
            w.store(into, "at", value)
        else:
            place = f"(at / {n}i) * {n}i + {w.load(order, 'at')}"
            w.store(into, f"{start} + at % {n}i", w.load(copy, place))
        found.append(w.dispatch(-(-rows * n // w.workgroup), "sort"))
    return found


@emits_nest(ArgSortNest)
def argsort(nest: ArgSortNest, context: EmitContext) -> list[Dispatch]:
    """The positions of the first elements of each row in order."""
    (store,), n, count = nest.stores, context.value(nest.n.attr), context.value(nest.count.attr)
    rows = number_of_points(nest.loops, context)
    if rows * n * count == 0:
        return []
    found, order = _order(nest, context, nest.source, rows, n)
    w = ShaderWriter(context)
    w.line(f"if (at >= {rows * count}i) {{ return; }}")
    body = Body(w, nest)
    counters_of(w, body, nest.loops, w.new(f"at / {count}i"))
    body.place(len(nest.loops), 0)
    kind = register_type(store.buffer.type.dtype)
    value = f"{kind}({w.load(order, f'(at / {count}i) * {n}i + at % {count}i')})"
    w.store(store.buffer, f"{body.position(store.offset)} + at % {count}i", value)
    return [*found, w.dispatch(-(-rows * count // w.workgroup), "sort")]


@emits_nest(SearchNest)
def search(nest: SearchNest, context: EmitContext) -> list[Dispatch]:
    """By halves: as many steps for each value, whatever it is."""
    points = number_of_points(nest.loops, context)
    if points == 0:
        return []
    (store,), dtype = nest.stores, nest.source.type.dtype
    w = ShaderWriter(context)
    w.line(f"if (at >= {points}i) {{ return; }}")
    body = Body(w, nest)
    counters_of(w, body, nest.loops, "at")
    body.place(len(nest.loops), 0)
    value = key_of(w, body[store.value], dtype)
    start = body.position(nest.start)
    w.line(f"var left = {body.position(nest.n)} + 1i;")
    w.line("var found = 0i;")
    with w.block("while (left > 1i)"):
        w.line("let half = left >> 1u;")
        key = key_of(w, w.load(nest.source, f"{start} + found + half - 1i"), dtype)
        with w.block(f"if ({key} {'<=' if nest.right else '<'} {value})"):
            w.line("found = found + half;")
        w.line("left = left - half;")
    kind = register_type(store.buffer.type.dtype)
    w.store(store.buffer, body.position(store.offset), f"{kind}(found)")
    return [w.dispatch(-(-points // w.workgroup), "search")]
