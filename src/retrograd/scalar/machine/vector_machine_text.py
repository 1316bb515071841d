"""The machine for programs: instructions that do one operation for many rows at a time.

An instruction is eight words: what to do, for how many rows, the first slot of the results, which
lie side by side, and what the operation needs: slots, or addresses of lists of slots. `values`
and `grads` have a number for each slot.

Contractions, `sum_k a_k b_k` plus one more summand, have `size` products each. Their sums are taken
in vectors of eight where operands lie side by side.
"""

from __future__ import annotations

from collections.abc import Callable

from retrograd.ops import elementwise as el
from retrograd.scalar.machine.arithmetic import Text, declarations, literal
from retrograd.scalar.machine.formulas import backward, forward
from retrograd.scalar.machine.opcodes import COMPARE, OPCODES, STOP

WORDS = ("kind", "n", "out", "a", "b", "init", "size", "more")
LANES = 8
VECTOR = f"<{LANES} x double>"
# What goes side by side, and its instruction. Modes say of each operand whether it is a row of
# slots or one slot for all.
WIDE = {
    el.add.name: "fadd",
    el.sub.name: "fsub",
    el.mul.name: "fmul",
    el.div.name: "fdiv",
}
MODES = ("cc", "cb", "bc")

Body = Callable[[Text], None]


def kinds() -> dict[str, int]:
    """The numbers of all instructions."""
    return {name: i for i, name in enumerate(_kernels())}


def batch_text() -> str:
    """The module; `run(table, values, grads, count)` does so many instructions."""
    kernels = _kernels()
    t = Text()
    t.lines.append("define i64 @run(ptr %table, ptr %values, ptr %grads, i64 %count) {")
    t.block("entry")
    t.line("%some = icmp sgt i64 %count, 0")
    t.line("br i1 %some, label %next, label %end")
    t.block("next")
    t.line("%i = phi i64 [ 0, %entry ], [ %i.on, %on ]")
    t.line(f"%at = getelementptr [{len(WORDS)} x i64], ptr %table, i64 %i")
    t.line("%kind = load i64, ptr %at")
    cases = " ".join([f"i64 {i}, label %do.{i}" for i in range(len(kernels))])
    t.line(f"switch i64 %kind, label %on [ {cases} ]")
    for i in range(len(kernels)):
        t.block(f"do.{i}")
        t.line(f"call void @kernel.{i}(ptr %at, ptr %values, ptr %grads)")
        t.line("br label %on")
    t.block("on")
    t.line("%i.on = add i64 %i, 1")
    t.line("%more = icmp slt i64 %i.on, %count")
    t.line("br i1 %more, label %next, label %end")
    t.block("end")
    t.line("ret i64 0")
    t.lines.append("}")
    parts = [
        declarations(),
        f"declare double @llvm.vector.reduce.fadd.v{LANES}f64(double, {VECTOR})",
    ]
    parts.append("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
    parts.append("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
    for i, body in enumerate(kernels.values()):
        parts += _function(i, body)
    return "\n".join([*parts, *t.lines, ""])


def _kernels() -> dict[str, Body]:
    found: dict[str, Body] = {}
    for o in OPCODES:
        found[f"{o.name}"] = _forward(o.name)
        found[f"{o.name}.back"] = _backward(o.name)
    for name in COMPARE:
        found[name] = _comparison(name)
    found["stop"] = _copy
    for name in WIDE:
        for mode in MODES:
            found[f"{name}.{mode}"] = _wide(name, mode)
    for name, write in ONE.items():
        found[f"{name}.c"] = _wide_one(write)
    found["dot"], found["dot.back"] = _dot, _dot_back
    found["dot.c"], found["dot.c.back"] = _dot_wide, _dot_wide_back
    found["clear"], found["seed"] = _clear, _seed
    found["gradient"] = lambda t: _gather(t, "%grads", "a", "%values")
    found["load"], found["store"] = _load, _store
    return found


def _function(number: int, body: Body) -> list[str]:
    t = Text()
    t.lines.append(
        f"define internal void @kernel.{number}(ptr %at, ptr noalias %values, ptr noalias %grads) "
        "noinline nounwind {"
    )
    t.block("entry")
    for i, word in enumerate(WORDS[1:], 1):
        t.line(f"%at.{word} = getelementptr i64, ptr %at, i64 {i}")
        t.line(f"%{word} = load i64, ptr %at.{word}")
    for word in ("a", "b", "init", "more"):
        t.line(f"%{word}.list = inttoptr i64 %{word} to ptr")
    t.line("br label %begin")
    t.block("begin")
    body(t)
    t.line("ret void")
    t.lines.append("}")
    return t.lines


class _Loop:
    """`for (k = start; k + step <= end; k += step)`, with sums carried along."""

    def __init__(
        self, t: Text, name: str, before: str, start: str, end: str, step: int = 1,
        carried: str = "", first: str = "",
    ) -> None:  # fmt: skip
        self.t, self.name, self.step, self.carried = t, name, step, carried
        self.k = f"%{name}"
        t.line(f"br label %{name}.head")
        t.block(f"{name}.head")
        t.line(f"{self.k} = phi i64 [ {start}, %{before} ], [ %{name}.on, %{name}.end ]")
        if carried:
            t.line(
                f"%{name}.sum = phi {carried} [ {first}, %{before} ], [ %{name}.new, %{name}.end ]"
            )
        t.line(f"%{name}.on = add i64 {self.k}, {step}")
        t.line(f"%{name}.in = icmp sle i64 %{name}.on, {end}")
        t.line(f"br i1 %{name}.in, label %{name}.body, label %{name}.done")
        t.block(f"{name}.body")
        self.sum = f"%{name}.sum"

    def close(self, new: str = "") -> None:
        t, name = self.t, self.name
        t.line(f"br label %{name}.end")
        t.block(f"{name}.end")
        if self.carried:
            t.line(f"%{name}.new = fadd {self.carried} {new}")
        t.line(f"br label %{name}.head")
        t.block(f"{name}.done")


def _at(t: Text, base: str, index: str, kind: str = "double") -> str:
    return t.new(f"getelementptr {kind}, ptr {base}, i64 {index}")


def _get(t: Text, base: str, index: str, kind: str = "double") -> str:
    return t.new(f"load {kind}, ptr {_at(t, base, index)}, align 8")


def _put(t: Text, base: str, index: str, value: str, kind: str = "double") -> None:
    t.line(f"store {kind} {value}, ptr {_at(t, base, index)}, align 8")


def _listed(t: Text, word: str, index: str) -> str:
    """The slot that stands in a list."""
    entry = t.new(f"getelementptr i32, ptr %{word}.list, i64 {index}")
    return t.new(f"zext i32 {t.new(f'load i32, ptr {entry}')} to i64")


def _grow(t: Text, index: str, value: str, kind: str = "double") -> None:
    old = _get(t, "%grads", index, kind)
    _put(t, "%grads", index, t.new(f"fadd {kind} {old}, {value}"), kind)


def _forward(name: str) -> Body:
    o = next(o for o in OPCODES if o.name == name)

    def body(t: Text) -> None:
        loop = _Loop(t, "k", "begin", "0", "%n")
        given = {"a": _get(t, "%values", _listed(t, "a", loop.k))}
        if o.arity == 2:
            given["b"] = _get(t, "%values", _listed(t, "b", loop.k))
        (y,) = t.evaluate(forward(o), given)
        assert y is not None
        _put(t, "%values", t.new(f"add i64 %out, {loop.k}"), y)
        loop.close()

    return body


def _backward(name: str) -> Body:
    o = next(o for o in OPCODES if o.name == name)

    def body(t: Text) -> None:
        loop = _Loop(t, "k", "begin", "0", "%n")
        slot = t.new(f"add i64 %out, {loop.k}")
        rows = [_listed(t, x, loop.k) for x in "ab"[: o.arity]]
        given = {"g": _get(t, "%grads", slot), "y": _get(t, "%values", slot)}
        given |= {x: _get(t, "%values", row) for x, row in zip("ab", rows, strict=False)}
        for row, g in zip(rows, t.evaluate(backward(o), given), strict=True):
            if g is not None:
                _grow(t, row, g)
        loop.close()

    return body


def _comparison(name: str) -> Body:
    def body(t: Text) -> None:
        loop = _Loop(t, "k", "begin", "0", "%n")
        a, b = (_get(t, "%values", _listed(t, x, loop.k)) for x in "ab")
        outcome = t.new(f"fcmp o{name} double {a}, {b}")
        y = t.choose(outcome, literal(1.0), literal(0.0))
        _put(t, "%values", t.new(f"add i64 %out, {loop.k}"), y)
        loop.close()

    return body


def _gather(t: Text, source: str, word: str, to: str) -> None:
    loop = _Loop(t, "k", "begin", "0", "%n")
    x = _get(t, source, _listed(t, word, loop.k))
    _put(t, to, t.new(f"add i64 %out, {loop.k}"), x)
    loop.close()


def _copy(t: Text) -> None:
    _gather(t, "%values", "a", "%values")


def _wide(name: str, mode: str) -> Body:
    """Eight at a time; an operand is a first slot, or the slot of all."""

    def body(t: Text) -> None:
        before = "begin"
        for lanes, kind in ((LANES, VECTOR), (1, "double")):
            loop = _Loop(t, f"k{lanes}", before, "0" if lanes > 1 else f"%k{LANES}", "%n", lanes)
            x = [
                _get(t, "%values", t.new(f"add i64 %{w}, {loop.k}"), kind)
                if m == "c"
                else _spread(t, _get(t, "%values", f"%{w}"), lanes)
                for w, m in zip("ab", mode, strict=True)
            ]
            y = t.new(f"{WIDE[name]} {kind} {x[0]}, {x[1]}")
            _put(t, "%values", t.new(f"add i64 %out, {loop.k}"), y, kind)
            loop.close()
            before = f"k{lanes}.done"

    return body


def _wide_one(write: Callable[[Text, str, int, str], str]) -> Body:
    """The same for one operand, by what writes it for so many lanes, in registers of a type."""

    def body(t: Text) -> None:
        before = "begin"
        for lanes, kind in ((LANES, VECTOR), (1, "double")):
            loop = _Loop(t, f"k{lanes}", before, "0" if lanes > 1 else f"%k{LANES}", "%n", lanes)
            x = _get(t, "%values", t.new(f"add i64 %a, {loop.k}"), kind)
            y = write(t, x, lanes, kind)
            _put(t, "%values", t.new(f"add i64 %out, {loop.k}"), y, kind)
            loop.close()
            before = f"k{lanes}.done"

    return body


def _negated(t: Text, x: str, lanes: int, kind: str) -> str:
    return t.new(f"fneg {kind} {x}")


def _root(t: Text, x: str, lanes: int, kind: str) -> str:
    suffix = f"v{LANES}f64" if lanes > 1 else "f64"
    return t.new(f"call {kind} @llvm.sqrt.{suffix}({kind} {x})")


def _same(t: Text, x: str, lanes: int, kind: str) -> str:
    return x


def _spread(t: Text, x: str, lanes: int) -> str:
    if lanes == 1:
        return x
    one = t.new(f"insertelement {VECTOR} poison, double {x}, i64 0")
    return t.new(f"shufflevector {VECTOR} {one}, {VECTOR} poison, <{LANES} x i32> zeroinitializer")


def _dot(t: Text) -> None:
    """Slots of all factors are listed."""
    rows = _Loop(t, "k", "begin", "0", "%n")
    first = _get(t, "%values", _listed(t, "init", rows.k))
    start = t.new(f"mul i64 {rows.k}, %size")
    loop = _Loop(t, "j", "k.body", "0", "%size", carried="double", first=first)
    i = t.new(f"add i64 {start}, {loop.k}")
    a, b = (_get(t, "%values", _listed(t, x, i)) for x in "ab")
    product = t.new(f"fmul double {a}, {b}")
    loop.close(f"{loop.sum}, {product}")
    _put(t, "%values", t.new(f"add i64 %out, {rows.k}"), loop.sum)
    rows.close()


def _unless_zero(t: Text, g: str) -> None:
    t.line(f"%zero = fcmp oeq double {g}, 0.0")
    t.line("br i1 %zero, label %k.end.skip, label %some")
    t.block("k.end.skip")
    t.line("br label %k.join")
    t.block("some")


def _joined(t: Text) -> None:
    t.line("br label %k.join")
    t.block("k.join")


def _dot_back(t: Text) -> None:
    rows = _Loop(t, "k", "begin", "0", "%n")
    g = _get(t, "%grads", t.new(f"add i64 %out, {rows.k}"))
    _unless_zero(t, g)
    _grow(t, _listed(t, "init", rows.k), g)
    start = t.new(f"mul i64 {rows.k}, %size")
    loop = _Loop(t, "j", "some", "0", "%size")
    i = t.new(f"add i64 {start}, {loop.k}")
    a, b = _listed(t, "a", i), _listed(t, "b", i)
    x, y = _get(t, "%values", a), _get(t, "%values", b)
    _grow(t, a, t.new(f"fmul double {g}, {y}"))
    _grow(t, b, t.new(f"fmul double {g}, {x}"))
    loop.close()
    _joined(t)
    rows.close()


def _dot_wide(t: Text) -> None:
    """The first slots of both factors are listed, the others lie beside them."""
    rows = _Loop(t, "k", "begin", "0", "%n")
    first = _get(t, "%values", _listed(t, "init", rows.k))
    a, b = _listed(t, "a", rows.k), _listed(t, "b", rows.k)
    wide = _Loop(t, "j", "k.body", "0", "%size", LANES, VECTOR, "zeroinitializer")
    product = _products(t, a, b, wide.k, VECTOR)
    wide.close(f"{wide.sum}, {product}")
    reduce = f"@llvm.vector.reduce.fadd.v{LANES}f64"
    total = t.new(f"call reassoc double {reduce}(double {first}, {VECTOR} {wide.sum})")
    rest = _Loop(t, "r", "j.done", wide.k, "%size", 1, "double", total)
    product = _products(t, a, b, rest.k, "double")
    rest.close(f"{rest.sum}, {product}")
    _put(t, "%values", t.new(f"add i64 %out, {rows.k}"), rest.sum)
    rows.close()


def _products(t: Text, a: str, b: str, k: str, kind: str) -> str:
    x, y = (_get(t, "%values", t.new(f"add i64 {p}, {k}"), kind) for p in (a, b))
    return t.new(f"fmul {kind} {x}, {y}")


def _dot_wide_back(t: Text) -> None:
    rows = _Loop(t, "k", "begin", "0", "%n")
    g = _get(t, "%grads", t.new(f"add i64 %out, {rows.k}"))
    _unless_zero(t, g)
    _grow(t, _listed(t, "init", rows.k), g)
    a, b = _listed(t, "a", rows.k), _listed(t, "b", rows.k)
    spread = _spread(t, g, LANES)
    before, start = "some", "0"
    for name, lanes, kind, factor in (("j", LANES, VECTOR, spread), ("r", 1, "double", g)):
        loop = _Loop(t, name, before, start, "%size", lanes)
        for x, y in ((a, b), (b, a)):
            at, other = (t.new(f"add i64 {p}, {loop.k}") for p in (x, y))
            _grow(t, at, t.new(f"fmul {kind} {factor}, {_get(t, '%values', other, kind)}"), kind)
        loop.close()
        before, start = f"{name}.done", f"%{name}"
    _joined(t)
    rows.close()


def _clear(t: Text) -> None:
    size = t.new("mul i64 %n, 8")
    t.line(f"call void @llvm.memset.p0.i64(ptr %grads, i8 0, i64 {size}, i1 false)")


def _seed(t: Text) -> None:
    _grow(t, "%out", literal(1.0))


def _load(t: Text) -> None:
    """From the addresses in the list `b`."""
    loop = _Loop(t, "k", "begin", "0", "%n")
    source = _pointer(t, loop.k)
    x = t.new(f"load double, ptr {source}, align 8")
    _put(t, "%values", t.new(f"add i64 %out, {loop.k}"), x)
    loop.close()


def _store(t: Text) -> None:
    """To the addresses in the list `b`, from the slots in the list `init`."""
    loop = _Loop(t, "k", "begin", "0", "%n")
    x = _get(t, "%values", _listed(t, "init", loop.k))
    t.line(f"store double {x}, ptr {_pointer(t, loop.k)}, align 8")
    loop.close()


def _pointer(t: Text, index: str) -> str:
    """The address that stands in the list `b`."""
    return t.new(f"inttoptr i64 {_get(t, '%b.list', index, 'i64')} to ptr")


ONE = {el.neg.name: _negated, el.sqrt.name: _root, "stop": _same}  # the same for one operand

__all__ = ["MODES", "STOP", "WORDS", "batch_text", "kinds"]
