"""A random program: a function of arrays as text, in the words of this library and, where all of
its lines have one, in those of NumPy and of PyTorch.

    p = random_program(seed)
    print(p.script())          # runs by itself
    p.function()(*p.inputs)    # its outputs

Programs are text so that a failure is a script that anybody can run, and so that one that fails can
be made smaller line by line (`shrink.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import retrograd as rg

Array = np.ndarray[Any, Any]
PEERS = ("numpy", "torch")


@dataclass(frozen=True)
class Line:
    """`name = text`, with functions that are defined before it, and lines that change it after.

    `reads` are the names that stand in the text itself. `numpy` and `torch` are the same in their
    words, or None. `traits` say what does not hold of it: "jumps" (no derivative by differences),
    "looks" (the values of arrays decide about shapes, so that it cannot be traced), "rules" (it has
    derivatives that are Python, which no text has), "rounds" (a zero may be rounding).
    """

    name: str
    text: str
    reads: tuple[str, ...] = ()
    bodies: tuple[Body, ...] = ()
    then: tuple[str, ...] = ()
    numpy: str | None = None
    torch: str | None = None
    traits: frozenset[str] = frozenset()

    def used(self) -> set[str]:
        return {*self.reads, *(n for body in self.bodies for n in body.free())}

    def all_traits(self) -> set[str]:
        return {
            *self.traits,
            *(t for b in self.bodies for line in b.lines for t in line.all_traits()),
        }

    def written(self, peer: str, noisy: bool) -> Iterator[str]:
        for body in self.bodies:
            yield from body.written(peer, noisy)
        text = self.text if peer == "rg" else getattr(self, peer)
        yield f"{self.name} = {text}"
        yield from self.then
        if noisy:
            more = ", True" if "rounds" in self.all_traits() else ""
            yield f"{self.name} = noise({self.name}{more})"


@dataclass(frozen=True)
class Body:
    """A function that is defined within a program; it may read what was computed before it."""

    name: str
    parameters: tuple[str, ...]
    lines: tuple[Line, ...]
    result: str
    reads: tuple[str, ...] = ()  # the names in `result`

    def free(self) -> set[str]:
        bound = {*self.parameters, *(line.name for line in self.lines)}
        return {n for line in self.lines for n in line.used()}.union(self.reads) - bound

    def written(self, peer: str, noisy: bool) -> Iterator[str]:
        yield f"def {self.name}({', '.join(self.parameters)}):"
        for line in self.lines:
            yield from (f"    {text}" for text in line.written(peer, noisy))
        yield f"    return {self.result}"


@dataclass(frozen=True)
class Program:
    """Inputs by name, lines, and the names of the values that it gives."""

    inputs: dict[str, Array]
    lines: tuple[Line, ...]
    outputs: tuple[str, ...]
    seed: int = -1
    _functions: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)

    def has(self, peer: str) -> bool:
        if peer == "torch" and any(
            x.dtype.itemsize < 4 and x.dtype.kind in "fV" for x in self.arrays()
        ):
            return False  # it rounds once where this library rounds after each step
        return all(not line.bodies and getattr(line, peer) is not None for line in self.lines)

    def traits(self) -> set[str]:
        return {t for line in self.lines for t in line.all_traits()}

    def arrays(self) -> list[Array]:
        return list(self.inputs.values())

    def text(self, peer: str = "rg", noisy: bool = False) -> str:
        lines = [t for line in self.lines for t in line.written(peer, noisy)]
        if noisy:  # which needs to know all sizes
            lines = [re.sub(r", shapes=\{.*?\}", "", line) for line in lines]
            lines = [*(f"{n} = noise({n})" for n in self.inputs), *lines]
        body = "\n".join(f"    {t}" for t in lines)
        outputs = ", ".join(self.outputs)
        return f"def program({', '.join(self.inputs)}):\n{body}\n    return {outputs},\n"

    def function(self, peer: str = "rg", **names: Any) -> Callable[..., tuple[Any, ...]]:
        """The function, where `rg`, `F` and so on stand for what is given."""
        noisy = "noise" in names
        key = peer, noisy
        if key not in self._functions:
            source = self.text(peer, noisy)
            self._functions[key] = compile(source, f"<program {self.seed}>", "exec")
        space = {**WORDS, **names}
        exec(self._functions[key], space)
        return space["program"]

    def script(self, fails: str = "") -> str:
        """Python that anybody can run."""
        arrays = "\n".join(f"{n} = {literal(x)}" for n, x in self.inputs.items())
        head = (
            "import numpy as np\nimport retrograd as rg\nfrom retrograd.nn import functional as F\n"
        )
        comment = f"# seed {self.seed}\n" + "".join(f"# {t}\n" for t in fails.splitlines())
        inputs = ", ".join(f"rg.tensor({n})" for n in self.inputs)
        return f"{comment}{head}\n{arrays}\n\n\n{self.text()}\n\nprint(program({inputs}))\n"

    def less(self, **parts: Any) -> Program:
        """With other parts, and no input or line that nothing reads."""
        p = replace(self, _functions={}, **parts)
        needed = set(p.outputs)
        lines = []
        for line in reversed(p.lines):
            if line.name in needed:
                lines.append(line)
                needed |= line.used()
        inputs = {n: x for n, x in p.inputs.items() if n in needed}
        return replace(p, lines=tuple(reversed(lines)), inputs=inputs, _functions={})


WORDS: dict[str, Any] = {"np": np, "rg": rg, "F": rg.nn.functional}


def literal(x: Array) -> str:
    """Text that evaluates to the array."""
    if x.size > 60:
        return f"np.resize({literal(x.reshape(-1)[:23])}, {x.shape})"
    name = x.dtype.name
    if name == "bfloat16":
        return f"np.array({x.tolist()!r}, rg.bfloat16.dtype)".replace("nan", "np.nan").replace(
            "inf", "np.inf"
        )
    with np.printoptions(threshold=10**6):
        values = repr(x.tolist()).replace("nan", "np.nan").replace("inf", "np.inf")
    text = f"np.array({values}, np.{'bool_' if name == 'bool' else name})"
    return f"{text}.reshape({x.shape})" if 0 in x.shape else text


def names_in(values: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))
