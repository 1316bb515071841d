"""How each op reads its inputs: every node as a function from an index to a scalar.

`IndexMapper.read(node, index)` gives the value of a node's element inside of a body. Stored nodes
are loaded; the others are computed from their inputs by the rule of their op: an elementwise op
reads at the same index, a permutation at the permuted one, and so on. A rule is a generator: it
yields what it needs, `(node, index, guard)`, and is sent the value. This keeps deep expressions off
Python's call stack.

A guard is a condition outside of which the value is not used (next to a padding, say). Loads under
a guard that does not hold read another element instead of one that may not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any

import numpy as np

from retrograd.errors import BackendError
from retrograd.ir import Dim, Node, entering, int64, uint32
from retrograd.ops.elementwise import ELEMENTWISE, Cast
from retrograd.ops.index import Gather
from retrograd.ops.leaf import Constant, Iota, SizeOf
from retrograd.ops.random.threefry import PARITY, ROTATIONS, RandomBits
from retrograd.ops.shape import Concat, Expand, Flip, Pad, Permute, Reshape, Slice
from retrograd.ops.windows import Windows
from retrograd.passes.constants import leaf_value
from retrograd.passes.lowering.axis_groups import axis_groups, reshape_root
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.ssa import Index, ScalarBlock, SSAOp, SSAValue

Request = tuple[Node, Index, "SSAValue | None"]
Steps = Generator[Request, SSAValue, SSAValue]
Rule = Callable[["IndexMapper", Node, Index, "SSAValue | None"], Steps]
RULES: dict[str, Rule] = {}
reads = entering(RULES)


class IndexMapper:
    """Reads elements of nodes inside one body."""

    def __init__(self, body: ScalarBlock, stored: Mapping[Node, Buffer]) -> None:
        self.body = body
        self.stored = stored
        self._known: dict[tuple[Any, ...], SSAValue] = {}

    def read(self, node: Node, index: Index, guard: SSAValue | None = None) -> SSAValue:
        """The value of an element."""
        found = self._at_hand(node, index, guard)
        return self._run(self._steps(node, index, guard, load=True)) if found is None else found

    def compute(self, node: Node, index: Index) -> SSAValue:
        """The value of an element of a stored node, from its inputs. What is read of it later in
        this body, at the same index, is this value."""
        return self._run(self._steps(node, index, None, load=False))

    def _run(self, first: Steps) -> SSAValue:
        stack, sent = [first], None
        while True:
            try:
                request = stack[-1].send(sent)  # type: ignore[arg-type]
            except StopIteration as done:
                stack.pop()
                sent = done.value
                if not stack:
                    return sent
                continue
            sent = self._at_hand(*request)
            if sent is None:
                stack.append(self._steps(*request, load=True))

    def _at_hand(self, node: Node, index: Index, guard: SSAValue | None) -> SSAValue | None:
        return self._known.get((node, *map(id, index), id(guard)))

    def _steps(self, node: Node, index: Index, guard: SSAValue | None, load: bool) -> Steps:
        key = (node, *map(id, index), id(guard))
        zero = self.body.size(0)
        index = tuple([zero if d == 1 else i for i, d in zip(index, node.shape, strict=True)])
        buffer = self.stored.get(node) if load else None
        if buffer is None and isinstance(node.prim, Reshape):
            buffer = self.stored.get(reshape_root(node.inputs[0], self.stored))
        if buffer is not None:
            value = self._load(buffer, index, node, guard)
        else:
            value = yield from rule_of(node)(self, node, index, guard)
        self._known[key] = value
        return value

    def _load(self, buffer: Buffer, index: Index, node: Node, guard: SSAValue | None) -> SSAValue:
        if guard is None:
            offset = self.body.offset(index, node.shape)
        else:
            offset = self.body.guarded(index, node.shape, guard)
        return self.body.load(buffer, offset, node.dtype)


def rule_of(node: Node) -> Rule:
    """The rule of a node's op; an op without one is an error that names it."""
    rule = RULES.get(node.op)
    if rule is None:
        if node.op not in ELEMENTWISE:
            raise BackendError(f"the kernel plan knows no way to compute {node.describe()}")
        return elementwise
    return rule


def elementwise(r: IndexMapper, node: Node, index: Index, guard: SSAValue | None) -> Steps:
    args = []
    for x in node.inputs:
        args.append((yield x, index, guard))
    return r.body.make(node.op, args, node.dtype)


def store(r: IndexMapper, node: Node, index: Index, guard: SSAValue | None) -> Steps:
    return (yield node.inputs[0], index, guard)


@reads(Constant)
def constant(r: IndexMapper, node: Node, index: Index, guard: SSAValue | None) -> Steps:
    return r.body.const(leaf_value(node).reshape(()), node.dtype)
    yield  # a generator like every rule


@reads(Iota)
def iota(r: IndexMapper, node: Node, index: Index, guard: SSAValue | None) -> Steps:
    return r.body.make(SSAOp.CAST, (index[node.attrs["axis"]],), node.dtype)
    yield


@reads(SizeOf)
def size_of(r: IndexMapper, node: Node, index: Index, guard: SSAValue | None) -> Steps:
    return r.body.make(SSAOp.CAST, (r.body.size(node.attrs["size"]),), node.dtype)
    yield


@reads(Cast)
def cast(r: IndexMapper, node: Node, index: Index, guard: SSAValue | None) -> Steps:
    x = yield node.inputs[0], index, guard
    return r.body.make(SSAOp.CAST, (x,), node.dtype)


@reads(Expand)
def expand(r: IndexMapper, node: Node, index: Index, guard: SSAValue | None) -> Steps:
    new = node.attrs["axes"]
    kept = tuple([i for axis, i in enumerate(index) if axis not in new])
    return (yield node.inputs[0], kept, guard)


@reads(Permute)
def permute(r: IndexMapper, node: Node, index: Index, guard: SSAValue | None) -> Steps:
    source = list(index)
    for i, p in zip(index, node.attrs["perm"], strict=True):
        source[p] = i
    return (yield node.inputs[0], tuple(source), guard)


@reads(Slice)
def slice_(r: IndexMapper, node: Node, index: Index, guard: SSAValue | None) -> Steps:
    b, a = r.body, node.attrs
    source = [
        b.add(b.mul(i, b.size(step)), b.size(start))
        for i, start, step in zip(index, a["starts"], a["steps"], strict=True)
    ]
    return (yield node.inputs[0], tuple(source), guard)


@reads(Flip)
def flip(r: IndexMapper, node: Node, index: Index, guard: SSAValue | None) -> Steps:
    b, axes = r.body, node.attrs["axes"]
    source = [
        b.sub(b.size(d - 1), i) if axis in axes else i
        for axis, (i, d) in enumerate(zip(index, node.shape, strict=True))
    ]
    return (yield node.inputs[0], tuple(source), guard)


@reads(Pad)
def pad(r: IndexMapper, node: Node, index: Index, guard: SSAValue | None) -> Steps:
    (x, fill), b, a = node.inputs, r.body, node.attrs
    source, inside = [], None
    for i, d, low, high, gap in zip(
        index, x.shape, a["low"], a["high"], a["interior"], strict=True
    ):
        j = b.sub(i, b.size(low))
        if low != 0:
            inside = b.both(inside, b.at_least(i, b.size(low)))
        if high != 0 or (gap and isinstance(d, Dim)) or d == 0:
            reach = d if d == 0 else d + (d - 1) * gap
            inside = b.both(inside, b.less(j, b.size(reach)))
        if gap:
            on_grid = b.less(b.mod(j, b.size(gap + 1)), b.size(1))
            inside = b.both(inside, on_grid)
            j = b.div(j, b.size(gap + 1))
        source.append(j)
    value = yield x, tuple(source), b.both(guard, inside)
    if inside is None:
        return value
    other = yield fill, (), guard
    return b.make("select", (inside, value, other), node.dtype)


@reads(Windows)
def windows(r: IndexMapper, node: Node, index: Index, guard: SSAValue | None) -> Steps:
    b, a = r.body, node.attrs
    rank = len(a["sizes"])
    lead = len(index) - 2 * rank
    source = [
        b.add(b.mul(o, b.size(stride)), b.mul(k, b.size(gap)))
        for o, k, stride, gap in zip(
            index[lead : lead + rank], index[lead + rank :], a["strides"], a["dilations"],
            strict=True,
        )
    ]  # fmt: skip
    return (yield node.inputs[0], (*index[:lead], *source), guard)


@reads(Concat)
def concat(r: IndexMapper, node: Node, index: Index, guard: SSAValue | None) -> Steps:
    b, axis = r.body, node.attrs["axis"]
    start: int | Dim = 0
    at, result = index[axis], None
    for x in node.inputs:
        end = start + x.shape[axis]
        if x.shape[axis] != 0:
            before, after = b.less(at, b.size(end)), b.at_least(at, b.size(start))
            own = (*index[:axis], b.sub(at, b.size(start)), *index[axis + 1 :])
            value = yield x, own, b.both(guard, b.both(after, before))
            if result is None:
                result = value
            else:
                result = b.make("select", (after, value, result), node.dtype)
        start = end
    return result if result is not None else b.const(0, node.dtype)


@reads(Gather)
def gather(r: IndexMapper, node: Node, index: Index, guard: SSAValue | None) -> Steps:
    (x, position), a = node.inputs, node.attrs
    axis, shared = a["axis"], a["shared"]
    end = axis + position.type.rank - shared
    at = yield position, (*index[:shared], *index[axis:end]), guard
    if at.dtype is not int64:
        at = r.body.make(SSAOp.CAST, (at,), int64)
    return (yield x, (*index[:axis], at, *index[end:]), guard)


@reads(Reshape)
def reshape(r: IndexMapper, node: Node, index: Index, guard: SSAValue | None) -> Steps:
    (x,), b = node.inputs, r.body
    source: list[SSAValue] = []
    for outer, inner in axis_groups(node.shape, x.shape):
        own = [node.shape[i] for i in outer]
        position = b.offset([index[i] for i in outer], own)  # type: ignore[arg-type]
        source += b.unravelled(position, [x.shape[i] for i in inner])
    return (yield x, tuple(source), guard)


@reads(RandomBits)
def random_bits(r: IndexMapper, node: Node, index: Index, guard: SSAValue | None) -> Steps:
    """Threefry-2x32-20 of the key on the element's number; see `retrograd.ops.random.threefry`."""
    (key,), b, shape = node.inputs, r.body, node.attrs["shape"]
    lead, own = index[: key.type.rank - 1], index[key.type.rank - 1 :]
    k0 = yield key, (*lead, b.size(0)), guard
    k1 = yield key, (*lead, b.size(1)), guard

    def do(op: str, x: SSAValue, y: SSAValue) -> SSAValue:
        return b.make(op, (x, y), uint32)

    def number(n: int) -> SSAValue:
        return b.const(np.uint32(n), uint32)

    count = b.offset(own, shape)
    high = b.make("shift_right", (count, b.const(32, int64)), int64)
    x0, x1 = (b.make(SSAOp.CAST, (c,), uint32) for c in (count, high))
    keys = (k0, k1, do("bitwise_xor", do("bitwise_xor", k0, k1), number(PARITY)))
    x0, x1 = do("add", x0, keys[0]), do("add", x1, keys[1])
    for i in range(5):
        for turn in ROTATIONS[i % 2]:
            x0 = do("add", x0, x1)
            left, right = (
                do(f"shift_{way}", x1, number(n))
                for way, n in (("left", turn), ("right", 32 - turn))
            )
            x1 = do("bitwise_xor", do("bitwise_or", left, right), x0)
        x0 = do("add", x0, keys[(i + 1) % 3])
        x1 = do("add", do("add", x1, keys[(i + 2) % 3]), number(i + 1))
    return x0
