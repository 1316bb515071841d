"""Formulas of mathematics without a compiler: the instructions that are written for an operation,
one after the other, each on all elements at once.

The text is that of compiled code for one element, so there is one way to write a function, and the
bits are the same. Elements that a branch sends on different ways go them apart, until they meet.
"""

from __future__ import annotations

import functools
import re
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from retrograd.backends.backend import Array
from retrograd.backends.interpret.fused import EACH, STEP
from retrograd.backends.interpret.instructions import KINDS, Unknown, instruction
from retrograd.backends.interpret.ordered import WIDE, affords, give_up
from retrograd.backends.llvm.at import At
from retrograd.backends.llvm.elementwise import ELEMENTWISE
from retrograd.backends.llvm.mathematics import incomplete
from retrograd.backends.llvm.subnormal import may_flush
from retrograd.backends.llvm.writer import Writer
from retrograd.ir import DType, Node

CALL = 1 << 11  # elements of an operation of NumPy in whose time an instruction is found and begun
MOST = 1 << 23  # elements that take as long as compiling a long formula
LOOPS = 8  # times that loops are gone through, or so
STEPS = 4000  # instructions, after which it is believed that there is no end
# So long that to write them for nothing takes half of the time in which they are compiled; the last
# one is about as quick to compile, and what asks for it, asks twice.
TOO_LONG = frozenset((*incomplete.FUNCTIONS, "zeta", "betaln", "lgamma"))
_HEAD = re.compile(r"define internal \w+ @([\w.]+)\((.*?)\)")
_PART = re.compile(r"\[ ([^,]+), %([\w.]+) \]")
_REGISTER = re.compile(r"%[\w.]+")

_READING = threading.Lock()

Do = Callable[..., Array]
Group = tuple[Any, dict[str, Any]]  # the places of elements, None for all, and their registers


@dataclass
class Block:
    """Instructions that are done one after the other, and how to go on: with a label, with one of
    two by a condition, or by returning a value."""

    label: str
    phis: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    steps: list[tuple[str, str | Do, list[str]]] = field(default_factory=list)
    value: str = ""
    condition: str = ""
    targets: list[str] = field(default_factory=list)


class Formula:
    """The functions that are written for an operation, the first of which is the operation."""

    def __init__(self, name: str, dtype: DType, arity: int) -> None:
        self.dtype = dtype
        known: dict[str, None] = {}
        w = Writer(lambda text: known.update({text: None}))
        at = At(w, dtype)
        names = [f"%x{i}" for i in range(arity)]
        w.line(f"ret {at.type} {ELEMENTWISE[name](at, *names)}")
        self.main = Function(names, w.text())
        self.functions: dict[str, Function] = {}
        for text in known:
            head = _HEAD.match(text)
            if head is not None:
                self.functions[head[1]] = Function(_REGISTER.findall(head[2]), text)
        every = [self.main, *self.functions.values()]
        self.loops = any(".head:" in f.text for f in every)

    def work(self, elements: int) -> int:
        """What it has to do for so many elements, in those of an operation of NumPy."""
        known: dict[str, int] = {}
        for name, f in self.functions.items():  # in the order in which they call one another
            known[name] = f.work(elements, known)
        return self.main.work(elements, known) * (LOOPS if self.loops else 1)

    def __call__(self, arrays: Sequence[Array]) -> Array | None:
        """The result for arrays of one axis; None where there is an instruction in the way that is
        not known here."""
        try:
            with np.errstate(all="ignore"):
                y = Run(self).call(self.main, arrays)
        except Unknown:
            return None
        return np.broadcast_to(y, arrays[0].shape).astype(arrays[0].dtype)


class Function:
    """The blocks of a function, which are read when it is first called."""

    def __init__(self, parameters: list[str], text: str) -> None:
        self.parameters = parameters
        self.text = text
        self.constants: dict[str, Any] = {}
        self.blocks: list[Block] = []
        self.places: dict[str, int] = {}  # of blocks, by their labels
        self.live: list[set[str]] = []  # for each block, the registers that it or a later one reads

    def read(self) -> None:
        """Make blocks of the text, unless another thread has done so."""
        with _READING:
            if not self.blocks:
                self.blocks = self._blocks()

    def _blocks(self) -> list[Block]:
        blocks: list[Block] = []
        for line in self.text.split("\n"):
            if line.startswith("  "):
                self._read(line.strip(), blocks[-1])
            elif line.endswith(":"):
                self.places[line[:-1]] = len(blocks)
                blocks.append(Block(line[:-1]))
        read = {x for b in blocks for _, given in b.phis for x in given.values()}
        for block in reversed(blocks):
            read |= {x for _, _, given in block.steps for x in given}
            read |= {block.value, block.condition}
            self.live.insert(0, read - self.constants.keys())
        self._keep_in_loops(blocks)
        return blocks

    def _keep_in_loops(self, blocks: list[Block]) -> None:
        """What is read after a loop's head is read again once the loop has gone back there."""
        for k, block in enumerate(blocks):
            for head in [self.places[x] for x in block.targets if self.places[x] <= k]:
                for live in self.live[head : k + 1]:
                    live |= self.live[head]

    def work(self, elements: int, known: dict[str, int]) -> int:
        """What it has to do, given what the functions have to do that it calls."""
        text = self.text
        own = text.count("\n") * (CALL + elements)
        own += sum([text.count(f"fma.{x}(") * (STEP[x] + EACH[x] * elements) for x in STEP])
        return own + sum([text.count(f"@{name}(") * work for name, work in known.items()])

    def _read(self, line: str, block: Block) -> None:
        words = line.split(" ")
        if words[0] == "br":
            block.targets = [w.strip(",%") for w in words[2 if words[1] == "label" else 4 :: 2]]
            block.condition = "" if words[1] == "label" else words[2].strip(",")
        elif words[0] == "ret":
            block.value = self._operand(words[1], words[2])
        elif len(words) > 2 and words[2] == "phi":
            parts = _PART.findall(line)
            block.phis.append((words[0], {k: self._operand(words[3], x) for x, k in parts}))
        else:
            out, _, rest = line.partition(" = ")
            do, operands = instruction(rest)
            block.steps.append((out, do, [self._operand(*x) for x in operands]))

    def _operand(self, kind: str, text: str) -> str:
        """The name of a register, or of a constant."""
        if text.startswith("%"):
            return text
        name = f"{kind} {text}"
        if name not in self.constants:
            self.constants[name] = _constant(kind, text)
        return name


def _constant(kind: str, text: str) -> Any:
    if kind not in KINDS:
        return None  # what it is for is not known either
    if text.startswith("0x"):
        return KINDS[kind].type(struct.unpack("<d", struct.pack("<Q", int(text, 16)))[0])
    return KINDS[kind].type(text == "true" if kind == "i1" else int(text))


class Run:
    """One way through the functions of a formula."""

    def __init__(self, formula: Formula) -> None:
        self.formula = formula
        self.left = STEPS

    def call(self, f: Function, arrays: Sequence[Any]) -> Any:
        """The value of a function. Of the blocks that elements wait at, the first comes first, so
        that those that went apart go on together from where their ways meet."""
        if not f.blocks:
            f.read()
        found: Any = None
        start = dict(zip(f.parameters, arrays, strict=True))
        waiting: dict[int, list[Group]] = {0: [(None, start)]}
        while waiting:
            k = min(waiting)
            where, known = _together(waiting.pop(k))
            block, values = f.blocks[k], {**f.constants, **known}
            self._do(block, values)
            if block.value:
                y = values[block.value]
                if where is None:
                    return y
                if found is None:
                    size = max([a.size for a in arrays])
                    found = np.empty(size, y.dtype)
                found[where] = y
            for target, part in _ways(block, where, values):
                at, after = f.places[target], f.blocks[f.places[target]]
                moved = {out: part[1][given[block.label]] for out, given in after.phis}
                kept = {x: part[1][x] for x in f.live[at] if x in part[1]}
                waiting.setdefault(at, []).append((part[0], {**kept, **moved}))
        return found

    def _do(self, block: Block, values: dict[str, Any]) -> None:
        self.left -= len(block.steps)
        if self.left < 0:
            raise Unknown
        for out, do, operands in block.steps:
            given = [values[x] for x in operands]
            if isinstance(do, str):
                values[out] = self.call(self.formula.functions[do], given)
            else:
                values[out] = do(*given)


def _ways(block: Block, where: Any, values: dict[str, Any]) -> Iterator[tuple[str, Group]]:
    """Where elements go from a block, and which."""
    if not block.condition:
        for target in block.targets:
            yield target, (where, values)
        return
    holds = values[block.condition]
    if holds.all() or not holds.any():
        yield block.targets[0 if holds.all() else 1], (where, values)
        return
    for way, target in zip((holds, ~holds), block.targets, strict=True):
        chosen = np.flatnonzero(way)
        part = {x: v[chosen] if np.ndim(v) else v for x, v in values.items()}
        yield target, (chosen if where is None else where[chosen], part)


def _together(groups: list[Group]) -> Group:
    """Groups of elements that wait at the same place, as one."""
    if len(groups) == 1:
        return groups[0]
    counts = [len(where) for where, _ in groups]
    values = {
        x: np.concatenate(
            [np.broadcast_to(g[x], n) for (_, g), n in zip(groups, counts, strict=True)]
        )
        for x in groups[0][1]
        if all(x in g for _, g in groups)
    }
    return np.concatenate([where for where, _ in groups]), values


def written(node: Node, arrays: list[Array]) -> Array | None:
    """The value of an elementwise operation on floats, given in one axis, if NumPy has it and shall
    compute it."""
    names = {node.dtype.name, *[a.dtype.name for a in arrays]}
    if len(names) > 1 or node.dtype.name not in WIDE or node.op not in ELEMENTWISE or may_flush():
        return None
    if node.op in TOO_LONG:
        return None
    f = formula(node.op, node.dtype, len(arrays))
    if not affords(node, f.work(arrays[0].size), MOST):
        return None
    found = f(arrays)
    if found is None:
        give_up(node)
    return found


@functools.cache
def formula(name: str, dtype: DType, arity: int) -> Formula:
    """The formula of an elementwise operation."""
    return Formula(name, dtype, arity)
