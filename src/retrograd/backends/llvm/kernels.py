"""One LLVM function for each kernel: loops around the values of a body.

The function takes the kernel's buffers as `noalias` pointers, then the symbolic sizes it needs.
Kernels of equal text share one function.
"""

from __future__ import annotations

from collections.abc import Callable

from retrograd.backends.kernel import Buffer, Nest, Store, Value, live
from retrograd.backends.llvm import types
from retrograd.backends.llvm.elementwise import ELEMENTWISE, EXACT, At
from retrograd.backends.llvm.writer import Loop, Writer
from retrograd.errors import BackendError
from retrograd.ir import Dim, DType


class KernelWriter(Writer):
    """Writes one kernel. `parameters` are its buffers and sizes in the order of first use."""

    def __init__(self, declare: Callable[[str], None]) -> None:
        super().__init__(declare)
        self.parameters: dict[Buffer | Dim, str] = {}
        self.names: dict[Value, str] = {}
        self.levels: list[list[Value]] = []
        self.counters: dict[int, str] = {}

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
        kind = types.memory_type(buffer.type.dtype)
        return self.new(
            f"getelementptr inbounds {kind}, ptr {self.parameter(buffer)}, i64 {offset}"
        )

    # -- values -------------------------------------------------------------------------------
    def begin(self, nest: Nest) -> None:
        """Start a nest: sort its live values by depth, write those that need no loop."""
        self.names, self.counters = {}, {}
        self.levels = [[] for _ in range(len(nest.loops) + 2)]
        for v in live(nest):
            self.levels[v.depth].append(v)
        self.place(0)

    def place(self, depth: int) -> None:
        """Write the values of a depth; all counters up to it must be known."""
        for v in self.levels[depth]:
            self.names[v] = self._value(v)

    def loop(self, number: int, size: int | Dim) -> Loop:
        """Open the loop of a nest and write what is computed in it, outside of further loops."""
        loop = self.open_loop(self.size(size))
        self.counters[number] = loop.counter
        self.place(number + 1)
        return loop

    def _value(self, v: Value) -> str:
        core = CORE.get(v.op)
        if core is not None:
            return core(self, v)
        emit = ELEMENTWISE.get(v.op)
        if emit is None:
            raise BackendError(f"the llvm backend has no lowering of {v.op!r}")
        # The operands of select differ in dtype; its last ones are like the result.
        result = emit(At(self, v.args[-1].dtype), *[self.names[a] for a in v.args])
        if v.dtype.is_half and v.op not in EXACT:
            result = types.rounded(self, result, v.dtype)
        return result

    def write(self, store: Store) -> None:
        buffer = store.buffer
        pointer = self.address(buffer, self.names[store.offset])
        types.store(self, self.names[store.value], pointer, buffer.type.dtype)

    def finish(self, value: str, store: Store, offset: str, accumulator: DType) -> None:
        """Write a reduced value, in the dtype of the buffer."""
        dtype = store.buffer.type.dtype
        value = types.convert(self, value, accumulator, dtype)
        types.store(self, value, self.address(store.buffer, offset), dtype)

    def divisor(self, v: Value) -> str:
        """A size to divide by. No element of an empty array is used, but one may be computed."""
        return self.at_least_one(self.names[v]) if isinstance(v.attr, Dim) else self.names[v]

    def at_least_one(self, size: str) -> str:
        self.declare("i64 @llvm.smax.i64(i64, i64)")
        return self.new(f"call i64 @llvm.smax.i64(i64 {size}, i64 1)")


def _binary(op: str) -> Callable[[KernelWriter, Value], str]:
    def emit(w: KernelWriter, v: Value) -> str:
        return w.new(f"{op} i64 {w.names[v.args[0]]}, {w.names[v.args[1]]}")

    return emit


def _division(op: str) -> Callable[[KernelWriter, Value], str]:
    def emit(w: KernelWriter, v: Value) -> str:
        return w.new(f"{op} i64 {w.names[v.args[0]]}, {w.divisor(v.args[1])}")

    return emit


def _choose(w: KernelWriter, v: Value) -> str:
    c, a, b = (w.names[x] for x in v.args)
    return w.new(f"select i1 {c}, i64 {a}, i64 {b}")


def _load(w: KernelWriter, v: Value) -> str:
    return types.load(w, w.address(v.attr, w.names[v.args[0]]), v.dtype)


def _cast(w: KernelWriter, v: Value) -> str:
    return types.convert(w, w.names[v.args[0]], v.args[0].dtype, v.dtype)


CORE: dict[str, Callable[[KernelWriter, Value], str]] = {
    "loop": lambda w, v: w.counters[v.attr],
    "size": lambda w, v: w.size(v.attr),
    "const": lambda w, v: types.literal(v.attr, v.dtype),
    "iadd": _binary("add nsw"),
    "isub": _binary("sub nsw"),
    "imul": _binary("mul nsw"),
    "idiv": _division("sdiv"),
    "imod": _division("srem"),
    "ilt": _binary("icmp slt"),
    "ige": _binary("icmp sge"),
    "isel": _choose,
    "load": _load,
    "cast": _cast,
}


def close_all(w: Writer, loops: list[Loop]) -> None:
    for loop in reversed(loops):
        w.close_loop(loop)


def map_nest(w: KernelWriter, nest: Nest) -> None:
    """Every element by itself."""
    w.begin(nest)
    loops = [w.loop(k, size) for k, size in enumerate(nest.loops)]
    for store in nest.stores:
        w.write(store)
    close_all(w, loops)
