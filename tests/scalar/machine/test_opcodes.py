"""What a row can be: numbers that tell rows apart, and their lines of the table."""

from retrograd.ops import elementwise as el
from retrograd.scalar.machine.opcodes import (
    BY_NAME,
    COMPARE,
    CONSTANT,
    CUSTOM,
    FOREIGN,
    GRADIENT,
    LEAF,
    NAMES,
    NUMBER,
    OPCODES,
    START,
    STOP,
    UNWRITTEN,
)


def test_every_kind_of_row_has_a_number_of_a_byte_of_its_own() -> None:
    given = [CONSTANT, LEAF, FOREIGN, CUSTOM]
    traced = [NUMBER, START, GRADIENT, STOP, *COMPARE.values()]
    numbers = [*given, *[o.code for o in OPCODES], *traced, UNWRITTEN]
    assert len(set(numbers)) == len(numbers)
    assert all(0 <= n <= 255 for n in numbers)
    assert max(given) == CUSTOM < min(o.code for o in OPCODES)  # how given rows are told


def test_rows_have_as_many_operands_as_derivatives() -> None:
    assert {o.name for o in OPCODES if o.arity == 2} == {
        "add", "sub", "mul", "div", "pow", "powc", "max", "min",
    }  # fmt: skip
    assert all(o.prim.derivatives == o.derivatives for o in OPCODES if o.name != "powc")


def test_a_power_by_a_constant_is_a_power_without_a_derivative_by_it() -> None:
    power = BY_NAME["powc"]
    assert power.prim is el.pow
    assert power.derivatives[0] is el.pow.derivatives[0]
    assert power.derivatives[1] is None
    assert NAMES[power.code] == NAMES[BY_NAME["pow"].code] == "pow"
