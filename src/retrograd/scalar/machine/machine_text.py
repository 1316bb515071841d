"""The machine as LLVM's text: one loop forward, one backward, over the rows of a block.

`run(block, from, to, way)` with `way` 0 computes the values of the rows in [from, to) and returns
the first that is not written yet, or `to`. With `way` 1 it goes from row `from` down to row `to`
and adds to the cotangents of the operands of each row that has one, as the row's stamp says; it
returns the number of operations that are still to come.

Rows whose value was given end the way back: they are noted in a list, each once.
"""

from __future__ import annotations

from retrograd.scalar.machine.arithmetic import Text, declarations
from retrograd.scalar.machine.formulas import backward, forward
from retrograd.scalar.machine.opcodes import CUSTOM, OPCODES, UNWRITTEN
from retrograd.scalar.machine.tape_memory import FIELDS

_KINDS = {"code": "i8", "a": "i32", "b": "i32", "values": "double", "grads": "double",
          "stamps": "i32", "reached": "i32"}  # fmt: skip


def machine_text() -> str:
    """The module."""
    return "\n".join([
        declarations(),
        *_forward(),
        *_backward(),
        "define i64 @run(ptr %block, i64 %from, i64 %to, i64 %way) {",
        "  %back = icmp ne i64 %way, 0",
        "  br i1 %back, label %b, label %f",
        "f:",
        "  %x = call i64 @forward(ptr %block, i64 %from, i64 %to)",
        "  ret i64 %x",
        "b:",
        "  %y = call i64 @backward(ptr %block, i64 %from, i64 %to)",
        "  ret i64 %y",
        "}",
        "",
    ])  # fmt: skip


def _fields(t: Text, names: list[str]) -> None:
    for name in names:
        t.line(f"%at.{name} = getelementptr i64, ptr %block, i64 {FIELDS.index(name)}")
        kind = "ptr" if name in _KINDS else "i64"
        t.line(f"%{name} = load {kind}, ptr %at.{name}")


def _get(t: Text, name: str, index: str) -> str:
    kind = _KINDS[name]
    at = t.new(f"getelementptr {kind}, ptr %{name}, i64 {index}")
    return t.new(f"load {kind}, ptr {at}")


def _put(t: Text, name: str, index: str, value: str) -> None:
    kind = _KINDS[name]
    at = t.new(f"getelementptr {kind}, ptr %{name}, i64 {index}")
    t.line(f"store {kind} {value}, ptr {at}")


def _operand(t: Text, name: str) -> tuple[str, str]:
    """The row an operand is, and its value."""
    row = t.new(f"zext i32 {_get(t, name, '%i')} to i64")
    return row, _get(t, "values", row)


def _switch(t: Text, default: str, given: str) -> None:
    cases = " ".join([f"i8 {o.code}, label %op.{o.name}" for o in OPCODES])
    rows = " ".join([f"i8 {k}, label %{given}" for k in range(CUSTOM + 1)])
    t.line(f"switch i8 %op, label %{default} [ {rows} {cases} ]")


def _forward() -> list[str]:
    t = Text()
    t.lines.append("define internal i64 @forward(ptr %block, i64 %from, i64 %to) {")
    t.block("entry")
    _fields(t, ["code", "a", "b", "values"])
    t.line("%some = icmp slt i64 %from, %to")
    t.line("br i1 %some, label %row, label %end")
    t.block("row")
    t.line("%i = phi i64 [ %from, %entry ], [ %next, %on ]")
    t.line(f"%op = load i8, ptr {t.new('getelementptr i8, ptr %code, i64 %i')}")
    _switch(t, "stop", "on")
    for o in OPCODES:
        t.block(f"op.{o.name}")
        given = {"a": _operand(t, "a")[1]}
        if o.arity == 2:
            given["b"] = _operand(t, "b")[1]
        (y,) = t.evaluate(forward(o), given)
        assert y is not None
        _put(t, "values", "%i", y)
        t.line("br label %on")
    t.block("on")
    t.line("%next = add i64 %i, 1")
    t.line("%more = icmp slt i64 %next, %to")
    t.line("br i1 %more, label %row, label %end")
    t.block("end")
    t.line("ret i64 %to")
    t.block("stop")
    t.line("ret i64 %i")
    t.lines.append("}")
    return t.lines


def _backward() -> list[str]:
    t = Text()
    t.lines.append("define internal i64 @backward(ptr %block, i64 %from, i64 %to) {")
    t.block("entry")
    _fields(t, [*_KINDS, "found", "coming", "epoch"])
    t.line("%now = trunc i64 %epoch to i32")
    t.line("br label %row")
    t.block("row")
    t.line("%i = phi i64 [ %from, %entry ], [ %next, %on ]")
    # How many given rows were found, how many operations have a cotangent and were not visited.
    t.line("%f = phi i64 [ %found, %entry ], [ %f.on, %on ]")
    t.line("%c = phi i64 [ %coming, %entry ], [ %c.on, %on ]")
    t.line("%low = icmp slt i64 %i, %to")
    t.line("%none = icmp eq i64 %c, 0")
    t.line(f"br i1 {t.new('or i1 %low, %none')}, label %end, label %look")
    t.block("look")
    t.line(f"%has = icmp eq i32 {_get(t, 'stamps', '%i')}, %now")
    t.line("br i1 %has, label %do, label %skip")
    t.block("do")
    t.line(f"%op = load i8, ptr {t.new('getelementptr i8, ptr %code, i64 %i')}")
    t.line("%c.less = sub i64 %c, 1")
    _switch(t, "skip", "skip")
    ends: dict[int, list[tuple[str, str, str, str, str]]] = {1: [], 2: []}
    for o in OPCODES:
        _case(t, o.name, ends)
    _accumulate(t, ends)
    t.block("skip")
    t.line("br label %on")
    t.block("on")
    t.line("%f.on = phi i64 [ %f, %skip ], [ %f.two, %two.done ], [ %f.one, %one.done ]")
    t.line("%c.on = phi i64 [ %c, %skip ], [ %c.two, %two.done ], [ %c.one, %one.done ]")
    t.line("%next = sub i64 %i, 1")
    t.line("br label %row")
    t.block("end")
    t.line("store i64 %f, ptr %at.found")
    t.line("store i64 %c, ptr %at.coming")
    t.line("ret i64 %c")
    t.lines.append("}")
    return t.lines


def _case(t: Text, name: str, ends: dict[int, list[tuple[str, str, str, str, str]]]) -> None:
    o = next(o for o in OPCODES if o.name == name)
    t.block(f"op.{name}")
    rows: dict[str, str] = {}
    given = {"g": _get(t, "grads", "%i"), "y": _get(t, "values", "%i")}
    for x in "ab"[: o.arity]:
        rows[x], given[x] = _operand(t, x)
    found = t.evaluate(backward(o), given)
    two = len([r for r in found if r is not None]) == 2
    first = found[0]
    second = found[1] if two else "0.0"
    assert first is not None
    assert second is not None
    ends[2 if two else 1].append(
        (f"op.{name}", rows["a"], first, rows["b"] if two else "0", second)
    )
    t.line(f"br label %{'two' if two else 'one'}")


def _accumulate(t: Text, ends: dict[int, list[tuple[str, str, str, str, str]]]) -> None:
    """The ends of all cases: two contributions, or one, are added where they belong."""
    t.block("two")
    for at, kind, name in ((1, "i64", "ra"), (2, "double", "ga"), (3, "i64", "rb"),
                           (4, "double", "gb")):  # fmt: skip
        t.line(f"%{name}.2 = phi {kind} " + _incoming(ends[2], at))
    _add(t, "%ra.2", "%ga.2", "%f", "%c.less", "first")
    _add(t, "%rb.2", "%gb.2", "%f.first", "%c.first", "two")
    t.line("br label %two.done")
    t.block("two.done")
    t.line("br label %on")
    t.block("one")
    for at, kind, name in ((1, "i64", "ra"), (2, "double", "ga")):
        t.line(f"%{name}.1 = phi {kind} " + _incoming(ends[1], at))
    _add(t, "%ra.1", "%ga.1", "%f", "%c.less", "one")
    t.line("br label %one.done")
    t.block("one.done")
    t.line("br label %on")


def _incoming(ends: list[tuple[str, str, str, str, str]], at: int) -> str:
    return ", ".join([f"[ {end[at]}, %{end[0]} ]" for end in ends])


def _add(t: Text, row: str, g: str, found: str, coming: str, end: str) -> None:
    """Add `g` to a row's cotangent, which is there already or not; `%f.end` and `%c.end` are the
    counts afterwards."""
    stamp = _get(t, "stamps", row)
    t.line(f"br i1 {t.new(f'icmp eq i32 {stamp}, %now')}, label %{end}.more, label %{end}.new")
    t.block(f"{end}.more")
    old = _get(t, "grads", row)
    _put(t, "grads", row, t.new(f"fadd double {old}, {g}"))
    t.line(f"br label %{end}.on")
    t.block(f"{end}.new")
    _put(t, "stamps", row, "%now")
    _put(t, "grads", row, g)
    code = _get(t, "code", row)
    # A list written to in any case, its end moved only for rows that belong there.
    _put(t, "reached", found, t.new(f"trunc i64 {row} to i32"))
    is_given = t.new(f"icmp ult i8 {code}, {CUSTOM}")
    is_computed = t.new(f"xor i1 {is_given}, true")
    t.line(f"%f.{end}.new = add i64 {found}, {t.new(f'zext i1 {is_given} to i64')}")
    t.line(f"%c.{end}.new = add i64 {coming}, {t.new(f'zext i1 {is_computed} to i64')}")
    t.line(f"br label %{end}.on")
    t.block(f"{end}.on")
    t.line(f"%f.{end} = phi i64 [ {found}, %{end}.more ], [ %f.{end}.new, %{end}.new ]")
    t.line(f"%c.{end} = phi i64 [ {coming}, %{end}.more ], [ %c.{end}.new, %{end}.new ]")


__all__ = ["UNWRITTEN", "machine_text"]
