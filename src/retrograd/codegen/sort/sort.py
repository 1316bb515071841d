"""Sorting rows, and searching in sorted ones.

`sort` sorts a row in place: by NumPy's functions, or where it has none that is fast, as unsigned
integers: `Keys` turns bits into a key of the same order, NaN last. Two things would be lost on the
way, which of two zeros it was and the bits of a NaN: where a row has any, these elements are set
aside, in their order, and put back between the negative numbers and the positive ones, and at the
end. `argsort` sorts words of a key and the position below it.
"""

from __future__ import annotations

from functools import cache

from retrograd.codegen import types
from retrograd.codegen.builder import FunctionBuilder
from retrograd.codegen.emit.kernel import KernelEmitter
from retrograd.codegen.emit.loops import Carried, emit_loops
from retrograd.codegen.emit.nest_emitters import emits_nest
from retrograd.codegen.sort.keys import Keys
from retrograd.codegen.sort.radix import element, sorted_by_numpy, sorter
from retrograd.codegen.sort.top_k import half_of, is_few, selector, word_of
from retrograd.ir import DType, bfloat16, float16, int64
from retrograd.schedule.loop_nest import ArgSortNest, SearchNest, SortNest
from retrograd.tuning import TUNING


# -- values ----------------------------------------------------------------------------------------
@emits_nest(SortNest)
def sort(w: KernelEmitter, nest: SortNest) -> None:
    """Sort rows in place."""
    (store,), (spare,) = nest.stores, nest.work
    dtype = store.buffer.type.dtype
    w.begin(nest)
    name, definitions = row_sorter(dtype, nest.descending, w.machine.slow_compress)
    for text in definitions:
        w.declare(text)

    def row(_: Carried) -> Carried:
        at = w.scalar(store.offset)
        places = ", ".join(f"ptr {w.address(b, at)}" for b in (store.buffer, spare))
        w.line(f"call void @{name}({places}, i64 {w.scalar(nest.n)})")
        return []

    emit_loops(w, 0, len(nest.loops), row)


@cache
def row_sorter(dtype: DType, descending: bool, slow: bool) -> tuple[str, tuple[str, ...]]:
    """The name of the function that sorts `n` elements at `a`, with as many at `b` to work in, and
    the definitions it needs. `slow`: whether NumPy is, on the CPU at hand."""
    bits = 8 * dtype.itemsize
    name = f"sort.{dtype.code}.{'down' if descending else 'up'}"
    found: dict[str, None] = {}
    w, count = FunctionBuilder(lambda text: found.setdefault(text)), "%n"
    if dtype.is_float:
        w.declare(_setting_aside(dtype, descending))
        w.declare(_putting_back(dtype))
        special = _special(w, dtype)
        aside, on = w.label(), w.label()
        before = w.block
        w.branch(special, aside, on)
        w.start_block(aside)
        kinds = w.new(f"call {{i64, i64}} @{name}.aside(ptr %a, ptr %b, i64 %n)")
        some, front = (w.new(f"extractvalue {{i64, i64}} {kinds}, {i}") for i in (0, 1))
        w.jump(on)
        w.start_block(on)
        count = w.new(f"phi i64 [ %n, %{before} ], [ {some}, %{aside} ]")
        front = w.new(f"phi i64 [ 0, %{before} ], [ {front}, %{aside} ]")

    def by_keys() -> None:
        for text in sorter(bits, 0, slow):
            w.declare(text)
        _each(w, dtype, count, turned=False)
        w.line(f"call void @sort.u{bits}.0(ptr %a, ptr %b, i64 {count})")
        _each(w, dtype, count, turned=True)

    sorted_by_numpy(w, dtype.code, count, slow, by_keys)
    if descending:
        _reverse(w, dtype, count)
    if dtype.is_float:
        again, done = w.label(), w.label()
        w.branch(w.new(f"icmp eq i64 {count}, %n"), done, again)
        w.start_block(again)
        w.line(
            f"call void @sort.{dtype.code}.zeros(ptr %a, ptr %b, i64 {count}, i64 {front}, i64 %n)"
        )
        w.jump(done)
        w.start_block(done)
    w.line("ret void")
    head = f"define internal void @{name}(ptr %a, ptr %b, i64 %n) noinline nounwind"
    return name, (*found, f"{head} {{\n{w.text()}\n}}")


def _each(w: FunctionBuilder, dtype: DType, count: str, turned: bool) -> None:
    """Turn the first elements into keys, or back."""
    if not dtype.is_float and dtype.kind != "int":
        return
    whole = w.new(f"and i64 {count}, {-TUNING.sort_vector_elements}")
    for lanes, start, end in ((TUNING.sort_vector_elements, "0", whole), (1, whole, count)):
        keys = Keys(w, dtype, lanes=lanes)
        loop = w.open_loop(end, lanes, start)
        x = keys.load("%a", loop.counter)
        keys.store(keys.back(x) if turned else keys.of(x), "%a", loop.counter)
        w.close_loop(loop)


def _reverse(w: FunctionBuilder, dtype: DType, count: str) -> None:
    """The first elements in the opposite order: vectors from both ends, then what is between."""
    half = w.new(f"lshr i64 {count}, 1")
    whole = w.new(f"and i64 {half}, {-TUNING.sort_vector_elements}")
    for lanes, start, end in ((TUNING.sort_vector_elements, "0", whole), (1, whole, half)):
        keys = Keys(w, dtype, lanes=lanes)
        loop = w.open_loop(end, lanes, start)
        reach = w.new(f"add i64 {loop.counter}, {lanes}")
        places = loop.counter, w.new(f"sub i64 {count}, {reach}")
        found = [keys.reversed(keys.load("%a", place)) for place in places]
        for place, x in zip(places, found[::-1], strict=True):
            keys.store(x, "%a", place)
        w.close_loop(loop)


def _special(w: FunctionBuilder, dtype: DType) -> str:
    """Whether there is a NaN or a negative zero."""
    whole = w.new(f"and i64 %n, {-TUNING.sort_vector_elements}")
    found = ""
    for lanes, start, end in ((TUNING.sort_vector_elements, "0", whole), (1, whole, "%n")):
        keys = Keys(w, dtype, lanes=lanes)
        flags = types.widened("i1", lanes)
        first = types.splat("i1", "false", lanes)
        loop = w.open_loop(end, lanes, start, [(flags, first)])
        x = keys.load("%a", loop.counter)
        negative = keys.do("icmp eq", x, keys.sign)
        own = w.new(f"or {flags} {negative}, {keys.is_nan(x)}")
        w.close_loop(loop, [w.new(f"or {flags} {own}, {loop.values[0]}")])
        any_lane = loop.values[0]
        if lanes > 1:
            packed = w.new(f"bitcast {flags} {any_lane} to i{lanes}")
            any_lane = w.new(f"icmp ne i{lanes} {packed}, 0")
        found = w.new(f"or i1 {found}, {any_lane}") if found else any_lane
    return found


@cache
def _setting_aside(dtype: DType, descending: bool) -> str:
    """Zeros and NaN are moved to the end of the row, each in their order. Returns how many elements
    are left, and how many of these come before zero."""
    w = FunctionBuilder(lambda _: None)
    keys = Keys(w, dtype)
    # Zeros go to b from the front, NaN behind them in a second walk.
    counters = [("i64", "0")] * 3
    loop = w.open_loop("%n", 1, "0", counters)
    kept, zeros, front = loop.values
    x = keys.load("%a", loop.counter)
    zero, nan = keys.is_zero(x), keys.is_nan(x)
    keys.store(x, "%b", zeros)  # overwritten, unless it is a zero
    keys.store(x, "%a", kept)
    plain = w.new(f"xor i1 {w.new(f'or i1 {zero}, {nan}')}, true")
    before = keys.do("icmp sgt" if descending else "icmp slt", x, 0)
    before = w.new(f"and i1 {before}, {plain}")
    more = [w.new(f"zext i1 {c} to i64") for c in (plain, zero, before)]
    sums = [w.new(f"add i64 {a}, {b}") for a, b in zip((kept, zeros, front), more, strict=True)]
    # NaN wait in b, from the back: there is room for all elements.
    aside, on = w.label(), w.label()
    w.branch(nan, aside, on)
    w.start_block(aside)
    seen = w.new(f"sub i64 {loop.counter}, {w.new(f'add i64 {kept}, {zeros}')}")
    keys.store(x, "%b", w.new(f"sub i64 {w.new('sub i64 %n, 1')}, {seen}"))
    w.jump(on)
    w.start_block(on)
    w.close_loop(loop, sums)
    place = w.open_loop(zeros)
    x = keys.load("%b", place.counter)
    keys.store(x, "%a", w.new(f"add i64 {kept}, {place.counter}"))
    w.close_loop(place)
    start = w.new(f"add i64 {kept}, {zeros}")
    place = w.open_loop("%n", 1, start)
    behind = w.new(f"sub i64 {place.counter}, {start}")
    x = keys.load("%b", w.new(f"sub i64 {w.new('sub i64 %n, 1')}, {behind}"))
    keys.store(x, "%a", place.counter)
    w.close_loop(place)
    pair = w.new(f"insertvalue {{i64, i64}} poison, i64 {kept}, 0")
    w.line(f"ret {{i64, i64}} {w.new(f'insertvalue {{i64, i64}} {pair}, i64 {front}, 1')}")
    name = f"sort.{dtype.code}.{'down' if descending else 'up'}.aside"
    head = f"define internal {{i64, i64}} @{name}(ptr %a, ptr %b, i64 %n) noinline nounwind"
    return f"{head} {{\n{w.text()}\n}}"


@cache
def _putting_back(dtype: DType) -> str:
    """Zeros are moved from behind the first `kept` elements to behind the first `front` ones."""
    w = FunctionBuilder(lambda _: None)
    keys = Keys(w, dtype)
    loop = w.open_loop("%n", 1, "%kept", [("i64", "0")])
    x = keys.load("%a", loop.counter)
    keys.store(x, "%b", loop.values[0])
    more = w.new(f"zext i1 {keys.is_zero(x)} to i64")
    w.close_loop(loop, [w.new(f"add i64 {loop.values[0]}, {more}")])
    zeros = loop.values[0]
    loop = w.open_loop(w.new("sub i64 %kept, %front"))
    at = w.new(f"sub i64 {w.new('sub i64 %kept, 1')}, {loop.counter}")
    keys.store(keys.load("%a", at), "%a", w.new(f"add i64 {at}, {zeros}"))
    w.close_loop(loop)
    loop = w.open_loop(zeros)
    x = keys.load("%b", loop.counter)
    keys.store(x, "%a", w.new(f"add i64 %front, {loop.counter}"))
    w.close_loop(loop)
    w.line("ret void")
    parameters = "ptr %a, ptr %b, i64 %kept, i64 %front, i64 %n"
    head = f"define internal void @sort.{dtype.code}.zeros({parameters}) noinline nounwind"
    return f"{head} {{\n{w.text()}\n}}"


# -- positions -------------------------------------------------------------------------------------
@emits_nest(ArgSortNest)
def argsort(w: KernelEmitter, nest: ArgSortNest) -> None:
    """Write the positions of a row's elements in order. Words are two halves: key and position."""
    (store,), source, work = nest.stores, nest.source, nest.work
    half = max(32, 8 * source.type.dtype.itemsize)
    bits = 2 * half
    kind = f"i{bits}"
    for text in sorter(bits, half, w.machine.slow_compress):
        w.declare(text)
    w.begin(nest)
    words = work[0] if len(work) > 1 else store.buffer
    spare = work[-1]
    keys = Keys(w, source.type.dtype, nest.descending)
    partial = nest.count != nest.n
    name = f"first.{source.type.dtype.code}.{'down' if keys.descending else 'up'}"
    if partial:
        for text in selector(name, source.type.dtype, keys.descending):
            w.declare(text)

    def row(_: Carried) -> Carried:
        at, n, count = w.scalar(store.value), w.scalar(nest.n), w.scalar(nest.count)
        scale = half // 32  # 64-bit elements of a buffer for one word
        start = w.new(f"mul nsw i64 {at}, {scale}") if scale > 1 else at
        a, b = w.address(words, start), w.address(spare, start)
        x, y = w.address(source, at), w.address(store.buffer, w.scalar(store.offset))

        def whole() -> None:
            _words(w, keys, x, a, n)
            w.line(f"call void @sort.u{bits}.{half}(ptr {a}, ptr {b}, i64 {n})")

        if partial:
            few, all_of_them, on = w.label(), w.label(), w.label()
            w.branch(is_few(w, keys, n, count), few, all_of_them)
            w.start_block(few)
            places = ", ".join(f"ptr {p}" for p in (x, a, b))
            w.line(f"call void @{name}({places}, i64 {n}, i64 {count})")
            w.jump(on)
            w.start_block(all_of_them)
            whole()
            w.jump(on)
            w.start_block(on)
        else:
            whole()
        loop = w.open_loop(count)
        word = w.new(f"load {kind}, ptr {element(w, kind, a, loop.counter)}, align 8")
        if bits > 64:
            word = w.new(f"trunc {kind} {word} to i64")
        else:
            word = w.new(f"and i64 {word}, {2**half - 1}")
        w.line(f"store i64 {word}, ptr {element(w, 'i64', y, loop.counter)}, align 8")
        w.close_loop(loop)
        return []

    emit_loops(w, 0, len(nest.loops), row)


def _words(w: FunctionBuilder, keys: Keys, x: str, a: str, n: str) -> None:
    """Write to `a` the words of the `n` elements at `x`."""
    bits = 2 * half_of(keys)
    whole = w.new(f"and i64 {n}, {-TUNING.sort_vector_elements}")
    for lanes, start, end in ((TUNING.sort_vector_elements, "0", whole), (1, whole, n)):
        own = Keys(w, keys.dtype, keys.descending, lanes)
        loop = w.open_loop(end, lanes, start)
        steps = f"<{', '.join(f'i64 {i}' for i in range(lanes))}>" if lanes > 1 else "0"
        first = types.broadcast(w, loop.counter, int64, lanes)
        position = w.new(f"add {types.widened('i64', lanes)} {first}, {steps}")
        word = word_of(w, own, own.total(own.load(x, loop.counter)), position)
        kind = types.widened(f"i{bits}", lanes)
        w.line(f"store {kind} {word}, ptr {element(w, f'i{bits}', a, loop.counter)}, align 8")
        w.close_loop(loop)


@emits_nest(SearchNest)
def search(w: KernelEmitter, nest: SearchNest) -> None:
    """By halves: as many steps for each value, whatever it is."""
    (store,), source = nest.stores, nest.source
    dtype = source.type.dtype
    w.begin(nest)

    def one(_: Carried) -> Carried:
        keys = Keys(w, dtype)
        base = w.address(source, w.scalar(nest.start))
        value = keys.total(_bits(w, w.scalar(store.value), dtype))
        before = "icmp ule" if nest.right else "icmp ult"
        found = _halving(w, keys, base, w.scalar(nest.n), value, before)
        w.line(f"store i64 {found}, ptr {w.address(store.buffer, w.scalar(store.offset))}, align 8")
        return []

    emit_loops(w, 0, len(nest.loops), one)


def _halving(w: FunctionBuilder, keys: Keys, base: str, n: str, value: str, before: str) -> str:
    """How many of `n` keys come before a value. What is left halves until it is one."""
    name, start = w.label(), w.block
    first = w.new(f"add i64 {n}, 1")  # the answers that are left
    w.jump(f"{name}.head")
    w.start_block(f"{name}.head")
    w.line(f"%{name}.left = phi i64 [ {first}, %{start} ], [ %{name}.rest, %{name}.step ]")
    w.line(f"%{name}.at = phi i64 [ 0, %{start} ], [ %{name}.next, %{name}.step ]")
    w.branch(w.new(f"icmp ugt i64 %{name}.left, 1"), f"{name}.step", f"{name}.end")
    w.start_block(f"{name}.step")
    half = w.new(f"lshr i64 %{name}.left, 1")
    probe = w.new(f"add i64 %{name}.at, {half}")
    key = keys.total(keys.load(base, w.new(f"sub i64 {probe}, 1")))
    up = w.new(f"{before} {keys.kind} {key}, {value}")
    w.line(f"%{name}.next = select i1 {up}, i64 {probe}, i64 %{name}.at")
    w.line(f"%{name}.rest = sub i64 %{name}.left, {half}")
    w.jump(f"{name}.head")
    w.start_block(f"{name}.end")
    return f"%{name}.at"


def _bits(w: FunctionBuilder, x: str, dtype: DType) -> str:
    """The bits that a register has in memory."""
    kind, memory = types.register_type(dtype), types.memory_type(dtype)
    if not dtype.is_float:
        return w.new(f"zext i1 {x} to i8") if kind == "i1" else x
    if dtype is float16:
        x = w.new(f"fptrunc float {x} to half")
        return w.new(f"bitcast half {x} to i16")
    if dtype is bfloat16:
        wide = w.new(f"lshr i32 {w.new(f'bitcast float {x} to i32')}, 16")
        return w.new(f"trunc i32 {wide} to i16")
    return w.new(f"bitcast {memory} {x} to i{8 * dtype.itemsize}")
