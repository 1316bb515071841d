"""Strides of lanes: what a position grows by is what evaluating it twice gives."""

from typing import Any

from retrograd.codegen.emit.lane_strides import depends, in_groups, steps_of
from retrograd.ir import Dim, float32, spec
from retrograd.ops.leaf import input_node
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.loop_nest import MapNest, Store
from retrograd.schedule.ssa import ScalarBlock, SSAValue

N = Dim("N")
MEANING = {
    "iadd": lambda a, b: a + b,
    "isub": lambda a, b: a - b,
    "imul": lambda a, b: a * b,
    "idiv": lambda a, b: a // b,
}


def positions() -> list[SSAValue]:
    b = ScalarBlock()
    i, j, size = b.loop(0), b.loop(1), b.size
    row = b.mul(i, size(N))
    return [
        i, j, row, b.add(row, j), b.sub(b.mul(j, size(3)), i), b.div(j, size(2)), b.mul(i, j),
        b.mul(b.mul(j, size(2)), size(N)), size(7),
    ]  # fmt: skip


def evaluated(v: SSAValue, counters: tuple[int, int], n: int) -> Any:
    if v.op == "loop":
        return counters[v.attr]
    if v.op == "size":
        return v.attr.evaluate({"N": n}) if isinstance(v.attr, Dim) else v.attr
    return MEANING[v.op](*(evaluated(x, counters, n) for x in v.args))


def uses_of(values: list[SSAValue]) -> dict[SSAValue, int]:
    """The loops that each value depends on, operands first."""
    found: dict[SSAValue, int] = {}

    def visit(v: SSAValue) -> int:
        if v not in found:
            own = 1 << v.attr if v.op == "loop" else 0
            for x in v.args:
                own |= visit(x)
            found[v] = own
        return found[v]

    for v in values:
        visit(v)
    return found


def test_steps_are_differences() -> None:
    values = positions()
    uses = uses_of(values)
    for loop in (0, 1):
        for v, step in steps_of(uses, loop).items():
            for n in (1, 5) if step is not None else ():
                for at in ((0, 0), (2, 3), (4, 1)):
                    after = (at[0] + 1, at[1]) if loop == 0 else (at[0], at[1] + 1)
                    found = evaluated(v, after, n) - evaluated(v, at, n)
                    wanted = step.evaluate({"N": n}) if isinstance(step, Dim) else step
                    assert found == wanted, (v, loop)


def test_what_is_not_linear_has_no_step() -> None:
    values = positions()
    uses = uses_of(values)
    known = [[steps_of(uses, loop)[v] for v in values] for loop in (0, 1)]
    assert known[0] == [1, 0, N, N, -1, 0, None, 0, 0]
    assert known[1][:7] == [0, 1, 0, 1, 3, None, None]
    assert known[1][8] == 0


def test_which_loops_count() -> None:
    assert [depends(0b101, k) for k in (-1, 0, 1, 2, 3)] == [False, True, False, True, False]


def test_stores_that_fill_memory_in_turn_are_groups() -> None:
    body, out, other = (
        ScalarBlock(),
        *(
            Buffer("output", k, spec((12,), float32), input_node(spec((12,), float32)))
            for k in (0, 1)
        ),
    )
    i, value = body.loop(0), body.const(1.0, float32)

    def store(buffer: Buffer, step: int, start: int) -> Store:
        place = body.add(body.mul(i, body.size(step)), body.size(start))
        return Store(buffer, place, value)

    pair, triple = [store(out, 2, k) for k in (4, 5)], [store(other, 3, k) for k in (0, 1, 2)]
    single, gap = store(out, 1, 0), [store(other, 2, 0), store(other, 2, 2)]
    apart = [store(out, 2, 0), store(other, 2, 1)]
    for stores, alone, groups in (
        ([*pair, single, *triple], [single], [pair, triple]),
        (gap, gap, []),
        (apart, apart, []),
        (triple[:2], triple[:2], []),
        (pair[::-1], pair[::-1], []),
    ):
        nest = MapNest([4], body, stores, kept=1)
        nest.vec = 0
        assert in_groups(nest) == (alone, groups)
