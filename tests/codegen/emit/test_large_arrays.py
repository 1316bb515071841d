"""Elementwise ops on 2^26 elements: what a few elements give, repeated, to the bit."""

from __future__ import annotations

import numpy as np
import pytest

from retrograd.ir import Graph, TensorType
from retrograd.ops.elementwise import ELEMENTWISE
from retrograd.ops.leaf import input_node
from retrograd.runtime.executable import Executable
from retrograd.runtime.paired_program import on_real
from retrograd.verify.records import RECORDS
from retrograd.verify.records.record import Sample, type_of
from tests.sampling import mostly_exhaustive

ELEMENTS = 2**26
# The loops of special functions take microseconds for an element: these are repeated less often.
DEAR = 2**20
_DEAR = ("gamma", "beta", "bessel", "zeta", "ndtri")


@pytest.mark.slow
@pytest.mark.parametrize("name", mostly_exhaustive(sorted(ELEMENTWISE), 10))
def test_many_elements_are_few_repeated(name: str) -> None:
    sample = narrowest(name)
    few = [x.reshape(-1) for x in sample.inputs]
    period = few[0].size
    wanted = DEAR if any(part in name for part in _DEAR) else ELEMENTS
    expected = run(sample, few)
    for n in (wanted, wanted + 3):  # with and without a rest beside whole vectors
        found = run(sample, [np.resize(x, n) for x in few])
        bits = np.dtype(f"V{found.dtype.itemsize}")
        whole = n // period * period
        rows = found[:whole].view(bits).reshape(-1, period)
        assert (rows == expected.view(bits)).all()
        assert (found[whole:].view(bits) == expected[: n - whole].view(bits)).all()


def narrowest(name: str) -> Sample:
    """The sample of at least 7 elements whose elements are smallest: the fewest bytes."""
    fit = [
        s
        for s in RECORDS[name].samples()
        if s.inputs[0].size >= 7
        and all(x.size == s.inputs[0].size and x.dtype.kind != "c" for x in s.inputs)
    ]
    floats = [s for s in fit if s.inputs[-1].dtype == np.float32]
    return min(floats or fit, key=lambda s: s.inputs[0].size)


def run(sample: Sample, arrays: list[np.ndarray]) -> np.ndarray:
    types = [type_of(x) for x in arrays]
    inputs = [input_node(TensorType(t.dtype, t.shape)) for t in types]
    (y,) = on_real(Graph(inputs, [sample.op(*inputs)]), Executable)(arrays)
    return np.ascontiguousarray(y)
