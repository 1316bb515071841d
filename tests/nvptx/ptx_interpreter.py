"""An interpreter of PTX: what the shipped text means, on all threads of a launch, in NumPy.

Instructions have the meaning that the PTX ISA gives them, written down here without regard to how
the text was made. Threads run together as far as they are at the same place: of those that can go
on, the ones at the earliest basic block do. A barrier holds threads until all of their block are
there; one that part of a block has left without the others is an error, and so is a shuffle some
of whose named threads are elsewhere, a read or write outside of an allocation, and an instruction
that is not known. Two threads of which one writes may not touch one place with no barrier between.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import numpy as np

Array = np.ndarray[Any, Any]

BASE, ALIGNMENT, GAP = 1 << 32, 256, 256  # where global memory starts; between allocations
LOCAL = 1 << 60  # generic addresses from here on are in the memory of the thread
FILL = 0xA5  # what fresh memory holds

FLOATS = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
INTEGERS = {f"{k}{n}": np.dtype(f"{'i' if k == 's' else 'u'}{n // 8}")
            for k in "sub" for n in (8, 16, 32, 64)}  # fmt: skip
BYTES = {name: int(name[1:]) // 8 for name in (*FLOATS, *INTEGERS)}


class PtxError(AssertionError):
    """A program that does what no program may."""


@dataclass
class Instruction:
    text: str
    predicate: str
    negated: bool
    name: list[str]  # the opcode and its modifiers
    operands: list[str]


@dataclass
class Block:
    instructions: list[Instruction] = field(default_factory=list)
    follows: int = -1  # the block after it


@dataclass
class Function:
    name: str
    parameters: list[tuple[str, str]]  # type and name
    result: str
    registers: dict[str, str]  # prefix and type
    local: dict[str, int]  # names of local memory, and where they start
    local_bytes: int
    blocks: list[Block]
    labels: dict[str, int]
    threads: int  # of a block, at most


# -- reading ---------------------------------------------------------------------------------------
class Module:
    """The functions and the tables of a text."""

    def __init__(self, text: str) -> None:
        self.functions: dict[str, Function] = {}
        self.tables: dict[str, bytes] = {}
        self.shared: dict[str, tuple[int, int]] = {}  # where, and how long
        self.shared_bytes = 0
        text = re.sub(r"//[^\n]*", "", text)
        pattern = re.compile(
            r"\.(global|const|shared)\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+([\w$.]+)(?:\[(\d+)\])?"
            r"(?:\s*=\s*\{([^}]*)\})?\s*;"
        )
        for space, _, kind, name, count, values in pattern.findall(text):
            if space == "shared":
                size = int(count or 1) * BYTES[kind]
                start = -(-self.shared_bytes // 16) * 16
                self.shared[name], self.shared_bytes = (start, size), start + size
            else:
                numbers = [int(v, 0) for v in values.split(",")] if values else []
                numbers += [0] * (int(count or 1) - len(numbers))
                self.tables[name] = np.array(numbers, INTEGERS[kind].str).tobytes()
        head = re.compile(
            r"\.(?:visible \.entry|func)\s+(?:\(([^)]*)\)\s*)?([\w$.]+)\s*\(([^)]*)\)([^{;]*)\{"
        )
        for match in head.finditer(text):
            result, name, parameters, options = match.groups()
            end = _closing(text, match.end())
            most = re.search(r"\.maxntid (\d+)", options)
            self.functions[name] = _function(
                name, result or "", parameters, text[match.end() : end], int(most[1]) if most else 0
            )


def _closing(text: str, start: int) -> int:
    depth = 1
    while depth:
        depth += {"{": 1, "}": -1}.get(text[start], 0)
        start += 1
    return start - 1


def _parameters(text: str) -> list[tuple[str, str]]:
    found = []
    for part in filter(None, (p.strip() for p in text.split(","))):
        words = part.split()
        found.append((words[1].removeprefix("."), words[-1]))
    return found


def _function(name: str, result: str, parameters: str, body: str, threads: int) -> Function:
    results = _parameters(result)
    f = Function(
        name, _parameters(parameters), results[0][1] if results else "", {}, {}, 0, [Block()], {},
        threads,
    )  # fmt: skip
    for part in body.split(";"):
        statement = part.strip()
        while match := re.match(r"[{}]\s*|([\w$]+):\s*", statement):  # braces of a scope; labels
            if match[1]:
                if f.blocks[-1].instructions:
                    f.blocks.append(Block())
                f.labels[match[1]] = len(f.blocks) - 1
            statement = statement[match.end() :]
        if statement.startswith(".reg"):
            found = re.fullmatch(r"\.reg \.(\w+)\s+(%?\w+?)(?:<\d+>)?", statement)
            assert found is not None, statement
            f.registers[found[2]] = found[1]
        elif statement.startswith(".local"):
            found = re.fullmatch(r"\.local \.align \d+ \.b8\s+(\w+)\[(\d+)\]", statement)
            assert found is not None, statement
            f.local[found[1]] = f.local_bytes
            f.local_bytes += int(found[2])
        elif statement and not statement.startswith((".param", ".pragma", ".shared")):
            _add(f, _instruction(statement))
    for number, block in enumerate(f.blocks):
        block.follows = number + 1
    return f


def _add(f: Function, instruction: Instruction) -> None:
    if instruction.name[0] == "shfl" and f.blocks[-1].instructions:
        f.blocks.append(Block())  # threads that are here early wait for the others
    f.blocks[-1].instructions.append(instruction)
    if instruction.name[0] in ("bra", "ret", "bar", "barrier", "exit"):
        f.blocks.append(Block())


def _instruction(text: str) -> Instruction:
    predicate, negated, rest = "", False, text
    if text.startswith("@"):
        word, rest = text.split(None, 1)
        negated, predicate = word.startswith("@!"), word.lstrip("@!")
    name, _, operands = rest.partition(" " if " " in rest.partition("\t")[0] else "\t")
    listed = re.findall(r"\([^)]*\)|\{[^}]*\}|\[[^\]]*\]|[^,\s]+", operands)
    return Instruction(text, predicate, negated, name.split("."), listed)


# -- memory ----------------------------------------------------------------------------------------
class Memory:
    """The memory of a device. What was never allocated, or is free again, may not be touched."""

    def __init__(self) -> None:
        self.bytes = np.zeros(1 << 16, np.uint8)
        self.valid = np.zeros(1 << 16, np.bool_)
        self.end = GAP
        self.lengths: dict[int, int] = {}

    def allocate(self, size: int) -> int:
        start = self.end
        self.end = -(-(start + size + GAP) // ALIGNMENT) * ALIGNMENT
        while self.end > len(self.bytes):
            self.bytes = np.concatenate([self.bytes, np.zeros_like(self.bytes)])
            self.valid = np.concatenate([self.valid, np.zeros_like(self.valid)])
        self.bytes[start : start + size] = FILL
        self.valid[start : start + size] = True
        self.lengths[BASE + start] = size
        return BASE + start

    def free(self, address: int) -> None:
        start, size = address - BASE, self.lengths.pop(address)
        self.valid[start : start + size] = False

    def write(self, address: int, data: bytes | Array) -> None:
        raw = np.frombuffer(bytes(data), np.uint8)
        start = address - BASE
        if not self.valid[start : start + len(raw)].all():
            raise PtxError("a copy to memory that is not there")
        self.bytes[start : start + len(raw)] = raw

    def read(self, address: int, size: int) -> bytes:
        start = address - BASE
        if not self.valid[start : start + size].all():
            raise PtxError("a copy of memory that is not there")
        return self.bytes[start : start + size].tobytes()


def _bytes_at(store: Array, valid: Array | None, at: Array, size: int, text: str) -> Array:
    """The positions of elements of so many bytes."""
    if at.size and (int(at.min()) < 0 or int(at.max()) + size > store.shape[-1]):
        raise PtxError(f"an address outside of memory: {text}")
    if (at % size).any():
        raise PtxError(f"an address that is no multiple of {size}: {text}")
    places = at[:, None] + np.arange(size)
    if valid is not None and not valid[places].all():
        raise PtxError(f"an address in memory that is not there: {text}")
    return places


class Accesses:
    """Who has read and written what since the last barrier: two threads of which one writes may not
    touch one place, unless it writes what is there already."""

    def __init__(self, size: int) -> None:
        self.writer, self.reader = (np.full(size, -1, np.int64) for _ in range(2))

    def read(self, at: Array, threads: Array, text: str) -> None:
        writer, reader = self.writer[at], self.reader[at]
        if ((writer != -1) & (writer != threads)).any():
            raise PtxError(f"a thread reads what another writes, with no barrier between: {text}")
        new = np.where((reader == -1) | (reader == threads), threads, -2)  # -2: several
        self.reader[at] = new
        self.reader[at[self.reader[at] != new]] = -2

    def write(self, at: Array, threads: Array, same: Array, text: str) -> None:
        for other in (self.writer[at], self.reader[at]):
            if ((other != -1) & (other != threads) & ~same).any():
                raise PtxError(f"threads touch what another writes, with no barrier: {text}")
        self.writer[at] = threads


# -- running ---------------------------------------------------------------------------------------
class Launch:
    """The threads of some blocks."""

    def __init__(
        self,
        module: Module,
        memory: Memory,
        tables: dict[str, int],
        blocks: Sequence[int],
        size: int,
        accesses: Accesses | None = None,
    ) -> None:
        self.module, self.memory, self.tables = module, memory, tables
        self.accesses = accesses  # to global memory, by all threads of a launch
        self.first = blocks[0] * size
        count = len(blocks) * size
        self.count, self.size = count, size
        own = np.arange(count)
        self.special = {
            "%tid.x": (own % size).astype(np.uint32),
            "%ntid.x": np.full(count, size, np.uint32),
            "%ctaid.x": np.repeat(np.asarray(blocks, np.uint32), size),
            "%laneid": (own % size % 32).astype(np.uint32),
        }
        self.block_of = own // size
        self.shared = np.full((len(blocks), max(module.shared_bytes, 1)), FILL, np.uint8)
        self.shared_accesses = Accesses(self.shared.size)
        self.steps = 0

    def run(self, name: str, arguments: dict[str, Array], active: Array) -> Array | None:
        """Call a function by the threads of these numbers."""
        return Frame(self, self.module.functions[name], arguments, active).run()


class Frame:
    """A call of a function by some of the threads."""

    def __init__(
        self, launch: Launch, f: Function, arguments: dict[str, Array], active: Array
    ) -> None:
        self.launch, self.f, self.active = launch, f, active
        self.arguments = arguments
        self.registers: dict[str, Array] = {}
        self.outgoing: dict[str, Array] = {}
        self.result: Array | None = None
        self.local = np.full((launch.count, max(f.local_bytes, 1)), FILL, np.uint8)

    def run(self) -> Array | None:
        count, blocks = self.launch.count, self.f.blocks
        at = np.full(count, len(blocks), np.int64)  # of each thread the block; beyond all: done
        at[self.active] = 0
        waiting = np.zeros(count, np.bool_)
        while True:
            runnable = ~waiting & (at < len(blocks))
            if not runnable.any():
                if not waiting.any():
                    return self.result
                self._release(at, waiting)
                continue
            self._go_on(at, waiting, runnable)

    def _go_on(self, at: Array, waiting: Array, runnable: Array) -> None:
        """Run the earliest block whose threads need not wait for others."""
        for number in np.unique(at[runnable]):
            block = self.f.blocks[int(number)]
            threads = np.nonzero(runnable & (at == number))[0]
            if block.instructions and block.instructions[0].name[0] == "shfl":
                threads = self._gathered(block.instructions[0], threads)
            if len(threads):
                self.launch.steps += 1
                self._block(block, threads, at, waiting)
                return
        raise PtxError("a shuffle that not all of its threads reach")

    def _gathered(self, i: Instruction, threads: Array) -> Array:
        """Those at a shuffle all of whose threads are there."""
        members = self.value(i.operands[4], "u32", threads).astype(np.int64)
        there = np.zeros(self.launch.count + 32, np.bool_)
        there[threads] = True
        lanes = self.launch.special["%laneid"][threads].astype(np.int64)
        here = np.zeros(len(threads), np.int64)
        for lane in range(32):
            here |= there[threads - lanes + lane].astype(np.int64) << lane
        return threads[members & ~here == 0]

    def _release(self, at: Array, waiting: Array) -> None:
        """Let threads at a barrier go on, all of a block together."""
        by_block = waiting.reshape(-1, self.launch.size).copy()
        if not (by_block.all(1) | ~by_block.any(1)).all():
            raise PtxError("a barrier that some threads of a block never reach")
        places = at.reshape(-1, self.launch.size)
        if (places.max(1) != places.min(1))[by_block.any(1)].any():
            raise PtxError("threads of one block at different barriers")
        waiting[:] = False
        for table in (self.launch.shared_accesses.writer, self.launch.shared_accesses.reader):
            table.reshape(len(by_block), -1)[by_block.any(1)] = -1

    def _block(self, block: Block, threads: Array, at: Array, waiting: Array) -> None:
        goes = threads
        for i in block.instructions:
            here = threads
            if i.predicate:
                holds = self.registers[i.predicate][threads] != i.negated
                here = threads[holds]
            op = i.name[0]
            if op == "bra":
                at[here] = self.f.labels[i.operands[0]]
                goes = np.setdiff1d(threads, here, assume_unique=True)
            elif op in ("ret", "exit"):
                at[here] = len(self.f.blocks)
                goes = np.setdiff1d(threads, here, assume_unique=True)
            elif op in ("bar", "barrier"):
                waiting[here] = True
            elif len(here):
                self._execute(i, here)
        at[goes] = block.follows

    # -- operands -----------------------------------------------------------------------------
    def kind_of(self, register: str) -> str:
        prefix = re.match(r"%?[a-zA-Z]+", register)
        assert prefix is not None
        return self.f.registers[prefix[0]]

    def value(self, operand: str, kind: str, threads: Array) -> Array:
        """An operand as numbers of a type."""
        if operand in self.launch.special:
            raw = self.launch.special[operand][threads]
        elif operand.startswith("%") or operand in self.f.registers:
            if operand not in self.registers:
                raise PtxError(f"{operand} is read before it is written, in {self.f.name}")
            raw = self.registers[operand][threads]
        else:
            raw = np.full(len(threads), _literal(operand, self, kind))
        if kind == "pred":
            return raw
        if kind in FLOATS:
            width = np.dtype(f"u{BYTES[kind]}")
            return raw.astype(width, copy=False).view(FLOATS[kind])
        return raw.astype(np.dtype(f"u{BYTES[kind]}"), copy=False).view(INTEGERS[kind])

    def write(self, register: str, value: Array, threads: Array) -> None:
        """Set a register; numbers with a sign are extended by it to the width of the register."""
        kind = self.kind_of(register)
        if kind == "pred":
            raw = value.astype(np.bool_)
        else:
            if value.dtype.kind == "f":
                value = value.view(f"u{value.dtype.itemsize}")
            raw = value.astype(
                np.dtype(f"i{BYTES[kind]}" if value.dtype.kind == "i" else f"u{BYTES[kind]}")
            )
            raw = raw.view(f"u{BYTES[kind]}")
        if register not in self.registers:
            self.registers[register] = np.zeros(self.launch.count, raw.dtype)
        self.registers[register][threads] = raw

    def address(self, operand: str, threads: Array) -> Array:
        found = re.fullmatch(r"\[\s*([^\s+-]+?)\s*(?:([+-]\s*\d+)|\+(-\d+))?\s*\]", operand)
        assert found is not None, operand
        base, offset = found[1], int((found[2] or found[3] or "0").replace(" ", ""))
        short = base.startswith("%") and self.kind_of(base) == "b32"
        return self.value(base, "s32" if short else "s64", threads).astype(np.int64) + offset

    # -- instructions -------------------------------------------------------------------------
    def _execute(self, i: Instruction, threads: Array) -> None:
        op, rest = i.name[0], i.name[1:]
        if op in ("ld", "st"):
            self._memory(i, threads)
        elif op == "call":
            self._call(i, threads)
        elif op == "shfl":
            self._shuffle(i, threads)
        elif op == "setp":
            kind = rest[-1]
            a, b = (self.value(x, kind, threads) for x in i.operands[1:])
            self.write(i.operands[0], COMPARE[rest[0]](a, b), threads)
        elif op == "selp":
            c = self.value(i.operands[3], "pred", threads)
            a, b = (self.value(x, rest[-1], threads) for x in i.operands[1:3])
            self.write(i.operands[0], np.where(c, a, b), threads)
        elif op in ("mov", "cvta"):
            self._move(i, threads)
        elif op == "cvt":
            self.write(i.operands[0], self._converted(i, threads), threads)
        elif op in ("mul", "mad") and "wide" in rest:
            kind = rest[-1]
            wide = f"{kind[0]}{2 * int(kind[1:])}"
            a, b = (self.value(x, kind, threads).astype(INTEGERS[wide]) for x in i.operands[1:3])
            found = a * b
            if op == "mad":
                found = found + self.value(i.operands[3], wide, threads)
            self.write(i.operands[0], found, threads)
        else:
            self._arithmetic(i, threads)

    def _arithmetic(self, i: Instruction, threads: Array) -> None:
        assert len(i.name) > 1, i.text
        op, *modifiers, kind = i.name
        if kind in FLOATS and op in ROUNDED and "rn" not in modifiers:
            raise PtxError(f"an operation that may be contracted or approximated: {i.text}")
        kinds = [kind] * (len(i.operands) - 1)
        if op in ("shl", "shr"):
            kinds[1] = "u32"
        elif op == "bfe":
            kinds[1:] = ["u32", "u32"]
        operands = [self.value(x, k, threads) for x, k in zip(i.operands[1:], kinds, strict=True)]
        key = ".".join([op, *(m for m in modifiers if m in ("lo", "hi", "NaN", "l", "wrap"))])
        if key not in ARITHMETIC:
            raise PtxError(f"an instruction that is not known: {i.text}")
        with np.errstate(all="ignore"):
            self.write(i.operands[0], ARITHMETIC[key](*operands), threads)

    def _move(self, i: Instruction, threads: Array) -> None:
        to, source = i.operands
        if i.name[0] == "cvta" and "local" in i.name:
            at = self.value(source, "u64", threads)
            self.write(
                to, at + np.uint64(LOCAL) if "to" not in i.name else at - np.uint64(LOCAL), threads
            )
            return
        kind = i.name[-1]
        if "{" not in i.text:
            self.write(to, self.value(source, kind, threads), threads)
            return
        names = (to if "{" in to else source).strip("{} ").replace(",", " ").split()
        part = 8 * BYTES[kind] // len(names)
        if "{" in to:
            whole = self.value(source, f"u{8 * BYTES[kind]}", threads)
            for number, name in enumerate(names):
                piece = whole >> np.array(number * part, whole.dtype)
                self.write(name, piece.astype(f"u{part // 8}"), threads)
            return
        whole = np.zeros(len(threads), np.uint64)
        for number, name in enumerate(names):
            piece = self.value(name, f"u{part}", threads).astype(np.uint64)
            whole |= piece << np.uint64(number * part)
        self.write(to, whole.astype(f"u{BYTES[kind]}"), threads)

    def _converted(self, i: Instruction, threads: Array) -> Array:
        *modifiers, to, source = i.name[1:]
        x = self.value(i.operands[1], source, threads)
        rounding = next((m for m in modifiers if m in ROUNDING), "")
        with np.errstate(all="ignore"):
            if source in FLOATS and to in FLOATS:
                if rounding.endswith("i"):
                    return ROUNDING[rounding](x).astype(FLOATS[to])
                if BYTES[to] < BYTES[source] and rounding != "rn":
                    raise PtxError(f"a rounding that is not known: {i.text}")
                return x.astype(FLOATS[to])
            if source in FLOATS:
                info = np.iinfo(INTEGERS[to])
                whole = ROUNDING[rounding](x)
                low, high = FLOATS[source](info.min), FLOATS[source](info.max)
                safe = np.where(np.isnan(x) | (whole >= high) | (whole <= low), 0, whole)
                found = safe.astype(INTEGERS[to])
                found = np.where(whole >= high, info.max, found)
                found = np.where(whole <= low, info.min, found)
                return np.where(np.isnan(x), 0, found).astype(INTEGERS[to])
            if to in FLOATS:
                if rounding != "rn":
                    raise PtxError(f"a rounding that is not known: {i.text}")
                return x.astype(FLOATS[to])
            return x.astype(INTEGERS[to])

    # -- memory -------------------------------------------------------------------------------
    def _memory(self, i: Instruction, threads: Array) -> None:
        op, *modifiers, kind = i.name
        space = next((m for m in modifiers if m in ("param", "shared", "local", "global")), "")
        place = i.operands[0] if op == "st" else i.operands[1]
        other = i.operands[1] if op == "st" else i.operands[0]
        if space == "param":
            self._parameter(op, kind, place.strip("[]"), other, threads)
            return
        names = other.strip("{}").replace(",", " ").split()
        start = self.address(place, threads)
        for number, name in enumerate(names):
            at = start + number * BYTES[kind]
            if op == "ld":
                self.write(name, self._load(space, kind, at, threads, i.text), threads)
            else:
                self._store(space, kind, at, self.value(name, kind, threads), threads, i.text)

    def _parts(
        self, space: str, at: Array, threads: Array
    ) -> list[tuple[Array, Any, Array | None, Array]]:
        """Which threads touch which memory: an array, the row of it that each has, what is valid,
        and positions."""
        every = np.ones(len(threads), np.bool_)
        if space == "shared":
            return [(every, (self.launch.shared, self.launch.block_of[threads]), None, at)]
        local = every if space == "local" else at >= LOCAL if not space else ~every
        memory = self.launch.memory
        parts: list[Any] = []
        if local.any():
            own = at[local] - (0 if space == "local" else LOCAL)
            parts.append((local, (self.local, threads[local]), None, own))
        if not local.all():
            parts.append((~local, (memory.bytes, None), memory.valid, at[~local] - BASE))
        return parts

    def _load(self, space: str, kind: str, at: Array, threads: Array, text: str) -> Array:
        size = BYTES[kind]
        raw = np.zeros((len(threads), size), np.uint8)
        for chosen, (store, rows), valid, own in self._parts(space, at, threads):
            places = _bytes_at(store, valid, own, size, text)
            raw[chosen] = store[places] if rows is None else store[rows[:, None], places]
            table, at_all = self._accesses(store, rows, own)
            if table is not None:
                table.read(at_all, threads[chosen] + self.launch.first, text)
        return raw.reshape(-1).view(INTEGERS[kind] if kind in INTEGERS else FLOATS[kind])

    def _store(
        self, space: str, kind: str, at: Array, value: Array, threads: Array, text: str
    ) -> None:
        raw = np.ascontiguousarray(value).view(np.uint8).reshape(len(threads), BYTES[kind])
        for chosen, (store, rows), valid, own in self._parts(space, at, threads):
            places = _bytes_at(store, valid, own, BYTES[kind], text)
            index = places if rows is None else (rows[:, None], places)
            table, at_all = self._accesses(store, rows, own)
            if table is not None:
                _no_race(at_all, raw[chosen], text)
                same = (store[index] == raw[chosen]).all(1)
                table.write(at_all, threads[chosen] + self.launch.first, same, text)
            store[index] = raw[chosen]

    def _accesses(
        self, store: Array, rows: Array | None, at: Array
    ) -> tuple[Accesses | None, Array]:
        """Where accesses to memory that threads share are noted, and their places there."""
        if store is self.launch.shared:
            assert rows is not None
            return self.launch.shared_accesses, rows * store.shape[1] + at
        return (self.launch.accesses if rows is None else None), at

    def _parameter(self, op: str, kind: str, name: str, other: str, threads: Array) -> None:
        if op == "st":
            value = self.value(other, kind, threads)
            if name == self.f.result:
                if self.result is None:
                    self.result = np.zeros(self.launch.count, value.dtype)
                self.result[threads] = value
                return
            table = self.outgoing.setdefault(name, np.zeros(self.launch.count, value.dtype))
            if table.dtype != value.dtype:
                table = self.outgoing[name] = np.zeros(self.launch.count, value.dtype)
            table[threads] = value
            return
        found = self.outgoing.get(name)
        if found is None:
            found = self.arguments[name]
        whole = found[threads]
        raw = whole.view(f"u{whole.dtype.itemsize}").astype(f"u{BYTES[kind]}")
        self.write(other, raw.view(INTEGERS[kind]) if kind in INTEGERS else raw, threads)

    def _call(self, i: Instruction, threads: Array) -> None:
        result, name, given = i.operands if len(i.operands) == 3 else ("", *i.operands)
        f = self.launch.module.functions[name]
        sent = [x.strip() for x in given.strip("()").split(",") if x.strip()]
        arguments = {p: self.outgoing[x] for (_, p), x in zip(f.parameters, sent, strict=True)}
        found = self.launch.run(name, arguments, threads)
        if result:
            assert found is not None
            own = result.strip("()")
            before = self.outgoing.get(own)
            if before is None or before.dtype != found.dtype:
                before = self.outgoing[own] = np.zeros(self.launch.count, found.dtype)
            before[threads] = found[threads]

    def _shuffle(self, i: Instruction, threads: Array) -> None:
        how = i.name[2]
        to, source, by, clamp, members = i.operands
        x = self.value(source, "u32", threads)
        everything = np.zeros(self.launch.count, np.uint32)
        everything[threads] = x
        there = np.zeros(self.launch.count, np.bool_)
        there[threads] = True
        lane = self.launch.special["%laneid"][threads].astype(np.int64)
        b, c, m = (self.value(v, "u32", threads).astype(np.int64) for v in (by, clamp, members))
        warp = threads - lane
        for other in range(32):
            named = (m >> other) & 1 == 1
            if not there[np.minimum(warp + other, self.launch.count - 1)][named].all():
                raise PtxError("a shuffle that not all of its threads have reached")
        if ((m >> lane) & 1 != 1).any():
            raise PtxError("a shuffle by a thread that it does not name")
        segment = (c >> 8) & 31
        b, most = b & 31, c & 31
        limit = (lane & segment) | (most & ~segment)
        least = lane & segment
        j = {"up": lane - b, "down": lane + b, "bfly": lane ^ b,
             "idx": least | (b & ~segment)}[how]  # fmt: skip
        inside = j >= limit if how == "up" else j <= limit
        j = np.where(inside, j, lane)
        if ((m >> j) & 1 != 1).any():
            raise PtxError("a shuffle from a thread that it does not name")
        self.write(to, everything[warp + j], threads)


def _no_race(at: Array, raw: Array, text: str) -> None:
    """Threads may write to one place together only what is the same."""
    order = np.argsort(at, kind="stable")
    same = at[order][1:] == at[order][:-1]
    if same.any() and (raw[order][1:][same] != raw[order][:-1][same]).any():
        raise PtxError(f"threads write different values to one place: {text}")


def _literal(operand: str, frame: Frame, kind: str) -> Any:
    if operand in frame.f.local:
        return np.int64(frame.f.local[operand])
    if operand in frame.launch.module.shared:
        return np.int64(frame.launch.module.shared[operand][0])
    if operand in frame.launch.tables:
        return np.int64(frame.launch.tables[operand])
    if operand in ("true", "false"):
        return operand == "true"
    if re.fullmatch(r"0[fd][0-9A-Fa-f]+", operand):
        return np.uint64(int(operand[2:], 16))
    if operand.startswith("0x") and kind == "f16":
        return np.uint64(int(operand, 16))
    return np.uint64(int(operand, 0) % (1 << 64))


# -- arithmetic ------------------------------------------------------------------------------------
ROUNDED = frozenset(("add", "sub", "mul", "fma", "div", "rcp", "sqrt"))
ROUNDING: dict[str, Callable[[Array], Array]] = {
    "rn": lambda x: x, "rni": np.rint, "rmi": np.floor, "rpi": np.ceil, "rzi": np.trunc,
}  # fmt: skip


def _ordered(f: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    return f


def _or_nan(f: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    return lambda a, b: f(a, b) | np.isnan(a) | np.isnan(b)


COMPARE: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal,
    "ne": lambda a, b: (
        (a != b) & ~np.isnan(a) & ~np.isnan(b) if a.dtype.kind == "f" else a != b
    ),
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal,
    "equ": _or_nan(np.equal), "neu": _or_nan(np.not_equal), "ltu": _or_nan(np.less),
    "leu": _or_nan(np.less_equal), "gtu": _or_nan(np.greater), "geu": _or_nan(np.greater_equal),
    "num": lambda a, b: ~(np.isnan(a) | np.isnan(b)),
    "nan": lambda a, b: np.isnan(a) | np.isnan(b),
}  # fmt: skip


@cache
def _fused() -> dict[int, Callable[..., None]]:
    """`fma` on arrays, by the processor, by the size of an element."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    text = ""
    for kind, short in (("float", "f32"), ("double", "f64")):
        text += f"""
declare {kind} @llvm.fma.{short}({kind}, {kind}, {kind})
define void @{short}(ptr %a, ptr %b, ptr %c, ptr %y, i64 %n) {{
start:
  br label %head
head:
  %i = phi i64 [ 0, %start ], [ %next, %body ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %body, label %end
body:
  %pa = getelementptr {kind}, ptr %a, i64 %i
  %pb = getelementptr {kind}, ptr %b, i64 %i
  %pc = getelementptr {kind}, ptr %c, i64 %i
  %py = getelementptr {kind}, ptr %y, i64 %i
  %va = load {kind}, ptr %pa
  %vb = load {kind}, ptr %pb
  %vc = load {kind}, ptr %pc
  %v = call {kind} @llvm.fma.{short}({kind} %va, {kind} %vb, {kind} %vc)
  store {kind} %v, ptr %py
  %next = add i64 %i, 1
  br label %head
end:
  ret void
}}
"""
    target = llvm.Target.from_default_triple()
    features = llvm.get_host_cpu_features().flatten()
    machine = target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=2, jit=True
    )
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine)
    engine.finalize_object()
    _KEPT.append(engine)
    signature = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4, ctypes.c_int64)
    return {
        size: signature(engine.get_function_address(name))
        for size, name in ((4, "f32"), (8, "f64"))
    }


_KEPT: list[Any] = []


def _fma(a: Array, b: Array, c: Array) -> Array:
    a, b, c = (np.ascontiguousarray(x) for x in (a, b, c))
    y = np.empty_like(a)
    _fused()[a.itemsize](a.ctypes.data, b.ctypes.data, c.ctypes.data, y.ctypes.data, a.size)
    return y


def _halves(a: Array) -> tuple[list[int], int]:
    return [int(x) for x in a], 8 * a.itemsize


def _high(a: Array, b: Array) -> Array:
    (x, bits), (y, _) = _halves(a), _halves(b)
    mask = (1 << bits) - 1
    raw = [((p * q) >> bits) & mask for p, q in zip(x, y, strict=True)]
    return np.array(raw, np.uint64).astype(f"u{a.itemsize}").view(a.dtype)


def _divide(a: Array, b: Array) -> Array:
    """Rounded towards zero, of integers; a divisor of zero gives a number that is not said."""
    if a.dtype.kind == "f":
        return a / b
    safe = np.where(b == 0, 1, b).astype(a.dtype)
    if a.dtype.kind == "u":
        return a // safe
    quotient = a // safe
    inexact = quotient * safe != a
    return quotient + (inexact & ((a < 0) != (safe < 0))).astype(a.dtype)


def _shift(left: bool) -> Callable[[Array, Array], Array]:
    def shift(a: Array, by: Array) -> Array:
        bits = 8 * a.itemsize
        inside = by < bits
        count = np.where(inside, by, 0).astype(a.dtype)
        moved = a << count if left else a >> count
        rest = (
            a >> np.array(bits - 1).astype(a.dtype) if a.dtype.kind == "i" and not left else a ^ a
        )
        return np.where(inside, moved, rest)

    return shift


def _field(a: Array, start: Array, length: Array) -> Array:
    """The bits of a field, extended by its sign where the type has one."""
    bits = 8 * a.itemsize
    found = []
    for x, s, n in zip(a, start, length, strict=True):
        s, n = int(s) & 255, int(n) & 255
        raw = (int(x) % (1 << bits)) >> s
        kept = raw & ((1 << n) - 1)
        if a.dtype.kind == "i" and n:
            sign = (int(x) % (1 << bits)) >> min(s + n - 1, bits - 1) & 1
            kept |= (-1 << n) & ((1 << bits) - 1) if sign else 0
        found.append(kept & ((1 << bits) - 1))
    return np.array(found, np.uint64).astype(f"u{a.itemsize}").view(a.dtype)


def _extreme(larger: bool, keeps_nan: bool) -> Callable[[Array, Array], Array]:
    def extreme(a: Array, b: Array) -> Array:
        if a.dtype.kind != "f":
            return np.maximum(a, b) if larger else np.minimum(a, b)
        zeros = (a == 0) & (b == 0)
        negative = np.signbit(a) & np.signbit(b) if larger else np.signbit(a) | np.signbit(b)
        pick = np.fmax(a, b) if larger else np.fmin(a, b)
        if keeps_nan:
            pick = np.where(np.isnan(a) | np.isnan(b), np.array(np.nan, a.dtype), pick)
        zero = np.where(negative, np.array(-0.0, a.dtype), np.array(0.0, a.dtype))
        return np.where(zeros, zero, pick)

    return extreme


def _leading_zeros(a: Array) -> Array:
    bits = 8 * a.itemsize
    return np.array([bits - int(x).bit_length() for x in a.view(f"u{a.itemsize}")], np.uint32)


def _negative(a: Array) -> Array:
    return -a if a.dtype.kind == "f" else (~a + np.array(1, a.dtype)).astype(a.dtype)


def _copysign(a: Array, b: Array) -> Array:
    """The second operand with the sign of the first."""
    return np.copysign(b, a)


def _funnel(a: Array, b: Array, c: Array) -> Array:
    """The high half of two words, `b` above `a`, moved up by so many places, modulo 32."""
    wide = (b.astype(np.uint64) << np.uint64(32)) | a.astype(np.uint64)
    return ((wide << (c.astype(np.uint64) & np.uint64(31))) >> np.uint64(32)).astype(np.uint32)


def _bool_not(a: Array) -> Array:
    return ~a


ARITHMETIC: dict[str, Callable[..., Array]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "mul.lo": np.multiply,
    "mul.hi": _high, "mad.lo": lambda a, b, c: a * b + c, "fma": _fma,
    "div": _divide, "rem": lambda a, b: a - _divide(a, b) * b,
    "rcp": lambda a: np.array(1, a.dtype) / a, "sqrt": np.sqrt,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "not": _bool_not,
    "shl": _shift(True), "shr": _shift(False), "bfe": _field, "shf.l.wrap": _funnel,
    "popc": lambda a: np.array([int(x).bit_count() for x in a], np.uint32),
    "neg": _negative, "abs": np.abs, "clz": _leading_zeros, "copysign": _copysign,
    "max": _extreme(True, False), "min": _extreme(False, False),
    "max.NaN": _extreme(True, True), "min.NaN": _extreme(False, True),
}  # fmt: skip


def run(
    module: Module,
    memory: Memory,
    tables: dict[str, int],
    name: str,
    arguments: Sequence[int],
    blocks: int,
    threads: int,
    at_once: int = 1 << 14,
) -> None:
    """Run a kernel: so many blocks of so many threads."""
    f = module.functions[name]
    if f.threads and threads > f.threads:
        raise PtxError(f"{threads} threads in a block of {name}, which takes {f.threads}")
    step = max(at_once // threads, 1)
    accesses = Accesses(len(memory.bytes)) if memory.valid is not None else None
    for first in range(0, blocks, step):
        own = range(first, min(first + step, blocks))
        launch = Launch(module, memory, tables, own, threads, accesses)
        words = {
            p: np.full(launch.count, np.int64(a))
            for (_, p), a in zip(f.parameters, arguments, strict=True)
        }
        launch.run(name, words, np.arange(launch.count))
