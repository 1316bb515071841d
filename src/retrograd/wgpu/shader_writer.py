"""Writing the text of a compute shader."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from retrograd.errors import BackendError
from retrograd.ir import Dim, bool_, float64, int64, uint64
from retrograd.schedule.buffer import Buffer
from retrograd.wgpu.dispatch import Dispatch, EmitContext, Start
from retrograd.wgpu.types import memory_type

_MAIN = (
    "fn main(@builtin(workgroup_id) place: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>, "
    "@builtin(local_invocation_index) local: u32) {"
)
MAX_GROUPS = 65535  # in each dimension of a grid
_BITS = """fn f32_of(bits: u32) -> f32 { return bitcast<f32>(bits); }"""
_BITS_64 = """fn f64_of(low: u32, high: u32) -> f64 {
  return bitcast<f64>((u64(high) << 32u) | u64(low));
}"""


class ShaderWriter:
    """Collects the text of one shader. `size` is the number of invocations of a workgroup.

    In the text, `group` is the number of the workgroup, `lane` that of the invocation in it, `at`
    that of the invocation in all: `i32` numbers. Positions and sizes are `i32`, too.
    """

    def __init__(self, context: EmitContext, size: int = 64) -> None:
        self.context = context
        self.workgroup = size
        self.buffers: dict[Buffer, str] = {}
        self._parameters: dict[int | Buffer | Dim | Start, str] = {}
        self._declared: dict[str, None] = {}
        self._lines: list[str] = []
        self._indent = 1
        self._names = 0

    # -- text ---------------------------------------------------------------------------------
    def line(self, text: str) -> None:
        self._lines.append("  " * self._indent + text)

    def new(self, expression: str) -> str:
        """The name of a value that is computed here."""
        name = self.name("v")
        self.line(f"let {name} = {expression};")
        return name

    def variable(self, kind: str, start: str) -> str:
        """The name of a new variable."""
        name = self.name("m")
        self.line(f"var {name}: {kind} = {start};")
        return name

    def name(self, letter: str) -> str:
        self._names += 1
        return f"{letter}{self._names}"

    def declare(self, text: str) -> None:
        """A declaration outside of the entry point: a function, workgroup memory. Once each."""
        self._declared[text] = None

    @contextmanager
    def function(self, name: str, parameters: str) -> Iterator[bool]:
        """Lines within are the body of a function of the shader; False where it is there already,
        and nothing is to be written."""
        head = f"fn {name}({parameters}) {{"
        if any(text.startswith(head) for text in self._declared):
            yield False
            return
        outer, self._lines = self._lines, []
        indent, self._indent = self._indent, 1
        yield True
        text = "\n".join([head, *self._lines, "}"])
        self._lines, self._indent = outer, indent
        self.declare(text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """`if (...)`, `for (...)`: lines within go between braces."""
        self.line(head + " {")
        self._indent += 1
        yield
        self._indent -= 1
        self.line("}")

    @contextmanager
    def loop(self, end: str, start: str = "0i", step: str = "1i") -> Iterator[str]:
        """A loop whose counter, the name given, goes from `start` up to `end`."""
        name = self.name("k")  # with no number a type of WGSL, as i32 is
        with self.block(f"for (var {name} = {start}; {name} < {end}; {name} += {step})"):
            yield name

    # -- sizes and memory ---------------------------------------------------------------------
    def size(self, size: int | Dim) -> str:
        """A size, as `i32`. Symbolic ones are parameters, so that programs of other sizes have
        the same text."""
        return self._parameter(size) if isinstance(size, Dim) else f"{size}i"

    def _parameter(self, what: Buffer | Dim | int | Start) -> str:
        found = self._parameters.get(what)
        if found is None:
            k = len(self._parameters)
            found = self._parameters[what] = f"parameters[{k // 4}].{'xyzw'[k % 4]}"
        return found

    def buffer(self, buffer: Buffer) -> str:
        """The name of the array that a buffer is."""
        found = self.buffers.get(buffer)
        if found is None:
            self.need(buffer.type.dtype)
            found = self.buffers[buffer] = f"b{len(self.buffers) + 1}"
        return found

    def need(self, dtype: object) -> None:
        """Raises `BackendError` where the device does not have numbers of a dtype."""
        facts = self.context.facts
        lacking = (dtype is float64 and not facts.float64) or (
            (dtype is int64 or dtype is uint64) and not facts.int64
        )
        if lacking:
            raise BackendError(
                f"this GPU has no {dtype}, which {self.context.asked} is computed in; use float32 "
                "and int32, or rg.backend('wgpu', fallback=True), which leaves this to the CPU"
            )

    def place(self, buffer: Buffer, position: str) -> str:
        """An element, to be read or written, as it is in memory."""
        if (merged := self.context.merged) is not None and buffer.kind != "status":
            if buffer.kind != "temporary":
                if buffer not in merged.copies:
                    merged.copies[buffer] = self.context.scratch(buffer.type)
                buffer = merged.copies[buffer]
            kind = memory_type(buffer.type.dtype)
            view = merged.views.setdefault(kind, Buffer("arena", 0, buffer.type, buffer.node))
            return f"{self.buffer(view)}[{self._parameter(Start(buffer))} + {position}]"
        name = self.buffer(buffer)
        if buffer.kind == "cursor":
            position = f"{self._parameter(buffer)} + {position}"
        return f"{name}[{position}]"

    def load(self, buffer: Buffer, position: str) -> str:
        """The expression of an element in a register."""
        found = self.place(buffer, position)
        return f"({found} != 0u)" if buffer.type.dtype is bool_ else found

    def store(self, buffer: Buffer, position: str, value: str) -> None:
        """Write a value, which has the buffer's dtype."""
        if buffer.type.dtype is bool_:
            value = f"u32({value})"
        self.line(f"{self.place(buffer, position)} = {value};")

    # -- the whole ----------------------------------------------------------------------------
    def dispatch(self, groups: int, label: str = "") -> Dispatch:
        """The shader that was written, for so many workgroups. Grids of more than 65,535 are
        spread over three dimensions, those left over at the end do nothing."""
        beyond = groups > MAX_GROUPS
        count = ""
        if beyond:
            count = self._parameter(groups)
        start = []
        if any("opaque_zero" in text for text in self._declared):
            start.append(f"  opaque_zero = {self._parameter(0)};")
        head = [_BITS]
        if self.context.facts.float64:
            head.append(_BITS_64)
        if self._parameters:
            words = -(-len(self._parameters) // 4)
            head.append(
                f"@group(0) @binding(0) var<uniform> parameters: array<vec4<i32>, {words}>;"
            )
        for k, (buffer, name) in enumerate(self.buffers.items(), 1):
            kind = memory_type(buffer.type.dtype)
            head.append(f"@group(0) @binding({k}) var<storage, read_write> {name}: array<{kind}>;")
        head += self._declared
        head += [
            f"@compute @workgroup_size({self.workgroup})",
            _MAIN,
            "  let group = i32(place.x + grid.x * (place.y + grid.y * place.z));",
            "  let lane = i32(local);",
            f"  let at = group * {self.workgroup}i + lane;",
        ]
        if beyond:
            head.append(f"  if (group >= {count}) {{ return; }}")
        source = "\n".join([*head, *start, *self._lines, "}"]) + "\n"
        words_ = tuple(self.context.value(p) if isinstance(p, Dim) else p for p in self._parameters)
        return Dispatch(source, tuple(self.buffers), words_, groups, label)
