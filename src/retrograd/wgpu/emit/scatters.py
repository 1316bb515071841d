"""Scatters: updates that go to the same place meet in order, without atomics.

The places of the updates are sorted, those of equal place in their order (`sort_order.py`), so that
each place has a segment of its own. The sorted updates are cut into runs. What of a run belongs to
one place is combined by one invocation (for each element of a row of updates) with what is there,
unless its segment goes on in the next run, or comes from the one before: then it is kept, and a
second dispatch joins what there is of it. Sums of floats are kept in twice the precision. Where
products of floats are rounded as they come, and a replacement needs the last update only, runs are
single updates, and whoever has the first of a segment goes along it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt

from retrograd.ir import TensorType, product, uint32
from retrograd.ops import elementwise as el
from retrograd.ops.index import Scatter
from retrograd.ops.numerics.compensated_sum import BLOCK
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.loop_nest import ScatterNest
from retrograd.wgpu.dispatch import Dispatch, EmitContext, emits_nest
from retrograd.wgpu.emit.maps import counters_of, number_of_points
from retrograd.wgpu.emit.reductions import combined_by
from retrograd.wgpu.emit.sort_order import order_of
from retrograd.wgpu.emit.totals import Total, Words, assign, sum_of_floats, variables
from retrograd.wgpu.scalar import Body
from retrograd.wgpu.shader_writer import ShaderWriter

LEAST_RUN = 16  # updates


@emits_nest(ScatterNest)
def scatter(nest: ScatterNest, context: EmitContext) -> list[Dispatch]:
    """Updates meet what is there."""
    node = context.kernel.nodes[0]
    assert isinstance(node.prim, Scatter)
    x, position, updates = node.inputs
    axis = node.attrs["axis"]
    end = axis + position.type.rank - node.attrs["shared"]
    depth = sum(d != 1 for d in updates.shape[:end])
    count = number_of_points(nest.loops[:depth], context)
    width = number_of_points(nest.loops[depth:], context)
    if count * width == 0:
        return []
    inner = context.value(product(x.shape[axis + 1 :]))
    places = context.value(product(x.shape[: axis + 1]))
    s = _Scatter(nest, context, depth, count, width)
    if count <= BLOCK:
        return [s.in_order()]
    keys = context.scratch(TensorType(uint32, (1, count)))
    found, order = order_of(context, [keys], [places.bit_length()], 1, count)
    found.insert(0, s.places(keys, inner))
    s.keys, s.order = keys, order
    combine = combined_by(nest)
    if combine is None or (combine is el.mul and nest.stores[0].buffer.type.dtype.is_float):
        return [*found, s.segments()]
    run = max(LEAST_RUN, isqrt(count))
    dtypes = s.total(ShaderWriter(context)).words
    runs = -(-count // run)
    heads, tails = (
        [context.scratch(TensorType(d, (runs, width))) for d in dtypes] for _ in range(2)
    )
    return [*found, s.runs(run, heads, tails), s.joined(run, heads, tails)]


@dataclass
class _Scatter:
    """`count` rows of updates, each of `width` elements; the loops of rows are the first `depth`.

    `keys` will have the place of each row, `order` the order of these."""

    nest: ScatterNest
    context: EmitContext
    depth: int
    count: int
    width: int
    keys: Buffer | None = None
    order: Buffer | None = None

    # -- what shaders have in common -----------------------------------------------------------
    def begin(self, invocations: int) -> tuple[ShaderWriter, Body]:
        w = ShaderWriter(self.context)
        w.line(f"if (at >= {invocations}i) {{ return; }}")
        return w, Body(w, self.nest)

    def inside(self, w: ShaderWriter, body: Body, element: str) -> None:
        """Say which element of a row an invocation is about."""
        rest, loops = element, self.nest.loops
        for k in range(len(loops) - 1, self.depth, -1):
            size = w.size(loops[k])
            body.counter(k, w.new(f"{rest} % {size}"))
            rest = w.new(f"{rest} / {size}")
        if self.depth < len(loops):
            body.counter(self.depth, rest)

    def row(self, w: ShaderWriter, body: Body, number: str) -> None:
        """Write the values of a row of updates."""
        counters_of(w, body, self.nest.loops[: self.depth], number)
        body.place(len(self.nest.loops), 0)

    def total(self, w: ShaderWriter) -> Total:
        """How updates are combined."""
        dtype, combine = self.nest.stores[0].buffer.type.dtype, combined_by(self.nest)
        if combine is el.add and dtype.is_float:
            return sum_of_floats(w, dtype)
        return Total(w, combine, dtype)

    def there(self, w: ShaderWriter, body: Body, total: Total) -> list[str]:
        """What is in the place of the row at hand."""
        (store,) = self.nest.stores
        x = w.new(w.load(store.buffer, body.position(store.offset)))
        return total.of(x, store.buffer.type.dtype)

    def update(self, body: Body, total: Total) -> list[str]:
        value = self.nest.stores[0].value
        return total.of(body[value], value.dtype)

    def put(self, w: ShaderWriter, place: str, total: Total, now: Words) -> None:
        out = self.nest.stores[0].buffer
        w.store(out, place, total.result(now, out.type.dtype))

    def key(self, w: ShaderWriter, rank: str) -> str:
        """The place that comes at a rank."""
        assert self.keys is not None
        return w.new(w.load(self.keys, self.number(w, rank)))

    def number(self, w: ShaderWriter, rank: str) -> str:
        """The row of updates that comes at a rank."""
        assert self.order is not None
        return w.new(w.load(self.order, rank))

    def groups(self, w: ShaderWriter, invocations: int) -> Dispatch:
        return w.dispatch(-(-invocations // w.workgroup), self.nest.kind)

    # -- the shaders ---------------------------------------------------------------------------
    def in_order(self) -> Dispatch:
        """A few updates, one after the other, by an invocation for each element of a row."""
        w, body = self.begin(self.width)
        self.inside(w, body, "at")
        combine, (store,) = combined_by(self.nest), self.nest.stores
        with w.loop(f"{self.count}i") as i:
            self.row(w, body, i)
            if combine is None:
                body.store(store)
            else:
                total = Total(w, combine, store.buffer.type.dtype)
                now = total.join(self.there(w, body, total), self.update(body, total))
                self.put(w, body.position(store.offset), total, now)
        return self.groups(w, self.width)

    def places(self, keys: Buffer, inner: int) -> Dispatch:
        """The place of each row: the number of the row of the result."""
        w, body = self.begin(self.count)
        for k in range(self.depth, len(self.nest.loops)):
            body.counter(k, "0i")
        self.row(w, body, "at")
        offset = body.position(self.nest.stores[0].offset)
        w.store(keys, "at", f"u32({offset} / {inner}i)")
        return self.groups(w, self.count)

    def segments(self) -> Dispatch:
        """An invocation for each element of the first row of each segment."""
        w, body = self.begin(self.count * self.width)
        w.line(f"let first = at / {self.width}i;")
        self.inside(w, body, w.new(f"at % {self.width}i"))
        own = self.key(w, "first")
        with w.block("if (first > 0i)"):
            before = self.key(w, "first - 1i")
            w.line(f"if ({before} == {own}) {{ return; }}")
        combine, (store,) = combined_by(self.nest), self.nest.stores
        w.line("var end = first + 1i;")
        with w.block(f"while (end < {self.count}i)"):
            w.line(f"if ({self.key(w, 'end')} != {own}) {{ break; }}")
            w.line("end = end + 1i;")
        if combine is None:
            self.row(w, body, self.number(w, "end - 1i"))
            body.store(store)
            return self.groups(w, self.count * self.width)
        total = Total(w, combine, store.buffer.type.dtype)
        self.row(w, body, self.number(w, "first"))
        place = w.variable("i32", body.position(store.offset))
        now = variables(w, total.words, self.there(w, body, total))
        with w.loop("end", "first") as i:
            self.row(w, body, self.number(w, i))
            assign(w, now, total.join(now, self.update(body, total)))
        self.put(w, place, total, now)
        return self.groups(w, self.count * self.width)

    def runs(self, run: int, heads: Sequence[Buffer], tails: Sequence[Buffer]) -> Dispatch:
        """Each run of updates: segments that lie in it are finished, what there is of others
        goes to `heads`, of one that comes from the run before, or `tails`, of one that begins."""
        runs = -(-self.count // run)
        w, body = self.begin(runs * self.width)
        self.inside(w, body, w.new(f"at % {self.width}i"))
        w.line(f"let first = at / {self.width}i * {run}i;")
        w.line(f"let last = min(first + {run}i, {self.count}i);")
        total = self.total(w)
        now = variables(w, total.words, total.start())
        w.line("var own = 0u;")
        w.line("var target_at = 0i;")
        w.line("var enters = false;")
        with w.block("if (first > 0i)"):
            w.line(f"enters = {self.key(w, 'first')} == {self.key(w, 'first - 1i')};")
        w.line("var leaves = false;")
        with w.block(f"if (last < {self.count}i)"):
            w.line(f"leaves = {self.key(w, 'last')} == {self.key(w, 'last - 1i')};")
        with w.loop("last", "first") as i:
            number = self.number(w, i)
            assert self.keys is not None
            key = w.new(w.load(self.keys, number))
            self.row(w, body, number)
            with w.block(f"if ({i} == first || {key} != own)"):
                with w.block(f"if ({i} != first)"):
                    with w.block("if (enters)"):
                        self.keep(w, heads, now)
                        w.line("enters = false;")
                    with w.block("else"):
                        self.put(w, "target_at", total, now)
                w.line(f"own = {key};")
                w.line(f"target_at = {body.position(self.nest.stores[0].offset)};")
                with w.block("if (enters)"):
                    assign(w, now, total.start())
                with w.block("else"):
                    assign(w, now, self.there(w, body, total))
            assign(w, now, total.join(now, self.update(body, total)))
        with w.block("if (enters)"):
            self.keep(w, heads, now)
        with w.block("else if (leaves)"):
            self.keep(w, tails, now)
        with w.block("else"):
            self.put(w, "target_at", total, now)
        return self.groups(w, runs * self.width)

    def keep(self, w: ShaderWriter, parts: Sequence[Buffer], now: Words) -> None:
        for part, x in zip(parts, now, strict=True):
            w.store(part, "at", x)

    def joined(self, run: int, heads: Sequence[Buffer], tails: Sequence[Buffer]) -> Dispatch:
        """The segments that begin in a run and go on in others."""
        runs, count = -(-self.count // run), self.count
        w, body = self.begin(runs * self.width)
        self.inside(w, body, w.new(f"at % {self.width}i"))
        w.line(f"let first = at / {self.width}i * {run}i;")
        w.line(f"var last = min(first + {run}i, {count}i);")
        w.line(f"if (last == {count}i) {{ return; }}")
        own = self.key(w, "last - 1i")
        w.line(f"if ({self.key(w, 'last')} != {own}) {{ return; }}")
        with w.block("if (first > 0i)"):
            w.line(f"let before = {self.key(w, 'first - 1i')};")
            w.line(f"if (before == {own}) {{ return; }}")
        self.row(w, body, self.number(w, "last - 1i"))
        place = w.variable("i32", body.position(self.nest.stores[0].offset))
        total = self.total(w)
        now = variables(w, total.words, [w.load(part, "at") for part in tails])
        w.line("var part = at;")
        with w.block(f"while (last < {count}i)"):
            w.line(f"if ({self.key(w, 'last')} != {own}) {{ break; }}")
            w.line(f"part = part + {self.width}i;")
            assign(w, now, total.join(now, [w.new(w.load(head, "part")) for head in heads]))
            w.line(f"last = min(last + {run}i, {count}i);")
            w.line(f"if ({self.key(w, 'last - 1i')} != {own}) {{ break; }}")
        self.put(w, place, total, now)
        return self.groups(w, runs * self.width)
