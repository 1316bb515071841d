"""Writing kernels: the values of a nest's body, in one lane or in many.

A kernel becomes a function that takes the kernel's buffers as `noalias` pointers, then the symbolic
sizes it needs. Kernels of equal text share one function.

Within a nest, a value is written once, in the outermost place where what it depends on is known.
Values that depend on the loop `vec` are vectors, and positions in memory are followed by their
first lane: the stride from lane to lane is known (`strides`). Values that depend on the loop `tile`
are written in several copies, one for each row of a tile.
"""

from __future__ import annotations

from collections.abc import Callable

from retrograd.backends.kernel import LANES, Buffer, Nest, Store, Value, live
from retrograd.backends.llvm import types
from retrograd.backends.llvm.at import At
from retrograd.backends.llvm.elementwise import ELEMENTWISE, EXACT
from retrograd.backends.llvm.machine import Machine
from retrograd.backends.llvm.writer import Writer
from retrograd.errors import BackendError
from retrograd.ir import Dim, bool_, int64

LINEAR = frozenset(("loop", "size", "iadd", "isub", "imul"))
Names = dict[Value, list[str]]  # a name for each copy, or one for all


class KernelWriter(Writer):
    """Writes one kernel. `parameters` are its buffers and sizes in the order of first use. With
    `rows`, the function does only the rows from `%lo` up to `%hi` of so many."""

    def __init__(
        self, declare: Callable[[str], None], machine: Machine, rows: int | Dim = 0
    ) -> None:
        super().__init__(declare)
        self.band_rows = rows
        self.machine = machine
        self.parameters: dict[Buffer | Dim, str] = {}
        self.lanes = self.copies = 1
        self.rows = 1  # of a tile
        self.mask: str | None = None  # lanes that count, where not all do

    # -- parameters ---------------------------------------------------------------------------
    def parameter(self, what: Buffer | Dim) -> str:
        found = self.parameters.get(what)
        if found is None:
            kind = "s" if isinstance(what, Dim) else "p"
            found = self.parameters[what] = f"%{kind}{len(self.parameters)}"
        return found

    def size(self, size: int | Dim) -> str:
        return self.parameter(size) if isinstance(size, Dim) else str(size)

    def address(self, buffer: Buffer, offset: str) -> str:
        if offset == "0":
            return self.parameter(buffer)
        kind = types.memory_type(buffer.type.dtype)
        return self.new(f"getelementptr {kind}, ptr {self.parameter(buffer)}, i64 {offset}")

    # -- a nest -------------------------------------------------------------------------------
    def begin(self, nest: Nest) -> None:
        """Start a nest: find out what its values depend on, write those that need no loop."""
        self.nest, self.copies, self.mask = nest, 1, None
        self.counters: dict[int, list[str]] = {}
        self.levels: list[list[Value]] = [[] for _ in range(len(nest.loops) + 2)]
        self.uses: dict[Value, int] = {}  # loops a value depends on, as bits
        self.strides: dict[Value, int | Dim | None] = {}
        self._scalars: list[Names] = [{}]  # by open loop
        self._vectors: list[Names] = [{}]
        for v in live(nest):
            self.levels[v.depth].append(v)
            uses = 1 << v.attr if v.op == "loop" else 0
            for a in v.args:
                uses |= self.uses[a]
            self.uses[v] = uses
            self.strides[v] = self._stride(v)
        self.lanes = self._choose_lanes()
        self.rows = self._choose_rows()
        self._splats = {
            a for v in self.uses if self.is_vector(v) and v.op != "load" for a in v.args
        }
        self.place(0)
        self._skip = ""
        if "when" in nest.info:
            condition, wanted = nest.info["when"]
            go, self._skip = self.label(), self.label()
            ways = (go, self._skip) if wanted else (self._skip, go)
            self.branch(self.scalar(condition), *ways)
            self.start_block(go)

    def end(self) -> None:
        """End a nest; one that is not for all sizes is skipped for the others."""
        if self._skip:
            self.jump(self._skip)
            self.start_block(self._skip)

    def varies(self, v: Value) -> bool:
        """Whether a value differs between lanes."""
        return self.nest.vec >= 0 and bool(self.uses[v] >> self.nest.vec & 1)

    def _stride(self, v: Value) -> int | Dim | None:
        """By how much a position grows from lane to lane; None where that differs."""
        if not self.varies(v):
            return 0
        if v.op == "loop":
            return 1
        if v.op not in LINEAR:
            return None
        a, b = (self.strides[x] for x in v.args)
        if a is None or b is None:
            return None
        if v.op == "imul":
            x, y = v.args
            if y.op == "size" and b == 0:
                return a * y.attr
            return b * x.attr if x.op == "size" and a == 0 else None
        return a + b if v.op == "iadd" else a - b

    def is_vector(self, v: Value) -> bool:
        """Whether a value is written as a vector."""
        return self.lanes > 1 and self.varies(v) and self.strides[v] is None

    def _choose_lanes(self) -> int:
        nest = self.nest
        if nest.vec < 0:
            return 1
        varying = [v for v in self.uses if self.varies(v)]
        rows = nest.kind in ("row", "along")
        if not rows and any(self.strides[s.offset] != 1 for s in nest.stores):
            return 1
        if not rows and any(v.op in ("idiv", "imod") for v in varying):
            return 1  # divisions of vectors are divisions one by one
        lanes = LANES if rows else self.machine.width
        if not rows:
            data = [v.dtype.itemsize for v in varying if self.strides[v] is None]
            if data and max(data) == 8:
                lanes = max(lanes // 2, 2)
            if nest.op == "dot":
                lanes *= 2
        n = nest.loops[nest.vec]
        if not isinstance(n, Dim):
            lanes = min(lanes, 1 << max(n - 1, 0).bit_length())
        return lanes

    def _choose_rows(self) -> int:
        """How many rows of a tile fit into the registers."""
        nest = self.nest
        if nest.tile < 0 or (self.lanes == 1 and nest.op != "dot"):
            return 1
        if nest.op == "dot":
            own = -(-self.lanes // self.machine.width)
            return min(8, self.machine.registers // (2 * own))
        if nest.kind != "row":
            return 1
        values = sum(self.is_vector(v) for v in self.uses)
        return 4 if values <= 16 else 2 if values <= 32 else 1

    def bounds(self, number: int) -> tuple[str, str]:
        """Where a loop starts and ends."""
        if number == 0 and self.band_rows != 0 and "places" not in self.nest.info:
            return self.range()
        return "0", self.size(self.nest.loops[number])

    def range(self) -> tuple[str, str]:
        """The part of the outermost loop that is to be done, or of the places of a scatter."""
        times = self.nest.outer // self.band_rows
        if times == 1:
            return "%lo", "%hi"
        lo, hi = (self.new(f"mul i64 {x}, {self.size(times)}") for x in ("%lo", "%hi"))
        return lo, hi

    # -- values -------------------------------------------------------------------------------
    def place(self, depth: int) -> None:
        """Write the values of a depth; all counters up to it must be known."""
        for v in self.levels[depth]:
            if v.op == "product":
                continue
            count = self.copies if self._copied(v) else 1
            if self.is_vector(v):
                self._vectors[-1][v] = [self._value(v, t, self.lanes) for t in range(count)]
                continue
            self._scalars[-1][v] = [self._value(v, t, 1) for t in range(count)]
            if v in self._splats and v.op not in ("const", "size"):
                for t in range(count):
                    self.vector(v, t)

    def _copied(self, v: Value) -> bool:
        return self.nest.tile >= 0 and bool(self.uses[v] >> self.nest.tile & 1)

    def scalar(self, v: Value, t: int = 0) -> str:
        """A value in its first lane."""
        return _find(self._scalars, v, t)

    def vector(self, v: Value, t: int = 0) -> str:
        """A value in all lanes; that is the scalar where there is one lane."""
        if self.lanes == 1:
            return self.scalar(v, t)
        if not self._copied(v):
            t = 0
        found = _find(self._vectors, v, t)
        if not found:
            found = self._widened(v, t)
            names = self._vectors[-1].setdefault(v, [""] * self.copies)
            names[t] = found
        return found

    def _widened(self, v: Value, t: int) -> str:
        if v.op == "const":
            return types.literal(v.attr, v.dtype, self.lanes)
        first = types.broadcast(self, self.scalar(v, t), v.dtype, self.lanes)
        stride = self.strides[v]
        if stride == 0:
            return first
        kind = types.register_type(int64, self.lanes)
        assert stride is not None
        return self.new(f"add nsw {kind} {first}, {self._steps(stride)}")

    def _steps(self, stride: int | Dim) -> str:
        """0, 1, 2, ... times a stride."""
        if not isinstance(stride, Dim):
            return "<" + ", ".join(f"i64 {i * stride}" for i in range(self.lanes)) + ">"
        wide = types.broadcast(self, self.size(stride), int64, self.lanes)
        kind = types.register_type(int64, self.lanes)
        return self.new(f"mul nsw {kind} {wide}, {self._steps(1)}")

    def get(self, v: Value, t: int, lanes: int) -> str:
        return self.scalar(v, t) if lanes == 1 else self.vector(v, t)

    def _value(self, v: Value, t: int, lanes: int) -> str:
        core = CORE.get(v.op)
        if core is not None:
            return core(self, v, t, lanes)
        emit = ELEMENTWISE.get(v.op)
        if emit is None:
            raise BackendError(f"the llvm backend has no lowering of {v.op!r}")
        # The operands of select differ in dtype; its last ones are like the result.
        at = At(self, v.args[-1].dtype, lanes)
        result = emit(at, *[self.get(a, t, lanes) for a in v.args])
        if v.dtype.is_half and v.op not in EXACT:
            result = types.rounded(self, result, v.dtype, lanes)
        return result

    # -- memory -------------------------------------------------------------------------------
    def read(self, v: Value, t: int, lanes: int) -> str:
        """A load."""
        (offset,), buffer = v.args, v.attr
        if lanes == 1:
            return types.load(self, self.address(buffer, self.scalar(offset, t)), v.dtype)
        guard, position = self.mask, offset
        if offset.op == "isel" and self.strides[offset.args[1]] == 1:
            # Read where the guard holds; elsewhere the value is not used.
            position = offset.args[1]
            guard = self.both(guard, self.vector(offset.args[0], t))
        if self.strides[position] == 1:
            pointer = self.address(buffer, self.scalar(position, t))
            return types.load(self, pointer, v.dtype, lanes, guard)
        base, at = self.parameter(buffer), self.vector(offset, t)
        return types.gather(self, base, at, v.dtype, lanes, self.mask)

    def both(self, a: str | None, b: str) -> str:
        """The conjunction of two masks, of which the first may be none."""
        if a is None:
            return b
        return self.new(f"and {types.register_type(bool_, self.lanes)} {a}, {b}")

    def write(self, value: str, store: Store, t: int = 0) -> None:
        """Write a value in the buffer's dtype, in all lanes that count."""
        pointer = self.address(store.buffer, self.scalar(store.offset, t))
        types.store(self, value, pointer, store.buffer.type.dtype, self.lanes, self.mask)

    # -- loops --------------------------------------------------------------------------------
    def enter(self) -> None:
        """What is written from here on is known until `leave`."""
        self._scalars.append({})
        self._vectors.append({})

    def leave(self) -> None:
        self._scalars.pop()
        self._vectors.pop()

    def divisor(self, v: Value) -> str:
        """A size to divide by. No element of an empty array is used, but one may be computed."""
        return self.at_least_one(self.scalar(v)) if isinstance(v.attr, Dim) else self.scalar(v)

    def at_least_one(self, size: str) -> str:
        self.declare("i64 @llvm.smax.i64(i64, i64)")
        return self.new(f"call i64 @llvm.smax.i64(i64 {size}, i64 1)")


def _find(scopes: list[Names], v: Value, t: int) -> str:
    for names in reversed(scopes):
        found = names.get(v)
        if found is not None:
            name = found[t] if t < len(found) else found[0]
            if name:
                return name
    return ""


Core = Callable[[KernelWriter, Value, int, int], str]


def _binary(op: str, fold: Callable[[int, int], int] | None = None) -> Core:
    def emit(w: KernelWriter, v: Value, t: int, lanes: int) -> str:
        a, b = (w.get(x, t, lanes) for x in v.args)
        if fold is not None and a.isdigit() and b.isdigit():
            return str(fold(int(a), int(b)))
        if op == "add nsw" and (a == "0" or b == "0"):
            return b if a == "0" else a
        return w.new(f"{op} {types.register_type(int64, lanes)} {a}, {b}")

    return emit


def _division(op: str) -> Core:
    def emit(w: KernelWriter, v: Value, t: int, lanes: int) -> str:
        divisor = types.broadcast(w, w.divisor(v.args[1]), int64, lanes)
        a = w.get(v.args[0], t, lanes)
        return w.new(f"{op} {types.register_type(int64, lanes)} {a}, {divisor}")

    return emit


def _choose(w: KernelWriter, v: Value, t: int, lanes: int) -> str:
    return At(w, int64, lanes).choose(*[w.get(x, t, lanes) for x in v.args])


def _cast(w: KernelWriter, v: Value, t: int, lanes: int) -> str:
    (x,) = v.args
    return types.convert(w, w.get(x, t, lanes), x.dtype, v.dtype, lanes)


CORE: dict[str, Core] = {
    "loop": lambda w, v, t, lanes: w.counters[v.attr][t if w._copied(v) else 0],
    "size": lambda w, v, t, lanes: w.size(v.attr),
    "const": lambda w, v, t, lanes: types.literal(v.attr, v.dtype),
    "iadd": _binary("add nsw", lambda a, b: a + b),
    "isub": _binary("sub nsw"),
    "imul": _binary("mul nsw", lambda a, b: a * b),
    "idiv": _division("sdiv"),
    "imod": _division("srem"),
    "ilt": _binary("icmp slt"),
    "ige": _binary("icmp sge"),
    "isel": _choose,
    "load": KernelWriter.read,
    "cast": _cast,
}
