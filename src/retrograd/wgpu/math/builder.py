"""Writing the text of WGSL functions: values, branches, loops.

The same interface as `codegen.builder.FunctionBuilder`, so that the formulas of `codegen/math/`
write WGSL as they write LLVM's text. A value is a `let`, which WGSL does not evaluate beforehand:
an expression of literals that overflows would be an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from retrograd.wgpu.dispatch import DeviceFacts

Registers = Sequence[str]


class WgslBuilder:
    """The text of one function's body. What it needs of the module is declared, by its text."""

    brief = False

    def __init__(self, declare: Callable[[str], None], facts: DeviceFacts) -> None:
        self.lines: list[str] = []
        self._declare = declare
        self.facts = facts
        self._depth = 1
        self._names = 0

    def declare(self, text: str) -> None:
        """A declaration outside of the function; once each."""
        self._declare(text)

    def name(self, letter: str = "r") -> str:
        """A name that the function does not have yet."""
        self._names += 1
        return f"{letter}{self._names - 1}"

    def new(self, text: str) -> str:
        """Compute something into a new value."""
        name = self.name()
        self.line(f"let {name} = {text};")
        return name

    def variable(self, kind: str, first: str = "") -> str:
        """A variable, which may be assigned to."""
        name = self.name("v")
        self.line(f"var {name}: {kind}{f' = {first}' if first else ''};")
        return name

    def line(self, text: str) -> None:
        self.lines.append("  " * self._depth + text)

    def open(self, head: str) -> None:
        """Begin a block: `if c`, `for (...)`, `loop`."""
        self.line(f"{head} {{")
        self._depth += 1

    def close(self) -> None:
        self._depth -= 1
        self.line("}")

    def otherwise(self) -> None:
        """Go over to the other branch of an `if`."""
        self._depth -= 1
        self.line("} else {")
        self._depth += 1

    def repeat(
        self, count: str, carried: Sequence[tuple[str, str]], body: Callable[[list[str]], Registers]
    ) -> list[str]:
        """The last of what `body`, so many times, makes of these: types and first values."""
        state = [self.variable(kind, first) for kind, first in carried]
        times = self.new(f"{count[:-2]}i" if count.endswith("li") else f"i32({count})")
        i = self.name("k")  # no type of WGSL, as i32 is
        self.open(f"for (var {i} = 0i; {i} < {times}; {i}++)")
        self._assign(state, body([self.new(v) for v in state]))
        self.close()
        return [self.new(v) for v in state]

    def repeat_while(
        self,
        carried: Sequence[tuple[str, str]],
        more: Callable[[list[str]], str],
        body: Callable[[list[str]], Registers],
    ) -> list[str]:
        """The last of what `body` makes of these, types and first values, while `more` holds."""
        state = [self.variable(kind, first) for kind, first in carried]
        self.open("loop")
        now = [self.new(v) for v in state]
        self.line(f"if !({more(now)}) {{ break; }}")
        self._assign(state, body(now))
        self.close()
        return [self.new(v) for v in state]

    def either_of(
        self, condition: str, kind: str, yes: Callable[[], Registers], no: Callable[[], Registers]
    ) -> list[str]:
        """What one of the two writes, all of one type; only that one is computed."""
        at = len(self.lines)
        self.open(f"if {condition}")
        first = yes()
        state = [self.name("v") for _ in first]
        self._assign(state, first)
        self.otherwise()
        self._assign(state, no())
        self.close()
        self.lines[at:at] = ["  " * self._depth + f"var {v}: {kind};" for v in state]
        return [self.new(v) for v in state]

    def _assign(self, state: Sequence[str], values: Registers) -> None:
        for v, x in zip(state, values, strict=True):
            self.line(f"{v} = {x};")

    def text(self) -> str:
        return "\n".join(self.lines)
