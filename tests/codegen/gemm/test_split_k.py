"""Products of more terms than are a group: totals of groups and batches, in their one order."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from retrograd.ir import Dim, Graph, float32, spec
from retrograd.ops.leaf import input_node
from retrograd.ops.matmul import DotGeneral
from retrograd.ops.numerics.summation import PRODUCTS
from retrograd.passes.lowering import strided_views
from retrograd.runtime.executable import Executable
from tests.codegen.emit.summation_order import long, numbers, product_of, same
from tests.runtime.fuzz_checks import Threaded
from tests.sampling import mostly_exhaustive


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs of other settings are not found where programs are kept."""
    monkeypatch.setenv("RETROGRAD_CACHE_DIR", "off")


@pytest.mark.slow
@pytest.mark.parametrize("k", [3 * PRODUCTS.block + 5, PRODUCTS.group + 1])
@pytest.mark.sample(1)
def test_products_by_loops_and_by_the_routine(k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = numbers((70, k), float32), numbers((k, 33), float32, 1)
    wanted = product_of(a, b)
    for limit in (0, 1 << 60):
        for name in strided_views.LIMITS:
            monkeypatch.setattr(strided_views, name, limit)
        for left, right in itertools.product((a, np.ascontiguousarray(a.T)), (b, b.T.copy())):
            op = DotGeneral((int(left is a),), (int(right is not b),))
            nodes = [input_node(spec(x.shape, float32)) for x in (left, right)]
            for threads in (1, 2):
                found = Threaded(Graph(nodes, [op(*nodes)]), threads)([left, right])[0]
                same(found, wanted, (limit, threads))


@pytest.mark.slow
@pytest.mark.parametrize("k", mostly_exhaustive(long(PRODUCTS), 1))
def test_long_products(k: int) -> None:
    a, b = numbers((5, k), float32), numbers((k, 18), float32, 1)
    wanted = product_of(a, b)
    for sizes in ((a.shape, b.shape), ((Dim("M"), Dim("K")), (Dim("K"), Dim("N")))):
        nodes = [input_node(spec(s, float32)) for s in sizes]
        same(Executable(Graph(nodes, [DotGeneral((1,), (0,))(*nodes)]))([a, b])[0], wanted, k)
