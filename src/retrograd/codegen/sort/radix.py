"""Functions that sort words, as LLVM text; `sort.py` says how numbers become words.

A word is an unsigned integer. NumPy sorts those of 32 and 64 bits, but for many of them on CPUs on
which it is slow; others are sorted by insertion
where there are few, else by radix from the lowest digit to the highest, which skips digits in which
all words agree.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from retrograd.codegen.builder import FunctionBuilder
from retrograd.tuning import TUNING

# The functions of NumPy that sort, each for one dtype: `i32 (ptr start, i64 count, ptr ignored)`.
SORT = "rg_sort_"  # with the code of a dtype
DTYPES = {
    f"{SORT}{kind[0]}{bits}": np.dtype(f"{kind}{bits}")
    for kind in ("float", "int", "uint")
    for bits in (32, 64)
}
DIGITS = 1 << TUNING.radix_bits


def sorted_by_numpy(
    w: FunctionBuilder, kind: str, count: str, slow: bool, other: Callable[[], None]
) -> None:
    """Sort numbers at `a` in place, by NumPy where it does that for their dtype, the `other` way
    where not; also where there are many, if NumPy is `slow`."""
    symbol = f"{SORT}{kind}"
    if symbol not in DTYPES:
        other()
        return
    few, many, on = w.label(), w.label(), w.label()
    if slow:
        most = TUNING.numpy_sort_elements
        w.branch(w.new(f"icmp sle i64 {count}, {most}"), few, many)
        w.start_block(few)
    w.declare(f"i32 @{symbol}(ptr, i64, ptr)")
    w.line(f"call i32 @{symbol}(ptr %a, i64 {count}, ptr null)")
    if slow:
        w.jump(on)
        w.start_block(many)
        other()
        w.jump(on)
        w.start_block(on)


@cache
def sorter(bits: int, low: int, slow: bool = False) -> tuple[str, ...]:
    """The declarations of `@sort.uBITS.LOW(a, b, n)`, which sorts `n` words at `a` by their bits
    from `low` on, and of what it calls; `b` is as much memory to work in. The bits below `low` are
    in order already, or the same. `slow`: whether NumPy is, on the CPU at hand."""
    name = f"sort.u{bits}.{low}"
    found: dict[str, None] = {}

    def define(own: str, parameters: str, w: FunctionBuilder) -> None:
        head = f"define internal void @{name}{own}({parameters}) noinline nounwind"
        found[f"{head} {{\n{w.text()}\n}}"] = None

    w = FunctionBuilder(lambda text: found.setdefault(text))

    def by_radix() -> None:
        few, many, on = w.label(), w.label(), w.label()
        w.branch(w.new(f"icmp sle i64 %n, {TUNING.insertion_sort_words}"), few, many)
        for label, own in ((few, "few(ptr %a, i64 %n)"), (many, "many(ptr %a, ptr %b, i64 %n)")):
            w.start_block(label)
            w.line(f"call void @{name}.{own}")
            w.jump(on)
        w.start_block(on)
        define(".few", "ptr %a, i64 %n", _insertion(bits))
        define(".many", "ptr %a, ptr %b, i64 %n", _radix(bits, low))

    sorted_by_numpy(w, f"u{bits}", "%n", slow, by_radix)
    w.line("ret void")
    define("", "ptr %a, ptr %b, i64 %n", w)
    return tuple(found)


def _insertion(bits: int) -> FunctionBuilder:
    """Each word moves in front of those before it that are greater."""
    w, kind = FunctionBuilder(lambda _: None), f"i{bits}"
    loop = w.open_loop("%n", 1, "1")
    word = w.new(f"load {kind}, ptr {element(w, kind, '%a', loop.counter)}, align {align(bits)}")
    settle(w, bits, loop.counter, word)
    w.close_loop(loop)
    w.line("ret void")
    return w


def settle(w: FunctionBuilder, bits: int, end: str, word: str) -> None:
    """Put a word among the sorted ones at `a` in front of an end: those greater move up by one."""
    kind, before = f"i{bits}", w.block
    head, check, move, done = (w.label() for _ in range(4))
    at, down = f"%{head}.at", f"%{head}.down"
    w.jump(head)
    w.start_block(head)
    w.line(f"{at} = phi i64 [ {end}, %{before} ], [ {down}, %{move} ]")
    w.branch(w.new(f"icmp sgt i64 {at}, 0"), check, done)
    w.start_block(check)
    w.line(f"{down} = add nsw i64 {at}, -1")
    other = w.new(f"load {kind}, ptr {element(w, kind, '%a', down)}, align {align(bits)}")
    w.branch(w.new(f"icmp ugt {kind} {other}, {word}"), move, done)
    w.start_block(move)
    w.line(f"store {kind} {other}, ptr {element(w, kind, '%a', at)}, align {align(bits)}")
    w.jump(head)
    w.start_block(done)
    w.line(f"store {kind} {word}, ptr {element(w, kind, '%a', at)}, align {align(bits)}")


def _radix(bits: int, low: int) -> FunctionBuilder:
    w, kind = FunctionBuilder(lambda _: None), f"i{bits}"
    passes = (bits - low) // TUNING.radix_bits
    table = w.reserve(f"[{passes * DIGITS} x i64]")
    loop = w.open_loop(str(passes * DIGITS), 8)
    place = w.new(f"getelementptr i64, ptr {table}, i64 {loop.counter}")
    w.line(f"store <8 x i64> zeroinitializer, ptr {place}, align 64")
    w.close_loop(loop)
    loop = w.open_loop("%n")
    word = w.new(f"load {kind}, ptr {element(w, kind, '%a', loop.counter)}, align {align(bits)}")
    for p in range(passes):
        place = _counter(w, table, p, _digit(w, bits, word, low + p * TUNING.radix_bits))
        count = w.new(f"load i64, ptr {place}, align 8")
        w.line(f"store i64 {w.new(f'add nuw i64 {count}, 1')}, ptr {place}, align 8")
    w.close_loop(loop)
    here, there = "%a", "%b"
    for p in range(passes):
        here, there = _pass(w, bits, low, p, table, here, there)
    moved, done = w.label(), w.label()
    w.branch(w.new(f"icmp eq ptr {here}, %a"), done, moved)
    w.start_block(moved)
    loop = w.open_loop("%n")
    word = w.new(f"load {kind}, ptr {element(w, kind, '%b', loop.counter)}, align {align(bits)}")
    w.line(f"store {kind} {word}, ptr {element(w, kind, '%a', loop.counter)}, align {align(bits)}")
    w.close_loop(loop)
    w.jump(done)
    w.start_block(done)
    w.line("ret void")
    return w


def _pass(
    w: FunctionBuilder, bits: int, low: int, p: int, table: str, here: str, there: str
) -> tuple[str, str]:
    """Move the words to their places by one digit, unless they agree in it; returns where they are
    then, and the other memory."""
    kind = f"i{bits}"
    move, end = w.label(), w.label()
    word = w.new(f"load {kind}, ptr {here}, align {align(bits)}")
    place = _counter(w, table, p, _digit(w, bits, word, low + p * TUNING.radix_bits))
    alike = w.new(f"load i64, ptr {place}, align 8")
    before = w.block
    w.branch(w.new(f"icmp eq i64 {alike}, %n"), end, move)
    w.start_block(move)
    loop = w.open_loop(str(DIGITS), 1, "0", [("i64", "0")])
    place = _counter(w, table, p, loop.counter)
    count = w.new(f"load i64, ptr {place}, align 8")
    w.line(f"store i64 {loop.values[0]}, ptr {place}, align 8")
    w.close_loop(loop, [w.new(f"add nuw i64 {loop.values[0]}, {count}")])
    loop = w.open_loop("%n")
    word = w.new(f"load {kind}, ptr {element(w, kind, here, loop.counter)}, align {align(bits)}")
    place = _counter(w, table, p, _digit(w, bits, word, low + p * TUNING.radix_bits))
    at = w.new(f"load i64, ptr {place}, align 8")
    w.line(f"store {kind} {word}, ptr {element(w, kind, there, at)}, align {align(bits)}")
    w.line(f"store i64 {w.new(f'add nuw i64 {at}, 1')}, ptr {place}, align 8")
    w.close_loop(loop)
    after = w.block
    w.jump(end)
    w.start_block(end)
    pairs = ((here, there), (there, here))
    now = [w.new(f"phi ptr [ {same}, %{before} ], [ {new}, %{after} ]") for same, new in pairs]
    return now[0], now[1]


def _digit(w: FunctionBuilder, bits: int, word: str, shift: int) -> str:
    """A digit of a word, as i64."""
    kind = f"i{bits}"
    if shift:
        word = w.new(f"lshr {kind} {word}, {shift}")
    if bits > 64:
        word = w.new(f"trunc {kind} {word} to i64")
    elif bits < 64:
        word = w.new(f"zext {kind} {word} to i64")
    return w.new(f"and i64 {word}, {DIGITS - 1}")


def _counter(w: FunctionBuilder, table: str, p: int, digit: str) -> str:
    row = w.new(f"getelementptr i64, ptr {table}, i64 {p * DIGITS}")
    return w.new(f"getelementptr i64, ptr {row}, i64 {digit}")


def element(w: FunctionBuilder, kind: str, base: str, at: str) -> str:
    """The address of an element."""
    return w.new(f"getelementptr {kind}, ptr {base}, i64 {at}")


def align(bits: int) -> int:
    """Bytes to which words in memory are aligned."""
    return min(bits // 8, 8)
