"""The stable order of rows of keys, which are unsigned words.

A row that fits into workgroup memory is sorted there by Batcher's bitonic network (1968), keys with
equal words by their positions. Longer ones are sorted by radix, the lowest digit first: of each
pass, one dispatch counts the digits of every block, the next finds where those of a block begin,
and the third moves positions there.
"""

from __future__ import annotations

from collections.abc import Sequence

from retrograd.ir import TensorType, int32
from retrograd.schedule.buffer import Buffer
from retrograd.wgpu.dispatch import Dispatch, EmitContext
from retrograd.wgpu.shader_writer import ShaderWriter

WORD = 32
DIGIT = 4  # bits that a pass sorts by
DIGITS = 1 << DIGIT
SHARE = 16  # elements of an invocation
LANES = 64
BLOCK = SHARE * LANES
SCANNERS = 256  # invocations that find where blocks begin


def order_of(
    context: EmitContext, keys: Sequence[Buffer], bits: Sequence[int], rows: int, n: int
) -> tuple[list[Dispatch], Buffer]:
    """What writes the order of rows of `n` keys, and the buffer where that will be: positions in
    the row. Of the words of a key the lowest comes first; `bits` says how many of each are used."""
    fits = context.facts.workgroup_memory // (4 * (len(keys) + 1))
    if _padded(n) <= fits:
        whole = context.scratch(TensorType(int32, (rows, n)))
        return [_bitonic(context, keys, rows, n, whole)], whole
    found: list[Dispatch] = []
    order: Buffer | None = None
    for key, used in zip(keys, bits, strict=True):
        for shift in range(0, used, DIGIT):
            passed, order = _radix_pass(context, key, shift, rows, n, order)
            found += passed
    assert order is not None
    return found, order


def _padded(n: int) -> int:
    return max(2, 1 << (n - 1).bit_length())


def _bitonic(
    context: EmitContext, keys: Sequence[Buffer], rows: int, n: int, order: Buffer
) -> Dispatch:
    """A workgroup for each row. What fills the row up comes last: its positions are the highest."""
    size = _padded(n)
    lanes = min(size // 2, SCANNERS)
    w = ShaderWriter(context, lanes)
    for k in range(len(keys)):
        w.declare(f"var<workgroup> word{k}: array<u32, {size}>;")
    w.declare(f"var<workgroup> places: array<i32, {size}>;")
    with w.loop(f"{size}i", "lane", f"{lanes}i") as i:
        w.line(f"places[{i}] = {i};")
        for k, key in enumerate(keys):
            w.line(f"word{k}[{i}] = 0xffffffffu;")
            with w.block(f"if ({i} < {n}i)"):
                w.line(f"word{k}[{i}] = {w.load(key, f'group * {n}i + {i}')};")
    w.line("workgroupBarrier();")
    with (
        w.block(f"for (var size = 2i; size <= {size}i; size = size << 1u)"),
        w.block("for (var stride = size >> 1u; stride > 0i; stride = stride >> 1u)"),
    ):
        with w.loop(f"{size // 2}i", "lane", f"{lanes}i") as i:
            w.line(f"let a = ({i} / stride) * stride * 2i + {i} % stride;")
            w.line("let b = a + stride;")
            after = "places[a] > places[b]"
            for k in range(len(keys)):
                x, y = f"word{k}[a]", f"word{k}[b]"
                after = f"({x} > {y} || ({x} == {y} && {after}))"
            with w.block(f"if ({after} == ((a & size) == 0i))"):
                for name in (*[f"word{k}" for k in range(len(keys))], "places"):
                    w.line(f"let {name}_a = {name}[a];")
                    w.line(f"{name}[a] = {name}[b];")
                    w.line(f"{name}[b] = {name}_a;")
        w.line("workgroupBarrier();")
    with w.loop(f"{n}i", "lane", f"{lanes}i") as i:
        w.store(order, f"group * {n}i + {i}", f"places[{i}]")
    return w.dispatch(rows, "sort")


def _radix_pass(
    context: EmitContext, key: Buffer, shift: int, rows: int, n: int, before: Buffer | None
) -> tuple[list[Dispatch], Buffer]:
    """What sorts an order by a digit of the keys; `before` there is none that of the positions."""
    blocks = -(-n // BLOCK)
    starts = context.scratch(TensorType(int32, (rows, DIGITS, blocks)))
    after = context.scratch(TensorType(int32, (rows, n)))
    args = context, key, shift, n, blocks, before, starts
    return [
        _counted(*args).dispatch(rows * blocks, "sort"),
        _starts(context, rows, blocks, starts),
        _moved(*args, after).dispatch(rows * blocks, "sort"),
    ], after


def _counted(
    context: EmitContext, key: Buffer, shift: int, n: int, blocks: int, before: Buffer | None,
    starts: Buffer, write: bool = True,
) -> ShaderWriter:  # fmt: skip
    """How often a block has each digit; in workgroup memory how often each invocation has."""
    w = ShaderWriter(context, LANES)
    w.declare(f"var<workgroup> counts: array<i32, {DIGITS * LANES}>;")
    w.line(f"let row = group / {blocks}i;")
    w.line(f"let block = group % {blocks}i;")
    w.line(f"let first = block * {BLOCK}i + lane * {SHARE}i;")
    w.line(f"let last = min(first + {SHARE}i, {n}i);")
    with w.loop(f"{DIGITS}i") as d:
        w.line(f"counts[{d} * {LANES}i + lane] = 0i;")
    with w.loop("last", "first") as i:
        _, digit = _digit(w, key, shift, n, before, i)
        w.line(f"counts[{digit} * {LANES}i + lane] += 1i;")
    w.line("workgroupBarrier();")
    if write:
        with w.block(f"if (lane < {DIGITS}i)"):
            total = w.variable("i32", "0i")
            with w.loop(f"{LANES}i") as k:
                w.line(f"{total} += counts[lane * {LANES}i + {k}];")
            w.store(starts, f"(row * {DIGITS}i + lane) * {blocks}i + block", total)
    return w


def _digit(
    w: ShaderWriter, key: Buffer, shift: int, n: int, before: Buffer | None, i: str
) -> tuple[str, str]:
    """Which element of the row comes at a place so far, and its digit."""
    element = i if before is None else w.new(w.load(before, f"row * {n}i + {i}"))
    word = w.load(key, f"row * {n}i + {element}")
    return element, w.new(f"i32(({word} >> {shift}u) & {DIGITS - 1}u)")


def _starts(context: EmitContext, rows: int, blocks: int, starts: Buffer) -> Dispatch:
    """Instead of how many there are, how many come before: of smaller digits, of the same digit in
    blocks before. A workgroup for each row."""
    size = DIGITS * blocks
    lanes = min(SCANNERS, context.facts.workgroup_size)
    share = -(-size // lanes)
    w = ShaderWriter(context, lanes)
    w.declare(f"var<workgroup> sums: array<i32, {lanes}>;")
    w.line(f"let first = group * {size}i + min(lane * {share}i, {size}i);")
    w.line(f"let last = group * {size}i + min((lane + 1i) * {share}i, {size}i);")
    total = w.variable("i32", "0i")
    with w.loop("last", "first") as i:
        w.line(f"{total} += {w.load(starts, i)};")
    running(w, "sums", total, lanes)
    w.line(f"{total} = sums[lane] - {total};")
    with w.loop("last", "first") as i:
        count = w.new(w.load(starts, i))
        w.store(starts, i, total)
        w.line(f"{total} += {count};")
    return w.dispatch(rows, "sort")


def running(w: ShaderWriter, name: str, value: str, lanes: int) -> None:
    """The running sums of the invocations' values, in workgroup memory."""
    w.line(f"{name}[lane] = {value};")
    step = 1
    while step < lanes:
        w.line("workgroupBarrier();")
        moved = w.new(f"select(0i, {name}[max(lane - {step}i, 0i)], lane >= {step}i)")
        w.line("workgroupBarrier();")
        w.line(f"{name}[lane] += {moved};")
        step *= 2


def _moved(
    context: EmitContext, key: Buffer, shift: int, n: int, blocks: int, before: Buffer | None,
    starts: Buffer, after: Buffer,
) -> ShaderWriter:  # fmt: skip
    """Each position to where its digit's go."""
    w = _counted(context, key, shift, n, blocks, before, starts, write=False)
    with w.block(f"if (lane < {DIGITS}i)"):
        total = w.variable("i32", w.load(starts, f"(row * {DIGITS}i + lane) * {blocks}i + block"))
        with w.loop(f"{LANES}i") as k:
            w.line(f"let count{k} = counts[lane * {LANES}i + {k}];")
            w.line(f"counts[lane * {LANES}i + {k}] = {total};")
            w.line(f"{total} += count{k};")
    w.line("workgroupBarrier();")
    with w.loop("last", "first") as i:
        element, digit = _digit(w, key, shift, n, before, i)
        place = w.new(f"counts[{digit} * {LANES}i + lane]")
        w.line(f"counts[{digit} * {LANES}i + lane] = {place} + 1i;")
        w.store(after, f"row * {n}i + {place}", element)
    return w
