"""Sorting: words of a key and a position, by a bitonic network.

A word is 64 bits: 32 of a key above the position, so all words of a row differ and the sort is
stable. Keys of 64 bits are sorted by their low half first, then by their high half. Rows are filled
up to a power of two with words that come last. Stages that reach no further than a block of threads
are done in the memory which these share, in one launch; each other step is a launch of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from retrograd.codegen import types
from retrograd.codegen.sort.keys import Keys
from retrograd.ir import Dim, evaluate, product
from retrograd.nvptx.emit.launch import Argument, Launch, Launches, Scratch, Sizes, Word
from retrograd.nvptx.emit.module import DeviceModule
from retrograd.nvptx.emit.thread_emitter import ThreadEmitter
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.loop_nest import ArgSortNest, SortNest

SHARED = 1024  # words in the memory that a block of threads shares; two for each thread
LAST = -1  # a word that comes after all others


def padded(n: int) -> int:
    """The length of a row in the network."""
    return 1 << max(n - 1, 0).bit_length()


def word_count(rows: int, n: int) -> int:
    """How many words the rows take."""
    return -(-rows * padded(n) // SHARED) * SHARED


def words_of(rows: int | Dim, n: int | Dim) -> Scratch:
    """Memory for the words of so many rows."""
    return Scratch(lambda sizes: 8 * word_count(evaluate(rows, sizes), evaluate(n, sizes)))


WordOf = Callable[[ThreadEmitter, str, str], str]


def filled(
    module: DeviceModule, words: Scratch, rows: int | Dim, n: int | Dim, word_of: WordOf
) -> Launches:
    """The launch that writes the words of rows: `word_of` writes that of a row and a position."""
    w = module.emitter()
    at, length = w.thread(), w.parameter(Word("length"))
    total = w.times(w.size(rows), length)
    row, position = w.new(f"udiv i64 {at}, {length}"), w.new(f"urem i64 {at}, {length}")
    own = w.new(f"icmp slt i64 {position}, {w.size(n)}")
    some = w.new(f"and i1 {own}, {w.new(f'icmp slt i64 {at}, {total}')}")
    (word,) = w.either_of(some, "i64", lambda: [word_of(w, row, position)], lambda: [str(LAST)])
    w.line(f"store i64 {word}, ptr {place(w, words, at)}, align 8")
    name, arguments = module.kernel(w)

    def launches(sizes: Sizes) -> list[Launch]:
        many, length = evaluate(rows, sizes), evaluate(n, sizes)
        threads = word_count(many, length)
        return [Launch(name, arguments, threads, {"length": padded(length)})] if threads else []

    return launches


def place(w: ThreadEmitter, words: Scratch, at: str) -> str:
    return w.new(f"getelementptr i64, ptr {w.parameter(words)}, i64 {at}")


def sorted_words(module: DeviceModule, words: Scratch, rows: int | Dim, n: int | Dim) -> Launches:
    """The launches that sort the words of each row."""
    near, near_arguments = _near(module, words)
    far, far_arguments = _far(module, words)
    half = SHARED // 2

    def launches(sizes: Sizes) -> Iterable[Launch]:
        many, length = evaluate(rows, sizes), padded(evaluate(n, sizes))
        threads = word_count(many, evaluate(n, sizes)) // 2
        if threads == 0 or length == 1:
            return

        def together(first: int, last: int) -> Launch:
            given = {"first": first, "last": last, "length": length}
            return Launch(near, near_arguments, threads, given, half)

        yield together(2, min(SHARED, length))
        size = 2 * SHARED
        while size <= length:
            step = size // 2
            while step > half:
                given = {"size": size, "step": step, "length": length}
                yield Launch(far, far_arguments, threads, given)
                step //= 2
            yield together(size, size)
            size *= 2

    return launches


def _exchange(
    w: ThreadEmitter, pair: str, size: str, step: str, where: Callable[[str], str], first: str,
    length: str,
) -> None:  # fmt: skip
    """Put a pair of words that lie `step` apart in order: ascending, but for every other part of
    so many words. `first` is the position of word 0 at `where`."""
    below = w.new(f"sub i64 {step}, 1")
    low = w.new(f"and i64 {pair}, {below}")
    high = w.new(f"shl i64 {w.new(f'sub i64 {pair}, {low}')}, 1")
    at = w.new(f"or i64 {high}, {low}")
    other = w.new(f"or i64 {at}, {step}")
    places = where(at), where(other)
    kind = "ptr addrspace(3)" if first != "0" else "ptr"
    a, b = (w.new(f"load i64, {kind} {p}, align 8") for p in places)
    inside = w.new(f"and i64 {w.new(f'add i64 {first}, {at}')}, {w.new(f'sub i64 {length}, 1')}")
    down = w.new(f"icmp ne i64 {w.new(f'and i64 {inside}, {size}')}, 0")
    turned = w.new(f"icmp ugt i64 {a}, {b}")
    swap = w.new(f"xor i1 {turned}, {down}")
    x = w.new(f"select i1 {swap}, i64 {b}, i64 {a}")
    y = w.new(f"select i1 {swap}, i64 {a}, i64 {b}")
    for value, p in ((x, places[0]), (y, places[1])):
        w.line(f"store i64 {value}, {kind} {p}, align 8")


def _far(module: DeviceModule, words: Scratch) -> tuple[str, tuple[Argument, ...]]:
    """The kernel of one step over the words in memory: a thread for each pair."""
    w = module.emitter()
    pair = w.thread()
    size, step, length = (w.parameter(Word(name)) for name in ("size", "step", "length"))
    _exchange(w, pair, size, step, lambda at: place(w, words, at), "0", length)
    return module.kernel(w)


def _near(module: DeviceModule, words: Scratch) -> tuple[str, tuple[Argument, ...]]:
    """The kernel of stages from the size `first` to `last`, each from the step on at which words of
    one block meet."""
    w = module.emitter()
    half, shared = SHARED // 2, "@sort.shared"
    module.declare(f"{shared} = internal addrspace(3) global [{SHARED} x i64] poison, align 16")
    first, last, length = (w.parameter(Word(name)) for name in ("first", "last", "length"))
    own = w.new(f"zext i32 {w.register('tid.x')} to i64")
    block = w.new(f"zext i32 {w.register('ctaid.x')} to i64")
    start = w.new(f"mul i64 {block}, {SHARED}")
    inside = [own, w.new(f"add i64 {own}, {half}")]

    def where(at: str) -> str:
        return w.new(f"getelementptr i64, ptr addrspace(3) {shared}, i64 {at}")

    outside = [place(w, words, w.new(f"add i64 {start}, {at}")) for at in inside]
    for at, p in zip(inside, outside, strict=True):
        x = w.new(f"load i64, ptr {p}, align 8")
        w.line(f"store i64 {x}, ptr addrspace(3) {where(at)}, align 8")

    def stage(values: list[str]) -> list[str]:
        (size,) = values
        w.declare("i64 @llvm.umin.i64(i64, i64)")
        widest = w.new(f"call i64 @llvm.umin.i64(i64 {w.new(f'lshr i64 {size}, 1')}, i64 {half})")

        def step(values: list[str]) -> list[str]:
            w.barrier()
            _exchange(w, own, size, values[0], where, start, length)
            return [w.new(f"lshr i64 {values[0]}, 1")]

        w.repeat_while([("i64", widest)], lambda v: w.new(f"icmp ne i64 {v[0]}, 0"), step)
        return [w.new(f"shl i64 {size}, 1")]

    w.repeat_while([("i64", first)], lambda v: w.new(f"icmp ule i64 {v[0]}, {last}"), stage)
    w.barrier()
    for at, p in zip(inside, outside, strict=True):
        x = w.new(f"load i64, ptr addrspace(3) {where(at)}, align 8")
        w.line(f"store i64 {x}, ptr {p}, align 8")
    return module.kernel(w, half)


# -- rows ------------------------------------------------------------------------------------------
def ordered(
    module: DeviceModule, source: Buffer, descending: bool, rows: int | Dim, n: int | Dim
) -> tuple[Scratch, list[Launches]]:
    """Words whose low halves are the positions of the elements of rows in order, and the launches
    that make them."""
    dtype = source.type.dtype
    wide = dtype.itemsize == 8
    words = words_of(rows, n)

    def key(w: ThreadEmitter, row: str, position: str) -> str:
        keys = Keys(w, dtype, descending)
        at = w.new(f"add i64 {w.times(row, w.size(n))}, {position}")
        found = keys.total(keys.load(w.parameter(source), at))
        return found if wide else w.new(f"zext i{keys.bits} {found} to i64")

    def word(w: ThreadEmitter, part: str, position: str) -> str:
        return w.new(f"or i64 {w.new(f'shl i64 {part}, 32')}, {position}")

    if not wide:
        first = filled(module, words, rows, n, lambda w, r, p: word(w, key(w, r, p), p))
        return words, [first, sorted_words(module, words, rows, n)]
    low = words_of(rows, n)

    def of_low(w: ThreadEmitter, row: str, position: str) -> str:
        return word(w, key(w, row, position), position)

    def of_high(w: ThreadEmitter, row: str, position: str) -> str:
        at = before(w, row, position)
        return word(w, w.new(f"lshr i64 {key(w, row, at)}, 32"), position)

    def before(w: ThreadEmitter, row: str, position: str) -> str:
        """The position that is at this place in the order of the low halves."""
        return position_at(w, low, row, position)

    # What is found at a place is known once the words are sorted: the two orders become one.
    both = words_of(rows, n)

    def joined(w: ThreadEmitter, row: str, position: str) -> str:
        return before(w, row, position_at(w, words, row, position))

    return both, [
        filled(module, low, rows, n, of_low),
        sorted_words(module, low, rows, n),
        filled(module, words, rows, n, of_high),
        sorted_words(module, words, rows, n),
        filled(module, both, rows, n, joined),
    ]


def position_at(w: ThreadEmitter, words: Scratch, row: str, place_: str) -> str:
    """The position in the word at a place of a row."""
    start = w.new(f"mul i64 {row}, {w.parameter(Word('length'))}")
    at = w.new(f"add i64 {start}, {place_}")
    found = w.new(f"load i64, ptr {place(w, words, at)}, align 8")
    return w.new(f"and i64 {found}, {2**32 - 1}")


def per_element(
    module: DeviceModule,
    rows: int | Dim,
    count: int | Dim,
    n: int | Dim,
    write: Callable[[ThreadEmitter, str, str], None],
) -> Launches:
    """A thread for each of the first `count` elements of rows of `n`."""
    w = module.emitter()
    row, position = w.spread([rows, count])
    write(w, row, position)
    name, arguments = module.kernel(w)

    def launches(sizes: Sizes) -> list[Launch]:
        threads, length = evaluate(product((rows, count)), sizes), padded(evaluate(n, sizes))
        return [Launch(name, arguments, threads, {"length": length})] if threads else []

    return launches


def argsort(module: DeviceModule, nest: ArgSortNest) -> list[Launches]:
    """Write the positions of the first elements of rows in order."""
    rows, n, count = product(nest.loops), nest.n.attr, nest.count.attr
    out = nest.stores[0].buffer
    words, launches = ordered(module, nest.source, nest.descending, rows, n)

    def write(w: ThreadEmitter, row: str, position: str) -> None:
        at = w.new(f"add i64 {w.times(row, w.size(count))}, {position}")
        found = position_at(w, words, row, position)
        w.line(f"store i64 {found}, ptr {w.address(out, at)}, align 8")

    return [*launches, per_element(module, rows, count, n, write)]


def sort(module: DeviceModule, nest: SortNest) -> list[Launches]:
    """Rows in order, in the memory to work in, and copied back."""
    rows, n = product(nest.loops), nest.n.attr
    out, (spare,) = nest.stores[0].buffer, nest.work
    words, launches = ordered(module, out, nest.descending, rows, n)
    kind = types.memory_type(out.type.dtype)

    def gather(w: ThreadEmitter, row: str, position: str) -> None:
        start = w.times(row, w.size(n))
        at = w.new(f"add i64 {start}, {position_at(w, words, row, position)}")
        x = w.new(f"load {kind}, ptr {w.address(out, at)}")
        to = w.new(f"add i64 {start}, {position}")
        w.line(f"store {kind} {x}, ptr {w.address(spare, to)}")

    def back(w: ThreadEmitter, row: str, position: str) -> None:
        at = w.new(f"add i64 {w.times(row, w.size(n))}, {position}")
        x = w.new(f"load {kind}, ptr {w.address(spare, at)}")
        w.line(f"store {kind} {x}, ptr {w.address(out, at)}")

    tail = [per_element(module, rows, n, n, f) for f in (gather, back)]
    return [*launches, *tail]
