"""The first few of a row's words in order, without sorting the row.

Candidates wait in a room for some words. Of the rest of the row only what is less than the last of
the best so far joins them, which many elements are compared with at once; when the room is full,
its words are sorted, and the best stay. Where few are wanted, each candidate takes its place among
the best at once.
"""

from __future__ import annotations

from functools import cache

from retrograd.codegen import types
from retrograd.codegen.builder import FunctionBuilder
from retrograd.codegen.sort.keys import Keys
from retrograd.codegen.sort.radix import element, settle
from retrograd.ir import DType
from retrograd.tuning import TUNING

MASK = f"i{TUNING.top_k_vector_elements}"  # a bit for each of the elements that are compared
LEAST = {32: 40, 64: 4}  # and as what is wanted, by the bits of half a word


def half_of(keys: Keys) -> int:
    """The bits of a word's lower half, the position; those above are the key."""
    return max(32, keys.bits)


def word_of(w: FunctionBuilder, keys: Keys, key: str, position: str) -> str:
    """A key and the position below it, in as many lanes as the keys have."""
    half = half_of(keys)
    kind = types.widened(f"i{2 * half}", keys.lanes)
    wide = w.new(f"zext {keys.kind} {key} to {kind}")
    if half > 32:
        position = w.new(f"zext {types.widened('i64', keys.lanes)} {position} to {kind}")
    shift = types.splat(f"i{2 * half}", str(half), keys.lanes)
    return w.new(f"or {kind} {w.new(f'shl {kind} {wide}, {shift}')}, {position}")


def _room(w: FunctionBuilder, count: str) -> str:
    alone = w.new(f"icmp sle i64 {count}, {TUNING.top_k_inserted_words}")
    one, many = (
        w.new(f"add nsw i64 {count}, 1"),
        w.new(f"mul nsw i64 {count}, {TUNING.top_k_candidate_ratio}"),
    )
    return w.new(f"select i1 {alone}, i64 {one}, i64 {many}")


def is_few(w: FunctionBuilder, keys: Keys, n: str, count: str) -> str:
    """Whether so few elements of a row are wanted that they are selected."""
    w.declare("i64 @llvm.smax.i64(i64, i64)")
    room = w.new(f"mul nsw i64 {_room(w, count)}, {TUNING.top_k_row_ratio}")
    least = w.new(f"mul nsw i64 {count}, {LEAST[half_of(keys)]}")
    least = w.new(f"call i64 @llvm.smax.i64(i64 {room}, i64 {least})")
    some = w.new(f"icmp sgt i64 {count}, 0")
    return w.new(f"and i1 {some}, {w.new(f'icmp sge i64 {n}, {least}')}")


@cache
def selector(name: str, dtype: DType, descending: bool) -> tuple[str, ...]:
    """The definitions of `@name(x, a, b, n, count)`, which leaves at `a` the first `count` words of
    the `n` elements at `x`, in order, where these `is_few`; `b` is as much memory to work in. The
    function that sorts words must be known to the module."""
    found: dict[str, None] = {}
    arrays, state = "ptr %x, ptr %a, ptr %b", "ptr %have, ptr %limit"

    def define(own: str, parameters: str, w: FunctionBuilder) -> None:
        head = f"define internal void @{name}{own}({parameters}) noinline nounwind"
        found[f"{head} {{\n{w.text()}\n}}"] = None

    for own, parameters, write in (
        ("", f"{arrays}, i64 %n, i64 %count", _select),
        (
            ".take",
            f"ptr %x, ptr %a, ptr %b, i64 %from, {MASK} %lanes, i64 %count, {state}",
            _take,
        ),
        (".best", f"ptr %a, ptr %b, i64 %count, {state}", _best),
    ):
        w = FunctionBuilder(lambda text: found.setdefault(text))
        write(
            w,
            name,
            Keys(w, dtype, descending),
            Keys(w, dtype, descending, TUNING.top_k_vector_elements),
        )
        define(own, parameters, w)
    return tuple(found)


def _select(w: FunctionBuilder, name: str, keys: Keys, wide: Keys) -> None:
    """The first elements fill the room, the others follow in vectors."""
    kind = f"i{keys.bits}"
    have, limit = w.reserve("i64", 8), w.reserve(kind, 8)
    given = f"i64 %count, ptr {have}, ptr {limit}"
    w.line(f"store i64 0, ptr {have}, align 8")
    w.line(f"store {kind} -1, ptr {limit}, align {keys.bits // 8}")
    room = _room(w, "%count")
    first = w.open_loop(room)
    word = word_of(w, keys, keys.total(keys.load("%x", first.counter)), first.counter)
    words = f"i{2 * half_of(keys)}"
    w.line(f"store {words} {word}, ptr {element(w, words, '%a', first.counter)}, align 8")
    w.close_loop(first)
    w.line(f"store i64 {room}, ptr {have}, align 8")
    w.line(f"call void @{name}.best(ptr %a, ptr %b, {given})")
    left = w.new(f"sub i64 %n, {room}")
    end = w.new(f"add i64 {room}, {w.new(f'and i64 {left}, {-TUNING.top_k_vector_elements}')}")
    loop = w.open_loop(end, TUNING.top_k_vector_elements, room)
    key = wide.total(wide.load("%x", loop.counter))
    most = w.new(f"load {kind}, ptr {limit}, align {keys.bits // 8}")
    alone = w.new(f"insertelement {wide.kind} poison, {kind} {most}, i64 0")
    picks = f"<{TUNING.top_k_vector_elements} x i32> zeroinitializer"
    spread = w.new(f"shufflevector {wide.kind} {alone}, {wide.kind} poison, {picks}")
    less = w.new(f"icmp ult {wide.kind} {key}, {spread}")
    flags = w.new(f"bitcast <{TUNING.top_k_vector_elements} x i1> {less} to {MASK}")
    some, on = w.label(), w.label()
    w.branch(w.new(f"icmp ne {MASK} {flags}, 0"), some, on)
    w.start_block(some)
    take = f"call void @{name}.take(ptr %x, ptr %a, ptr %b"
    w.line(f"{take}, i64 {loop.counter}, {MASK} {flags}, {given})")
    w.jump(on)
    w.start_block(on)
    w.close_loop(loop)
    rest = w.new(f"trunc i64 {w.new(f'sub i64 %n, {end}')} to {MASK}")
    bit = w.new(f"shl {MASK} 1, {rest}")
    w.line(f"{take}, i64 {end}, {MASK} {w.new(f'sub {MASK} {bit}, 1')}, {given})")
    w.line(f"call void @{name}.best(ptr %a, ptr %b, {given})")
    w.line("ret void")


def _take(w: FunctionBuilder, name: str, keys: Keys, wide: Keys) -> None:
    """Of the elements whose bits are on, those that are less than the limit join the candidates."""
    kind, words, flags = (
        f"i{keys.bits}",
        f"i{2 * half_of(keys)}",
        f"{MASK}",
    )
    room = _room(w, "%count")
    before = w.block
    head, body, joins, full, on, done = (w.label() for _ in range(6))
    w.jump(head)
    w.start_block(head)
    w.line(f"%left = phi {flags} [ %lanes, %{before} ], [ %others, %{on} ]")
    w.branch(w.new(f"icmp ne {flags} %left, 0"), body, done)
    w.start_block(body)
    w.declare(f"{flags} @llvm.cttz.{flags}({flags}, i1)")
    lane = w.new(f"call {flags} @llvm.cttz.{flags}({flags} %left, i1 true)")
    w.line(f"%others = and {flags} %left, {w.new(f'sub {flags} %left, 1')}")
    at = w.new(f"add i64 %from, {w.new(f'zext {flags} {lane} to i64')}")
    key = keys.total(keys.load("%x", at))
    most = w.new(f"load {kind}, ptr %limit, align {keys.bits // 8}")
    w.branch(w.new(f"icmp ult {kind} {key}, {most}"), joins, on)
    w.start_block(joins)
    word = word_of(w, keys, key, at)
    alone, waits = w.label(), w.label()
    w.branch(w.new(f"icmp sle i64 %count, {TUNING.top_k_inserted_words}"), alone, waits)
    w.start_block(alone)
    settle(w, 2 * half_of(keys), "%count", word)
    _limit(w, keys)
    w.jump(on)
    w.start_block(waits)
    have = w.new("load i64, ptr %have, align 8")
    w.line(f"store {words} {word}, ptr {element(w, words, '%a', have)}, align 8")
    more = w.new(f"add i64 {have}, 1")
    w.line(f"store i64 {more}, ptr %have, align 8")
    w.branch(w.new(f"icmp eq i64 {more}, {room}"), full, on)
    w.start_block(full)
    w.line(f"call void @{name}.best(ptr %a, ptr %b, i64 %count, ptr %have, ptr %limit)")
    w.jump(on)
    w.start_block(on)
    w.jump(head)
    w.start_block(done)
    w.line("ret void")


def _best(w: FunctionBuilder, name: str, keys: Keys, wide: Keys) -> None:
    """The best candidates stay, in order."""
    half = half_of(keys)
    have = w.new("load i64, ptr %have, align 8")
    w.line(f"call void @sort.u{2 * half}.{half}(ptr %a, ptr %b, i64 {have})")
    _limit(w, keys)
    w.line("store i64 %count, ptr %have, align 8")
    w.line("ret void")


def _limit(w: FunctionBuilder, keys: Keys) -> None:
    """The last of the best is the new limit. An element as great would come behind it: its position
    is greater."""
    half = half_of(keys)
    words = f"i{2 * half}"
    last = element(w, words, "%a", w.new("sub i64 %count, 1"))
    word = w.new(f"load {words}, ptr {last}, align 8")
    key = w.new(f"trunc {words} {w.new(f'lshr {words} {word}, {half}')} to i{keys.bits}")
    w.line(f"store i{keys.bits} {key}, ptr %limit, align {keys.bits // 8}")
