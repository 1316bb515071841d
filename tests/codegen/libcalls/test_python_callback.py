"""What Python computes inside of a compiled program: the reference, on the memory of the run."""

import numpy as np
import pytest

from retrograd.ir import Dim, Graph, float64, spec
from retrograd.ops.elementwise import add, exp
from retrograd.ops.leaf import input_node
from retrograd.ops.scan import CumSum
from retrograd.passes.lowering import legalize
from retrograd.passes.lowering.libcall import by_reference
from retrograd.passes.lowering.rules import RULES
from retrograd.passes.rewrite import RuleSet
from retrograd.runtime.executable import Executable


@pytest.fixture
def by_python(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The running sum is computed by Python; the shapes it was asked for."""
    asked: list[tuple[int, ...]] = []
    own = CumSum.reference

    def reference(self: CumSum, x: np.ndarray) -> np.ndarray:
        asked.append(x.shape)
        if x.size and x.flat[0] == 7:
            raise OverflowError("seven")
        return own(self, x)

    monkeypatch.setattr(CumSum, "reference", reference)
    rules = dict.fromkeys(("cumsum",), by_reference)
    monkeypatch.setattr(legalize, "LOWER", RuleSet.lowering("lower", RULES, rules))
    return asked


def test_named_sizes_and_what_is_raised(by_python: list[tuple[int, ...]]) -> None:
    x = input_node(spec((Dim("N"), 2), float64))
    program = Executable(Graph([x], [exp(CumSum(0)(add(x, x)))]))
    for n in (3, 0, 1):
        a = np.linspace(-1, 0, 2 * n).reshape(n, 2)
        np.testing.assert_allclose(program([a])[0], np.exp(np.cumsum(2 * a, 0)), 1e-14)
    assert (3, 2) in by_python
    assert (1, 2) in by_python
    with pytest.raises(OverflowError, match="seven"):
        program([np.full((2, 2), 3.5)])
    np.testing.assert_array_equal(program([np.zeros((1, 2))])[0], 1)  # it is over with
