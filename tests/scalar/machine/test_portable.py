"""The machine in Python."""

import numpy as np
import pytest

from retrograd.scalar.machine import (
    BY_NAME,
    OPCODES,
    UNWRITTEN,
    machine,
    portable,
)
from tests.scalar.machine.blocks import SPECIAL, block_of, results


def test_rows_are_computed_up_to_the_first_that_is_not_written():
    block = block_of([(BY_NAME["neg"].code, 0, 0), (UNWRITTEN, 0, 0)], [1.0])
    for run in (machine(), portable.run):
        assert run(block, 0, 3, 0) == 2


@pytest.mark.parametrize("o", OPCODES, ids=lambda o: o.name)
def test_derivatives_are_slopes(o):
    given, h = [0.7, 1.3][: o.arity], 1e-6

    def value(*x):
        a, b = [*x, 0.0][:2]
        return results(portable.run, o.code, a, b, 1.0)[0]

    found = portable.derivatives(o.code, value(*given), *given)
    for k, slope in enumerate(found):
        ends = [value(*[x + s * h * (i == k) for i, x in enumerate(given)]) for s in (1, -1)]
        expected = 0.0 if o.derivatives[k] is None else (ends[0] - ends[1]) / (2 * h)
        assert slope == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("name", ["div", "pow", "log", "exp", "sqrt", "sin", "max", "min"])
def test_where_python_raises_the_result_is_that_of_c(name):
    o, function = (
        BY_NAME[name],
        {"div": np.divide, "pow": np.power, "max": np.maximum, "min": np.minimum},
    )
    f = function.get(name) or getattr(np, name)
    for a in SPECIAL:
        for b in [*SPECIAL, 3.0] if o.arity == 2 else [0.0]:
            with np.errstate(all="ignore"):
                # Of single numbers NumPy takes a root where the exponent is 0.5.
                expected = float(f(*[np.array([x]) for x in (a, b)[: o.arity]])[0])
            found = results(portable.run, o.code, a, b, 1.0)[0]
            assert found == pytest.approx(expected, rel=1e-14, abs=0, nan_ok=True), (a, b)
