"""Cases of programs with named sizes: one graph serves all values that they are compared at."""

from __future__ import annotations

import pytest

import retrograd as rg
from benchmarks.named import Case, cases
from benchmarks.named.case import at, every, number
from retrograd.ir import Dim, spec
from retrograd.runtime.backend import bind

FOUND = list(cases())


def test_names_differ() -> None:
    assert len({case.name for case in FOUND}) == len(FOUND)


@pytest.mark.parametrize("case", FOUND, ids=lambda case: case.name)
@pytest.mark.sample(20)
def test_arguments_fit_one_graph(case: Case) -> None:
    """Sizes are found again in the arrays, and known graphs have the same results."""
    specs = [
        spec(tuple(int(d) if d.isdigit() else Dim(d) for d in shape), getattr(rg, dtype))
        for shape, dtype in case.shapes()
    ]
    graph = rg.trace(case.f, *specs)
    for sizes in case.sizes[:1]:
        arrays = case.arrays(sizes)
        assert bind(graph.inputs, arrays).items() <= sizes.items()
        known = rg.trace(case.f, *arrays)
        assert [y.type.bind(sizes) for y in graph.outputs] == [y.type for y in known.outputs]


def test_sizes_are_written_briefly() -> None:
    assert every(1, 2, names="N M") == ({"N": 1, "M": 1}, {"N": 2, "M": 2})
    assert at(N=(1, 2), M=(3, 4)) == ({"N": 1, "M": 3}, {"N": 2, "M": 4})
    assert number("2*N", {"N": 5}) == 10
