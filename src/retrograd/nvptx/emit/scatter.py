"""Scatters without atomic operations: updates are sorted by their place, each place takes its own
in order. So the order of a sum is that of a CPU, whatever the threads do."""

from __future__ import annotations

from retrograd.codegen import types
from retrograd.codegen.emit.compensated_sum import more, settled
from retrograd.codegen.emit.elementwise import ELEMENTWISE
from retrograd.codegen.emit.loops import Carried, emit_loops
from retrograd.codegen.emit.reduce import combined_by
from retrograd.codegen.op_builder import OpBuilder
from retrograd.ir import float64, product
from retrograd.nvptx.emit.launch import Launches, Scratch
from retrograd.nvptx.emit.module import DeviceModule
from retrograd.nvptx.emit.sort import filled, place, sorted_words, words_of
from retrograd.nvptx.emit.thread_emitter import ThreadEmitter
from retrograd.ops.numerics.compensated_sum import BLOCK
from retrograd.schedule.loop_nest import BlockedScatter, ScatterNest


def scatter(module: DeviceModule, nest: ScatterNest) -> list[Launches]:
    """Words of the place and the number of each update; sorted; then a thread for each element of
    the update that comes first to its place, and all that come after it."""
    own, rest = nest.loops[: nest.updates], nest.loops[nest.updates :]
    count = product(own)
    words = words_of(1, count)

    def word(w: ThreadEmitter, _: str, number: str) -> str:
        at = _Update(w, nest, number, ["0"] * len(rest)).place
        return w.new(f"or i64 {w.new(f'shl i64 {at}, 32')}, {number}")

    return [
        filled(module, words, 1, count, word),
        sorted_words(module, words, 1, count),
        _segments(module, nest, words),
    ]


class _Update:
    """An update, by its number, and an element of it: where it goes, and its value."""

    def __init__(
        self, w: ThreadEmitter, nest: ScatterNest, number: str, element: list[str]
    ) -> None:
        (store,) = nest.stores
        own = w.unravel(number, [w.size(n) for n in nest.loops[: nest.updates]])
        w.fixed = dict(enumerate([*own, *element]))
        w.begin(nest)

        def inside(_: Carried) -> Carried:
            self.place = w.scalar(store.offset)
            self.value = w.scalar(store.value)
            return []

        emit_loops(w, 0, len(nest.loops), inside)


def _segments(module: DeviceModule, nest: ScatterNest, words: Scratch) -> Launches:
    w = module.emitter()
    own, rest = nest.loops[: nest.updates], nest.loops[nest.updates :]
    count = product(own)
    first, *element = w.spread([count, *rest])
    last = w.new(f"sub i64 {w.size(count)}, 1")

    def key(at: str) -> tuple[str, str]:
        """The place and the number of an update."""
        word = w.new(f"load i64, ptr {place(w, words, at)}, align 8")
        return w.new(f"lshr i64 {word}, 32"), w.new(f"and i64 {word}, {2**32 - 1}")

    here, number = key(first)
    w.declare("i64 @llvm.smax.i64(i64, i64)")
    w.declare("i64 @llvm.smin.i64(i64, i64)")
    before = w.new(f"call i64 @llvm.smax.i64(i64 {w.new(f'sub i64 {first}, 1')}, i64 0)")
    begins = w.new(f"icmp ne i64 {key(before)[0]}, {here}")
    w.leave_unless(w.new(f"or i1 {begins}, {w.new(f'icmp eq i64 {first}, 0')}"))
    (store,) = nest.stores
    pointer = w.address(store.buffer, _Update(w, nest, number, element).place)
    meeting = (_BlockedMeeting if isinstance(nest, BlockedScatter) else _Meeting)(w, nest)

    def goes_on(values: list[str]) -> str:
        near = w.new(f"call i64 @llvm.smin.i64(i64 {values[0]}, i64 {last})")
        same = w.new(f"icmp eq i64 {key(near)[0]}, {here}")
        return w.new(f"and i1 {same}, {w.new(f'icmp sle i64 {values[0]}, {last}')}")

    def take(values: list[str]) -> list[str]:
        at, *carried = values
        update = _Update(w, nest, key(at)[1], element).value
        return [w.new(f"add nuw nsw i64 {at}, 1"), *meeting.taken(carried, update)]

    _, *carried = w.repeat_while([("i64", first), *meeting.start(pointer)], goes_on, take)
    types.store(w, meeting.end(carried), pointer, store.buffer.type.dtype)
    return module.over(w, [count, *rest])


class _Meeting:
    """Updates meet what is there one after the other."""

    def __init__(self, w: ThreadEmitter, nest: ScatterNest) -> None:
        self.w = w
        self.dtype = nest.stores[0].buffer.type.dtype
        self.kind = types.register_type(self.dtype)
        self.combine = combined_by(nest)

    def start(self, pointer: str) -> list[tuple[str, str]]:
        return [(self.kind, types.load(self.w, pointer, self.dtype))]

    def taken(self, carried: list[str], update: str) -> list[str]:
        if self.combine is None:
            return [update]
        at = OpBuilder(self.w, self.dtype)
        new = ELEMENTWISE[self.combine.name](at, carried[0], update)
        return [types.rounded(self.w, new, self.dtype)]

    def end(self, carried: list[str]) -> str:
        return carried[0]


class _BlockedMeeting(_Meeting):
    """Updates are added in blocks, and the totals of full ones in twice the precision."""

    def start(self, pointer: str) -> list[tuple[str, str]]:
        totals = 2 if self.dtype is float64 else 1
        nothing = types.literal(-0.0, float64)
        return [*super().start(pointer), ("i64", "0"), *[("double", nothing)] * totals]

    def taken(self, carried: list[str], update: str) -> list[str]:
        w, (block, count, *totals) = self.w, carried
        block = OpBuilder(w, self.dtype).instruction("fadd", block, update)
        count = w.new(f"add nuw nsw i64 {count}, 1")
        full = w.new(f"icmp eq i64 {w.new(f'and i64 {count}, {BLOCK - 1}')}, 0")
        first = w.new(f"icmp eq i64 {count}, {BLOCK}")
        nothing = types.literal(-0.0, float64)
        after = self._more(totals, block)
        begin = [types.convert(w, block, self.dtype, float64), nothing]
        kept = []
        for old, new, start in zip(totals, after, begin, strict=False):
            new = w.new(f"select i1 {first}, double {start}, double {new}")
            kept.append(w.new(f"select i1 {full}, double {new}, double {old}"))
        none = types.literal(-0.0, self.dtype)
        block = w.new(f"select i1 {full}, {self.kind} {none}, {self.kind} {block}")
        return [block, count, *kept]

    def _more(self, totals: list[str], block: str) -> list[str]:
        at = OpBuilder(self.w, float64)
        block = types.convert(self.w, block, self.dtype, float64)
        if len(totals) == 1:
            return [at.instruction("fadd", totals[0], block)]
        return list(more(at, totals[0], totals[1], block))

    def end(self, carried: list[str]) -> str:
        w, (block, count, *totals) = self.w, carried
        after = self._more(totals, block)
        total = after[0] if len(after) == 1 else settled(OpBuilder(w, float64), *after)
        total = types.convert(w, total, float64, self.dtype)
        some = w.new(f"icmp sge i64 {count}, {BLOCK}")
        return w.new(f"select i1 {some}, {self.kind} {total}, {self.kind} {block}")
