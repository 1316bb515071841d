"""Functions as text: loops that carry values, branches, space on the stack."""

import numpy as np

from retrograd.codegen.builder import FunctionBuilder
from tests.codegen.llvm_function import compiled, run


def test_loops_in_loops_carry_values() -> None:
    """The sum of `i * j` below the diagonal, and how often the inner loop ran."""

    def write(w: FunctionBuilder, p: list[str]) -> str:
        n = w.new(f"load i64, ptr {p[0]}")
        outer = w.open_loop(n, 1, "1", [("i64", "0"), ("i64", "100")])
        inner = w.open_loop(outer.counter, 2, "0", [("i64", x) for x in outer.values])
        product = w.new(f"mul i64 {outer.counter}, {inner.counter}")
        total = w.new(f"add i64 {inner.values[0]}, {product}")
        w.close_loop(inner, [total, w.new(f"add i64 {inner.values[1]}, 1")])
        w.close_loop(outer, inner.values)
        return w.new(f"add i64 {w.new(f'mul i64 {outer.values[0]}, 1000')}, {outer.values[1]}")

    f = compiled(write, 1)
    for n in (-3, 0, 1, 2, 7):
        pairs = [(i, j) for i in range(1, n) for j in range(0, i, 2)]
        assert f(np.array([n])) == 1000 * sum(i * j for i, j in pairs) + 100 + len(pairs)


def test_only_one_of_two_ways_is_taken() -> None:
    def write(w: FunctionBuilder, p: list[str]) -> str:
        n = w.new(f"load i64, ptr {p[0]}")

        def quotient() -> list[str]:
            return [w.new(f"sdiv i64 100, {n}"), n]  # of 0 it would end the process

        zero = w.new(f"icmp eq i64 {n}, 0")
        a, b = w.either_of(zero, "i64", lambda: ["-1", "7"], quotient)
        return w.new(f"add i64 {a}, {b}")

    f = compiled(write, 1)
    assert [f(np.array([n])) for n in (0, 7, -3)] == [6, 21, -36]


def test_repeats_and_space_on_the_stack() -> None:
    """Powers of a number, kept in memory; a loop reserves its space once."""

    def write(w: FunctionBuilder, p: list[str]) -> str:
        x, often = (w.new(f"load i64, ptr {q}") for q in p)
        room = w.reserve("i64", 8)
        w.line(f"store i64 1, ptr {room}")

        def step(values: list[str]) -> list[str]:
            before = w.new(f"load i64, ptr {room}")
            w.line(f"store i64 {w.new(f'mul i64 {before}, {x}')}, ptr {room}")
            return [w.new(f"add i64 {values[0]}, {before}")]

        (total,) = w.repeat(often, [("i64", "0")], step)
        return total

    for x, n in ((3, 5), (2, 0), (-1, 4)):
        assert run(write, np.array([x]), np.array([n])) == sum(x**k for k in range(n))


def test_functions_that_do_the_same_have_the_same_text() -> None:
    texts = []
    for _ in range(2):
        w = FunctionBuilder(lambda d: None)
        loop = w.open_loop("%n", carried=[("i64", "1")])
        w.close_loop(loop, [w.new(f"shl i64 {loop.values[0]}, 1")])
        w.line("ret void")
        texts.append(w.text())
    assert texts[0] == texts[1]
