"""The table of slopes at kinks, ties and ends: held on each backend, and by limits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from retrograd.ops.elementwise import ELEMENTWISE, abs, sign, zmul
from retrograd.verify.certification.conventions import conventions, evidence, found_slopes
from retrograd.verify.records import RECORDS
from retrograd.verify.records.elementwise import UNARY, InMpmath
from tests.sampling import sampled
from tests.verify.certification.planted import planted

NAMES = sorted({row.op for row in conventions()})


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.sample(5)
def test_the_reference_holds_the_table(name: str) -> None:
    for i in range(len(conventions(name)[0].at)):
        found = evidence(name, i, ("reference",))
        assert found.status == "passed", found
        assert found.count == len(conventions(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", sampled(NAMES, 13, "conventions"))
def test_compiled_code_holds_the_table(name: str) -> None:
    for i in range(len(conventions(name)[0].at)):
        assert evidence(name, i, ("llvm",)).status == "passed"


def test_every_elementary_function_has_rows() -> None:
    smooth = {n for n in UNARY if RECORDS[n].wrt and "float" in ELEMENTWISE[n].kinds}
    assert smooth <= set(NAMES)


def test_another_slope_at_a_kink_is_caught() -> None:
    wrong = planted("abs", np.abs, lambda g, y, x: zmul(g, sign(x) + 1 - abs(sign(x))))
    found = evidence("abs", 0, ("reference",), wrong)
    assert found.status == "failed"
    assert "zero at -0.0: the slope by input 0 is 1.0" in found.detail
    assert evidence("cumsum", 0, ("reference",)).status == "does not apply"


STEPS = {"sign", "floor", "ceil", "trunc", "round"}
LIMITS = [
    (row.op, row.at[0], row.slopes[0])
    for row in conventions()
    if row.op in UNARY.keys() - STEPS
    and row.kind == "infinity"
    and not np.isnan(float(row.slopes[0] or 0))
]


@pytest.mark.parametrize(("name", "at", "slope"), LIMITS)
@pytest.mark.sample(3)
def test_slopes_at_infinities_are_limits(name: str, at: float, slope: float) -> None:
    """Of mpmath's function; outside of its domain the formula goes on."""
    mp = pytest.importorskip("mpmath").mp
    f: Any = RECORDS[name].independent.args[0]
    g = f.in_context if isinstance(f, InMpmath) else f
    sign = 1 if at > 0 else -1
    with mp.workdps(1000):
        ends = [sign * mp.mpf(10) ** k + h for k in (2, 3) for h in (-0.5, 0.5)]
        values = [g(x) for x in ends]
        if any(isinstance(v, mp.mpc) for v in values):
            assert slope == 0
            return
        near, far = float(values[1] - values[0]), float(values[3] - values[2])
    if np.isinf(slope):
        assert (far > 10 * near > 0) if slope > 0 else (far < 10 * near < 0)
    else:
        assert np.abs(far - slope) <= max(1e-12, 0.9 * np.abs(near - slope))


def test_rows_are_as_written_in_the_docs() -> None:
    assert found_slopes("max", "reference")[0] == [0.5, 0.5]
    assert [row.slopes for row in conventions("relu")] == [(0,), (0,), (0,), (1,)]
